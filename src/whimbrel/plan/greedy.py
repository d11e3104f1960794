"""Fixed hosts found step by step: each task where it costs the least, then moves as long as they help.

A move takes one task, or several that belong together, to one broker: what a task reads and nobody else does
goes along with it, or everything that reads a stream. A chain of tasks that moves one by one would get worse
before it gets better. What a move costs is found for all candidates at once; whether it asks too much of
anybody is looked at from the cheapest on, until one does not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from whimbrel.plan.board import Board, Fixed
from whimbrel.plan.routes import Floats, Ints
from whimbrel.plan.workload import Task

STARTS = 3
"""From how many brokers with everything on them the search begins, too."""
KICKS, KICKED = 6, 3
"""How often the search begins again from the best hosts, with so many tasks moved at random."""
ROOMS = 8
"""How many brokers a task is tried on that have no room for it, and how many for the one that makes room."""
MARGIN = 1e-9
"""Sums of floats differ by a little: without a margin, moving could go on for ever."""

Group = tuple[Task, ...]
Bools = npt.NDArray[np.bool_]


def place_greedily(board: Board) -> dict[str, str]:
    """Give the best hosts that are found from a few beginnings. They may ask too much: see `Board.excess`."""
    groups = list(_groups(board))
    starts = (_one_by_one(board), *all_on_one(board, STARTS))
    best = min((_improved(board, hosts, groups) for hosts in starts), key=lambda hosts: _value(board, hosts))
    shaken = np.random.default_rng(len(board.workload.tasks))
    for _ in range(KICKS):
        tried = _improved(board, _kicked(board, best, shaken), groups)
        best = min(best, tried, key=lambda hosts: _value(board, hosts))
    return best


def _value(board: Board, hosts: Fixed) -> tuple[float, float]:
    return board.excess(hosts), board.cost(hosts)


def _kicked(board: Board, hosts: Fixed, shaken: np.random.Generator) -> dict[str, str]:
    """Move a few tasks to where others are, or anywhere: what is packed tightly is not unpacked by moves."""
    some = shaken.permutation(list(hosts))[:KICKED].tolist()
    used = list(dict.fromkeys(hosts.values()))
    places = [used, board.candidates]
    return {**hosts, **{task: str(shaken.choice(places[shaken.integers(2)])) for task in some}}


def all_on_one(board: Board, count: int) -> list[dict[str, str]]:
    """Give hosts that run everything on one broker, for the best few of them, the best first."""
    names = [task.name for task in board.workload.tasks]
    return _best(board, {}, names, board.costs_around(board.workload.tasks, {}), count)


def _one_by_one(board: Board) -> dict[str, str]:
    """Give each task the cheapest broker, in order, so that the inputs of each have theirs.

    While what comes after a task has none, it counts as if it ran where it is wanted.
    """
    hosts: dict[str, str] = {}
    for task in board.workload.tasks:
        costs = board.costs_around([task], hosts)
        for end in sorted(_wanted_at(board, task.name)) if board.workload.readers[task.name] else ():
            costs += board.streams[task.name].bytes_s * board.distances(end)
        hosts = _best(board, hosts, [task.name], costs, 1)[0]
    return hosts


def _wanted_at(board: Board, stream: str) -> frozenset[str]:
    """Give the brokers to which a stream, or what is made of it, is delivered."""
    above = {stream}
    for task in board.workload.tasks:
        if above & {*task.inputs}:
            above.add(task.name)
    return frozenset(
        place for each in board.workload.deliveries if each.stream in above for place in board.places(each.at)
    )


def _best(board: Board, hosts: Fixed, names: list[str], costs: Floats, count: int) -> list[dict[str, str]]:
    """Put tasks on the cheapest candidates where they are not too much; if there are none, the least so."""
    fits: list[dict[str, str]] = []
    others: list[tuple[float, int, dict[str, str]]] = []
    for number, place in enumerate(np.argsort(costs, kind="stable").tolist()):
        tried = {**hosts, **dict.fromkeys(names, board.candidates[place])}
        excess = board.excess(tried)
        if not excess:
            fits.append(tried)
            if len(fits) == count:
                break
        others.append((excess, number, tried))
    return fits or [tried for _, _, tried in sorted(others, key=lambda other: other[:2])[:count]]


def _groups(board: Board) -> Iterable[Group]:
    """Give the tasks that move together, besides single ones."""
    workload = board.workload
    found: dict[frozenset[str], None] = {}
    for task in workload.tasks:
        found[frozenset(_cone(board, task))] = None
        for name in task.inputs:
            if name in workload.task:
                found[frozenset((task.name, name))] = None
    for readers in workload.readers.values():
        found[frozenset(task.name for task in readers)] = None
    return [tuple(t for t in workload.tasks if t.name in names) for names in found if len(names) > 1]


def _cone(board: Board, task: Task) -> set[str]:
    """Give a task and the tasks below it that nobody else reads."""
    found, waiting = {task.name}, list(task.inputs)
    while waiting:
        name = waiting.pop()
        if name in board.workload.task and {each.name for each in board.workload.readers[name]} <= found:
            found.add(name)
            waiting += board.workload.task[name].inputs
    return found


def _improved(board: Board, hosts: dict[str, str], groups: list[Group]) -> dict[str, str]:
    """Move tasks as long as that makes the excess smaller, or the cost at the same excess."""
    singles: list[Group] = [(task,) for task in board.workload.tasks]
    while True:
        while _move_each(board, hosts, singles):
            pass
        if not _move_each(board, hosts, groups) and not _make_room(board, hosts, singles + groups):
            return hosts


def _move_each(board: Board, hosts: dict[str, str], groups: list[Group]) -> bool:
    """Move each group to the best broker for it, if that is better; tell whether any was moved."""
    is_better = False
    for group in groups:
        better = _best_move(board, hosts, group)
        if better is not None:
            hosts.update(dict.fromkeys((task.name for task in group), better))
            is_better = True
    return is_better


def _best_move(board: Board, hosts: Fixed, group: Group) -> str | None:
    """Give the broker to which it is best to move a group; None if it is best where it is."""
    costs, now = board.costs_around(group, hosts), _cost_around(board, hosts, group)
    excess = board.excess(hosts)
    is_cheaper = costs < now * (1 - MARGIN)
    options = np.argsort(costs, kind="stable") if excess else _in_order(costs, is_cheaper)
    best: tuple[float, str] | None = None
    for place in options.tolist():
        broker = board.candidates[place]
        tried = board.excess({**hosts, **dict.fromkeys((task.name for task in group), broker)})
        is_less = tried < (best[0] if best else excess) - MARGIN
        if is_less or (best is None and is_cheaper[place] and tried <= excess):
            best = (tried, broker)
        if best is not None and not best[0]:
            break
    return best[1] if best else None


def _in_order(costs: Floats, among: Bools) -> Ints:
    some = np.flatnonzero(among)
    return some[np.argsort(costs[some], kind="stable")]


def _cost_around(board: Board, hosts: Fixed, group: Group) -> float:
    touched = dict.fromkeys(name for task in group for name in (*task.inputs, task.name))
    return sum(board.stream_cost(name, hosts) for name in touched)


def _make_room(board: Board, hosts: dict[str, str], groups: list[Group]) -> bool:
    """Move groups to brokers that are too full for them, and others away from there; tell if that helped."""
    if not board.has_limited_brokers:
        return False
    helped = [_push_in(board, hosts, group) for group in groups]
    return any(helped)


def _push_in(board: Board, hosts: dict[str, str], group: Group) -> bool:
    """Move a group to a broker where it costs less, and others away from there, if all cost less then."""
    costs, now, excess = board.costs_around(group, hosts), board.cost(hosts), board.excess(hosts)
    is_cheaper = costs < _cost_around(board, hosts, group) * (1 - MARGIN)
    for place in _in_order(costs, is_cheaper)[:ROOMS].tolist():
        broker = board.candidates[place]
        tried = {**hosts, **dict.fromkeys((task.name for task in group), broker)}
        others = [task for task in board.workload.tasks if tried[task.name] == broker and task not in group]
        while others and board.excess(tried) > excess:
            options = [(*_cheapest_elsewhere(board, tried, task), task) for task in others]
            _, away, task = min(options, key=lambda option: option[0])
            tried[task.name] = away
            others.remove(task)
        if board.excess(tried) <= excess and board.cost(tried) < now * (1 - MARGIN):
            hosts.update(tried)
            return True
    return False


def _cheapest_elsewhere(board: Board, hosts: Fixed, task: Task) -> tuple[float, str]:
    """Give how much more it costs to have a task on the best broker that has room for it, and that broker."""
    costs, now = board.costs_around((task,), hosts), _cost_around(board, hosts, (task,))
    excess = board.excess(hosts)
    order = np.argsort(costs, kind="stable")[: ROOMS + 1].tolist()
    for place in order:
        broker = board.candidates[place]
        if broker != hosts[task.name] and board.excess({**hosts, task.name: broker}) < excess:
            return float(costs[place]) - now, broker
    return np.inf, hosts[task.name]
