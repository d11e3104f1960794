"""The offline optimum of the mobile migration problem, to judge plans by: all operators, all steps.

Where a dynamic program over all operators is too large, it is a mixed integer program. Each operator is one
unit of flow through its time graph; x[b, t] says that it is on b in step t. A stream between two operators is
split over pairs of hosts so that both ends agree, which makes the product of their x linear and tight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.errors import NoPlanError
from whimbrel.plan.migration.joint import plan_jointly
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.milp import LinearProgram

Ints = npt.NDArray[np.int64]
Variables = npt.NDArray[Any]
"""A variable for each step (row) and broker (column)."""


def find_optimum(problem: MigrationProblem, seconds: float = 60.0) -> dict[str, Ints]:
    """Find the best plans for all tasks: by dynamic programming, or as a program where that is too large.

    Parameters
    ----------
    problem
        What to plan: a few tasks, brokers and steps.
    seconds
        How long the program may be searched.
    """
    try:
        return plan_jointly(problem, {}, problem.tasks)
    except NoPlanError:
        return solve_program(problem, seconds)


def solve_program(problem: MigrationProblem, seconds: float = 60.0) -> dict[str, Ints]:
    """Find the best plans for all tasks together, as a program of O(tasks x steps x brokers^2) variables.

    Raises
    ------
    NoPlanError
        If there is no plan, or none was found in time.
    """
    program = LinearProgram("the optimum as a mixed integer program")
    present = {task: _add_task(program, problem, task) for task in problem.tasks}
    _add_streams(program, problem, present)
    _add_resources(program, problem, present)
    solution = program.solve(seconds)
    if solution is None:
        raise NoPlanError("no plan was found that keeps the resources of all brokers, or not in time")
    return {
        task: np.array([[solution[x] for x in row] for row in rows]).argmax(axis=1)
        for task, rows in present.items()
    }


def _add_task(program: LinearProgram, problem: MigrationProblem, task: str) -> Variables:
    """Add the flow of one task; give the x of each step and broker."""
    steps, size = problem.horizon.steps, len(problem.numbers)
    cost, broken = problem.meets_places(task)
    weights = cost + problem.penalty * broken
    x = np.array(
        [[program.variable(weights[t, b], is_integer=True) for b in range(size)] for t in range(steps)],
        object,
    )
    spans, prices = problem.spans(task), problem.migration_cost(task)
    arrive: list[list[list[Any]]] = [[[] for _ in range(size)] for _ in range(steps)]
    leave: list[list[list[Any]]] = [[[] for _ in range(size)] for _ in range(steps)]
    during: list[list[list[Any]]] = [[[] for _ in range(size)] for _ in range(steps)]
    for t in range(1, steps):
        for a in range(size):
            for b in range(size):
                span = 1 if a == b else int(spans[a, b])
                if span > t or not np.isfinite(prices[a, b]):
                    continue
                edge = program.variable(0.0 if a == b else float(prices[a, b]))
                arrive[t][b].append(edge)
                leave[t - span][a].append(edge)
                for between in range(t - span, t):
                    during[between][a].append(edge)
    may = problem.may_host(task)
    for t in range(steps):
        for b in range(size):
            here = [(edge, 1.0) for edge in arrive[t][b]]
            if t == 0:
                begin = problem.start.get(task)
                allowed = b == begin if begin is not None else may[b]
                here = [(program.variable(0.0), 1.0)] if allowed else []
            # The last step has no edges that leave: its own flow goes to the stop vertex.
            stop = [(program.variable(0.0), -1.0)] if t == steps - 1 else []
            program.require([*here, *((edge, -1.0) for edge in leave[t][b]), *stop], least=0.0, most=0.0)
            spent = [(edge, 1.0) for edge in during[t][b]] if t < steps - 1 else [(c, 1.0) for c, _ in stop]
            program.require([(x[t, b], -1.0), *spent], least=0.0, most=0.0)
            if not may[b] and b != problem.start.get(task):
                program.require([(x[t, b], 1.0)], least=0.0, most=0.0)
        program.require([(c, 1.0) for c in x[t]], least=1.0, most=1.0)
    return x


def _add_streams(program: LinearProgram, problem: MigrationProblem, present: dict[str, Variables]) -> None:
    size = len(problem.numbers)
    for stream in problem.streams_between:
        price, late = problem.coupling(stream)
        weight = price + problem.penalty * late
        for here, there in zip(present[stream.source], present[stream.target], strict=True):
            pairs = np.array(
                [[program.variable(float(weight[a, b])) for b in range(size)] for a in range(size)], object
            )
            for a in range(size):
                program.require([(here[a], -1.0), *((c, 1.0) for c in pairs[a])], least=0.0, most=0.0)
                program.require([(there[a], -1.0), *((c, 1.0) for c in pairs[:, a])], least=0.0, most=0.0)


def _add_resources(program: LinearProgram, problem: MigrationProblem, present: dict[str, Variables]) -> None:
    work = {task: problem.workload.task[task].work for task in present}
    state = {task: problem.state_b(task) for task in present}
    for limit, need in ((problem.capacity, work), (problem.storage_b, state)):
        for b in np.flatnonzero(limit < sum(need.values())):
            for t in range(problem.horizon.steps):
                terms = [(x[t, b], need[task]) for task, x in present.items() if need[task]]
                program.require(terms, most=float(limit[b]))
