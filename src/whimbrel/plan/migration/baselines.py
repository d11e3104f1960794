"""What plans are compared with: never to migrate, and to go where it is best now (MigCEP, section 6)."""

from __future__ import annotations

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Bools, Ints
from whimbrel.plan.migration.problem import MigrationProblem


def stay(problem: MigrationProblem) -> dict[str, Ints]:
    """Leave each task where it starts."""
    missing = [task for task in problem.tasks if task not in problem.start]
    if missing:
        raise NoPlanError(f"where {missing[0]!r} starts is not known; name its broker in `start`")
    return {task: np.full(problem.horizon.steps, problem.start[task]) for task in problem.tasks}


def follow_greedily(problem: MigrationProblem, every_s: float = 5.0) -> dict[str, Ints]:
    """Every few seconds, migrate each task to where it would cost least at that time.

    What a migration costs, and what comes later, is not looked at. A task that is migrating stays on its way
    (MigCEP, section 6). O(steps / every x tasks x brokers).
    """
    hosts = stay(problem)
    every = problem.horizon.span(every_s)
    spans = {task: problem.spans(task) for task in problem.tasks}
    busy_until = dict.fromkeys(problem.tasks, 0)
    for step in range(0, problem.horizon.steps, every):
        for task in problem.tasks:
            if step < busy_until[task]:
                continue
            now = {name: row[step : step + 1] for name, row in hosts.items()}
            best = _best_now(problem, task, now, step)
            arrival = step + int(spans[task][now[task][0], best])
            if best != now[task][0] and arrival < problem.horizon.steps:
                hosts[task][arrival:] = best
                busy_until[task] = arrival
    return hosts


def _best_now(problem: MigrationProblem, task: str, now: dict[str, Ints], step: int) -> int:
    cost, broken = (table[step].copy() for table in problem.meets_places(task))
    for stream in problem.streams_between:
        if task in stream.key:
            other = now[stream.target if stream.source == task else stream.source][0]
            price, late = problem.coupling(stream)
            cost += price[other]
            broken += late[other]
    weights = cost + problem.penalty * broken
    room = problem.may_host(task)
    if not (np.isinf(problem.capacity).all() and np.isinf(problem.storage_b).all()):
        room = room & _room_now(problem, task, now)
    weights[~room] = np.inf
    here = int(now[task][0])
    best = int(weights.argmin())
    return best if weights[best] < weights[here] - 1e-12 * problem.penalty else here


def _room_now(problem: MigrationProblem, task: str, now: dict[str, Ints]) -> Bools:
    work, stored = np.zeros(len(problem.numbers)), np.zeros(len(problem.numbers))
    for name, row in now.items():
        if name != task:
            work[row[0]] += problem.workload.task[name].work
            stored[row[0]] += problem.state_b(name)
    operator = problem.workload.task[task]
    return (work + operator.work <= problem.capacity) & (stored + problem.state_b(task) <= problem.storage_b)
