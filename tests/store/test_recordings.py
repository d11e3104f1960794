"""A week of taxis in a store: the same detections as over all events, from a fraction of the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb
from whimbrel.store import Store

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

AIRPORT = """
region Airport = box(-122.400, 37.608, -122.376, 37.624)
define PickUp
  detect Position{2} as p within 10 min
  where first(p.occupied) = false and last(p.occupied) = true
  group by source
define AtAirport detect Position(this in Airport and occupied = true)
"""


def taxis(data_dir: Path, day: int) -> pa.Table:
    table = pq.read_table(data_dir / "taxi_sf_2008" / f"2008-06-0{day}.parquet")
    return table.rename_columns(["source", "time", "lon", "lat", "occupied"])


@pytest.fixture(scope="module")
def store(data_dir, tmp_path_factory) -> Store:
    made = Store.create(tmp_path_factory.mktemp("taxis") / "store", cell_m=5_000, coordinates="lonlat")
    for day in (2, 3):
        made.append(taxis(data_dir, day), default_type="Position", batch=day)
    return made


def test_a_query_about_a_place_reads_a_fraction(store, data_dir):
    query = wb.compile(AIRPORT, emit=["AtAirport"])
    share = store.explain(query, since="2008-06-02", until="2008-06-03")
    assert share.events > 900_000
    assert share.events_read < 0.05 * share.events
    assert share.files_read < 0.05 * share.files
    found = store.detect(query, since="2008-06-02", until="2008-06-03")
    whole = wb.detect(query, taxis(data_dir, 2), default_type="Position", coordinates="lonlat")
    assert found.num_rows == whole.num_rows > 1_000
    assert found.drop_columns("id").to_pylist() == whole.drop_columns("id").to_pylist()


def test_a_query_about_all_places_reads_its_day(store, data_dir):
    query = wb.compile(AIRPORT, emit=["PickUp"])
    share = store.explain(query, since="2008-06-03")
    assert 0.4 * share.events < share.events_read < 0.6 * share.events
    found = store.detect(query, since="2008-06-03")
    whole = wb.detect(query, taxis(data_dir, 3), default_type="Position", coordinates="lonlat")
    assert found.column("events").to_pylist() == whole.column("events").to_pylist()
