"""Appending, replacing, evolving, compacting and deleting."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import whimbrel as wb
from whimbrel.errors import DataError, WhimbrelError
from whimbrel.space.geometry import METRES_PER_DEGREE
from whimbrel.store import Store, log

DAY_S = 86_400


def fix(number: int, day: int = 0, **more: object) -> dict:
    return {"id": f"e{number}", "type": "Fix", "time": day * DAY_S + number, "x": 0.0, "y": 0.0} | more


def ids(store: Store, **wanted: object) -> list[str]:
    return store.scan(**wanted).read_all().column("id").to_pylist()


def folders(store: Store) -> set[str]:
    return {"/".join(file.path.split("/")[:2]) for file in store.state.files.values()}


# -- creating and opening ---------------------------------------------------------------------------------


def test_a_store_is_found_again(new_store):
    made = new_store(cell_m=250, coordinates="lonlat")
    opened = Store.open(made.root)
    assert (opened.cell_m, opened.coordinates) == (250.0, "lonlat")
    settings = json.loads((made.root / "_store.json").read_text())
    assert settings["version"] == 1


def test_a_folder_with_something_in_it_is_left_alone(new_store, tmp_path):
    made = new_store()
    with pytest.raises(DataError, match="there is a store already"):
        Store.create(made.root)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty"):
        Store.create(tmp_path)


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(DataError, match="no event store here"):
        Store.open(tmp_path)
    (tmp_path / "_store.json").write_text('{"version": 2, "coordinates": null, "cell_m": 1}')
    with pytest.raises(DataError, match="format 2"):
        Store.open(tmp_path)
    (tmp_path / "_store.json").write_text("{")
    with pytest.raises(DataError, match="cannot be understood"):
        Store.open(tmp_path)


@pytest.mark.parametrize("cell_m", [0, -1, float("nan"), float("inf")])
def test_cells_have_a_size(tmp_path, cell_m):
    with pytest.raises(DataError, match="cell_m"):
        Store.create(tmp_path / "s", cell_m=cell_m)


# -- where events are kept --------------------------------------------------------------------------------


def test_events_lie_by_the_day_they_end_on_and_the_centre_of_their_place(new_store):
    store = new_store(cell_m=10, coordinates="plane")
    store.append(
        [
            {"type": "P", "start": 0, "end": DAY_S, "geometry": "POINT (-0.5 25)"},
            {
                "type": "P",
                "start": 0,
                "end": DAY_S - 1,
                "geometry": "POLYGON ((0 0, 90 0, 90 90, 0 90, 0 0))",
            },
            {"type": "P", "start": -1, "end": -1, "geometry": None},
        ]
    )
    assert folders(store) == {
        "day=1970-01-02/cell=x-1y2",
        "day=1970-01-01/cell=x4y4",
        "day=1969-12-31/cell=none",
    }


def test_degrees_have_square_cells_of_degrees(new_store):
    store = new_store(cell_m=METRES_PER_DEGREE, coordinates="lonlat")
    store.append(
        [
            {"type": "P", "time": 0, "lon": 10.5, "lat": 89.5},
            {"type": "P", "time": 0, "lon": -180, "lat": -90},
        ]
    )
    assert folders(store) == {"day=1970-01-01/cell=x10y89", "day=1970-01-01/cell=x-180y-90"}
    assert {"lon", "lat"} <= set(store.scan().schema.names)


def test_others_read_the_folder_as_it_is(new_store):
    store = new_store(cell_m=10)
    store.append([fix(number, day=number % 2, x=10.0 * number) for number in range(6)])
    table = ds.dataset(store.root, partitioning="hive").to_table()
    assert sorted(table.column("id").to_pylist()) == [f"e{n}" for n in range(6)]
    assert {"day", "cell"} <= set(table.column_names)
    assert table.schema.field("end").type == pa.timestamp("us", "UTC")


def test_coordinates_are_those_of_the_first_located_events(new_store):
    store = new_store()
    store.append([{"type": "P", "time": 0}])
    assert store.coordinates is None
    store.append([{"type": "P", "time": 1, "lon": 1.0, "lat": 2.0}])
    assert Store.open(store.root).coordinates == "lonlat"
    with pytest.raises(DataError, match="coordinates are mixed"):
        store.append([{"type": "P", "time": 2, "x": 1.0, "y": 2.0}])
    assert len(ids(store)) == 2


def test_a_query_in_other_coordinates_is_refused(new_store):
    store = new_store(coordinates="lonlat")
    store.append([{"type": "P", "time": 0, "lon": 1.0, "lat": 2.0}])
    with pytest.raises(WhimbrelError, match="coordinates"):
        store.detect(wb.compile("coordinates plane define D detect P"))


# -- what comes in ----------------------------------------------------------------------------------------


def test_anything_that_detection_takes_can_be_stored(new_store, tmp_path):
    store = new_store()
    rows = [fix(0), fix(1)]
    pd.DataFrame(rows).assign(id=["f0", "f1"]).to_csv(tmp_path / "events.csv", index=False)
    store.append(rows)
    store.append(pd.DataFrame(rows).assign(id=["p0", "p1"]))
    store.append(tmp_path / "events.csv")
    assert sorted(ids(store)) == ["e0", "e1", "f0", "f1", "p0", "p1"]


def test_rows_that_are_no_events_are_counted_and_kept(new_store, tmp_path):
    store = new_store(coordinates="lonlat")
    rows = [
        {"type": "P", "time": 0, "lon": 200.0, "lat": 0.0},
        {"type": "P", "time": 0, "lon": 0.0, "lat": 0.0},
    ]
    done = store.append(rows, rejected=tmp_path / "bad.jsonl")
    assert (done.events, done.rejected, dict(done.reasons)) == (1, 1, {"lon is out of range": 1})
    assert json.loads((tmp_path / "bad.jsonl").read_text())["row"] == 0


def test_a_store_is_read_as_far_as_the_query_can_use_it(new_store):
    store = new_store(cell_m=10)
    store.append([{"id": f"e{n}", "type": "A", "time": n, "x": 100.0 * n, "y": 0.0} for n in range(5)])
    query = wb.compile("define D detect A(this in box(90, -1, 310, 1))")
    told = []
    found = wb.detect(
        query, store, until="1970-01-01T00:00:03Z", progress=lambda done, total: told.append((done, total))
    )
    assert found.column("events").to_pylist() == [["e1"], ["e2"]]
    assert told[-1] == (2, 2)


def test_events_without_ids_get_those_that_detection_would_give_them(new_store):
    given = [("A", 0, "s", 0), ("B", 0, "s", 900), ("A", 0, "s", 0), ("A", 5, None, 0), ("A", 0, "t", 0)]
    rows = [
        {"type": kind, "time": time, "source": source, "x": 1.0 * place, "y": 0.0}
        for kind, time, source, place in given
    ]
    rows += [row | {"speed": speed} for row in rows for speed in (7, 8)]
    query = wb.compile("define D detect A")
    whole, halves = new_store(cell_m=10), new_store(cell_m=10)
    whole.append(rows)
    halves.append(rows[:2])
    halves.append(rows[2:], batch="rest")
    halves.append(rows[2:], batch="rest")
    expected = wb.detect(query, rows).to_pylist()
    assert whole.detect(query).to_pylist() == expected
    assert halves.detect(query).to_pylist() == expected


def test_nothing_is_stored_of_an_append_that_fails(new_store):
    store = new_store()
    store.append([fix(0, v=1)])
    with pytest.raises(DataError, match="attribute 'v' is string here and int in the store"):
        store.append([fix(1, v="one")])
    assert ids(store) == ["e0"]
    assert store.append([]).events == 0


def test_attributes_that_folders_are_named_by_are_refused(new_store):
    with pytest.raises(DataError, match="rename it"):
        new_store().append([fix(0, day=0) | {"cell": "x"}])


# -- batches that come again ------------------------------------------------------------------------------


def test_a_batch_that_comes_again_takes_the_place_of_the_first(new_store):
    store = new_store()
    store.append([fix(0), fix(1)], batch=17)
    store.append([fix(2)], batch=18)
    store.append([fix(0), fix(1)], batch=17)
    assert sorted(ids(store)) == ["e0", "e1", "e2"]
    store.append([fix(1), fix(5)], batch=17)
    assert sorted(ids(store)) == ["e1", "e2", "e5"]


def test_a_merged_batch_is_known_when_it_comes_again(new_store):
    store = new_store()
    store.append([fix(0), fix(1)], batch="a")
    store.append([fix(2)], batch="b")
    store.compact()
    assert store.append([fix(1), fix(0)], batch="a").is_repeated
    with pytest.raises(DataError, match="merged with others"):
        store.append([fix(7)], batch="a")
    assert sorted(ids(store)) == ["e0", "e1", "e2"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_names_of_batches_are_names_of_files(new_store, name):
    with pytest.raises(DataError, match="no name for a batch"):
        new_store().append([fix(0)], batch=name)


def test_a_name_that_was_given_is_not_made_up_again(new_store):
    store = new_store()
    store.append([fix(0)], batch="append-2")
    store.append([fix(1)])
    assert sorted(ids(store)) == ["e0", "e1"]


def test_many_batches_are_kept_in_checkpoints(new_store, monkeypatch):
    monkeypatch.setattr(log, "CHECKPOINT_EVERY", 4)
    monkeypatch.setattr(log, "REMEMBERED_BATCHES", 3)
    store = new_store()
    reader = Store.open(store.root)
    for number in range(11):
        store.append([fix(number)], batch=number)
        assert len(ids(reader)) == number + 1
    assert len(list((store.root / "_log").iterdir())) < 11
    store.compact()
    fresh = Store.open(store.root)
    assert sorted(ids(fresh)) == sorted(ids(store)) == sorted(f"e{n}" for n in range(11))
    store.append([fix(50)], batch=50)
    assert set(Store.open(store.root).state.batches) == {"9", "10", "50"} | {"8"}
    (store.root / "_log" / "000000000013.json").rename(store.root / "_log" / "000000000014.json")
    with pytest.raises(DataError, match="the log is damaged"):
        Store.open(store.root).scan()


# -- attributes -------------------------------------------------------------------------------------------


def test_later_events_may_have_more_attributes(new_store):
    store = new_store()
    store.append([fix(0, v=1)])
    store.append([fix(1, w="text"), fix(2, v=None, w=None)])
    table = store.scan().read_all()
    assert table.select(["id", "v", "w"]).to_pylist() == [
        {"id": "e0", "v": 1, "w": None},
        {"id": "e1", "v": None, "w": "text"},
        {"id": "e2", "v": None, "w": None},
    ]
    assert store.scan(columns=["w"]).schema.names[-2:] == ["geometry", "w"]


def test_whole_numbers_become_floats_where_floats_come(new_store):
    store = new_store()
    store.append([fix(0, v=1, w=1.5)], batch="a")
    store.append([fix(1, v=2.5, w=2)], batch="b")
    store.append([fix(2, v=3)], batch="c")
    assert store.scan().read_all().column("v").to_pylist() == [1.0, 2.5, 3.0]
    plain = ds.dataset(store.root, partitioning="hive").to_table()
    assert plain.schema.field("v").type == pa.float64()
    store.append([fix(0, v=9)], batch="a")
    assert store.scan().read_all().column("v").to_pylist() == [9.0, 2.5, 3.0]


def test_a_query_reads_the_attributes_it_needs(new_store):
    store = new_store()
    store.append([fix(0, v=1, w=2, z=3)])
    query = wb.compile("define D(n) detect Fix(v > 0) assign n = Fix.w")
    assert {"v", "w"} == set(store.scan(query).schema.names) - {
        "id",
        "type",
        "source",
        "start",
        "end",
        "x",
        "y",
        "geometry",
    }


# -- maintenance ------------------------------------------------------------------------------------------


def test_compaction_joins_small_files_and_changes_no_event(new_store):
    store = new_store(cell_m=10)
    for number in range(6):
        store.append([fix(number, day=number % 2, v=number), fix(10 + number, x=20.0)])
    before = store.scan().read_all()
    done = store.compact()
    assert (done.files_before, done.files_after, done.events) == (12, 3, 12)
    assert store.scan().read_all().sort_by("id") == before.sort_by("id")
    assert store.compact().files_before == 0
    assert len(list(store.root.glob("day=*/cell=*/.*.old"))) == 12  # somebody may still be reading them
    store.compact(patience="0 s")
    assert len(list(store.root.glob("day=*/cell=*/.*"))) == 0


def test_compaction_leaves_large_files_and_later_days_alone(new_store):
    store = new_store()
    for number in range(4):
        store.append([fix(10 * number + n) for n in range(3)])
        store.append([fix(100 + number, day=1)])
    done = store.compact(before=date(1970, 1, 2), target_rows=5)
    assert (done.files_before, done.files_after) == (4, 2)
    assert store.summary().column("files").to_pylist() == [2, 4]


def test_compaction_drops_repeated_events_if_asked(new_store):
    store = new_store()
    store.append([fix(0, v=1), fix(1), fix(0, v=2)])
    store.append([fix(0, v=3), fix(2)])
    query = wb.compile("define D detect Fix")
    found = store.detect(query).to_pylist()
    assert store.compact(drop_duplicates=True).duplicates == 2
    assert sorted(ids(store)) == ["e0", "e1", "e2"]
    assert store.detect(query).to_pylist() == found
    assert store.compact(drop_duplicates=True).files_before == 0


def test_retention_deletes_whole_days(new_store):
    store = new_store()
    store.append([fix(n, day=n) for n in range(5)])
    store.append([fix(10 + n, day=n) for n in range(5)])
    store.compact()
    would = store.retain(before="1970-01-03T23:59:59Z", dry_run=True)
    assert (would.days, would.events) == (("1970-01-01", "1970-01-02"), 4)
    assert len(ids(store)) == 10
    assert store.retain(before="1970-01-03T23:59:59Z") == would
    assert not list(store.root.glob("day=1970-01-0[12]"))
    now = datetime(1970, 1, 5, 12, tzinfo=UTC)
    assert store.retain(days=2, now=now).days == ("1970-01-03",)
    assert store.summary().column("day").to_pylist() == [date(1970, 1, 4), date(1970, 1, 5)]
    assert store.retain(days=2, now=now).days == ()


def test_retention_wants_to_know_what_to_keep(new_store):
    store = new_store()
    for settings in ({}, {"days": 1, "before": "1970-01-01"}, {"days": 0}):
        with pytest.raises(DataError, match=r"days|either"):
            store.retain(**settings)


def test_the_summary_counts_by_day(new_store):
    store = new_store(cell_m=10)
    assert store.summary().num_rows == 0
    store.append([fix(0), fix(1, x=20.0), fix(2, day=1)])
    assert store.summary().drop_columns("bytes").to_pylist() == [
        {"day": date(1970, 1, 1), "events": 2, "cells": 2, "files": 2},
        {"day": date(1970, 1, 2), "events": 1, "cells": 1, "files": 1},
    ]


# -- reading ----------------------------------------------------------------------------------------------


def test_an_empty_store_can_be_read(new_store):
    store = new_store()
    assert store.scan().read_all().num_rows == 0
    assert store.detect(wb.compile("define D detect A")).num_rows == 0
    assert store.explain(wb.compile("define D detect A")).files == 0


def test_a_store_is_a_table_to_whoever_takes_arrow(new_store):
    store = new_store(cell_m=10)
    store.append([fix(n, x=10.0 * n, v=n) for n in range(4)])
    query = wb.compile("define D detect Fix(x > 15)")
    assert pa.table(store).num_rows == 4
    assert wb.detect(query, store).to_pylist() == store.detect(query).to_pylist()


def test_neighbouring_stretches_of_time_share_no_event(new_store):
    store = new_store()
    store.append([fix(n) for n in range(4)])
    middle = "1970-01-01T00:00:02Z"
    assert (ids(store, until=middle), ids(store, since=middle)) == (["e0", "e1"], ["e2", "e3"])


def test_ids_of_different_events_are_found(new_store):
    store = new_store(cell_m=10)
    store.append([fix(0), fix(1), fix(2)])
    store.append([fix(0), fix(1, x=50.0), fix(2, day=3), fix(2, type="Stop")])
    assert store.conflicts().to_pylist() == [{"id": "e1", "events": 2}, {"id": "e2", "events": 3}]
    assert new_store().conflicts().num_rows == 0


def test_a_region_that_is_none_is_refused(new_store):
    with pytest.raises(DataError, match="region"):
        new_store().scan(region="LINESTRING (0 0, 1 1)")


def test_stored_events_are_never_late(new_store):
    with pytest.raises(WhimbrelError, match="leave lateness out"):
        new_store().detect(wb.compile("define D detect A"), lateness="1s")


def test_progress_is_told(new_store):
    store, told = new_store(), []
    store.append([fix(n) for n in range(4)], progress=lambda done, total: told.append((done, total)))
    store.append([fix(9)])
    store.run(wb.compile("define D detect Fix"), progress=lambda done, total: told.append((done, total)))
    store.compact(progress=lambda done, total: told.append((done, total)))
    assert told[0] == (4, 4)
    assert told[-2:] == [(5, 5), (2, 2)]


def test_what_changed_is_logged_once_with_numbers(new_store, caplog):
    store = new_store()
    with caplog.at_level("INFO", "whimbrel.store"):
        store.append([fix(0), fix(1)], batch="a")
        store.append([fix(0), fix(2)], batch="b")
        store.compact(drop_duplicates=True)
        store.append([fix(1), fix(0)], batch="a")
        store.retain(before="1971-01-01")
    assert caplog.messages == [
        f"{store.root}: batch a: 2 events in 1 files",
        f"{store.root}: batch b: 2 events in 1 files",
        f"{store.root}: 2 files joined into 1, 1 repeated events left out",
        f"{store.root}: batch a: was there already",
        f"{store.root}: deleted 1 files, of days before 1971-01-01",
    ]
