"""Draws plans: hosts that stay on a map of the network, links as wide as their traffic; others over time.

`picture`, `spread` and `draw_broker` serve every planner that draws its plans on a map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whimbrel.errors import MissingDependency, NetworkError
from whimbrel.plan.candidates import candidate_brokers
from whimbrel.plan.network import Network
from whimbrel.plan.routes import Routes
from whimbrel.plan.units import in_bytes

if TYPE_CHECKING:
    from whimbrel.plan.plan import Plan

INK, QUIET, BUSY, TASK, SOURCE, WANTED = "#22303c", "#b8c4ce", "#c8553d", "#2a6f97", "#588157", "#7b2d8b"
BEHIND = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
"""What texts stand on, so that links do not strike them through."""
WIDEST = 9.0
"""Points: the width of the link with the most traffic."""
MOST_LABELS = 40
"""With more brokers than this, only those that do something are named."""

COLOURS = ("#2a6f97", "#c8553d", "#588157", "#7b2d8b", "#d4a017", "#4a4e69", "#0f8b8d", "#a44a3f")
Spots = dict[str, tuple[float, float]]
Bar = tuple[str, str, str, float, float]
"""What it is, its colour, its broker, and from when to when."""


def draw_plan(plan: Plan, path: str) -> None:
    """Draw a plan to a PNG or SVG file.

    Raises
    ------
    NetworkError
        If the file is of another kind.
    """
    if plan.horizon is None:
        _draw_map(plan, path)
    else:
        _draw_over_time(plan, path, plan.horizon.end_s)


@contextmanager
def picture(path: str, size: tuple[float, float] = (9, 6)) -> Iterator[Any]:
    """Return axes to draw on; what was drawn goes to a PNG or SVG file.

    Raises
    ------
    NetworkError
        If the file is of another kind.
    """
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise NetworkError(f"{path}: this is no picture", "name a file that ends with .png or .svg")
    pyplot = _pyplot()
    # The same plan gives the same file: no date, no random names, texts as texts.
    with pyplot.rc_context({"svg.hashsalt": "whimbrel", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        try:
            yield axes
            metadata = {"Date": None} if path.lower().endswith(".svg") else {}
            figure.savefig(path, dpi=130, metadata=metadata)
        finally:
            pyplot.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependency("matplotlib", "drawing a plan", "plan") from error
    return plt


def shown(plan: Plan) -> Network:
    """Return the part of a large network that a plan is about: ways, hosts, and the brokers above them."""
    network, traffic = plan.network, plan.costs.traffic_b_s
    busy = [end for link in traffic for end in (link.a, link.b)]
    ways = Routes(network, plan.objective.weight)
    names = candidate_brokers(plan.workload, ways, more=0, also=[*plan.first_hosts().values(), *busy])
    if names is None:
        return network
    inside = set(names)
    return Network(
        tuple(
            broker if broker.parent in inside else replace(broker, parent=None)
            for broker in network.brokers
            if broker.name in inside
        ),
        tuple(link for link in network.links if link.a in inside and link.b in inside),
    )


def spread(network: Network) -> Spots:
    """Put every broker on a spot: its own, or the middle of its area.

    If any broker has no place of its own, all are laid out by levels: roots on top, children under parents.
    """
    own = {}
    for broker in network.brokers:
        if broker.x is not None and broker.y is not None:
            own[broker.name] = (broker.x, broker.y)
        elif broker.area is not None:
            x0, y0, x1, y1 = broker.area
            own[broker.name] = ((x0 + x1) / 2, (y0 + y1) / 2)
    if len(own) == len(network.brokers) == len(set(own.values())):
        return own
    return _by_levels(network)


def _by_levels(network: Network) -> Spots:
    """Lay out a tree that reaches every broker: leaves side by side, others above their middle."""
    spots: Spots = {}
    column = 0.0
    for root in _roots(network):
        if root in spots:
            continue
        column = _lay_out(network, root, spots, column)
    return spots


def _roots(network: Network) -> list[str]:
    """Return the brokers to begin with: those without a parent that others have, then the best connected."""
    parents = {broker.parent for broker in network.brokers}
    by_links = sorted(network.brokers, key=lambda broker: -len(network.neighbours[broker.name]))
    tops = [broker.name for broker in by_links if broker.parent is None and broker.name in parents]
    return [*tops, *(broker.name for broker in by_links)]


def _lay_out(network: Network, root: str, spots: Spots, column: float) -> float:
    """Walk in breadth from a root to learn who is below whom; then give leaves their columns."""
    below: dict[str, list[str]] = {root: []}
    order, depth = [root], {root: 0}
    children: dict[str | None, list[str]] = {}
    for child in network.brokers:
        children.setdefault(child.parent, []).append(child.name)
    for at in order:
        linked = [link.other(at) for link in network.neighbours[at]]
        for name in dict.fromkeys([*children.get(at, []), *sorted(linked, key=network.number.__getitem__)]):
            if name not in below and name not in spots:
                below[at].append(name)
                below[name], depth[name] = [], depth[at] + 1
                order.append(name)
    stack, leaves = [root], []
    while stack:
        at = stack.pop()
        stack += reversed(below[at])
        if not below[at]:
            leaves.append(at)
    across = {name: column + n for n, name in enumerate(leaves)}
    for name in reversed(order):
        if below[name]:
            across[name] = sum(across[child] for child in below[name]) / len(below[name])
        spots[name] = (across[name], -float(depth[name]))
    return column + len(leaves)


# -- hosts that stay ----------------------------------------------------------------------------------------


def _draw_map(plan: Plan, path: str) -> None:
    with picture(path) as axes:
        network = shown(plan)
        spots, texts = spread(network), _texts_at_brokers(plan)
        _draw_links(axes, plan, network, spots)
        for broker in network.brokers:
            lines = texts.get(broker.name, [])
            is_named = bool(lines) or len(network.brokers) <= MOST_LABELS
            runs = any(colour == TASK for colour, _ in lines)
            size, colour = (260, TASK) if runs else (90, "white")
            draw_broker(axes, spots[broker.name], broker.name if is_named else "", lines, size, colour)
        moving = [feed.name for feed in plan.workload.feeds if feed.at in plan.network.mover]
        title = f"{plan.network.name or 'plan'} ({plan.planner}, {plan.objective.words})"
        if network is not plan.network:
            title += f", {len(network.brokers)} of {len(plan.network.brokers):,} brokers"
        title += f"; from movers: {_short(', '.join(moving))}" if moving else ""
        finish_map(axes, title, (("task", TASK), ("source", SOURCE), ("wanted here", WANTED)), (0.16, 0.2))


def draw_broker(
    axes: Any,
    spot: tuple[float, float],
    name: str,
    texts: list[tuple[str, str]],
    size: float,
    colour: str = "white",
) -> None:
    """Draw a broker on a map, with its name above and texts (colour, text) below; without a name, a dot."""
    axes.scatter([spot[0]], [spot[1]], s=size, color=colour, edgecolor=INK, zorder=3)
    if not name:
        return
    axes.annotate(
        name, spot, xytext=(0, 11), textcoords="offset points", ha="center", va="bottom",
        color=INK, fontweight="bold", zorder=5, bbox=BEHIND,
    )  # fmt: skip
    for line, (text_colour, text) in enumerate(texts):
        axes.annotate(
            text, spot, xytext=(0, -11 - 9.5 * line), textcoords="offset points", ha="center", va="top",
            fontsize=7.5, color=text_colour, zorder=5, bbox=BEHIND,
        )  # fmt: skip


def finish_map(
    axes: Any, title: str, marks: tuple[tuple[str, str], ...], margins: tuple[float, float]
) -> None:
    """Add a title, and a legend of marks (text, colour)."""
    axes.set_axis_off()
    axes.margins(*margins)
    axes.set_title(title, color=INK)
    for text, colour in marks:
        axes.plot([], [], marker="s", linestyle="", color=colour, label=text)
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def _draw_links(axes: Any, plan: Plan, network: Network, spots: Spots) -> None:
    traffic = plan.costs.traffic_b_s
    most = max(traffic.values(), default=0.0)
    for link in network.links:
        (x0, y0), (x1, y1) = spots[link.a], spots[link.b]
        load = traffic.get(link, 0.0)
        width = 0.8 + (WIDEST - 0.8) * math.sqrt(load / most) if load else 0.8
        colour = BUSY if load else QUIET
        style = "-" if link.contacts.share == 1 else (0, (4, 1.5))
        axes.plot(
            [x0, x1], [y0, y1], color=colour, linewidth=width, linestyle=style, alpha=0.6,
            solid_capstyle="round", zorder=1,
        )  # fmt: skip
        if load and len(traffic) <= MOST_LABELS:
            axes.annotate(
                f"{in_bytes(load)}/s", ((x0 + x1) / 2, (y0 + y1) / 2), color=INK, fontsize=7, ha="center",
                va="center", zorder=4,
                bbox=BEHIND,
            )  # fmt: skip


def _texts_at_brokers(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """Return what is to be said at each broker, with its colour: tasks, sources, who wants something."""
    texts: dict[str, list[tuple[str, str]]] = {}
    hosts = plan.first_hosts()
    for host in dict.fromkeys(hosts.values()):
        texts[host] = [(TASK, text) for text in _tasks_on(plan, hosts, host)]
    ends: list[tuple[str, str, str]] = [(SOURCE, feed.at, feed.name) for feed in plan.workload.feeds]
    ends += [(WANTED, delivery.at, f"→ {delivery.stream}") for delivery in plan.workload.deliveries]
    for colour, at, text in ends:
        if at in plan.network.number:
            texts.setdefault(at, []).append((colour, _short(text)))
    return {name: _at_most(said, 6) for name, said in texts.items()}


def _tasks_on(plan: Plan, hosts: Mapping[str, str], host: str) -> list[str]:
    """Name the tasks on a broker, those that are made of others first, and twins once."""
    counts: dict[str, int] = {}
    for task in reversed(plan.workload.tasks):
        if hosts[task.name] == host:
            name = task.operators[-1] if task.operators else task.name
            counts[name] = counts.get(name, 0) + 1
    return [_short(name) + (f" × {count}" if count > 1 else "") for name, count in counts.items()]


def _at_most(said: list[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    if len(said) <= count:
        return said
    return [*said[: count - 1], (INK, f"and {len(said) - count + 1} more")]


def _short(text: str) -> str:
    return text if len(text) <= 28 else f"{text[:27]}…"


# -- hosts over time ----------------------------------------------------------------------------------------


def _draw_over_time(plan: Plan, path: str, end_s: float) -> None:
    """Draw a row for each broker, and bars for the tasks on it and the movers at it."""
    bars = _bars(plan, end_s)
    used = {broker for _, _, broker, _, _ in bars}
    brokers = [broker.name for broker in plan.network.brokers if broker.name in used]
    names = list(dict.fromkeys(name for name, *_ in bars))
    with picture(path, (10, 1.6 + 0.75 * len(brokers))) as axes:
        for row in range(len(brokers)):
            axes.axhspan(row - 0.5, row + 0.5, color=QUIET, alpha=0.16 if row % 2 else 0.0, linewidth=0)
        _draw_bars(axes, bars, brokers, names)
        _draw_moves(axes, plan, brokers, names)
        axes.set_yticks(range(len(brokers)), brokers)
        axes.set_ylim(len(brokers) - 0.5, -0.5)
        axes.set_xlim(0, end_s)
        axes.set_xlabel("seconds")
        title = f"{plan.network.name or 'plan'} ({plan.planner}): who is on which broker when"
        axes.set_title(title, color=INK)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)


def _bars(plan: Plan, end_s: float) -> list[Bar]:
    ends = [feed.at for feed in plan.workload.feeds] + [delivery.at for delivery in plan.workload.deliveries]
    bars: list[Bar] = []
    for name in dict.fromkeys(at for at in ends if at in plan.network.mover):
        steps = [*plan.line.place(name), (end_s, "")]
        for (start, broker), (end, _) in pairwise(steps):
            if max(start, 0.0) < end:
                bars.append((f"{name} (mover)", QUIET, broker, max(start, 0.0), min(end, end_s)))
    for number, task in enumerate(plan.workload.tasks):
        colour = COLOURS[number % len(COLOURS)]
        bars += [(task.name, colour, s.broker, s.start_s, s.end_s) for s in plan.stays[task.name]]
    return bars


def _draw_bars(axes: Any, bars: list[Bar], brokers: list[str], names: list[str]) -> None:
    labelled = set()
    height = 0.8 / len(names)
    for name, colour, broker, start, end in bars:
        label = None if name in labelled else name
        labelled.add(name)
        middle = _middle(brokers.index(broker), names.index(name), len(names))
        axes.barh(middle, end - start, left=start, height=0.85 * height, color=colour, label=label, zorder=3)


def _middle(row: int, number: int, count: int) -> float:
    return row - 0.4 + 0.8 * (number + 0.5) / count


def _draw_moves(axes: Any, plan: Plan, brokers: list[str], names: list[str]) -> None:
    """Join the bars of a task where it moves."""
    for task in plan.workload.tasks:
        number = names.index(task.name)
        stays = plan.stays[task.name]
        for before, after in pairwise(stays):
            ends = [_middle(brokers.index(stay.broker), number, len(names)) for stay in (before, after)]
            axes.plot([after.start_s] * 2, ends, color=INK, linewidth=0.8, linestyle=":", zorder=2)
