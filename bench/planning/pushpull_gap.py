"""Measure how far push and pull plans are from the optimum.

Random trees of 5 to 10 brokers with 3 to 6 parts are solved exactly (`pushpull_speed.py` times larger ones).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.plan.pushpull.drawing import draw_composite, draw_tree

from experiments.push_pull_planners import plan_all_push, plan_centralised_greedily, plan_exactly
from whimbrel.plan.pushpull.baselines import plan_centralised
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.comet import plan_comet
from whimbrel.plan.pushpull.tree import detection_tree

PLANNERS = {
    "ours": plan_pushpull,
    "Comet": plan_comet,
    "centralised, optimal": plan_centralised,
    "centralised, greedy": plan_centralised_greedily,
    "all pushed": plan_all_push,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200)
    options = parser.parse_args()
    gaps: dict[str, list[float]] = {name: [] for name in PLANNERS}
    for seed in range(options.instances):
        rng = random.Random(seed)
        network = draw_tree(rng, rng.randint(5, 10))
        composite = draw_composite(rng, network, rng.randint(3, 6))
        best = plan_exactly(composite, detection_tree(network, composite)).estimate.cost_s
        for name, planner in PLANNERS.items():
            gaps[name].append(planner(composite, network).estimate.cost_s / best - 1)
    print(f"| above the optimum, {options.instances} problems | median | 90 % within | worst | optimal |")
    print("|---|---|---|---|---|")
    for name, each in gaps.items():
        ordered = sorted(each)
        most, worst = ordered[int(0.9 * len(each))], ordered[-1]
        share = sum(gap < 1e-6 for gap in each) / len(each)
        print(f"| {name} | {statistics.median(each):.1%} | {most:.1%} | {worst:.1%} | {share:.0%} |")


if __name__ == "__main__":
    main()
