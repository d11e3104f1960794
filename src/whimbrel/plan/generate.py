"""Networks and workloads made by rule: hierarchies, grids, trees with contacts, and published scenarios.

What is random has a seed, so that the same call gives the same network. Where a paper does not print a figure
or a number, the choice that was made instead stands in `Network.notes`.

References
----------
.. [1] B. Ottenwälder et al., "MigCEP: Operator Migration for Mobility Driven Distributed Complex Event
   Processing", DEBS 2013, section 6.
.. [2] J. Chen et al., "Comet: Decentralized Complex Event Detection in Mobile Delay Tolerant Networks",
   MDM 2013, section V.
.. [3] "Place-and-play" complex event processing at the edge, section 6: flow-based task assignment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ByTurns
from whimbrel.plan.network import Box, Broker, Consumer, Link, Mover, Network, Source
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

MIGCEP_AREA: Box = (0.0, 0.0, 7_700.0, 3_500.0)
"""7.7 x 3.5 km, in metres."""
MBIT = 125_000.0
"""Bytes."""


@dataclass(frozen=True)
class Scenario:
    """A network, and what has to run on it."""

    network: Network
    workload: Workload


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
    "three links of 5 min take the 16.5 min that are printed as the least; events of 100 bytes; the "
    "commonest source sends one a minute, the k-th one a k-th of that",
}


def skewed_tree(
    seed: int,
    *,
    levels: int = 3,
    degree: tuple[int, int] = (1, 3),
    is_uniform: bool = True,
    **settings: float,
) -> Network:
    """Make a delay-tolerant tree in which every junction has a random number of children."""
    rng = np.random.default_rng(seed)
    tree = _grown(levels, lambda: int(rng.integers(degree[0], degree[1] + 1)))
    return _dtn(tree, rng, is_uniform=is_uniform, name="skewed tree", **settings)


def deep_tree(
    seed: int, *, levels: int = 3, children: int = 2, is_uniform: bool = True, **settings: float
) -> Network:
    """Make a delay-tolerant tree in which every junction has the same number of children."""
    rng = np.random.default_rng(seed)
    tree = _grown(levels, lambda: children)
    return _dtn(tree, rng, is_uniform=is_uniform, name="deep tree", **settings)


def _grown(levels: int, children: Callable[[], int]) -> list[list[tuple[str, str]]]:
    """Give the links (child, parent) of a tree, level by level from the sink on."""
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
    is_uniform: bool,
    name: str,
    up_s: float = 60.0,
    latency_s: float = 30.0,
    size_b: float = 100.0,
    most_hz: float = 1 / 60,
    exponent: float = 1.0,
    tolerance_s: float = math.inf,
) -> Network:
    """Give links their bandwidths and contacts, and sources their rates.

    A byte costs the inverse of the bandwidth, as in the paper. `is_uniform`: every link is down for 5 min at
    a time; else 5 min at the sink, 2.5 min between and 30 s at the sources.
    """
    brokers, links = [Broker("sink")], []
    last = len(tree) - 1
    for level, pairs in enumerate(tree):
        bandwidth = SINK_B_S if level == 0 else SOURCE_B_S if level == last else BETWEEN_B_S
        down = HIGH_S if is_uniform or level == 0 else LOW_S if level == last else MEDIUM_S
        for child, parent in pairs:
            phase = float(rng.uniform(0, down + up_s))
            brokers.append(Broker(child, parent=parent))
            links.append(Link(child, parent, bandwidth, latency_s, 1 / bandwidth, ByTurns(down, up_s, phase)))
    ends = [child for child, _ in tree[-1]]
    rates = rng.permutation(zipf_rates(len(ends), most_hz, exponent)).tolist()
    sources = tuple(
        Source(f"PE{n}", f"PE{n}", end, rate, size_b)
        for n, (end, rate) in enumerate(zip(ends, rates, strict=True), start=1)
    )
    sink = Consumer("sink", "sink", latency_s=tolerance_s)
    return Network(tuple(brokers), tuple(links), sources, (sink,), name=name, notes=TREE_NOTES)


def zipf_rates(count: int, most_hz: float, exponent: float = 1.0) -> list[float]:
    """Give rates of which the k-th is 1 / k**exponent of the first."""
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


# -- place-and-play -----------------------------------------------------------------------------------------

THETA = 25_000.0
"""What a broker of the nursing home can do: 25 K."""
ENVIRONMENT_B_S, WEARABLE_B_S, VIDEO_B_S = 1_500 / 60, 1_500.0, 6.75e6
FRAMES_HZ = 20.0
FLOORS = {"A": 3, "B1": 2, "B2": 2}
ROOMS = 4
HOME_NOTES = {
    "from the paper": "buildings A, B1, B2; 1.5 KB/min, 1.5 KB/s and 6.75 MB/s; four requests; theta = 25 K",
    "chosen": "A has three floors, B1 and B2 two, of four rooms in a row; stairs at room 1; buildings "
    "linked on the ground floor, A - B1 - B2; the server is behind room 3 of B1, the gateway behind room "
    "2 of A. So the farthest brokers are 11 hops apart and the server is at most 9 hops away, as "
    "printed. A sensor in each room, wearables in rooms 2 and 3, a camera in room 1 of every floor of A "
    "and of the ground floors of B1 and B2. An air-flow controller in room 4 and a nurse tablet in room "
    "1 of every floor",
    "work": "units a second: 1 an event for averages and patterns, 100 a frame for motion, 1000 a frame "
    "for faces (20 frames a second: a room can look for the faces of one camera)",
    "sizes": "of 20 frames a second motion keeps 1, as a clip of 20 KB; one face of 10 KB in 5 s; an "
    "average of 100 bytes a minute; a pattern of 100 bytes in 10 min",
}


def nursing_home() -> Scenario:
    """Make the smart nursing home of place-and-play, section 6.3; what was chosen is in the notes."""
    brokers, links = _home()
    network = Network(brokers, links, name="nursing home", notes=HOME_NOTES)
    feeds: list[Feed] = []
    tasks: list[Task] = []
    deliveries: list[Delivery] = []
    cameras: list[str] = []
    for building, floors in FLOORS.items():
        for floor in range(1, floors + 1):
            here = f"{building}-{floor}"
            _environment(here, feeds, tasks, deliveries)
            _heart_rates(here, feeds, tasks, deliveries)
            if building == "A" or floor == 1:
                cameras.append(here)
                feeds.append(Feed(f"Video {here}", FRAMES_HZ, VIDEO_B_S / FRAMES_HZ, f"{here}-1"))
    motions = tuple(f"Motion {here}" for here in cameras)
    tasks += [
        Task(name, (f"Video {here}",), 1.0, 20_000.0, 100 * FRAMES_HZ)
        for name, here in zip(motions, cameras, strict=True)
    ]
    tasks.append(Task("Surveillance", motions, len(motions), 20_000.0, float(len(motions))))
    deliveries.append(Delivery("Surveillance", "server"))
    for here in cameras:
        if here.startswith("A"):
            tasks.append(Task(f"Face {here}", (f"Video {here}",), 0.2, 10_000.0, 1000 * FRAMES_HZ))
            deliveries.append(Delivery(f"Face {here}", "gateway"))
    return Scenario(network, Workload(tuple(feeds), tuple(tasks), tuple(deliveries)))


def _home() -> tuple[tuple[Broker, ...], tuple[Link, ...]]:
    brokers, links = [], []
    left = 0.0
    for building, floors in FLOORS.items():
        for floor in range(1, floors + 1):
            for room in range(1, ROOMS + 1):
                name = f"{building}-{floor}-{room}"
                brokers.append(Broker(name, THETA, x=left + room, y=float(floor)))
                if room > 1:
                    links.append(_wireless(f"{building}-{floor}-{room - 1}", name))
            if floor > 1:
                links.append(_wireless(f"{building}-{floor - 1}-1", f"{building}-{floor}-1"))
        left += ROOMS + 2
    links += [_wireless("A-1-1", "B1-1-1"), _wireless("B1-1-1", "B2-1-1")]
    brokers += [Broker("server", x=9.5, y=0.2), Broker("gateway", THETA, x=2.5, y=0.2)]
    links += [_wireless("B1-1-3", "server"), _wireless("A-1-2", "gateway")]
    return tuple(brokers), tuple(links)


def _wireless(a: str, b: str) -> Link:
    return Link(a, b, latency_s=0.005)


def _environment(here: str, feeds: list[Feed], tasks: list[Task], deliveries: list[Delivery]) -> None:
    sensors = [f"Environment {here}-{room}" for room in range(1, ROOMS + 1)]
    feeds += [
        Feed(name, 1 / 60, ENVIRONMENT_B_S * 60, f"{here}-{room}")
        for room, name in enumerate(sensors, start=1)
    ]
    tasks.append(Task(f"Average {here}", tuple(sensors), 1 / 60, 100.0, ROOMS / 60, window_b=ROOMS * 1_500.0))
    deliveries.append(Delivery(f"Average {here}", f"{here}-4"))


def _heart_rates(here: str, feeds: list[Feed], tasks: list[Task], deliveries: list[Delivery]) -> None:
    for room in (2, 3):
        name = f"{here}-{room}"
        feeds.append(Feed(f"Wearable {name}", 1.0, WEARABLE_B_S, name))
        tasks.append(
            Task(f"HeartRate {name}", (f"Wearable {name}",), 1 / 600, 100.0, 1.0, window_b=60 * 1_500.0)
        )
        deliveries.append(Delivery(f"HeartRate {name}", f"{here}-1"))


LOGICAL_NOTES = {
    "from the paper": "sources Stair, In-building, Mobile and Monitor; requests Stranger Notification, "
    "Members' Entrance Record and Anomaly; events Video, Motion, Body, Face, FaceLabel and ActLabel; a "
    "server that is abundant in resources and that everybody sees from radius 4 on; no limits on links",
    "chosen": "the figure is not in the text. Stair - In-building - Hall - Yard - server, Mobile at the "
    "Yard, Monitor at the Hall; Video from Stair and In-building, Motion from Mobile and Monitor, Record "
    "and Anomaly wanted at Monitor, Stranger at Mobile; a broker can do 400 events a second, the server "
    "any number. Body and Face are made of Video (1/2 and 1/4 of its events), FaceLabel of Face and Body "
    "(1/4), ActLabel of Body and Motion",
}


def logical_test(rate_hz: float = 100.0) -> Scenario:
    """Make the logical test of place-and-play, section 6.2, for a rate of 100 to 300 in the paper."""
    names = ("Stair", "In-building", "Hall", "Yard", "Mobile", "Monitor")
    spots = ((0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (2, 1))
    brokers = (
        *(Broker(name, 400.0, x=float(x), y=float(y)) for name, (x, y) in zip(names, spots, strict=True)),
        Broker("server", x=4.0, y=0.0),
    )
    pairs = (
        ("Stair", "In-building"), ("In-building", "Hall"), ("Hall", "Yard"), ("Yard", "server"),
        ("Yard", "Mobile"), ("Hall", "Monitor"),
    )  # fmt: skip
    network = Network(
        brokers, tuple(_wireless(*pair) for pair in pairs), name="logical test", notes=LOGICAL_NOTES
    )
    videos = ("Video Stair", "Video In-building")
    feeds = (
        Feed(videos[0], rate_hz, 10.0, "Stair"),
        Feed(videos[1], rate_hz, 10.0, "In-building"),
        Feed("Motion Mobile", rate_hz, 1.0, "Mobile"),
        Feed("Motion Monitor", rate_hz, 1.0, "Monitor"),
    )
    each = 2 * rate_hz
    tasks = (
        Task("Body", videos, each / 2, 4.0, each),
        Task("Face", videos, each / 4, 4.0, each),
        Task("FaceLabel", ("Face", "Body"), each / 16, 1.0, each / 4),
        Task("ActLabel", ("Body", "Motion Mobile", "Motion Monitor"), each / 8, 1.0, 1.5 * each),
        Task("Stranger", ("FaceLabel",), each / 100, 1.0, each / 16),
        Task("Record", ("FaceLabel",), each / 32, 1.0, each / 16),
        Task("Anomaly", ("ActLabel", "FaceLabel"), each / 100, 1.0, each / 8),
    )
    deliveries = (
        Delivery("Stranger", "Mobile"),
        Delivery("Record", "Monitor"),
        Delivery("Anomaly", "Monitor"),
    )
    return Scenario(network, Workload(feeds, tasks, deliveries))
