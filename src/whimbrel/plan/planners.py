"""Who decides where tasks run: a name for each planner. All take a workload, a network and an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from whimbrel.errors import NetworkError, NoPlanError, did_you_mean
from whimbrel.plan.board import Board
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.network import Network
from whimbrel.plan.placement import Placement
from whimbrel.plan.workload import Task, Workload


class Plan(Protocol):
    """What comes of planning: it explains itself in words, as a table, as a picture and as JSON."""

    def words(self) -> str:
        """Explain it."""
        ...

    def table(self) -> str:
        """Show it as a table of text."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain data, for JSON."""
        ...

    def draw(self, path: str) -> None:
        """Draw it to a file: PNG or SVG."""
        ...


STARTS = 3
"""From how many brokers with everything on them the greedy planner begins, too."""

Planner = Callable[..., Plan]
"""Takes a workload, a network and an objective; some take settings of their own, too."""


def plan_centralised(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Run everything on one broker: the one where that costs the least.

    Raises
    ------
    NoPlanError
        If no broker has room for everything; the error tells what the best one lacks.
    """
    board = Board(workload, network, objective)
    return _checked(board, _all_on_one(board)[0], "centralised", "no broker can run everything")


def _all_on_one(board: Board) -> list[dict[str, str]]:
    """Give hosts that run everything on one broker, for the best few of them, the best first."""
    tried = [dict.fromkeys(board.workload.task, broker) for broker in board.candidates]
    return _best(board, [(board.cost(hosts), hosts) for hosts in tried], STARTS)


def _best(board: Board, options: list[tuple[float, dict[str, str]]], count: int) -> list[dict[str, str]]:
    """Give the cheapest options that ask too much of nobody; if there are none, those that ask the least.

    Costs are quickly found, and what is too much is not: so that is looked at from the cheapest on, until
    enough are found.
    """
    fits: list[dict[str, str]] = []
    others: list[tuple[float, int]] = []
    ranked = [hosts for _, hosts in sorted(options, key=lambda option: option[0])]
    for number, hosts in enumerate(ranked):
        excess = board.excess(hosts)
        if not excess:
            fits.append(hosts)
            if len(fits) == count:
                break
        others.append((excess, number))
    return fits or [ranked[number] for _, number in sorted(others)[:count]]


def plan_greedy(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Put each task where it costs the least at the time, then move single tasks as long as that helps.

    Tasks are taken in order, so that the inputs of each have their places. While what comes after a task has
    none, it counts as if it ran where it is wanted. Moving ends, because every move makes the excess over
    limits smaller, or the cost at the same excess. As tasks that belong together are not moved together, it
    also begins with everything on one broker, for the best few, and takes the best of what comes of these.
    O(tasks x brokers) looks a round.

    Raises
    ------
    NoPlanError
        If what is found asks too much. The exact planner may still find something.
    """
    board = Board(workload, network, objective)
    first: dict[str, str] = {}
    for task in workload.tasks:
        first = _cheapest(board, first, task)
    starts = [first, *_all_on_one(board)]
    for hosts in starts:
        while _improve(board, hosts):
            pass
    best = min(starts, key=lambda hosts: (board.excess(hosts), board.cost(hosts)))
    return _checked(board, best, "greedy", "no way was found to satisfy everything")


def _cheapest(board: Board, hosts: dict[str, str], task: Task) -> dict[str, str]:
    """Give a task whose readers have no hosts yet the cheapest broker."""
    ends = sorted(_wanted_at(board, task.name)) if board.workload.readers[task.name] else []
    options = []
    for broker in board.candidates:
        tried = {**hosts, task.name: broker}
        ways = sum(board.distance(broker, end) for end in ends)
        options.append((board.cost_around(task, tried) + board.streams[task.name].bytes_s * ways, tried))
    return _best(board, options, 1)[0]


def _wanted_at(board: Board, stream: str) -> frozenset[str]:
    """Give the brokers to which a stream, or what is made of it, is delivered."""
    above = {stream}
    for task in board.workload.tasks:
        if above & {*task.inputs}:
            above.add(task.name)
    return frozenset(
        place for each in board.workload.deliveries if each.stream in above for place in board.places(each.at)
    )


def _improve(board: Board, hosts: dict[str, str]) -> bool:
    """Move single tasks to better brokers; tell whether any was."""
    is_better = False
    for task in board.workload.tasks:
        now = (board.excess(hosts), board.cost_around(task, hosts))
        for broker in board.candidates:
            tried = {**hosts, task.name: broker}
            cost = board.cost_around(task, tried)
            # Sums of floats differ by a little: without a margin, moving could go on for ever.
            is_cheaper = cost < now[1] * (1 - 1e-9)
            if not is_cheaper and not now[0]:
                continue
            excess = board.excess(tried)
            if excess < now[0] - 1e-9 or (excess <= now[0] and is_cheaper):
                hosts[task.name], now, is_better = broker, (excess, cost), True
    return is_better


def plan_exact(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Find hosts that no others beat, as a mixed integer program; see `whimbrel.plan.exact`."""
    from whimbrel.plan.exact import solve

    board = Board(workload, network, objective)
    hosts, notes = solve(board)
    return _checked(board, hosts, "exact", "nothing satisfies everything", notes)


def plan_flow(workload: Workload, network: Network, objective: Objective = Objective.FLOW) -> Placement:
    """Search hosts for which the least flows, by tabu search; see `whimbrel.plan.flow`.

    It keeps the flow small, whatever the objective: the costs are told by flow, too.

    Raises
    ------
    NoPlanError
        If everything that was found overloads a broker or a link, or is late.
    """
    from whimbrel.plan.flow.tabu import place_by_flow

    notes = (
        () if objective is Objective.FLOW else ("the planner flow keeps the flow small, and nothing else",)
    )
    board = Board(workload, network, Objective.FLOW)
    return _checked(board, place_by_flow(workload, network), "flow", "no plan was found", notes)


def plan_migrate(
    workload: Workload, network: Network, objective: Objective = Objective.BDP, **settings: float | None
) -> Plan:
    """Move tasks along with movers, where that pays; settings are those of `plan_moving`."""
    from whimbrel.plan.moving import plan_moving

    return plan_moving(workload, network, objective, **settings)


def plan_pushes_and_pulls(
    workload: Workload, network: Network, objective: Objective = Objective.COST
) -> Plan:
    """Send some events at once and others when asked for; see `whimbrel.plan.pulling`."""
    from whimbrel.plan.pulling import plan_pulling

    return plan_pulling(workload, network, objective)


def _checked(
    board: Board, hosts: dict[str, str], planner: str, trouble: str, notes: tuple[str, ...] = ()
) -> Placement:
    costs = evaluate(board.workload, board.network, hosts, board.objective)
    problems = violations(board.workload, board.network, costs)
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise NoPlanError(f"{trouble}; with the least trouble (planner {planner}):{lines}")
    return Placement(board.workload, board.network, hosts, board.objective, planner, costs, notes)


PLANNERS: dict[str, Planner] = {
    "centralised": plan_centralised,
    "greedy": plan_greedy,
    "static": plan_greedy,
    "exact": plan_exact,
    "flow": plan_flow,
    "migrate": plan_migrate,
    "pushpull": plan_pushes_and_pulls,
}
"""`static` is another name of `greedy`: hosts that stay."""


def planner_named(name: str) -> Planner:
    """Give the planner of a name."""
    if name not in PLANNERS:
        raise NetworkError(f"no planner is named {name!r}", did_you_mean(name, PLANNERS))
    return PLANNERS[name]
