"""Plan again and again with what is expected of movers, and carry out the first part of each (MigCEP, 4).

A new plan is made in regular intervals, and when a mover is not where it was expected most: the paper's
deviation from what was predicted. A migration that has begun is carried out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.baselines import stay
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.local_search import fits, slack
from whimbrel.plan.migration.plan import NOWHERE, MigrationPlan, changes_of
from whimbrel.plan.migration.policies import POLICIES, Policy
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.migration.radius import brokers_within
from whimbrel.plan.migration.schedule import choose_course
from whimbrel.plan.migration.uncertain import UncertainPlan

Predict = Callable[[str, Horizon], MigrationPlan | UncertainPlan]
"""Where a mover is expected to be in the steps ahead, told at the first of them."""
_LOG = logging.getLogger(__name__)
ROUNDS = 3
"""How often tasks that tell each other uncertain plans plan anew: nothing says that they come to an end."""


@dataclass(slots=True)
class ReplanningRun:
    """What was carried out, and how many plans it took."""

    hosts: dict[str, Ints]
    """For each task, the position of its host in each step."""
    plans: int = 0


@dataclass(slots=True)
class _Now:
    """The plan in force: what was expected at which step, and the hosts from then on."""

    step: int
    problem: MigrationProblem
    hosts: dict[str, Ints]
    expected: dict[str, Ints] = field(default_factory=dict)
    """For each mover, the number of its most probable broker in each step."""


def replan_with_predictions(
    problem: MigrationProblem,
    predict: Predict,
    every_s: float = 10.0,
    ahead: int = 120,
    policy: Policy = POLICIES["adaptive"],
    *,
    at_once: bool = True,
    range_m: float | None = None,
) -> ReplanningRun:
    """Plan again and again with what is predicted of movers, and carry out the first part of each plan.

    Each plan costs up to `ROUNDS` searches by the policy for every task (MigCEP, sections 4.1 and 4.2).

    Parameters
    ----------
    problem
        What really happens. Of what lies ahead only `predict` knows; where movers are is seen in each step.
    predict
        What is expected of a mover.
    every_s
        How often a new plan is made at least.
    ahead
        How many steps it looks ahead.
    policy
        How each task plans.
    at_once
        Plan anew as soon as a mover is elsewhere than was expected most, too.
    range_m
        Each task looks at brokers so near to its present one, and those above them; None: at all.
    """
    whole = problem.horizon
    names = [name for name in problem.attachments if name not in problem.network.number]
    truth = {name: _hosts_of(problem, name) for name in names}
    hosts = {task: np.empty(whole.steps, np.int64) for task in problem.tasks}
    every, now, plans, early = whole.span(every_s), None, 0, 0
    for step in range(whole.steps):
        due = now is None or step - now.step >= every
        if due or (at_once and any(_is_elsewhere(now, name, truth[name], step) for name in names)):
            horizon = Horizon(ahead, whole.step_s, whole.time_s(step))
            expected = {name: predict(name, horizon) for name in names}
            now = _plan(problem, horizon, expected, now, step, policy, range_m)
            plans += 1
            early += not due
        assert now is not None
        for task, row in now.hosts.items():
            hosts[task][step] = row[min(step - now.step, ahead - 1)]
    _LOG.info(
        "planned %d times in %d steps, %d times because a mover was elsewhere than expected",
        plans, whole.steps, early,
    )  # fmt: skip
    return ReplanningRun(hosts, plans)


def _hosts_of(problem: MigrationProblem, name: str) -> Ints:
    plan = problem.attachments[name]
    assert isinstance(plan, MigrationPlan)
    return plan.hosts


def _is_elsewhere(now: _Now | None, name: str, truth: Ints, step: int) -> bool:
    if now is None:
        return True
    expected = now.expected[name]
    return bool(expected[min(step - now.step, len(expected) - 1)] != truth[step])


def _plan(
    whole: MigrationProblem,
    horizon: Horizon,
    expected: dict[str, MigrationPlan | UncertainPlan],
    before: _Now | None,
    step: int,
    policy: Policy,
    range_m: float | None,
) -> _Now:
    """Plan from a step on, with tasks where they are and go to now."""
    brokers = whole.network.brokers
    start = whole.start if before is None else {task: _now_at(before, task, step) for task in whole.tasks}
    names = {task: brokers[whole.numbers[at]].name for task, at in start.items()}
    problem = MigrationProblem(
        whole.network, whole.workload, horizon, expected, names, whole.numbers, routes=whole.routes
    )
    assert np.array_equal(problem.numbers, whole.numbers)
    if range_m is not None:
        near = {
            task: brokers_within(whole.network, [int(whole.numbers[at])], range_m)
            for task, at in start.items()
        }
        problem = problem.restricted_to(near)
    hosts = stay(problem)
    on_their_way: list[str] = []
    for task in whole.tasks if before is not None else ():
        assert before is not None
        row = _under_way(before, task, step)
        if row is not None:
            hosts[task] = np.concatenate([row, np.full(horizon.steps, row[-1])])[: horizon.steps]
            on_their_way.append(task)
    if before is not None and not fits(problem, hosts):
        # Who is under way was to find room that others were to leave: they had better do so, too.
        hosts = {task: _goes_on(before, task, step, horizon.steps) for task in whole.tasks}
    free = [task for task in problem.tasks if task not in on_their_way]
    hosts = plan_together(problem, hosts, free, policy)
    likeliest = {name: _likeliest(problem, plan) for name, plan in expected.items()}
    return _Now(step, problem, hosts, likeliest)


def _now_at(before: _Now, task: str, step: int) -> int:
    row = before.hosts[task]
    return int(row[min(step - before.step, len(row) - 1)])


def _goes_on(before: _Now, task: str, step: int, steps: int) -> Ints:
    """Return the hosts from a step on, as they were planned before."""
    row = before.hosts[task]
    return row[np.minimum(np.arange(steps) + step - before.step, len(row) - 1)]


def _under_way(before: _Now, task: str, step: int) -> Ints | None:
    """Return the hosts until a migration that has begun before a step is done; None: nothing is under way."""
    row, gone = before.hosts[task], step - before.step
    for change in changes_of(row):
        if change > gone:
            begun = change - int(before.problem.spans(task)[row[change - 1], row[change]])
            return row[gone : change + 1] if begun < gone else None
    return None


def plan_together(
    problem: MigrationProblem,
    hosts: dict[str, Ints],
    free: Collection[str],
    policy: Policy = POLICIES["adaptive"],
) -> dict[str, Ints]:
    """Let some tasks plan by a policy, each next to what the others tell; give what is to be carried out.

    Where a policy gives certain plans, each is taken only if it makes the expected total less. Uncertain
    plans are told to neighbours as they are; the course that is expected to cost least is carried out.
    """
    hosts, told = dict(hosts), dict[str, object](hosts)
    score = problem.score(hosts)
    for _ in range(ROUNDS):
        better = False
        for task in free:
            proposed = policy(problem, task, told)
            if isinstance(proposed, UncertainPlan):
                chosen = problem.positions(choose_course(proposed, problem, hosts).hosts)
                if fits(problem, {**hosts, task: chosen}):
                    told[task] = problem.probabilities(proposed)
                    better |= not np.array_equal(chosen, hosts[task])
                    hosts[task] = chosen
                continue
            now = problem.score({**hosts, task: proposed})
            if now < score - slack(score) and fits(problem, {**hosts, task: proposed}):
                hosts[task] = told[task] = proposed
                score, better = now, True
        if not better:
            break
    return hosts


def _likeliest(problem: MigrationProblem, plan: MigrationPlan | UncertainPlan) -> Ints:
    """Return the number of the most probable broker in each step."""
    if isinstance(plan, MigrationPlan):
        return plan.hosts
    probabilities = problem.probabilities(plan)
    return np.where(probabilities.any(axis=1), problem.numbers[probabilities.argmax(axis=1)], NOWHERE)
