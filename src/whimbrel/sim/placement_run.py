"""Carry out a plan that `whimbrel plan` made: every task of it where it says, with the real engine.

A condition on single events is a task of its own for each source, and is tested where the plan puts it, so
that what it reads travels there whole. A stream goes once to each broker where it is read, whether tasks or
consumers read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Unpack

import pyarrow as pa

from whimbrel.engine.report import together
from whimbrel.errors import NetworkError
from whimbrel.graph.fragments import Fragment, cut
from whimbrel.graph.operators import Derive, Filter, Graph, Source
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.scope import selection
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.plan.areas import attachments
from whimbrel.plan.cost import Costs, evaluate
from whimbrel.plan.demand import graph_to_plan
from whimbrel.plan.network import Consumer
from whimbrel.plan.network_calculus import Sending
from whimbrel.plan.plan import Plan
from whimbrel.plan.workload import Task as PlannedTask
from whimbrel.sim.clock import Progress
from whimbrel.sim.outcome import Outcome, PlanOutcome
from whimbrel.sim.receivers import Receiver
from whimbrel.sim.recordings import Recording, normalised, sender_numbers
from whimbrel.sim.senders import EventSender
from whimbrel.sim.settings import Settings
from whimbrel.sim.single_process import one_process
from whimbrel.sim.tasks import RunningTask
from whimbrel.sim.work import EngineWork, SelectWork, Work
from whimbrel.sim.world import World


@dataclass(frozen=True, kw_only=True)
class PlacementOutcome(PlanOutcome):
    """What came of a plan that places tasks, with what it is estimated to cost."""

    plan: Plan
    costs: Costs
    """With bounds for the headers and heartbeats of the run."""


def run_placement(
    query: Query | Compilable,
    events: EventTable | EventPaths,
    plan: Plan,
    *,
    settings: Settings = Settings(header_b=0.0),  # noqa: B008 (frozen)
    weighs: bool = False,
    progress: Progress = lambda done, total: None,
    coordinates: Coordinates | str | None = None,
    **reading: Unpack[ReadSettings],
) -> PlacementOutcome:
    """Run a query on recorded events as a plan says.

    Parameters
    ----------
    events
        As for `whimbrel.detect`. An event comes from the source of the network that its `source` names;
        events without ids get the ones that `whimbrel.detect` makes.
    settings
        How the run is done. Ways are chosen by what the plan keeps small, as the plan expects.
    weighs
        Whether packets are as large as Arrow makes them, with what detections were made of, and what a task
        that moves remembers as large as its snapshot; else both are as large as the plan says.
    progress
        Called with the steps that are done and those that there are.
    reading
        How events are read (`columns`, `time_unit`, ...), as for `whimbrel.run`.

    Raises
    ------
    NetworkError
        If the plan was made for another query or network.
    """
    deployment = _Deployment(compiled(query), plan)
    recording = normalised(deployment.query, events, coordinates=coordinates, **reading)
    how = replace(settings, weight=plan.objective.weight)
    world = World(plan.network, how)
    deployment.add_tasks(world, recording, weighs=weighs)
    feeds = deployment.add_feeds(world, recording, how, weighs=weighs)
    receivers = deployment.add_receivers(world, recording)
    for time_s, task, broker in plan.moves():
        world.move_at(time_s, task, broker)
    for feed in feeds:
        feed.start()
    seconds = (recording.until_us - recording.since_us) / 1e6
    world.clock.run_in_steps(seconds, progress)
    expected = deployment.single_process(recording)
    outcome = outcome_of(world, receivers, recording)
    sending = Sending(settings.header_b, settings.heartbeat_s)
    named = list(zip([each.name for each in receivers], plan.workload.deliveries, strict=True))
    return PlacementOutcome(
        plan=plan,
        outcome=outcome,
        single_process={name: expected[delivery.stream] for name, delivery in named},
        seconds=seconds,
        costs=evaluate(plan.workload, plan.network, plan.hosts, plan.objective, sending=sending),
        rejected=recording.reasons,
    )


class _Deployment:
    """Puts the tasks, senders and receivers of a plan into a world."""

    def __init__(self, query: Query, plan: Plan) -> None:
        self.plan, self.workload = plan, plan.workload
        graph = graph_to_plan(query)
        wanted = tuple(dict.fromkeys(delivery.stream for delivery in self.workload.deliveries))
        known = {operator.name for operator in graph.operators}
        for name in [*wanted, *(name for task in self.workload.tasks for name in task.operators)]:
            if name not in known:
                raise NetworkError(f"the plan is for another query: it runs {name!r}, which this one has not")
        self.graph = Graph(graph.operators, wanted, graph.coordinates)
        self.query = replace(query, graph=self.graph, text="", subscriptions=())
        self.pieces = {piece.name: piece for piece in cut(self.query)}
        for name in self.pieces:
            if name not in self.workload.task:
                raise NetworkError(f"the plan is for another query: it has no task {name!r}")
        self.hosts = plan.first_hosts()
        sent = {source.name for source in plan.network.sources}
        for feed in self.workload.feeds:
            if feed.name not in sent:
                raise NetworkError(f"the plan is for another network: this one has no source {feed.name!r}")

    # -- tasks -----------------------------------------------------------------------------------------------

    def add_tasks(self, world: World, recording: Recording, *, weighs: bool) -> None:
        """Put tasks on their brokers; they are connected when all of them, and the feeds, are there."""
        for task in self.workload.tasks:
            if task.name not in self.hosts:
                raise NetworkError(f"the plan has no host for the task {task.name!r}")
            work = self._work(task, recording, weighs=weighs)
            world.add(RunningTask(world, task.name, self.hosts[task.name], work))

    def _work(self, task: PlannedTask, recording: Recording, *, weighs: bool) -> Work:
        work_s = {self.stream(name): self.workload.work_on(task, name) for name in task.inputs}
        operator = task.operators[-1]
        root, condition = selection(self.graph, operator)
        is_definition = isinstance(self.graph[operator], Derive)
        if isinstance(root, Source) and not is_definition:
            assert condition is not None
            return SelectWork(
                task.name,
                condition,
                self.query.functions,
                recording.coordinates,
                None if weighs and self._given_size(task) is None else task.size_b,
                task.fixed_b,
                *work_s.values(),
            )
        return EngineWork(
            self.pieces[operator] if is_definition else self._selecting(operator, root.name),
            recording.coordinates,
            task.fixed_b,
            sizes={} if weighs else {operator: task.size_b},
            takes={name: self._definition(name) if is_definition else root.name for name in task.inputs},
            keeps_numbers=not is_definition,
            work_s=work_s,
            state_b=None if weighs else task.window_b,
        )

    def _given_size(self, task: PlannedTask) -> float | None:
        """Return the size that the network says the events of a condition's source have."""
        sizes = {source.name: source.size_b for source in self.plan.network.sources}
        while task.inputs[0] not in self.workload.feed:
            task = self.workload.task[task.inputs[0]]
        return sizes[task.inputs[0]]

    def _definition(self, stream: str) -> str:
        """Return the definition whose events a stream has; those of sources have none."""
        if stream in self.workload.feed:
            return stream
        return selection(self.graph, self.workload.task[stream].operators[-1])[0].name

    def _selecting(self, name: str, root: str) -> Fragment:
        """Make a piece that selects among the events of a definition that another one finds."""
        kept = []
        below = {name}
        for operator in reversed(self.graph.operators):
            if operator.name in below:
                is_root = operator.name == root
                assert is_root or isinstance(operator, Filter)
                kept.append(replace(operator, cases=()) if isinstance(operator, Derive) else operator)
                below.update(() if is_root else operator.inputs)
        graph = Graph(tuple(reversed(kept)), (name,), self.graph.coordinates)
        return Fragment(name, replace(self.query, graph=graph), (), (root,), ())

    # -- feeds and consumers ---------------------------------------------------------------------------------

    def add_feeds(
        self, world: World, recording: Recording, settings: Settings, *, weighs: bool
    ) -> list[EventSender]:
        """Let every source of the plan send its events, whole, and connect all tasks."""
        sources = self.plan.network.sources
        senders = sender_numbers(recording.events, sources)
        feeds = []
        for planned in self.workload.feeds:
            number = next(n for n, source in enumerate(sources) if source.name == planned.name)
            readers = tuple(task.name for task in self.workload.readers[planned.name])
            batch = recording.events.filter(pa.array(senders == number))
            feed = EventSender(
                world,
                planned.name,
                first_broker(world, Consumer(planned.name, planned.at)),
                planned.name,
                {readers: batch},
                since_us=recording.since_us,
                until_us=recording.until_us,
                step_us=round(settings.step_s * 1e6),
                size_b=sources[number].size_b if weighs else planned.size_b,
            )
            world.add(feed)
            feeds.append(feed)
        for task in self.workload.tasks:
            if not task.inputs:
                feeds.append(self._time(world, task.name, recording))
            for name in dict.fromkeys(task.inputs):
                world.connect(name, self.stream(name), task.name)
        return feeds

    def _time(self, world: World, task: str, recording: Recording) -> EventSender:
        """Let time pass for a task that reads nothing but time points."""
        name = f"time for {task}"
        feed = EventSender(
            world,
            name,
            self.hosts[task],
            name,
            {(task,): recording.events.slice(0, 0)},
            since_us=recording.since_us,
            until_us=recording.until_us,
        )
        world.add(feed)
        world.connect(name, name, task)
        return feed

    def stream(self, task: str) -> str:
        """Return the name of the stream that a feed or a task sends."""
        if task in self.workload.feed:
            return task
        operator = self.workload.task[task].operators[-1]
        root, _ = selection(self.graph, operator)
        return task if isinstance(root, Source) else operator

    def add_receivers(self, world: World, recording: Recording) -> list[Receiver]:
        """Let those who want detections have them, one for each delivery of the plan."""
        found = []
        for delivery in self.workload.deliveries:
            name = f"{delivery.stream} to {delivery.at}"
            place = first_broker(world, Consumer(name, delivery.at))
            receiver = Receiver(world, name, place, since_us=recording.since_us)
            world.add(receiver)
            world.connect(delivery.stream, delivery.stream, name)
            found.append(receiver)
        return found

    def single_process(self, recording: Recording) -> dict[str, pa.Table]:
        """Say what one process finds in the events that the network's sources send, by definition."""
        senders = sender_numbers(recording.events, self.plan.network.sources)
        events = recording.events.filter(pa.array(senders >= 0))
        return one_process(self.query, events, recording.coordinates)


