"""The offline optimum as a mixed integer program: all operators, all steps, solved by HiGHS.

Each operator is one unit of flow through its time graph; x[b, t] says that it is on b in step t. A stream
between two operators is split over pairs of hosts so that both ends agree, which makes the product of their x
linear and tight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.errors import MissingDependency, NoPlanError
from whimbrel.plan.migration.problem import MigrationProblem

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Rows:
    """A program in the making: columns with costs and bounds, rows with coefficients."""

    costs: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[tuple[float, float, list[int], list[float]]] = field(default_factory=list)

    def column(self, cost: float, *, integer: bool = False) -> int:
        self.costs.append(cost)
        self.integer.append(integer)
        return len(self.costs) - 1

    def row(self, low: float, high: float, terms: list[tuple[int, float]]) -> None:
        self.rows.append((low, high, [c for c, _ in terms], [v for _, v in terms]))


def solve_program(problem: MigrationProblem, seconds: float = 60.0) -> dict[str, Ints]:
    """Find the best plans for all tasks together.

    Parameters
    ----------
    problem
        What to plan. Its size grows with tasks times steps times brokers squared.
    seconds
        How long to search at most; what was found until then need not be the optimum.

    Raises
    ------
    NoPlanError
        If there is no plan, or none was found in time.
    MissingDependency
        If highspy is not installed.
    """
    try:
        highspy: Any = import_module("highspy")
    except ImportError as error:
        raise MissingDependency("highspy", "the optimum as a mixed integer program", "plan") from error
    program = _Rows()
    present = {task: _add_task(program, problem, task) for task in problem.tasks}
    _add_streams(program, problem, present)
    _add_resources(program, problem, present)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", float(seconds))
    solver.setOptionValue("mip_rel_gap", 1e-9)
    solver.passModel(_model(highspy, program))
    solver.run()
    solution = np.array(solver.getSolution().col_value)
    if not len(solution) or solver.getInfo().primal_solution_status != 2:
        raise NoPlanError("no plan was found that keeps the resources of all brokers, or not in time")
    return {task: solution[columns].argmax(axis=1) for task, columns in present.items()}


def _add_task(program: _Rows, problem: MigrationProblem, task: str) -> Ints:
    """Add the flow of one task; give the column of x for each step and broker."""
    steps, size = problem.horizon.steps, len(problem.numbers)
    cost, broken = problem.meets_places(task)
    weights = cost + problem.penalty * broken
    x = np.array([[program.column(weights[t, b], integer=True) for b in range(size)] for t in range(steps)])
    spans, prices = problem.spans(task), problem.migration_cost(task)
    arrive: list[list[list[int]]] = [[[] for _ in range(size)] for _ in range(steps)]
    leave: list[list[list[int]]] = [[[] for _ in range(size)] for _ in range(steps)]
    during: list[list[list[int]]] = [[[] for _ in range(size)] for _ in range(steps)]
    for t in range(1, steps):
        for a in range(size):
            for b in range(size):
                span = 1 if a == b else int(spans[a, b])
                if span > t or not np.isfinite(prices[a, b]):
                    continue
                edge = program.column(0.0 if a == b else float(prices[a, b]))
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
                here = [(program.column(0.0), 1.0)] if allowed else []
            # The last step has no edges that leave: its own flow goes to the stop vertex.
            stop = [(program.column(0.0), -1.0)] if t == steps - 1 else []
            program.row(0.0, 0.0, [*here, *((edge, -1.0) for edge in leave[t][b]), *stop])
            spent = [(edge, 1.0) for edge in during[t][b]] if t < steps - 1 else [(c, 1.0) for c, _ in stop]
            program.row(0.0, 0.0, [(int(x[t, b]), -1.0), *spent])
            if not may[b] and b != problem.start.get(task):
                program.row(0.0, 0.0, [(int(x[t, b]), 1.0)])
        program.row(1.0, 1.0, [(int(c), 1.0) for c in x[t]])
    return x


def _add_streams(program: _Rows, problem: MigrationProblem, present: dict[str, Ints]) -> None:
    size = len(problem.numbers)
    for stream in problem.streams_between:
        price, late = problem.coupling(stream)
        weight = price + problem.penalty * late
        for here, there in zip(present[stream.source], present[stream.target], strict=True):
            pairs = np.array(
                [[program.column(float(weight[a, b])) for b in range(size)] for a in range(size)]
            )
            for a in range(size):
                program.row(0.0, 0.0, [(int(here[a]), -1.0), *((int(c), 1.0) for c in pairs[a])])
                program.row(0.0, 0.0, [(int(there[a]), -1.0), *((int(c), 1.0) for c in pairs[:, a])])


def _add_resources(program: _Rows, problem: MigrationProblem, present: dict[str, Ints]) -> None:
    work = {task: problem.workload.task[task].work for task in present}
    state = {task: problem.state_b(task) for task in present}
    for limit, need in ((problem.capacity, work), (problem.storage_b, state)):
        for b in np.flatnonzero(limit < sum(need.values())):
            for t in range(problem.horizon.steps):
                terms = [(int(x[t, b]), need[task]) for task, x in present.items() if need[task]]
                program.row(-np.inf, float(limit[b]), terms)


def _model(highspy: Any, program: _Rows) -> Any:
    model = highspy.HighsLp()
    size = len(program.costs)
    model.num_col_, model.num_row_ = size, len(program.rows)
    model.col_cost_ = np.array(program.costs)
    model.col_lower_, model.col_upper_ = np.zeros(size), np.ones(size)
    model.row_lower_ = np.array([low for low, *_ in program.rows])
    model.row_upper_ = np.array([high for _, high, *_ in program.rows])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(columns) for *_, columns, _ in program.rows)])
    model.a_matrix_.index_ = np.array([c for *_, columns, _ in program.rows for c in columns])
    model.a_matrix_.value_ = np.array([v for *_, values in program.rows for v in values])
    kind = highspy.HighsVarType
    model.integrality_ = [kind.kInteger if integer else kind.kContinuous for integer in program.integer]
    return model
