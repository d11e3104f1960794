"""Ways of MigCEP to plan that gain nothing over those of the product, for the experiments that show it.

Changing data rates: the k shortest ways, and the chance of each to be the cheapest; shifted migrations with
their chances (section 4.2); when not to make a new plan, and how far to look ahead (sections 4.1 and 5.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.plan.migration.plan import changes_of
from whimbrel.plan.migration.policies import POLICIES as OWN
from whimbrel.plan.migration.policies import Policy
from whimbrel.plan.migration.policies.naive import certain_problems
from whimbrel.plan.migration.policies.temporal import shifted
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.time_graph import Path, TimeGraph
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses
from whimbrel.space.kernels.jit import kernel

Floats = npt.NDArray[np.float64]
Distribution = Callable[[Floats, float, float], Floats]
"""The probability that a cost is at most y, given the least and the most that it can be."""

_POINTS = 2_001


def uniform(y: Floats, least: float, most: float) -> Floats:
    """Say that each cost between two bounds is as probable as any other."""
    return np.clip((y - least) / (most - least), 0.0, 1.0)


def plan_k_shortest(
    problem: MigrationProblem,
    task: str,
    hosts: Hosts,
    k: int = 4,
    deviation: float = 0.1,
    distribution: Distribution = uniform,
    *,
    apart: bool = False,
) -> UncertainPlan:
    """Plan the k cheapest ways through one time graph, each with its probability to turn out the cheapest.

    Parameters
    ----------
    deviation
        How far costs may deviate before the time graph is made anew, as a share.
    distribution
        Of costs within that deviation.
    apart
        Take ways that lead elsewhere (`ways_apart`) instead of the k cheapest.
    """
    graph = problem.time_graph(task, hosts)
    paths = ways_apart(graph, k, deviation) if apart else k_shortest(graph, k)
    probabilities = probabilities_to_be_cheapest([path.score for path in paths], deviation, distribution)
    courses = [
        Course(problem.numbers[path.hosts], float(probability))
        for path, probability in zip(paths, probabilities, strict=True)
        if probability > 0
    ]
    return from_courses(task, problem.horizon, courses, problem.workload.task[task].bytes_s)


def ways_apart(graph: TimeGraph, k: int, deviation: float) -> list[Path]:
    """Find up to k cheap ways that are apart, cheapest first.

    The k cheapest ways are mostly one and the same with a migration a step earlier or later: none of them is
    better when rates change. Here the vertices of each way that was found cost more for the next ones, by the
    share `deviation` of what a step of the best way costs.
    """
    best = graph.shortest()
    found = {best.hosts.tobytes(): best}
    dearer = graph
    every, step = np.arange(len(best.hosts)), deviation * best.score / len(best.hosts)
    path = best
    for _ in range(2 * k):
        if len(found) >= k:
            break
        placement = dearer.placement.copy()
        placement[every, np.searchsorted(graph.positions, path.hosts)] += step
        dearer = replace(dearer, placement=placement)
        path = dearer.shortest()
        found.setdefault(path.hosts.tobytes(), replace(path, score=graph.score_of(path.hosts)))
    return sorted(found.values(), key=lambda each: each.score)


def probabilities_to_be_cheapest(
    costs: Sequence[float], deviation: float, distribution: Distribution = uniform
) -> Floats:
    """Return the probability of each cost to be the lowest: P_min(X_j), integrated numerically.

    P_min(X_j) is the integral of P(X_j = y) times the product of P(X_x > y) over all others. Costs lie within
    a share `deviation` of what is given; without one, the lowest ones share the probability.
    """
    given = np.asarray(costs, float)
    least, most = given - deviation * np.abs(given), given + deviation * np.abs(given)
    if not (most > least).all():
        lowest = np.isclose(given, given.min(), rtol=1e-12, atol=0.0)
        return lowest / lowest.sum()
    y = np.linspace(least.min(), most.min(), _POINTS)
    middle = (y[1:] + y[:-1]) / 2
    above = np.array([1.0 - distribution(middle, a, b) for a, b in zip(least, most, strict=True)])
    here = np.array([np.diff(distribution(y, a, b)) for a, b in zip(least, most, strict=True)])
    found = np.array(
        [float((here[j] * np.delete(above, j, axis=0).prod(axis=0)).sum()) for j in range(len(given))]
    )
    return found / found.sum()


def k_shortest(graph: TimeGraph, k: int) -> list[Path]:
    """Find the k cheapest ways with resources, cheapest first; fewer, if there are not so many.

    O(k x steps x brokers^2).
    """
    hosts, scores = shortest_paths(*graph.arrays(), k)
    none = np.zeros(len(graph.placement), dtype=bool)
    return [
        Path(graph.positions[row], float(score), none)
        for row, score in zip(hosts, scores, strict=True)
        if np.isfinite(score)
    ]


@kernel
def shortest_paths(  # noqa: C901, PLR0912 (a kernel)
    placement: Any, allowed: Any, migration: Any, spans: Any, initial: Any, k: int
) -> Any:
    """Find the k cheapest sequences of hosts, cheapest first; arguments as for `shortest_path`.

    Each vertex keeps the k cheapest ways to it. Returns the hosts of each way and their costs; an infinite
    cost means that there are fewer ways.
    """
    steps, size = placement.shape
    cost = np.full((steps + 1, size, k), np.inf)
    before = np.full((steps + 1, size, k), -1)
    rank = np.zeros((steps + 1, size, k), np.int64)
    paid = np.zeros((steps + 1, size))
    run = np.zeros(size, np.int64)
    exists = allowed.copy()
    for b in range(size):
        cost[0, b, 0] = initial[b]
        exists[0, b] = allowed[0, b] or initial[b] < np.inf
    for i in range(1, steps + 1):
        for b in range(size):
            run[b] = run[b] + 1 if exists[i - 1, b] else 0
            paid[i, b] = paid[i - 1, b] + placement[i - 1, b]
        for b in range(size):
            if i < steps and not exists[i, b]:
                continue
            for a in range(size):
                if a == b:
                    span, price = 1, 0.0
                elif i < steps:
                    span, price = spans[b, a], migration[b, a]
                else:
                    continue
                if span > run[a]:
                    continue
                spent = paid[i, a] - paid[i - span, a] + price
                for r in range(k):
                    there = cost[i - span, a, r] + spent
                    if not there < cost[i, b, k - 1]:
                        break
                    place = k - 1
                    while place > 0 and there < cost[i, b, place - 1]:
                        cost[i, b, place] = cost[i, b, place - 1]
                        before[i, b, place] = before[i, b, place - 1]
                        rank[i, b, place] = rank[i, b, place - 1]
                        place -= 1
                    cost[i, b, place], before[i, b, place], rank[i, b, place] = there, a, r
    order = np.argsort(cost[steps].ravel())[:k]
    hosts = np.full((len(order), steps), -1)
    costs = np.empty(len(order))
    for n in range(len(order)):
        at, r, i = order[n] // k, order[n] % k, steps
        costs[n] = cost[steps, at, r]
        if costs[n] == np.inf:
            continue
        while i > 0:
            via = before[i, at, r]
            span = 1 if via == at else spans[at, via]
            for j in range(i - span, i):
                hosts[n, j] = via
            at, r, i = via, rank[i, at, r], i - span
    return hosts, costs


def plan_skewed(
    problem: MigrationProblem, task: str, hosts: Hosts, before: int = 5, after: int = 5, most: int = 16
) -> UncertainPlan:
    """Plan for the most probable course, and tell the probability of each shift to turn out the best."""
    certain = list(certain_problems(problem, task, most))
    base = certain[0][0].time_graph(task, hosts).shortest().hosts
    variants = [base]
    for n in range(len(changes_of(base))):
        variants += shifted(problem, task, base, n, before, after)
    probabilities = np.zeros(len(variants))
    for own, probability in certain:
        graph = own.time_graph(task, hosts)
        probabilities[int(np.argmin([graph.score_of(variant) for variant in variants]))] += probability
    courses = [
        Course(problem.numbers[row], float(p))
        for row, p in zip(variants, probabilities, strict=True)
        if p > 0
    ]
    return from_courses(task, problem.horizon, courses, problem.workload.task[task].bytes_s)


POLICIES: dict[str, Policy] = {
    **OWN,
    "temporally skewed": partial(plan_skewed, most=8),
    "k shortest": plan_k_shortest,
}
"""All policies, by name."""


def weight_threshold(graph: TimeGraph) -> float:
    """Return how far the weight of each step may change before another way can be the shortest.

    Section 5.2 bounds the change of each edge by half the difference between the weights of two ways. Summed
    up, that keeps the order of the ways only where all differences have one sign; half the difference of the
    sums, dealt out evenly over the steps, always does. No change is too large where there is only one way.
    """
    best = k_shortest(graph, 2)
    if len(best) < 2:
        return math.inf
    return (best[1].score - best[0].score) / (2 * len(graph.placement))


def keep_small_changes(old: TimeGraph, new: TimeGraph, threshold: float) -> TimeGraph:
    """Take over only those placement costs that changed by more than a threshold.

    Where the graphs have other brokers or steps, the new one is taken as it is.
    """
    if old.placement.shape != new.placement.shape or not np.array_equal(old.positions, new.positions):
        return new
    changed = np.abs(new.placement - old.placement) > threshold
    return replace(new, placement=np.where(changed, new.placement, old.placement))


def initial_discount(stayed_s: float, patience_s: float) -> float:
    """Return what to count of the first migration: less, the longer an operator stayed, down to nothing.

    With few steps ahead a migration hardly ever pays; this way it happens in the end.
    """
    return max(0.0, 1.0 - stayed_s / patience_s) if patience_s > 0 else 0.0


@dataclass(slots=True)
class StepsAhead:
    """How many steps to plan: more, the longer predictions hold; half as many when one fails."""

    least: int = 10
    most: int = 500
    steps: int = 10

    def held(self) -> int:
        """Note that a mover was where it was expected to be."""
        self.steps = min(self.most, self.steps + self.least)
        return self.steps

    def failed(self) -> int:
        """Note that a mover was elsewhere."""
        self.steps = max(self.least, self.steps // 2)
        return self.steps


def discounted(graph: TimeGraph, share: float) -> TimeGraph:
    """Let the first migration cost a share only: it starts at a broker that nothing leads back to."""
    at = graph.start
    assert at is not None
    away = np.append(
        share * np.where(np.arange(len(graph.positions)) == at, np.inf, graph.migration[at]), np.inf
    )
    return replace(
        graph,
        positions=np.append(graph.positions, graph.positions[at]),
        placement=np.column_stack([graph.placement, graph.placement[:, at]]),
        broken=np.column_stack([graph.broken, graph.broken[:, at]]),
        allowed=np.column_stack([graph.allowed, graph.allowed[:, at]]),
        migration=np.column_stack([np.vstack([graph.migration, away[:-1]]), np.full(len(away), np.inf)]),
        spans=np.column_stack([np.vstack([graph.spans, graph.spans[at]]), np.ones(len(away), np.int64)]),
        start=len(graph.positions),
    )
