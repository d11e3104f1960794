"""Many subscriptions to single events: added, removed and matched at a cost that follows the matches."""

from __future__ import annotations

from whimbrel.subscriptions.index import Subscriptions

__all__ = ["Subscriptions"]
