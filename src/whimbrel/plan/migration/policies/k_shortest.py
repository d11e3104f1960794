"""Changing data rates: the k shortest ways, and the chance of each to be the cheapest (MigCEP, 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.time_graph import Path, TimeGraph
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses

Floats = npt.NDArray[np.float64]
Distribution = Callable[[Floats, float, float], Floats]
"""The chance that a cost is at most y, given the least and the most that it can be."""

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
    """Plan the k cheapest ways through one time graph, each with its chance to turn out the cheapest.

    Parameters
    ----------
    problem
        What to plan.
    task
        The operator.
    hosts
        Where its neighbours are.
    k
        How many ways.
    deviation
        How far costs may deviate before the time graph is made anew, as a share.
    distribution
        Of costs within that deviation.
    apart
        Take ways that lead elsewhere (`ways_apart`) instead of the k cheapest.
    """
    graph = problem.time_graph(task, hosts)
    paths = ways_apart(graph, k, deviation) if apart else graph.k_shortest(k)
    chances = chances_to_be_cheapest([path.score for path in paths], deviation, distribution)
    courses = [
        Course(problem.numbers[path.hosts], float(chance))
        for path, chance in zip(paths, chances, strict=True)
        if chance > 0
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


def chances_to_be_cheapest(
    costs: Sequence[float], deviation: float, distribution: Distribution = uniform
) -> Floats:
    """Return the chance of each cost to be the lowest: P_min(X_j), integrated numerically.

    P_min(X_j) is the integral of P(X_j = y) times the product of P(X_x > y) over all others. Costs lie within
    a share `deviation` of what is given; without one, the lowest ones share the chance.
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
