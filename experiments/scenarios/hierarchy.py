"""Cars in a town under a hierarchy of brokers: where tasks run, with the real engine on real events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.figures import figures
from experiments.mobility import positions, street_grid
from experiments.networks import hierarchy
from experiments.query_run import QuerySettings, run_query
from experiments.scenarios.registry import Progress, scenario
from whimbrel.graph.query import Query
from whimbrel.plan.network import Box, Consumer, Network
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.results import Plot, Results

QUERY = """
define Slow(speed, place)
  detect Position(speed < 3) as p
  group by source
  assign speed = p.speed, place = floor(p.x / 500)
define Standing(place)
  detect Slow as a then Slow as b within 10 s
  group by source
  assign place = b.place
define Jam(cars)
  every 30 s
  detect Standing
  group by place
  assign cars = distinct(Standing.source)
"""


def town(box: Box, depth: int, latency_s: float = 0.01) -> Network:
    """Make a cloud with a control room, and levels of brokers below it, four below each."""
    bare = hierarchy(
        [(2**n, 2**n) for n in range(1, depth + 1)],
        box,
        capacity=math.inf,
        latency_s=latency_s,
        bandwidth_b_s=1e6,
    )
    return replace(bare, consumers=(Consumer("control room", "cloud"),))


@scenario(
    "hierarchy",
    "jams among cars in a town, with all tasks in the cloud, at a middle broker or at a leaf (real engine)",
    cars=(40, "how many cars"),
    seconds=(120.0, "how long they drive"),
    depth=(2, "levels of brokers below the cloud"),
    latency_ms=(10.0, "latency of each link"),
)
def run_hierarchy(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare places for the tasks of one query; detections are the same for all of them."""
    from whimbrel.lang.wbl import compile_text

    box = (0.0, 0.0, 2000.0, 2000.0)
    random = np.random.default_rng(parameters["seed"])
    moving = street_grid(
        parameters["cars"], box, until_s=parameters["seconds"], speed_m_s=(1.0, 14.0), random=random
    )
    events = positions(moving, until_s=parameters["seconds"])
    network = town(box, parameters["depth"], latency_s=parameters["latency_ms"] / 1000)
    query = compile_text(QUERY)
    places = ["cloud", *dict.fromkeys(("fog-1-0-0", network.brokers[-1].name))]
    rows = []
    for number, place in enumerate(places):
        progress(number, len(places))
        found = _run(query, events, network, place, parameters["seed"])
        rows.append({"tasks at": place, **_figures(found)})
    same = len({row["detections"] for row in rows}) == 1
    return Results(
        rows,
        (Plot("bdp", "Bytes on their way, by where tasks run", "tasks at", "bdp", kind="bar"),),
        {"detections are the same everywhere": same},
    )


def _run(query: Query, events: Any, network: Network, place: str, seed: int) -> Outcome:
    placement = dict.fromkeys(("Slow", "Standing", "Jam"), place)
    return run_query(query, events, network, placement, settings=QuerySettings(seed=seed, step_s=1.0))


def _figures(found: Outcome) -> dict[str, Any]:
    summary = figures(found)
    return {
        "detections": summary["detections"],
        "bytes": summary["bytes"],
        "bdp": summary["bdp"],
        "messages": summary["messages"],
        "median delay s": summary["delay_s"]["median"],
        "dropped": sum(summary["dropped"].values()),
    }
