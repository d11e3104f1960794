"""A proof by execution: with each rewrite alone, with all and with none, the detections are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain
from tests.reference.data import Event
from tests.reference.strategies import FEW, event_lists, expected, graphs
from tests.reference.tables import event_table

from whimbrel import detect
from whimbrel.graph.operators import Graph, JoinPattern
from whimbrel.graph.passes import PASSES, Pass, rewrite
from whimbrel.graph.passes.find_joins import find_joins
from whimbrel.graph.passes.share_prefixes import beginning_of, cut
from whimbrel.graph.query import Query

SEQUENCES = frozenset({"filter", "conditions", "absent", "gap", "partition", "layers", "assign", "space"})
"""What sequences that can be cut may have."""


def found(graph: Graph, events: Sequence[Event], passes: Sequence[Pass]) -> Any:
    """Run the engine with some rewrites only."""
    rewritten = []

    def only_some(graph: Graph) -> Graph:
        rewritten.append(graph)
        return rewrite(graph, passes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.graph.query.rewrite", only_some)
        detections = detect(Query(graph), event_table(events))
    assert rewritten  # or the engine had its rewrites from elsewhere, and this would prove nothing
    return detections


@pytest.mark.parametrize("apply", PASSES, ids=lambda apply: apply.__name__)
@FEW
@given(graph=graphs(), events=event_lists())
def test_one_rewrite_alone_changes_nothing(apply, graph, events):
    """Everything stays: which detections there are, their ids, attributes, events and order."""
    assert found(graph, events, [apply]).to_pylist() == found(graph, events, ()).to_pylist()


@given(graph=graphs(), events=event_lists())
def test_all_rewrites_together_change_nothing(graph, events):
    rewritten = found(graph, events, PASSES)
    assert rewritten.to_pylist() == found(graph, events, ()).to_pylist()
    assert plain(as_detections(rewritten)) == plain(expected(graph, events))


@given(graph=graphs())
def test_what_is_rewritten_is_not_rewritten_again(graph):
    once = rewrite(graph)
    assert rewrite(once) == once


@settings(FEW, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data(), graph=graphs(SEQUENCES), events=event_lists(min_size=6))
def test_a_sequence_cut_in_two_finds_the_same(data, graph, events):
    graph = rewrite(graph, [find_joins])
    possible = [
        (match.name, length)
        for match in graph.operators
        if isinstance(match, JoinPattern)
        for length in range(2, len(match.parts))
        if beginning_of(match, length, "") is not None
    ]
    assume(possible)
    in_two = cut(graph, *data.draw(st.sampled_from(possible)))
    assert found(in_two, events, ()).to_pylist() == found(graph, events, ()).to_pylist()
