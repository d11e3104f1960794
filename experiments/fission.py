"""Run a task at every broker that its contents come from, as far as its meaning allows.

A task that looks at each event by itself, or only at events of one source, can run wherever they come in: it
becomes one task for each origin. An aggregate over all origins is cut in two (`<pre>` and `<post>` of the
language): the first half runs at each origin, the second at one broker, the header, which all brokers elect
without talking to each other: every one works out the same bids and takes the lowest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from whimbrel.plan.network import Network
from whimbrel.plan.routes import Routes, by_hops
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def spread(
    workload: Workload, apart: Collection[str] = (), partial_b: Mapping[str, float] | None = None
) -> Workload:
    """Split tasks by the brokers that their contents come from.

    Parameters
    ----------
    apart
        The tasks that may run at each origin by themselves. All that they read must be of that origin.
    partial_b
        The aggregates, with the bytes of a partial result: `NAME<pre>` runs at each origin, `NAME` at one
        broker.
    """
    partial = dict(partial_b or {})
    pieces: dict[str, dict[str, str]] = {feed.name: {feed.at: feed.name} for feed in workload.feeds}
    sent: dict[str, float] = {feed.name: feed.rate_hz for feed in workload.feeds}
    tasks: list[Task] = []
    for task in workload.tasks:
        origins = sorted({origin for name in task.inputs for origin in pieces[name]})
        if len(origins) < 2 or task.name not in {*apart, *partial}:
            tasks.append(
                replace(task, inputs=tuple(p for name in task.inputs for p in pieces[name].values()))
            )
            pieces[task.name] = {origins[0] if len(origins) == 1 else "": task.name}
            continue
        label = f"{task.name}<pre>" if task.name in partial else task.name
        parts = [_piece(task, label, origin, pieces, sent) for origin in origins]
        tasks += parts
        sent.update((part.name, part.rate_hz) for part in parts)
        pieces[task.name] = {origin: part.name for origin, part in zip(origins, parts, strict=True)}
        if task.name in partial:
            tasks[-len(parts) :] = [
                replace(part, rate_hz=task.rate_hz, size_b=partial[task.name]) for part in parts
            ]
            tasks.append(replace(task, inputs=tuple(part.name for part in parts), work=0.0))
            pieces[task.name] = {"": task.name}
    deliveries = [
        replace(delivery, stream=piece)
        for delivery in workload.deliveries
        for piece in pieces[delivery.stream].values()
    ]
    return Workload(workload.feeds, tuple(tasks), tuple(deliveries))


def _piece(
    task: Task, label: str, origin: str, pieces: Mapping[str, Mapping[str, str]], rates: Mapping[str, float]
) -> Task:
    """Return the part of a task that is of one origin, with the share of events that come from there."""
    inputs = tuple(pieces[name][origin] for name in task.inputs if origin in pieces[name])
    every = sum(rates.get(piece, 0.0) for name in task.inputs for piece in pieces[name].values())
    share = sum(rates.get(piece, 0.0) for piece in inputs) / every if every else 0.0
    return replace(
        task,
        name=f"{label}@{origin}",
        inputs=inputs,
        rate_hz=task.rate_hz * share,
        work=task.work * share,
        window_b=task.window_b * share,
    )


def elect_header(
    contributions: Sequence[Feed | Delivery], volumes_b_s: Sequence[float], network: Network
) -> str:
    """Elect the broker that puts partial results together: the one with the lowest bid.

    A bid is the volume that would flow if that broker were the header, and, among equals, its name. Each
    broker works out all bids from the topology alone, so that all agree without a message.
    """
    routes = Routes(network, by_hops)
    bids = []
    for broker in network.brokers:
        hops = routes.from_broker(broker.name).hops
        counts = [int(hops[network.number[each.at]]) for each in contributions]
        if min(counts, default=0) >= 0:
            flows = (count * volume for count, volume in zip(counts, volumes_b_s, strict=True))
            bids.append((sum(flows), broker.name))
    return min(bids)[1]
