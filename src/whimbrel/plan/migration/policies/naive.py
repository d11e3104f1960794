"""Naive policy: one time graph for each combination of courses of the neighbours (MigCEP, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.attachments import attached
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses


def plan_naively(problem: MigrationProblem, task: str, hosts: Hosts, most: int = 16) -> UncertainPlan:
    """Plan a task for each combination of courses: for small state, which can follow what really happens.

    Parameters
    ----------
    most
        At most so many combinations: the most probable ones where they are nearly all there is, else some
        that stand for all.
    """
    courses = [
        Course(problem.numbers[certain.time_graph(task, hosts).shortest().hosts], probability)
        for certain, probability in certain_problems(problem, task, most)
    ]
    return from_courses(task, problem.horizon, courses, problem.workload.task[task].bytes_s)


def certain_problems(
    problem: MigrationProblem, task: str, most: int
) -> Iterator[tuple[MigrationProblem, float]]:
    """Yield problems with combinations of courses of the movers around a task, and the chance of each."""
    around = {name: problem.attachments[name] for name in problem.movers_of(task)}
    uncertain = {name: plan for name, plan in around.items() if isinstance(plan, UncertainPlan)}
    for chosen, probability in combinations_of(list(uncertain.values()), most):
        plans = {
            name: attached(name, problem.horizon, hosts, plan.bandwidth_b_s)
            for (name, plan), hosts in zip(uncertain.items(), chosen, strict=True)
        }
        yield problem.attached_as(plans), probability


def combinations_of(plans: Sequence[UncertainPlan], most: int) -> Iterator[tuple[tuple[Ints, ...], float]]:
    """Return combinations of one course of each plan, and their probabilities.

    If there are more than `most`, samples of each plan are dealt out to combinations of equal chance (a Latin
    hypercube): the first ones of all combinations would be those of one corner.
    """
    likely = [_likely(plan, most) for plan in plans]
    if prod(map(len, likely)) <= most:
        for chosen in product(*likely):
            yield tuple(course.hosts for course in chosen), prod(course.probability for course in chosen)
        return
    generator = np.random.default_rng(most)
    # The first plan keeps its order: one plan alone is dealt out evenly.
    orders = [np.arange(most), *(generator.permutation(most) for _ in plans[1:])]
    samples = [_samples(plan, most)[order] for plan, order in zip(plans, orders, strict=True)]
    for n in range(most):
        yield tuple(rows[n] for rows in samples), 1.0 / most


# Tasks plan several times next to the same plans of movers.


@lru_cache(maxsize=32)
def _likely(plan: UncertainPlan, most: int) -> list[Course]:
    return plan.likely(most)


@lru_cache(maxsize=32)
def _samples(plan: UncertainPlan, most: int) -> Ints:
    return plan.samples(most)
