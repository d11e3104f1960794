"""Ways to plan one operator next to uncertain neighbours, by name (MigCEP, section 4.2).

Each costs one search of the time graph, O(steps x brokers^2), or as many as it looks at courses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from whimbrel.errors import NetworkError, did_you_mean
from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.policies.adaptive import plan_adaptively
from whimbrel.plan.migration.policies.naive import plan_naively
from whimbrel.plan.migration.policies.temporal import plan_with_shifts
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.uncertain import UncertainPlan


def plan_by_weighted_sum(problem: MigrationProblem, task: str, hosts: Hosts) -> Ints:
    """Plan by expected costs: C_E(b), the sum of C_pla(ep, b) P(ep) over the placements ep of neighbours.

    For large state, which has to set out while it is not certain where to. Uncertain plans of movers are in
    the problem; those of other tasks are given in `hosts`, as `problem.probabilities`.
    """
    return problem.time_graph(task, hosts).shortest().hosts


Policy = Callable[[MigrationProblem, str, Hosts], Ints | UncertainPlan]
"""How one task plans next to the others: the positions of its hosts, or an uncertain plan."""

POLICIES: dict[str, Policy] = {
    "weighted sum": plan_by_weighted_sum,
    "naive": partial(plan_naively, most=8),
    "temporal adjustment": plan_with_shifts,
    "adaptive": plan_adaptively,
}
"""Ways to plan next to uncertain neighbours, by name: those of the paper, and one of ours."""


def policy_named(name: str) -> Policy:
    """Return the policy of a name."""
    if name not in POLICIES:
        raise NetworkError(
            f"no policy is named {name!r}",
            did_you_mean(name, POLICIES) or f"take one of {', '.join(POLICIES)}",
        )
    return POLICIES[name]
