"""Push and pull plans find all there is, whatever is pulled, and pulling costs less where events are rare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel import detect
from whimbrel.errors import NetworkError
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.contacts import ALWAYS, ByTurns
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.sim.pushpull.joining import Asked
from whimbrel.sim.pushpull.plan import Input, Junction, Leaf, PushPullPlan
from whimbrel.sim.pushpull.running import poisson_events, run_plan
from whimbrel.sim.pushpull.simple_plans import all_push, push_through, rarest_first

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
    # Up: a (140), b (140), both (240), c (140); down: two requests of 56.
    assert found.traffic.whole.bytes == 140 * 3 + 240 + 2 * 56


some_times = st.lists(st.integers(0, 60), max_size=5).map(lambda times: sorted(map(float, times)))
some_turns = st.tuples(*[st.integers(0, 2)] * 4).filter(
    lambda turns: 0 in turns[:2] and (turns[0] > 0 or 0 in turns[2:])
)
schedules = st.sampled_from([ALWAYS, ByTurns(5.0, 2.0), ByTurns(30.0, 10.0, 3.0)])


@given(some_times, some_times, some_times, some_turns, schedules, st.sampled_from([None, "abc", "bca"]))
def test_every_plan_finds_all_there_is(a, b, c, turns, contacts, order):
    events = given_events(a=a, b=b, c=c)
    made = plan(turns, order=None if order is None else tuple(order))
    found = run_plan(made, tree(contacts), events)
    assert not found.missed
    assert len(found.delays_s) == len(found.found)
    assert found.traffic.on_their_way == 0


@given(
    some_times, some_times, some_times, st.integers(0, 2), schedules, st.sampled_from([None, ("a", "c", "b")])
)
def test_what_must_not_occur_is_waited_for(a, b, c, turn, contacts, order):
    made = plan((0, turn, 0, 1), negated=True, order=order)
    found = run_plan(made, tree(contacts), given_events(a=a, b=b, c=c))
    assert not found.missed
    for atoms in found.found:
        (start, *_), (end, *_) = atoms[0], atoms[-1]
        assert not any(start < time < end for time in c)


@pytest.mark.parametrize(
    ("order", "pattern"), [(None, "a and b and c"), (("a", "b", "c"), "a then b then c")]
)
def test_detections_are_those_of_a_query(order, pattern):
    events = poisson_events({"a": 4.0, "b": 6.0, "c": 8.0}, 600.0, np.random.default_rng(1))
    found = run_plan(plan((0, 1, 0, 1), order=order), tree(ByTurns(20.0, 5.0)), events)
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
    network, base = tree(ByTurns(30.0, 10.0)), plan()
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
    assert asked.new_parts(0.0, 10.0) == [(0.0, 10.0)]
    assert asked.new_parts(2.0, 8.0) == []
    assert asked.new_parts(5.0, 15.0) == [(10.0, 15.0)]
    assert asked.new_parts(20.0, 30.0) == [(20.0, 30.0)]
    assert asked.new_parts(0.0, 40.0) == [(15.0, 20.0), (30.0, 40.0)]
    assert asked.intervals == [(0.0, 40.0)]
