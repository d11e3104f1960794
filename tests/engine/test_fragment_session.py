"""A query that is cut into pieces finds what it finds as a whole: the same events, with the same ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.strategies import event_lists, graphs
from tests.reference.tables import event_table

from whimbrel import detect
from whimbrel.engine.derived_batch import DerivedBatch
from whimbrel.engine.fragment_session import FragmentSession
from whimbrel.engine.session import Session
from whimbrel.graph.fragments import Fragment, cut
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text
from whimbrel.model.frames import batches
from whimbrel.model.time import END_OF_TIME


def rows(tables: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """Everything that is said of detections, but for attributes that are null."""
    every = [row for table in tables for row in table.to_pylist()]
    found = [{name: row[name] for name in sorted(row) if row[name] is not None} for row in every]
    return sorted(found, key=repr)


def common_form(query: Query, events: Any) -> pa.RecordBatch:
    session = Session(query, lateness=None)
    (batch,) = batches(events, rows=1_000_000)
    return session.normalise(batch).events


def run_pieces(
    pieces: Sequence[Fragment], events: pa.RecordBatch, times: Sequence[int], *, restarts: bool
) -> list[dict[str, Any]]:
    """Let time pass step by step; every piece sees what came up to then, and what others gave by then."""
    relays = {piece.name: FragmentSession(piece) for piece in pieces}
    complete = {name: -END_OF_TIME for piece in pieces for name in piece.gives}
    found, before = [], -END_OF_TIME
    for time in (*times, END_OF_TIME):
        ends = events.column("end").to_numpy(zero_copy_only=False)
        part = events.filter(pa.array((ends > before) & (ends <= time)))
        on_its_way: dict[str, list[DerivedBatch]] = {}
        for piece in pieces:
            relay = relays[piece.name]
            if restarts:
                relay, saved = FragmentSession(piece), relay.session.snapshot()
                relay.session.restore(saved)
                relays[piece.name] = relay
            given = relay.take(
                [part],
                {name: on_its_way.get(name, []) for name in piece.takes},
                min([time, *(complete[name] for name in piece.takes)]),
            )
            complete |= given.complete
            for name, carried in given.derived.items():
                on_its_way[name] = [DerivedBatch.from_bytes(each.to_bytes()) for each in carried]
            found.append(given.detections)
        before = time
    assert not any(
        relay.session.counts.late or relay.late_derived or relay.session.counts.waiting
        for relay in relays.values()
    )
    return rows(found)


@settings(max_examples=30)
@given(graphs(), event_lists(), st.lists(st.integers(0, 12), max_size=4, unique=True), st.booleans())
def test_pieces_find_what_the_whole_finds(graph, events, seconds, restarts):
    query, table = Query(graph), event_table(events)
    if not table.num_rows:
        return
    start = min(event.end for event in events)
    times = [start + 1_000_000 * second for second in sorted(seconds)]
    found = run_pieces(cut(query), common_form(query, table), times, restarts=restarts)
    assert found == rows([detect(query, table)])


def test_order_between_pieces_is_that_of_the_events_below():
    # Copies of A and B end at the same time, and the atomic event that ties with them is between the two.
    query = compile_text("""
        define CopyA(v) detect A as a assign v = a.v
        define CopyB(v) detect B as b assign v = b.v
        define Last(v) detect last CopyA as a and last CopyB as b and M as m within 5 s assign v = a.v + b.v
          context first-matching
    """)
    events = [
        {"id": id_, "type": kind, "time": 1, "source": "s", "v": v}
        for id_, kind, v in (("3", "A", 1), ("1", "A", 2), ("2", "M", 0), ("4", "B", 3), ("0", "B", 4))
    ]
    found = run_pieces(cut(query), common_form(query, events), [], restarts=False)
    assert len(found) == 1
    assert found == rows([detect(query, events)])


def test_provenance_of_steps_keeps_the_order_in_which_events_were_taken():
    query = compile_text("""
        define Steps detect A as a followed by B as b within 10 s
        define Again detect Steps
    """)
    events = [{"id": kind, "type": kind, "time": time} for time, kind in ((1, "A"), (2, "B"))]
    found = run_pieces(cut(query), common_form(query, events), [], restarts=True)
    assert found == rows([detect(query, events)])
