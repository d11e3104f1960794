"""What is written and read again is the same events, in every format."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whimbrel.io import read_events, write_events
from whimbrel.model.batch import Normalised, normalise
from whimbrel.model.columns import FIRST_INSTANT, LAST_INSTANT
from whimbrel.model.schema import Coordinates, EventSchema, Type

SCHEMAS = {
    "bus": EventSchema(
        "bus",
        {
            "flag": Type.BOOL,
            "count": Type.INT,
            "speed": Type.FLOAT,
            "label": Type.STRING,
            "seen": Type.TIMESTAMP,
        },
    )
}
ENDINGS = [".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet", ".geoparquet"]

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
times = st.integers(FIRST_INSTANT, LAST_INSTANT)


def points(coordinates: Coordinates) -> st.SearchStrategy[tuple[float, float]]:
    wide, high = (180, 90) if coordinates is Coordinates.LONLAT else (1e9, 1e9)
    return st.tuples(st.floats(-wide, wide), st.floats(-high, high))


@st.composite
def polygons(draw: st.DrawFn, coordinates: Coordinates) -> bytes:
    x, y = draw(points(coordinates))
    scale = 1 if coordinates is Coordinates.PLANE else 1 / 400
    width, height = (draw(st.floats(0.1, 10)) * scale for _ in range(2))
    shape = shapely.Polygon([(x / 2, y / 2), (x / 2 + width, y / 2), (x / 2, y / 2 + height)])
    return bytes(shapely.to_wkb(shape if shape.is_valid else shapely.box(0, 0, 1, 1), byte_order=1))


@st.composite
def rows(draw: st.DrawFn, coordinates: Coordinates) -> dict[str, Any]:
    start, end = sorted([draw(times), draw(times)])
    place = draw(st.sampled_from(["none", "point", "polygon"]))
    x, y = draw(points(coordinates)) if place == "point" else (None, None)
    return {
        "id": draw(names),
        "type": draw(st.sampled_from(["bus", "tram", 'ünï, "q"\n'])),
        "source": draw(st.none() | texts),
        "start": start,
        "end": end,
        "x": x,
        "y": y,
        "geometry": draw(polygons(coordinates)) if place == "polygon" else None,
        "flag": draw(st.none() | st.booleans()),
        "count": draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        "speed": draw(st.none() | st.floats(allow_nan=False)),
        "label": draw(st.none() | texts),
        "seen": draw(st.none() | times),
    }


TABLE = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("source", pa.string()),
        ("start", pa.timestamp("us", "UTC")),
        ("end", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("geometry", pa.binary()),
        ("flag", pa.bool_()),
        ("count", pa.int64()),
        ("speed", pa.float64()),
        ("label", pa.string()),
        ("seen", pa.timestamp("us", "UTC")),
    ]
)


def normalised(found: list[dict[str, Any]], coordinates: Coordinates) -> Normalised:
    schema = TABLE.with_metadata({"whimbrel.coordinates": coordinates})
    return normalise(pa.RecordBatch.from_pylist(found, schema=schema), schemas=SCHEMAS)


def as_rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Return the events as dicts without nulls: a column without values and no column are the same."""
    found = []
    for batch in batches:
        plain = batch.set_column(batch.schema.get_field_index("seen"), "seen", batch["seen"].view(pa.int64()))
        found += [
            {key: value for key, value in row.items() if value is not None} for row in plain.to_pylist()
        ]
    for row in found:
        # Compared as numbers, because WKT knows no negative zero.
        if "geometry" in row:
            row["geometry"] = shapely.get_coordinates(shapely.from_wkb(row["geometry"])).tolist()
    return found


@pytest.mark.parametrize("coordinates", list(Coordinates))
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_events_come_back_as_they_were_written(
    ending: str, coordinates: Coordinates, data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.lists(rows(coordinates), max_size=4), min_size=1, max_size=3))
    before = [normalised(part, coordinates) for part in parts]
    assert all(part.rejected.num_rows == 0 for part in before)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"events{ending}"
        count = write_events([part.events for part in before], path)
        assert count == sum(len(part) for part in parts)
        if count == 0 and ending.startswith(".jsonl"):
            return
        after = [normalise(batch, schemas=SCHEMAS) for batch in read_events(path, schemas=SCHEMAS)]
    assert [part.rejected.to_pylist() for part in after if part.rejected.num_rows] == []
    assert as_rows([part.events for part in after]) == as_rows([part.events for part in before])
    assert all(part.coordinates in (coordinates, None) for part in after)


def test_infinity_survives_json(tmp_path: Path) -> None:
    before = normalise(pa.record_batch({"type": ["a"], "time": [0], "v": [math.inf]}))
    write_events([before.events], tmp_path / "a.jsonl")
    (batch,) = read_events(tmp_path / "a.jsonl")
    assert batch["v"].to_pylist() == [math.inf]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("old")

    def breaks():
        yield normalise(pa.record_batch({"type": ["a"], "time": [0]})).events
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="disk"):
        write_events(breaks(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["events.csv"]
    assert path.read_text() == "old"
