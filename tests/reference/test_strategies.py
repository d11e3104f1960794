"""The random graphs and events are valid, varied and quick enough to be worth comparing with."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import admit
from tests.reference.data import order
from tests.reference.random_graphs import GraphDraft
from tests.reference.strategies import (
    FEATURES,
    arrivals,
    cuts,
    deliveries,
    event_lists,
    expected,
    graphs,
)
from tests.reference.streams import happening

from whimbrel.graph.operators import Aggregate, JoinPattern, TimePoints
from whimbrel.graph.policies import Context
from whimbrel.model.time import SECOND


def _time_points(graph):
    return [happening(operator) for operator in graph.operators if isinstance(operator, TimePoints)]


@given(graphs(), event_lists())
def test_the_reference_can_run_every_graph(graph, events):
    found = expected(graph, events)
    known = {event.id for event in [*events, *_time_points(graph)]}
    for detection in found:
        assert known.issuperset(detection.events)
        assert detection.start <= detection.end


@given(graphs(), event_lists(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(graph, events, random):
    shuffled = random.sample(events, len(events))
    assert expected(graph, shuffled) == expected(graph, events)


@given(graphs(FEATURES - {"layers"}), event_lists())
def test_without_contexts_every_detection_keeps_what_it_promises(graph, events):
    by_id = {event.id: event for event in [*events, *_time_points(graph)]}
    for detection in expected(graph, events):
        atoms = [by_id[name] for name in detection.events]
        assert atoms == sorted(atoms, key=order)
        assert detection.start == min(atom.start for atom in atoms)
        assert detection.end >= max(atom.end for atom in atoms)


@given(event_lists().flatmap(lambda events: st.tuples(st.just(events), cuts(events))))
def test_cuts_lose_nothing(drawn):
    events, batches = drawn
    assert [event for batch in batches for event in batch] == events


@given(st.data(), event_lists(), st.integers(0, 4))
def test_arrivals_are_never_late_however_they_are_cut(data, events, lateness):
    arriving = data.draw(arrivals(events, lateness * SECOND))
    admitted = admit(data.draw(cuts(arriving)), lateness * SECOND)
    assert admitted.processed == sorted(events, key=order)


@given(st.data(), event_lists(), st.integers(0, 4))
def test_every_delivery_is_accounted_for(data, events, lateness):
    batches = data.draw(deliveries(events))
    admitted = admit(batches, lateness * SECOND)
    counted = len(admitted.processed) + len(admitted.late) + len(admitted.duplicate)
    assert counted == sum(len(batch) for batch in batches)
    ids = [event.id for event in admitted.processed]
    assert len(set(ids)) == len(ids)


@given(graphs({"conjunction"}))
def test_only_what_was_asked_for_occurs(graph):
    for operator in graph.operators:
        assert not isinstance(operator, Aggregate)
        if isinstance(operator, JoinPattern):
            assert operator.context is Context.EACH
            assert operator.absent == operator.conditions == operator.consuming == ()


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match="no such features: magic"):
        GraphDraft(lambda strategy: None, frozenset({"magic"}), max_parts=4)


@pytest.mark.slow
def test_many_examples_find_something():
    seen: Counter[str] = Counter()

    @settings(max_examples=500, database=None)
    @given(graphs(), event_lists(min_size=6))
    def run(graph, events):
        found = expected(graph, events)
        seen["all"] += 1
        seen["found"] += bool(found)

    run()
    assert seen["found"] > seen["all"] / 3
