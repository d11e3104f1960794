"""Movers stay where they may be, go by their seed, and change brokers at borders."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import DATA

from experiments.mobility import box_around, positions, random_waypoint, recorded, street_grid
from experiments.sumo import drive_grid, drive_scenario
from whimbrel.errors import NetworkError
from whimbrel.plan.areas import attachments
from whimbrel.plan.network import Broker, Mover, Network

TOWN = (0.0, 0.0, 1000.0, 600.0)


def draws(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("invent", [random_waypoint, street_grid])
def test_invented_movers_stay_in_the_box_all_the_time(invent):
    found = invent(5, TOWN, until_s=120.0, random=draws())
    assert found == invent(5, TOWN, until_s=120.0, random=draws())
    assert found != invent(5, TOWN, until_s=120.0, random=draws(1))
    x0, y0, x1, y1 = box_around(found, 0.0)
    assert x0 >= 0
    assert y0 >= 0
    assert x1 <= 1000
    assert y1 <= 600
    for mover in found:
        times = [time for time, _, _ in mover.track]
        assert times[0] == 0
        assert times[-1] >= 120
        assert times == sorted(set(times))


def test_cars_on_a_grid_drive_along_streets():
    (car,) = street_grid(1, TOWN, until_s=600.0, block_m=100.0, random=draws())
    track = np.array(car.track)
    assert (track[:, 1:] % 100 == 0).all()
    assert (np.abs(np.diff(track[:, 1:], axis=0)).sum(axis=1) == 100).all()


def test_a_town_has_a_street():
    with pytest.raises(NetworkError, match="no street"):
        street_grid(1, (0.0, 0.0, 50.0, 50.0), until_s=1.0, random=draws())


def test_positions_are_events():
    table = positions([Mover("bus", ((0.0, 0.0, 0.0), (10.0, 100.0, 0.0)))], until_s=4.0)
    assert table.select(["id", "source", "time", "x", "speed"]).to_pylist() == [
        {"id": f"bus:{n}", "source": "bus", "time": float(n), "x": 10.0 * n, "speed": 10.0 if n else 0.0}
        for n in range(4)
    ]


def test_recorded_traces_become_movers(tmp_path):
    pq.write_table(
        pa.table(
            {"object_id": ["a", "b", "a"], "t": [1.0, 0.0, 0.0], "lon": [11.0, 12.0, 10.0], "lat": [44.0] * 3}
        ),
        tmp_path / "traces.parquet",
    )
    assert recorded(tmp_path / "traces.parquet", ["a"]) == (
        Mover("a", ((0.0, 10.0, 44.0), (1.0, 11.0, 44.0))),
    )


def test_sumo_moves_cars_through_a_grid_that_it_makes():
    cars = drive_grid(8, until_s=60.0, blocks=(2, 2), block_m=100.0, seed=5)
    assert len(cars) == 8
    assert cars == drive_grid(8, until_s=60.0, blocks=(2, 2), block_m=100.0, seed=5)
    brokers = tuple(
        Broker(f"{x}{y}", area=(x * 100.0 - 10, y * 100.0 - 10, x * 100.0 + 90, y * 100.0 + 90))
        for x in range(3)
        for y in range(3)
    )
    network = Network(brokers)
    assert max(len(attachments(car, network)) for car in cars) > 2


@pytest.mark.needs_data
def test_sumo_runs_a_recorded_town_and_leaves_its_folder_alone():
    folder = DATA / "roads_bologna"
    before = sorted(file.name for file in folder.iterdir())
    cars = drive_scenario(folder / "run.sumocfg", until_s=40.0, begin_s=20.0)
    assert len(cars) > 50
    assert max(car.track[-1][0] for car in cars) < 20.0
    assert sorted(file.name for file in folder.iterdir()) == before
