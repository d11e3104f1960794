"""Runs prepared for places where vehicles may come to: the thesis on mobility-aware CEP, section 3.5.3.

Processing takes event time: 5 ms for each event of history. A prepared run begins some seconds before the
switch, at the place that dead reckoning then predicts; one on demand begins at the switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from experiments.mobile.event_index import Boxes, EventIndex, Floats, Ints
from experiments.mobile.following import Followed, follow, traffic_of
from experiments.mobile.traffic import Traffic, speed_events
from experiments.published import Published, PublishedPlot
from experiments.scenarios.mobile import COMMON
from experiments.scenarios.registry import Progress, Value, scenario
from whimbrel.engine.mobile.prediction import (
    AlongRoute,
    AreaEvents,
    DeadReckoning,
    LastSamples,
    LearnedPlaces,
    PlacePredictor,
    PredictedPlaces,
    PreparedAreas,
    ProcessingTimes,
    choose_candidates,
    taking_over,
)
from whimbrel.engine.mobile.quality import shares
from whimbrel.graph.mobile import Quality
from whimbrel.model.time import SECOND
from whimbrel.sim.results import Plot, Results

THESIS = "thesis 3.5.3"
PREPARING: dict[str, tuple[Value, str]] = {
    "lifetime_s": (10, "how much history an interest brings, in seconds"),
    "event_ms": (5.0, "what processing an event of history takes, in milliseconds"),
    "longest_s": (10, "no run is prepared earlier before its switch, in seconds"),
}
EVERY_S = 1
"""Vehicles switch at each update."""
MEASURES = ("precision", "recall", "late s", "done at the switch")


@scenario(
    "mobile-prediction-edge",
    "precision and lateness of prepared runs and of those on demand, by the size of the interest",
    **COMMON,
    **PREPARING,
    edges=((100.0, 200.0, 300.0, 400.0, 500.0), "edges of the square interests, in metres"),
    lead_s=(1, "how long before the switch runs are prepared, in seconds"),
)
def run_by_edge(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare by the size of the interest: more events, more to process."""
    found: dict[tuple[float, str], list[Floats]] = {}
    for run in range(parameters["runs"]):
        events, followed, rows = _drive(parameters, run)
        for edge in parameters["edges"]:
            way = Preparing(events, followed, edge, parameters)
            lead = np.full(len(rows), int(parameters["lead_s"]))
            for name, measured in (way.measure(rows, lead) | way.measure_by_profile(rows)).items():
                found.setdefault((edge, name), []).append(measured)
        progress(run + 1, parameters["runs"])
    results = [
        {"edge": edge, "way": name} | dict(zip(MEASURES, np.mean(each, axis=0).tolist(), strict=True))
        for (edge, name), each in found.items()
    ]
    plots = (
        PublishedPlot(
            "precision", "Precision by the size of the interest", "edge", "precision", by="way",
            published=(Published("on demand, complete", 1.0, THESIS),),
        ),
        PublishedPlot(
            "late", "How late the first live result is, on average", "edge", "late s", by="way",
            published=(Published("on demand, complete, at most", 10.0, THESIS),),
        ),
    )  # fmt: skip
    return Results(results, plots)


