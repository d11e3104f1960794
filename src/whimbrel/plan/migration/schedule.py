"""What has to be done when, to carry out a plan (MigCEP, section 4.3, algorithm 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from whimbrel.plan.migration.plan import MigrationPlan, Move
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.uncertain import UncertainPlan
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Task, Workload


class ActionKind(IntEnum):
    """What an action does, in the order in which actions of one time are done."""

    SEND_FIXED = 1
    """Send the fixed state from the source to the target."""
    SEND_WINDOW = 2
    """Begin to send the events that the target needs, those from `since_s` on."""
    REDIRECT = 3
    """Let who sends an input send it to the target, too."""
    STOP = 4
    """Stop at the source; who reads the output reads it from the target from now on."""
    START = 5
    """Start at the target."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do at one time."""

    time_s: float
    kind: ActionKind
    task: str
    source: str
    target: str
    size_b: float = 0.0
    stream: str | None = None
    since_s: float | None = None


def schedule(plans: Iterable[MigrationPlan], workload: Workload, network: Network) -> list[Action]:
    """List the actions of the plans of tasks, in the order of time.

    The fixed state comes first, then the window; the operator goes on at the source until it starts at the
    target.
    """
    actions: list[Action] = []
    for plan in plans:
        for move in plan.moves:
            actions += _actions(move, workload.task[plan.name], network)
    return sorted(actions, key=lambda action: (action.time_s, action.kind, action.task, action.stream or ""))


def _actions(move: Move, task: Task, network: Network) -> list[Action]:
    source, target = network.brokers[move.source].name, network.brokers[move.target].name

    def action(time_s: float, kind: ActionKind, size_b: float = 0.0, stream: str | None = None) -> Action:
        since = move.window_since_s[stream] if kind is ActionKind.SEND_WINDOW and stream is not None else None
        return Action(time_s, kind, task.name, source, target, size_b, stream, since)

    actions = []
    if task.fixed_b:
        actions.append(action(move.fixed_send_s, ActionKind.SEND_FIXED, task.fixed_b))
    for stream in task.inputs:
        if task.window_b:
            share = task.window_b / len(task.inputs)
            actions.append(action(move.window_send_s, ActionKind.SEND_WINDOW, share, stream))
        actions.append(action(move.window_send_s, ActionKind.REDIRECT, stream=stream))
    return [*actions, action(move.ready_s, ActionKind.STOP), action(move.ready_s, ActionKind.START)]


def choose_course(
    plan: UncertainPlan,
    problem: MigrationProblem,
    hosts: Hosts,
    most: int = 16,
) -> MigrationPlan:
    """Choose the one course of an uncertain plan that is carried out.

    It is the course that is now expected to cost least.

    Parameters
    ----------
    most
        How many courses to compare, the most probable ones.
    """
    graph = problem.time_graph(plan.name, hosts)
    rows = [problem.positions(course.hosts) for course in plan.courses(most)]
    return problem.plan(plan.name, min(rows, key=graph.score_of))
