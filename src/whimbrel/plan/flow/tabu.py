"""Tabu search with flow-based greedy moves: hosts of all tasks, with all knowledge of the network.

Algorithms 1 and 2 of the paper, with five additions. A move may take a whole group along: a task and what
only it reads, or everything that reads one stream, since a chain of tasks that moves one by one gets worse
before it gets better. Where no move helps, two tasks change places, since brokers that are full have room for
nothing else. The search begins from several assignments, and again from the best one with a few tasks moved
at random (the same ones every time). And what a move changes is computed from the streams that it touches,
not from all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Ints
from whimbrel.plan.flow.baselines import centralised, hop_based, volume_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel, FlowScore, Hosts
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Workload

PATIENCE = 20
"""The search ends after so many moves without a better assignment."""

RESTARTS, PERTURBED, RESTART_PATIENCE = (10, 100, 800), (2, 8), 1
"""Iterated local search: it begins again from the best assignment with a few tasks moved at random (from,
to), until nothing better was found so many times in a row: at least, at most, and between them the third
divided by the number of tasks, since small problems are packed tight."""
WIDTH, ENOUGH = 16, 2
"""Brokers that are tried for each group in a move: those where least would flow, until for so many of them
nothing is overloaded."""

Group = tuple[int, ...]


def place_by_flow(
    workload: Workload,
    network: Network,
    *,
    start: Hosts | None = None,
    allowed: Sequence[str] | None = None,
    patience: int = PATIENCE,
    grouped: bool = False,
) -> dict[str, str]:
    """Assign every task to a broker so that little flows: tabu search with flow-based greedy moves.

    Cost: each move tries every broker for every group once, and what a trial costs depends on the streams
    of the group and on how long their ways are.

    Parameters
    ----------
    start
        Hosts to begin from, such as those of the last plan; else several are tried.
    allowed
        The brokers that may run tasks; else all.
    grouped
        Keep tasks that are made of each other on one broker (section 5 of the paper).

    Raises
    ------
    NoPlanError
        If every assignment that was found overloads a broker or a link.
    """
    model = FlowModel(workload, network)
    brokers = np.array([network.number[name] for name in (allowed or network.number)])
    units = _units(model, grouped=grouped)
    best = search_widely(model, brokers, start, patience, units)
    if not best[1].is_valid:
        raise NoPlanError(
            f"no assignment of {len(workload.tasks)} tasks was found that overloads neither broker nor link "
            f"(the best one by {best[1].overload:.0%} of a capacity); add capacity or bandwidth"
        )
    return best[0]


def search_widely(
    model: FlowModel,
    brokers: Ints,
    start: Hosts | None = None,
    patience: int = PATIENCE,
    units: Sequence[Group] | None = None,
) -> tuple[dict[str, str], FlowScore]:
    """Search from one or several assignments, and again from near the best; give that and its value."""
    units = _units(model) if units is None else units
    starts = [start] if start is not None else list(_starts(model, brokers))
    best = min(
        (search(model, _together(model, hosts, units), brokers, patience, units) for hosts in starts),
        key=lambda pair: pair[1],
    )
    generator = np.random.default_rng(len(model.tasks))
    least, most, shared = RESTARTS
    failed, enough = 0, min(most, max(least, shared // len(model.tasks))) if model.tasks else 0
    while failed < enough:
        hosts = _perturbed(best[0], model, brokers, units, generator)
        tried = search(model, hosts, brokers, RESTART_PATIENCE, units)
        failed = 0 if tried[1].beats(best[1]) else failed + 1
        best = min(best, tried, key=lambda pair: pair[1])
    return best


def hosts_to_begin_with(workload: Workload, network: Network, previous: Hosts) -> dict[str, str]:
    """Return the hosts of the last plan; what is new, or whose broker has gone, begins as volumes say."""
    fresh = volume_based(workload, network)
    return {name: previous[name] if previous.get(name) in network.number else fresh[name] for name in fresh}


def search(
    model: FlowModel,
    start: Hosts,
    brokers: Ints,
    patience: int = PATIENCE,
    units: Sequence[Group] | None = None,
) -> tuple[dict[str, str], FlowScore]:
    """Search from one assignment; give the best one found and its value.

    Parameters
    ----------
    units
        The tasks that never part; else each by itself.
    """
    flows = FlowAssignment(model, start)
    units = _units(model) if units is None else units
    groups = _groups(model) if len(units) == len(model.tasks) else [*units, tuple(range(len(model.tasks)))]
    tabu = {flows.numbers}
    best, best_hosts, since = flows.value(), flows.hosts, 0
    while True:
        while since < patience:
            move = _best_move(flows, groups, brokers, tabu)
            if move is None:
                break
            _apply(flows, *move)
            tabu.add(flows.numbers)
            since += 1
            if flows.value().beats(best):
                best, best_hosts, since = flows.value(), flows.hosts, 0
        flows = FlowAssignment(model, best_hosts)
        if not _swap(flows, units):
            return best_hosts, best
        tabu.add(flows.numbers)
        best, best_hosts, since = flows.value(), flows.hosts, 0


def _swap(flows: FlowAssignment, units: Sequence[Group]) -> bool:
    """Let the two units change places that makes things best; tell whether anything got better."""
    best: tuple[FlowScore, Group, Group] | None = None
    least = flows.value()
    for one, other in combinations(units, 2):
        if flows.at(one[0]) != flows.at(other[0]):
            _exchange(flows, one, other)
            tried = (flows.value(), one, other)
            if tried[0].beats(least) and (best is None or tried < best):
                best = tried
            _exchange(flows, one, other)
    if best is not None:
        _exchange(flows, *best[1:])
    return best is not None


def _exchange(flows: FlowAssignment, one: Group, other: Group) -> None:
    first, second = flows.at(one[0]), flows.at(other[0])
    _apply(flows, one, second)
    _apply(flows, other, first)


def _units(model: FlowModel, *, grouped: bool = False) -> list[Group]:
    """List what never parts: single tasks, or groups of tasks that are made of each other."""
    units = [{n} for n in range(len(model.tasks))]
    for reader, task in enumerate(model.workload.tasks) if grouped else ():
        joined = {reader, *(model.task[name] for name in task.inputs if name in model.task)}
        apart = [unit for unit in units if not unit & joined]
        units = [*apart, joined.union(*(unit for unit in units if unit & joined))]
    return [tuple(sorted(unit)) for unit in units]


def _together(model: FlowModel, hosts: Hosts, units: Sequence[Group]) -> dict[str, str]:
    """Put each unit where its last task is."""
    return {model.tasks[n]: hosts[model.tasks[unit[-1]]] for unit in units for n in unit}


def _starts(model: FlowModel, brokers: Ints) -> Iterator[Hosts]:
    names = [model.network.brokers[n].name for n in brokers]
    yield volume_based(model.workload, model.network, allowed=names)
    yield hop_based(model.workload, model.network, allowed=names)
    yield centralised(model.workload, model.network, allowed=names)


def _perturbed(
    hosts: Hosts, model: FlowModel, brokers: Ints, units: Sequence[Group], generator: np.random.Generator
) -> dict[str, str]:
    """Move a few tasks anywhere: what is packed tightly does not get better by one move at a time."""
    count = min(len(hosts), int(generator.integers(PERTURBED[0], PERTURBED[1] + 1)))
    chosen = generator.choice(sorted(hosts), size=count, replace=False)
    names = model.network.brokers
    moved = {**hosts, **{str(task): names[int(generator.choice(brokers))].name for task in chosen}}
    return _together(model, moved, units)


def _groups(model: FlowModel) -> Iterable[Group]:
    """List what may move together: single tasks, a task with what only it reads, the readers of a stream."""
    workload = model.workload
    groups: dict[Group, None] = {(n,): None for n in range(len(model.tasks))}
    for task in workload.tasks:
        groups[tuple(sorted(model.task[name] for name in workload.cone(task)))] = None
    for readers in model.readers.values():
        if readers:
            groups[tuple(sorted(set(readers)))] = None
    if model.tasks:
        groups[tuple(range(len(model.tasks)))] = None
    return groups


def _best_move(
    flows: FlowAssignment, groups: Iterable[Group], brokers: Ints, tabu: set[tuple[int, ...]]
) -> tuple[Group, int] | None:
    """Try the brokers that pull each group most; give the group and the broker of the best assignment."""
    best: tuple[FlowScore, Group, int] | None = None
    for group in groups:
        before = [flows.at(task) for task in group]
        possible = 0
        for broker in _nearest(flows, group, brokers):
            if all(at == broker for at in before):
                continue
            _apply(flows, group, broker)
            if flows.numbers not in tabu:
                tried = (flows.value(), group, broker)
                best = tried if best is None else min(best, tried)
                possible += tried[0].is_valid
                if possible >= ENOUGH:
                    break
        for task, at in zip(group, before, strict=True):
            flows.move(task, at)
    return None if best is None else best[1:]


def _nearest(flows: FlowAssignment, group: Group, brokers: Ints) -> list[int]:
    pull = flows.pull(group)[brokers]
    few = np.argsort(pull, kind="stable")[:WIDTH]
    return [int(n) for n in brokers[few[np.isfinite(pull[few])]]]


def _apply(flows: FlowAssignment, group: Group, broker: int) -> None:
    for task in group:
        flows.move(task, broker)
