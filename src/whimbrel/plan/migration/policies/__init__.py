"""How an operator plans next to uncertain plans of neighbours (MigCEP, section 4.2): one policy a file."""

from whimbrel.plan.migration.policies.adaptive import plan_adaptively
from whimbrel.plan.migration.policies.k_shortest import chances_to_be_cheapest, plan_k_shortest, ways_apart
from whimbrel.plan.migration.policies.naive import plan_naively
from whimbrel.plan.migration.policies.temporal import plan_skewed, plan_with_shifts
from whimbrel.plan.migration.policies.weighted_sum import plan_by_weighted_sum

__all__ = [
    "chances_to_be_cheapest",
    "plan_adaptively",
    "plan_by_weighted_sum",
    "plan_k_shortest",
    "plan_naively",
    "plan_skewed",
    "plan_with_shifts",
    "ways_apart",
]
