"""Measure how long push and pull planning takes, over junctions and over depth.

CPU seconds of `plan_pushpull` on random trees of more and more brokers, and on trees with the same number of
junctions that are flat, and deeper and deeper. `--picture FILE` draws both curves.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.plan.pushpull.drawing import draw_composite, draw_tree

from experiments.push_pull_planners import plan_all_push
from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.tree import detection_tree

SIZES = ((20, 12), (60, 36), (120, 72), (200, 120), (300, 190), (500, 330))
"""Brokers and parts."""
SPREADS = (120, 24, 12, 6, 4)
"""How far up the parent of a broker may be: the nearer, the deeper is the tree."""


def measure(network: Network, parts: int, seed: int) -> tuple[int, int, float, float]:
    """Give junctions, depth, CPU seconds, and the cost as a share of pushing everything."""
    composite = draw_composite(random.Random(seed), network, parts)
    composite = replace(composite, operator="and", tolerance_s=1e5)
    tree = detection_tree(network, composite)
    begin = time.process_time()
    plan = plan_pushpull(composite, network)
    took = time.process_time() - begin
    whole = plan_all_push(composite, network).estimate.cost_s
    return sum(1 for _ in tree.below()), tree.height, took, plan.estimate.cost_s / whole


def main() -> None:
    """Print both tables, and draw them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    print("| brokers | parts | junctions | depth | CPU s | cost, of all pushed |\n|---|---|---|---|---|---|")
    by_size, by_depth = [], []
    for brokers, parts in SIZES:
        found = measure(draw_tree(random.Random(7), brokers, spread=24), parts, 7)
        by_size.append(found)
        print(f"| {brokers} | {parts} | " + "{} | {} | {:.2f} | {:.2g} |".format(*found), flush=True)
    print("\n| junctions | depth | CPU s | cost, of all pushed |\n|---|---|---|---|")
    for spread in SPREADS:
        found = measure(draw_tree(random.Random(7), 120, spread=spread), 72, 7)
        by_depth.append(found)
        print("| {} | {} | {:.2f} | {:.2g} |".format(*found), flush=True)
    if options.picture:
        draw(by_size, by_depth, options.picture)


def draw(
    by_size: list[tuple[int, int, float, float]], by_depth: list[tuple[int, int, float, float]], file: Path
) -> None:
    """Draw CPU seconds over junctions and over depth."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
    left.plot([each[0] for each in by_size], [each[2] for each in by_size], marker="o")
    left.set(xlabel="junctions", ylabel="CPU s", title="Planning time by junctions")
    right.plot([each[1] for each in by_depth], [each[2] for each in by_depth], marker="o")
    right.set(xlabel="depth of the tree", title="120 brokers, by depth")
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.3)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
