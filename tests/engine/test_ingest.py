"""The way in: every event is accounted for, whatever it looks like and whenever it comes."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import admit
from tests.reference.strategies import deliveries, event_lists
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.testing import table

ANY = wb.compile("define Seen detect A")


def accounted(counts) -> bool:
    after = counts.processed + counts.waiting + counts.late + counts.duplicate + counts.rejected
    return counts.received == after


def ids(found: pa.Table | None) -> list[str]:
    return [] if found is None else sorted(found.column("id").to_pylist())


# Late, duplicate, processed: as the reference says.


@st.composite
def delivered(draw):
    events = draw(event_lists(max_size=10))
    return draw(deliveries(events)), draw(st.sampled_from([None, 0, 1_000_000, 3_000_000]))


@given(delivered())
def test_what_becomes_of_events_is_what_the_reference_says(case):
    batches, lateness = case
    session = wb.Session(wb.compile("define Seen detect A"), lateness=lateness)
    for batch in batches:
        if batch:
            session.push(event_table(batch))
        assert accounted(session.counts)
    session.close()
    expected = admit(batches, lateness)
    counts = session.counts
    assert counts.waiting == counts.rejected == 0
    assert counts.processed == len(expected.processed)
    assert ids(session.take_late()) == sorted(event.id for event in expected.late)
    assert ids(session.take_duplicates()) == sorted(event.id for event in expected.duplicate)


@given(delivered())
def test_a_repeated_delivery_changes_no_answer(case):
    batches, _ = case
    query = wb.compile("define Pair detect A as a then B as b within 5 s group by k")

    def answer(events):
        session = wb.Session(query, lateness=None)
        session.push(event_table(events)) if events else None
        return session.close().to_pylist()

    arrived = [event for batch in batches for event in batch]
    once = list({event.id: event for event in arrived}.values())
    assert answer(arrived) == answer(once)


def test_counts_hold_while_events_wait():
    session = wb.Session(ANY, lateness="10 s")
    session.push(table("A@1s#a A@2s#b A@20s#c"))
    counts = session.counts
    assert (counts.received, counts.processed, counts.waiting) == (3, 2, 1)


def test_the_newest_event_waits_until_time_has_passed_it():
    session = wb.Session(ANY)
    assert session.push(table("A@1s")).num_rows == 0
    assert session.counts.waiting == 1
    assert session.push(table("A@2s")).num_rows == 1


def test_an_event_is_late_at_the_watermark_and_in_time_after_it():
    session = wb.Session(ANY)
    session.advance(5_000_000)
    session.push(table("A@5s#late A@5000001us#fine"))
    assert ids(session.take_late()) == ["late"]
    assert session.counts.late == 1


def test_the_watermark_trails_the_newest_event_by_the_lateness():
    session = wb.Session(ANY, lateness="2 s")
    session.push(table("A@10s A@4s"))
    assert session.watermark == 8_000_000 - 1


def test_a_batch_is_judged_by_the_watermark_before_it():
    # Within one push nothing is late: what a source delivers together belongs together.
    session = wb.Session(ANY)
    session.push(table("A@10s A@1s A@5s"))
    assert session.counts.late == 0


def test_time_never_goes_back():
    session = wb.Session(ANY)
    session.advance("2024-05-01T12:00:00Z")
    session.advance("2024-05-01T11:00:00Z")
    assert session.advance("2024-05-01T11:30:00Z").num_rows == 0
    session.push([{"type": "A", "time": "2024-05-01T11:45:00Z"}])
    assert session.counts.late == 1


def test_after_closing_every_event_is_late():
    session = wb.Session(ANY)
    session.close()
    session.push(table("A@1s"))
    assert session.counts.late == 1


def test_a_duplicate_may_come_in_a_later_batch():
    session = wb.Session(ANY, lateness="10 s")
    session.push(table("A@1s#a"))
    session.push(table("A@1s#a"))
    assert session.close().num_rows == 1
    assert ids(session.take_duplicates()) == ["a"]


def test_an_id_may_be_used_again_once_the_lateness_has_passed():
    session = wb.Session(ANY, lateness="1 s")
    session.push(table("A@1s#a"))
    session.push(table("A@9s#a"))
    session.close()
    assert (session.counts.processed, session.counts.duplicate) == (2, 0)


def test_events_without_ids_are_never_duplicates():
    session = wb.Session(ANY)
    rows = [{"type": "A", "time": 1}] * 3
    session.push(rows)
    assert session.close().num_rows == 3
    assert session.counts.duplicate == 0


def test_events_with_and_without_ids_may_come_together():
    session = wb.Session(ANY, lateness="10 s")
    session.push([{"type": "A", "time": 1, "id": "a"}])
    session.push([{"type": "A", "time": 2}])
    session.push([{"type": "A", "time": 3}])
    assert session.close().column("events").to_pylist() == [
        ["a"],
        [":2000000:0000000000000000:000000:A"],
        [":3000000:0000000000000000:000000:A"],
    ]
    assert session.counts.duplicate == 0


OTHERS = [{"type": kind, "time": time, "source": "s"} for time in (1, 5, 30) for kind in "XYZ"]
"""Events without ids, of types that no query reads."""


def test_events_of_types_that_no_query_reads_are_accounted_for():
    session = wb.Session(ANY, lateness="10 s")
    session.push(OTHERS)
    counts = session.counts
    assert (counts.received, counts.processed, counts.waiting) == (9, 6, 3)
    session.push([{"type": "X", "time": 19, "source": "s"}])
    session.close()
    assert accounted(session.counts)
    assert (counts.processed, counts.waiting, counts.late) == (9, 0, 1)


def test_events_that_wait_are_not_touched_until_time_moves():
    session = wb.Session(ANY, lateness=None)
    for time in range(100):
        session.push([{"type": "A", "time": time}])
    assert len(session.ingest._waiting) == 100
    assert session.close().num_rows == 100


def test_ids_do_not_depend_on_events_that_no_query_reads():
    read = [{"type": "A", "time": time, "source": "s"} for time in (1, 1, 5)]
    expected = wb.detect(ANY, read)
    assert wb.detect(ANY, [*OTHERS, *read]).equals(expected)
    assert wb.detect(wb.compile("define Seen detect A\ndefine More detect X"), [*OTHERS, *read]).filter(
        pc.field("type") == "Seen"
    ).column("events").equals(expected.column("events"))  # fmt: skip


def test_time_moves_with_events_that_no_query_reads():
    session = wb.Session(ANY, lateness="10 s")
    session.push([{"type": "A", "time": 1}])
    assert session.push([{"type": "X", "time": 12}]).num_rows == 1


def test_many_sources_and_types_with_equal_times_get_numbers():
    rows = [{"type": f"T{n % 50}", "source": f"s{n % 40}", "time": 1} for n in range(400)]
    query = wb.compile("\n".join(f"define D{n} detect T{n}" for n in range(50)))
    events = [each for [each] in wb.detect(query, rows).column("events").to_pylist()]
    assert sorted(events) == sorted(
        f"s{n % 40}:1000000:0000000000000000:{n // 200:06}:T{n % 50}" for n in range(400)
    )  # fmt: skip


def test_what_was_set_aside_is_given_once():
    session = wb.Session(ANY)
    session.advance(9_000_000)
    session.push(table("A@1s#a"))
    assert ids(session.take_late()) == ["a"]
    assert session.take_late() is None
    assert session.counts.late == 1


# Rejected.


def test_a_row_that_is_no_event_is_rejected_with_its_reason():
    session = wb.Session(ANY)
    session.push(
        [
            {"type": "A", "time": 1.0, "x": 0.0, "y": 0.0},
            {"type": None, "time": 1.0, "x": 0.0, "y": 0.0},
            {"type": "A", "time": float("nan"), "x": 0.0, "y": 0.0},
            {"type": "A", "time": 1.0, "x": float("inf"), "y": 0.0},
            {"type": "A", "time": None, "x": 0.0, "y": 0.0},
        ]
    )
    session.close()
    assert session.counts.rejected == 4
    assert accounted(session.counts)
    rejected = session.take_rejected().to_pylist()
    assert [row["row"] for row in rejected] == [1, 2, 3, 4]
    assert rejected[0]["reason"] == "type is missing"
    assert Counter(row["reason"] for row in rejected) == session.counts.reasons


def test_a_row_that_breaks_its_schema_is_rejected():
    session = wb.Session(wb.compile("event A(v: int) define D detect A(v > 1)"))
    session.push([{"type": "A", "time": 1, "v": "two"}, {"type": "B", "time": 2, "v": "two"}])
    session.push([{"type": "A", "time": 3, "v": "3"}])
    assert session.close().num_rows == 1
    assert session.counts.rejected == 1
    assert "v" in session.take_rejected().to_pylist()[0]["reason"]


def test_an_event_that_ends_before_it_starts_is_rejected():
    outcome = wb.run(ANY, [{"type": "A", "start": 2, "end": 1}, {"type": "A", "start": 1, "end": 2}])
    assert (outcome.counts.rejected, outcome.detections.num_rows) == (1, 1)


def test_rejected_rows_are_numbered_through_all_batches():
    session = wb.Session(ANY)
    session.push([{"type": "A", "time": 1}, {"type": "A", "time": 2}])
    session.push([{"type": None, "time": 3}])
    assert session.take_rejected().column("row").to_pylist() == [2]


# What batches may look like.


def pushed(*batches, text: str = "define D detect A(v > 1)", **settings) -> list[float]:
    session = wb.Session(wb.compile(text), **settings)
    tables = [session.push(batch) for batch in batches] + [session.close()]
    assert accounted(session.counts)
    return [row["v"] for found in tables for row in found.to_pylist()]


def test_whole_numbers_may_become_floats():
    assert pushed([{"type": "A", "time": 1, "v": 2}], [{"type": "A", "time": 2, "v": 2.5}]) == [2, 2.5]


def test_floats_may_become_whole_numbers():
    assert pushed([{"type": "A", "time": 1, "v": 2.5}], [{"type": "A", "time": 2, "v": 2}]) == [2.5, 2]


def test_a_column_may_be_missing_in_some_batches():
    batches = (
        [{"type": "A", "time": 1, "v": 2}],
        [{"type": "A", "time": 2}],
        [{"type": "A", "time": 3, "v": 3}],
    )
    assert pushed(*batches) == [2, 3]


def test_a_column_may_be_all_nulls_in_some_batches():
    batches = (
        [{"type": "A", "time": 1, "v": None}],
        [{"type": "A", "time": 2, "v": 5}],
        [{"type": "A", "time": 3, "v": None}],
    )
    assert pushed(*batches) == [5]


def test_columns_may_stand_in_any_order():
    assert pushed([{"type": "A", "time": 1, "v": 2}], [{"v": 3, "time": 2, "type": "A"}]) == [2, 3]


def test_batches_may_be_empty():
    empty = table("A@1s:v=1").slice(0, 0)
    assert pushed([], empty, [{"type": "A", "time": 1, "v": 2}], empty) == [2]


def test_a_table_may_be_empty():
    assert wb.detect(ANY, table("A@1s").slice(0, 0)).num_rows == 0


def test_the_columns_of_an_empty_table_are_still_checked():
    with pytest.raises(DataError, match="no column says when"):
        wb.Session(ANY).push(pa.table({"type": pa.array([], pa.string())}))


def test_sources_and_types_may_come_as_dictionaries():
    batch = table("A@1s!bus:v=2 A@2s!tram:v=3")
    for name in ("type", "source"):
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, batch.column(name).combine_chunks().dictionary_encode())
    assert pushed(batch, table("A@3s!bus:v=4")) == [2, 3, 4]


def test_a_text_where_a_number_was_is_refused():
    session = wb.Session(wb.compile("define D detect A(v > 1)"))
    session.push([{"type": "A", "time": 1, "v": 2}])
    with pytest.raises(DataError, match="'v' is string here and was int before"):
        session.push([{"type": "A", "time": 2, "v": "two"}])


def test_a_refused_batch_leaves_the_session_usable():
    session = wb.Session(wb.compile("define D detect A(v > 1)"))
    session.push([{"type": "A", "time": 1, "v": 2}])
    with pytest.raises(DataError):
        session.push([{"type": "A", "time": 2, "v": "two"}])
    with pytest.raises(DataError):
        session.push([{"type": "A", "v": 2}])
    with pytest.raises(DataError):
        session.push("nonsense")
    session.push([{"type": "A", "time": 3, "v": 4}])
    found = session.close()
    assert found.column("v").to_pylist()[-1] == 4
    assert accounted(session.counts)


def test_an_attribute_that_no_query_reads_may_change_its_type():
    session = wb.Session(wb.compile("define D detect A(v > 1) assign v = A.v"))
    session.push([{"type": "A", "time": 1, "v": 2, "note": 1}])
    session.push([{"type": "A", "time": 2, "v": 3, "note": "one"}])
    session.close()
    assert session.counts.processed == 2


def test_coordinates_cannot_be_mixed():
    session = wb.Session(ANY)
    session.push([{"type": "A", "time": 1, "x": 0.0, "y": 0.0}])
    with pytest.raises(DataError, match="coordinates are mixed"):
        session.push([{"type": "A", "time": 2, "lon": 0.0, "lat": 0.0}])


def test_coordinates_must_be_those_of_the_query():
    with pytest.raises(DataError, match="coordinates are mixed"):
        wb.detect(wb.compile("coordinates lonlat define D detect A"), table("A@1s(1,2)"))


def test_batches_with_and_without_places_go_together():
    session = wb.Session(ANY, lateness="10 s")
    session.push([{"type": "A", "time": 1}])
    session.push([{"type": "A", "time": 2, "x": 1.0, "y": 2.0}])
    assert [place is None for place in session.close().column("geometry").to_pylist()] == [True, False]


def test_times_are_in_the_unit_given():
    for unit, factor in (("s", 1_000_000), ("ms", 1_000), ("us", 1)):
        found = wb.detect(ANY, [{"type": "A", "time": 7}], time_unit=unit)
        assert found.column("end").cast(pa.int64()).to_pylist() == [7 * factor]


def test_all_events_may_have_one_type():
    assert wb.detect(ANY, [{"time": 1}], default_type="A").num_rows == 1
