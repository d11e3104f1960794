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


# Two movers, against a loop over the events that compares each of them with all others.

EARTH_RADIUS_M = 6_371_008.8


def one_each(table: pa.Table) -> pd.DataFrame:
    """At most one position of a mover at a time, in order."""
    frame = table.to_pandas().sort_values(["time", "source"], kind="stable")
    return frame.drop_duplicates(["time", "source"]).reset_index(drop=True)


def metres_between(lon: float, lat: float, lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    p, q = np.radians(lat), np.radians(lats)
    half = np.sin((q - p) / 2) ** 2 + np.cos(p) * np.cos(q) * np.sin(np.radians(lons - lon) / 2) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(1.0, np.sqrt(half)))


class Company:
    """Who is within some metres of whom, since when, and where both were then; seconds, and NaN for never."""

    def __init__(
        self, frame: pd.DataFrame, within_m: float, lasting: float, fresh: float, moving: bool
    ) -> None:
        self.names, self.movers = np.unique(frame["source"], return_inverse=True)
        self.seconds = frame["time"].astype("int64").to_numpy() / 1e6
        self.places = frame[["lon", "lat"]].to_numpy()
        self.within_m, self.lasting, self.fresh, self.moving = within_m, lasting, fresh, moving
        size = len(self.names)
        self.seen = np.full(size, -np.inf)
        self.at = np.zeros((size, 2))
        self.since = np.full((size, size), np.nan)
        self.compared = np.full((size, size), -np.inf)
        self.began = np.zeros((size, size, 2))
        self.told: set[tuple[str, str, float]] = set()

    def found(self) -> set[tuple[str, str, float]]:
        for mover, now, place in zip(self.movers, self.seconds, self.places, strict=True):
            self.tell(mover, now)
            self.seen[mover], self.at[mover] = now, place
            known = now - self.seen <= self.fresh
            near = known & (metres_between(*place, *self.at.T) <= self.within_m)
            near[mover] = False
            new = near & np.isnan(self.since[mover])
            self.since[mover, ~near] = self.since[~near, mover] = np.nan
            self.since[mover, new] = self.since[new, mover] = now
            self.compared[mover, known] = self.compared[known, mover] = now
            self.began[mover, new], self.began[new, mover] = place, self.at[new]
        for mover in range(len(self.names)):
            self.tell(mover, np.inf)
        return self.told

    def tell(self, mover: int, now: float) -> None:
        """Note the stays of a mover that were long enough before `now`."""
        until = self.since[mover] + self.lasting
        over = np.isfinite(until) & (until < now)
        if not over.any():
            return
        long = over & (until - self.compared[mover] <= self.fresh)
        if self.moving:
            own = metres_between(*self.at[mover], *self.began[mover].T)
            other = metres_between(*self.began[:, mover].T, *self.at.T)
            long &= (own > self.within_m) & (other > self.within_m)
        for partner in np.flatnonzero(long):
            one, two = sorted((self.names[mover], self.names[partner]))
            self.told.add((one, two, self.since[mover, partner]))
        # Nothing is told twice: what goes on after that time is no new stay, but must not be forgotten.
        self.since[mover, over] = self.since[over, mover] = -np.inf


@pytest.mark.parametrize(
    ("phrase", "within_m", "minutes", "moving"),
    [("meets", 100, 5, False), ("travels with", 400, 5, True)],
)
@pytest.mark.parametrize("recording", ["taxis in the rush hour", "ships"])
def test_movers_that_keep_together_are_those_that_a_plain_loop_finds(
    data_dir, taxis, recording, phrase, within_m, minutes, moving
):
    if recording == "ships":
        frame = one_each(positions(data_dir / "ais_northsea_2022" / "positions.parquet"))
        frame = frame[frame["time"] < pd.Timestamp("2022-11-01T09:55Z")]
    else:
        frame = one_each(taxis)
        frame = frame[frame["time"] >= pd.Timestamp("2008-06-06T23:30Z")].drop(columns="occupied")
    query = wb.compile(f"""
        define Together
          detect Position as a {phrase} Position as b within {within_m} m for {minutes} min fresh 90 s
    """)
    found = wb.detect(query, frame, default_type="Position", coordinates="lonlat").to_pandas()
    since = found["since"].astype("int64") / 1e6
    expected = Company(frame, within_m, 60.0 * minutes, 90.0, moving).found()
    assert set(zip(found["a"], found["b"], since, strict=True)) == expected
    assert len(found) == len(expected) > 0
