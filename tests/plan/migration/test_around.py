"""Attachments, nearby brokers, stability, and schedules."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migration_policies import StepsAhead, initial_discount, keep_small_changes, weight_threshold
from experiments.migration_problems import random_problem
from experiments.mobility import street_trips
from experiments.networks import hierarchy
from experiments.scenarios.migcep import friends_nearby
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan import areas
from whimbrel.plan.areas import Areas
from whimbrel.plan.migration import (
    NOWHERE,
    ActionKind,
    Horizon,
    MigrationProblem,
    attach,
    brokers_within,
    schedule,
    stay,
)
from whimbrel.plan.migration.local_search import improve
from whimbrel.plan.network import Mover

AREA = (0.0, 0.0, 400.0, 400.0)
QUAD = hierarchy([(2, 2), (4, 4)], AREA, capacity=math.inf)


def cars(count, block_m=50.0):
    return street_trips(count, AREA, until_s=60.0, block_m=block_m, random=np.random.default_rng(2))


def names(numbers):
    return {QUAD.brokers[n].name for n in numbers if n != NOWHERE}


def test_movers_are_attached_to_leaves():
    car = Mover("car", ((1.0, 50.0, 50.0), (3.0, 250.0, 50.0)))
    plan = attach(replace(QUAD, movers=(car,)), Horizon(5))["car"]
    # A border belongs to the area whose smallest x it is; it is nowhere before and after its track.
    assert [QUAD.brokers[n].name if n != NOWHERE else None for n in plan.hosts] == [
        None, "fog-2-0-0", "fog-2-1-0", "fog-2-2-0", None,
    ]  # fmt: skip
    assert attach(QUAD, Horizon(5)) == {}


def test_both_ways_to_find_leaves_agree(monkeypatch):
    finder = Areas(QUAD)
    draw = np.random.default_rng(1)
    x, y = draw.choice(np.arange(-50.0, 460.0, 25.0), (2, 500))
    x[0] = np.nan
    by_table = finder.serving(x, y)
    monkeypatch.setattr(areas, "_MOST_CELLS", 0)
    assert by_table.tolist() == finder.serving(x, y).tolist()
    assert by_table[0] == NOWHERE


def test_nearby_brokers_and_those_above_them():
    corner = QUAD.number["fog-2-0-0"]
    assert names(brokers_within(QUAD, [corner], 0)) == {"fog-2-0-0", "fog-1-0-0", "cloud"}
    close = names(brokers_within(QUAD, [corner, QUAD.number["cloud"]], 50))
    assert close == {"fog-2-0-0", "fog-2-0-1", "fog-2-1-0", "fog-2-1-1", "fog-1-0-0", "cloud"}
    assert len(brokers_within(QUAD, [corner], 1000)) == len(QUAD.brokers)
    assert names(brokers_within(QUAD, [NOWHERE, corner], 0)) == {"fog-2-0-0", "fog-1-0-0", "cloud"}


def test_a_problem_looks_at_nearby_brokers_only():
    network = replace(QUAD, movers=cars(3))
    workload = friends_nearby(("car-0", "car-1", "car-2"), 100, 500)
    attachments = attach(network, Horizon(50))
    start = {task.name: "cloud" for task in workload.tasks}
    close = brokers_within(network, [int(attachments["car-0"].hosts[0])], 0)
    problem = MigrationProblem(network, workload, Horizon(50), attachments, start, close)
    found = improve(problem, stay(problem))
    used = {int(problem.numbers[host]) for row in found.values() for host in row}
    assert used <= {*close.tolist(), network.number["cloud"]}


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_a_plan_stays_the_shortest_while_weights_change_within_the_threshold(seed):
    problem = random_problem(seed)
    graph = problem.time_graph("t0", stay(problem))
    path, bound = graph.shortest(), weight_threshold(graph)
    draw = np.random.default_rng(seed)
    change = (
        np.zeros_like(graph.placement)
        if np.isinf(bound)
        else draw.uniform(-bound, bound, graph.placement.shape)
    )
    moved = replace(graph, placement=graph.placement + change)
    assert moved.score_of(path.hosts) <= moved.shortest().score + 1e-6 * (1 + abs(path.score))
    kept = keep_small_changes(graph, moved, bound)
    assert np.array_equal(kept.placement, graph.placement)
    large = replace(graph, placement=graph.placement + 1.0)
    assert np.array_equal(keep_small_changes(graph, large, 0.5).placement, large.placement)


def test_other_brokers_replace_a_time_graph():
    problem = random_problem(3)
    graph = problem.time_graph("t0", stay(problem))
    fewer = replace(graph, placement=graph.placement[:4])
    assert keep_small_changes(graph, fewer, 99.0) is fewer


def test_few_steps_ahead_when_predictions_fail():
    ahead = StepsAhead(least=10, most=40)
    assert [ahead.held(), ahead.held(), ahead.held(), ahead.held()] == [20, 30, 40, 40]
    assert [ahead.failed(), ahead.failed(), ahead.failed()] == [20, 10, 10]
    assert [initial_discount(t, 100) for t in (0, 25, 100, 300)] == [1.0, 0.75, 0.0, 0.0]
    assert initial_discount(5, 0) == 0.0


@given(st.integers(0, 2**32 - 1))
def test_a_schedule_sends_in_time_and_starts_where_the_plan_says(seed):
    problem = random_problem(seed)
    plans = problem.plans(improve(problem, stay(problem)))
    actions = schedule(plans.values(), problem.workload, problem.network)
    assert [action.time_s for action in actions] == sorted(action.time_s for action in actions)
    at = {task: problem.network.brokers[int(plan.hosts[0])].name for task, plan in plans.items()}
    since = dict.fromkeys(at, 0.0)
    for action in actions:
        # Whatever is sent is sent from where the task is, after it has started there.
        assert action.time_s >= since[action.task] - 1e-9
        if action.kind is ActionKind.START:
            at[action.task], since[action.task] = action.target, action.time_s
        else:
            assert action.source == at[action.task]
    assert at == {task: problem.network.brokers[int(plan.hosts[-1])].name for task, plan in plans.items()}
    assert sum(action.kind is ActionKind.START for action in actions) == sum(
        len(plan.moves) for plan in plans.values()
    )


def test_the_actions_of_one_migration():
    problem = random_problem(5)
    task = next(task for task in problem.workload.tasks if task.fixed_b and task.window_b)
    row = np.array([0] * 6 + [1] * 2)
    plan = problem.plan(task.name, row)
    actions = schedule([plan], problem.workload, problem.network)
    kinds = [action.kind for action in actions]
    windows = [ActionKind.SEND_WINDOW] * len(task.inputs) + [ActionKind.REDIRECT] * len(task.inputs)
    assert kinds == [ActionKind.SEND_FIXED, *windows, ActionKind.STOP, ActionKind.START]
    assert sum(action.size_b for action in actions) == pytest.approx(task.fixed_b + task.window_b)
    assert {action.since_s for action in actions if action.kind is ActionKind.SEND_WINDOW} == {
        plan.moves[0].window_since_s[task.inputs[0]]
    }


def test_errors_say_what_is_missing():
    with pytest.raises(NetworkError, match="no time to plan for"):
        Horizon(0)
    with pytest.raises(NetworkError, match="make the blocks smaller"):
        cars(3, block_m=250.0)
    network = replace(QUAD, movers=cars(3))
    workload = friends_nearby(("car-0", "car-1", "car-2"), 100, 500)
    with pytest.raises(NetworkError, match="give the plan of each mover"):
        MigrationProblem(network, workload, Horizon(9))
    with pytest.raises(NetworkError, match="one horizon"):
        MigrationProblem(network, workload, Horizon(9), attach(network, Horizon(5)))
    problem = MigrationProblem(network, workload, Horizon(9), attach(network, Horizon(9)))
    with pytest.raises(NoPlanError, match="name its broker in `start`"):
        stay(problem)
