"""Mixed integer linear programs, written and solved through the modelling interface of HiGHS (`highspy`).

The one place that knows the solver: planners state variables, rows and costs, and get values and a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from whimbrel.errors import MissingDependency

Variable = Any
"""A variable of HiGHS; `highspy` is loaded when a program is begun."""
Terms = Iterable[tuple[Variable, float]]
"""A linear expression: variables with their factors. One may come several times."""
EXACT_GAP = 1e-9
"""Solutions nearer to the best one than this share are the best one."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The best values that were found."""

    values: list[float]
    gap: float
    """By which share a better solution could be better, at most: 0 if none is."""

    def __getitem__(self, variable: Variable) -> float:
        return self.values[variable.index]


class LinearProgram:
    """A program in the making, to be minimised. Variables are at least 0.

    Raises
    ------
    MissingDependency
        If `highspy` is not installed; `purpose` says what it is needed for.
    """

    def __init__(self, purpose: str) -> None:
        try:
            import highspy
        except ImportError as error:
            raise MissingDependency("highspy", purpose, "plan") from error
        self._highs: Any = highspy
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.silent()
        self._variables: list[Variable] = []
        self._costs: list[float] = []
        self._rows: list[tuple[float, dict[int, float], float]] = []

    def variable(self, cost: float = 0.0, upper: float = 1.0, *, is_integer: bool = False) -> Variable:
        """Add a variable."""
        kind = self._highs.HighsVarType.kInteger if is_integer else self._highs.HighsVarType.kContinuous
        self._costs.append(cost)
        self._variables.append(self._solver.addVariable(ub=upper, type=kind))
        return self._variables[-1]

    def add_cost(self, variable: Variable, cost: float) -> None:
        """Let a variable cost more."""
        self._costs[variable.index] += cost

    def require(self, terms: Terms, *, least: float = -math.inf, most: float = math.inf) -> None:
        """Keep an expression between two bounds."""
        merged: dict[int, float] = {}
        for variable, factor in terms:
            merged[variable.index] = merged.get(variable.index, 0.0) + factor
        self._rows.append((least, merged, most))

    def solve(self, limit_s: float, threads: int | None = None) -> Solution | None:
        """Minimise; None if there is no solution, or none was found in time.

        Takes time that is exponential in the number of integer variables, at worst.
        """
        # Rows last: HiGHS turns its matrix round whenever columns follow rows.
        self._solver.addConstrs(self._constraint(*row) for row in self._rows)
        for option, value in (("time_limit", float(limit_s)), ("mip_rel_gap", EXACT_GAP)):
            self._solver.setOptionValue(option, value)
        if threads is not None:
            self._solver.setOptionValue("threads", threads)
        self._solver.minimize(self._sum({n: cost for n, cost in enumerate(self._costs) if cost}))
        info = self._solver.getInfo()
        if info.primal_solution_status != int(self._highs.SolutionStatus.kSolutionStatusFeasible):
            return None
        is_best = self._solver.getModelStatus() == self._highs.HighsModelStatus.kOptimal
        return Solution(list(self._solver.getSolution().col_value), 0.0 if is_best else float(info.mip_gap))

    def _constraint(self, least: float, factors: dict[int, float], most: float) -> Any:
        total = self._sum(factors)
        if least == most:
            return total == least
        return total >= least if math.isinf(most) else total <= most

    def _sum(self, factors: dict[int, float]) -> Any:
        return self._solver.qsum(factor * self._variables[n] for n, factor in factors.items())
