"""Networks and workloads made by rule: hierarchies, grids, trees with contacts, and published scenarios.

What is random has a seed, so that the same call gives the same network. Where a paper does not print a figure
or a number, the choice that was made instead stands in `Network.notes`.

References
----------
.. [1] B. Ottenwälder et al., "MigCEP: Operator Migration for Mobility Driven Distributed Complex Event
   Processing", DEBS 2013, section 6.
.. [2] J. Chen et al., "Comet: Decentralized Complex Event Detection in Mobile Delay Tolerant Networks",
   MDM 2013, section V.

What stands in buildings is in `experiments.buildings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from experiments.buildings import Site, logical_test, nursing_home
from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import PeriodicContacts
from whimbrel.plan.network import Box, Broker, Consumer, EventSource, Link, Mover, Network

__all__ = [
    "MIGCEP_AREA",
    "Site",
    "deep_tree",
    "flat",
    "grid",
    "hierarchy",
    "logical_test",
    "nursing_home",
    "poisson_events",
    "quad_tree",
    "skewed_tree",
    "wandering",
    "zipf_rates",
]

MIGCEP_AREA: Box = (0.0, 0.0, 7_700.0, 3_500.0)
"""7.7 x 3.5 km, in metres."""
MBIT = 125_000.0
"""Bytes."""


# -- hierarchies and grids ----------------------------------------------------------------------------------


def hierarchy(
    tiers: Sequence[tuple[int, int]] = ((1, 1), (2, 2), (4, 4)),
    area: Box = MIGCEP_AREA,
    *,
    capacity: float = 1.0,
    latency_s: float = 0.01,
    bandwidth_b_s: float = 100 * MBIT,
    name: str = "hierarchy",
) -> Network:
    """Make a cloud, and below it tiers of nx x ny brokers that share the area out.

    As in MigCEP, capacity grows with the square of the level, from `capacity` of the leaves on, and all links
    have the same latency. The cloud can do anything.

    Raises
    ------
    NetworkError
        If the columns or rows of a tier do not divide those of the tier below it.
    """
    brokers, links = [Broker("cloud", area=area, x=_middle(area)[0], y=area[3])], []
    above: tuple[int, int] | None = None
    for tier, (nx, ny) in enumerate(tiers):
        if above is not None and (nx % above[0] or ny % above[1]):
            raise NetworkError(
                f"{nx} x {ny} brokers do not share out {above[0]} x {above[1]}",
                "give numbers that those of the tier above divide",
            )
        level = len(tiers) - tier
        for column in range(nx):
            for row in range(ny):
                own = _cell(area, nx, ny, column, row)
                parent = "cloud"
                if above is not None:
                    parent = f"fog-{tier}-{column * above[0] // nx}-{row * above[1] // ny}"
                x, y = _middle(own)
                broker = Broker(
                    f"fog-{tier + 1}-{column}-{row}", capacity * level**2, parent=parent, area=own, x=x, y=y
                )
                brokers.append(broker)
                links.append(Link(broker.name, parent, bandwidth_b_s, latency_s))
        above = (nx, ny)
    return Network(tuple(brokers), tuple(links), name=name)


def quad_tree() -> Network:
    """Make the quad-tree of MigCEP: a cloud and 21 fog nodes (1, 4 and 16) over 7.7 x 3.5 km."""
    notes = {"chosen": "links of 10 ms and 100 Mbit/s; capacity 1, 4 and 9 from the leaves up"}
    return replace(hierarchy(name="quad-tree"), notes=notes)


def flat() -> Network:
    """Make the flat hierarchy of MigCEP: 40 fog nodes (8 x 5) under one cloud."""
    notes = {"chosen": "40 = 8 x 5 areas of about 0.96 x 0.7 km; links of 10 ms and 100 Mbit/s"}
    return replace(hierarchy(((8, 5),), name="flat"), notes=notes)


def grid(
    columns: int,
    rows: int,
    area: Box = (0.0, 0.0, 1_000.0, 1_000.0),
    *,
    capacity: float = math.inf,
    latency_s: float = 0.005,
    bandwidth_b_s: float = 100 * MBIT,
) -> Network:
    """Make brokers in columns and rows, each linked to its neighbours."""
    brokers, links = [], []
    for column in range(columns):
        for row in range(rows):
            own = _cell(area, columns, rows, column, row)
            x, y = _middle(own)
            name = f"{column}-{row}"
            brokers.append(Broker(name, capacity, area=own, x=x, y=y))
            if column:
                links.append(Link(f"{column - 1}-{row}", name, bandwidth_b_s, latency_s))
            if row:
                links.append(Link(f"{column}-{row - 1}", name, bandwidth_b_s, latency_s))
    return Network(tuple(brokers), tuple(links), name=f"grid {columns} x {rows}")


def wandering(
    area: Box, count: int, duration_s: float, seed: int, *, speed_m_s: float = 12.0, step_s: float = 1.0
) -> tuple[Mover, ...]:
    """Make movers that go straight from one random place to the next, all at one speed."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, duration_s + step_s / 2, step_s)
    return tuple(Mover(f"car-{number}", _wander(area, times, speed_m_s, rng)) for number in range(count))


def _wander(
    area: Box, times: np.ndarray, speed_m_s: float, rng: np.random.Generator
) -> tuple[tuple[float, float, float], ...]:
    low, high = np.array(area[:2]), np.array(area[2:])
    way = float(speed_m_s * times[-1])
    points, lengths = [rng.uniform(low, high)], [0.0]
    while lengths[-1] < way:
        points.append(rng.uniform(low, high))
        lengths.append(lengths[-1] + float(np.linalg.norm(points[-1] - points[-2])))
    corners, gone = np.array(points), speed_m_s * times
    x, y = (np.interp(gone, lengths, corners[:, axis]) for axis in (0, 1))
    return tuple(zip(times.tolist(), x.tolist(), y.tolist(), strict=True))


