"""Mobile queries in traffic: the experiments of the thesis on mobility-aware CEP, section 3.5.2.

What is streamed to followed vehicles, against interests deployed everywhere; what conditions for switches
save and cost; and where to begin to replay. Prediction is in `mobile_prediction.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.mobile.event_index import EventIndex, Floats, Ints
from experiments.mobile.following import (
    WARM_UP_S,
    Followed,
    Interests,
    Lasting,
    Marks,
    every,
    follow,
    moved,
    traffic_of,
)
from experiments.mobile.traffic import TOWN, Traffic, accident_events, speed_events, video_events
from experiments.published import Published, PublishedPlot
from experiments.scenarios.registry import Progress, Value, scenario
from whimbrel.graph.mobile import BoxInterest, Quality, distance_for_quality
from whimbrel.sim.results import Results

COMMON: dict[str, tuple[Value, str]] = {
    "traffic": ("sumo", "who drives: sumo, or streets, a plain grid that needs nothing installed"),
    "vehicles": (5_000, "vehicles"),
    "seconds": (600, "simulated seconds"),
    "followed": (20, "vehicles that are followed in each run"),
    "runs": (3, "runs with other trajectories"),
}
THESIS = "thesis 3.5.2"

EVENTS: dict[str, Callable[[Traffic], pa.Table]] = {
    "accident": accident_events,
    "video": video_events,
    "speed": speed_events,
}


@scenario(
    "mobile-predeployed",
    "events streamed to followed vehicles, against interests deployed everywhere in the town, by their size",
    **COMMON,
    edges=((50.0, 100.0, 200.0, 300.0, 400.0, 500.0), "edges of the square interests, in metres"),
    lifetime_s=(10, "how much history an interest brings, in seconds"),
    deviation_m=(100.0, "how far apart the deployed interests are"),
)
def run_predeployed(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Count what one query streams, and what as many interests as the town needs stream."""
    found: dict[tuple[str, float, str], list[float]] = {}
    deployed: dict[tuple[str, float], list[float]] = {}
    for run in range(parameters["runs"]):
        traffic = traffic_of(parameters, run)
        followed = follow(traffic, parameters["followed"], run)
        for name in ("accident", "video"):
            events = EventIndex.of(EVENTS[name](traffic))
            for edge in parameters["edges"]:
                interests = Interests(events, followed, edge, parameters["lifetime_s"])
                live = events.count(followed.boxes(edge, 0, 1)).sum()
                everywhere = _deployed(events, edge, parameters["deviation_m"])
                deployed.setdefault((name, edge), []).append(everywhere)
                for way, history in (
                    ("all history", interests.history()),
                    ("new history", interests.new_history()),
                ):
                    streamed = float((history.sum() + live) / len(followed))
                    found.setdefault((name, edge, way), []).append(streamed)
        progress(run + 1, parameters["runs"])
    rows = [
        _predeployed_row(*key, float(np.mean(each)), float(np.mean(deployed[key[:2]])))
        for key, each in found.items()
    ]
    plots = (
        PublishedPlot(
            "share", "Streamed to one followed vehicle, as a share of interests everywhere", "edge", "share",
            by="what", logarithmic=True, published=(Published("at most", 0.01, f"{THESIS}, 3.5.4"),),
        ),
        PublishedPlot(
            "break-even", "Followed vehicles that stream as much as interests everywhere",
            "edge", "break even", by="what", logarithmic=True,
        ),
    )  # fmt: skip
    return Results(rows, plots)


def _deployed(events: EventIndex, edge: float, apart: float) -> float:
    """Count how many events a second interests on a grid over the town stream, each into all that hold it."""
    among = np.ones(len(events), np.int64)
    for place, size in zip((events.x, events.y), TOWN, strict=True):
        first = np.maximum(np.ceil((place - edge / 2) / apart), 0)
        last = np.minimum(np.floor((place + edge / 2) / apart), np.floor(size / apart))
        among *= np.maximum(last - first + 1, 0).astype(np.int64)
    measured = events.second >= WARM_UP_S
    return float(among[measured].sum() / (events.second.max() + 1 - WARM_UP_S))