@scenario(
    "mobile-prediction-lead",
    "precision and lateness by how long before the switch runs are prepared",
    **COMMON,
    **PREPARING,
    edge_m=(500.0, "edge of the square interests, in metres"),
    leads_s=((1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0), "how long before the switch, in seconds"),
)
def run_by_lead(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare by T_C: earlier runs are done in time, at places that are less certain."""
    found: dict[tuple[float, str], list[Floats]] = {}
    for run in range(parameters["runs"]):
        events, followed, rows = _drive(parameters, run)
        way = Preparing(events, followed, parameters["edge_m"], parameters)
        for lead in parameters["leads_s"]:
            for name, measured in way.measure(rows, np.full(len(rows), int(lead))).items():
                found.setdefault((lead, name), []).append(measured)
        progress(run + 1, parameters["runs"])
    results: list[dict[str, Any]] = []
    for (lead, name), each in found.items():
        figures = dict(zip(MEASURES, np.mean(each, axis=0).tolist(), strict=True))
        reactive = float(np.mean(found[lead, "on demand, complete"], axis=0)[2])
        figures["late, of on demand"] = figures["late s"] / reactive if reactive else 0.0
        results.append({"lead s": lead, "way": name} | figures)
    plots = (
        PublishedPlot(
            "precision", "Precision by how long before the switch runs are prepared", "lead s", "precision",
            by="way", published=(Published("prepared, incomplete, up to", 0.8, "thesis 3.5.4"),),
        ),
        PublishedPlot(
            "late", "How late the first live result is, of runs on demand", "lead s", "late, of on demand",
            by="way", published=(Published("prepared, complete", ((2, 0.0),), THESIS),),
        ),
    )  # fmt: skip
    return Results(results, plots)


def _drive(parameters: Mapping[str, Any], run: int) -> tuple[EventIndex, Followed, Ints]:
    """Drive traffic; give its speed events, who is followed, and the updates whose past is long enough."""
    traffic = traffic_of(parameters, run)
    followed = follow(traffic, parameters["followed"], run)
    rows = np.arange(len(followed))
    past = followed.place_ago(rows, np.full(len(rows), int(parameters["longest_s"]) + 1))
    return EventIndex.of(speed_events(traffic)), followed, rows[past >= 0]


class Preparing:
    """Runs for interests of one size, prepared or on demand, and what they give at the switch."""

    def __init__(
        self, events: EventIndex, followed: Followed, edge: float, parameters: Mapping[str, Any]
    ) -> None:
        self.events = events
        self.followed = followed
        self.edge = edge
        self.lifetime = int(parameters["lifetime_s"])
        self.longest = int(parameters["longest_s"])
        self.profile = ProcessingTimes.each(parameters["event_ms"] / 1000)
        self.event_s = parameters["event_ms"] / 1000

    def measure(self, rows: Ints, lead: Ints) -> dict[str, Floats]:
        """Compare runs that begin so many seconds before the switch at each update with those on demand.

        Precision is the share of the events of the run's area that are processed in time and lie in the
        interest; recall the same of the events of the interest. Incomplete runs end at the next switch.
        """
        true = self.followed.take(rows).boxes(self.edge, self.lifetime)
        wanted = self.events.count(true)
        used, common, in_time = self._prepared(true, rows, lead)
        needed = self.profile.seconds_for(wanted)
        reacts = np.minimum(wanted, self._able(np.full(len(rows), EVERY_S)))
        late = np.maximum(self.profile.seconds_for(used) - lead, 0.0)
        now = np.zeros(len(rows))
        return {
            "prepared, complete": _means(shares(common, used), shares(common, wanted), late, late == 0),
            "prepared, incomplete": _means(
                shares(in_time, used), shares(in_time, wanted), np.minimum(late, EVERY_S), late == 0
            ),
            "on demand, complete": _means(now + 1, now + 1, needed, needed == 0),
            "on demand, incomplete": _means(
                shares(reacts, wanted), shares(reacts, wanted), np.minimum(needed, EVERY_S), needed == 0
            ),
        }

    def measure_by_profile(self, rows: Ints) -> dict[str, Floats]:
        """Begin each run as early as the events around the vehicle let expect that it needs."""
        around = self.followed.take(rows).boxes(self.edge, self.lifetime + EVERY_S, -EVERY_S)
        needed = np.ceil(self.profile.seconds_for(self.events.count(around))).astype(np.int64)
        found = self.measure(rows, np.clip(needed, 1, self.longest))
        return {"prepared by profile, complete": found["prepared, complete"]}

    def _prepared(self, true: Boxes, rows: Ints, lead: Ints) -> tuple[Ints, Ints, Ints]:
        """Count what predicted areas hold, what lies in the interests too, and what of that is in time."""
        places = predicted(self.followed, rows, lead, 1)
        areas = Boxes.around(places.x, places.y, self.edge, true.since, true.until)
        box, event = self.events.inside(areas)
        used = np.bincount(box, minlength=len(rows))
        turn = np.arange(len(box)) - np.repeat(np.cumsum(used) - used, used)
        lies_in = self.events.holds(true, box, event)
        in_time = lies_in & (turn < self._able(lead + EVERY_S)[box])
        return (
            used,
            np.bincount(box[lies_in], minlength=len(rows)),
            np.bincount(box[in_time], minlength=len(rows)),
        )

    def _able(self, seconds: Ints) -> Ints:
        return np.floor(seconds / self.event_s + 1e-9).astype(np.int64)


def _means(*measures: Any) -> Floats:
    return np.array([np.mean(each) for each in measures])


def predicted(followed: Followed, rows: Ints, lead: Ints, most: int) -> PredictedPlaces:
    """Predict the places at some updates by dead reckoning, from what was known so many seconds before."""
    last = followed.place_ago(rows, lead)
    known = np.stack([followed.place_ago(rows, lead + 1), last], axis=1)
    seen = LastSamples(followed.second[known] * SECOND, followed.x[known], followed.y[known])
    return DeadReckoning().predict(seen, lead * SECOND, most)


Policy = Literal["greedy", "location", "resource"]


@scenario(
    "mobile-candidates",
    "precision of the best prepared run, by how many places are predicted, the threshold and the policy",
    **COMMON,
    numbers=((1.0, 5.0, 10.0, 15.0, 20.0), "predicted places"),
    thresholds=((0.9, 0.25), "qualities above which one place stands for another"),
    edge_m=(500.0, "edge of the square interests, in metres"),
    lead_s=(1, "how long before the switch, in seconds"),
    lifetime_s=(10, "how much history an interest brings, and how far back events count, in seconds"),
    budget=(3.0, "what runs may cost together where it is limited, in runs at the likeliest place"),
    every=(10, "every so many-th update is measured"),
)
def run_candidates(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Choose among predicted places what to prepare, and among what is prepared what takes over."""
    found: dict[tuple[str, float], list[Floats]] = {}
    for run in range(parameters["runs"]):
        events, followed, rows = _drive({**parameters, "longest_s": parameters["lead_s"]}, run)
        options = Options(events, followed, rows[:: parameters["every"]], parameters)
        for number in map(int, parameters["numbers"]):
            for threshold in parameters["thresholds"]:
                measured = options.measure(number, threshold, "location", np.inf)
                found.setdefault((f"threshold {threshold:g}", number), []).append(measured)
            for policy in get_args(Policy):
                measured = options.measure(
                    number, max(parameters["thresholds"]), policy, parameters["budget"]
                )
                name = f"{policy}, at most {parameters['budget']:g} runs' worth"
                found.setdefault((name, number), []).append(measured)
        progress(run + 1, parameters["runs"])
    columns = ("precision", "recall", "runs", "may take over")
    results = [
        {"what": name, "places": number} | dict(zip(columns, np.mean(each, axis=0).tolist(), strict=True))
        for (name, number), each in found.items()
    ]
    plots = (
        PublishedPlot(
            "precision", "Precision of the run that takes over, by predicted places", "places", "precision",
            by="what", published=(Published("from", 0.96, THESIS), Published("to", 0.98, THESIS)),
        ),
        PublishedPlot("runs", "Runs that are prepared for a switch", "places", "runs", by="what"),
    )  # fmt: skip
    return Results(results, plots)


class Options:
    """Predicted places of some switches, the runs prepared there, and the one that takes over."""

    def __init__(
        self, events: EventIndex, followed: Followed, rows: Ints, parameters: Mapping[str, Any]
    ) -> None:
        self.events = events
        self.followed = followed
        self.rows = rows
        self.edge = parameters["edge_m"]
        self.lead = int(parameters["lead_s"])
        self.lifetime = int(parameters["lifetime_s"])
        self.true = followed.take(rows).boxes(self.edge, self.lifetime)
        self.wanted = events.count(self.true)

    def measure(self, number: int, threshold: float, policy: Policy, budget: float) -> Floats:
        """Give precision and recall of what takes over, how many runs are prepared, and how often one may."""
        recent, places = self._places(number)
        costs = recent.counts / np.maximum(recent.counts[places.groups[:-1]], 1)[self._owner(places.groups)]
        quality = Quality(threshold, threshold)
        turn = choose_candidates(places.groups, recent, costs, quality, budget, policy)
        prepared = _only(places, turn >= 0)
        best = taking_over(prepared, Quality(0.0, 0.0))
        best = best[best >= 0]
        may = taking_over(prepared, quality) >= 0
        precision, recall = (shares(prepared.common, each)[best] for each in (prepared.used, prepared.wanted))
        return _means(precision, recall, np.diff(prepared.groups), may)

    @cache  # noqa: B019 (it lives as long as its scenario)
    def _places(self, number: int) -> tuple[AreaEvents, PreparedAreas]:
        """Give the recent events at each predicted place, and what a run there would have at the switch."""
        places = predicted(self.followed, self.rows, np.full(len(self.rows), self.lead), number)
        second = self.followed.second[self.rows][places.row] - self.lead
        box, event = self.events.inside(
            Boxes.around(places.x, places.y, self.edge, second - self.lifetime, second)
        )
        offsets = np.searchsorted(box, np.arange(len(places) + 1)).astype(np.int64)
        true = self.true.take(places.row)
        areas = Boxes.around(places.x, places.y, self.edge, true.since, true.until)
        prepared = PreparedAreas(
            places.offsets(len(self.rows)),
            np.ones(len(places), np.bool_),
            np.zeros(len(places), np.bool_),
            self.events.count(areas.common(true)),
            self.events.count(areas),
            self.wanted[places.row],
        )
        return AreaEvents(offsets, event), prepared

    @staticmethod
    def _owner(groups: Ints) -> Ints:
        return np.repeat(np.arange(len(groups) - 1), np.diff(groups))


def _only(prepared: PreparedAreas, which: npt.NDArray[np.bool_]) -> PreparedAreas:
    """Leave out the areas that nothing is prepared for."""
    kept = np.append(0, np.cumsum(which))
    return PreparedAreas(
        kept[prepared.groups], prepared.is_complete[which], prepared.is_interest[which],
        prepared.common[which], prepared.used[which], prepared.wanted[which],
    )  # fmt: skip


@scenario(
    "mobile-predictors",
    "how far off predicted places are, by predictor and by how far ahead they lie",
    **COMMON,
    leads_s=((1.0, 2.0, 5.0, 10.0, 20.0, 30.0), "how far ahead, in seconds"),
    places=(5, "predicted places"),
    cell_m=(10.0, "size of the cells that transitions are learned between, in metres"),
    every=(5, "every so many-th update is measured"),
)
def run_predictors(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare dead reckoning, routes that are known, and what other vehicles did."""
    found: dict[tuple[float, str], list[Floats]] = {}
    for run in range(parameters["runs"]):
        traffic = traffic_of(parameters, run)
        followed = follow(traffic, parameters["followed"], run)
        learned = _learned(traffic, followed, parameters["cell_m"])
        # Learned transitions read the most samples; all predictors see the same updates.
        depth = learned.samples
        ways: dict[str, PlacePredictor] = {
            "dead reckoning": DeadReckoning(), "along the route": AlongRoute(), "learned": learned
        }  # fmt: skip
        rows = np.arange(len(followed))
        for lead in map(int, parameters["leads_s"]):
            past = followed.place_ago(rows, np.full(len(rows), lead + depth))
            able = rows[past >= 0][:: parameters["every"]]
            for name, way in ways.items():
                seen = _seen(followed, able, lead, way.samples)
                ahead = np.full(len(able), lead * SECOND)
                places = way.predict(seen, ahead, parameters["places"])
                found.setdefault((lead, name), []).append(_errors(places, followed.take(able)))
        progress(run + 1, parameters["runs"])
    columns = ("likeliest off by m", "nearest off by m")
    results = [
        {"lead s": lead, "predictor": name} | dict(zip(columns, np.mean(each, axis=0).tolist(), strict=True))
        for (lead, name), each in found.items()
    ]
    plots = (
        Plot("likeliest", "How far off the likeliest place is", "lead s", columns[0], by="predictor"),
        Plot("nearest", "How far off the nearest place is", "lead s", columns[1], by="predictor"),
    )
    return Results(results, plots)


def _learned(traffic: Traffic, followed: Followed, cell_m: float) -> LearnedPlaces:
    """Learn from the vehicles that nobody follows."""
    others = ~np.isin(traffic.vehicle, np.unique(followed.vehicle))
    obj, time = traffic.vehicle[others], traffic.second[others] * SECOND
    return LearnedPlaces.learned(obj, time, traffic.x[others], traffic.y[others], cell_m=cell_m)


def _seen(followed: Followed, rows: Ints, lead: int, samples: int) -> LastSamples:
    """Give what was known so many seconds before some updates, and the ways that vehicles are to go."""
    ago = (np.full(len(rows), lead + n) for n in reversed(range(samples)))
    known = np.stack([followed.place_ago(rows, each) for each in ago], axis=1)
    vehicles = np.unique(followed.vehicle).tolist()
    routes = {each: _route(followed.take(followed.vehicle == each)) for each in vehicles}
    return LastSamples(
        followed.second[known] * SECOND,
        followed.x[known],
        followed.y[known],
        routes=np.array([routes[vehicle] for vehicle in followed.vehicle[rows].tolist()], object),
    )


def _route(way: Followed) -> str | None:
    """Write the way of a vehicle as a line, to the metre; None if it went nowhere."""
    corners = np.stack([way.x, way.y], axis=1).round()
    corners = corners[np.append(True, (np.diff(corners, axis=0) != 0).any(axis=1))]
    if len(corners) < 2:
        return None
    return f"LINESTRING ({', '.join(f'{x:g} {y:g}' for x, y in corners.tolist())})"


def _errors(places: PredictedPlaces, true: Followed) -> Floats:
    """Measure how far the likeliest place of each prediction is from the truth, and the nearest one."""
    off = np.hypot(places.x - true.x[places.row], places.y - true.y[places.row])
    first = places.offsets(len(true))[:-1]
    return _means(off[first], np.minimum.reduceat(off, first))
