"""What the engine does to have less work: the order of binding, and what queries share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain
from tests.reference.data import Event
from tests.reference.strategies import cuts, event_lists, expected, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel import detect
from whimbrel.engine.matcher import Matcher
from whimbrel.graph.binding import Tie, binding_order, usual_order
from whimbrel.graph.operators import Graph, Match, Operator
from whimbrel.graph.query import Query

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


@given(data=st.data(), graph=graphs(), events=event_lists())
def test_the_order_of_binding_changes_nothing(data, graph, events):
    usual = detect(Query(graph), event_table(events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.engine.matcher.binding_order", lambda trigger, before, *_: [
            trigger, *data.draw(st.permutations([n for n in range(len(before)) if n != trigger]))
        ])  # fmt: skip
        found = detect(Query(graph), event_table(events))
    assert found.to_pylist() == usual.to_pylist()
    assert plain(as_detections(found)) == plain(expected(graph, events))


def test_a_session_binds_the_rare_part_first_once_it_has_seen_events():
    session = wb.Session(wb.compile(THREE))
    (matcher,) = [r for r in session._pipelines["X"].runtimes.values() if isinstance(r, Matcher)]
    assert matcher.plan[2].tolist() == [2, 1, 0]
    session.push(rows("B" * 300 + "C"))
    assert matcher.plan[2].tolist() == [2, 0, 1]


# -- what queries share -----------------------------------------------------------------------------------


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
    if not isinstance(operator, Match) or operator.parts[-1].alias is None:
        return operator
    *first, last = operator.parts
    return replace(operator, parts=(*first, replace(last, input=kind)))


def start(queries: Mapping[str, Graph], **settings: Any) -> wb.Session:
    session = wb.Session(**settings)
    session.names_queries = True
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


@pytest.fixture(scope="module")
def always():
    """Let queries share every beginning, however many combinations it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.engine.sharing.worth_sharing", lambda *_, **__: True)
        yield


def sorted_cuts(data: st.DataObject, events: list[Event]) -> list[list[Event]]:
    return data.draw(cuts(sorted(events, key=lambda event: (event.end, event.start))))


@pytest.mark.usefixtures("always")
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_queries_that_share_find_what_they_find_alone(data, graphs, events):
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    session = start(queries, lateness=0)
    tables = [session.push(event_table(batch)) for batch in batches if batch]
    assert by_query([*tables, session.close()]) == alone(queries, batches)


@pytest.mark.usefixtures("always")
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_snapshots_of_queries_that_share_lose_nothing(data, graphs, events):
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    session, tables = start(queries, lateness=0), []
    for batch in batches:
        if batch:
            tables.append(session.push(event_table(batch)))
        saved = session.snapshot()
        session = start(queries, lateness=0)
        session.restore(saved)
    assert by_query([*tables, session.close()]) == alone(queries, batches)


@pytest.mark.usefixtures("always")
@given(data=st.data(), graphs=query_sets(), events=event_lists(min_size=4))
def test_queries_come_and_go_without_touching_the_others(data, graphs, events):
    """The first query goes and another one starts half-way; a snapshot follows."""
    queries = {f"q{n}": graph for n, graph in enumerate(graphs)}
    batches = sorted_cuts(data, events)
    half = data.draw(st.integers(0, len(batches)))
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
    """One event a second, of one source."""
    return [
        {"id": f"{kind}{second}", "type": kind, "time": second, "source": "s", **attributes}
        for second, kind in enumerate(types)
    ]
