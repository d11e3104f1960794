"""Six brokers in a laboratory, run by the real engine: the deployment of place-and-play, section 6.4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.query_run import QuerySettings, run_query
from experiments.scenarios.registry import Progress, scenario
from whimbrel.engine.bounded import run
from whimbrel.graph.functions import function
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.plan.network import Broker, Consumer, Link, Network
from whimbrel.plan.routes import by_hops
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.messages import HEADER_B
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.results import Plot, Results

BROKERS = ("1", "2", "3", "4", "5", "6")
LINKS = (("1", "2"), ("1", "3"), ("3", "4"), ("4", "5"), ("4", "6"))
"""Chosen: the picture is not in the text. Broker 6, with the camera, reaches the rest through 4."""
SENSORS = {"1": 2, "2": 2, "3": 3, "4": 3, "5": 3, "6": 3}
ROOM = {"1": "hall", "2": "hall", "3": "office", "4": "lab", "5": "lab", "6": "studio"}
CLIMATE = {"hall": (18.0, 40.0), "office": (27.0, 40.0), "lab": (23.0, 54.0), "studio": (22.0, 27.0)}
"""What sensors tell on average: degrees and per cent of humidity, some of them beyond the limits."""
DOORS = (
    ("hall", "office", "1"), ("hall", "office", "3"), ("hall", "lab", "2"), ("hall", "lab", "4"),
    ("office", "lab", "3"), ("office", "lab", "5"), ("lab", "studio", "4"), ("lab", "studio", "6"),
)  # fmt: skip
"""Eight tracking sensors: the rooms on both sides, and the broker."""
FRAMES_HZ, FRAME_B, EVENT_B = 20, 216 * 144, 74.0
"""Events of 74 bytes: two sensors make 2,950 bytes of base cost in ten minutes, as printed for broker 2."""
WINDOW_S = 600.0
DEFINITIONS = ("MoveIn", "MoveOut", "PeopleCount2Mins", "AvgTemp5Mins", "AvgHumid5Mins")
SUBSCRIPTIONS = """
define MoveIn(location, timestamp)
case 0: detect Tracking(direction = 0)
  assign location = Tracking.left, timestamp = Tracking.timestamp consuming Tracking
case 1: detect Tracking(direction = 1)
  assign location = Tracking.right, timestamp = Tracking.timestamp consuming Tracking

define MoveOut(location, timestamp)
case 0: detect Tracking(direction = 0)
  assign location = Tracking.right, timestamp = Tracking.timestamp consuming Tracking
case 1: detect Tracking(direction = 1)
  assign location = Tracking.left, timestamp = Tracking.timestamp consuming Tracking

define PeopleCount2Mins(location, count, timestamp) aggr every 2 mins
< pre > detect outer MoveIn and outer MoveOut
  assign location=group.location, count=Count(MoveIn)-Count(MoveOut), timestamp=Max(MoveOut.timestamp)
< post > where location=group.location, count=Sum(count), timestamp=Max(timestamp)
group by location

define AvgTemp5Mins(location, avg, timestamp) aggr every 5 mins
< pre > detect Temp
  assign location=group.location, sum=Sum(Temp.val), count=Count(Temp), timestamp=Max(Temp.timestamp)
< post > where location=group.location, avg=Sum(sum)/Sum(count), timestamp=Max(timestamp)
group by location

define AvgHumid5Mins(location, avg, timestamp) aggr every 5 mins
< pre > detect Humid
  assign location=group.location, sum=Sum(Humid.val), count=Count(Humid), timestamp=Max(Humid.timestamp)
< post > where location=group.location, avg=Sum(sum)/Sum(count), timestamp=Max(timestamp)
group by location

Subscription seq 1 from User1 to AirController
detect last PeopleCount2Mins(count > 0) as PeopleCount and
       AvgTemp5Mins(avg < 20 or avg > 25) as AvgTempOut within 5 mins from PeopleCount
