"""Adaptive: plan for an operator that goes on following what it sees (beyond the paper).

By expected costs an operator plans as if it could not change its mind: the further ahead, the less certain it
is where a mover will be, and the less it seems worth to move next to it. But the operator will see where the
mover goes. Here the chain of the mover's plan and the hosts of the operator are one decision process. It is
solved backwards: in each step, and for each state that the mover can be in, where to go.

One mover is followed so, the one with the most bytes; others are weighed by expected costs. Operators whose
migrations take more than a step have to decide before they see: they plan by expected costs.
"""

from __future__ import annotations

import numpy as np

from whimbrel.plan.arrays import Bools, Floats, Ints
from whimbrel.plan.migration.plan import NOWHERE
from whimbrel.plan.migration.problem import Hosts, MigrationProblem
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses


def plan_adaptively(problem: MigrationProblem, task: str, hosts: Hosts) -> UncertainPlan:
    """Plan a task that will follow what it sees; the course for where the mover is expected most."""
    followed = _followed(problem, task)
    allowed = problem.may_host(task)
    within_a_step = problem.spans(task)[np.ix_(allowed, allowed)].max(initial=1) <= 1
    if followed is None or task not in problem.start or not within_a_step:
        row = problem.time_graph(task, hosts).shortest().hosts
    else:
        row = _follow(problem, task, hosts, *followed)
    course = Course(problem.numbers[row], 1.0)
    return from_courses(task, problem.horizon, [course], problem.workload.task[task].bytes_s)


def _followed(problem: MigrationProblem, task: str) -> tuple[UncertainPlan, float] | None:
    """Return the uncertain plan of the mover that sends or gets most, and how many bytes a second."""
    uncertain = []
    for name in problem.movers_of(task):
        plan = problem.attachments[name]
        if isinstance(plan, UncertainPlan):
            ends = {task, f"@{name}"}
            uncertain.append((sum(s.bytes_s for s in problem.streams if set(s.key) == ends), plan))
    if not uncertain:
        return None
    sent, plan = max(uncertain, key=lambda item: item[0])
    return plan, sent


def _follow(problem: MigrationProblem, task: str, hosts: Hosts, plan: UncertainPlan, sent: float) -> Ints:
    delay = np.where(np.isfinite(problem.delay_s), problem.delay_s, 0.0)
    per_step = sent * problem.horizon.step_s
    cost, broken = problem.weights(task, hosts)
    # What the followed mover costs depends on its state; here it is in the expected costs already.
    rest = cost + problem.penalty * broken - per_step * (problem.probabilities(plan) @ delay)
    move = problem.migration_cost(task)
    np.fill_diagonal(move, 0.0)
    room = problem.has_room(task, hosts)
    ahead = _expected_ahead(problem, plan, per_step * delay, rest, move, room)
    here, row = problem.start[task], []
    for step, (brokers, probabilities) in enumerate(plan.marginals()):
        row.append(here)
        if step < problem.horizon.steps - 1:
            seen = probabilities * (brokers == _likeliest(brokers, probabilities))
            here = int((move[here] + (seen / seen.sum()) @ ahead[step]).argmin())
    return np.array(row)


def _expected_ahead(
    problem: MigrationProblem,
    plan: UncertainPlan,
    by_place: Floats,
    rest: Floats,
    move: Floats,
    room: Bools,
) -> list[Floats]:
    """Give, for each step, what is expected to come for each state of the mover and each host in the next."""
    steps = problem.horizon.steps
    ahead: list[Floats] = []
    value = np.zeros((len(plan.states[-1]), len(problem.numbers)))
    for step in range(steps - 1, -1, -1):
        at = problem.positions(plan.states[step])
        here = np.where((at != NOWHERE)[:, None], by_place[at], 0.0) + rest[step]
        if step < steps - 1:
            expected = plan.transitions[step] @ value
            # A broker without room is entered only if there is nothing else.
            expected = expected + np.where(room[step + 1], 0.0, problem.penalty * problem.horizon.steps)
            ahead.append(expected)
            value = here + (move[None, :, :] + expected[:, None, :]).min(axis=2)
        else:
            value = here
    return ahead[::-1]


def _likeliest(brokers: Ints, probabilities: Floats) -> int:
    known = np.unique(brokers)
    return int(known[np.argmax([probabilities[brokers == broker].sum() for broker in known])])
