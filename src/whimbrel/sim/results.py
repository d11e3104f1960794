"""Rows of figures that a simulation found, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plot:
    """What is drawn of the rows: y over x, one line or bar for each value of `by`."""

    name: str
    title: str
    x: str
    y: str
    by: str | None = None
    kind: str = "line"
    """line or bar."""
    logarithmic: bool = False
    x_logarithmic: bool = False


@dataclass(frozen=True)
class Results:
    """What a scenario found: rows of figures, and how to draw them."""

    rows: list[dict[str, Any]]
    plots: tuple[Plot, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
