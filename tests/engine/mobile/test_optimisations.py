"""Ways to save work change nothing in what is told, whichever are taken; and they do save work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import (
    as_told,
    compiled,
    in_batches,
    is_taken,
    sorted_told,
    taking,
    with_snapshots,
)
from tests.reference.matches import TooLarge
from tests.reference.mobile import deliveries
from tests.reference.mobile.strategies import ANCHORED, mobile_queries, worlds_of_events
from tests.reference.strategies import FEATURES, arrivals, cuts

from whimbrel.engine.mobile import cohorts
from whimbrel.engine.mobile.once import OncePipeline
from whimbrel.engine.mobile.optimisations import Optimisations
from whimbrel.engine.session import Session
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import SECOND
from whimbrel.testing import table

TELLINGS = st.sampled_from(["all", "new", "changes"])
CHOICES = st.builds(Optimisations, *[st.booleans()] * 4)


def expected(query, events):
    assume(is_taken(query))
    try:
        return sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    except TooLarge:
        reject()


@given(
    st.data(),
    mobile_queries() | mobile_queries(FEATURES - ANCHORED),
    worlds_of_events(),
    TELLINGS,
    CHOICES,
    st.sampled_from((0, 1, cohorts.MANY)),
)
def test_every_combination_tells_the_same(data, query, events, deliver, chosen, many):
    query = replace(query, deliver=deliver)
    answer = expected(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, SECOND))))
    with taking(chosen, many):
        assert sorted_told(in_batches(compiled(query), batches, SECOND)) == answer
        assert sorted_told(with_snapshots(compiled(query), batches, SECOND)) == answer


@given(st.data(), mobile_queries(FEATURES - ANCHORED), worlds_of_events(max_size=6), CHOICES)
def test_objects_that_stand_still_or_hardly_move_tell_the_same(data, query, events, chosen):
    here = data.draw(st.sampled_from(((1.0, 1.0), (2.0, 0.0))))
    events = [replace(each, x=here[0], y=here[1]) if each.type == "F" else each for each in events]
    answer = expected(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, 0))))
    with taking(chosen, data.draw(st.sampled_from((0, cohorts.MANY)))):
        assert sorted_told(with_snapshots(compiled(query), batches)) == answer


ALONE = """
define Alone detect A as a then not B for 2 s
around Car as car within 2 m report Alone lifetime 10 s
"""
STEPS = (
    "A@1s#a1(0,0) Car@2s#p1!c(0,0)",
    "A@3s#a2(1,0) Car@4s#p2!c(0.5,0)",
    "Car@5s#p3!c(0.5,0.5) A@6s#a3(0,1) Car@7s#p4!c(0.25,0)",
    "A@8s#a4(9,0) Car@9s#p5!c(8,0)",
)


@pytest.mark.parametrize(
    ("chosen", "steps", "begun"),
    [
        (Optimisations(), STEPS, 2),
        (Optimisations(), (" ".join(STEPS),), 2),
        (Optimisations(lemma_2=False), STEPS, 4),
    ],
)
def test_a_switch_that_changes_no_event_keeps_the_run(chosen, steps, begun):
    with taking(chosen):
        session = Session(compile_text(ALONE))
        found = [session.push(table(each)) for each in steps]
        found.append(session.close())
    told = sorted(
        (row["interest"], row["live"], row["events"][0]) for each in found for row in each.to_pylist()
    )
    assert told == [
        (1, True, "a1"),
        (2, False, "a1"), (3, False, "a1"), (3, True, "a2"),
        (4, False, "a1"), (4, False, "a2"), (4, True, "a3"),
        (5, True, "a4"),
    ]  # fmt: skip
    assert session.monitor().to_pylist()[0]["cohorts_begun"] == begun


# -- several queries -----------------------------------------------------------------------------------------


@given(st.data(), mobile_queries(), worlds_of_events(), st.booleans())
def test_queries_that_find_the_same_tell_what_each_would_alone(data, query, events, shares):
    others = mobile_queries(graph=query.graph, name="R", of=query.of)
    queries = [query, data.draw(others | mobile_queries(graph=query.graph, name="R", of="situations"))]
    answer = sorted_told([each for one in queries for each in expected(one, events)])
    both = replace(compiled(query), mobile=tuple(compiled(one).mobile[0] for one in queries))
    batches = data.draw(cuts(data.draw(arrivals(events, SECOND))))
    with taking(Optimisations(share_once=shares)):
        assert sorted_told(in_batches(both, batches, SECOND)) == answer
        assert sorted_told(with_snapshots(both, batches, SECOND)) == answer


TWO = """
define Pair detect A as a then B as b within 4 s
define Alone detect A as a then not B for 2 s
around Car as near within 2 m {first} report {reported} lifetime 10 s
around Car as far within 20 m {second} report {reported} lifetime 30 s
"""


@pytest.mark.parametrize(
    ("first", "second", "reported", "runs"),
    [
        ("", "", "Pair", 1),
        ("", "", "Pair, Alone", 1),
        ("of situations", "of situations", "Pair, Alone", 1),
        ("", "of situations", "Pair", 2),
    ],
)
def test_what_is_found_once_is_found_once_for_all_queries(monkeypatch, first, second, reported, runs):
    stepped = []
    step = OncePipeline.step
    monkeypatch.setattr(OncePipeline, "step", lambda self: (stepped.append(id(self)), step(self))[1])
    text = TWO.format(first=first, second=second, reported=reported)
    events = table("A@1s#a1(0,0) B@2s#b1(1,0) Car@5s#p1!c(0,0) A@9s#a2(9,0) B@10s#b2(9,0) Car@11s#p2!c(9,0)")
    session = Session(compile_text(text))
    tables = [session.push(events), session.close()]
    found = [each for table in tables for each in table.to_pylist()]
    assert len(set(stepped)) == runs
    pairs = [(row["query"], row["interest"], row["live"]) for row in found if row["type"] == "Pair"]
    assert sorted(pairs) == [
        ("far", 1, False), ("far", 1, True), ("far", 2, False), ("far", 2, False),
        ("near", 1, False), ("near", 2, False),
    ]  # fmt: skip
    rows = session.monitor().to_pylist()
    assert [row["steps_once"] > 0 for row in rows] == [True, runs == 2]


def test_an_object_that_does_not_count_its_own_events_shares_nothing():
    text = TWO.format(first="", second="", reported="Pair") + "  excluding itself"
    (run,) = Session(compile_text(text)).running.following
    assert len(run.shared_runs) == 2


def test_runs_that_wait_long_let_go_of_events_as_the_session_does():
    text = "define Run detect A+ as a within 1 s assign n = sum(a.v)"
    text += "  around Car as car within 2 m report Run  refresh every 1 h"
    steps = (
        "A@0s#a1(0,0):v=1 Car@0s#p!c(0,0) A@0.5s#a2(9,9):v=1",
        "A@4s#a3(9,9):v=1",
        "A@9s#a4(0,0):v=1",
    )
    with taking(Optimisations(plain_once=False)):
        session, tables = Session(compile_text(text)), []
        for each in steps:
            tables.append(session.push(table(each)))
            saved, session = session.snapshot(), Session(compile_text(text))
            session.restore(saved)
        tables.append(session.close())
    found = [(row["events"], row["n"]) for each in tables for row in each.to_pylist()]
    assert found == [(["a1"], 1), (["a4"], 1)]
