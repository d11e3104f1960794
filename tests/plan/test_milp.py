"""Programs for HiGHS: what is required holds, terms that come twice add up, and what cannot be is None."""

from __future__ import annotations

import sys

import pytest

from whimbrel.errors import MissingDependency
from whimbrel.plan.milp import LinearProgram


def test_the_cheapest_values_keep_what_is_required():
    program = LinearProgram("a test")
    few, many = program.variable(3.0, is_integer=True), program.variable(1.0, upper=10.0)
    program.add_cost(few, -1.0)
    # few is there twice: 2 few + many >= 4.
    program.require([(few, 1.0), (many, 1.0), (few, 1.0)], least=4.0)
    program.require([(many, 1.0)], most=2.5)
    solution = program.solve(10.0, threads=1)
    assert solution is not None
    assert (solution[few], solution[many], solution.gap) == (1.0, 2.0, 0.0)


def test_what_cannot_be_satisfied_has_no_solution():
    program = LinearProgram("a test")
    program.require([(program.variable(), 1.0)], least=2.0, most=2.0)
    assert program.solve(10.0) is None


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingDependency, match="highspy"):
        LinearProgram("the exact planner")
