"""Weighted sum: one time graph with expected costs (MigCEP, section 4.2).

C_E(b) is the sum, over all neighbours and all their expected placements ep in a step, of C_pla(ep, b) *
P(ep).
"""

from __future__ import annotations

from whimbrel.plan.migration.problem import Hosts, Ints, MigrationProblem


def plan_by_weighted_sum(problem: MigrationProblem, task: str, hosts: Hosts) -> Ints:
    """Plan a task by expected costs: for large state, which has to set out while it is not certain where to.

    Uncertain plans of movers are in the problem; those of other tasks are given in `hosts`, as
    `problem.chances`.
    """
    return problem.time_graph(task, hosts).shortest().hosts
