"""Measure how far greedy placements are from the optimum, for each objective, and how long both take.

Random networks of 3 to 8 brokers with 3 to 8 tasks; brokers have limits, links differ in delay and cost, and
in a third of the problems they are narrow, too.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.plan.drawing import draw

from whimbrel.errors import NoPlanError
from whimbrel.plan.cost import Objective, violations
from whimbrel.plan.network import Network
from whimbrel.plan.plan import Plan
from whimbrel.plan.planners import plan_centralised, plan_exact, plan_greedy
from whimbrel.plan.workload import Workload

PLANNERS: dict[str, Callable[..., Plan]] = {"greedy": plan_greedy, "centralised": plan_centralised}


@dataclass
class Gaps:
    """By how much plans cost more than the best one."""

    of: list[float] = field(default_factory=list)
    tried: int = 0
    seconds: float = 0.0

    def row(self, name: str) -> str:
        """Write them as a row of the table."""
        ordered = sorted(self.of)
        share = sum(gap < 1e-6 for gap in ordered) / len(ordered)
        return (
            f"| {name} | {statistics.median(ordered):.1%} | {ordered[int(0.9 * len(ordered))]:.1%} "
            f"| {ordered[-1]:.1%} | {share:.0%} | {len(ordered) / self.tried:.0%} "
            f"| {1000 * self.seconds / self.tried:.0f} |"
        )


def problem(seed: int) -> tuple[Workload, Network]:
    """Draw a problem."""
    workload, network = draw(seed)
    rng = random.Random(seed)
    narrow = (2_000.0, 20_000.0, float("inf")) if seed % 3 == 0 else (float("inf"),)
    links = tuple(
        replace(
            link,
            latency_s=rng.choice([0.01, 0.05, 0.2]),
            cost=rng.choice([1.0, 2.0, 5.0]),
            bandwidth_b_s=rng.choice(narrow),
        )
        for link in network.links
    )
    return workload, replace(network, links=links)


def measure(objective: Objective, instances: int) -> tuple[dict[str, Gaps], float]:
    """Give the gaps of each planner, and the seconds that the exact one takes for a problem."""
    gaps = {name: Gaps() for name in PLANNERS}
    solved = seed = 0
    exact_s = 0.0
    while solved < instances:
        workload, network = problem(seed)
        seed += 1
        begin = time.process_time()
        try:
            best = plan_exact(workload, network, objective).costs.total.of(objective)
        except NoPlanError:
            continue
        exact_s += time.process_time() - begin
        if best <= 0:
            continue
        solved += 1
        for name, planner in PLANNERS.items():
            note(gaps[name], planner, workload, network, objective, best)
    return gaps, exact_s / solved


def note(
    gaps: Gaps,
    planner: Callable[..., Plan],
    workload: Workload,
    network: Network,
    objective: Objective,
    best: float,
) -> None:
    """Plan once, and note how much worse that is than the best; a plan below it would be an error."""
    gaps.tried += 1
    begin = time.process_time()
    try:
        plan = planner(workload, network, objective)
    except NoPlanError:
        return
    finally:
        gaps.seconds += time.process_time() - begin
    assert not violations(workload, network, plan.costs)
    gap = plan.costs.total.of(objective) / best - 1
    assert gap > -1e-6, f"{planner.__name__} is below the optimum"
    gaps.of.append(max(gap, 0.0))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200, help="problems for each objective")
    options = parser.parse_args()
    print(
        f"| above the optimum, {options.instances} problems | median | 90 % within | worst | optimal "
        "| valid | CPU ms |\n|---|---|---|---|---|---|---|"
    )
    for objective in Objective:
        gaps, exact_s = measure(objective, options.instances)
        for name, each in gaps.items():
            print(each.row(f"{name}, {objective.value}"))
        print(
            f"| exact, {objective.value} | 0.0% | 0.0% | 0.0% | 100% | 100% | {1000 * exact_s:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
