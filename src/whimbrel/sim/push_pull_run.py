"""Carry out a plan that pushes and pulls, with recorded events and the real engine on the real query.

Conditions on single events are tested where these come from. What passes is pushed, or kept until it is asked
for, and travels over links that come and go. Where detections are wanted, the engine looks at all that has
come; a detection is known when its last event is there, and all that might have prevented it would be.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import pyarrow as pa

from whimbrel.engine.row_filter import rows_passing_filter
from whimbrel.graph.operators import Graph
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.scope import selection
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.plan.demand import graph_to_plan
from whimbrel.plan.pushpull.deployment import PushPullDeployment
from whimbrel.plan.pushpull.patterns import DeliveredComposites, EventOrigin
from whimbrel.plan.pushpull.plan import PushPullPlan
from whimbrel.plan.pushpull.tree import is_negated, leaves_of
from whimbrel.sim.clock import Progress
from whimbrel.sim.outcome import Floats, Outcome, PlanOutcome
from whimbrel.sim.pushpull.matching import Atom, PartialMatch
from whimbrel.sim.pushpull.nodes import AFTER_ALL_S
from whimbrel.sim.pushpull.run import PlanRun, run_plans
from whimbrel.sim.recordings import Recording, normalised, sender_numbers
from whimbrel.sim.settings import Settings
from whimbrel.sim.single_process import one_process

HALF_A_TICK_S = 5e-7
"""Windows are longer by this, so that two events whose times differ by just a window, in microseconds, are
within it in seconds, too."""


@dataclass(frozen=True, kw_only=True)
class PushPullOutcome(PlanOutcome):
    """What came of a plan that pushes and pulls, with how many events had to be sent for it."""

    plan: PushPullDeployment
    occurred: int
    """Events that may be part of a detection."""
    arrived: Mapping[str, int]
    """How many of them came to where each delivery is wanted."""


def run_push_pull(
    query: Query | Compilable,
    events: EventTable | EventPaths,
    deployment: PushPullDeployment,
    *,
    settings: Settings = Settings(interval_s=60.0),  # noqa: B008 (frozen)
    progress: Progress = lambda done, total: None,
    coordinates: Coordinates | str | None = None,
    **reading: Unpack[ReadSettings],
) -> PushPullOutcome:
    """Run a query on recorded events as a plan that pushes and pulls says.

    Parameters
    ----------
    events
        As for `whimbrel.detect`. An event comes from the source of the network that its `source` names;
        events without ids get the ones that `whimbrel.detect` makes.
    progress
        Called with the steps that are done and those that there are.
    reading
        How events are read (`columns`, `time_unit`, ...), as for `whimbrel.run`.
    """
    wanted = _restricted(compiled(query), deployment)
    recording = normalised(wanted, events, coordinates=coordinates, **reading)
    atoms = _LeafEvents(wanted, deployment, recording).by_leaf()
    plans = {name: _plan(plan) for name, plan in deployment.plans.plans.items()}
    runs = run_plans(plans, deployment.network, atoms, settings=settings, progress=progress)
    world = next(iter(runs.values())).channel.world
    detector = _Detector(wanted, recording)
    senders = sender_numbers(recording.events, deployment.network.sources)
    alone = one_process(wanted, recording.events.filter(pa.array(senders >= 0)), recording.coordinates)
    found, delays, arrived = {}, {}, {}
    for each in deployment.wanted:
        name = delivery_name(each)
        own = [runs[composite.name] for composite in each.composites]
        found[name], delays[name] = detector.known(each.delivery.stream, own)
        arrived[name] = len(_came(own))
    return PushPullOutcome(
        plan=deployment,
        outcome=Outcome(found, delays, world.links.traffic, seconds=world.clock.now, steps=world.clock.done),
        single_process={delivery_name(each): alone[each.delivery.stream] for each in deployment.wanted},
        seconds=(recording.until_us - recording.since_us) / 1e6,
        rejected=recording.reasons,
        occurred=len({id_ for some in atoms.values() for _, _, id_ in some}),
        arrived=arrived,
    )


def delivery_name(wanted: DeliveredComposites) -> str:
    """Name a delivery."""
    return f"{wanted.delivery.stream} to {wanted.delivery.at}"


def _restricted(query: Query, deployment: PushPullDeployment) -> Query:
    """Return the query with what is delivered as its outputs, in the form that plans cut it."""
    graph = graph_to_plan(query)
    wanted = tuple(dict.fromkeys(each.delivery.stream for each in deployment.wanted))
    return replace(query, graph=Graph(graph.operators, wanted, graph.coordinates), text="", subscriptions=())


def _plan(plan: PushPullPlan) -> PushPullPlan:
    window_s = plan.composite.window_s + HALF_A_TICK_S
    return replace(plan, composite=replace(plan.composite, window_s=window_s))


class _LeafEvents:
    """The events that are the parts of composite events: those of a source that pass a condition."""

    def __init__(self, query: Query, deployment: PushPullDeployment, recording: Recording) -> None:
        self.query, self.deployment, self.recording = query, deployment, recording
        self._senders = sender_numbers(recording.events, deployment.network.sources)
        ends = recording.events.column("end").to_numpy(zero_copy_only=False)
        self._seconds = ((ends - recording.since_us) / 1e6).tolist()
        self._ids = recording.events.column("id").to_pylist()
        self._number = {source.name: number for number, source in enumerate(deployment.network.sources)}

    def by_leaf(self) -> dict[str, list[Atom]]:
        """Return the events of each part, in order of time: by their ends."""
        rows: dict[EventOrigin, list[int]] = {}
        found: dict[str, list[Atom]] = {}
        for wanted in self.deployment.wanted:
            for name, sent in wanted.sent.items():
                if sent not in rows:
                    rows[sent] = self._rows(sent)
                found[name] = [(self._seconds[row], name, self._ids[row]) for row in rows[sent]]
        return found

    def _rows(self, sent: EventOrigin) -> list[int]:
        """Find the events that a source sends and that pass the condition of a stream."""
        rows = np.flatnonzero(self._senders == self._number[sent.feed])
        _, condition = selection(self.query.graph, sent.stream)
        if condition is not None and len(rows):
            events = self.recording.events.take(pa.array(rows))
            rows = rows[
                rows_passing_filter(events, condition, self.query.functions, self.recording.coordinates)
            ]
        return list(rows.tolist())


def _came(runs: Iterable[PlanRun]) -> set[str]:
    """Name the events that came to where something is wanted."""
    return {id_ for run in runs for id_ in run.came()}


class _Detector:
    """Where detections are wanted: the engine looks at what has come."""

    def __init__(self, query: Query, recording: Recording) -> None:
        self.query, self.recording = query, recording

    def known(self, stream: str, runs: list[PlanRun]) -> tuple[pa.Table, Floats]:
        """Return the detections in what has come, and how long after its end each was known."""
        events = self.recording.events
        came = _came(runs)
        has_come = pa.array([id_ in came for id_ in events.column("id").to_pylist()], pa.bool_())
        table = one_process(self.query, events.filter(has_come), self.recording.coordinates)[stream]
        if not table.num_rows:
            return table, np.zeros(0)
        ends = (table.column("end").cast(pa.int64()).to_numpy() - self.recording.since_us) / 1e6
        settled = [_Settled(run) for run in runs]
        times = [
            max((time for each in settled for time in each.times(frozenset(made_of), end)), default=np.nan)
            for made_of, end in zip(table.column("events").to_pylist(), ends.tolist(), strict=True)
        ]
        # What nobody put together was not told, whatever the engine would find.
        is_known = ~np.isnan(times)
        return table.filter(pa.array(is_known)), (np.array(times) - ends)[is_known]


class _Settled:
    """When a plan's root was sure about events that go together."""

    def __init__(self, run: PlanRun) -> None:
        self.run = run
        self._settled: dict[frozenset[str], list[tuple[tuple[Atom, ...], float]]] = {}
        for atoms, time in run.settled.items():
            key = frozenset(id_ for _, _, id_ in atoms)
            self._settled.setdefault(key, []).append((atoms, time))
        negated = [each for each in run.root.inputs if is_negated(each)]
        self._waits = {leaf.part.name: leaf.delay_s for each in negated for leaf in leaves_of(each)}
        came: dict[str, list[tuple[float, float]]] = {name: [] for name in self._waits}
        for (time, leaf, _), arrived in run.arrived.items():
            if leaf in came:
                came[leaf].append((time, arrived))
        self._came = {name: sorted(some) for name, some in came.items()}

    def times(self, made_of: frozenset[str], end: float) -> Iterator[float]:
        """Say when a detection of these events, that ends at a time, was known.

        What must not occur up to its end has to be there: all that could have come by the longest time that
        its way takes, and what comes later because of others before it.
        """
        for atoms, settled in self._settled.get(made_of, ()):
            yield settled
            whole = PartialMatch(atoms[0][0], atoms[-1][0], atoms)
            for leaf, wait in self._waits.items():
                low, high = self.run.rule.forbidden(whole, leaf)
                if end > whole.end:
                    yield end + wait + AFTER_ALL_S
                some = self._came[leaf]
                first = bisect_left(some, (low, 0.0))
                last = bisect_right(some, (min(high, end), np.inf))
                yield from (arrived for _, arrived in some[first:last])