def first_broker(world: World, item: Consumer) -> str:
    """Return the first broker of a consumer, and let it change brokers when it moves."""
    if item.at in world.network.number:
        return item.at
    first, *later = attachments(world.network.mover[item.at], world.network)
    for each in later:
        if each.time_s > 0:
            world.hand_over_at(each.time_s, item.name, each.broker)
        else:
            first = each
    return first.broker


def outcome_of(world: World, receivers: Iterable[Receiver], given: Recording) -> Outcome:
    """Put together what came of a run of a query."""
    receivers = list(receivers)
    works = [task.work for task in world.tasks() if isinstance(task.work, EngineWork)]
    return replace(
        measured(world, receivers),
        detections={each.name: together(each.tables, given.coordinates) for each in receivers},
        late=sum(work.fragment.session.counts.late + work.fragment.late_derived for work in works),
        rejected=given.rejected,
    )


def measured(world: World, receivers: Iterable[Receiver]) -> Outcome:
    """Put together what a world measured, without detections."""
    return Outcome(
        detections={},
        delays_s={each.name: each.delays_s for each in receivers},
        traffic=world.links.traffic,
        moves=tuple(world.moves),
        seconds=world.clock.now,
        steps=world.clock.done,
        work={name: host.work for name, host in world.processors.items()},
        capacity={name: host.capacity for name, host in world.processors.items()},
        notes={"stable": asdict(world.stable)} if world.links.outages.has_brokers else {},
    )
