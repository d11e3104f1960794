"""Fixed hosts found step by step: each task where it costs the least, then moves as long as they help.

A move takes one task, or several that belong together, to one broker: what a task reads and nobody else does
goes along with it, or everything that reads a stream. A chain of tasks that moves one by one would get worse
before it gets better. What a move costs is found for all candidates at once; whether it asks too much of
anybody is looked at from the cheapest on, until one does not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.plan.arrays import Bools, Floats, Ints
from whimbrel.plan.placement_model import FixedHosts, PlacementModel
from whimbrel.plan.workload import Task

STARTS = 3
"""From how many brokers with everything on them the search begins, too."""
RESTARTS, PERTURBED = 6, 3
"""How often the search begins again from the best hosts, with so many tasks moved at random."""
ROOMS = 8
"""How many brokers a task is tried on that have no room for it, and how many for the one that makes room."""
MARGIN = 1e-9
"""Sums of floats differ by a little: without a margin, moving could go on for ever."""

Group = tuple[Task, ...]


def place_greedily(model: PlacementModel) -> dict[str, str]:
    """Return the best hosts from a few starts; they may ask too much (`PlacementModel.excess`).

    A sweep over all groups of tasks costs O(groups x streams of a group x candidates); there are as many as
    something gets better, from `STARTS + 1 + RESTARTS` beginnings.
    """
    groups = list(_groups(model))
    starts = (_one_by_one(model), *all_on_one(model, STARTS))
    best = min((_improved(model, hosts, groups) for hosts in starts), key=lambda hosts: _value(model, hosts))
    generator = np.random.default_rng(len(model.workload.tasks))
    for _ in range(RESTARTS):
        tried = _improved(model, _perturbed(model, best, generator), groups)
        best = min(best, tried, key=lambda hosts: _value(model, hosts))
    return best


def _value(model: PlacementModel, hosts: FixedHosts) -> tuple[float, float]:
    return model.excess(hosts), model.cost(hosts)


def _perturbed(model: PlacementModel, hosts: FixedHosts, generator: np.random.Generator) -> dict[str, str]:
    """Move a few tasks to where others are, or anywhere: what is packed tightly is not unpacked by moves."""
    some = generator.permutation(list(hosts))[:PERTURBED].tolist()
    used = list(dict.fromkeys(hosts.values()))
    places = [used, model.candidates]
    return {**hosts, **{task: str(generator.choice(places[generator.integers(2)])) for task in some}}


def all_on_one(model: PlacementModel, count: int) -> list[dict[str, str]]:
    """Return hosts that run everything on one broker, for the best few of them, the best first."""
    names = [task.name for task in model.workload.tasks]
    return _best(model, {}, names, model.costs_around(model.workload.tasks, {}), count)


def _one_by_one(model: PlacementModel) -> dict[str, str]:
    """Take for each task the cheapest broker, in order, so that the inputs of each have theirs.

    While what comes after a task has none, it counts as if it ran where it is wanted.
    """
    hosts: dict[str, str] = {}
    for task in model.workload.tasks:
        costs = model.costs_around([task], hosts)
        for end in sorted(_wanted_at(model, task.name)) if model.workload.readers[task.name] else ():
            costs += model.streams[task.name].bytes_s * model.distances(end)
        hosts = _best(model, hosts, [task.name], costs, 1)[0]
    return hosts


def _wanted_at(model: PlacementModel, stream: str) -> frozenset[str]:
    """Return the brokers to which a stream, or what is made of it, is delivered."""
    above = {stream}
    for task in model.workload.tasks:
        if above & {*task.inputs}:
            above.add(task.name)
    return frozenset(
        broker
        for delivery in model.workload.deliveries
        if delivery.stream in above
        for broker in model.places(delivery.at)
    )


def _best(
    model: PlacementModel, hosts: FixedHosts, names: list[str], costs: Floats, count: int
) -> list[dict[str, str]]:
    """Put tasks on the cheapest candidates where they are not too much; if there are none, the least so."""
    fits: list[dict[str, str]] = []
    others: list[tuple[float, int, dict[str, str]]] = []
    for number, index in enumerate(np.argsort(costs, kind="stable").tolist()):
        tried = {**hosts, **dict.fromkeys(names, model.candidates[index])}
        excess = model.excess(tried)
        if not excess:
            fits.append(tried)
            if len(fits) == count:
                break
        others.append((excess, number, tried))
    return fits or [tried for _, _, tried in sorted(others, key=lambda other: other[:2])[:count]]


def _groups(model: PlacementModel) -> Iterable[Group]:
    """Return the tasks that move together, besides single ones."""
    workload = model.workload
    groups: dict[frozenset[str], None] = {}
    for task in workload.tasks:
        groups[frozenset(workload.cone(task))] = None
        for name in task.inputs:
            if name in workload.task:
                groups[frozenset((task.name, name))] = None
    for readers in workload.readers.values():
        groups[frozenset(task.name for task in readers)] = None
    return [tuple(t for t in workload.tasks if t.name in names) for names in groups if len(names) > 1]


def _improved(model: PlacementModel, hosts: dict[str, str], groups: list[Group]) -> dict[str, str]:
    """Move tasks as long as that makes the excess smaller, or the cost at the same excess."""
    singles: list[Group] = [(task,) for task in model.workload.tasks]
    while True:
        while _move_each(model, hosts, singles):
            pass
        if not _move_each(model, hosts, groups) and not _make_room(model, hosts, singles + groups):
            return hosts


def _move_each(model: PlacementModel, hosts: dict[str, str], groups: list[Group]) -> bool:
    """Move each group to the best broker for it, if that is better; tell whether any was moved."""
    is_better = False
    for group in groups:
        better = _best_move(model, hosts, group)
        if better is not None:
            hosts.update(dict.fromkeys((task.name for task in group), better))
            is_better = True
    return is_better


def _best_move(model: PlacementModel, hosts: FixedHosts, group: Group) -> str | None:
    """Return the broker to which it is best to move a group; None if it is best where it is."""
    costs, now = model.costs_around(group, hosts), _cost_around(model, hosts, group)
    excess = model.excess(hosts)
    is_cheaper = costs < now * (1 - MARGIN)
    options = np.argsort(costs, kind="stable") if excess else _in_order(costs, is_cheaper)
    best: tuple[float, str] | None = None
    for index in options.tolist():
        broker = model.candidates[index]
        tried = model.excess({**hosts, **dict.fromkeys((task.name for task in group), broker)})
        is_less = tried < (best[0] if best else excess) - MARGIN
        if is_less or (best is None and is_cheaper[index] and tried <= excess):
            best = (tried, broker)
        if best is not None and not best[0]:
            break
    return best[1] if best else None


def _in_order(costs: Floats, among: Bools) -> Ints:
    some = np.flatnonzero(among)
    return some[np.argsort(costs[some], kind="stable")]


def _cost_around(model: PlacementModel, hosts: FixedHosts, group: Group) -> float:
    touched = dict.fromkeys(name for task in group for name in (*task.inputs, task.name))
    return sum(model.stream_cost(name, hosts) for name in touched)


def _make_room(model: PlacementModel, hosts: dict[str, str], groups: list[Group]) -> bool:
    """Move groups to brokers that are too full for them, and others away from there; tell if that helped."""
    if not model.has_limited_brokers:
        return False
    helped = [_push_in(model, hosts, group) for group in groups]
    return any(helped)


def _push_in(model: PlacementModel, hosts: dict[str, str], group: Group) -> bool:
    """Move a group to a broker where it costs less, and others away from there, if all cost less then."""
    costs, now, excess = model.costs_around(group, hosts), model.cost(hosts), model.excess(hosts)
    is_cheaper = costs < _cost_around(model, hosts, group) * (1 - MARGIN)
    for index in _in_order(costs, is_cheaper)[:ROOMS].tolist():
        broker = model.candidates[index]
        tried = {**hosts, **dict.fromkeys((task.name for task in group), broker)}
        others = [task for task in model.workload.tasks if tried[task.name] == broker and task not in group]
        while others and model.excess(tried) > excess:
            options = [(*_cheapest_elsewhere(model, tried, task), task) for task in others]
            _, away, task = min(options, key=lambda option: option[0])
            tried[task.name] = away
            others.remove(task)
        if model.excess(tried) <= excess and model.cost(tried) < now * (1 - MARGIN):
            hosts.update(tried)
            return True
    return False


def _cheapest_elsewhere(model: PlacementModel, hosts: FixedHosts, task: Task) -> tuple[float, str]:
    """Find how much more it costs to have a task on the best broker that has room for it, and that broker."""
    costs, now = model.costs_around((task,), hosts), _cost_around(model, hosts, (task,))
    excess = model.excess(hosts)
    order = np.argsort(costs, kind="stable")[: ROOMS + 1].tolist()
    for index in order:
        broker = model.candidates[index]
        if broker != hosts[task.name] and model.excess({**hosts, task.name: broker}) < excess:
            return float(costs[index]) - now, broker
    return np.inf, hosts[task.name]