assign avg=AvgTempOut.avg, location=group.location, timestamp=PeopleCount.timestamp
consuming AvgTempOut
group by location

Subscription seq 2 from User1 to AirController
detect last PeopleCount2Mins(count > 0) as PeopleCount and
       AvgHumid5Mins(avg < 30 or avg > 50) as AvgHumidOut within 5 mins from PeopleCount
assign avg=AvgHumidOut.avg, location=group.location, timestamp=PeopleCount.timestamp
consuming AvgHumidOut
group by location

Subscription seq 3 from User1 to Gateway
detect MoveIn and Video within 5 mins from MoveIn
assign face=FaceDetect(Video), location=group.location, timestamp=MoveIn.timestamp
consuming Video
group by location
"""
ASKED = ("User1-1", "User1-2", "User1-3")


def face_detect(video: Any) -> str:
    """Stand for the recognition: frames hold a name instead of a picture."""
    return str(video["frame"]).capitalize()


def laboratory() -> Network:
    """Make the six brokers: each serves its part of the room; both consumers are at broker 1."""
    brokers = tuple(
        Broker(name, area=(float(n), 0.0, n + 1.0, 1.0), x=n + 0.5, y=0.5) for n, name in enumerate(BROKERS)
    )
    links = tuple(Link(a, b, 100_000.0 * 20, 0.005) for a, b in LINKS)
    consumers = (Consumer("AirController", "1", ASKED[:2]), Consumer("Gateway", "1", ASKED[2:]))
    return Network(brokers, links, (), consumers, name="laboratory")


def sensed(minutes: float, seed: int) -> list[dict[str, Any]]:
    """Make up what sensors tell: climate every minute, who goes through doors, seconds of video."""
    rng = np.random.default_rng(seed)
    end_s, rows = minutes * 60, []
    at = {name: n + 0.5 for n, name in enumerate(BROKERS)}
    for broker, count in SENSORS.items():
        for number in range(count):
            phase = float(rng.uniform(0, 60))
            for time_s in np.arange(phase, end_s, 60.0):
                for kind, mean in zip(("Temp", "Humid"), CLIMATE[ROOM[broker]], strict=True):
                    rows.append(
                        _event(kind, f"{kind}-{broker}-{number}", time_s, at[broker], location=ROOM[broker],
                               val=round(float(rng.normal(mean, 2.0)), 2))
                    )  # fmt: skip
    for time_s in np.sort(rng.uniform(0, end_s, int(2 * minutes))):
        left, right, broker = DOORS[int(rng.integers(len(DOORS)))]
        rows.append(
            _event("Tracking", f"door-{broker}", time_s, at[broker], left=left, right=right,
                   direction=int(rng.integers(2)))
        )  # fmt: skip
    for second in range(int(end_s)):
        frame = ("anna", "bert", "carl")[second // 40 % 3]
        rows.append(_event("Video", "camera", second + 0.5, at["6"], location=ROOM["6"], frame=frame))
    rows.sort(key=lambda row: (row["time"], row["source"], row["type"]))
    return [{"id": f"e{n}", **row} for n, row in enumerate(rows)]


def _event(kind: str, source: str, time_s: float, x: float, **about: Any) -> dict[str, Any]:
    return {"type": kind, "time": round(float(time_s), 3), "source": source, "x": x, "y": 0.5, **about}


def requested(events: list[dict[str, Any]], found: Counter[str], minutes: float) -> Workload:
    """Describe the requests for a planner, with the rates of the events and of what was detected in them."""
    seconds, rooms = minutes * 60, len(set(ROOM.values()))
    counts = Counter((row["type"], BROKERS[int(row["x"])]) for row in events)
    feeds = [
        Feed(f"{kind} {broker}", count / seconds, SIZES.get(kind, EVENT_B) + HEADER_B, broker)
        for (kind, broker), count in sorted(counts.items())
    ]

    def of(kind: str) -> tuple[str, ...]:
        return tuple(feed.name for feed in feeds if feed.name.startswith(kind))

    moves = sum(feed.rate_hz for feed in feeds if feed.name.startswith("Tracking"))
    size = EVENT_B + HEADER_B
    tasks = [
        Task("MoveIn", of("Tracking"), moves, size),
        Task("MoveOut", of("Tracking"), moves, size),
        Task("PeopleCount2Mins", ("MoveIn", "MoveOut"), rooms / 120, size),
        Task("AvgTemp5Mins", of("Temp"), rooms / 300, size),
        Task("AvgHumid5Mins", of("Humid"), rooms / 300, size),
        Task("User1-1", ("PeopleCount2Mins", "AvgTemp5Mins"), found["User1-1"] / seconds, size),
        Task("User1-2", ("PeopleCount2Mins", "AvgHumid5Mins"), found["User1-2"] / seconds, size),
        Task("User1-3", ("MoveIn", *of("Video")), found["User1-3"] / seconds, size),
    ]
    return Workload(tuple(feeds), tuple(tasks), tuple(Delivery(name, "1") for name in ASKED))


SIZES = {
    **dict.fromkeys(("Temp", "Humid", "Tracking", *DEFINITIONS, *ASKED), EVENT_B),
    "Video": float(FRAMES_HZ * FRAME_B),
}


@scenario(
    "deployment",
    "six brokers with sensors and a camera, real engine: hosts by flow against all at the destination",
    minutes=(120.0, "how long it runs"),
    beat_s=(60.0, "how often brokers tell that time goes on"),
)
def run_deployment(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Run the three subscriptions both ways; compare what brokers send, and detections with one process."""
    minutes = parameters["minutes"]
    query = compile_text(
        SUBSCRIPTIONS, functions=[function(name="FaceDetect", returns="string")(face_detect)]
    )
    assert isinstance(query, Query)
    network, events = laboratory(), sensed(minutes, parameters["seed"])
    alone = run(query, events).detections
    found: Counter[str] = Counter(alone.column("type").to_pylist())
    workload = requested(events, found, minutes)
    ways = {
        "all to the destination": dict.fromkeys(workload.task, "1"),
        "by flow": place_by_flow(workload, network),
    }
    settings = QuerySettings(
        seed=parameters["seed"], weight=by_hops, sizes=SIZES, heartbeat_s=parameters["beat_s"],
        filters_at_source=False,
    )  # fmt: skip
    outcomes: dict[str, Outcome] = {}
    for name, hosts in ways.items():
        progress(len(outcomes), len(ways))
        outcomes[name] = run_query(query, events, network, hosts, settings=settings)
    windows = minutes * 60 / WINDOW_S
    rows: list[dict[str, Any]] = []
    for broker in BROKERS:
        sent = {name: _sent(outcome, broker) / windows for name, outcome in outcomes.items()}
        base = sent["all to the destination"]
        rows += [
            {
                "broker": broker,
                "way": name,
                "B/window": sent[name],
                "change": sent[name] / base - 1 if base else None,
                "tasks": ", ".join(task for task, at in hosts.items() if at == broker),
            }
            for name, hosts in ways.items()
        ]
    whole = {name: outcome.traffic.whole.bytes for name, outcome in outcomes.items()}
    notes = {
        "detections are those of one process": all(
            _ids(outcome.detections.values()) == _ids([alone]) for outcome in outcomes.values()
        ),
        "detections": dict(sorted(found.items())),
        "times less in all": whole["all to the destination"] / whole["by flow"],
    }
    plot = Plot("cost", "Bytes that each broker sends in ten minutes", "broker", "B/window", by="way",
                kind="bar", logarithmic=True)  # fmt: skip
    return Results(rows, (plot,), notes)


def _ids(tables: Iterable[pa.Table]) -> list[str]:
    return sorted(name for table in tables for name in table.column("id").to_pylist())


def _sent(outcome: Outcome, broker: str) -> float:
    """Sum up the bytes that a broker put on links."""
    return sum(used.bytes for (start, _), used in outcome.traffic.by_link.items() if start == broker)
