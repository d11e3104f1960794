"""What travels over links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HEADER_B = 40
"""Bytes of a message besides its content: addresses, number, watermark."""


@dataclass(slots=True)
class Message:
    """A message from one broker to another."""

    origin: str
    target: str
    size_b: float
    content: Any = None
    kind: str = "data"
    """What it is counted under: data, heartbeat, control, fixed state, state, request, reply."""
    priority: int = 0
    """Smaller numbers go first."""
    reliable: bool = True
    """Whether it is sent again over a link that lost it."""
    sent_s: float = 0.0
    hops: int = field(default=0, compare=False)
