"""The demo's data is what its README says it is."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "traffic"


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return pq.read_table(FOLDER / "traffic.parquet")


@pytest.fixture(scope="module")
def accidents() -> list[dict[str, str]]:
    with (FOLDER / "accidents.csv").open() as file:
        return list(csv.DictReader(file))


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def test_the_columns_are_those_of_the_readme(events):
    assert events.schema.names == ["type", "time", "source", "x", "y", "speed", "lane", "road"]
    assert events.schema.field("time").type == pa.timestamp("us", "UTC")
    assert pc.unique(events["type"]).to_pylist() == ["Position"]


def test_events_are_sorted_by_time_and_start_at_seven(events):
    times = events["time"].cast(pa.int64()).to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert events["time"][0].as_py() == datetime(2025, 3, 3, 7, tzinfo=UTC)


def test_each_vehicle_reports_at_most_once_a_second(events):
    keys = events.select(["time", "source"]).group_by(["time", "source"]).aggregate([])
    assert keys.num_rows == events.num_rows


def test_the_file_is_small_enough_to_keep_in_the_repository():
    assert (FOLDER / "traffic.parquet").stat().st_size < 5_000_000
    assert (FOLDER / "roads.geojson").stat().st_size < 100_000


def test_speeds_and_lanes_are_plausible(events):
    assert 0 <= pc.min(events["speed"]).as_py() <= pc.max(events["speed"]).as_py() < 30
    assert set(pc.unique(events["lane"]).to_pylist()) == {0, 1, 2, None}


def test_a_lane_is_known_exactly_where_a_road_is(events):
    roads = events["road"].cast(pa.string())
    assert pc.all(pc.equal(pc.is_null(roads), pc.is_null(events["lane"]))).as_py()


def test_every_accident_has_a_car_standing_there_then(events, accidents):
    assert len(accidents) == 4
    for accident in accidents:
        standing = events.filter(
            (pc.field("time") == pa.scalar(moment(accident["time"]), pa.timestamp("us", "UTC")))
            & (pc.field("road") == accident["road"])
            & (pc.field("lane") == int(accident["lane"]))
            & (pc.field("speed") < 0.1)
        )
        places = zip(standing["x"].to_pylist(), standing["y"].to_pylist(), strict=True)
        assert (float(accident["x"]), float(accident["y"])) in list(places)


def test_accidents_lie_inside_the_area_and_the_time_of_the_events(events, accidents):
    bounds = {axis: (pc.min(events[axis]).as_py(), pc.max(events[axis]).as_py()) for axis in ("x", "y")}
    last = pc.max(events["time"]).as_py()
    for accident in accidents:
        for axis, (low, high) in bounds.items():
            assert low < float(accident[axis]) < high
        assert moment(accident["time"]) < last


def test_the_streets_of_the_map_are_the_roads_of_the_events(events):
    features = json.loads((FOLDER / "roads.geojson").read_text())["features"]
    streets = {each["properties"]["name"] for each in features if each["properties"]["kind"] == "street"}
    driven = {road for road in pc.unique(events["road"]).cast(pa.string()).to_pylist() if road}
    assert driven <= streets | {"-".join(reversed(street.split("-"))) for street in streets}
