"""Words for numbers of things."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """Write a number of things.

    >>> many(1, "event"), many(1200, "event")
    ('1 event', '1,200 events')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
