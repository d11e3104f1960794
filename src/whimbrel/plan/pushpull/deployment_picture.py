"""Draws a plan that pushes and pulls: the network, and what comes to each broker how."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from whimbrel.plan.picture import (
    BUSY,
    INK,
    QUIET,
    SOURCE,
    WANTED,
    WIDEST,
    Spots,
    draw_broker,
    finish_map,
    picture,
    spread,
)
from whimbrel.plan.pushpull.deployment import InputFlow, hops, input_flows

if TYPE_CHECKING:
    from whimbrel.plan.pushpull.deployment import PushPullDeployment

PULLED = WANTED


def draw_deployment(plan: PushPullDeployment, path: str) -> None:
    """Draw a plan that pushes and pulls to a PNG or SVG file.

    Raises
    ------
    NetworkError
        If the file is of another kind.
    """
    got = [
        each
        for wanted in plan.wanted
        for composite in wanted.composites
        for planned in plan.plan_of(composite).root.all()
        for each in input_flows(composite, planned)
    ]
    with picture(path) as axes:
        spots = spread(plan.network)
        for link in plan.network.links:
            (x0, y0), (x1, y1) = spots[link.a], spots[link.b]
            style = "-" if link.contacts.share == 1 else (0, (4, 2))
            axes.plot([x0, x1], [y0, y1], color=QUIET, linewidth=0.8, linestyle=style, zorder=1)
        _draw_ways(axes, got, spots)
        texts = _said(plan, got)
        for broker in plan.network.brokers:
            draw_broker(axes, spots[broker.name], broker.name, texts.get(broker.name, [])[:7], 110)
        title = f"{plan.network.name or 'plan'} ({plan.planner}): what is sent at once, and what is asked for"
        finish_map(axes, title, (("sent at once", BUSY), ("asked for", PULLED), ("part", SOURCE)), (0.2, 0.2))


def _draw_ways(axes: Any, got: list[InputFlow], spots: Spots) -> None:
    """Draw an arrow for each hop: as wide as its traffic, in the colour of what makes most of it."""
    pushed: dict[tuple[str, str], float] = {}
    pulled: dict[tuple[str, str], float] = {}
    for each in got:
        carried = pulled if each.stage else pushed
        for hop in hops(each.each):
            carried[hop] = max(carried.get(hop, 0.0), each.bytes_s)
    most = max([*pushed.values(), *pulled.values()], default=0.0) or 1.0
    for carried, colour, style in ((pushed, BUSY, "-"), (pulled, PULLED, (0, (2.5, 1)))):
        for (start, end), bytes_s in carried.items():
            (x0, y0), (x1, y1) = spots[start], spots[end]
            width = 0.9 + (WIDEST * 0.5 - 0.9) * math.sqrt(bytes_s / most)
            axes.plot(
                [x0, x1], [y0, y1], color=colour, linewidth=width, linestyle=style, alpha=0.75, zorder=2
            )
            # The head is in the middle of the way: at its end it would be under the texts there.
            tail, head = ((x0 + (x1 - x0) * share, y0 + (y1 - y0) * share) for share in (0.5, 0.56))
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 0, "mutation_scale": 14 + 2 * width}
            axes.annotate("", head, xytext=tail, arrowprops=arrow, zorder=3)


def _said(plan: PushPullDeployment, got: list[InputFlow]) -> dict[str, list[tuple[str, str]]]:
    """Say what is to be said at each broker: the parts there, what it is sent, what it asks for."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    for wanted in plan.wanted:
        for composite in wanted.composites:
            for part in composite.parts:
                found.setdefault(part.at, {})[SOURCE, part.name] = None
    for each in got:
        if each.stage:
            found.setdefault(each.at, {})[PULLED, f"asks for {each.name}"] = None
        elif hops(each.each):
            found.setdefault(each.at, {})[BUSY, f"is sent {each.name}"] = None
    for wanted in plan.wanted:
        found.setdefault(wanted.delivery.at, {})[INK, f"→ {wanted.delivery.stream}"] = None
    return {name: list(texts) for name, texts in found.items()}
