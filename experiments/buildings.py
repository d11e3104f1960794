"""Networks in buildings, with what has to run on them: the experiments of place-and-play, section 6.

Where the paper does not print a figure or a number, the choice that was made instead is in `Network.notes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

PACKET_B = 1_500.0
"""Bytes of a packet: all that the paper prints of flows are whole packets of this size."""
THETA = 25_000.0
"""What a broker of the nursing home can do: 25 K."""
ENVIRONMENT_B_S, WEARABLE_B_S, VIDEO_B_S = 1_500 / 60, 1_500.0, 6.75e6
RADIO_B_S = 54e6 / 8
"""The fastest wireless LAN of the paper's time, 54 Mbit/s: just what one of its videos needs."""
FRAMES_HZ = 20.0
BUILDINGS = ("A", "B1", "B2")
FLOORS, ROOMS = (3, 3, 2), (3, 4, 4)
LEFT = 0.1
HOME_NOTES = {
    "from the paper": "buildings A, B1, B2; 1.5 KB/min, 1.5 KB/s and 6.75 MB/s; four requests; theta = 25 K",
    "worked out": "31 brokers, since a flood of one hop takes 31 packets. Of many layouts this one was taken "
    "because floods of 11 and 9 hops take 955 and 829 packets on it, nearly the printed 958 and 827. "
    "The videos to the server cross 19 links, 85,500 packets in a second; printed are 84,501, of some time",
    "chosen": "A has three floors of three rooms, B1 three and B2 two of four rooms, in a row each; stairs "
    "at room 2; A-1-1, B1-1-4 and B2-1-1 are linked; the server is behind A-1-2, the gateway behind A-1-3. "
    "So the farthest brokers are 11 hops apart and the server is at most 9 hops away, as printed. A "
    "sensor in each room, wearables in rooms 2 and 3, a camera in room 1 of every floor of A and of the "
    "ground floors of B1 and B2. An air-flow controller in the last and a nurse tablet in the first room of "
    "every floor",
    "work": "units a second: 1 an event for averages and patterns, 100 a frame for motion, 1000 a frame "
    "for faces (20 frames a second: a room can look for the faces of one camera)",
    "sizes": "surveillance leaves a tenth of a video: all its frames, each as a JPEG of a tenth of the size; "
    "nothing is left out, so whoever leaves still frames out, or compresses over frames, saves more. "
    "One face of 10 KB in 5 s; an average of 100 bytes a minute; a pattern of 100 bytes in 10 min",
}


@dataclass(frozen=True)
class Site:
    """A network, and what has to run on it."""

    network: Network
    workload: Workload


# -- the nursing home ---------------------------------------------------------------------------------------


def nursing_home(
    floors: int | Sequence[int] = FLOORS,
    rooms: int | Sequence[int] = ROOMS,
    *,
    left: float = LEFT,
    capacity: float = THETA,
    bandwidth_b_s: float = math.inf,
    loss: float = 0.0,
) -> Site:
    """Make the smart nursing home of place-and-play, section 6.3; what was chosen is in the notes.

    Requests: surveillance, to the server; faces in building A, to the gateway; the mean climate of each
    floor, to its air-flow controller; heart rates that look wrong, to a nurse on the floor.

    Parameters
    ----------
    floors, rooms
        Of each building, or of all; rooms are those of a floor.
    left
        The share of a video that surveillance sends on.
    capacity
        What each broker can do; the server can do anything.
    bandwidth_b_s, loss
        Of each link.
    """
    high, wide = _each(floors, "floors"), _each(rooms, "rooms")
    sizes = dict(zip(BUILDINGS, zip(high, wide, strict=True), strict=True))
    brokers, links = _home(sizes, capacity, bandwidth_b_s, loss)
    network = Network(brokers, links, name="nursing home", notes=HOME_NOTES)
    return Site(network, _requests(sizes, left))


def _each(given: int | Sequence[int], what: str) -> tuple[int, ...]:
    """Return a number for each building."""
    numbers = (given,) if isinstance(given, int) else tuple(int(number) for number in given)
    numbers = numbers * len(BUILDINGS) if len(numbers) == 1 else numbers
    if len(numbers) != len(BUILDINGS) or min(numbers) < 1:
        raise NetworkError(
            f"{what} of the nursing home: {given}", "give one number above 0, or one for each of A, B1 and B2"
        )
    return numbers


