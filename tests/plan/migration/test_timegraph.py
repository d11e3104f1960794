"""The shortest way through a time graph is the cheapest plan of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.migration.naive import all_plans, naive_cost

from experiments.migration_cost import cost_of
from experiments.migration_policies import discounted, k_shortest
from experiments.migration_problems import random_problem
from whimbrel.plan.migration import (
    Horizon,
    MigrationProblem,
    attached,
    plan_migrations,
    stay,
)
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

SEEDS = st.integers(0, 2**32 - 1)

# west - middle - east, one second each; a mover that goes from west to east at step 4.
LINE = Network(
    tuple(Broker(name) for name in ("west", "middle", "east")),
    (Link("west", "middle", 100, 1), Link("middle", "east", 100, 1)),
    movers=(Mover("car", ()),),
)


def line(
    fixed_b: float = 0.0, window_b: float = 0.0, latency_s: float = np.inf, steps: int = 8
) -> MigrationProblem:
    """One operator that reads 10 B/s of the car and gives 1 B/s to the middle."""
    workload = Workload(
        (Feed("a", 1, 10, "car"),),
        (Task("t", ("a",), 1, 1, fixed_b=fixed_b, window_b=window_b),),
        (Delivery("t", "middle", latency_s),),
    )
    horizon = Horizon(steps)
    car = attached("car", horizon, np.array([0] * 4 + [2] * (steps - 4)))
    return MigrationProblem(LINE, workload, horizon, {"car": car}, {"t": "west"})


def hosts_of(problem: MigrationProblem) -> str:
    path = problem.time_graph("t", {}).shortest()
    return "".join("wme"[host] for host in path.hosts)


def test_an_operator_without_state_follows_its_source():
    # The way from west to east takes 2 s, so it sets out two steps before the car changes.
    assert hosts_of(line()) == "wwwweeee"
    assert line().value(stay(line())).cost == 8 * 1 + 4 * 20
    assert line().time_graph("t", {}).shortest().score == 8


def test_a_migration_has_to_pay():
    # To east costs 2 s for each byte of state, and saves 4 * 20 of 4 * 22; the middle saves half for half.
    assert hosts_of(line(fixed_b=30)) == "wwwweeee"
    assert hosts_of(line(fixed_b=60)) == "wwwwwwww"


def test_state_must_be_on_its_way_in_time():
    problem = line(fixed_b=20, window_b=10)
    plan = problem.plan("t", problem.time_graph("t", {}).shortest().hosts)
    (move,) = plan.moves
    assert (move.step, move.ready_s) == (4, 4.0)
    # 30 B at 100 B/s and 2 s of delay; the window alone 10 B. It remembers 1 s of 10 B/s.
    assert move.fixed_send_s == pytest.approx(4 - 0.3 - 2)
    assert move.window_send_s == pytest.approx(4 - 0.1 - 2)
    assert move.window_since_s == {"a": 3.0}
    assert (plan.hosts[4], plan.bandwidth_b_s) == (2, 1.0)
    assert set(plan.latency_s) == {"@car", "@middle"}


def test_a_transfer_that_takes_long_must_begin_early_and_go_on_at_the_source():
    # 200 B take 2 s and 2 s of delay to east: the earliest arrival is step 4. With 300 B it is step 5.
    for size, earliest in ((200, 4), (300, 5)):
        graph = line(fixed_b=size, steps=40).time_graph("t", {})
        path = graph.shortest()
        assert int(np.flatnonzero(path.hosts == 2)[0]) == earliest


def test_restrictions_are_broken_only_where_they_must_be_and_as_few_as_possible():
    # Shares of 1 s each: west is too far from the car in the end. Without a restriction it would stay there.
    assert hosts_of(line(fixed_b=60)) == "wwwwwwww"
    assert hosts_of(line(fixed_b=60, latency_s=2.0)) == "wwwwmmmm"
    # Shares of 0.5 s: only where the car is one stream is kept, so that each step breaks one.
    tight = line(latency_s=1.0)
    path = tight.time_graph("t", {}).shortest()
    assert tight.value({"t": path.hosts}).broken == 8


def test_where_no_vertex_has_resources_the_operator_stays_where_it_can_be_reached():
    problem = line()
    room = np.ones((8, 3), dtype=bool)
    room[5:7] = False
    path = problem.time_graph("t", {}, room).shortest()
    assert path.added.tolist() == [False] * 5 + [True] * 2 + [False]
    assert "".join("wme"[host] for host in path.hosts) == "wwwweeee"
    assert k_shortest(problem.time_graph("t", {}, room), 2) == []
    room[5:7], room[0] = True, False
    graph = problem.time_graph("t", {}, room)
    assert k_shortest(graph, 1)[0].hosts.tolist() == graph.shortest().hosts.tolist()


def test_the_first_migration_gets_cheaper_the_longer_an_operator_stayed():
    problem = line(fixed_b=60)
    assert hosts_of(problem) == "wwwwwwww"
    path = discounted(problem.time_graph("t", {}), 0.25).shortest()
    assert path.hosts.tolist() == [0] * 4 + [2] * 4
    assert path.score == pytest.approx(8 + 0.25 * 120)


@given(SEEDS, st.booleans())
def test_the_shortest_ways_are_the_cheapest_of_all_plans(seed, late):
    problem = random_problem(seed, brokers=3, steps=6, tasks=2, late=late)
    others = stay(problem)
    graph = problem.time_graph("t0", others)
    scores = sorted(problem.score({**others, "t0": np.array(hosts)}) for hosts in all_plans(problem, "t0"))
    offset = problem.score(others) - graph.score_of(others["t0"])
    assert graph.shortest().score + offset == pytest.approx(scores[0])
    ways = k_shortest(graph, 6)
    np.testing.assert_allclose([way.score + offset for way in ways], scores[: len(ways)])
    assert len(ways) == min(6, len(scores))
    assert len({tuple(way.hosts) for way in ways}) == len(ways)
    assert all(way.score == pytest.approx(graph.score_of(way.hosts)) for way in ways)


@given(SEEDS, st.booleans())
def test_costs_are_those_of_adding_up_every_link(seed, limited):
    problem = random_problem(seed, limited=limited)
    plans = problem.plans(plan_migrations(problem, pairs=False, restarts=1))
    attachments = {mover.name: problem.attachments[mover.name] for mover in problem.network.movers}
    placement, migration = naive_cost(plans, problem.workload, problem.network, attachments)
    cost = cost_of(plans, problem.workload, problem.network, attachments)
    value = problem.value(problem.hosts_of(plans))
    assert (value.placement, value.migration) == pytest.approx((placement, migration))
    assert (cost.placement, cost.migration) == pytest.approx((placement, migration))


def test_nothing_is_sent_while_a_mover_is_nowhere():
    problem = line()
    car = attached("car", problem.horizon, np.array([0] * 4 + [-1] * 4))
    away = MigrationProblem(LINE, problem.workload, problem.horizon, {"car": car}, {"t": "west"})
    assert away.value(stay(away)).cost == 8 * 1
    assert cost_of(away.plans(stay(away)), away.workload, LINE, {"car": car}).total == 8


def test_late_steps_are_counted_from_end_to_end():
    problem = line(latency_s=2.0)
    car = problem.attachments["car"]
    plans = problem.plans(stay(problem))
    assert cost_of(plans, problem.workload, LINE, {"car": car}).late == 4


def test_a_task_may_begin_anywhere():
    problem = line(fixed_b=60)
    free = MigrationProblem(LINE, problem.workload, problem.horizon, {"car": problem.attachments["car"]})
    found = plan_migrations(free)
    assert free.value(found).cost <= problem.value(plan_migrations(problem)).cost
    assert replace(free.horizon, steps=3).end_s == 3.0


def test_where_no_way_leads_is_avoided_and_costs_without_end():
    islands = Network(
        tuple(Broker(name) for name in ("a", "b", "c", "d")),
        (Link("a", "b", 100, 1), Link("c", "d", 100, 1)),
        movers=(Mover("car", ()),),
    )
    workload = Workload(
        (Feed("x", 1, 10, "car"),), (Task("t", ("x",), 1, 1), Task("u", ("t",), 1, 1)), (Delivery("u", "a"),)
    )
    horizon = Horizon(4)
    car = attached("car", horizon, np.array([0, 0, 1, 1]))
    problem = MigrationProblem(islands, workload, horizon, {"car": car})
    found = plan_migrations(problem)
    assert problem.value(found).broken == 0
    assert max(row.max() for row in found.values()) <= 1
    apart = {"t": np.zeros(4, np.int64), "u": np.full(4, 2)}
    assert problem.value(apart).broken == 8
    assert cost_of(problem.plans(apart), workload, islands, {"car": car}).total == np.inf
