"""Events pushed one by one give what they give together: the same detections, ids, counts and set-asides."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb

QUERIES = (
    "define Pair detect A as a then B as b within 5 s group by source assign v = b.v where a.v <= b.v",
    "define Seen detect A as a assign v = a.v, name = a.name",
    "define Count over 4 s every 2 s detect A as a assign number = count(a), most = max(a.v)",
)
PLACED = "define Near detect A as a then B as b within 5 s where distance(a, b) < {} assign v = b.v"

times = st.integers(0, 8)
values = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, float("nan"), 2.0]))


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw events of one input: with ids or without, with places or without, and some that are no events."""
    has_ids, place, number = draw(st.booleans()), draw(st.sampled_from([None, "plane", "lonlat"])), 12
    found = []
    for _ in range(draw(st.integers(1, number))):
        row: dict[str, Any] = {
            "type": draw(st.sampled_from(["A", "B", "C", None, ""])),
            "time": draw(st.one_of(times, st.just(None), st.just(10**15))),
            "source": draw(st.sampled_from(["x", "y", None])),
            "v": draw(values),
            "name": draw(st.sampled_from(["one", "two", None])),
        }
        if has_ids:
            row["id"] = draw(st.sampled_from(["a", "b", "c", "d", "e", None]))
        if place is not None:
            names = ("x", "y") if place == "plane" else ("lon", "lat")
            row |= dict(zip(names, draw(st.tuples(st.integers(-2, 200), st.integers(-2, 2))), strict=True))
        found.append(row)
    return found


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Write rows as a table whose columns have one type each."""
    kinds = {"type": pa.string(), "time": pa.int64(), "source": pa.string(), "v": pa.float64(),
             "name": pa.string(), "id": pa.string()}  # fmt: skip
    return pa.table(
        {name: pa.array([row[name] for row in rows], kinds.get(name, pa.float64())) for name in rows[0]}
    )


def outcome(query: wb.Query, pieces: list[Any], lateness: str | None) -> dict[str, Any]:
    """Push pieces one after the other; tell all that came of it."""
    session = wb.Session(query, lateness=lateness, time_unit="s")
    found = [session.push(piece) for piece in pieces]
    found.append(session.close())
    aside = (session.take_late(), session.take_duplicates(), session.take_rejected())
    return {
        "found": sorted(str(row) for part in found for row in part.to_pylist()),
        "counts": session.counts,
        "aside": [[] if kept is None else kept.to_pylist() for kept in aside],
        "notes": session.notes,
        "columns": session.columns_taken,
        "coordinates": session.coordinates,
        "seen": [str(session.ingest.noticed.seen()[key]) for key in ("box", "span")],
    }


def query_for(text: str, events: list[dict[str, Any]]) -> wb.Query:
    """Compile a query; one about places where events have them."""
    if text == PLACED:
        text = PLACED.format("100 km" if "lon" in events[0] else "3") if len(events[0]) > 6 else QUERIES[0]
    return wb.compile(text)


@pytest.mark.parametrize("text", [*QUERIES, PLACED])
@given(events=rows())
def test_single_events_of_a_bounded_input_give_what_they_give_together(
    text: str, events: list[dict[str, Any]]
):
    query, whole = query_for(text, events), table(events)
    singles = [whole.slice(row, 1) for row in range(len(events))]
    assert outcome(query, singles, None) == outcome(query, [whole], None)


@pytest.mark.parametrize("lateness", ["0 s", "2 s"])
@pytest.mark.parametrize("text", QUERIES)
@given(events=rows())
def test_single_events_of_a_stream_are_the_same_in_any_wrapping(
    text: str, lateness: str, events: list[dict[str, Any]]
):
    query, whole = wb.compile(text), table(events)
    singles = [whole.slice(row, 1) for row in range(len(events))]
    encoded = [_encoded(single) for single in singles]
    # A batch of a hundred rows that are no events takes the way of large batches.
    padded = [pa.concat_tables([single, _no_events(single)]) for single in singles]
    expected = outcome(query, singles, lateness)
    assert outcome(query, encoded, lateness)["found"] == expected["found"]
    large = outcome(query, padded, lateness)
    assert large["found"] == expected["found"]
    assert large["aside"][:2] == expected["aside"][:2]
    assert (large["counts"].late, large["counts"].duplicate) == (
        expected["counts"].late,
        expected["counts"].duplicate,
    )


def _encoded(single: pa.Table) -> pa.Table:
    """Write texts as codes into a dictionary that has others, too."""
    columns = {}
    for name in single.column_names:
        column = single[name].combine_chunks()
        if pa.types.is_string(column.type) and name != "id":
            others = pa.array(["?", *dict.fromkeys(column.drop_null().to_pylist()), "#"])
            codes = pa.array([None if value is None else 1 for value in column.to_pylist()], pa.int32())
            column = pa.DictionaryArray.from_arrays(codes, others)
        columns[name] = column
    return pa.table(columns)


def _no_events(single: pa.Table) -> pa.Table:
    """Make rows without a time, which are rejected."""
    return pa.table({name: pa.nulls(100, single[name].type) for name in single.column_names})


def test_an_attribute_that_changes_its_type_is_refused_as_before():
    session = wb.Session(wb.compile("define Seen detect A(v > 1)"))
    session.push([{"type": "A", "time": 0, "v": 2}])
    session.push([{"type": "A", "time": 1, "v": 2.5}])
    with pytest.raises(wb.DataError, match="'v' is string here and was int before"):
        session.push([{"type": "A", "time": 2, "v": "much"}])
    assert session.close().num_rows == 1


def test_a_query_that_is_added_reads_columns_of_batches_that_look_the_same():
    session = wb.Session(wb.compile("define One detect A(v > 1)"))
    session.push([{"type": "A", "time": 0, "v": 2, "Name": "x"}])
    session.add(wb.compile("define Two detect A(name = 'x')"))
    session.push([{"type": "A", "time": 1, "v": 0, "Name": "x"}])
    assert session.close()["type"].to_pylist() == ["Two"]


def test_coordinates_hold_for_later_batches():
    session = wb.Session(wb.compile("define One detect A"))
    session.push([{"type": "A", "time": 0, "lon": 1.0, "lat": 2.0}])
    with pytest.raises(wb.DataError, match="coordinates are mixed"):
        session.push([{"type": "A", "time": 1, "x": 1.0, "y": 2.0}])


def test_late_events_whose_attributes_change_their_types_can_be_looked_at():
    session = wb.Session(wb.compile("define Seen detect A as a assign v = a.v"))
    session.advance(10_000_000)
    for value in (0.5, "much", True):
        session.push([{"type": "A", "time": 1, "note": value}])
    late = session.take_late()
    assert late is not None
    assert late["note"].to_pylist() == ["0.5", "much", "true"]
