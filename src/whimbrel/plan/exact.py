"""The best fixed hosts, as a mixed integer program that HiGHS solves.

x[t, v] = 1: task t runs on broker v. y[s, t, u, v] = x[s, u] x[t, v] for a task t that reads what s makes.
z[s, u, v] = 1: stream s, made on broker u, goes to broker v; it does if anybody reads it there. Minimise the
sum of bytes x weight over all links that streams cross, subject to the capacity and storage of brokers, the
room of links, and the delays of deliveries.

The products y are described by their sums (the sum over v is x[s, u], the sum over u is x[t, v]), which makes
the relaxation tight: on small networks most programs are solved at the first node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from whimbrel.errors import NoPlanError
from whimbrel.plan.cost import room
from whimbrel.plan.milp import LinearProgram, Variable
from whimbrel.plan.network import Link
from whimbrel.plan.placement_model import PlacementModel, Situation
from whimbrel.plan.workload import Feed, Task

Terms = list[tuple[Variable, float]]
Hosts = dict[str, dict[str, Variable]]
"""For each task and broker, the variable that is 1 if the broker runs the task."""
TIME_LIMIT_S = 120.0
NEVER_S = 1e9
"""The delay of a link that is never up: a program has no place for infinity."""
EXCESS = 1.0
"""What a limit that is exceeded by its own size costs, where the least excess is looked for."""


def solve(
    model: PlacementModel, *, time_limit_s: float = TIME_LIMIT_S
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the best hosts, and notes about them. Where nothing satisfies all limits: the least excess.

    O(streams x candidates^2) variables, of which tasks x candidates are integer: exponential at worst.

    Raises
    ------
    NoPlanError
        If the time limit passes before anything is found.
    """
    for is_strict in (True, False):
        program = _Writer(model, is_strict)
        solution = program.write().solve(time_limit_s, threads=1)
        if solution is not None:
            break
    else:
        raise NoPlanError(
            f"no plan was found within {time_limit_s:g} s; try the planner greedy, or a smaller network"
        )
    hosts = {
        name: next(broker for broker, variable in variables.items() if solution[variable] > 0.5)
        for name, variables in program.hosts.items()
    }
    if solution.gap > 1e-4:
        return hosts, (f"the time limit passed; no plan is better by more than {solution.gap:.1%}",)
    return hosts, ()


def _hosts(model: PlacementModel, task: Task, is_strict: bool) -> Iterable[str]:
    """Return the brokers that could run a task if it were alone there."""
    able = [
        name
        for name in model.candidates
        if model.network[name].capacity >= task.work and model.network[name].storage_b >= task.state_b
    ]
    return able if is_strict and able else model.candidates


