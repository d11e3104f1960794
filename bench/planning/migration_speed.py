"""How long migration planning takes, over brokers, steps and operators; CPU time, best of several.

python bench/planning/migration_speed.py
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from experiments.mobility import street_trips
from experiments.networks import MIGCEP_AREA, hierarchy
from whimbrel.plan.migration import Horizon, MigrationProblem, attach, brokers_within, coordinate, stay
from whimbrel.plan.migration.local_search import improve
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def best_of(run: Callable[[], object], times: int = 5) -> float:
    """Give the least CPU time in milliseconds; the first run compiles, and is left out."""
    run()
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return 1000 * min(found)


def chain(operators: int) -> Workload:
    """Make operators that read one after the other, with some state."""
    tasks = [
        Task(f"t{n}", ("a",) if n == 0 else (f"t{n - 1}",), 1.0, 50.0, fixed_b=5_000)
        for n in range(operators)
    ]
    return Workload((Feed("a", 1.0, 200.0, "car-0"),), tuple(tasks), (Delivery(tasks[-1].name, "car-1"),))


def problem(shapes: list[tuple[int, int]], steps: int, operators: int) -> MigrationProblem:
    """Make a problem with two vehicles over a cloud and tiers of brokers."""
    network = replace(
        hierarchy(shapes, capacity=math.inf, bandwidth_b_s=1e6),
        movers=street_trips(2, MIGCEP_AREA, until_s=steps, random=np.random.default_rng(3)),
    )
    horizon, workload = Horizon(steps), chain(operators)
    start = {
        task.name: network.brokers[n % len(network.brokers)].name for n, task in enumerate(workload.tasks)
    }
    return MigrationProblem(network, workload, horizon, attach(network, horizon), start)


def one_operator() -> None:
    print("| brokers | steps | shortest path | time graph and path |")
    print("|---|---|---|---|")
    for shapes, steps in (
        ([(4, 2)], 500),
        ([(8, 5)], 100),
        ([(8, 5)], 500),
        ([(8, 5)], 1000),
        ([(10, 10)], 500),
        ([(20, 10)], 500),
    ):
        made = problem(shapes, steps, 1)
        graph = made.time_graph("t0", {})
        path = best_of(graph.shortest)
        both = best_of(lambda made=made: made.time_graph("t0", {}).shortest())
        print(f"| {len(made.numbers)} | {steps} | {path:.1f} ms | {both:.1f} ms |")


def all_operators() -> None:
    print("\n| operators | brokers | steps | one by one | by messages | messages |")
    print("|---|---|---|---|---|---|")
    for operators in (1, 3, 10, 30):
        made = problem([(8, 5)], 500, operators)
        alone = best_of(lambda made=made: improve(made, stay(made), pairs=False), 3)
        agreed = coordinate(made, stay(made))
        told = best_of(lambda made=made: coordinate(made, stay(made)), 3)
        print(f"| {operators} | {len(made.numbers)} | 500 | {alone:.0f} ms | {told:.0f} ms | {agreed.sent} |")


def large_hierarchy() -> None:
    area = (0.0, 0.0, 50_000.0, 50_000.0)
    tiers = [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (96, 96)]
    network: Network = hierarchy(tiers, area, capacity=math.inf, bandwidth_b_s=1e6)
    horizon, workload = Horizon(500), chain(1)
    network = replace(network, movers=street_trips(2, area, until_s=600, random=np.random.default_rng(5)))
    start = time.process_time()
    attachments = attach(network, horizon)
    at = int(attachments["car-0"].hosts[0])
    print(f"\n{len(network.brokers)} brokers; attachments: {1000 * (time.process_time() - start):.0f} ms")
    print("\n| range | brokers looked at | whole set-up and plan | plan alone |")
    print("|---|---|---|---|")
    for range_m in (0, 2_500, 5_000):
        begin = time.process_time()
        made = near_problem(network, workload, horizon, attachments, at, range_m)
        made.time_graph("t0", {}).shortest()
        whole = 1000 * (time.process_time() - begin)
        alone = best_of(lambda made=made: made.time_graph("t0", {}).shortest(), 3)
        print(f"| {range_m} m | {int(made.may_host('t0').sum())} | {whole:.0f} ms | {alone:.0f} ms |")


def near_problem(network, workload, horizon, attachments, at, range_m):
    """Make the problem of one operator that looks at nearby brokers only."""
    close = brokers_within(network, [at], range_m)
    start = {"t0": network.brokers[at].name}
    return MigrationProblem(network, workload, horizon, attachments, start, close)


if __name__ == "__main__":
    one_operator()
    all_operators()
    large_hierarchy()
