"""Uncertain plans of movers, and operators that plan next to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import NetworkError
from whimbrel.plan.migration import (
    NOWHERE,
    Horizon,
    LeafFinder,
    LearnedMoves,
    MigrationProblem,
    UncertainPlan,
    dead_reckoning,
    navigation,
)
from whimbrel.plan.migration.experiment import tiers
from whimbrel.plan.migration.policies import (
    chances_to_be_cheapest,
    plan_by_weighted_sum,
    plan_k_shortest,
    plan_naively,
    plan_skewed,
    plan_with_shifts,
)
from whimbrel.plan.migration.predict import _erf
from whimbrel.plan.migration.schedule import choose_course
from whimbrel.plan.migration.uncertain import Course, from_courses
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

THREE = Horizon(3)
# Figure 7 of the paper: from b1 to b2 at t1 or at t2, each with a chance of one half.
FIGURE = from_courses("car", THREE, [Course(np.array([0, 1, 1]), 0.5), Course(np.array([0, 0, 1]), 0.5)])
PAIR = Network((Broker("b1"), Broker("b2")), (Link("b1", "b2", 1e9, 0.5),), movers=(Mover("car", ()),))
FOUR = tiers([(4, 1)], area_m=(400.0, 100.0))


def follow(fixed_b: float = 0.0, plan: UncertainPlan = FIGURE) -> MigrationProblem:
    """One operator that reads 10 B/s of the car, and gives next to nothing."""
    workload = Workload(
        (Feed("a", 1, 10, "car"),),
        (Task("t", ("a",), 0, 0, fixed_b=fixed_b),),
        (Delivery("t", "b1"),),
    )
    return MigrationProblem(PAIR, workload, plan.horizon, {"car": plan}, {"t": "b1"})


def test_a_chain_tells_the_chances_of_the_figure():
    chances = [dict(zip(brokers.tolist(), p.tolist(), strict=True)) for brokers, p in FIGURE.marginals()]
    assert chances[:2] == [{0: 1.0}, {0: 0.5, 1: 0.5}]
    assert [course.hosts.tolist() for course in FIGURE.courses(9)] in (
        [[0, 0, 1], [0, 1, 1]],
        [[0, 1, 1], [0, 0, 1]],
    )
    assert [course.chance for course in FIGURE.courses(9)] == [0.5, 0.5]
    assert len(FIGURE.courses(1)) == 1


def test_chances_that_do_not_add_up_are_refused():
    with pytest.raises(NetworkError, match="do not add up to 1"):
        UncertainPlan("car", Horizon(1), (np.array([0, 1]),), np.array([0.5, 0.4]), ())


@given(st.integers(0, 2**32 - 1))
def test_courses_come_by_chance_and_are_all_of_the_chain(seed):
    draw = np.random.default_rng(seed)
    turns = tuple(row / row.sum(axis=1, keepdims=True) for row in draw.random((3, 2, 2)))
    plan = UncertainPlan("car", Horizon(4), (np.array([3, 7]),) * 4, np.array([0.25, 0.75]), turns)
    courses = plan.courses(100)
    chances = [course.chance for course in courses]
    assert len(courses) == 16
    assert sum(chances) == pytest.approx(1)
    assert chances == sorted(chances, reverse=True)
    again = from_courses("car", plan.horizon, courses)
    for (brokers, p), (others, q) in zip(plan.marginals(), again.marginals(), strict=True):
        assert {b: p[brokers == b].sum() for b in (3, 7)} == pytest.approx(
            {b: q[others == b].sum() for b in (3, 7)}
        )
    assert plan.draw(draw).shape == (4,)


def test_naive_follows_each_course():
    found = plan_naively(follow(), "t", {})
    assert sorted(tuple(course.hosts) for course in found.courses(9)) == [(0, 0, 1), (0, 1, 1)]
    assert [p.tolist() for _, p in found.marginals()][1] == [0.5, 0.5]
    assert [tuple(course.hosts) for course in plan_naively(follow(), "t", {}, most=1).courses(9)] in (
        [(0, 0, 1)],
        [(0, 1, 1)],
    )


def test_weighted_sums_weigh_both_ends():
    # At t1 both brokers are expected to cost 10 B/s * 0.5 s * 0.5; at t2 only b1 costs anything: 5.
    graph = follow().time_graph("t", {})
    np.testing.assert_allclose(graph.placement, [[0, 5], [2.5, 2.5], [5, 0]])
    assert plan_by_weighted_sum(follow(fixed_b=9), "t", {})[2] == 1
    assert plan_by_weighted_sum(follow(fixed_b=11), "t", {}).tolist() == [0, 0, 0]


def test_an_uncertain_task_is_weighed_as_well():
    workload = Workload(
        (Feed("a", 1, 10, "car"),),
        (Task("t", ("a",), 1, 10), Task("u", ("t",), 0, 0)),
        (Delivery("u", "b1"),),
    )
    problem = MigrationProblem(PAIR, workload, THREE, {"car": FIGURE}, {"t": "b1", "u": "b1"})
    graph = problem.time_graph("u", {"t": problem.chances(FIGURE)}, problem.has_room("u", {}))
    np.testing.assert_allclose(graph.placement, [[0, 5], [2.5, 2.5], [5, 0]])


def test_shifts_find_the_time_of_lowest_expected_cost():
    courses = [Course(np.array([0] * n + [1] * (9 - n)), p) for n, p in ((2, 0.4), (6, 0.3), (7, 0.3))]
    problem = follow(plan=from_courses("car", Horizon(9), courses))
    best = plan_with_shifts(problem, "t", {})
    # The most probable course changes at 2, but more often than not it is later.
    assert best.tolist() == plan_by_weighted_sum(problem, "t", {}).tolist() == [0] * 6 + [1] * 3
    skewed = plan_skewed(problem, "t", {})
    assert sorted(int((c.hosts == 0).sum()) for c in skewed.courses(9)) == [2, 6, 7]


def test_the_cheapest_of_equals_and_of_all():
    np.testing.assert_allclose(chances_to_be_cheapest([5, 5], 0.1), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(chances_to_be_cheapest([5, 5, 9], 0.0), [0.5, 0.5, 0])
    np.testing.assert_allclose(chances_to_be_cheapest([1, 2], 0.1), [1, 0], atol=1e-9)
    # Uniform on [0, 2] and on [0, 4]: the second is in [0, 2] half of the time, and then lower half of it.
    np.testing.assert_allclose(chances_to_be_cheapest([1, 2], 1.0), [0.75, 0.25], atol=1e-3)


def test_any_distribution_may_be_given():
    early = chances_to_be_cheapest(
        [1, 1], 0.5, lambda y, low, high: np.clip((y - low) / (high - low), 0, 1) ** 2
    )
    np.testing.assert_allclose(early, [0.5, 0.5], atol=1e-6)


def test_the_k_cheapest_ways_are_one_plan():
    found = plan_k_shortest(follow(fixed_b=5), "t", {}, k=3, deviation=0.5)
    assert 1 < len(found.courses(9)) <= 3
    assert found.courses(1)[0].hosts[0] == 0


def test_the_course_that_is_cheapest_now_is_carried_out():
    problem = follow()
    plan = plan_naively(problem, "t", {})
    seen = problem.attached_as({"car": from_courses("car", THREE, [Course(np.array([0, 1, 1]), 1.0)])})
    assert choose_course(plan, seen, {}).hosts.tolist() == [0, 1, 1]
    drawn = choose_course(plan, seen, {}, np.random.default_rng(1)).hosts.tolist()
    assert drawn in ([0, 1, 1], [0, 0, 1])


def test_dead_reckoning_goes_on_and_gets_less_certain():
    horizon = Horizon(20, 1.0, start_s=10.0)
    recent = [(0.0, 50.0, 50.0), (10.0, 150.0, 50.0)]
    plan = dead_reckoning("car", horizon, recent, LeafFinder(FOUR), error_m=5, error_m_s=2)
    rows = [dict(zip(brokers.tolist(), p.tolist(), strict=True)) for brokers, p in plan.marginals()]
    second, third = FOUR.number["0-1-0"], FOUR.number["0-2-0"]
    assert rows[0][second] == pytest.approx(1)
    # After 5 s it is expected on the border between the two.
    assert rows[5][second] == pytest.approx(rows[5][third], abs=0.01)
    assert rows[10][third] > rows[10][second] > 0
    assert rows[10][third] < rows[0][second]


def test_a_known_route_is_followed_in_order():
    horizon = Horizon(40)
    plan = navigation("car", horizon, [1, 2, 1], [0.0, 10.0, 20.0], spread=0.2)
    chances = np.array([p for _, p in plan.marginals()])
    np.testing.assert_allclose(chances[0], [1, 0, 0], atol=1e-6)
    assert chances[10, 1] == pytest.approx(0.5, abs=0.02)
    np.testing.assert_allclose(chances[39], [0, 0, 1], atol=1e-4)
    for course in plan.courses(5):
        assert [b for n, b in enumerate(course.hosts) if n == 0 or b != course.hosts[n - 1]] == [1, 2, 1]


def test_learned_moves_know_where_a_mover_came_from():
    # The thesis, figure 4.6: along a road, who came from b1 goes on to b4, and the other way round.
    learned = LearnedMoves()
    learned.learn([np.array([1] * 2 + [2] * 3 + [4] * 9), np.array([4] * 2 + [2] * 3 + [1] * 9)], Horizon(14))
    assert [(n.broker, n.chance, n.stay_s) for n in learned.after(1, 2)] == [(4, 1.0, 3.0)]
    assert [n.broker for n in learned.after(4, 2)] == [1]
    assert {n.broker: n.chance for n in learned.after(NOWHERE, 2)} == {1: 0.5, 4: 0.5}
    plan = learned.plan("car", Horizon(8), at=1)
    assert [course.hosts.tolist() for course in plan.courses(9)] == [[1, 1, 2, 2, 2, 4, 4, 4]]
    either = learned.plan("car", Horizon(8), at=2)
    assert sorted(course.hosts[-1] for course in either.courses(9)) == [1, 4]
    unseen = learned.plan("car", Horizon(3), at=9)
    assert unseen.most_probable().tolist() == [9, 9, 9]


def test_the_error_function():
    x = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(_erf(x), [math.erf(value) for value in x], atol=2e-7)