class _Writer:
    """Writes the program; if it is not strict, limits may be exceeded, and the excess is what counts."""

    def __init__(self, model: PlacementModel, is_strict: bool) -> None:
        self.model, self.is_strict = model, is_strict
        self.program = LinearProgram("the exact planner")
        self.hosts: Hosts = {}
        for task in model.workload.tasks:
            brokers = _hosts(model, task, is_strict)
            self.hosts[task.name] = {name: self.program.variable(is_integer=True) for name in brokers}
            self.program.require(
                ((variable, 1.0) for variable in self.hosts[task.name].values()), least=1.0, most=1.0
            )
        self.pairs: dict[tuple[str, str], dict[tuple[str, str], Variable]] = {}
        self.loads: dict[Link, Terms] = {}

    def write(self) -> LinearProgram:
        self._limit_brokers()
        for name in self.model.streams:
            self._stream(name)
        for link, terms in self.loads.items():
            self._limit(terms, room(link))
        if self.model.has_deadlines:
            self._limit_delays()
        return self.program

    def _limit(self, terms: Terms, limit: float) -> None:
        """Keep a sum below a limit, or let the excess cost something."""
        if math.isinf(limit):
            return
        if not self.is_strict:
            excess = self.program.variable(EXCESS, math.inf)
            terms = [*terms, (excess, -(limit or 1.0))]
        self.program.require(terms, most=limit)

    def _cost(self, cost: float) -> float:
        # Excess comes first, but among those of the least excess a cheap plan is found by chance only.
        return cost if self.is_strict else 0.0

    def _limit_brokers(self) -> None:
        for broker in self.model.network.brokers:
            running = [
                (hosts[broker.name], self.model.workload.task[name])
                for name, hosts in self.hosts.items()
                if broker.name in hosts
            ]
            self._limit([(variable, task.work) for variable, task in running], broker.capacity)
            state = [(variable, task.state_b) for variable, task in running]
            self._limit(state, broker.storage_b)

    # -- streams and links -----------------------------------------------------------------------------------

    def _stream(self, name: str) -> None:
        stream, readers = self.model.streams[name], self.model.workload.readers[name]
        situations = self.model.situations[name]
        crossings: dict[Link, list[Terms]] = {}
        for situation in situations:
            if isinstance(stream, Feed):
                assert situation.origin is not None
                used = self._from_one(situation.origin, None, name, readers, situation)
            else:
                used = {}
                for origin, variable in self.hosts[name].items():
                    for link, terms in self._from_one(origin, variable, name, readers, situation).items():
                        used.setdefault(link, []).extend(terms)
            for link, terms in used.items():
                weight = self.model.objective.weight(link) * stream.bytes_s * situation.share
                for variable, factor in terms:
                    self.program.add_cost(variable, self._cost(weight * factor))
                crossings.setdefault(link, []).append(terms)
        for link, per_situation in crossings.items():
            if room(link) < math.inf:
                self._load(link, per_situation, stream.bytes_s)

    def _load(self, link: Link, per_situation: list[Terms], bytes_s: float) -> None:
        """Count a stream on a link as in its worst situation."""
        terms = per_situation[0]
        if len(per_situation) > 1:
            worst = self.program.variable(upper=math.inf)
            for crossing in per_situation:
                self.program.require([(worst, 1.0), *((variable, -f) for variable, f in crossing)], least=0.0)
            terms = [(worst, 1.0)]
        self.loads.setdefault(link, []).extend((variable, factor * bytes_s) for variable, factor in terms)

    def _from_one(
        self,
        origin: str,
        here: Variable | None,
        name: str,
        readers: tuple[Task, ...],
        situation: Situation,
    ) -> dict[Link, Terms]:
        """Say for each link how often a stream that is made on one broker crosses it.

        `here` is the variable that says whether it is made there; None: it always is.
        """
        reasons: dict[str, list[Variable]] = {}
        for task in readers:
            for broker, variable in self._reads_at(name, origin, here, task).items():
                reasons.setdefault(broker, []).append(variable)
        for broker in sorted(situation.ends):
            reasons.setdefault(broker, []).append(here if here is not None else self._one)
        crossed: dict[Link, Terms] = {}
        for broker, variables in reasons.items():
            links = self.model.crossed(origin, frozenset([broker]))
            goes = self._any(variables) if links else 0
            for link in links:
                crossed.setdefault(link, []).append((goes, 1.0))
        return crossed

    def _any(self, variables: list[Variable]) -> Variable:
        """Return a variable that is 1 if one of several is."""
        if len(variables) == 1:
            return variables[0]
        variable = self.program.variable()
        for reason in variables:
            self.program.require([(variable, 1.0), (reason, -1.0)], least=0.0)
        return variable

    @cached_property
    def _one(self) -> Variable:
        """A variable that is 1."""
        variable = self.program.variable()
        self.program.require([(variable, 1.0)], least=1.0, most=1.0)
        return variable

    def _reads_at(self, name: str, origin: str, here: Variable | None, task: Task) -> dict[str, Variable]:
        """Return for each broker the variable that says: made at `origin`, and read by the task there."""
        hosts = self.hosts[task.name]
        if here is None:
            return hosts
        pairs = self._products(name, task)
        return {broker: pairs[origin, broker] for broker in hosts}

    def _products(self, name: str, task: Task) -> dict[tuple[str, str], Variable]:
        key = (name, task.name)
        if key not in self.pairs:
            above, below = self.hosts[name], self.hosts[task.name]
            pairs = {(u, v): self.program.variable() for u in above for v in below}
            for u, variable in above.items():
                self.program.require(
                    [(variable, -1.0), *((pairs[u, v], 1.0) for v in below)], least=0.0, most=0.0
                )
            for v, variable in below.items():
                self.program.require(
                    [(variable, -1.0), *((pairs[u, v], 1.0) for u in above)], least=0.0, most=0.0
                )
            self.pairs[key] = pairs
        return self.pairs[key]

    # -- delays ----------------------------------------------------------------------------------------------

    def _limit_delays(self) -> None:
        workload = self.model.workload
        ready = {task.name: self.program.variable(upper=math.inf) for task in workload.tasks}
        for task in workload.tasks:
            for name in task.inputs:
                for terms in self._ways(name, task):
                    before = [(ready[name], -1.0)] if name in ready else []
                    self.program.require([(ready[task.name], 1.0), *before, *_minus(terms)], least=0.0)
        for delivery in workload.deliveries:
            before = [(ready[delivery.stream], 1.0)] if delivery.stream in ready else []
            for end in self.model.places(delivery.at):
                for terms in self._ways_to(delivery.stream, end):
                    self._limit([*before, *terms], delivery.planned_s)

    def _ways(self, name: str, task: Task) -> list[Terms]:
        hosts = self.hosts[task.name]
        work = self.model.workload.work_on(task, name)
        takes = {v: min(self.model.network[v].takes_s(work), NEVER_S) for v in hosts}
        if name in self.model.workload.feed:
            origins = self.model.places(self.model.workload.feed[name].at)
            return [[(hosts[v], self._delay(name, u, v) + takes[v]) for v in hosts] for u in origins]
        pairs = self._products(name, task)
        return [[(variable, self._delay(name, u, v) + takes[v]) for (u, v), variable in pairs.items()]]

    def _ways_to(self, name: str, end: str) -> list[Terms]:
        if name in self.model.workload.feed:
            origins = self.model.places(self.model.workload.feed[name].at)
            return [[(self._one, self._delay(name, u, end))] for u in origins]
        return [[(variable, self._delay(name, u, end)) for u, variable in self.hosts[name].items()]]

    def _delay(self, stream: str, start: str, end: str) -> float:
        return min(self.model.routes.time_s(start, end, self.model.streams[stream].size_b), NEVER_S)


def _minus(terms: Terms) -> Terms:
    return [(variable, -factor) for variable, factor in terms]
