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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from whimbrel.errors import MissingDependency, NoPlanError
from whimbrel.plan.cost import room
from whimbrel.plan.network import Link
from whimbrel.plan.placement_model import PlacementModel, Situation
from whimbrel.plan.workload import Feed, Task

Terms = list[tuple[int, float]]
"""A linear expression: columns with their factors."""
TIME_LIMIT_S = 120.0
NEVER_S = 1e9
"""The delay of a link that is never up: a program has no place for infinity."""
EXCESS = 1.0
"""What a limit that is exceeded by its own size costs, where the least excess is looked for."""


def solve(
    model: PlacementModel, *, time_limit_s: float = TIME_LIMIT_S
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the best hosts, and notes about them. Where nothing satisfies all limits: the least excess.

    Raises
    ------
    NoPlanError
        If the time limit passes before anything is found.
    """
    program = _program(model, is_strict=True)
    found = program.solve(time_limit_s)
    if found is None:
        program = _program(model, is_strict=False)
        found = program.solve(time_limit_s)
    if found is None:
        raise NoPlanError(
            f"no plan was found within {time_limit_s:g} s; try the planner greedy, or a smaller network"
        )
    values, gap = found
    hosts = {
        name: next(broker for broker, column in columns.items() if values[column] > 0.5)
        for name, columns in program.hosts.items()
    }
    if gap > 1e-4:
        return hosts, (f"the time limit passed; no plan is better by more than {gap:.1%}",)
    return hosts, ()


@dataclass
class _Program:
    """Columns and rows of a program, as they are found."""

    costs: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    is_whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, Terms, float]] = field(default_factory=list)
    hosts: dict[str, dict[str, int]] = field(default_factory=dict)

    def column(self, cost: float = 0.0, upper: float = 1.0, *, is_whole: bool = False) -> int:
        self.costs.append(cost)
        self.upper.append(upper)
        self.is_whole.append(is_whole)
        return len(self.costs) - 1

    def row(self, low: float, terms: Terms, high: float) -> None:
        self.rows.append((low, terms, high))

    def solve(self, time_limit_s: float) -> tuple[list[float], float] | None:
        """Return the values of all columns and how far from the best they may be; None if there are none."""
        highs = _highs()
        solver = highs.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("time_limit", time_limit_s)):
            solver.setOptionValue(option, value)
        solver.setOptionValue("mip_rel_gap", 1e-9)
        solver.passModel(self._model(highs))
        solver.run()
        info = solver.getInfo()
        if info.primal_solution_status != 2:  # 2: a feasible point
            return None
        is_best = solver.getModelStatus() == highs.HighsModelStatus.kOptimal
        gap = 0.0 if is_best else float(info.mip_gap)
        return list(solver.getSolution().col_value), gap

    def _model(self, highs: Any) -> Any:
        model = highs.HighsLp()
        model.num_col_, model.num_row_ = len(self.costs), len(self.rows)
        model.col_cost_ = self.costs
        model.col_lower_, model.col_upper_ = [0.0] * len(self.costs), self.upper
        model.row_lower_ = [low for low, _, _ in self.rows]
        model.row_upper_ = [high for _, _, high in self.rows]
        kinds = highs.HighsVarType
        model.integrality_ = [kinds.kInteger if each else kinds.kContinuous for each in self.is_whole]
        matrix = model.a_matrix_
        matrix.format_ = highs.MatrixFormat.kRowwise
        starts, index, values = [0], [], []
        for _, terms, _ in self.rows:
            merged: dict[int, float] = {}
            for column, factor in terms:
                merged[column] = merged.get(column, 0.0) + factor
            index += list(merged)
            values += list(merged.values())
            starts.append(len(index))
        matrix.start_, matrix.index_, matrix.value_ = starts, index, values
        return model


def _highs() -> Any:
    try:
        import highspy
    except ImportError as error:
        raise MissingDependency("highspy", "the exact planner", "plan") from error
    return highspy


def _program(model: PlacementModel, *, is_strict: bool) -> _Program:
    """Write the program down; if it is not strict, limits may be exceeded, and the excess is what counts."""
    program = _Program()
    for task in model.workload.tasks:
        hosts = {broker: program.column(is_whole=True) for broker in _hosts(model, task, is_strict)}
        program.hosts[task.name] = hosts
        program.row(1.0, [(column, 1.0) for column in hosts.values()], 1.0)
    return _Writer(model, program, is_strict).write()


def _hosts(model: PlacementModel, task: Task, is_strict: bool) -> Iterable[str]:
    """Return the brokers that could run a task if it were alone there."""
    found = [
        name
        for name in model.candidates
        if model.network[name].capacity >= task.work
        and model.network[name].storage_b >= task.fixed_b + task.window_b
    ]
    return found if is_strict and found else model.candidates


class _Writer:
    def __init__(self, model: PlacementModel, program: _Program, is_strict: bool) -> None:
        self.model, self.program, self.is_strict = model, program, is_strict
        self.pairs: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        self.loads: dict[Link, Terms] = {}

    def write(self) -> _Program:
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
            excess = self.program.column(EXCESS, math.inf)
            terms = [*terms, (excess, -(limit or 1.0))]
        self.program.row(-math.inf, terms, limit)

    def _cost(self, cost: float) -> float:
        # Excess comes first, but among those of the least excess a cheap plan is found by chance only.
        return cost if self.is_strict else 0.0

    def _limit_brokers(self) -> None:
        for broker in self.model.network.brokers:
            running = [
                (hosts[broker.name], self.model.workload.task[name])
                for name, hosts in self.program.hosts.items()
                if broker.name in hosts
            ]
            self._limit([(column, task.work) for column, task in running], broker.capacity)
            state = [(column, task.fixed_b + task.window_b) for column, task in running]
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
                for origin, column in self.program.hosts[name].items():
                    for link, terms in self._from_one(origin, column, name, readers, situation).items():
                        used.setdefault(link, []).extend(terms)
            for link, terms in used.items():
                weight = self.model.objective.weight(link) * stream.bytes_s * situation.share
                for column, factor in terms:
                    self.program.costs[column] += self._cost(weight * factor)
                crossings.setdefault(link, []).append(terms)
        for link, per_situation in crossings.items():
            if room(link) < math.inf:
                self._load(link, per_situation, stream.bytes_s)

    def _load(self, link: Link, per_situation: list[Terms], bytes_s: float) -> None:
        """Count a stream on a link as in its worst situation."""
        terms = per_situation[0]
        if len(per_situation) > 1:
            worst = self.program.column(upper=math.inf)
            for each in per_situation:
                self.program.row(0.0, [(worst, 1.0), *((column, -f) for column, f in each)], math.inf)
            terms = [(worst, 1.0)]
        self.loads.setdefault(link, []).extend((column, factor * bytes_s) for column, factor in terms)

    def _from_one(
        self,
        origin: str,
        here: int | None,
        name: str,
        readers: tuple[Task, ...],
        situation: Situation,
    ) -> dict[Link, Terms]:
        """Say for each link how often a stream that is made on one broker crosses it.

        `here` is the column that says whether it is made there; None: it always is.
        """
        reasons: dict[str, list[int]] = {}
        for task in readers:
            for broker, column in self._reads_at(name, origin, here, task).items():
                reasons.setdefault(broker, []).append(column)
        for broker in sorted(situation.ends):
            reasons.setdefault(broker, []).append(here if here is not None else self._one)
        crossed: dict[Link, Terms] = {}
        for broker, columns in reasons.items():
            links = self.model.crossed(origin, frozenset([broker]))
            goes = self._any(columns) if links else 0
            for link in links:
                crossed.setdefault(link, []).append((goes, 1.0))
        return crossed

    def _any(self, columns: list[int]) -> int:
        """Return a column that is 1 if one of several is."""
        if len(columns) == 1:
            return columns[0]
        column = self.program.column()
        for each in columns:
            self.program.row(0.0, [(column, 1.0), (each, -1.0)], math.inf)
        return column

    @cached_property
    def _one(self) -> int:
        """A column that is 1."""
        column = self.program.column()
        self.program.row(1.0, [(column, 1.0)], 1.0)
        return column

    def _reads_at(self, name: str, origin: str, here: int | None, task: Task) -> dict[str, int]:
        """Return for each broker the column that says: made at `origin`, and read by the task there."""
        hosts = self.program.hosts[task.name]
        if here is None:
            return hosts
        pairs = self._products(name, task)
        return {broker: pairs[origin, broker] for broker in hosts}

    def _products(self, name: str, task: Task) -> dict[tuple[str, str], int]:
        key = (name, task.name)
        if key not in self.pairs:
            above, below = self.program.hosts[name], self.program.hosts[task.name]
            pairs = {(u, v): self.program.column() for u in above for v in below}
            for u, column in above.items():
                self.program.row(0.0, [(column, -1.0), *((pairs[u, v], 1.0) for v in below)], 0.0)
            for v, column in below.items():
                self.program.row(0.0, [(column, -1.0), *((pairs[u, v], 1.0) for u in above)], 0.0)
            self.pairs[key] = pairs
        return self.pairs[key]

    # -- delays ----------------------------------------------------------------------------------------------

    def _limit_delays(self) -> None:
        workload = self.model.workload
        ready = {task.name: self.program.column(upper=math.inf) for task in workload.tasks}
        for task in workload.tasks:
            for name in task.inputs:
                for terms in self._ways(name, task):
                    before = [(ready[name], -1.0)] if name in ready else []
                    self.program.row(0.0, [(ready[task.name], 1.0), *before, *_minus(terms)], math.inf)
        for delivery in workload.deliveries:
            before = [(ready[delivery.stream], 1.0)] if delivery.stream in ready else []
            for end in self.model.places(delivery.at):
                for terms in self._ways_to(delivery.stream, end):
                    self._limit([*before, *terms], delivery.planned_s)

    def _ways(self, name: str, task: Task) -> list[Terms]:
        hosts = self.program.hosts[task.name]
        work = self.model.workload.work_on(task, name)
        takes = {v: min(self.model.network[v].takes_s(work), NEVER_S) for v in hosts}
        if name in self.model.workload.feed:
            origins = self.model.places(self.model.workload.feed[name].at)
            return [[(hosts[v], self._delay(name, u, v) + takes[v]) for v in hosts] for u in origins]
        pairs = self._products(name, task)
        return [[(column, self._delay(name, u, v) + takes[v]) for (u, v), column in pairs.items()]]

    def _ways_to(self, name: str, end: str) -> list[Terms]:
        if name in self.model.workload.feed:
            origins = self.model.places(self.model.workload.feed[name].at)
            return [[(self._one, self._delay(name, u, end))] for u in origins]
        return [[(column, self._delay(name, u, end)) for u, column in self.program.hosts[name].items()]]

    def _delay(self, stream: str, start: str, end: str) -> float:
        return min(self.model.routes.time_s(start, end, self.model.streams[stream].size_b), NEVER_S)


def _minus(terms: Terms) -> Terms:
    return [(column, -factor) for column, factor in terms]
