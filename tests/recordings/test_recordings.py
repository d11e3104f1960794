"""Real recordings: taxis, buses and ships, checked against plain data-frame arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

MINUTE = pd.Timedelta(minutes=1)


def positions(path: Path, *columns: str) -> pa.Table:
    table = pq.read_table(path, columns=["object_id", "t", "lon", "lat", *columns])
    return table.rename_columns(["source", "time", "lon", "lat", *columns])


@pytest.fixture(scope="module")
def taxis(data_dir: Path) -> pa.Table:
    return positions(data_dir / "taxi_sf_2008" / "2008-06-06.parquet", "occupied")


def by_taxi(taxis: pa.Table) -> pd.DataFrame:
    return taxis.to_pandas().sort_values(["source", "time"], kind="stable")


def test_pick_ups_are_the_changes_from_free_to_occupied(taxis):
    query = wb.compile("""
        define PickUp(taxi)
          detect Position{2} as p within 10 min
          where first(p.occupied) = false and last(p.occupied) = true
          assign taxi = group.source
          group by source
    """)
    found = wb.detect(query, taxis, default_type="Position").to_pandas()
    frame = by_taxi(taxis)
    before = frame.groupby("source").shift()
    is_change = frame["occupied"] & (before["occupied"] == False)  # noqa: E712 (a missing value is not False)
    expected = frame[is_change & (frame["time"] - before["time"] <= 10 * MINUTE)]
    assert len(found) == len(expected) > 10_000
    assert set(zip(found["taxi"], found["end"], strict=True)) == set(
        zip(expected["source"], expected["time"], strict=True)
    )


def test_silences_are_found_when_their_time_has_passed(taxis):
    query = wb.compile(
        "define Silence detect Position as a then not Position as b for 10 min group by source"
    )
    found = wb.detect(query, taxis, default_type="Position").to_pandas()
    frame = by_taxi(taxis)
    following = frame.groupby("source")["time"].shift(-1)
    silent = frame[~(following - frame["time"] <= 10 * MINUTE)]
    assert sorted(found["start"]) == sorted(silent["time"])
    assert ((found["end"] - found["start"]) == 10 * MINUTE).all()


def test_a_live_session_finds_what_history_holds(taxis):
    query = wb.compile("""
        define Sprint(taxi, metres)
          detect Position as a then Position as b within 90 s
          where distance(a, b) > 2 km
          assign taxi = group.source, metres = distance(a, b)
          group by source
    """)
    hour = taxis.slice(0, 60_000)
    session = wb.Session(query, default_type="Position")
    parts = [session.push(hour.slice(begin, 7_919)) for begin in range(0, len(hour), 7_919)]
    live = pa.concat_tables(
        [*(p for p in parts if p.num_rows), session.close()], promote_options="permissive"
    )
    history = wb.detect(query, hour, default_type="Position")
    assert live.column("id").to_pylist() == history.column("id").to_pylist()
    assert history.num_rows > 0


def test_buses_that_report_late_or_again_are_all_accounted_for(data_dir):
    path = data_dir / "bus_buffalo_2020" / "2020-07-30.parquet"
    frame = positions(path, "t_recv", "src_row").to_pandas().sort_values(["t_recv", "src_row"])
    frame["id"] = frame["source"] + "@" + frame["time"].astype("int64").astype(str)
    session = wb.Session(
        wb.compile("define Fix detect Bus"), lateness="60s", coordinates="lonlat", default_type="Bus"
    )
    for _, snapshot in frame.groupby("t_recv", sort=True):
        session.push(snapshot[["id", "source", "time", "lon", "lat"]])
    session.close()
    counts = session.counts
    has_fix = frame["lon"].between(-180, 180) & frame["lat"].between(-90, 90)
    assert counts.rejected == int((~has_fix).sum()) > 0
    late, again = late_and_again(frame[has_fix])
    assert (counts.late, counts.duplicate) == (late, again)
    assert counts.received == len(frame) == counts.processed + late + again + counts.rejected


def late_and_again(frame: pd.DataFrame) -> tuple[int, int]:
    """Count by the rule: late if not after the watermark before the batch, again if the id was there."""
    watermark, late, taken, again = np.datetime64("1900-01-01"), 0, set(), 0
    for _, snapshot in frame.groupby("t_recv", sort=True):
        times = snapshot["time"].to_numpy(dtype="datetime64[us]")
        in_time = times > watermark
        late += int((~in_time).sum())
        ids = snapshot["id"].to_numpy()[in_time]
        again += sum(identity in taken for identity in ids) + len(ids) - len(set(ids))
        taken.update(ids)
        watermark = max(watermark, times.max() - np.timedelta64(60_000_001, "us"))
    return late, again


def test_ships_in_ten_minutes_are_counted_as_a_data_frame_counts_them(data_dir):
    ships = positions(data_dir / "ais_northsea_2022" / "positions.parquet", "sog_kn")
    query = wb.compile("""
        define Busy(ships, fastest) every 10 min
          detect Ship
          assign ships = distinct(Ship.source), fastest = max(Ship.sog_kn)
    """)
    found = wb.detect(query, ships, default_type="Ship").to_pandas()
    frame = ships.to_pandas()
    windows = frame.groupby(frame["time"].dt.floor("10min"))
    assert found["ships"].tolist() == windows["source"].nunique().tolist()
    np.testing.assert_allclose(found["fastest"], windows["sog_kn"].max())
