"""Assignments to compare with: all at one broker, as few hops as possible, the least volume task by task."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from whimbrel.plan.arrays import Floats
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Task, Workload


def centralised(
    workload: Workload, network: Network, *, at: str | None = None, allowed: Sequence[str] | None = None
) -> dict[str, str]:
    """Run all tasks at one broker: a given one, or the one where the least flows."""
    model = FlowModel(workload, network)
    names = [at] if at is not None else list(allowed or network.number)
    tried = [dict.fromkeys(model.tasks, name) for name in names]
    return min(tried, key=lambda hosts: FlowAssignment(model, hosts).value())


def hop_based(
    workload: Workload, network: Network, *, allowed: Sequence[str] | None = None
) -> dict[str, str]:
    """Run each task where its contents and its result take the fewest hops, whatever their volume.

    Of several such brokers it is the one nearest to the sources, the rule of systems without flows.
    """
    return _one_by_one(workload, network, allowed, lambda _: 1.0)


def volume_based(
    workload: Workload, network: Network, *, allowed: Sequence[str] | None = None
) -> dict[str, str]:
    """Run each task where its contents and its result make the least volume, one task after the other."""
    model = FlowModel(workload, network)
    return _one_by_one(workload, network, allowed, lambda stream: model.bytes_s[stream])


def _one_by_one(
    workload: Workload, network: Network, allowed: Sequence[str] | None, weigh: Callable[[str], float]
) -> dict[str, str]:
    """Choose hosts in the order of the tasks, each the best that has capacity left."""
    model = FlowModel(workload, network)
    left = model.capacity.copy()
    made_at = dict(model.origin)
    may = np.array([network.number[name] for name in (allowed or network.number)], dtype=np.int64)
    for task in workload.tasks:
        fits = may[left[may] >= task.work]
        chosen = fits if fits.size else may
        comes, goes = _cost(model, task, made_at, weigh)
        best = int(min(chosen.tolist(), key=lambda at: (comes[at] + goes[at], comes[at])))
        made_at[task.name] = best
        left[best] -= task.work
    return {name: network.brokers[made_at[name]].name for name in model.tasks}


def _cost(
    model: FlowModel, task: Task, made_at: dict[str, int], weigh: Callable[[str], float]
) -> tuple[Floats, Floats]:
    """Weigh the ways of contents to each broker, and of the result from there to where it ends up."""
    comes, goes = np.zeros(len(model.capacity)), np.zeros(len(model.capacity))
    for stream in task.inputs:
        comes += weigh(stream) * model.hops(made_at[stream])
    for end in ends(model, task.name):
        goes += weigh(task.name) * model.hops(end)
    return comes, goes


def ends(model: FlowModel, stream: str) -> set[int]:
    """Return where a stream ends up: its own targets, and those of what is made from it."""
    targets = set(model.targets[stream])
    for reader in model.readers[stream]:
        targets |= ends(model, model.tasks[reader])
    return targets
