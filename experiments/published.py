"""What papers print of the same experiments: drawn in grey beside what came out, and written with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from whimbrel.sim.report import write_report
from whimbrel.sim.results import Plot, Results

_STYLES = ("--", ":", "-.")


@dataclass(frozen=True, slots=True)
class Published:
    """What a paper prints of the same experiment: drawn beside ours, in grey."""

    what: str
    """Named after the line of ours that it belongs to, where there is one."""
    values: float | tuple[tuple[float | str, float], ...]
    """One value for all of the plot, or (x, y) for each that is printed."""
    where: str
    """The paper, and the table, figure or section in it."""


@dataclass(frozen=True)
class PublishedPlot(Plot):
    """A plot beside which a paper prints something."""

    published: tuple[Published, ...] = ()


def write_figures(name: str, parameters: Mapping[str, Any], results: Results, out: Path) -> list[Path]:
    """Write what a scenario found into a folder, with what papers print of it; return the files."""
    published = [
        {"plot": plot.name, "what": each.what, "values": each.values, "where": each.where}
        for plot in results.plots
        for each in _published(plot)
    ]
    return write_report(name, parameters, results, out, more={"published": published}, annotate=_annotate)


def _published(plot: Plot) -> tuple[Published, ...]:
    return plot.published if isinstance(plot, PublishedPlot) else ()


def _annotate(plot: Plot, axes: Any, ticks: list[Any] | None) -> None:
    for each, style in zip(_published(plot), cycle(_STYLES)):
        _draw_published(axes, each, style, ticks)


def _draw_published(axes: Any, published: Published, style: str, ticks: list[Any] | None) -> None:
    """Draw what a paper prints in grey: a line across the plot, or its points; bars stand at places."""
    label = f"{published.what} ({published.where})"
    if isinstance(published.values, float | int):
        axes.axhline(published.values, color="0.45", linestyle=style, label=label)
        return
    x = [ticks.index(x) if ticks else x for x, _ in published.values]
    y = [y for _, y in published.values]
    axes.plot(x, y, color="0.45", linestyle=" " if ticks else style, marker="D", markersize=5, label=label)
