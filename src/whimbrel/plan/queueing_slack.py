"""Plan again where a plan is in time only as long as links and brokers are idle.

Planners add up the delays of an idle network, because they have to judge single moves. What streams wait for
each other is known of whole plans only. So if a plan is late when links are busy, it is planned again with as
much less time as its deliveries waited, a few times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from whimbrel.errors import NoPlanError
from whimbrel.plan.cost import Costs, is_more
from whimbrel.plan.plan import Plan
from whimbrel.plan.workload import Workload

ROUNDS = 5
"""How often a plan is made in all."""
NOTE = (
    "some plans would be late when links or brokers are busy; a cheaper one that is not may have been missed"
)


def plan_with_slack(planner: Callable[[Workload], Plan], workload: Workload) -> Plan:
    """Let a planner try again with less time, where what it finds is late only when links are busy."""
    tried, first = workload, None
    for _ in range(ROUNDS):
        try:
            plan = planner(tried)
        except NoPlanError as error:
            first = first or error
            tighter = tightened(tried, error.costs)
            if tighter is None:
                break
            tried = tighter
        else:
            return plan if tried is workload else replace(plan, workload=workload, notes=(*plan.notes, NOTE))
    assert first is not None
    raise first


def tightened(workload: Workload, costs: Costs | None) -> Workload | None:
    """Let planners spare what late deliveries waited; None if that is not what is wrong."""
    if costs is None:
        return None
    judged = list(zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True))
    if any(is_more(delay, delivery.latency_s) for delivery, delay, _ in judged):
        return None  # less time would not help
    deliveries = tuple(
        replace(delivery, spare_s=max(delivery.spare_s, bound - delay))
        if is_more(bound, delivery.latency_s) and math.isfinite(bound)
        else delivery
        for delivery, delay, bound in judged
    )
    return None if deliveries == workload.deliveries else replace(workload, deliveries=deliveries)
