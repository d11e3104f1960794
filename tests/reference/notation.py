"""Events of the reference in the one-line notation of `whimbrel.testing`."""

from __future__ import annotations

from collections import Counter

from whimbrel.testing import events

from .data import Event

_FIELDS = ("type", "start", "end", "id", "source", "x", "y")


def given(text: str) -> list[Event]:
    """Read events; those without an id are a1, a2, b1, ... by their type, as they stand in the text."""
    seen: Counter[str] = Counter()
    found: list[Event] = []
    for row in events(text):
        seen[row["type"]] += 1
        known = {name: row[name] for name in _FIELDS if name in row}
        attributes = {name: value for name, value in row.items() if name not in _FIELDS}
        name = f"{row['type'].lower()}{seen[row['type']]}"
        found.append(Event(**{"id": name, **known}, attributes=attributes))
    return found
