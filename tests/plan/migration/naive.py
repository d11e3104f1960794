"""Migration plans in slow, plain Python: every plan listed, every cost added up link by link."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from whimbrel.plan.migration import NOWHERE, MigrationPlan, MigrationProblem
from whimbrel.plan.network import Network
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.plan.workload import Workload


def naive_cost(
    plans: dict[str, MigrationPlan],
    workload: Workload,
    network: Network,
    attachments: dict[str, MigrationPlan],
) -> tuple[float, float]:
    """Add up what streams and migrations put on each link, step by step."""
    routes = Routes(network, by_delay)
    horizon = next(iter(plans.values())).horizon

    def way(a: int, b: int) -> float:
        if NOWHERE in (a, b):
            return 0.0
        names = network.brokers[a].name, network.brokers[b].name
        return sum(link.delay_s for link in routes.links(*names))

    def host(end: str, step: int) -> int:
        if end in workload.task:
            return int(plans[end].hosts[step])
        at = workload.feed[end].at if end in workload.feed else end
        return network.number[at] if at in network.number else int(attachments[at].hosts[step])

    streams = [(name, task.name) for task in workload.tasks for name in task.inputs]
    streams += [(delivery.stream, delivery.at) for delivery in workload.deliveries]
    placement = migration = 0.0
    for step in range(horizon.steps):
        for source, target in streams:
            bytes_s = workload.stream(source).bytes_s
            placement += bytes_s * horizon.step_s * way(host(source, step), host(target, step))
        for task in workload.tasks:
            if step and host(task.name, step) != host(task.name, step - 1):
                size = task.fixed_b + task.window_b
                migration += size * way(host(task.name, step - 1), host(task.name, step))
    return placement, migration


def all_plans(problem: MigrationProblem, task: str) -> Iterator[tuple[int, ...]]:
    """List every sequence of hosts that leaves enough time for each transfer of state."""
    spans = problem.spans(task)
    for hosts in product(range(len(problem.numbers)), repeat=problem.horizon.steps):
        if task in problem.start and hosts[0] != problem.start[task]:
            continue
        since, good = 0, True
        for step in range(1, len(hosts)):
            if hosts[step] != hosts[step - 1]:
                good = good and step - since >= spans[hosts[step - 1], hosts[step]]
                since = step
        if good:
            yield hosts
