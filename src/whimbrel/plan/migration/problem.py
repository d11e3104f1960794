"""The mobile migration problem: a workload on a network over time steps, as arrays (MigCEP, section 3).

Costs are bandwidth-delay products over time: bytes a second, times the delay of the way in seconds, times how
long. A migration costs the bytes of the state times the delay of their way, which is the same measure. Inside
a problem, brokers go by their *position* among the brokers that it knows; plans name them by their number in
the network.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Bools, Floats, Ints
from whimbrel.plan.migration.attachments import attached
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.latency import Stream, split_latency, streams_of
from whimbrel.plan.migration.plan import NOWHERE, MigrationPlan, Move, changes_of
from whimbrel.plan.migration.time_graph import TimeGraph
from whimbrel.plan.migration.uncertain import UncertainPlan
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.plan.workload import Workload

Hosts = Mapping[str, Any]
"""For each task, the position of its host in each step; for an uncertain neighbour, its probabilities."""
Attachments = Mapping[str, MigrationPlan | UncertainPlan]


@dataclass(frozen=True, slots=True)
class MigrationScore:
    """What plans are worth: first few broken restrictions, then little cost."""

    broken: float
    """Streams times steps that break their share of the latency restriction."""
    placement: float
    """Byte seconds that are on their way because of where the operators are."""
    migration: float
    """Byte seconds of migrations."""

    @property
    def cost(self) -> float:
        """All byte seconds."""
        return self.placement + self.migration


class MigrationProblem:
    """Where each task of a workload should be in each time step.

    Parameters
    ----------
    network
        Brokers and links; ways are those of the smallest delay.
    attachments
        Plans of the movers that send or receive, by name (`attach`, or an uncertain plan).
    start
        The broker that each task is on; a task that is not named may begin anywhere.
    brokers
        The numbers of the brokers that may host tasks: all, or those that `brokers_within` gives.
    routes
        Ways by delay, where they have been searched before.
    """

    def __init__(
        self,
        network: Network,
        workload: Workload,
        horizon: Horizon,
        attachments: Attachments | None = None,
        start: Mapping[str, str] | None = None,
        brokers: Ints | None = None,
        routes: Routes | None = None,
    ) -> None:
        self.network, self.workload, self.horizon = network, workload, horizon
        self.routes = routes or Routes(network, by_delay)
        shares = split_latency(workload)
        self.streams = [replace(s, share_s=shares.get(s.key, np.inf)) for s in streams_of(workload)]
        self.attachments = _all_places(network, self.streams, horizon, attachments or {})
        hosting = np.arange(len(network.brokers)) if brokers is None else np.asarray(brokers, np.int64)
        begin = {name: _number(network, broker, name) for name, broker in (start or {}).items()}
        self.numbers = _known(hosting, self.attachments, begin)
        between = self.routes.between(self.numbers, self.numbers)
        self.delay_s, self._narrowest = between.delay_s, between.narrowest_b_s
        self.start = {name: self.position(number) for name, number in begin.items()}
        known = [network.brokers[n] for n in self.numbers]
        self.capacity = np.array([broker.capacity for broker in known])
        self.storage_b = np.array([broker.storage_b for broker in known])
        self._hosting = np.isin(self.numbers, hosting)
        self.candidates: dict[str, Bools] = {}
        """For tasks that look at some brokers only, at which ones."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return tuple(task.name for task in self.workload.tasks)

    @cached_property
    def penalty(self) -> float:
        """What one broken restriction counts: more than all costs together."""
        finite = self.delay_s[np.isfinite(self.delay_s)]
        farthest = float(finite.max(initial=0.0))
        sent = sum(stream.bytes_s for stream in self.streams) * self.horizon.step_s
        state = sum(task.state_b for task in self.workload.tasks)
        return 1.0 + farthest * self.horizon.steps * (sent + state)

    def position(self, number: int) -> int:
        """Return the position of a broker."""
        return int(np.searchsorted(self.numbers, number))

    def positions(self, numbers: Ints) -> Ints:
        """Return the positions of brokers; `NOWHERE` stays so."""
        return np.where(numbers == NOWHERE, NOWHERE, np.searchsorted(self.numbers, numbers))

    def hosts_of(self, plans: Mapping[str, MigrationPlan]) -> dict[str, Ints]:
        """Return the positions of the hosts that plans name."""
        return {name: self.positions(plan.hosts) for name, plan in plans.items()}

    @cached_property
    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """The tasks that each task shares streams with."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.tasks}
        for a, b in (
            stream.key for stream in self.streams if stream.source in found and stream.target in found
        ):
            found[a][b] = found[b][a] = None
        return {name: tuple(others) for name, others in found.items()}

    def movers_of(self, task: str) -> list[str]:
        """Return the places that a task shares streams with."""
        return list(dict.fromkeys(_other(stream, task)[1:] for stream in self._streams_with_places[task]))

    def attached_as(self, plans: Attachments) -> Self:
        """Return the same problem with other plans of some movers, among brokers that it knows."""
        changed = copy.copy(self)
        changed.attachments = {**self.attachments, **plans}
        for name in ("_by_places", "_straight"):
            changed.__dict__.pop(name, None)
        return changed

    def restricted_to(self, near: Mapping[str, Ints]) -> Self:
        """Return the same problem with tasks that look at some brokers only (`brokers_within`)."""
        changed = copy.copy(self)
        changed.candidates = {task: np.isin(self.numbers, numbers) for task, numbers in near.items()}
        return changed

    # --- weights ------------------------------------------------------------------------------------------

    def spans(self, task: str) -> Ints:
        """Return the steps that a migration takes from each broker (row) to each (column)."""
        return _spans(self.horizon, self.transfer_s(self.state_b(task)))

    def state_b(self, task: str) -> float:
        """Return the bytes of a task's state."""
        return self.workload.task[task].state_b

    def transfer_s(self, size_b: float) -> Floats:
        """Return how long it takes to send so many bytes between brokers: t_mig."""
        with np.errstate(divide="ignore"):
            return size_b / self._narrowest + self.delay_s if size_b else self.delay_s

    def migration_cost(self, task: str) -> Floats:
        """Return what a migration costs from each broker (row) to each (column): C_Mig."""
        size = self.state_b(task)
        return np.where(
            np.isfinite(self.delay_s), size * np.where(np.isfinite(self.delay_s), self.delay_s, 0.0), np.inf
        )

    def meets_places(self, task: str) -> tuple[Floats, Floats]:
        """Return what each step at each broker costs for streams from and to places, and what they break."""
        if task not in self._by_places:
            self._by_places[task] = self._weigh_places(task)
        return self._by_places[task]

    @cached_property
    def _by_places(self) -> dict[str, tuple[Floats, Floats]]:
        return {}

    def _weigh_places(self, task: str) -> tuple[Floats, Floats]:
        shape = (self.horizon.steps, len(self.numbers))
        sent, present, broken = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        counts: dict[float, Floats] = {}
        for stream in self._streams_with_places[task]:
            here = self._presence(stream)
            sent += stream.bytes_s * here
            present += here
            if not np.isfinite(stream.share_s):
                continue
            if isinstance(self.attachments[_other(stream, task)[1:]], UncertainPlan):
                broken += here @ self._finite_delay > stream.share_s * here.sum(axis=1, keepdims=True)
            else:
                counts[stream.share_s] = counts.get(stream.share_s, 0.0) + here
        for share, count in counts.items():
            broken += count @ (self._finite_delay > share)
        broken += present @ ~np.isfinite(self.delay_s)
        return self.horizon.step_s * (sent @ self._finite_delay), broken

    @cached_property
    def _finite_delay(self) -> Floats:
        return np.where(np.isfinite(self.delay_s), self.delay_s, 0.0)

    @cached_property
    def _streams_with_places(self) -> dict[str, list[Stream]]:
        by_task: dict[str, list[Stream]] = {name: [] for name in self.tasks}
        for stream in self.streams:
            if stream.source.startswith("@") and stream.target in by_task:
                by_task[stream.target].append(stream)
            elif stream.target.startswith("@") and stream.source in by_task:
                by_task[stream.source].append(stream)
        return by_task

    @cached_property
    def streams_between(self) -> list[Stream]:
        """The streams between tasks."""
        return [s for s in self.streams if not s.source.startswith("@") and not s.target.startswith("@")]

    def _presence(self, stream: Stream) -> Floats:
        """Return the probability that a stream's place is at each broker, for each step."""
        name = stream.source if stream.source.startswith("@") else stream.target
        return self.probabilities(self.attachments[name[1:]])

    def probabilities(self, plan: MigrationPlan | UncertainPlan) -> Floats:
        """Return the probability of each broker (column) in each step (row)."""
        table = np.zeros((self.horizon.steps, len(self.numbers)))
        if isinstance(plan, UncertainPlan):
            for step, (brokers, probabilities) in enumerate(plan.marginals()):
                there = brokers != NOWHERE
                table[step] = np.bincount(
                    self.positions(brokers[there]), probabilities[there], len(self.numbers)
                )
        else:
            at = self.positions(plan.hosts)
            there = np.flatnonzero(at != NOWHERE)
            table[there, at[there]] = 1.0
        return table

    def coupling(self, stream: Stream) -> tuple[Floats, Bools]:
        """Return what a stream between tasks costs in a step, by its hosts, and where it is too long."""
        late = (self.delay_s > stream.share_s) | np.isinf(self.delay_s)
        return stream.bytes_s * self.horizon.step_s * self._finite_delay, late

    def weights(self, task: str, hosts: Hosts, without: Iterable[str] = ()) -> tuple[Floats, Floats]:
        """Weigh cost and broken restrictions of each step and broker, next to where neighbours are."""
        cost, broken = self.meets_places(task)
        cost, broken = cost.copy(), broken.copy()
        for stream in self.streams_between:
            if task not in stream.key or _other(stream, task) in without:
                continue
            other = hosts[_other(stream, task)]
            price, late = self.coupling(stream)
            if other.ndim == 2:
                cost += other @ price
                broken += other @ self._finite_delay > stream.share_s
            else:
                cost += price[other]
                broken += late[other]
        return cost, broken

    # --- resources ----------------------------------------------------------------------------------------

    def load(self, hosts: Hosts, without: Iterable[str] = ()) -> tuple[Floats, Floats]:
        """Return the work and the bytes that tasks put on each broker in each step."""
        work = np.zeros((self.horizon.steps, len(self.numbers)))
        stored = np.zeros_like(work)
        every = np.arange(self.horizon.steps)
        for name in self.tasks:
            if name in hosts and name not in without:
                # An uncertain plan takes room wherever it may lead.
                row = hosts[name]
                where = row > 0 if row.ndim == 2 else (every, row)
                work[where] += self.workload.task[name].work
                stored[where] += self.state_b(name)
        return work, stored

    def may_host(self, task: str) -> Bools:
        """Tell which brokers have the resources for a task, as long as nothing else is there."""
        operator = self.workload.task[task]
        able = (self.capacity >= operator.work) & (self.storage_b >= self.state_b(task))
        return self.candidates.get(task, self._hosting) & self._hosting & able

    def has_room(self, task: str, hosts: Hosts, without: Iterable[str] = ()) -> Bools:
        """Tell where and when there is room for a task, next to the other tasks."""
        if np.isinf(self.capacity).all() and np.isinf(self.storage_b).all():
            return np.broadcast_to(self.may_host(task), (self.horizon.steps, len(self.numbers)))
        work, stored = self.load(hosts, (task, *without))
        operator = self.workload.task[task]
        return (
            self.may_host(task)
            & (work + operator.work <= self.capacity * (1 + 1e-12))
            & (stored + self.state_b(task) <= self.storage_b * (1 + 1e-12))
        )

    # --- time graphs, plans and their worth ---------------------------------------------------------------

    def time_graph(
        self,
        task: str,
        hosts: Hosts,
        room: Bools | None = None,
        missing: Iterable[str] = (),
    ) -> TimeGraph:
        """Make the time graph of one task, next to where the others are.

        Parameters
        ----------
        room
            Where and when there are resources for it; from the other tasks in `hosts`, if nothing is said.
        missing
            Tasks that have no plan yet.
        """
        room = self.has_room(task, hosts) if room is None else room
        columns = self.may_host(task) & room.any(axis=0)
        if task in self.start:
            columns[self.start[task]] = True
        chosen = np.flatnonzero(columns)
        cost, broken = self.weights(task, hosts, without=missing)
        return TimeGraph(
            task=task,
            positions=chosen,
            placement=cost[:, chosen],
            broken=broken[:, chosen],
            allowed=room[:, chosen],
            migration=self.migration_cost(task)[np.ix_(chosen, chosen)],
            spans=self.spans(task)[np.ix_(chosen, chosen)],
            penalty=self.penalty,
            start=int(np.searchsorted(chosen, self.start[task])) if task in self.start else None,
        )

    def value(self, hosts: Hosts) -> MigrationScore:
        """Tell what the plans of all tasks are worth together."""
        every = np.arange(self.horizon.steps)
        placement = broken = migration = 0.0
        for name in self.tasks:
            cost, late = self.meets_places(name)
            placement += float(cost[every, hosts[name]].sum())
            broken += float(late[every, hosts[name]].sum())
            migration += self.moving_cost(name, hosts[name])
        for stream in self.streams_between:
            price, late_pairs = self.coupling(stream)
            a, b = hosts[stream.source], hosts[stream.target]
            placement += float(price[a, b].sum())
            broken += float(late_pairs[a, b].sum())
        return MigrationScore(broken, placement + self._straight, migration)

    def score(self, hosts: Hosts) -> float:
        """Return one number for what plans are worth: less is better."""
        value = self.value(hosts)
        return value.cost + self.penalty * value.broken

    def moving_cost(self, task: str, hosts: Ints) -> float:
        """Return what the migrations of one task cost."""
        moves = changes_of(hosts)
        return float(self.state_b(task) * self.delay_s[hosts[moves - 1], hosts[moves]].sum())

    @cached_property
    def _straight(self) -> float:
        """What streams cost that go straight from a place to another."""
        total = 0.0
        for stream in self.streams:
            if stream.source.startswith("@") and stream.target.startswith("@"):
                a = self._presence(stream)
                b = self._presence(Stream(stream.target, stream.target, 0.0))
                total += stream.bytes_s * float(((a @ self._finite_delay) * b).sum())
        return total * self.horizon.step_s

    def plan(self, task: str, hosts: Ints) -> MigrationPlan:
        """Make the plan of a task from the positions of its hosts."""
        operator = self.workload.task[task]
        inputs = sum(self.workload.stream(name).bytes_s for name in operator.inputs)
        remembered_s = operator.window_b / inputs if inputs else 0.0
        whole, window = self.transfer_s(self.state_b(task)), self.transfer_s(operator.window_b)
        moves = []
        for step in changes_of(hosts):
            a, b, time_s = hosts[step - 1], hosts[step], self.horizon.time_s(int(step))
            moves.append(
                Move(
                    int(step),
                    int(self.numbers[a]),
                    int(self.numbers[b]),
                    ready_s=time_s,
                    fixed_send_s=time_s - float(whole[a, b]),
                    window_send_s=time_s - float(window[a, b]),
                    window_since_s=dict.fromkeys(operator.inputs, time_s - remembered_s),
                )
            )
        shares = {_other(s, task): s.share_s for s in self.streams if task in s.key}
        return MigrationPlan(task, self.horizon, self.numbers[hosts], operator.bytes_s, tuple(moves), shares)

    def plans(self, hosts: Hosts) -> dict[str, MigrationPlan]:
        """Make the plans of all tasks."""
        return {name: self.plan(name, hosts[name]) for name in self.tasks}


