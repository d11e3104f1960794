"""What travels over links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HEADER_B = 40
"""Bytes of a message besides its content: addresses, number, watermark."""


@dataclass(slots=True)
class Message:
    """A message from one broker to another, which may bring several of those there something."""

    origin: str
    target: str
    contents: Sequence[Any]
    size_b: float
    kind: str = "data"
    """What it is counted under: data, heartbeat, control, fixed state, state, request, reply."""
    priority: int = 0
    """Smaller numbers go first."""
    reliable: bool = True
    """Whether it is sent again over a link that lost it."""
