"""What plans with hosts tell alike, whether these stay or change: when deliveries arrive, and plain data."""

from __future__ import annotations

import math
from typing import Any

from whimbrel.plan.cost import Costs, room
from whimbrel.plan.formatting import aligned, fields, finite
from whimbrel.plan.units import in_seconds
from whimbrel.plan.workload import Task, Workload


def arrivals(workload: Workload, costs: Costs) -> list[str]:
    """Say within what time each delivery arrives: on idle links, and at the most when these are busy."""
    found = []
    for delivery, delay_s, bound_s in zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True):
        limit = "" if math.isinf(delivery.latency_s) else f", and may take {in_seconds(delivery.latency_s)}"
        within, most = in_seconds(delay_s), in_seconds(bound_s)
        busy = "" if within == most else f", at most {most} when links and brokers are busy"
        found.append(f"{delivery.stream} reaches {delivery.at} within {within}{busy}{limit}.")
    return found


def table_of_deliveries(workload: Workload, costs: Costs) -> list[str]:
    """Lay out the same as the lines of a table."""
    rows = [
        [each.stream, each.at, in_seconds(delay), in_seconds(bound), in_seconds(each.latency_s)]
        for each, delay, bound in zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True)
    ]
    return aligned(["delivery", "to", "within", "when busy", "may take"], rows)


def plain_data(workload: Workload, costs: Costs) -> dict[str, Any]:
    """Return the workload and what it asks of links and brokers, for JSON; what has no limit is null."""
    return {
        "feeds": [
            fields(feed, "name", "at", "rate_hz", "size_b", "burst_b", "peaks") for feed in workload.feeds
        ],
        "tasks": [task_data(task) for task in workload.tasks],
        "deliveries": [
            {"stream": each.stream, "at": each.at, "delay_s": finite(delay), "bound_s": finite(bound)}
            | {"latency_s": finite(each.latency_s)}
            for each, delay, bound in zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True)
        ],
        "links": [
            {"between": [link.a, link.b], "traffic_b_s": load, "room_b_s": finite(room(link))}
            for link, load in costs.traffic_b_s.items()
        ],
        "brokers": [
            {"name": name, "work": work, "storage_b": costs.storage_b[name]}
            for name, work in costs.work.items()
        ],
    }


def task_data(task: Task) -> dict[str, Any]:
    """Return a task for JSON."""
    said = fields(task, "name", "rate_hz", "size_b", "burst_b", "peaks", "work", "fixed_b", "window_b")
    return {**said, "inputs": list(task.inputs), "operators": list(task.operators)}
