"""What migration plans save against staying and against following greedily, as in section 6 of MigCEP.

    python bench/planning/migration_savings.py [--graphs 20] [--uncertain 4] [--optimum]

1000 vehicles drive for 1000 s through streets in 7.7 x 3.5 km. Operator graphs of two friends and a consumer,
each a random vehicle, begin at random brokers. The costs are those of plans; no packets are sent. The
scenarios `migcep-state-size` and `migcep-uncertainty` carry fewer of them out in the simulator.
"""

from __future__ import annotations

import argparse

from experiments.migration_policies import POLICIES
from experiments.scenarios.driving import TIERS, Town
from experiments.scenarios.migcep import LINES, best_of_all, greedily, predictors_of, problems
from whimbrel.plan.migration import coordinate, stay
from whimbrel.plan.migration.replanning import replan_with_predictions

SETTING = {"mobility": "streets", "vehicles": 1000, "seconds": 1000.0, "seed": 1}


def certain(brokers: str, count: int, *, optimum: bool) -> None:
    """Plan where it is known how vehicles go."""
    town = Town(brokers=brokers, step_s=2.0, **SETTING)
    print("| event | state | saved against static | against greedy | the optimum against static | messages |")
    print("|---|---|---|---|---|---|")
    for event_b in (50, 250):
        for state_b in (0, 5_000, 15_000, 30_000, 60_000):
            some = problems(town, {"graphs": count, "start": "random"}, event_b, state_b)
            agreed = [coordinate(problem, stay(problem)) for problem in some]
            static = sum(problem.value(stay(problem)).cost for problem in some)
            greedy = sum(problem.value(dict(greedily(problem))).cost for problem in some)
            planned = sum(p.value(each.hosts).cost for p, each in zip(some, agreed, strict=True))
            best = sum(p.value(best_of_all(p)).cost for p in some) if optimum else None
            sent = sum(each.sent for each in agreed) / (3 * count)
            print(
                f"| {event_b} B | {state_b:,} B | {1 - planned / static:.1%} | {1 - planned / greedy:.1%} "
                f"| {'-' if best is None else f'{1 - best / static:.1%}'} | {sent:.0f} |",
                flush=True,
            )


def uncertain(brokers: str, count: int, lines: list[str]) -> None:
    """Plan with predictions for 300 s, every 20 s and when a vehicle is not where it was expected."""
    town = Town(brokers=brokers, step_s=2.0, **SETTING)
    predict = predictors_of(town, {"graphs": count})
    print("| event | state | " + " | ".join(lines) + " |")
    print("|---" * (len(lines) + 2) + "|")
    for event_b in (50, 250):
        for state_b in (0, 5_000, 15_000, 60_000):
            some = problems(town, {"graphs": count, "start": "random"}, event_b, state_b)
            greedy = sum(problem.value(dict(greedily(problem))).cost for problem in some)
            cells = []
            for line in lines:
                known, policy = LINES[line]
                cost = sum(
                    p.value(
                        replan_with_predictions(p, predict[known], 20.0, 150, POLICIES[policy]).hosts
                    ).cost
                    for p in some
                )
                cells.append(f"{1 - cost / greedy:.0%}")
            print(f"| {event_b} B | {state_b:,} B | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--uncertain", type=int, default=4, help="graphs for the uncertain part; 0: none")
    parser.add_argument("--lines", nargs="*", default=list(LINES), help="knowledge and policy")
    parser.add_argument("--optimum", action="store_true", help="find the joint optimum, too")
    options = parser.parse_args()
    for brokers in TIERS:
        if options.graphs:
            print(f"\n{brokers}: {options.graphs} operator graphs, all known\n")
            certain(brokers, options.graphs, optimum=options.optimum)
        if options.uncertain:
            print(f"\n{brokers}: {options.uncertain} operator graphs, saved against greedy\n")
            uncertain(brokers, options.uncertain, options.lines)


if __name__ == "__main__":
    main()
