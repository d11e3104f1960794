"""Where a run may begin: bounded operators find the same from any beginning, the others say why not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.comparing import plain, whole
from tests.reference.notation import given as given_events
from tests.reference.random_motions import motion_graphs, sample_lists
from tests.reference.random_steps import Features
from tests.reference.random_steps import events as step_events
from tests.reference.random_steps import pattern as step_pattern
from tests.reference.strategies import event_lists, graphs
from tests.steps import engine as steps

import whimbrel as wb
from whimbrel.graph.operators import Graph, Motion, Verb
from whimbrel.graph.reach import anchors, reach
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import END_OF_TIME, instant

SECOND = 1_000_000
BOUNDED = Features(alternatives=0.15, gaps=0.15, windows=0.3, within=1, skips=0)


def from_the_beginning(graph: Graph, events, since: int):
    return [found for found in plain(whole(graph, events)) if found[2] >= since]


def from_a_reach_before(graph: Graph, events, since: int):
    """What a run finds that begins, empty, as far back as results reach."""
    begins = since - max(reach(graph, name) for name in graph.outputs)
    return from_the_beginning(graph, [event for event in events if event.end >= begins], since)


@given(graphs(), event_lists(), st.integers(0, 9))
def test_bounded_operators_find_the_same_wherever_a_run_began(graph, events, second):
    assume(not anchors(graph))
    since = second * SECOND
    assert from_a_reach_before(graph, events, since) == from_the_beginning(graph, events, since)


@given(motion_graphs(), sample_lists(), st.integers(0, 9), st.integers(1, 3))
def test_silence_is_the_same_wherever_a_run_began(graph, samples, second, seconds):
    operators = tuple(
        replace(op, verb=Verb.IS_SILENT, duration=seconds * SECOND) if isinstance(op, Motion) else op
        for op in graph.operators
    )
    graph = replace(graph, operators=operators)
    assert not anchors(graph)
    since = second * SECOND
    assert from_a_reach_before(graph, samples, since) == from_the_beginning(graph, samples, since)


@pytest.mark.parametrize(
    "text",
    [
        "define D detect A(v > 3)",
        "define D detect A as a then last B as b then not C for 5 s within 5 s",
        "define D detect A as a then B as b within 5 s context recent",
        "define D detect A{2,3} as a until C within 5 s",
        "define D detect (A as a or B as b)",
        "define D(n) every 1 min detect A assign n = count(A)",
        "define D(n) over 1 min every 10 s detect A assign n = count(A)",
        "define D(n) over 3 events within 1 min detect A assign n = count(A)",
        "define D detect A as a next B{2,} as b within 5 s",
        "define D detect A is silent for 5 s",
        "define D detect A changes v within 5 s",
        "define D detect time '1970-01-01T00:00:05Z' then not B for 1 s",
    ],
)
def test_what_is_bounded(text):
    assert anchors(compile_text(text).graph) == {}


ANCHORED = {
    "define D detect A as a then B as b within 20 s consuming a": "uses events up",
    "define D detect A as a then B as b within 20 s context chronicle": "uses events up",
    "define D(n) over 3 events every 2 events within 1 min detect A assign n = count(A)": "counts events in",
    "define D detect A as a followed by any A as b within 20 s skip past last event": "skips what",
    "define D detect A as a followed by B as b within 20 s limit 1 runs": "may have to give up",
    "region R = box(0, 0, 1, 1) define D detect A enters R gap 2 s": "knows where movers were",
    "define D detect A stops for 3 s within 1 m gap 9 s": "knows where movers were",
    "define D detect A as a comes within 5 m of A as b": "knows where movers were",
}


@pytest.mark.parametrize(("text", "why"), ANCHORED.items())
def test_what_is_anchored_and_why(text, why):
    (said,) = anchors(compile_text(text).graph).values()
    assert said.startswith(why)


class Each(wb.CustomOperator):
    """Gives every event."""

    def process(self, events):
        return [{} for _ in events]


class BoundedEach(Each):
    """The same, and says so."""

    bounded = True


@pytest.mark.parametrize(("operator", "is_anchored"), [(Each, True), (BoundedEach, False)])
def test_operators_in_python_are_anchored_unless_they_say_otherwise(operator, is_anchored):
    from whimbrel.graph.custom import restriction, window
    from whimbrel.graph.policies import SelectionPolicy

    query = wb.custom_query("X", operator, ["A"], SelectionPolicy((window("A"),), restriction("1 s")))
    assert bool(anchors(query.graph, query.operators)) is is_anchored


def test_what_counts_events_depends_on_where_it_began():
    text = "define D(n) over 1 events every 2 events within 1 min detect A assign n = count(A)"
    graph = compile_text(text).graph
    events = given_events("A@0s A@1s A@2s A@3s A@4s")
    later = [event for event in events if event.end >= SECOND]
    assert from_the_beginning(graph, events, 2 * SECOND) != from_the_beginning(graph, later, 2 * SECOND)


@given(st.randoms(use_true_random=False), st.integers(0, 9))
def test_sequences_of_steps_find_the_same_wherever_a_run_began(rng, second):
    query = steps.compiled(step_pattern(rng, BOUNDED))
    rows = steps.rows(step_events(rng))
    bounded = not anchors(query.graph)
    assume(bounded and max(reach(query.graph, name) for name in query.graph.outputs) < END_OF_TIME)
    since = second * SECOND
    begins = since - max(reach(query.graph, name) for name in query.graph.outputs)
    later = [row for row in rows if row["time"] * 1000 >= begins]
    found, found_later = (
        [
            each
            for each in wb.detect(query, given, time_unit="ms").to_pylist()
            if instant(each["end"]) >= since
        ]
        for given in (rows, later)
    )
    assert found == found_later


def test_what_first_prefers_is_remembered_as_long_as_it_decides():
    # B@1 is preferred to B@9 for A@5, though it lies further back from B@9 than the pattern may span.
    running = wb.Session(compile_text("define X detect A as a and first B as b within 5 s group by k"))
    many = [{"type": "B", "time": 0.1 + n / 10_000, "id": f"f{n}", "k": "x"} for n in range(3000)]
    few = [("B", 1.0, "y"), ("A", 5.0, "y"), ("A", 8.9, "z"), ("A", 8.95, "z"), ("B", 9.0, "y")]
    rows = [{"type": kind, "time": at, "id": f"{kind}{at:g}", "k": k} for kind, at, k in few]
    tables = [running.push(many), *(running.push([row]) for row in rows), running.close()]
    assert [row["events"] for table in tables for row in table.to_pylist()] == [["B1", "A5"]]
