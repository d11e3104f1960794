"""Recorded taxis, buses and ships: what they keep to themselves, no subscription misses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

EARTH_RADIUS_M = 6_371_008.8
POSITIONS = 5_000
RECORDINGS = {
    "taxis": ("taxi_sf_2008/2008-06-06.parquet", 100.0, 0.02),
    "buses": ("bus_buffalo_2020/2020-07-30.parquet", 100.0, 0.02),
    "ships": ("ais_northsea_2022/positions.parquet", 300.0, 0.05),
}


def traces(path: Path) -> list[np.ndarray]:
    """Positions of each object in order of time, jumps and all; without those that are no position."""
    frame = pq.read_table(path, columns=["object_id", "t", "lon", "lat"]).to_pandas()
    frame = frame[(frame["lon"].abs() <= 180) & (frame["lat"].abs() <= 90)]
    frame = frame.sort_values(["object_id", "t"], kind="stable").head(POSITIONS)
    return [trace[["lon", "lat"]].to_numpy() for _, trace in frame.groupby("object_id")]


def places_near(walks: list[np.ndarray], spread: float) -> np.ndarray:
    rng = np.random.default_rng(5)
    recorded = np.concatenate(walks)
    chosen = recorded[rng.choice(len(recorded), 200, replace=False)]
    return chosen + rng.uniform(-spread, spread, chosen.shape)


def vectors(places: np.ndarray) -> np.ndarray:
    lon, lat = np.radians(places).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def inside(walk: np.ndarray, centres: np.ndarray, radius_m: float, boxes: np.ndarray) -> np.ndarray:
    """Which circles (by the chord to the centre) and boxes each position lies in."""
    chords = np.linalg.norm(vectors(walk)[:, None] - vectors(centres)[None], axis=2)
    circles = 2 * EARTH_RADIUS_M * np.arcsin(chords / 2) <= radius_m
    x, y = walk[:, :1], walk[:, 1:]
    within = (boxes[:, 0] <= x) & (x <= boxes[:, 2]) & (boxes[:, 1] <= y) & (y <= boxes[:, 3])
    return np.concatenate([circles, within], axis=1)


@pytest.mark.parametrize("mode", ["every match", "changes"])
@pytest.mark.parametrize("recording", RECORDINGS)
def test_no_recorded_match_is_missed(recording, mode, data_dir):
    path, radius_m, spread = RECORDINGS[recording]
    walks = traces(data_dir / path)
    places = places_near(walks, spread)
    centres, corners = places[:100], places[100:]
    boxes = np.concatenate([corners, corners + spread / 20], axis=1)
    shapes = {f"c{n}": ("circle", *centre, radius_m) for n, centre in enumerate(centres.tolist())}
    shapes |= {f"b{n}": ("box", *box) for n, box in enumerate(boxes.tolist())}
    safe = wb.SafeRegions(shapes, coordinates="lonlat", mode=mode)
    matched = silent = 0
    for number, walk in enumerate(walks):
        device, known = wb.SafeRegionFilter(), None
        for (x, y), now in zip(walk.tolist(), inside(walk, centres, radius_m, boxes), strict=True):
            matched += now.any()
            if device.must_report(x, y):
                known = now
                device.update(safe.region_for(x, y, device=str(number)).to_bytes())
            else:
                silent += 1
                assert (now == known).all() if mode == "changes" else not now.any()
    assert matched > 50
    assert silent > 0.2 * sum(map(len, walks))
