"""Two ways to the optimum agree, and no planner goes below it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.plan.migration.naive import all_plans

from experiments.migration_optimum import find_optimum, solve_program
from experiments.migration_problems import random_problem
from whimbrel.errors import NoPlanError
from whimbrel.plan.migration import (
    coordinate,
    follow_greedily,
    plan_jointly,
    plan_migrations,
    stay,
)
from whimbrel.plan.migration.local_search import fits, improve

SEEDS = st.integers(0, 2**32 - 1)
PLANNERS = {
    "stay": stay,
    "greedy": follow_greedily,
    "messages": lambda problem: coordinate(problem, stay(problem)).hosts,
    "one by one": lambda problem: improve(problem, stay(problem), pairs=False),
    "all": plan_migrations,
}


@given(SEEDS, st.booleans(), st.booleans())
@example(seed=739306156, limited=True, late=True)
def test_no_planner_is_better_than_the_optimum_and_all_keep_the_rules(seed, limited, late):
    problem = random_problem(seed, limited=limited, late=late)
    best = plan_jointly(problem, {}, problem.tasks)
    least = problem.score(best)
    for name, planner in PLANNERS.items():
        hosts = planner(problem)
        for task, row in {**hosts}.items():
            _keeps_the_rules(problem, task, row)
        is_possible = fits(problem, hosts)
        assert is_possible or name == "greedy"  # which looks at each task alone, and may overload a broker
        assert problem.score(hosts) >= least * (1 - 1e-9) or not is_possible, name


@given(SEEDS, st.booleans())
def test_the_program_finds_the_same_optimum(seed, limited):
    problem = random_problem(seed, brokers=3, steps=6, tasks=3, limited=limited)
    by_program = problem.value(solve_program(problem))
    jointly = problem.value(plan_jointly(problem, {}, problem.tasks))
    assert by_program.cost == pytest.approx(jointly.cost, rel=1e-6)


@given(SEEDS)
def test_the_optimum_is_the_best_of_all_combinations(seed):
    problem = random_problem(seed, brokers=2, steps=5, tasks=2)
    plans = [[np.array(hosts) for hosts in all_plans(problem, task)] for task in problem.tasks]
    least = min(problem.score(dict(zip(problem.tasks, rows, strict=True))) for rows in product(*plans))
    assert problem.score(find_optimum(problem)) == pytest.approx(least)


def test_plans_are_near_the_optimum():
    gaps = []
    for seed in range(20):
        problem = random_problem(seed)
        least = problem.score(find_optimum(problem))
        gaps.append(problem.score(plan_migrations(problem)) / least - 1)
    assert np.median(gaps) <= 0.02


def test_what_is_too_large_is_refused():
    problem = random_problem(1)
    with pytest.raises(NoPlanError, match="too many states"):
        plan_jointly(problem, {}, problem.tasks, most=10)


def _keeps_the_rules(problem, task, row):
    """It begins where it is, and stays as long as each transfer takes."""
    assert row[0] == problem.start[task]
    spans, since = problem.spans(task), 0
    for step in np.flatnonzero(np.diff(row)) + 1:
        assert step - since >= spans[row[step - 1], row[step]]
        since = step