def _predeployed_row(name: str, edge: float, way: str, streamed: float, deployed: float) -> dict[str, Any]:
    return {
        "events": name,
        "edge": edge,
        "way": way,
        "what": f"{name}, {way}",
        "streamed a second": streamed,
        "deployed a second": deployed,
        "share": streamed / deployed,
        "break even": deployed / streamed,
    }


@scenario(
    "mobile-conditions",
    "events and quality by the condition for switches: always, distance, time, quality, and the optimum",
    **COMMON,
    edges=((100.0, 200.0, 300.0, 400.0, 500.0), "edges of the square interests, in metres"),
    lifetime_s=(10, "how much history an interest brings, and how far back quality is counted, in seconds"),
    times_s=((2.0, 5.0, 10.0), "conditions on time"),
    quality=(0.9, "precision and recall asked for"),
)
def run_conditions(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Measure what is streamed, and how well interests stand for those that would be at the vehicle."""
    found: dict[tuple[float, str], list[tuple[float, ...]]] = {}
    edges = parameters["edges"]
    for run in range(parameters["runs"]):
        traffic = traffic_of(parameters, run)
        followed = follow(traffic, parameters["followed"], run)
        events = EventIndex.of(accident_events(traffic))
        for number, edge in enumerate(edges):
            interests = Interests(events, followed, edge, parameters["lifetime_s"])
            always = interests.streamed(np.ones(len(followed), bool))
            for name, switches in _conditions(interests, parameters).items():
                precision, recall = interests.quality(switches)
                good = (precision > parameters["quality"]) & (recall > parameters["quality"])
                found.setdefault((edge, name), []).append(
                    (
                        interests.streamed(switches) / always,
                        float(switches.mean()),
                        float(precision.mean()),
                        float(recall.mean()),
                        float(good.mean()),
                    )
                )
            progress(run * len(edges) + number + 1, parameters["runs"] * len(edges))
    columns = ("share of events", "switches an update", "precision", "recall", "updates above the quality")
    rows: list[dict[str, Any]] = [
        {"edge": edge, "condition": name} | dict(zip(columns, np.mean(each, axis=0).tolist(), strict=True))
        for (edge, name), each in found.items()
    ]
    plots = (
        PublishedPlot(
            "events", "Events streamed, as a share of a switch at each update", "edge", "share of events",
            by="condition", published=(Published("quality", 0.5, f"{THESIS}, 3.5.4"),),
        ),
        PublishedPlot(
            "precision", "Precision at each update, on average", "edge", "precision",
            by="condition", published=(Published("quality, at least", 0.9, f"{THESIS}, 3.5.4"),),
        ),
    )  # fmt: skip
    return Results(rows, plots)


def _conditions(interests: Interests, parameters: Mapping[str, Any]) -> dict[str, Marks]:
    """Choose the updates that begin an interest, by each condition."""
    followed, edge, quality = interests.followed, interests.edge, parameters["quality"]
    square, threshold = BoxInterest(edge, edge), Quality(quality, quality)
    lasting = Lasting.of(interests, threshold, parameters["lifetime_s"])
    return {
        "always": np.ones(len(followed), bool),
        "distance, any direction": moved(followed, distance_for_quality(square, threshold)),
        "distance, along a side": moved(followed, distance_for_quality(square, threshold, degrees=0)),
        **{f"{seconds:g} s": every(followed, seconds) for seconds in parameters["times_s"]},
        "quality": lasting.greedy(followed.begins),
        "optimum": lasting.best(followed.begins, interests.history()),
    }


@scenario(
    "mobile-initialization",
    "what is found, and what is replayed in vain, by where a run begins",
    **COMMON,
    edge_m=(250.0, "edge of the square interests, in metres"),
    counts=((5.0, 10.0, 20.0, 50.0, 100.0), "events in the counting window"),
    restriction_s=(25, "length of the restriction window"),
    faster_m_s=(5.0, "speeds above this are averaged"),
    margin=(1.5, "how many average times the approach with a margin goes back"),
)
def run_initialization(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Average the last speeds, with a switch every second and no lifetime; compare initialization points."""
    totals: dict[tuple[float, str], Floats] = {}
    for run in range(parameters["runs"]):
        traffic = traffic_of(parameters, run)
        followed = follow(traffic, parameters["followed"], run)
        before, live, ages = _recent(traffic, followed, parameters)
        for count in parameters["counts"]:
            for name, replayed in _replayed(before, ages, int(count), followed, parameters).items():
                found = np.clip(live - np.maximum(count - 1 - replayed, 0), 0, live)
                in_vain = np.maximum(replayed - count + 1, 0)
                sums = np.array([found.sum(), in_vain.sum(), replayed.sum()], float)
                totals[count, name] = totals.get((count, name), np.zeros(3)) + sums
        progress(run + 1, parameters["runs"])
    rows: list[dict[str, Any]] = [
        {"count": count, "begins at": name} | _beside_basic(sums, totals[count, "restriction window"])
        for (count, name), sums in totals.items()
    ]
    plots = (
        PublishedPlot(
            "completeness", "What is found of what a run over the restriction window finds", "count", "found",
            by="begins at",
            published=(Published("average", 0.8, THESIS), Published("nowhere", 0.2, THESIS)),
        ),
        PublishedPlot(
            "overhead", "Averages made in vain, as a share of those over the restriction window",
            "count", "in vain", by="begins at", published=(Published("average, at most", 0.1, THESIS),),
        ),
    )  # fmt: skip
    return Results(rows, plots)


def _beside_basic(sums: Floats, basic: Floats) -> dict[str, float | None]:
    names = ("found", "in vain", "replayed")
    return {name: float(a / b) if b else None for name, a, b in zip(names, sums, basic, strict=True)}


def _recent(
    traffic: Traffic, followed: Followed, parameters: Mapping[str, Any]
) -> tuple[Ints, Ints, tuple[Ints, Floats]]:
    """Find the fast vehicles around each update: how many before and in its second, and how long ago.

    Vehicles report at a moment of their own in each second.
    """
    fast = np.flatnonzero(traffic.speed > parameters["faster_m_s"])
    events = EventIndex(traffic.second[fast], traffic.x[fast], traffic.y[fast])
    moment = np.random.default_rng(0).random(int(traffic.vehicle.max()) + 1)
    at = events.second + moment[traffic.vehicle[fast][events.rows]]
    edge = parameters["edge_m"]
    live = events.count(followed.boxes(edge, 0, 1))
    row, event = events.inside(followed.boxes(edge, parameters["restriction_s"]))
    age = followed.second[row] - at[event]
    order = np.lexsort((age, row))
    row, age = row[order], age[order]
    return np.bincount(row, minlength=len(followed)), live, (row, age)


def _replayed(
    before: Ints, ages: tuple[Ints, Floats], count: int, followed: Followed, parameters: Mapping[str, Any]
) -> dict[str, Ints]:
    """Count the events that are replayed at each update, by where the run begins."""
    row, age = ages
    restriction = parameters["restriction_s"]
    # What the operator has seen in the interest before: the mean time between two of its events.
    known = before[np.maximum(np.arange(len(before)) - 1, 0)]
    gap = np.where(known > 0, restriction / np.maximum(known, 1), restriction)

    def younger(than: Floats) -> Ints:
        return np.bincount(row[age <= than[row]], minlength=len(followed))

    average = np.minimum(count * gap, restriction)
    return {
        "restriction window": before,
        "average": younger(average),
        f"{parameters['margin']:g} averages": younger(
            np.minimum(parameters["margin"] * average, restriction)
        ),
        "count in the store": np.minimum(before, count - 1),
        "nowhere": np.zeros(len(before), np.int64),
    }
