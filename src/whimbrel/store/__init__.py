"""The event store: raw events as Parquet files by day and place, which queries over history prune on."""

from __future__ import annotations

from whimbrel.store.bounds import Bounds
from whimbrel.store.event_store import Appended, Compacted, Removed, Share, Store

__all__ = ["Appended", "Bounds", "Compacted", "Removed", "Share", "Store"]