def _home(
    sizes: dict[str, tuple[int, int]], capacity: float, bandwidth_b_s: float, loss: float
) -> tuple[tuple[Broker, ...], tuple[Link, ...]]:
    brokers: list[Broker] = []
    ends: list[tuple[str, str]] = []
    left = 0.0
    for building, (floors, rooms) in sizes.items():
        stairs = min(2, rooms)
        for floor in range(1, floors + 1):
            for room in range(1, rooms + 1):
                name = f"{building}-{floor}-{room}"
                brokers.append(Broker(name, capacity, x=left + room, y=float(floor)))
                if room > 1:
                    ends.append((f"{building}-{floor}-{room - 1}", name))
            if floor > 1:
                ends.append((f"{building}-{floor - 1}-{stairs}", f"{building}-{floor}-{stairs}"))
        left += rooms + 2
    hall, passage = f"A-1-{min(2, sizes['A'][1])}", f"B1-1-{sizes['B1'][1]}"
    brokers += [Broker("server", x=1.5, y=0.2), Broker("gateway", capacity, x=3.5, y=0.2)]
    ends += [("A-1-1", passage), (passage, "B2-1-1")]
    ends += [(hall, "server"), (f"A-1-{sizes['A'][1]}", "gateway")]
    links = tuple(Link(a, b, bandwidth_b_s, latency_s=0.005, loss=loss) for a, b in ends)
    return tuple(brokers), links


def _requests(sizes: dict[str, tuple[int, int]], left: float) -> Workload:
    feeds: list[Feed] = []
    tasks: list[Task] = []
    deliveries: list[Delivery] = []
    cameras: list[str] = []
    for building, (floors, rooms) in sizes.items():
        for floor in range(1, floors + 1):
            here = f"{building}-{floor}"
            _environment(here, rooms, feeds, tasks, deliveries)
            _heart_rates(here, rooms, feeds, tasks, deliveries)
            if building == "A" or floor == 1:
                cameras.append(here)
                feeds.append(Feed(f"Video {here}", FRAMES_HZ, VIDEO_B_S / FRAMES_HZ, f"{here}-1"))
    clip_b = left * VIDEO_B_S / FRAMES_HZ
    for here in cameras:
        tasks.append(Task(f"Motion {here}", (f"Video {here}",), FRAMES_HZ, clip_b, 100 * FRAMES_HZ))
        deliveries.append(Delivery(f"Motion {here}", "server"))
        if here.startswith("A"):
            tasks.append(Task(f"Face {here}", (f"Video {here}",), 0.2, 10_000.0, 1000 * FRAMES_HZ))
            deliveries.append(Delivery(f"Face {here}", "gateway"))
    return Workload(tuple(feeds), tuple(tasks), tuple(deliveries))


def _environment(
    here: str, rooms: int, feeds: list[Feed], tasks: list[Task], deliveries: list[Delivery]
) -> None:
    sensors = [f"Environment {here}-{room}" for room in range(1, rooms + 1)]
    feeds += [
        Feed(name, 1 / 60, ENVIRONMENT_B_S * 60, f"{here}-{room}")
        for room, name in enumerate(sensors, start=1)
    ]
    tasks.append(Task(f"Average {here}", tuple(sensors), 1 / 60, 100.0, rooms / 60, window_b=rooms * 1_500.0))
    deliveries.append(Delivery(f"Average {here}", f"{here}-{rooms}"))


def _heart_rates(
    here: str, rooms: int, feeds: list[Feed], tasks: list[Task], deliveries: list[Delivery]
) -> None:
    for room in range(2, min(3, rooms) + 1):
        name = f"{here}-{room}"
        feeds.append(Feed(f"Wearable {name}", 1.0, WEARABLE_B_S, name))
        tasks.append(
            Task(f"HeartRate {name}", (f"Wearable {name}",), 1 / 600, 100.0, 1.0, window_b=60 * 1_500.0)
        )
        deliveries.append(Delivery(f"HeartRate {name}", f"{here}-1"))


# -- the logical test ---------------------------------------------------------------------------------------

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


def logical_test(every: float = 100.0) -> Site:
    """Make the logical test of place-and-play, section 6.2, for what the paper calls a rate of 100 to 300.

    The volumes that are printed fall while that rate grows: it must be a time between events. Here a source
    sends 10,000 / `every` events a second.
    """
    rate_hz = 10_000.0 / every
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
        brokers,
        tuple(Link(*pair, latency_s=0.005) for pair in pairs),
        name="logical test",
        notes=LOGICAL_NOTES,
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
    return Site(network, Workload(feeds, tasks, deliveries))
