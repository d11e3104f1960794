"""Migration under mobile queries: a video friend finder, and accidents near a consumer (the thesis, 4.6).

The interest of a query goes along with its consumer. It is a square; the events of each quarter of it reach
the leaf broker that serves the middle of the quarter. Operators begin at the leaf of the consumer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.scenarios.driving import Hosts, Town
from experiments.scenarios.migcep import COMMON, Way, carry_out, greedily, town_of
from experiments.scenarios.registry import Progress, Value, scenario
from whimbrel.errors import SimulationError
from whimbrel.plan.migration import MigrationProblem
from whimbrel.plan.migration.policies import POLICIES
from whimbrel.plan.migration.replanning import replan_with_predictions
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.results import Plot, Results

INTEREST_M = 400.0
"""The edge of the interest."""
SLOW_B_S = 1.5e6
"""Bandwidth of links: 100,000 kB take over a minute, as in the thesis."""
APPLICATIONS = ("video", "traffic")
_QUERY: dict[str, tuple[Value, str]] = {
    **COMMON,
    "brokers": ("flat", COMMON["brokers"][1]),
    "graphs": (3, "how many queries, each of a consumer of its own"),
    "seconds": (500.0, COMMON["seconds"][1]),
    "start": ("consumer", COMMON["start"][1]),
    "step_s": (2.0, "distance between time steps"),
    "ahead_s": (300.0, "how far plans look ahead"),
    "predict": ("linear", "how the places of a consumer are predicted: linear or learned"),
}


def query_of(
    application: str, parts: tuple[str, ...], consumer: str, state_b: float, event_b: float
) -> Workload:
    """Build the operator graph of an application; one leaf operator has fixed state.

    `video`: a frame of `event_b` bytes a second from each quarter; two operators pass on the tenth that shows
    a face, one tells which show a friend. `traffic`: five events of `event_b` bytes a second about speed from
    each quarter, and five about lanes; one operator looks for drops in speed, one for many changes of lanes,
    and one for accidents in both.
    """
    if application == "video":
        kinds = (("faces a", "frames", parts[:2], 1.0), ("faces b", "frames", parts[2:], 1.0))
        given, top = (0.2, event_b), Task("friends", ("faces a", "faces b"), 0.2, event_b)
    else:
        kinds = (("speed drops", "speed", parts, 5.0), ("lane changes", "lanes", parts, 5.0))
        given, top = (0.5, 50.0), Task("accidents", ("speed drops", "lane changes"), 0.1, 50.0)
    feeds = [Feed(f"{what} of {part}", rate, event_b, part) for _, what, some, rate in kinds for part in some]
    leaves = [
        Task(name, tuple(f"{what} of {part}" for part in some), *given, fixed_b=0.0 if n else state_b)
        for n, (name, what, some, _) in enumerate(kinds)
    ]
    return Workload(tuple(feeds), (*leaves, top), (Delivery(top.name, consumer),))


class _Queries:
    """A town with consumers, and the ways to follow them."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.town: Town = town_of(parameters, parameters["step_s"], bandwidth_b_s=SLOW_B_S)
        quarter = INTEREST_M / 4
        offsets = [(x, y) for x in (-quarter, quarter) for y in (-quarter, quarter)]
        self.consumers = [group[0] for group in self.town.groups(parameters["graphs"], 1)]
        self.parts = [self.town.go_along(name, offsets) for name in self.consumers]
        known = self.town.predictors([*self.consumers, *(name for some in self.parts for name in some)])
        ways = {"linear": known.straight_on, "learned": known.as_others}
        if parameters["predict"] not in ways:
            raise SimulationError(f"predict={parameters['predict']!r} is neither linear nor learned")
        self.predictions = {"exact": known.known, "predicted": ways[parameters["predict"]]}

    def problems(self, application: str, state_b: float, event_b: float) -> list[MigrationProblem]:
        """Return the problem of each query."""
        found = []
        for number, (consumer, parts) in enumerate(zip(self.consumers, self.parts, strict=True)):
            workload = query_of(application, parts, consumer, state_b, event_b)
            start = self.town.start(workload, self.parameters["start"], number)
            found.append(self.town.problem(workload, start))
        return found

    def rows(self, application: str, state_b: float, event_b: float) -> list[dict[str, Any]]:
        """Follow greedily, and by plans with exact and with predicted places; figures relative to greedy."""
        some = self.problems(application, state_b, event_b)
        ways: dict[str, Way] = {"greedy": greedily}
        ahead = round(self.parameters["ahead_s"] / self.parameters["step_s"])
        for name, predict in self.predictions.items():

            def way(problem: MigrationProblem, predict: Any = predict) -> Hosts:
                return replan_with_predictions(problem, predict, 20.0, ahead, POLICIES["weighted sum"]).hosts

            ways[name] = way
        found = {name: carry_out(self.town, some, way) for name, way in ways.items()}
        greedy = found["greedy"]
        return [
            {
                "application": application,
                "state": f"{state_b / 1000:,.0f} kB",
                "event B": event_b,
                "line": f"{application}, {name}",
                **figures,
                "bdp of greedy": figures["B s"] / greedy["B s"] if greedy["B s"] else None,
                "delay of greedy": figures["delay ms"] / greedy["delay ms"] if greedy["delay ms"] else None,
            }
            for name, figures in found.items()
        ]


def _plots(x: str) -> tuple[Plot, ...]:
    return (
        Plot("bdp", "Byte seconds, as a share of greedy", x, "bdp of greedy", "line"),
        Plot("delay", "Mean delay of detections, as a share of greedy", x, "delay of greedy", "line"),
    )


@scenario(
    "migcep-queries-state",
    "mobile queries (video, traffic): byte seconds and delay against greedy, by the state (thesis, 4.12)",
    **_QUERY,
    applications=(APPLICATIONS, "video, traffic"),
    states_kb=((0.0, 100.0, 1_000.0, 10_000.0, 100_000.0), "sizes of the state"),
    video_b=(20_000.0, "bytes of a frame"),
    traffic_b=(50.0, "bytes of an event of a vehicle"),
)
def run_queries_state(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare with greedy over the size of the state."""
    queries, rows = _Queries(parameters), []
    pairs = [(name, state) for name in parameters["applications"] for state in parameters["states_kb"]]
    for number, (name, state) in enumerate(pairs):
        progress(number, len(pairs))
        rows += queries.rows(name, 1000 * state, parameters[f"{name}_b"])
    note = "planning saves more, the larger the state; the delay of greedy is lower (thesis, 4.6)"
    return Results(rows, _plots("state"), {"thesis": note})


@scenario(
    "migcep-queries-events",
    "mobile queries (traffic): byte seconds and delay against greedy, by the size of events (thesis, 4.13)",
    **_QUERY,
    events_b=((10.0, 25.0, 50.0, 75.0, 100.0), "bytes of an event"),
    state_kb=(100.0, "size of the state"),
)
def run_queries_events(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare with greedy over the size of events."""
    queries, rows = _Queries(parameters), []
    for number, event in enumerate(parameters["events_b"]):
        progress(number, len(parameters["events_b"]))
        rows += queries.rows("traffic", 1000 * parameters["state_kb"], event)
    note = "the larger the events, the less is saved: streaming outweighs the state (thesis, 4.6)"
    return Results(rows, _plots("event B"), {"thesis": note})
