"""What travels over links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HEADER_B = 40
"""Bytes of a message besides its content: addresses, number, watermark."""

Leg = tuple[str, Any]
"""A broker that a message goes to, and what it brings there."""


@dataclass(slots=True)
class Message:
    """A message from one broker to others: it crosses a link once, and parts where the ways part."""

    origin: str
    legs: Sequence[Leg]
    size_b: float
    kind: str = "data"
    """What it is counted under: data, heartbeat, control, fixed state, state, request, reply."""
    priority: int = 0
    """Smaller numbers go first."""
    reliable: bool = True
    """Whether it is sent again over a link that lost it."""

    def part(self, legs: Sequence[Leg]) -> Message:
        """Give the same message for some of its receivers."""
        return Message(self.origin, legs, self.size_b, self.kind, self.priority, self.reliable)


def message(origin: str, target: str, size_b: float, content: Any = None, **about: Any) -> Message:
    """Make a message to one broker."""
    return Message(origin, [(target, content)], size_b, **about)
