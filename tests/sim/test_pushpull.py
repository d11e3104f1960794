"""Push and pull plans find all there is, whatever is pulled, and pulling costs less where events are rare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.simple_plans import all_push, push_through, rarest_first

from whimbrel import detect
from whimbrel.errors import NetworkError
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.sim.pushpull.joining import Asked, Candidates, PartialMatch
from whimbrel.sim.pushpull.plan import Input, Junction, Leaf, PushPullPlan
from whimbrel.sim.pushpull.running import poisson_events, run_plan, run_plans

NODES = ("sink", "middle", "a", "b", "c")


def tree(contacts=ALWAYS, latency_s=1.0):
    """The sink over c and a middle node, that over a and b."""
    pairs = (("sink", "middle"), ("sink", "c"), ("middle", "a"), ("middle", "b"))
    links = tuple(Link(one, other, latency_s=latency_s, contacts=contacts) for one, other in pairs)
    return Network(tuple(Broker(name) for name in NODES), links)


def plan(turns=(0, 0, 0, 0), negated=False, **about):
    """Turns of the middle node and of c at the sink, of a and of b at the middle node."""
    a, b, c = (Leaf(name, name, 100.0) for name in "abc")
    middle = Junction("middle", "middle", (Input(a, turns[2]), Input(b, turns[3])))
    root = Junction("sink", "sink", (Input(middle, turns[0]), Input(c, turns[1], negated=negated)))
    return PushPullPlan(root, **{"window_s": 20.0, **about})


def given_events(**times):
    return {
        name: [(float(t), name, f"{name}{n}") for n, t in enumerate(each)] for name, each in times.items()
    }


def test_a_pull_goes_down_and_the_reply_comes_up():
    events = given_events(a=[10.0], b=[12.0, 100.0], c=[15.0, 200.0])
    found = run_plan(plan((0, 1, 0, 1)), tree(), events)
    assert {tuple(id for _, _, id in atoms) for atoms in found.found} == {("a0", "b0", "c0")}
    assert not found.missed
    # a reaches the middle at 11; b hears of it at 12, when it happens; it is back at 13, at the sink at 14.
    # c hears the request at 15, when it happens; the sink has it at 16, a second after the last event.
    assert found.delays_s.tolist() == pytest.approx([1.0])
    assert found.traffic.by_kind["request"].messages == 2
    # Up: a, b, both, c, of 100 bytes each; down: two requests of 56.
    assert found.traffic.whole.bytes == 100 * 3 + 200 + 2 * 56


some_times = st.lists(st.integers(0, 60), max_size=5).map(lambda times: sorted(map(float, times)))
some_turns = st.tuples(*[st.integers(0, 2)] * 4).filter(
    lambda turns: 0 in turns[:2] and (turns[0] > 0 or 0 in turns[2:])
)
schedules = st.sampled_from([ALWAYS, PeriodicContacts(5.0, 2.0), PeriodicContacts(30.0, 10.0, 3.0)])


@given(some_times, some_times, some_times, some_turns, schedules, st.sampled_from([None, "abc", "bca"]))
def test_every_plan_finds_all_there_is(a, b, c, turns, contacts, order):
    events = given_events(a=a, b=b, c=c)
    made = plan(turns, order=None if order is None else tuple(order))
    found = run_plan(made, tree(contacts), events)
    assert not found.missed
    assert not found.invented
    assert len(found.delays_s) == len(found.found)
    assert found.traffic.on_their_way == 0


@given(some_times, some_times, some_times, st.integers(0, 2), schedules)
def test_what_must_not_occur_before_and_after_the_others_is_waited_for(a, b, c, turn, contacts):
    made = plan((0, turn, 0, 1), negated=True, is_amid=False)
    found = run_plan(made, tree(contacts), given_events(a=a, b=b, c=c))
    pairs = {(one, other) for one in a for other in b if abs(one - other) <= 20}
    spoiled = {
        (one, other)
        for one, other in pairs
        for time in c
        if max(one, other) - 20 < time < min(one, other) + 20
    }
    assert {(min(pair), max(pair)) for pair in pairs - spoiled} == {
        (atoms[0][0], atoms[-1][0]) for atoms in found.found
    }
    assert not found.missed
    assert not found.invented


@given(
    some_times, some_times, some_times, st.integers(0, 2), schedules, st.sampled_from([None, ("a", "c", "b")])
)
def test_what_must_not_occur_is_waited_for(a, b, c, turn, contacts, order):
    made = plan((0, turn, 0, 1), negated=True, order=order)
    found = run_plan(made, tree(contacts), given_events(a=a, b=b, c=c))
    assert not found.missed
    assert not found.invented
    for atoms in found.found:
        (start, *_), (end, *_) = atoms[0], atoms[-1]
        assert not any(start < time < end for time in c)


@pytest.mark.parametrize(
    ("order", "pattern"), [(None, "a and b and c"), (("a", "b", "c"), "a then b then c")]
)
def test_detections_are_those_of_a_query(order, pattern):
    events = poisson_events({"a": 4.0, "b": 6.0, "c": 8.0}, 600.0, np.random.default_rng(1))
    found = run_plan(plan((0, 1, 0, 1), order=order), tree(PeriodicContacts(20.0, 5.0)), events)
    query = compile_text(f"define X detect {pattern} within 20 s")
    rows = [
        {"id": id_, "type": name, "time": round(time, 6)}
        for each in events.values()
        for time, name, id_ in each
    ]
    expected = {frozenset(ids) for ids in detect(query, rows).column("events").to_pylist()}
    assert len(expected) > 20
    assert {frozenset(id_ for _, _, id_ in atoms) for atoms in found.found} == expected


def test_pulling_what_happens_often_costs_less():
    rates = {"a": 0.5, "b": 20.0, "c": 20.0}
    events = poisson_events(rates, 3600.0, np.random.default_rng(2))
    network, base = tree(PeriodicContacts(30.0, 10.0)), plan()
    costs = {
        name: run_plan(made, network, events)
        for name, made in {
            "all push": all_push(base),
            "push": push_through(base),
            "pull": rarest_first(base, rates),
        }.items()
    }
    assert len({each.found for each in costs.values()}) == 1
    assert costs["pull"].cost_a_minute < costs["push"].cost_a_minute < costs["all push"].cost_a_minute
    assert costs["pull"].delays_s.mean() > costs["all push"].delays_s.mean()


def test_plans_that_make_no_sense_are_refused():
    with pytest.raises(NetworkError, match="nothing is pushed to 'sink'"):
        plan((1, 1, 0, 0))
    with pytest.raises(NetworkError, match="nothing is pushed to 'middle'"):
        plan((0, 1, 1, 2))
    with pytest.raises(NetworkError, match="names every leaf once"):
        plan(order=("a", "b"))
    with pytest.raises(NetworkError, match="cannot be first or last"):
        plan(negated=True, order=("a", "b", "c"))


def test_nothing_is_asked_for_twice():
    asked = Asked()
    assert asked.new([(0.0, 10.0)]) == [(0.0, 10.0)]
    assert asked.new([(2.0, 8.0)]) == []
    assert asked.new([(5.0, 15.0), (9.0, 12.0)]) == [(5.0, 15.0)]
    assert asked.new([(20.0, 30.0), (3.0, 4.0)]) == [(20.0, 30.0)]
    assert asked.new([(0.0, 40.0)]) == [(0.0, 40.0)]
    assert asked.intervals == [(0.0, 40.0)]


few_times = st.integers(0, 12).map(float)
intervals = st.tuples(few_times, few_times).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(st.lists(intervals, max_size=3), max_size=6), few_times)
def test_asked_for_are_all_intervals_that_were_given(given_one_by_one, time):
    asked = Asked()
    for some in given_one_by_one:
        new = asked.new(some)
        assert all(any(low <= one and other <= high for low, high in asked.intervals) for one, other in new)
    every = [each for some in given_one_by_one for each in some]
    event = PartialMatch(time, time, ((time, "a", "a0"),))
    assert asked.covers(event) == any(low <= time <= high for low, high in every)
    borders = [border for each in asked.intervals for border in each]
    assert borders == sorted(borders)


pairs = st.tuples(intervals, intervals)


@given(st.lists(st.lists(pairs, max_size=3), max_size=6), few_times, few_times)
def test_a_junction_gives_what_fits_a_candidate_as_a_whole(given_one_by_one, a, b):
    candidates = Candidates(6.0, ("a", "b"))
    told = [each for some in given_one_by_one for each in candidates.new(some)]
    every = [each for some in given_one_by_one for each in some]
    part = PartialMatch(min(a, b), max(a, b), ((a, "a", "a0"), (b, "b", "b0")))
    fits = [one[0] <= a <= one[1] and other[0] <= b <= other[1] for one, other in every]
    assert candidates.covers(part) == any(fits)
    # What a request of before holds is not asked for again.
    for place, each in enumerate(told):
        before = told[:place]
        assert not any(
            all(o[0] <= i[0] and i[1] <= o[1] for i, o in zip(each, one, strict=True)) for one in before
        )


def test_alternatives_are_all_found():
    made = plan(is_any=True)
    found = run_plan(made, tree(), given_events(a=[1.0, 2.0], b=[50.0], c=[]))
    assert {atoms[0][2] for atoms in found.found} == {"a0", "a1", "b0"}
    assert not found.missed
    assert not found.invented
    assert found.traffic.whole.bytes == 2 * 3 * 100
    with pytest.raises(NetworkError, match="alternatives are never asked for"):
        plan((0, 1, 0, 0), is_any=True)


def test_an_event_that_two_plans_need_crosses_a_link_once():
    events = poisson_events({"a": 4.0, "b": 6.0, "c": 8.0}, 600.0, np.random.default_rng(1))
    made = {"wide": plan((0, 0, 0, 0)), "narrow": plan((0, 0, 0, 0), window_s=5.0)}
    alone = {name: run_plan(each, tree(), events) for name, each in made.items()}
    both = run_plans(made, tree(), events)
    for name, found in both.items():
        assert found.found == alone[name].found
        assert not found.missed
        # What the narrow window needs the wide one needs, too.
        assert found.traffic.whole.bytes == alone["wide"].traffic.whole.bytes


def test_a_plan_goes_the_way_that_it_says():
    network = Network(
        tuple(Broker(name) for name in ("sink", "x", "a")),
        (Link("a", "sink", cost=9.0), Link("a", "x", latency_s=1.0), Link("x", "sink", latency_s=1.0)),
    )
    leaf = Leaf("a", "a", 100.0)
    events = given_events(a=[1.0, 2.0])
    for path, cost in (((), 9 * 200), (("a", "x", "sink"), 2 * 200)):
        root = Junction("sink", "sink", (Input(leaf, path=path),))
        found = run_plan(PushPullPlan(root, 10.0), network, events)
        assert found.traffic.whole.cost == cost
