"""Push and pull plans find all there is, whatever is pulled, and pulling costs less where events are rare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.poisson import poisson_events, run_plan, run_together
from whimbrel import detect
from whimbrel.errors import NetworkError
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.plan import Estimate, JunctionPlan, PushPullPlan, all_pushed
from whimbrel.plan.pushpull.tree import Junction, Leaf, VirtualTrees, detection_tree, is_negated
from whimbrel.sim.pushpull.matching import Candidates, PartialMatch, RequestedTimes

NODES = ("sink", "middle", "a", "b", "c")


def tree(contacts=ALWAYS, latency_s=1.0):
    """The sink over c and a middle node, that over a and b."""
    pairs = (("sink", "middle"), ("sink", "c"), ("middle", "a"), ("middle", "b"))
    links = tuple(Link(one, other, latency_s=latency_s, contacts=contacts) for one, other in pairs)
    return Network(tuple(Broker(name) for name in NODES), links)


def plan(turns=(0, 0, 0, 0), negated=False, order=None, operator="and", network=None, **about):
    """Turns of the middle node and of c at the sink, of a and of b at the middle node."""
    parts = {name: PrimitiveEvent(name, name, 0.1, 100.0, negated and name == "c") for name in "abc"}
    composite = Composite(
        "abc",
        "seq" if order else operator,
        tuple(parts[name] for name in order or "abc"),
        **{"window_s": 20.0, "at": "sink", **about},
    )
    root = detection_tree(tree() if network is None else network, composite)
    made = PushPullPlan(
        composite, turned(root, dict(zip(("middle", "c", "a", "b"), turns, strict=True))), ZERO
    )
    made.check()
    return made


ZERO = Estimate(0.0, 0.0)


def turned(junction, turns):
    """Take the inputs of junctions in turns, those of turn 0 pushed."""
    at = {
        n: turns[each.at if isinstance(each, Junction) else each.part.name]
        for n, each in enumerate(junction.inputs)
    }
    last = {n for n in at if is_negated(junction.inputs[n]) and at[n]}
    stages = [tuple(n for n in at if at[n] == turn and n not in last) for turn in range(3)] + [tuple(last)]
    below = {n: turned(each, turns) for n, each in enumerate(junction.inputs) if isinstance(each, Junction)}
    return JunctionPlan(junction, (stages[0], *(stage for stage in stages[1:] if stage)), below)


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
    network = tree(contacts)
    made = plan(turns, order=order, network=network)
    found = run_plan(made, network, events)
    assert not found.missed
    assert not found.invented
    assert len(found.delays_s) == len(found.found)
    assert found.traffic.on_their_way == 0


@given(some_times, some_times, some_times, st.integers(0, 2), schedules)
def test_what_must_not_occur_before_and_after_the_others_is_waited_for(a, b, c, turn, contacts):
    network = tree(contacts)
    made = plan((0, turn, 0, 1), negated=True, is_amid=False, network=network)
    found = run_plan(made, network, given_events(a=a, b=b, c=c))
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
    network = tree(contacts)
    made = plan((0, turn, 0, 1), negated=True, order=order, network=network)
    found = run_plan(made, network, given_events(a=a, b=b, c=c))
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
    network = tree(PeriodicContacts(20.0, 5.0))
    found = run_plan(plan((0, 1, 0, 1), order=order, network=network), network, events)
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
    network = tree(PeriodicContacts(30.0, 10.0))
    push, pull = plan(network=network), plan((0, 1, 0, 1), network=network)
    trees = VirtualTrees(push.root.junction)
    all_push = replace(push, root=all_pushed(trees.without(trees.names)))
    ways = {"all push": all_push, "push": push, "pull": pull}
    costs = {name: run_plan(made, network, events) for name, made in ways.items()}
    assert len({each.found for each in costs.values()}) == 1
    assert costs["pull"].cost_a_minute < costs["push"].cost_a_minute < costs["all push"].cost_a_minute
    assert costs["pull"].delays_s.mean() > costs["all push"].delays_s.mean()


def test_plans_that_make_no_sense_are_refused():
    with pytest.raises(NetworkError, match="nothing is pushed to 'sink'"):
        plan((1, 1, 0, 0))
    with pytest.raises(NetworkError, match="nothing is pushed to 'middle'"):
        plan((0, 1, 1, 2))
    with pytest.raises(NetworkError, match="only 'sink' can tell what must not occur"):
        replace(plan(), root=with_negated_below(plan().root)).check()


def with_negated_below(root):
    """Make the first input of the junction below the uppermost one negated."""
    (number,) = root.below
    below = root.below[number]
    leaf = below.junction.inputs[0]
    negated = replace(leaf, part=replace(leaf.part, is_negated=True))
    junction = replace(below.junction, inputs=(negated, *below.junction.inputs[1:]))
    inputs = tuple(junction if n == number else each for n, each in enumerate(root.junction.inputs))
    return JunctionPlan(
        replace(root.junction, inputs=inputs), root.stages, {number: replace(below, junction=junction)}
    )


def test_nothing_is_asked_for_twice():
    asked = RequestedTimes()
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
    asked = RequestedTimes()
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
    made = plan(operator="or")
    found = run_plan(made, tree(), given_events(a=[1.0, 2.0], b=[50.0], c=[]))
    assert {atoms[0][2] for atoms in found.found} == {"a0", "a1", "b0"}
    assert not found.missed
    assert not found.invented
    assert found.traffic.whole.bytes == 2 * 3 * 100
    with pytest.raises(NetworkError, match="alternatives are never asked for"):
        plan((0, 1, 0, 0), operator="or")


def test_an_event_that_two_plans_need_crosses_a_link_once():
    events = poisson_events({"a": 4.0, "b": 6.0, "c": 8.0}, 600.0, np.random.default_rng(1))
    made = {"wide": plan((0, 0, 0, 0)), "narrow": plan((0, 0, 0, 0), window_s=5.0)}
    alone = {name: run_plan(each, tree(), events) for name, each in made.items()}
    both = run_together(made, tree(), events)
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
    part = PrimitiveEvent("a", "a", 0.1, 100.0)
    composite = Composite("only a", "and", (part,), 10.0, "sink")
    events = given_events(a=[1.0, 2.0])
    for path, cost in ((("a", "sink"), 9 * 200), (("a", "x", "sink"), 2 * 200)):
        root = JunctionPlan(Junction("sink", (Leaf(part, path=path),)), ((0,),), {})
        found = run_plan(PushPullPlan(composite, root, ZERO), network, events)
        assert found.traffic.whole.cost == cost
