"""Plans that are made again and again: carried out as they may be, and never with knowledge of what comes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migration_optimum import find_optimum
from experiments.migration_policies import POLICIES
from experiments.migration_problems import random_problem
from whimbrel.plan.migration import Horizon, MigrationProblem, attached, brokers_within, stay
from whimbrel.plan.migration.local_search import fits
from whimbrel.plan.migration.plan import NOWHERE, changes_of
from whimbrel.plan.migration.policies import plan_adaptively
from whimbrel.plan.migration.policies.adaptive import _expected_ahead
from whimbrel.plan.migration.replanning import plan_together, replan_with_predictions
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def oracle(problem):
    """Tell the truth, the last place over and over after the end."""

    def predict(name, horizon):
        step = round(horizon.start_s / horizon.step_s)
        ahead = np.minimum(np.arange(horizon.steps) + step, problem.horizon.steps - 1)
        return attached(name, horizon, problem.attachments[name].hosts[ahead])

    return predict


def guess(problem, seed):
    """Say where a mover is, and then two courses drawn by chance."""

    def predict(name, horizon):
        step = round(horizon.start_s / horizon.step_s)
        draw = np.random.default_rng([seed, step, len(name)])
        rows = draw.choice(problem.numbers, (2, horizon.steps))
        rows[:, 0] = problem.attachments[name].hosts[step]
        return from_courses(name, horizon, [Course(rows[0], 0.7), Course(rows[1], 0.3)])

    return predict


def check_can_be_carried_out(problem, hosts):
    for task, row in hosts.items():
        spans, since = problem.spans(task), 0
        assert row[0] == problem.start[task]
        for change in changes_of(row):
            # It was where it set out from while the state was on its way.
            assert change - since >= spans[row[change - 1], row[change]]
            since = int(change)
    assert fits(problem, hosts)


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(sorted(POLICIES)),
    st.booleans(),
    st.integers(1, 4),
)
def test_what_is_carried_out_can_be_and_costs_no_less_than_the_optimum(seed, limited, policy, at_once, every):
    problem = random_problem(seed, steps=6, limited=limited)
    for predict in (oracle(problem), guess(problem, seed)):
        found = replan_with_predictions(problem, predict, every, 5, POLICIES[policy], at_once=at_once)
        check_can_be_carried_out(problem, found.hosts)
        assert 1 <= found.plans <= 6
        best = problem.value(find_optimum(problem))
        value = problem.value(found.hosts)
        assert value.cost >= best.cost - 1e-6 * (1 + best.cost)


def test_who_was_to_make_room_for_one_under_way_still_does():
    problem = random_problem(584, steps=6, limited=True)
    found = replan_with_predictions(problem, oracle(problem), 1, 5, POLICIES["weighted sum"], at_once=False)
    check_can_be_carried_out(problem, found.hosts)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_what_happens_later_changes_nothing_before(seed, step):
    problem = random_problem(seed, steps=8)
    draw = np.random.default_rng(seed)
    others = {}
    for name, plan in problem.attachments.items():
        if name in problem.network.number:
            continue
        row = plan.hosts.copy()
        row[step:] = draw.choice(problem.numbers, 8 - step)
        others[name] = attached(name, problem.horizon, row)
    changed = problem.attached_as(others)
    one, other = (
        replan_with_predictions(each, guess(each, seed), 3.0, 6).hosts for each in (problem, changed)
    )
    for task in problem.tasks:
        # What was decided before the step holds in it: the earliest answer is a step later.
        assert np.array_equal(one[task][: step + 1], other[task][: step + 1])


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(POLICIES)))
def test_plans_of_all_keep_room_and_those_on_their_way_stay(seed, policy):
    problem = random_problem(seed, limited=True)
    begun = stay(problem)
    free = problem.tasks[1:]
    found = plan_together(problem, begun, free, POLICIES[policy])
    assert fits(problem, found)
    assert np.array_equal(found[problem.tasks[0]], begun[problem.tasks[0]])
    if policy == "weighted sum":
        assert problem.score(found) <= problem.score(begun) + 1e-9


@given(st.integers(0, 2**32 - 1))
def test_an_adaptive_plan_expects_what_a_naive_recursion_does(seed):
    draw = np.random.default_rng(seed)
    states, steps, size = 3, 4, 3
    turns = tuple(row / row.sum(axis=1, keepdims=True) for row in draw.random((steps - 1, states, states)))
    brokers = draw.integers(-1, size, states)
    plan = UncertainPlan("car", Horizon(steps), (brokers,) * steps, np.full(states, 1 / states), turns)
    problem = follow([0] * steps, 20)
    by_place, rest = draw.random((size, size)), draw.random((steps, size))
    move = draw.random((size, size)) * (1 - np.eye(size))
    room = np.ones((steps, size), dtype=bool)

    def value(step, state, host):
        here = rest[step, host] + (by_place[brokers[state], host] if brokers[state] != NOWHERE else 0.0)
        if step == steps - 1:
            return here
        return here + min(move[host, other] + later(step, state, other) for other in range(size))

    def later(step, state, host):
        return sum(turns[step][state, n] * value(step + 1, n, host) for n in range(states))

    found = _expected_ahead(problem, plan, by_place, rest, move, room)
    expected = [[[later(t, s, h) for h in range(size)] for s in range(states)] for t in range(steps - 1)]
    np.testing.assert_allclose(found, expected)


def test_who_can_follow_moves_next_to_a_mover_that_may_go_on():
    # Nobody knows where the car will be soon, but it is at c now: it pays to be there, and to see.
    horizon = Horizon(30)
    draw = np.random.default_rng(3)
    rows = [np.concatenate([np.full(8, 2), draw.integers(0, 3, 22)]) for _ in range(6)]
    plan = from_courses("car", horizon, [Course(row, 1 / 6) for row in rows])
    problem = follow([2] * 30, 90).attached_as({"car": plan})
    assert plan_adaptively(problem, "t", {}).courses(1)[0].hosts[4] == 2
    # What takes longer than a step is planned by expected costs.
    slow = follow([2] * 30, 350).attached_as({"car": plan})
    expected = slow.time_graph("t", {}).shortest().hosts
    assert plan_adaptively(slow, "t", {}).courses(1)[0].hosts.tolist() == expected.tolist()


LINE = Network(
    (Broker("a"), Broker("b"), Broker("c")),
    (Link("a", "b", 100.0, 0.1), Link("b", "c", 100.0, 0.1)),
    movers=(Mover("car", ()),),
)


def follow(hosts, fixed_b):
    horizon = Horizon(len(hosts))
    workload = Workload(
        (Feed("s", 1, 1000, "car"),), (Task("t", ("s",), 0, 0, fixed_b=fixed_b),), (Delivery("t", "a"),)
    )
    car = attached("car", horizon, np.array(hosts))
    return MigrationProblem(LINE, workload, horizon, {"car": car}, {"t": "a"})


def standing(problem):
    """Expect a mover to stay where it is."""

    def predict(name, horizon):
        at = problem.attachments[name].hosts[round(horizon.start_s)]
        return attached(name, horizon, np.full(horizon.steps, at))

    return predict


def test_a_migration_that_has_begun_is_carried_out():
    # 350 B take 3.5 s and the delay: 4 steps. The car is at b only for two of them.
    problem = follow([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 350)
    found = replan_with_predictions(problem, standing(problem), 1.0, 12)
    assert found.hosts["t"].tolist() == [0] * 5 + [1] * 4 + [0] * 3


def test_a_plan_is_made_when_a_mover_is_not_where_it_was_expected():
    problem = follow([0] * 5 + [1] * 5, 0)
    late = replan_with_predictions(problem, standing(problem), 100.0, 12, at_once=False)
    assert (late.plans, late.hosts["t"].tolist()) == (1, [0] * 10)
    soon = replan_with_predictions(problem, standing(problem), 100.0, 12)
    assert (soon.plans, soon.hosts["t"].tolist()) == (2, [0] * 6 + [1] * 4)


def test_a_task_that_looks_nearby_goes_nowhere_else():
    areas = tuple(
        Broker(b.name, area=(100.0 * n, 0.0, 100.0 * (n + 1), 100.0)) for n, b in enumerate(LINE.brokers)
    )
    problem = follow([2] * 8, 10)
    problem.network = Network(areas, LINE.links, movers=LINE.movers)
    assert brokers_within(problem.network, [0], 50.0).tolist() == [0, 1]
    found = replan_with_predictions(problem, oracle(problem), 2.0, 8, range_m=50.0)
    assert found.hosts["t"].tolist()[:4] == [0, 1, 1, 2]
    with pytest.raises(KeyError):
        problem.restricted_to({"t": np.array([0])}).may_host("nobody")
    assert problem.restricted_to({"t": np.array([0, 1])}).may_host("t").tolist() == [True, True, False]


def test_how_often_was_planned_is_logged_once(caplog):
    problem = random_problem(3)
    with caplog.at_level("INFO", "whimbrel.plan"):
        run = replan_with_predictions(problem, guess(problem, 3), 4.0, 6)
    (line,) = caplog.messages
    assert line.startswith(f"planned {run.plans} times in {problem.horizon.steps} steps, ")
    assert int(line.split()[6]) > 0
