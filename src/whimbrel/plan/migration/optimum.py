"""The offline optimum of the mobile migration problem, to judge plans by."""

from __future__ import annotations

from whimbrel.errors import NoPlanError
from whimbrel.plan.migration.joint import plan_jointly
from whimbrel.plan.migration.problem import Ints, MigrationProblem
from whimbrel.plan.migration.program import solve_program


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
