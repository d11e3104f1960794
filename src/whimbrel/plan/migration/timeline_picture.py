"""Draws a plan over time: a row for each broker, bars for the tasks on it and the movers at it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from whimbrel.plan.picture import INK, QUIET, picture

if TYPE_CHECKING:
    from whimbrel.plan.migration.itinerary import Itinerary

COLOURS = ("#2a6f97", "#c8553d", "#588157", "#7b2d8b", "#d4a017", "#4a4e69", "#0f8b8d", "#a44a3f")
Bar = tuple[str, str, str, float, float]
"""What it is, its colour, its broker, and from when to when."""


def draw_itinerary(plan: Itinerary, path: str) -> None:
    """Draw hosts over time to a PNG or SVG file.

    Raises
    ------
    NetworkError
        If the file is of another kind.
    """
    bars = _bars(plan)
    used = {broker for _, _, broker, _, _ in bars}
    brokers = [each.name for each in plan.network.brokers if each.name in used]
    names = list(dict.fromkeys(name for name, *_ in bars))
    with picture(path, (10, 1.6 + 0.75 * len(brokers))) as axes:
        for row in range(len(brokers)):
            axes.axhspan(row - 0.5, row + 0.5, color=QUIET, alpha=0.16 if row % 2 else 0.0, linewidth=0)
        _draw_bars(axes, bars, brokers, names)
        _draw_moves(axes, plan, brokers, names)
        axes.set_yticks(range(len(brokers)), brokers)
        axes.set_ylim(len(brokers) - 0.5, -0.5)
        axes.set_xlim(0, plan.horizon.end_s)
        axes.set_xlabel("seconds")
        title = f"{plan.network.name or 'plan'} ({plan.planner}): who is on which broker when"
        axes.set_title(title, color=INK)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)


def _bars(plan: Itinerary) -> list[Bar]:
    ends = [feed.at for feed in plan.workload.feeds] + [each.at for each in plan.workload.deliveries]
    found: list[Bar] = []
    for name in dict.fromkeys(at for at in ends if at in plan.network.mover):
        steps = [*plan.line.place(name), (plan.horizon.end_s, "")]
        for (start, broker), (end, _) in pairwise(steps):
            if max(start, 0.0) < end:
                found.append(
                    (f"{name} (mover)", QUIET, broker, max(start, 0.0), min(end, plan.horizon.end_s))
                )
    for number, task in enumerate(plan.workload.tasks):
        colour = COLOURS[number % len(COLOURS)]
        found += [(task.name, colour, s.broker, s.start_s, s.end_s) for s in plan.stays[task.name]]
    return found


def _draw_bars(axes: Any, bars: list[Bar], brokers: list[str], names: list[str]) -> None:
    said = set()
    height = 0.8 / len(names)
    for name, colour, broker, start, end in bars:
        label = None if name in said else name
        said.add(name)
        middle = _middle(brokers.index(broker), names.index(name), len(names))
        axes.barh(middle, end - start, left=start, height=0.85 * height, color=colour, label=label, zorder=3)


def _middle(row: int, number: int, count: int) -> float:
    return row - 0.4 + 0.8 * (number + 0.5) / count


def _draw_moves(axes: Any, plan: Itinerary, brokers: list[str], names: list[str]) -> None:
    """Join the bars of a task where it moves."""
    for task in plan.workload.tasks:
        number = names.index(task.name)
        stays = plan.stays[task.name]
        for before, after in pairwise(stays):
            ends = [_middle(brokers.index(each.broker), number, len(names)) for each in (before, after)]
            axes.plot([after.start_s] * 2, ends, color=INK, linewidth=0.8, linestyle=":", zorder=2)
