"""How far migration plans are from the optimum, over random small problems.

    python bench/planning/migration_gap.py [--problems 240]

The optimum plans all operators at once. Each row is one way to plan: by messages, each operator for itself;
one operator after the other; pairs of neighbours, too; from several beginnings, too.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from experiments.migration_optimum import find_optimum
from experiments.migration_problems import random_problem
from whimbrel.plan.migration import coordinate, follow_greedily, plan_migrations, stay
from whimbrel.plan.migration.local_search import improve

WAYS = {
    "stay": stay,
    "greedy, every 2 steps": lambda problem: follow_greedily(problem, 2.0),
    "by messages": lambda problem: coordinate(problem, stay(problem)).hosts,
    "one by one": lambda problem: improve(problem, stay(problem), pairs=False),
    "one by one and in pairs": lambda problem: improve(problem, stay(problem)),
    "the same from 4 beginnings": plan_migrations,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=240)
    options = parser.parse_args()
    gaps = {way: [] for way in WAYS}
    more = dict.fromkeys(WAYS, 0)
    spent = dict.fromkeys(WAYS, 0.0)
    for seed in range(options.problems):
        problem = random_problem(
            seed, 4 + seed % 2, 8 + seed % 5, 3 + seed % 2, limited=seed % 4 >= 2, late=seed % 3 == 0
        )
        best = problem.value(find_optimum(problem))
        for way, plan in WAYS.items():
            start = time.process_time()
            found = problem.value(plan(problem))
            spent[way] += time.process_time() - start
            assert found.broken >= best.broken - 1e-9
            if found.broken > best.broken + 1e-9:
                more[way] += 1
            else:
                assert found.cost >= best.cost * (1 - 1e-9)
                gaps[way].append(found.cost / best.cost - 1 if best.cost else 0.0)
    print(f"{options.problems} problems: 4-5 brokers, 8-12 steps, 3-4 operators; half with limited capacity,")
    print("a third with latency restrictions. Gap: cost above the optimum.\n")
    print(
        "| way | median gap | mean | 90 % within | worst | at the optimum | breaks more restrictions "
        "| CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for way, found in gaps.items():
        gap = np.array(found)
        print(
            f"| {way} | {np.median(gap):.1%} | {gap.mean():.1%} "
            f"| {np.quantile(gap, 0.9):.1%} | {gap.max():.1%} "
            f"| {np.mean(gap < 1e-9):.0%} "
            f"| {more[way]} | {1000 * spent[way] / options.problems:.0f} |"
        )


if __name__ == "__main__":
    main()
