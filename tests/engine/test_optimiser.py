"""What the engine does to have less work: the order of binding, and what queries share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain
from tests.reference.data import Event
from tests.reference.strategies import FEW, cuts, event_lists, expected, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel import detect
from whimbrel.engine.operators.join_pattern import JoinPatternOperator
from whimbrel.graph.binding import Tie, binding_order, usual_order
from whimbrel.graph.operators import Graph, JoinPattern, Operator
from whimbrel.graph.query import Query
from whimbrel.model.time import SECOND

THREE = "define X detect A as a then B as b then C as c within 1 h group by source"


# -- the order of binding ----------------------------------------------------------------------------------


def test_parts_are_bound_from_the_end_of_a_sequence_where_all_are_equally_frequent():
    assert binding_order(2, [-1, 0, 1], [5.0, 5.0, 5.0], []) == [2, 1, 0]


def test_a_rare_part_is_bound_early():
    assert binding_order(3, [-1, -1, -1, -1], [10.0, 0.01, 100.0, 1.0], []) == [3, 1, 0, 2]


def test_a_part_that_a_selective_condition_ties_is_bound_early():
    ties = [Tie(frozenset((0, 2)), 0.001)]
    assert binding_order(2, [-1, -1, -1], [50.0, 50.0, 1.0], ties) == [2, 0, 1]


def test_long_patterns_are_bound_as_usual():
    before = [-1, *range(11)]
    assert binding_order(11, before, [0.0, *[9.0] * 11], []) == usual_order(11, before)


@FEW
@given(data=st.data(), graph=graphs(), events=event_lists())
def test_the_order_of_binding_changes_nothing(data, graph, events):
    usual = detect(Query(graph), event_table(events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.engine.operators.join_pattern.binding_order", lambda trigger, before, *_: [
            trigger, *data.draw(st.permutations([n for n in range(len(before)) if n != trigger]))
        ])  # fmt: skip
        found = detect(Query(graph), event_table(events))
    assert found.to_pylist() == usual.to_pylist()
    assert plain(as_detections(found)) == plain(expected(graph, events))


def test_a_session_binds_the_rare_part_first_once_it_has_seen_events():
    session = wb.Session(wb.compile(THREE))
    (matcher,) = [
        r for r in session.running.pipelines["X"].runtimes.values() if isinstance(r, JoinPatternOperator)
    ]
    assert matcher.plan[2].tolist() == [2, 1, 0]
    session.push(rows("B" * 300 + "C"))
    assert matcher.plan[2].tolist() == [2, 0, 1]


# -- what queries share -----------------------------------------------------------------------------------


VISIT = "define Visit{0} detect A as a then B as b then C(stop = {0}) as c within 10 s group by source"


def visits(*stops: int) -> wb.Session:
    session = wb.Session()
    for stop in stops:
        session.add(wb.compile(VISIT.format(stop)))
    return session


def push(session: wb.Session, events: list[dict[str, Any]]) -> pa.Table:
    """Push events, and say that these were all up to now."""
    last = max(event["time"] for event in events)
    tables = [session.push(events), session.advance(last * SECOND)]
    return pa.concat_tables(tables, promote_options="permissive")


def test_sequences_that_begin_alike_find_their_beginning_once():
    session = visits(1, 2, 3)
    found = push(session, [*rows("AB"), *rows("..C", stop=2)])
    assert found.column("type").to_pylist() == ["Visit2"]
    (common,) = session.running.sharing.commons.values()
    assert [part.alias for part in common.graph[common.graph.outputs[0]].parts] == ["a", "b"]
    assert {view.reader for view in common.readers} == {"Visit1", "Visit2", "Visit3"}


def test_a_query_sleeps_until_an_event_comes_that_can_complete_it():
    session = visits(1, 2)
    push(session, [*rows("AB"), *rows("..C", stop=2)])
    assert session.running.pipelines["Visit1"].is_behind
    assert not session.running.pipelines["Visit2"].is_behind
    assert push(session, rows("...C", stop=1)).column("type").to_pylist() == ["Visit1"]


def test_what_waits_goes_with_the_events_it_is_made_of():
    """The two pairs span the same time, so that putting them in order asks for their sources."""
    session = wb.Session()
    for stop in (1, 2):
        session.add(wb.compile(f"define P{stop} detect A then B then C(stop = {stop}) within 5 s"))
    with sharing_always():
        push(session, [*rows("A"), *rows("A", source="other", id="other")])
    push(session, rows("....B"))
    session.advance(11 * SECOND)
    assert session.running.pipelines["P1"].is_behind
    assert session.running.events.stream.store.first == 2  # the two A are forgotten, their pairs not yet
    session.restore(session.snapshot())
    assert push(session, rows("............C", stop=1)).num_rows == 0


def test_a_query_that_starts_later_sees_the_events_that_come_from_then_on():
    session = visits(1, 2)
    push(session, rows("AB"))
    session.add(wb.compile(VISIT.format(3)))
    assert push(session, rows("..C", stop=3)).num_rows == 0
    found = push(session, [*rows("...AB"), *rows(".....C", stop=3)])
    assert found.column("events").to_pylist() == [["A3", "B4", "C5"]]


def test_removing_a_query_takes_nothing_from_those_that_share_with_it():
    session = visits(1, 2)
    push(session, rows("AB"))
    session.remove("Visit1")
    assert push(session, rows("..C", stop=2)).column("type").to_pylist() == ["Visit2"]
    session.remove("Visit2")
    assert not session.running.sharing.commons
    assert not session.running.events.types


def test_one_definition_in_two_queries_is_found_once_and_reported_by_both():
    pair = "define Pair detect A as a then B as b within 1 h group by source"
    session = wb.Session()
    session.name_queries()
    session.add(wb.compile(pair), name="one")
    session.add(wb.compile(f"{pair}\ndefine Far detect Pair as p then C as c within 1 h"), name="two")
    found = push(session, [*rows("AB"), *rows("..C")]).to_pylist()
    listed = sorted((row["@query"], row["type"], *row["events"]) for row in found)
    assert listed == [("one", "Pair", "A0", "B1"), ("two", "Far", "A0", "B1", "C2")]
    assert len(session.running.sharing.commons) == 1


def test_what_calls_a_function_of_the_query_is_not_shared():
    @wb.function(returns="bool")
    def near(one: float, other: float) -> bool:
        return abs(one - other) < 5

    text = "define P{0} detect A as a then B as b then C(stop = {0}) as c within 1 h where near(a.v, b.v)"
    session = wb.Session()
    for stop in (1, 2):
        session.add(wb.compile(text.format(stop), functions=[near]))
    found = push(session, [*rows("AB", v=1.0), *rows("..C", stop=2)])
    assert found.column("type").to_pylist() == ["P2"]
    assert not session.running.sharing.commons


def test_a_beginning_with_more_combinations_than_events_is_not_shared():
    session = wb.Session()
    for stop in (1, 2):
        session.add(wb.compile(f"define P{stop} detect A then B then C(stop = {stop}) within 10 h"))
    push(session, rows("AB" * 200))
    assert not session.running.sharing.commons


def test_an_error_in_what_is_shared_is_told():
    session = wb.Session()
    for stop in (1, 2):
        pattern = f"A as a then B as b then C(stop = {stop}) as c within 1 min where a.v < b.w"
        session.add(wb.compile(f"define P{stop} detect {pattern}"))
    with pytest.raises(wb.WhimbrelError, match=r"a\.v < b\.w"):
        push(session, [*rows("A", v=1), *rows(".B", w="one")])


@st.composite
def query_sets(draw: st.DrawFn) -> list[Graph]:
    """Queries with much in common: variants of one graph, other outputs, other ends of its sequences."""
    graph = draw(graphs())
    found = [graph]
    for _ in range(draw(st.integers(1, 3))):
        outputs = tuple(name for name in graph.outputs if draw(st.booleans())) or graph.outputs
        kind = draw(st.sampled_from("ABCD"))
        found.append(
            replace(_with_other_ends(graph, kind) if draw(st.booleans()) else graph, outputs=outputs)
        )
    return found


def _with_other_ends(graph: Graph, kind: str) -> Graph:
    return replace(graph, operators=tuple(_with_other_end(operator, kind) for operator in graph.operators))


def _with_other_end(operator: Operator, kind: str) -> Operator:
    if not isinstance(operator, JoinPattern) or operator.parts[-1].alias is None:
        return operator
    *first, last = operator.parts
    return replace(operator, parts=(*first, replace(last, input=kind)))


def start(queries: Mapping[str, Graph], **settings: Any) -> wb.Session:
    session = wb.Session(**settings)
    session.name_queries()
    for name, graph in queries.items():
        session.add(Query(graph), name=name)
    return session


def by_query(tables: Iterable[pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """Give the detections of each query, without what others add: columns that are always null."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in tables:
        for row in table.to_pylist():
            name = row.pop("@query")
            found.setdefault(name, []).append({k: v for k, v in row.items() if v is not None})
    return {name: sorted(listed, key=repr) for name, listed in found.items()}


