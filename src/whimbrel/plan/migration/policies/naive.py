"""Naive policy: one time graph for each combination of courses of the neighbours (MigCEP, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from math import prod

from whimbrel.plan.migration.attachments import attached
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses


def plan_naively(problem: MigrationProblem, task: str, hosts: Hosts, most: int = 16) -> UncertainPlan:
    """Plan a task for each combination of courses: for small state, which can follow what really happens.

    Parameters
    ----------
    problem
        What to plan, with uncertain plans of movers.
    task
        The operator.
    hosts
        Where its neighbours are.
    most
        At most so many combinations, the most probable ones.
    """
    found = [
        Course(problem.numbers[certain.time_graph(task, hosts).shortest().hosts], chance)
        for certain, chance in certain_problems(problem, task, most)
    ]
    return from_courses(task, problem.horizon, found, problem.workload.task[task].bytes_s)


def certain_problems(
    problem: MigrationProblem, task: str, most: int
) -> Iterator[tuple[MigrationProblem, float]]:
    """Give the problem with each combination of courses of the movers around a task, and its chance."""
    around = {name: problem.attachments[name] for name in problem.movers_of(task)}
    uncertain = {name: plan for name, plan in around.items() if isinstance(plan, UncertainPlan)}
    courses = [plan.courses(most) for plan in uncertain.values()]
    for chosen in islice(_combinations(courses), most):
        plans = {
            name: attached(name, problem.horizon, course.hosts, uncertain[name].bandwidth_b_s)
            for name, course in zip(uncertain, chosen, strict=True)
        }
        yield problem.attached_as(plans), prod(course.chance for course in chosen)


def _combinations(courses: Sequence[Sequence[Course]]) -> Iterator[tuple[Course, ...]]:
    """Give combinations of one course each, the most probable ones first."""

    def chance(place: tuple[int, ...]) -> float:
        return prod(own[n].chance for own, n in zip(courses, place, strict=True))

    first = (0,) * len(courses)
    waiting, seen = [(-chance(first), first)], {first}
    while waiting:
        _, place = heappop(waiting)
        yield tuple(own[n] for own, n in zip(courses, place, strict=True))
        for axis, own in enumerate(courses):
            after = (*place[:axis], place[axis] + 1, *place[axis + 1 :])
            if after[axis] < len(own) and after not in seen:
                seen.add(after)
                heappush(waiting, (-chance(after), after))
