"""Rows of figures that a simulation found, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Published:
    """What a paper prints of the same experiment: drawn beside ours, in grey."""

    what: str
    """Named after the line of ours that it belongs to, where there is one."""
    values: float | tuple[tuple[float | str, float], ...]
    """One value for all of the plot, or (x, y) for each that is printed."""
    where: str
    """The paper, and the table, figure or section in it."""


@dataclass(frozen=True, slots=True)
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
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Results:
    """What a scenario found: rows of figures, and how to draw them."""

    rows: list[dict[str, Any]]
    plots: tuple[Plot, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
