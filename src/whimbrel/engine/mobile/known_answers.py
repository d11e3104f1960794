"""What operators in Python answered lately, by all that they were told of a selection since it was opened."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

ROOM = 1 << 16
"""Of how many calls the answers are kept, those that were asked for last."""


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """What an operator gave, with places in the selection instead of events: other selections have others."""

    found: tuple[tuple[Mapping[str, Any], tuple[int, ...] | None], ...] = ()
    """The attributes of each detection, and which events it is made of (None: all)."""
    finished: bool = False
    exhausted: bool = False
    consumed: int | tuple[int, ...] | None = None
    """What it says when it takes leave of a selection: a time, or events."""


@dataclass(slots=True)
class AskedCall:
    """A call of an operator, made or not."""

    number: int
    """What comes after it refers to it by this."""
    answer: KnownAnswer | None = None


class KnownAnswers:
    """The answers of one operator.

    Nothing depends on what is here but how often the operator is called: what is gone is asked again.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._calls: dict[tuple[int, Hashable], AskedCall] = {}
        self._begun = 0

    def after(self, before: int, told: Hashable) -> AskedCall:
        """Look up the call that tells an operator something, after another call; 0 is before the first."""
        call = self._calls.pop((before, told), None)
        if call is None:
            self._begun += 1
            call = AskedCall(self._begun)
        self._calls[before, told] = call
        if len(self._calls) > self._room:
            del self._calls[next(iter(self._calls))]
        return call
