"""Networks in buildings, with what has to run on them: the experiments of place-and-play, section 6.

Where the paper does not print a figure or a number, the choice that was made instead is in `Network.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


@dataclass(frozen=True)
class Scenario:
    """A network, and what has to run on it."""

    network: Network
    workload: Workload


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
