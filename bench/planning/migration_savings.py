"""What migration plans save against staying and against following greedily, as in section 6 of MigCEP.

    python bench/planning/migration_savings.py [--graphs 20] [--uncertain 4]

1000 vehicles drive for 1000 s on a street grid of 7.7 x 3.5 km. Operator graphs of two friends and a
consumer, each a random vehicle, begin at random brokers. The costs are those of plans; no packets are sent.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from whimbrel.plan.migration import Horizon, LeafFinder, LearnedMoves, MigrationProblem, attach
from whimbrel.plan.migration.baselines import follow_greedily
from whimbrel.plan.migration.experiment import (
    AREA_M,
    Predictors,
    compare_certain,
    follow_predictions,
    friends_nearby,
    tiers,
)
from whimbrel.plan.migration.traffic import street_grid
from whimbrel.plan.network import Mover, Network
from whimbrel.plan.routes import Routes, by_delay

SHAPES = {"quad-tree of 21 and cloud": [(1, 1), (2, 2), (4, 4)], "flat 40 and cloud": [(8, 5)]}
SECONDS = 1000


def graphs(network: Network, count: int, cars: int, event_b: float, state_b: float):
    """Draw operator graphs and where they begin: the same ones for all sizes."""
    draw = np.random.default_rng(7)
    for _ in range(count):
        movers = tuple(f"car{n}" for n in draw.choice(cars, 3, replace=False))
        workload = friends_nearby(movers, event_b, state_b)
        yield workload, {task.name: str(draw.choice(list(network.number))) for task in workload.tasks}, movers


def certain(network: Network, count: int) -> None:
    """Plan where it is known how vehicles go."""
    attachments = attach(network, Horizon(SECONDS))
    routes = Routes(network, by_delay)
    print(
        "| event | state | saved against static | saved against greedy | greedy against static | messages |"
    )
    print("|---|---|---|---|---|---|")
    for event_b in (50, 150, 250):
        for state_b in (0, 5_000, 15_000, 30_000, 60_000):
            rows = [
                compare_certain(network, workload, {m: attachments[m] for m in movers}, start, routes=routes)
                for workload, start, movers in graphs(network, count, len(network.movers), event_b, state_b)
            ]
            static, greedy, planned = (
                sum(getattr(row, name) for row in rows) for name in ("static", "greedy", "planned")
            )
            sent = np.mean([row.messages for row in rows])
            print(
                f"| {event_b} B | {state_b:,} B | {1 - planned / static:.0%} | {1 - planned / greedy:.0%} "
                f"| {1 - greedy / static:.0%} | {sent:.0f} |",
                flush=True,
            )


def uncertain(network: Network, count: int) -> None:
    """Plan every 10 s with predictions for the next 200 s; weighted sums."""
    horizon = Horizon(SECONDS // 2, 2.0)
    attachments = attach(network, horizon)
    others = [plan.hosts for plan in list(attachments.values())[200:]]
    learned = LearnedMoves()
    learned.learn(others, horizon)
    predict = Predictors(network, LeafFinder(network), attachments, learned, memory_s=6.0)
    ways = {
        "known": predict.known,
        "route known": predict.on_route,
        "dead reckoning": predict.straight_on,
        "learned": predict.as_others,
    }
    print("| event | state | " + " | ".join(f"{way}: saved against greedy" for way in ways) + " |")
    print("|---" * (len(ways) + 2) + "|")
    for event_b in (50, 250):
        for state_b in (0, 15_000, 60_000):
            cost = dict.fromkeys(["greedy", *ways], 0.0)
            for workload, start, movers in graphs(network, count, 200, event_b, state_b):
                known = {name: attachments[name] for name in movers}
                problem = MigrationProblem(network, workload, horizon, known, start)
                cost["greedy"] += problem.value(follow_greedily(problem, 4.0)).cost
                for way, expected in ways.items():
                    hosts = follow_predictions(problem, expected, every_s=10.0, ahead=100)
                    cost[way] += problem.value(hosts).cost
            saved = " | ".join(f"{1 - cost[way] / cost['greedy']:.0%}" for way in ways)
            print(f"| {event_b} B | {state_b:,} B | {saved} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument(
        "--uncertain", type=int, default=4, help="operator graphs for the uncertain part; 0: none"
    )
    options = parser.parse_args()
    cars: tuple[Mover, ...] = street_grid(1000, SECONDS, AREA_M, seed=1)
    for part, count in ((certain, options.graphs), (uncertain, options.uncertain)):
        for label, shapes in SHAPES.items() if count else ():
            print(f"\n{label}, {part.__name__}: {count} operator graphs\n")
            part(replace(tiers(shapes), movers=cars), count)


if __name__ == "__main__":
    main()
