"""Event files in, detections out."""

from __future__ import annotations

from whimbrel.io.files import EventFiles, read_events

__all__ = ["EventFiles", "read_events"]
