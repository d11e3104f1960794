"""The result of a query: a table for those who use it as one, and what became of the events."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine.result import events_table
from whimbrel.io import write_detections
from whimbrel.io.map import map_html
from whimbrel.io.notebook import MAPPED, ROWS
from whimbrel.model.schema import Coordinates
from whimbrel.store import Store

QUERY = wb.compile(
    "define Fast(vehicle, speed) detect Position(speed > 30) as p assign vehicle = p.source, speed = p.speed"
)
SPEEDS = [50.0, 10.0, 40.0]
EVENTS = pa.table(
    {
        "id": ["e1", "e2", "e3"],
        "type": ["Position"] * 3,
        "time": ["2024-05-01T08:00:00Z", "2024-05-01T08:01:00.5Z", "2024-05-01T08:02:00Z"],
        "source": ["a", "b", "a"],
        "speed": SPEEDS,
        "lon": [10.0, 10.1, 10.2],
        "lat": [50.0, 50.1, 50.2],
    }
)


EVENT_SCHEMA = pa.schema(
    [
        *(("id", pa.string()), ("type", pa.string()), ("time", pa.int64()), ("source", pa.string())),
        *(("speed", pa.float64()), ("lon", pa.float64()), ("lat", pa.float64())),
    ]
)


@pytest.fixture
def result() -> wb.Detections:
    return wb.detect(QUERY, EVENTS)


def event(**changes: object) -> dict[str, object]:
    return {"id": "e1", "type": "Position", "time": 0, "source": "a", "speed": 50.0, **changes}


def one_by_one(events: list[dict[str, object]]) -> pa.RecordBatchReader:
    """Let events come in batches of one: lateness is judged by the batches before."""
    return pa.Table.from_pylist(events, EVENT_SCHEMA).to_reader(max_chunksize=1)


# -- as a table ----------------------------------------------------------------------------------------------


def test_it_has_every_public_name_of_a_table(result):
    names = {name for name in dir(pa.Table) if not name.startswith("_")}
    assert names - set(dir(result)) == set()
    assert names - set(vars(wb.Detections)) == set()


OWN = {"equals", "join", "join_asof", "to_pandas"}
"""Names of a table that a result answers itself."""


@pytest.mark.parametrize("name", sorted(n for n in dir(pa.Table) if not n.startswith("_") and n not in OWN))
def test_what_a_name_gives_is_what_the_table_gives(name, result):
    given, expected = getattr(result, name), getattr(result.table, name)
    if callable(expected):
        assert given.__name__ == expected.__name__
    else:
        assert given == expected


def test_methods_give_plain_tables(result):
    slow = result.filter(pc.field("speed") < 45)
    assert type(slow) is pa.Table
    assert slow["speed"].to_pylist() == [40.0]
    assert type(result.select(["id"])) is pa.Table


def test_it_has_the_rows_and_columns_of_the_table(result):
    assert len(result) == result.num_rows == 2
    assert result["speed"].to_pylist() == result.column("speed").to_pylist() == [50.0, 40.0]
    assert result[3].equals(result.table[3])
    assert [column.to_pylist() for column in result] == [column.to_pylist() for column in result.table]
    assert result.schema.equals(result.table.schema, check_metadata=True)
    with pytest.raises(KeyError):
        result["no such column"]


def test_an_empty_result_is_false_as_an_empty_table_is(result):
    assert result
    assert not wb.detect(QUERY, EVENTS.slice(1, 1))


def test_results_and_tables_are_equal_from_either_side(result):
    same, other = wb.detect(QUERY, EVENTS), wb.detect(QUERY, EVENTS.slice(1))
    assert result == same
    assert result == same.table
    assert same.table == result
    assert result != other
    assert other.table != result
    assert result != "a text"
    assert result.equals(same, check_metadata=True)
    assert result.equals(same.table, check_metadata=True)
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


def test_results_can_be_joined(result):
    owners = pa.table({"vehicle": ["a"], "owner": ["Ann"]})
    assert result.select(["vehicle", "speed"]).join(owners, "vehicle")["owner"].to_pylist() == ["Ann", "Ann"]
    pair = wb.Detections(result.select(["id", "end", "speed"]), result.counts)
    names = wb.Detections(result.select(["id", "vehicle"]), result.counts)
    assert pair.join(names, "id")["vehicle"].to_pylist() == ["a", "a"]
    times = wb.Detections(pa.table({"at": result["end"], "id": result["id"], "n": [1, 2]}), result.counts)
    asked = {"on": "end", "by": "id", "tolerance": 0, "right_on": "at"}
    assert sorted(pair.join_asof(times, **asked)["n"].to_pylist()) == [1, 2]


def test_whatever_takes_arrow_takes_it(result, tmp_path):
    assert pa.table(result).equals(result.table, check_metadata=True)
    assert pa.RecordBatchReader.from_stream(result).read_all().equals(result.table)
    assert pa.schema(result).equals(result.schema)
    assert pl.DataFrame(result)["speed"].to_list() == [50.0, 40.0]
    speeds = wb.detect(wb.compile("define Fast detect Position(speed > 30)"), EVENTS)
    assert pd.api.interchange.from_dataframe(speeds.select(["speed"]))["speed"].tolist() == [50.0, 40.0]
    ds.write_dataset(result, tmp_path, format="parquet")
    assert ds.dataset(tmp_path).to_table().num_rows == 2


def test_what_asks_for_a_table_alone_says_so_and_takes_the_table(result, tmp_path):
    path = tmp_path / "found.parquet"
    for refused in (lambda: pq.write_table(result, path), lambda: pa.concat_tables([result, result])):
        with pytest.raises(TypeError, match=r"Detections"):
            refused()
    pq.write_table(result.table, path)
    assert pq.read_table(path).num_rows == 2
    assert pa.concat_tables([result.table, result.table]).num_rows == 4


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])  # noqa: S301 (our own bytes)
def test_it_can_be_copied_and_sent_to_another_process(again, result):
    other = again(result)
    assert other.equals(result, check_metadata=True)
    assert other.counts == result.counts


def test_it_cannot_be_changed(result):
    with pytest.raises(AttributeError):
        result.table = None
    assert replace(result, notes=("read with care",)).notes == ("read with care",)
    assert result.notes == ()


# -- in our own functions ------------------------------------------------------------------------------------


def test_our_own_functions_take_it(result, tmp_path):
    for name in ("found.jsonl", "found.csv", "found.parquet", "found.geojson"):
        write_detections(result, tmp_path / name)
        write_detections(result.table, tmp_path / f"plain-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"plain-{name}").read_bytes()
    assert len(wb.to_pandas(result)) == len(wb.to_geopandas(result)) == len(wb.to_polars(result)) == 2
    assert map_html(detections=result) == map_html(detections=result.table)
    assert wb.show(result)._repr_html_() == wb.show(result.table)._repr_html_()


def test_detections_are_events_of_the_next_query(result):
    twice = wb.compile("define Twice detect Fast as a then Fast as b within 5 min")
    first = wb.Detections(result.drop_columns(["events"]), result.counts)
    assert len(wb.detect(twice, first)) == len(wb.detect(twice, first.table)) == 1
    told: list[tuple[int, int | None]] = []
    wb.detect(twice, first, progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 2)]
    session = wb.Session(twice)
    assert session.push(first).num_rows + session.close().num_rows == 1


def test_the_columns_of_no_events_are_checked_too(result):
    empty = wb.Detections(pa.table({"type": pa.array([], pa.string())}), result.counts)
    for events in (empty, empty.table, empty.to_reader()):
        with pytest.raises(wb.DataError, match="no column says when"):
            wb.detect(QUERY, events)


def test_run_and_the_event_store_give_the_same_result(result, tmp_path):
    outcome = wb.run(QUERY, EVENTS)
    assert type(outcome) is wb.Detections
    assert type(outcome.detections) is pa.Table
    assert outcome == result
    store = Store.create(tmp_path / "store", coordinates="lonlat")
    store.append(EVENTS)
    for found in (store.detect(QUERY), store.run(QUERY), wb.detect(QUERY, store)):
        assert found.equals(result)
        assert found.counts.received == 3


# -- in other forms ------------------------------------------------------------------------------------------


def test_data_frames(result):
    assert result.to_pandas()["events"].tolist() == [["e1"], ["e3"]]
    assert result.to_pandas().equals(wb.to_pandas(result))
    assert result.to_pandas(types_mapper=pd.ArrowDtype)["speed"].dtype == pd.ArrowDtype(pa.float64())
    assert result.to_polars().equals(wb.to_polars(result))
    assert result.to_geopandas().crs == "EPSG:4326"


def test_the_map_shows_the_events_it_is_given(result, tmp_path):
    shown = result.map(EVENTS, title="Fast ones")
    assert "2 detections in 3 positions of 2 objects" in shown._repr_html_()
    assert "<title>Fast ones" in shown.save(tmp_path / "fast.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["found.jsonl", "found.csv", "found.parquet", "found.geojson", "found.html"])
def test_saving_says_by_the_ending_how(name, result, tmp_path):
    path = result.save(str(tmp_path / name))
    assert path == tmp_path / name
    assert path.stat().st_size > 0
    if path.suffix in (".jsonl", ".csv", ".parquet", ".geojson"):
        write_detections(result, tmp_path / f"same{path.suffix}")
        assert path.read_bytes() == (tmp_path / f"same{path.suffix}").read_bytes()
    else:
        assert "2 detections" in path.read_text(encoding="utf-8")


def test_saving_in_a_form_that_is_not_known_names_those_that_are(result, tmp_path):
    with pytest.raises(wb.DataError, match="jsonl"):
        result.save(tmp_path / "found.xyz", format="xyz")
    assert list(tmp_path.iterdir()) == []


# -- what became of the events -------------------------------------------------------------------------------


def test_rejected_rows_are_kept_with_file_row_and_reason(tmp_path):
    file = tmp_path / "events.csv"
    file.write_text(
        "id,type,time,source,speed\ne1,Position,0,a,50\ne2,Position,never,a,50\ne3,Position,,a,50\n",
        encoding="utf-8",
    )
    found = wb.detect(QUERY, file)
    assert found.rejected.column_names == ["file", "row", "reason", "event"]
    first, second = found.rejected.to_pylist()
    assert (first["file"], first["row"]) == (str(file), 2)
    assert "never" in first["event"]
    assert "time" in first["reason"]
    assert second["reason"] == "time is missing"
    assert found.counts.rejected == 2


def test_rejected_rows_of_a_table_have_no_file():
    found = wb.detect(QUERY, [event(), event(id="e2", time=None)])
    assert found.rejected.select(["file", "row", "reason"]).to_pylist() == [
        {"file": "", "row": 1, "reason": "time is missing"}
    ]


def test_a_clean_run_has_empty_tables_of_what_was_set_aside(result):
    for table in (result.late, result.duplicates, result.rejected):
        assert type(table) is pa.Table
        assert table.num_rows == 0
    assert result.late.column_names == ["id", "type", "source", "start", "end"]
    assert result.rejected.column_names == ["file", "row", "reason", "event"]


def test_late_events_can_be_looked_at_and_used_again():
    times = {"e1": 0, "e2": 60, "e3": 30}
    events = [event(id=name, time=time, lon=10.0, lat=50.0) for name, time in times.items()]
    found = wb.detect(QUERY, one_by_one(events), lateness="10s")
    assert found.late.select(["id", "lon", "lat", "speed"]).to_pylist() == [
        {"id": "e3", "lon": 10.0, "lat": 50.0, "speed": 50.0}
    ]
    assert str(found.late["end"][0]) == "1970-01-01 00:00:30+00:00"
    again = wb.detect(QUERY, found.late)
    assert again["events"].to_pylist() == [["e3"]]
    assert again.schema.metadata[b"whimbrel.coordinates"] == b"lonlat"


def test_duplicates_can_be_looked_at():
    found = wb.detect(QUERY, [event(), event(id="e2", time=1), event()])
    assert found.duplicates["id"].to_pylist() == ["e1"]
    assert len(found) == 2


def test_events_in_a_plane_keep_x_and_y():
    table = pa.table({"id": ["a"], "end": [5], "x": [1.0], "y": [2.0], "@arrival": [0]})
    assert events_table(table, Coordinates.PLANE).column_names == ["id", "end", "x", "y"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["e1", "e2", "e3", "e4"]), st.one_of(st.none(), st.integers(0, 100))),
        max_size=20,
    ),
    st.sampled_from([None, "0s", "10s"]),
)
def test_every_event_is_accounted_for(pairs, lateness):
    events = [event(id=name, time=time) for name, time in pairs]
    found = wb.detect(QUERY, one_by_one(events), lateness=lateness)
    counts = found.counts
    assert counts.waiting == 0
    assert counts.received == len(events)
    assert counts.received == counts.processed + counts.late + counts.duplicate + counts.rejected
    assert counts.late == found.late.num_rows
    assert counts.duplicate == found.duplicates.num_rows
    assert counts.rejected == found.rejected.num_rows


# -- how it shows itself -------------------------------------------------------------------------------------


def test_the_text_for_a_terminal(result, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    one, two = [f"{text[:8]}…" for text in result["id"].to_pylist()]
    assert repr(replace(result, notes=("time was read as seconds",))) == (
        "2 detections in 3 events: 3 processed, 0 late, 0 duplicate, 0 rejected\n"
        "  time was read as seconds\n"
        "type  start (UTC)          end (UTC)            vehicle  speed  geometry           events  id\n"
        f"Fast  2024-05-01 08:00:00  2024-05-01 08:00:00  a        50     POINT (10 50)      1 id    {one}\n"
        f"Fast  2024-05-01 08:02:00  2024-05-01 08:02:00  a        40     POINT (10.2 50.2)  1 id    {two}"
    )


def test_the_text_of_no_detections_is_a_line(monkeypatch):
    none = wb.detect(QUERY, EVENTS.slice(1, 1))
    assert repr(none) == "0 detections in 1 event: 1 processed, 0 late, 0 duplicate, 0 rejected"


def test_a_narrow_terminal_leaves_columns_out(result, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = repr(result).splitlines()
    assert lines[1] == "type  start (UTC)"
    assert lines[-1] == "columns not shown: end (UTC), vehicle, speed, geometry, events, id"


def test_the_first_rows_are_shown_and_the_others_counted():
    events = [event(id=f"e{n}", time=n) for n in range(ROWS + 5)]
    found = wb.detect(QUERY, events)
    assert repr(found).count("\nFast") == ROWS
    assert "and 5 more detections" in repr(found)
    assert found._repr_html_().count("<tr>") == ROWS + 1
    assert "and 5 more detections" in found._repr_html_()


def test_a_notebook_shows_the_table_the_counts_and_the_map(result):
    shown = replace(result, notes=("time <was> read as seconds",))._repr_html_()
    assert "2 detections in 3 events: 3 processed, 0 late, 0 duplicate, 0 rejected" in shown
    assert "<li>time &lt;was&gt; read as seconds</li>" in shown
    assert "<td>2024-05-01 08:02:00</td>" in shown
    assert "<td>POINT (10.2 50.2)</td>" in shown
    assert shown.count("<iframe") == 1


def test_a_notebook_shows_the_reasons_of_rejected_rows():
    shown = wb.detect(QUERY, [event(), event(id="e2", time=None)])._repr_html_()
    assert "1 rejected" in shown
    assert "<li>1 × time is missing</li>" in shown


def test_a_map_lists_the_attributes_of_the_own_type_only():
    both = wb.compile("define Fast(speed) detect Position as p assign speed = p.speed define Seen detect Fix")
    found = wb.detect(both, [event(x=0.0, y=0.0), event(id="e2", type="Fix", x=1.0, y=0.0, depth=3)])
    page = map_html(detections=found)
    listed = json.loads(
        page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    )
    assert [each["attributes"] for each in listed["detections"]] == [
        {"speed": 50.0},
        {"speed": 50.0, "depth": 3},
    ]


def test_without_places_there_is_no_map():
    shown = wb.detect(QUERY, [event()])._repr_html_()
    assert "<table>" in shown
    assert "<iframe" not in shown
    assert "geometry" not in shown


def test_what_events_say_is_escaped():
    found = wb.detect(QUERY, [event(source="<script>alert(1)</script>", x=0.0, y=0.0)])
    shown = found._repr_html_()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_very_many_detections_leave_the_map_to_be_asked_for():
    events = [event(id=f"e{n}", time=n, x=float(n), y=0.0) for n in range(MAPPED + 1)]
    found = wb.detect(QUERY, events)
    assert "<iframe" not in found._repr_html_()
    assert ".map()" in found._repr_html_()
    assert "<iframe" in found.map()._repr_html_()


def test_shapes_long_texts_and_fractions_of_seconds_are_shown_short():
    query = wb.compile("define Left detect Area as p")
    square = "POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))"
    found = wb.detect(
        query, [{"type": "Area", "time": "2024-05-01T08:01:00.5Z", "geometry": square, "note": "x" * 99}]
    )
    shown = found._repr_html_()
    assert "<td>Polygon, 5 points</td>" in shown
    assert "<td>2024-05-01 08:01:00.5</td>" in shown
    assert f"<td>{'x' * 39}…</td>" in shown


def test_times_before_1970_and_at_the_end_of_time_are_shown():
    found = wb.detect(
        QUERY, [event(time="0001-01-01T00:00:00Z"), event(id="e2", time="9999-12-31T23:59:59.999999Z")]
    )
    assert "0001-01-01 00:00:00" in repr(found)
    assert "9999-12-31 23:59:59.999999" in repr(found)


def test_a_file_of_a_path_object_reads_the_same(result, tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path)
    assert wb.detect(QUERY, Path(path)) == result
