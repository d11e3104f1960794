"""Tabu search with flow-based greedy moves: hosts of all tasks, with all knowledge of the network.

Algorithms 1 and 2 of the paper, with five additions. A move may take a whole group along: a task and what
only it reads, or everything that reads one stream, since a chain of tasks that moves one by one gets worse
before it gets better. Where no move helps, two tasks change places, since brokers that are full have room for
nothing else. The search begins from several assignments, and again from the best one with a few tasks moved
at random (the same ones every time). And what a move changes is computed from the streams that it touches,
not from all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.flow.baselines import centralised, hop_based, volume_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel, FlowScore, Hosts
from whimbrel.plan.network import Network
from whimbrel.plan.routes import Ints
from whimbrel.plan.workload import Workload

_LOG = logging.getLogger(__name__)
PATIENCE = 20
"""The search ends after so many moves without a better assignment."""

KICKS, KICKED, KICK_PATIENCE = (10, 100, 800), (2, 8), 1
"""The search begins again from the best assignment with a few tasks moved at random (from, to), until nothing
better was found so many times in a row: at least, at most, and between them the third divided by the number
of tasks, since small problems are packed tight."""
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

    Raises
    ------
    NoPlanError
        If every assignment that was found overloads a broker or a link.
    """
    model = FlowModel(workload, network)
    brokers = np.array([network.number[name] for name in (allowed or network.number)])
    found = search_widely(model, brokers, start, patience)
    if not found[1].is_valid:
        raise NoPlanError(
            f"no assignment of {len(workload.tasks)} tasks was found that overloads neither broker nor link "
            f"(the best one by {found[1].overload:.0%} of a capacity); add capacity or bandwidth"
        )
    return found[0]


def search_widely(
    model: FlowModel, brokers: Ints, start: Hosts | None = None, patience: int = PATIENCE
) -> tuple[dict[str, str], FlowScore]:
    """Search from one or several assignments, and again from near the best; give that and its value."""
    starts = [start] if start is not None else list(_starts(model, brokers))
    found = min((search(model, hosts, brokers, patience) for hosts in starts), key=lambda pair: pair[1])
    shaken = np.random.default_rng(len(model.tasks))
    least, most, shared = KICKS
    failed, enough = 0, min(most, max(least, shared // len(model.tasks))) if model.tasks else 0
    while failed < enough:
        tried = search(model, _kicked(found[0], model, brokers, shaken), brokers, KICK_PATIENCE)
        failed = 0 if tried[1].beats(found[1]) else failed + 1
        found = min(found, tried, key=lambda pair: pair[1])
    return found


def replan(workload: Workload, network: Network, hosts: Hosts, *, least_gain: float = 0.05) -> dict[str, str]:
    """Assign again after flows, tasks or brokers have changed, beginning from the hosts of the last plan.

    Tasks that are new begin where they are made of most; those whose broker has gone move. The old hosts
    stay if they are still possible and the new ones would save less than `least_gain` of the volume, since
    moving has its price, too.
    """
    model = FlowModel(workload, network)
    fresh = volume_based(workload, network)
    kept = {name: hosts[name] if hosts.get(name) in network.number else fresh[name] for name in fresh}
    new = place_by_flow(workload, network, start=kept)
    old, now = FlowAssignment(model, kept).value(), FlowAssignment(model, new).value()
    stays = old.is_valid and now.volume_b_s > (1 - least_gain) * old.volume_b_s
    chosen = kept if stays else new
    _LOG.info(
        "planned again: %d of %d tasks move, %.6g B/s before and %.6g B/s with the best hosts found",
        sum(hosts.get(name) != host for name, host in chosen.items()), len(chosen),
        old.volume_b_s, now.volume_b_s,
    )  # fmt: skip
    return chosen


def search(
    model: FlowModel,
    start: Hosts,
    brokers: Ints,
    patience: int = PATIENCE,
) -> tuple[dict[str, str], FlowScore]:
    """Search from one assignment; give the best one found and its value."""
    flows = FlowAssignment(model, start)
    groups = list(_groups(model))
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
        if not _swap(flows):
            return best_hosts, best
        tabu.add(flows.numbers)
        best, best_hosts, since = flows.value(), flows.hosts, 0


def _swap(flows: FlowAssignment) -> bool:
    """Let the two tasks change places that makes things best; tell whether anything got better."""
    best: tuple[FlowScore, int, int] | None = None
    least = flows.value()
    for one, other in combinations(range(len(flows.numbers)), 2):
        if flows.at(one) != flows.at(other):
            _exchange(flows, one, other)
            tried = (flows.value(), one, other)
            if tried[0].beats(least) and (best is None or tried < best):
                best = tried
            _exchange(flows, one, other)
    if best is not None:
        _exchange(flows, *best[1:])
    return best is not None


def _exchange(flows: FlowAssignment, one: int, other: int) -> None:
    first, second = flows.at(one), flows.at(other)
    flows.move(one, second)
    flows.move(other, first)


def _starts(model: FlowModel, brokers: Ints) -> Iterator[Hosts]:
    names = [model.network.brokers[n].name for n in brokers]
    yield volume_based(model.workload, model.network, allowed=names)
    yield hop_based(model.workload, model.network, allowed=names)
    yield centralised(model.workload, model.network, allowed=names)


def _kicked(hosts: Hosts, model: FlowModel, brokers: Ints, shaken: np.random.Generator) -> Hosts:
    """Move a few tasks anywhere: what is packed tightly does not get better by one move at a time."""
    count = min(len(hosts), int(shaken.integers(KICKED[0], KICKED[1] + 1)))
    some = shaken.choice(sorted(hosts), size=count, replace=False)
    names = model.network.brokers
    return {**hosts, **{str(task): names[int(shaken.choice(brokers))].name for task in some}}


def _groups(model: FlowModel) -> Iterable[Group]:
    """List what may move together: single tasks, a task with what only it reads, the readers of a stream."""
    workload = model.workload
    found: dict[Group, None] = {(n,): None for n in range(len(model.tasks))}
    for number, task in enumerate(workload.tasks):
        group = {number}
        waiting = list(task.inputs)
        while waiting:
            name = waiting.pop()
            below = model.task.get(name)
            if below is not None and {model.task[r.name] for r in workload.readers[name]} <= group:
                group.add(below)
                waiting += workload.tasks[below].inputs
        found[tuple(sorted(group))] = None
    for readers in model.readers.values():
        if readers:
            found[tuple(sorted(set(readers)))] = None
    if model.tasks:
        found[tuple(range(len(model.tasks)))] = None
    return found


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
