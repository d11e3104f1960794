"""Uncertain plans of movers, and operators that plan next to them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migration_policies import (
    k_shortest,
    plan_k_shortest,
    plan_skewed,
    probabilities_to_be_cheapest,
    ways_apart,
)
from experiments.migration_problems import random_problem
from experiments.networks import hierarchy
from whimbrel.errors import NetworkError
from whimbrel.plan.areas import Areas
from whimbrel.plan.migration import (
    NOWHERE,
    Horizon,
    LearnedMoves,
    MigrationProblem,
    UncertainPlan,
    dead_reckoning,
    navigation,
    stay,
)
from whimbrel.plan.migration.policies import plan_by_weighted_sum, plan_naively, plan_with_shifts
from whimbrel.plan.migration.policies.naive import combinations_of
from whimbrel.plan.migration.prediction import _erf
from whimbrel.plan.migration.schedule import choose_course
from whimbrel.plan.migration.uncertain import Course, from_courses
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

THREE = Horizon(3)
# Figure 7 of the paper: from b1 to b2 at t1 or at t2, each with a probability of one half.
FIGURE = from_courses("car", THREE, [Course(np.array([0, 1, 1]), 0.5), Course(np.array([0, 0, 1]), 0.5)])
PAIR = Network((Broker("b1"), Broker("b2")), (Link("b1", "b2", 1e9, 0.5),), movers=(Mover("car", ()),))
FOUR = hierarchy([(4, 1)], (0.0, 0.0, 400.0, 100.0), capacity=math.inf)


def follow(fixed_b: float = 0.0, plan: UncertainPlan = FIGURE) -> MigrationProblem:
    """One operator that reads 10 B/s of the car, and gives next to nothing."""
    workload = Workload(
        (Feed("a", 1, 10, "car"),),
        (Task("t", ("a",), 0, 0, fixed_b=fixed_b),),
        (Delivery("t", "b1"),),
    )
    return MigrationProblem(PAIR, workload, plan.horizon, {"car": plan}, {"t": "b1"})


def probabilities_of(plan: UncertainPlan) -> list[dict[int, float]]:
    """Give the probability of each broker in each step."""
    return [
        {int(b): float(p[brokers == b].sum()) for b in np.unique(brokers)} for brokers, p in plan.marginals()
    ]


def test_a_chain_tells_the_chances_of_the_figure():
    probabilities = [
        dict(zip(brokers.tolist(), p.tolist(), strict=True)) for brokers, p in FIGURE.marginals()
    ]
    assert probabilities[:2] == [{0: 1.0}, {0: 0.5, 1: 0.5}]
    assert [course.hosts.tolist() for course in FIGURE.courses(9)] in (
        [[0, 0, 1], [0, 1, 1]],
        [[0, 1, 1], [0, 0, 1]],
    )
    assert [course.probability for course in FIGURE.courses(9)] == [0.5, 0.5]
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
    probabilities = [course.probability for course in courses]
    assert len(courses) == 16
    assert sum(probabilities) == pytest.approx(1)
    assert probabilities == sorted(probabilities, reverse=True)
    again = from_courses("car", plan.horizon, courses)
    for (brokers, p), (others, q) in zip(plan.marginals(), again.marginals(), strict=True):
        assert {b: p[brokers == b].sum() for b in (3, 7)} == pytest.approx(
            {b: q[others == b].sum() for b in (3, 7)}
        )


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
    graph = problem.time_graph("u", {"t": problem.probabilities(FIGURE)}, problem.has_room("u", {}))
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
    np.testing.assert_allclose(probabilities_to_be_cheapest([5, 5], 0.1), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(probabilities_to_be_cheapest([5, 5, 9], 0.0), [0.5, 0.5, 0])
    np.testing.assert_allclose(probabilities_to_be_cheapest([1, 2], 0.1), [1, 0], atol=1e-9)
    # Uniform on [0, 2] and on [0, 4]: the second is in [0, 2] half of the time, and then lower half of it.
    np.testing.assert_allclose(probabilities_to_be_cheapest([1, 2], 1.0), [0.75, 0.25], atol=1e-3)


def test_any_distribution_may_be_given():
    early = probabilities_to_be_cheapest(
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


def test_dead_reckoning_goes_on_and_gets_less_certain():
    horizon = Horizon(20, 1.0, start_s=10.0)
    recent = [(0.0, 50.0, 50.0), (10.0, 150.0, 50.0)]
    plan = dead_reckoning("car", horizon, recent, Areas(FOUR), error_m=5, error_m_s=2)
    rows = [dict(zip(brokers.tolist(), p.tolist(), strict=True)) for brokers, p in plan.marginals()]
    second, third = FOUR.number["fog-1-1-0"], FOUR.number["fog-1-2-0"]
    assert rows[0][second] == pytest.approx(1)
    # After 5 s it is expected on the border between the two.
    assert rows[5][second] == pytest.approx(rows[5][third], abs=0.01)
    assert rows[10][third] > rows[10][second] > 0
    assert rows[10][third] < rows[0][second]


def test_a_known_route_is_followed_in_order():
    horizon = Horizon(40)
    plan = navigation("car", horizon, [1, 2, 1], [0.0, 10.0, 20.0], spread=0.2)
    probabilities = np.array([p for _, p in plan.marginals()])
    np.testing.assert_allclose(probabilities[0], [1, 0, 0], atol=1e-6)
    assert probabilities[10, 1] == pytest.approx(0.5, abs=0.02)
    np.testing.assert_allclose(probabilities[39], [0, 0, 1], atol=1e-4)
    for course in plan.courses(5):
        assert [b for n, b in enumerate(course.hosts) if n == 0 or b != course.hosts[n - 1]] == [1, 2, 1]


def test_learned_moves_know_where_a_mover_came_from():
    # The thesis, figure 4.6: along a road, who came from b1 goes on to b4, and the other way round.
    learned = LearnedMoves()
    learned.learn([np.array([1] * 2 + [2] * 3 + [4] * 9), np.array([4] * 2 + [2] * 3 + [1] * 9)], Horizon(14))
    assert [(n.broker, n.probability, n.stay_s) for n in learned.after(1, 2)] == [(4, 1.0, 3.0)]
    assert [n.broker for n in learned.after(4, 2)] == [1]
    assert {n.broker: n.probability for n in learned.after(NOWHERE, 2)} == {1: 0.5, 4: 0.5}
    plan = learned.plan("car", Horizon(8), at=1)
    for course in plan.courses(9):
        route = [int(b) for n, b in enumerate(course.hosts) if n == 0 or b != course.hosts[n - 1]]
        assert route == [1, 2, 4][: len(route)]
    assert probabilities_of(plan)[7][4] > 0.5
    either = learned.plan("car", Horizon(8), at=2)
    assert {int(course.hosts[-1]) for course in either.courses(99)} == {1, 2, 4}
    assert probabilities_of(either)[7][1] == pytest.approx(probabilities_of(either)[7][4])
    unseen = learned.plan("car", Horizon(3), at=9)
    assert unseen.courses(1)[0].hosts.tolist() == [9, 9, 9]


def test_the_error_function():
    x = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(_erf(x), [math.erf(value) for value in x], atol=2e-7)


@given(st.lists(st.integers(1, 9), min_size=40, max_size=60), st.integers(0, 6))
def test_who_has_stayed_leaves_as_those_did_who_had_stayed_as_long(stays, stayed):
    learned = LearnedMoves()
    # All come from 5, stay at 1 for a while, and go on to 2.
    learned.learn([np.array([5] + [1] * n + [2] * 3) for n in stays], Horizon(14))
    plan = learned.plan("car", Horizon(4, start_s=20.0), at=1, before=5, since_s=20.0 - stayed)
    still = sum(n > stayed for n in stays)
    here = [row[1] for row in probabilities_of(plan)]
    assert here[0] == 1
    if still > 30:
        for step in (1, 2, 3):
            # One more mover is made up, so that the probability is never none.
            assert here[step] == pytest.approx(sum(n > stayed + step for n in stays) / still, abs=0.1)
    assert all(0 < after < before for before, after in pairwise(here))


def test_times_on_a_route_are_those_of_others():
    learned = LearnedMoves()
    learned.learn([np.array([5] + [1] * n + [2] * 4 + [3]) for n in (2, 4, 6)], Horizon(12))
    times, errors = learned.times_on([1, 2, 3], Horizon(9, start_s=10.0), before=5, since_s=10.0)
    assert times == pytest.approx([10, 14, 18])
    assert errors == pytest.approx([0, np.std([2, 4, 6]), np.std([2, 4, 6])])
    # Who has stayed for 3 s stays on for 1 or 3; whose stay nobody had leaves after the mean.
    assert learned.times_on([1, 2], Horizon(9, start_s=13.0), 5, 10.0)[0] == pytest.approx([13, 15])
    assert learned.times_on([1, 2], Horizon(9, start_s=19.0), 5, 10.0)[0] == pytest.approx([19, 23])
    assert learned.times_on([8, 9], Horizon(9), 7, 0.0)[0] == [0.0, 1.0]


@given(st.integers(0, 2**32 - 1))
def test_samples_stand_for_all_courses(seed):
    draw = np.random.default_rng(seed)
    turns = tuple(row / row.sum(axis=1, keepdims=True) for row in draw.random((3, 2, 2)))
    plan = UncertainPlan("car", Horizon(4), (np.array([3, 7]),) * 4, np.array([0.25, 0.75]), turns)
    rows = plan.samples(400)
    for step, probabilities in enumerate(probabilities_of(plan)):
        # A broker in a step is up to 8 intervals of codes, each met to a sample.
        assert (rows[:, step] == 7).mean() == pytest.approx(probabilities[7], abs=8 / 400)
    assert sum(course.probability for course in plan.likely(5)) == pytest.approx(1)
    assert [course.probability for course in plan.likely(16)] == [
        course.probability for course in plan.courses(16)
    ]


def test_courses_of_uncertain_times_are_not_all_the_most_probable_one():
    plan = navigation("car", Horizon(60), [1, 2], [0.0, 30.0], spread=0.3)
    changes = [int((course.hosts == 1).sum()) for course in plan.likely(9)]
    assert min(changes) < 20
    assert max(changes) > 40
    # The middle one stands for all.
    assert int((plan.likely(1)[0].hosts == 1).sum()) == pytest.approx(30, abs=1)


def test_combinations_of_several_movers_are_dealt_out():
    plans = [navigation("car", Horizon(40), [1, 2], [0.0, 20.0], spread=0.3) for _ in range(2)]
    found = list(combinations_of(plans, 8))
    assert [probability for _, probability in found] == [1 / 8] * 8
    for which in (0, 1):
        changes = {int((rows[which] == 1).sum()) for rows, _ in found}
        assert min(changes) < 16
        assert max(changes) > 24
    certain = [from_courses("car", THREE, [Course(np.array([0, 1, 1]), 1.0)]), FIGURE]
    assert sorted(probability for _, probability in combinations_of(certain, 8)) == [0.5, 0.5]


def test_dead_reckoning_knows_where_a_mover_is_attached():
    second, third = FOUR.number["fog-1-1-0"], FOUR.number["fog-1-2-0"]
    finder = Areas(FOUR)
    for at in (second, third):
        plan = dead_reckoning("car", Horizon(20), [(0.0, 200.0, 50.0)], finder, at=at)
        rows = probabilities_of(plan)
        # It stands right on the border of both, and is told which one it is in.
        assert rows[0][at] == 1
        assert rows[1][at] > 0.7
        assert rows[1][at] > rows[19][at] > 0.5 * (rows[19][second] + rows[19][third])
    # A report far from where it is attached is moved to the nearest place there.
    assert (
        probabilities_of(dead_reckoning("car", Horizon(2), [(0.0, 390.0, 50.0)], finder, at=second))[0][
            second
        ]
        == 1
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_ways_apart_are_ways_and_the_first_is_the_shortest(seed, k):
    problem = random_problem(seed)
    graph = problem.time_graph("t0", stay(problem))
    found = ways_apart(graph, k, 0.5)
    assert 1 <= len(found) <= k
    assert len({way.hosts.tobytes() for way in found}) == len(found)
    assert found[0].score == pytest.approx(graph.shortest().score)
    cheapest = k_shortest(graph, k)
    for n, way in enumerate(found):
        assert way.score == pytest.approx(graph.score_of(way.hosts))
        # None is better than the k cheapest ones, which are found in another way.
        assert n >= len(cheapest) or way.score >= cheapest[n].score - 1e-6 * (1 + way.score)


def test_ways_apart_lead_elsewhere():
    # The car is at b2 in the end; the k cheapest ways all go there, at different times.
    courses = [Course(np.array([0] * 4 + [1] * 16), 1.0)]
    problem = follow(fixed_b=30, plan=from_courses("car", Horizon(20), courses))
    cheapest = plan_k_shortest(problem, "t", {}, k=3, deviation=1.0).courses(9)
    apart = plan_k_shortest(problem, "t", {}, k=3, deviation=1.0, apart=True).courses(9)
    assert {int(course.hosts[-1]) for course in cheapest} == {1}
    assert {int(course.hosts[-1]) for course in apart} == {0, 1}