def _all_places(
    network: Network, streams: list[Stream], horizon: Horizon, given: Attachments
) -> dict[str, MigrationPlan | UncertainPlan]:
    places = dict(given)
    for end in (end for stream in streams for end in stream.key if end.startswith("@")):
        name = end[1:]
        if name in network.number:
            places[name] = attached(name, horizon, np.full(horizon.steps, network.number[name]))
        elif name not in places:
            raise unknown("attachment", name, places, "give the plan of each mover that sends or receives")
        elif places[name].horizon != horizon:
            raise NetworkError(
                f"the plan of {name!r} is for other time steps than those to plan for",
                "make all plans with one horizon",
            )
    return places


def _known(hosting: Ints, places: Attachments, start: Mapping[str, int]) -> Ints:
    attached_to = [
        plan.brokers if isinstance(plan, UncertainPlan) else plan.hosts for plan in places.values()
    ]
    numbers = np.unique(np.concatenate([hosting, np.array(list(start.values()), np.int64), *attached_to]))
    return numbers[numbers != NOWHERE]


def _number(network: Network, broker: str, task: str) -> int:
    if broker not in network.number:
        raise unknown("broker", broker, network.number, f"{task!r} starts on it")
    return network.number[broker]


def _other(stream: Stream, task: str) -> str:
    return stream.target if stream.source == task else stream.source


def _spans(horizon: Horizon, seconds: Floats) -> Ints:
    endless = horizon.steps + 1
    steps = np.ceil(np.where(np.isfinite(seconds), seconds, 0.0) / horizon.step_s - 1e-9)
    return np.where(np.isfinite(seconds), np.clip(steps, 1, endless), endless).astype(np.int64)
