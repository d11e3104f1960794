"""Measure plans on networks of real operators, and over contacts of people as they were recorded.

The recordings are not part of the repository: WHIMBREL_DATA names their folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from greedy_gap import Gaps, note
from tests.plan.real import gathering, last_chance_s, operator_problem, people, zoo

from experiments.poisson import poisson_events, run_plan
from experiments.push_pull_planners import plan_all_push
from whimbrel.errors import NoPlanError
from whimbrel.plan.cost import Objective
from whimbrel.plan.planners import plan_exact, plan_flow, plan_greedy
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.comet import plan_comet

EVERY, MOST = 4, 25
"""Every so many of the operators' networks that have at most so many brokers are planned on."""


def data_folder() -> Path | None:
    """Give the folder of recordings, if there is one."""
    named = os.environ.get("WHIMBREL_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def operators(data: Path) -> str:
    """Compare placements on operators' networks with the optimum."""
    planners = {"greedy": plan_greedy, "flow": plan_flow}
    gaps = {name: Gaps() for name in planners}
    for number, file in enumerate(zoo(data)[::EVERY]):
        workload, network = operator_problem(file, number)
        if len(network.brokers) > MOST:
            continue
        try:
            best = plan_exact(workload, network, Objective.FLOW).costs.total.flow_b_s
        except NoPlanError:
            continue
        for name, planner in planners.items() if best > 0 else ():
            note(gaps[name], planner, workload, network, Objective.FLOW, best)
    count = gaps["greedy"].tried
    head = (
        f"| above the optimum, {count} operators' networks | median | 90 % within | worst | optimal | valid "
    )
    return "\n".join(
        [
            head + "| CPU ms |",
            "|---|---|---|---|---|---|---|",
            *(each.row(name) for name, each in gaps.items()),
        ]
    )


def meetings(data: Path) -> str:
    """Plan an event over recorded contacts, and carry the plans out on them."""
    network = people(data)
    lines = [
        "| tolerance | planner | cost/min, estimated | simulated | delay bound | largest | found | missed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    planners = {"all pushed": plan_all_push, "Comet": plan_comet, "whimbrel": plan_pushpull}
    for tolerance_min in (40, 100):
        composite = gathering(network, tolerance_min * 60.0)
        rates = {part.name: 60 * part.rate_hz for part in composite.parts}
        for name, planner in planners.items():
            plan = planner(composite, network)
            events = poisson_events(rates, last_chance_s(plan, network), np.random.default_rng(1))
            seen = run_plan(plan, network, events)
            lines.append(
                f"| {tolerance_min} min | {name} "
                f"| {60 * plan.estimate.cost_s:,.0f} | {seen.cost_a_minute:,.0f} "
                f"| {plan.estimate.delay_s / 60:.1f} min | {seen.delays_s.max() / 60:.1f} min "
                f"| {len(seen.found)} | {len(seen.missed)} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Print both tables."""
    data = data_folder()
    if data is None:
        raise SystemExit("name the folder of recordings: WHIMBREL_DATA=...")
    print(operators(data) + "\n\n" + meetings(data))


if __name__ == "__main__":
    main()
