"""Plan several operators at once, exactly: a dynamic program over the product of their states.

An operator's state is its host and how long it has been there, up to the longest migration: it has to stay at
least as long as the next migration takes. With all operators in it, this is the optimum of the mobile
migration problem; with two neighbours, a move that neither would make alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.kernels.product import relax
from whimbrel.plan.migration.problem import Hosts, MigrationProblem

MOST_STATES = 30_000_000
"""States times steps times operators that the dynamic program takes on."""


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """One operator's states, and the ways between them."""

    task: str
    columns: Ints
    ages: int
    weights: Floats
    """What each step (row) costs at each of its brokers (column), next to what is not planned here."""
    first: Ints
    sources: Ints
    prices: Floats
    initial: Floats

    @property
    def size(self) -> int:
        return len(self.columns) * self.ages

    @property
    def host(self) -> Ints:
        """The column of each state."""
        return np.repeat(np.arange(len(self.columns)), self.ages)


def plan_jointly(
    problem: MigrationProblem,
    hosts: Hosts,
    block: Sequence[str],
    brokers: Ints | None = None,
    most: int = MOST_STATES,
) -> dict[str, Ints]:
    """Find the best plans for some tasks together, next to the plans of the others.

    O(steps x the product of all tasks' brokers x steps of a migration), for each task and its ways.

    Parameters
    ----------
    hosts
        Where the other tasks are; all tasks may be in the block.
    brokers
        Positions to look at, if not all.

    Raises
    ------
    NoPlanError
        If the block is too large, or no plan has the resources.
    """
    owns = [_own(problem, hosts, task, block, brokers) for task in block]
    steps = problem.horizon.steps
    if prod(own.size for own in owns) * steps * len(owns) > most:
        raise NoPlanError(f"{len(owns)} tasks have too many states to plan together")
    stages = _Stages(problem, hosts, owns)
    cost = np.zeros(())
    for own in owns:
        cost = cost[..., None] + own.initial
    cost = cost + stages.at(0)
    vias: list[list[npt.NDArray[np.int32]]] = []
    for step in range(1, steps):
        turn = []
        for axis, own in enumerate(owns):
            shape = cost.shape
            flat = cost.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
            relaxed, via = relax(np.ascontiguousarray(flat), own.first, own.sources, own.prices)
            cost = relaxed.reshape(shape)
            turn.append(via.reshape(shape))
        vias.append(turn)
        cost = cost + stages.at(step)
    if not np.isfinite(cost.min()):
        raise NoPlanError(f"no plan for {', '.join(block)} has the resources that it needs in every step")
    state = list(np.unravel_index(int(cost.argmin()), cost.shape))
    path = [tuple(state)]
    for turn in reversed(vias):
        for axis in reversed(range(len(owns))):
            state[axis] = turn[axis][tuple(state)]
        path.append(tuple(state))
    rows = np.array(path[::-1], np.int64)
    return {own.task: own.columns[rows[:, n] // own.ages] for n, own in enumerate(owns)}


def _own(
    problem: MigrationProblem, hosts: Hosts, task: str, block: Sequence[str], brokers: Ints | None
) -> _Own:
    room = problem.has_room(task, hosts, without=block)
    columns = problem.may_host(task) & room.any(axis=0)
    if brokers is not None:
        columns &= np.isin(np.arange(len(columns)), brokers)
    if task in problem.start:
        columns[problem.start[task]] = True
    chosen = np.flatnonzero(columns)
    cost, broken = problem.weights(task, hosts, without=block)
    weights = np.where(room, cost + problem.penalty * broken, np.inf)[:, chosen]
    spans = problem.spans(task)[np.ix_(chosen, chosen)]
    prices = problem.migration_cost(task)[np.ix_(chosen, chosen)]
    useful = spans[spans < problem.horizon.steps]
    ages = int(useful.max(initial=1))
    first, sources, paid = _ways(spans, prices, ages)
    initial = np.full(len(chosen) * ages, np.inf)
    if task in problem.start:
        initial[int(np.searchsorted(chosen, problem.start[task])) * ages] = 0.0
    else:
        initial[::ages] = 0.0
    return _Own(task, chosen, ages, weights, first, sources, paid, initial)


def _ways(spans: Ints, prices: Floats, ages: int) -> tuple[Ints, Ints, Floats]:
    """List the ways into each state: stay and grow older, or arrive from where it was long enough."""
    size = len(spans)
    into: list[list[tuple[int, float]]] = [[] for _ in range(size * ages)]
    for a in range(size):
        for age in range(ages):
            into[a * ages + min(age + 1, ages - 1)].append((a * ages + age, 0.0))
            for b in range(size):
                if a != b and age + 1 >= spans[a, b] and np.isfinite(prices[a, b]):
                    into[b * ages].append((a * ages + age, float(prices[a, b])))
    first = np.cumsum([0, *(len(ways) for ways in into)])
    flat = [way for ways in into for way in ways]
    return first, np.array([source for source, _ in flat], np.int64), np.array([price for _, price in flat])


class _Stages:
    """What each step costs in each state of the product."""

    def __init__(self, problem: MigrationProblem, hosts: Hosts, owns: Sequence[_Own]) -> None:
        self._problem, self._owns = problem, owns
        self._coupled = np.zeros((1,) * len(owns))
        axis = {own.task: n for n, own in enumerate(owns)}
        for stream in problem.streams_between:
            if stream.source in axis and stream.target in axis:
                price, late = problem.coupling(stream)
                a, b = axis[stream.source], axis[stream.target]
                pair = (price + problem.penalty * late)[np.ix_(owns[a].columns, owns[b].columns)]
                self._coupled = self._coupled + _spread(pair, a, b, len(owns))
        self._work, self._stored = problem.load(hosts, [own.task for own in owns])
        self._spread_out = np.ix_(*(own.host for own in owns))

    def at(self, step: int) -> Floats:
        """Return the costs of one step, infinite where there is not enough room for all."""
        owns = self._owns
        cost = self._coupled
        for n, own in enumerate(owns):
            cost = cost + own.weights[step].reshape([-1 if n == m else 1 for m in range(len(owns))])
        cost = np.broadcast_to(cost, [len(own.columns) for own in owns])
        return self._with_room(cost, step)[self._spread_out]

    def _with_room(self, cost: Floats, step: int) -> Floats:
        problem, owns = self._problem, self._owns
        needs = (
            (problem.capacity - self._work[step], [problem.workload.task[own.task].work for own in owns]),
            (problem.storage_b - self._stored[step], [problem.state_b(own.task) for own in owns]),
        )
        for free, need in needs:
            for broker in np.flatnonzero(free < sum(need)):
                taken = np.zeros((1,) * len(owns))
                for n, own in enumerate(owns):
                    there = need[n] * (own.columns == broker)
                    taken = taken + there.reshape([-1 if n == m else 1 for m in range(len(owns))])
                cost = np.where(taken > free[broker] * (1 + 1e-12), np.inf, cost)
        return cost


def _spread(pair: Floats, a: int, b: int, axes: int) -> Floats:
    """Return a table over two operators as one over all of them."""
    pair, (a, b) = (pair, (a, b)) if a < b else (pair.T, (b, a))
    shape = [1] * axes
    shape[a], shape[b] = pair.shape
    return pair.reshape(shape)
