"""Helpers for tests, ours and yours: events in one line instead of a page of builders."""

from whimbrel.testing.events import detections, events, table

__all__ = ["detections", "events", "table"]
