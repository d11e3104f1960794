"""Measure how fast networks are simulated: messages over links, workloads, queries with the real engine."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from experiments.mobility import positions, street_grid
from experiments.query_run import QuerySettings, run_query
from experiments.scenarios.hierarchy import QUERY, town
from experiments.workloads import run_workload
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.clock import Clock
from whimbrel.sim.links import Links
from whimbrel.sim.messages import Message

BOX = (0.0, 0.0, 2000.0, 2000.0)
REPEATS = 3


def line(hops: int) -> Network:
    """Make a row of brokers."""
    brokers = tuple(Broker(f"b{n}") for n in range(hops + 1))
    links = tuple(Link(f"b{n}", f"b{n + 1}", 1e6, 0.01) for n in range(hops))
    return Network(brokers, links)


def hops_over_links(count: int = 20_000, hops: int = 4) -> float:
    """Send messages along a row of brokers; give how many links they crossed."""
    clock = Clock()
    links = Links(line(hops), clock)
    for number in range(count):
        sent = Message("b0", f"b{hops}", [None], 100.0)
        clock.at(number * 0.001, lambda sent=sent: links.send(sent))
    clock.run()
    return float(links.traffic.whole.messages)


def steps_of_workload(feeds: int = 40, seconds: float = 120.0) -> float:
    """Run tasks that follow feeds, some of which move; give how many things happened."""
    network = town(BOX, 2)
    leaves = [broker.name for broker in network.brokers if broker.name.startswith("fog-2")]
    workload = Workload(
        tuple(Feed(f"f{n}", 1.0, 500.0, leaves[n % len(leaves)]) for n in range(feeds)),
        tuple(Task(f"t{n}", (f"f{n}",), 0.1, 50.0, window_b=5000.0) for n in range(feeds)),
        tuple(Delivery(f"t{n}", "cloud") for n in range(feeds)),
    )
    placement = {f"t{n}": "cloud" for n in range(feeds)}
    moves = [(10.0 + n, f"t{n}", leaves[n % len(leaves)]) for n in range(feeds)]
    return float(run_workload(workload, network, placement, until_s=seconds, moves=moves).steps)


def events_of_query(cars: int = 200, seconds: float = 60.0) -> float:
    """Find jams among cars, tasks at different brokers; give how many events there were."""
    moving = street_grid(cars, BOX, until_s=seconds, speed_m_s=(1.0, 14.0), random=np.random.default_rng(0))
    events = positions(moving, until_s=seconds)
    placement = {"Slow": "fog-1-0-0", "Standing": "fog-1-1-0", "Jam": "cloud"}
    run_query(compile_text(QUERY), events, town(BOX, 1), placement, settings=QuerySettings(step_s=1.0))
    return float(events.num_rows)


def rate(measure: Callable[[], float]) -> float:
    """Give how much of it is done in a second of one core, the best of several runs."""
    best = 0.0
    for _ in range(REPEATS):
        begun = time.process_time()
        done = measure()
        best = max(best, done / (time.process_time() - begun))
    return best


def main() -> None:
    """Print one row for each kind of run."""
    events_of_query(20, 20.0)  # kernels compile
    for name, measure in (
        ("links crossed a second", hops_over_links),
        ("steps of a workload a second", steps_of_workload),
        ("events of a query a second (real engine)", events_of_query),
    ):
        print(f"{name:<42} {rate(measure):>10,.0f}")


if __name__ == "__main__":
    main()
