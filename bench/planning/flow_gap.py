"""Measure how far assignments by flow are from the optimum, and how long planning takes.

Random networks of 3 to 8 brokers with 3 to 8 tasks are solved exactly, and some of 10 to 14 of both; larger
ones are only timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.plan.drawing import draw

from experiments.flow_optimum import place_exact
from whimbrel.errors import NoPlanError
from whimbrel.plan.flow.baselines import centralised, hop_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.tabu import place_by_flow

PLANNERS = {"tabu search": place_by_flow, "hop-based": hop_based, "centralised": centralised}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--larger", type=int, default=20)
    options = parser.parse_args()
    compare(options.instances, (3, 8))
    compare(options.larger, (10, 14))
    print("\n| brokers | tasks | seconds |\n|---|---|---|")
    for brokers, tasks in ((10, 10), (30, 20), (100, 40)):
        workload, network = draw(7, (brokers, brokers), (tasks, tasks))
        begin = time.process_time()
        place_by_flow(workload, network)
        print(f"| {brokers} | {tasks} | {time.process_time() - begin:.1f} |")


def compare(instances: int, sizes: tuple[int, int]) -> None:
    """Print how far planners are from the optimum of so many problems, and the seconds of the search."""
    gaps: dict[str, list[float]] = {name: [] for name in PLANNERS}
    solved = seed = 0
    seconds = 0.0
    while solved < instances:
        workload, network = draw(seed, sizes, sizes)
        seed += 1
        model = FlowModel(workload, network)
        try:
            best = FlowAssignment(model, place_exact(workload, network)).value().volume_b_s
        except NoPlanError:
            continue
        if best <= 0:
            continue
        solved += 1
        for name, planner in PLANNERS.items():
            begin = time.process_time()
            value = FlowAssignment(model, planner(workload, network)).value()
            seconds += time.process_time() - begin if name == "tabu search" else 0.0
            if value.is_valid:
                gaps[name].append(value.volume_b_s / best - 1)
    print(f"| above the optimum, {solved} problems of {sizes[0]} to {sizes[1]} brokers and tasks "
          "| median | 90 % within | worst | optimal | possible |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for name, each in gaps.items():
        ordered = sorted(each)
        middle, most, worst = statistics.median(each), ordered[int(0.9 * len(each))], ordered[-1]
        share = sum(gap < 1e-6 for gap in each) / len(each)
        print(
            f"| {name} | {middle:.1%} | {most:.1%} | {worst:.1%} | {share:.1%} | {len(each) / solved:.0%} |"
        )
    print(f"{seconds / max(solved, 1):.2f} s a search\n")


if __name__ == "__main__":
    main()