def alone(queries: Mapping[str, Graph], batches: Sequence[Sequence[Event]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, graph in queries.items():
        session = start({name: graph}, lateness=0)
        tables = [session.push(event_table(batch)) for batch in batches if batch]
        found |= by_query([*tables, session.close()])
    return found


@contextmanager
def sharing_always() -> Iterator[None]:
    """Let queries share every beginning, however many combinations it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.engine.sharing.worth_sharing", lambda *_, **__: True)
        yield


def sorted_cuts(data: st.DataObject, events: list[Event]) -> list[list[Event]]:
    return data.draw(cuts(sorted(events, key=lambda event: (event.end, event.start))))


@FEW
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_queries_that_share_find_what_they_find_alone(data, graphs, events):
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    with sharing_always():
        session = start(queries, lateness=0)
        tables = [session.push(event_table(batch)) for batch in batches if batch]
    assert by_query([*tables, session.close()]) == alone(queries, batches)


@FEW
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_snapshots_of_queries_that_share_lose_nothing(data, graphs, events):
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    session, tables = start(queries, lateness=0), []
    for batch in batches:
        with sharing_always():
            if batch:
                tables.append(session.push(event_table(batch)))
            saved = session.snapshot()
        session = start(queries, lateness=0)
        session.restore(saved)
    assert by_query([*tables, session.close()]) == alone(queries, batches)


@FEW
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_queries_come_and_go_without_touching_the_others(data, graphs, events):
    """The first query goes and another one starts half-way; a snapshot follows."""
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    half = data.draw(st.integers(0, len(batches)))
    with sharing_always():
        session = start(queries, lateness=0)
        tables = [session.push(event_table(batch)) for batch in batches[:half] if batch]
    before = by_query(tables).get("q0", [])
    session.remove("q0")
    session.add(Query(graphs[0]), name="late")
    left = {name: graph for name, graph in queries.items() if name != "q0"}
    saved = session.snapshot()
    session = start({**left, "late": graphs[0]}, lateness=0)
    session.restore(saved)
    tables += [session.push(event_table(batch)) for batch in batches[half:] if batch]
    found = by_query([*tables, session.close()])
    late = found.pop("late", [])
    assert late == alone_from(graphs[0], batches, half)
    assert found.pop("q0", []) == before
    assert found == alone(left, batches)


def alone_from(graph: Graph, batches: Sequence[Sequence[Event]], half: int) -> list[dict[str, Any]]:
    """Start a query after some batches, in a session of its own."""
    session = start({}, lateness=0)
    for batch in batches[:half]:
        if batch:
            session.push(event_table(batch))
    session.add(Query(graph), name="late")
    tables = [session.push(event_table(batch)) for batch in batches[half:] if batch]
    return by_query([*tables, session.close()]).get("late", [])


def rows(types: str, **attributes: Any) -> list[dict[str, Any]]:
    """One event a second, of one source; a dot stands for none."""
    return [
        {"id": f"{kind}{second}", "type": kind, "time": second, "source": "s", **attributes}
        for second, kind in enumerate(types)
        if kind != "."
    ]