def _cell(area: Box, nx: int, ny: int, column: int, row: int) -> Box:
    # Neighbours share the very same border, so that no place falls between them.
    x0, y0, x1, y1 = area
    xs = [x0 + (x1 - x0) * each / nx for each in (column, column + 1)]
    ys = [y0 + (y1 - y0) * each / ny for each in (row, row + 1)]
    return (xs[0], ys[0], xs[1], ys[1])


def _middle(box: Box) -> tuple[float, float]:
    return ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)


# -- delay-tolerant trees -----------------------------------------------------------------------------------

SINK_B_S, BETWEEN_B_S, SOURCE_B_S = 128e3 / 8, 256e3 / 8, 1.2e6 / 8
LOW_S, MEDIUM_S, HIGH_S = 30.0, 150.0, 300.0
"""The three disconnection periods of Comet."""
TREE_NOTES = {
    "chosen": "links are up for 1 min at a time, each from a random moment on; a link takes 30 s, so that "
    "three links of 5 min take the 16.5 min that are printed as the least; events of 1,000 bytes; the "
    "commonest source sends one a minute, the k-th one a k-th of that to the power of an exponent",
}


def skewed_tree(
    seed: int,
    *,
    levels: int = 3,
    degree: tuple[int, int] = (1, 3),
    **settings: float,
) -> Network:
    """Make a delay-tolerant tree in which every junction has a random number of children."""
    rng = np.random.default_rng(seed)
    tree = _grown(levels, lambda: int(rng.integers(degree[0], degree[1] + 1)))
    return _dtn(tree, rng, name="skewed tree", **settings)


def deep_tree(seed: int, *, levels: int = 3, children: int = 2, **settings: float) -> Network:
    """Make a delay-tolerant tree in which every junction has the same number of children."""
    rng = np.random.default_rng(seed)
    tree = _grown(levels, lambda: children)
    return _dtn(tree, rng, name="deep tree", **settings)


def _grown(levels: int, children: Callable[[], int]) -> list[list[tuple[str, str]]]:
    """Return the links (child, parent) of a tree, level by level from the sink on."""
    found, ends, number = [], ["sink"], 0
    for level in range(1, levels + 1):
        links = []
        for parent in ends:
            for _ in range(children()):
                number += 1
                links.append((f"{'source' if level == levels else 'junction'}-{number}", parent))
        found.append(links)
        ends = [child for child, _ in links]
    return found


def _dtn(
    tree: list[list[tuple[str, str]]],
    rng: np.random.Generator,
    *,
    name: str,
    is_uniform: float = True,
    is_cost_uniform: float = False,
    up_s: float = 60.0,
    latency_s: float = 30.0,
    size_b: float = 1_000.0,
    most_hz: float = 1 / 60,
    exponent: float = 1.0,
    tolerance_s: float = math.inf,
) -> Network:
    """Give links their bandwidths and contacts, and sources their rates.

    A byte costs the inverse of the bandwidth, as in the paper; `is_cost_uniform`: that of a medium one on
    every link. `is_uniform`: every link is down for 5 min at a time; else 5 min at the sink, 2.5 min between
    and 30 s at the sources.
    """
    brokers, links = [Broker("sink")], []
    last = len(tree) - 1
    for level, pairs in enumerate(tree):
        bandwidth = SINK_B_S if level == 0 else SOURCE_B_S if level == last else BETWEEN_B_S
        down = HIGH_S if is_uniform or level == 0 else LOW_S if level == last else MEDIUM_S
        for child, parent in pairs:
            phase = float(rng.uniform(0, down + up_s))
            brokers.append(Broker(child, parent=parent))
            cost = 1 / BETWEEN_B_S if is_cost_uniform else 1 / bandwidth
            links.append(Link(child, parent, bandwidth, latency_s, cost, PeriodicContacts(down, up_s, phase)))
    ends = [child for child, _ in tree[-1]]
    rates = rng.permutation(zipf_rates(len(ends), most_hz, exponent)).tolist()
    sources = tuple(
        EventSource(f"PE{n}", f"PE{n}", end, rate, size_b)
        for n, (end, rate) in enumerate(zip(ends, rates, strict=True), start=1)
    )
    sink = Consumer("sink", "sink", latency_s=tolerance_s)
    return Network(tuple(brokers), tuple(links), sources, (sink,), name=name, notes=TREE_NOTES)


def zipf_rates(count: int, most_hz: float, exponent: float = 1.0) -> list[float]:
    """Return rates of which the k-th is 1 / k**exponent of the first."""
    return [most_hz / rank**exponent for rank in range(1, count + 1)]


def poisson_events(network: Network, duration_s: float, seed: int) -> list[dict[str, object]]:
    """Let the sources of a network send events by chance, at their rates.

    The rows are as `whimbrel.detect` takes them. Times are seconds since 1970, in order.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for source in network.sources:
        count = int(rng.poisson((source.rate_hz or 0.0) * duration_s))
        times = np.sort(rng.uniform(0, duration_s, count)).round(6)
        rows += [
            {"id": f"{source.name}-{n}", "type": source.event_type, "time": time, "source": source.name}
            for n, time in enumerate(times.tolist())
        ]
    return sorted(rows, key=lambda row: (float(str(row["time"])), str(row["id"])))
