"""Every kind of table gives the same events."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely

from whimbrel.errors import DataError
from whimbrel.model.batch import normalise
from whimbrel.model.frames import batches, row_count
from whimbrel.model.schema import Coordinates

ROWS = [
    {"type": "a", "time": "2024-05-01T00:00:00Z", "v": 1.5},
    {"type": "b", "time": "2024-05-02T00:00:00Z", "label": "x"},
    {"type": "a", "time": "2024-05-03T00:00:00Z", "v": None},
]
TABLE = pa.Table.from_pylist(
    ROWS,
    schema=pa.schema(
        [("type", pa.string()), ("time", pa.string()), ("v", pa.float64()), ("label", pa.string())]
    ),
)


class Stream:
    """A table of some package that nobody has heard of."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


FRAMES = {
    "dicts": lambda: ROWS,
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.DataFrame(ROWS).lazy(),
    "stream": Stream,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_every_table_gives_the_same_events(kind: str, rows: int) -> None:
    found = list(batches(FRAMES[kind](), rows=rows))
    assert max(batch.num_rows for batch in found) <= rows
    events = [row for batch in found for row in normalise(batch).events.to_pylist()]
    assert events == [row for batch in TABLE.to_batches() for row in normalise(batch).events.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "count"),
    [("dicts", 3), ("table", 3), ("pandas", 3), ("polars", 3), ("reader", None), ("lazy polars", None)],
)
def test_rows_are_counted_where_that_costs_nothing(kind: str, count: int | None) -> None:
    assert row_count(FRAMES[kind]()) == count


def test_an_empty_table_still_shows_its_columns() -> None:
    (batch,) = batches(TABLE.slice(0, 0))
    assert batch.schema.names == TABLE.schema.names
    assert batch.num_rows == 0


def test_the_table_is_never_changed() -> None:
    frame = gpd.GeoDataFrame(pd.DataFrame(ROWS), geometry=[shapely.Point(0, 0)] * 3, crs=4326)
    before = frame.copy()
    list(batches(frame))
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("crs", "coordinates"),
    [(4326, Coordinates.LONLAT), (25832, Coordinates.PLANE), (None, Coordinates.PLANE)],
)
def test_the_crs_decides_the_coordinates(crs: int | None, coordinates: Coordinates) -> None:
    shapes = [shapely.Point(1, 2), shapely.box(0, 0, 1, 1), None]
    frame = gpd.GeoDataFrame(pd.DataFrame(ROWS), geometry=shapes, crs=crs).rename_geometry("place")
    (batch,) = batches(frame)
    found = normalise(batch)
    assert found.coordinates is coordinates
    assert found.events["x"].to_pylist() == [1.0, None, None]
    assert found.events["geometry"].null_count == 2


def test_pandas_times_and_categories_are_understood() -> None:
    frame = pd.DataFrame(
        {
            "type": pd.Categorical(["a", "b"]),
            "time": pd.to_datetime(["2024-05-01", "1969-12-31"]),
            "n": [1.0, np.nan],
        }
    )
    (batch,) = batches(frame)
    found = normalise(batch)
    assert found.events["start"].to_pylist() == [1_714_521_600_000_000, -86_400_000_000]
    assert found.events["n"].to_pylist() == [1.0, None]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "a builtins.int is no table; give a pyarrow Table"),
        ([1, 2], "a builtins.list is no table"),
        (
            [{"type": "a", "v": 1}, {"type": "a", "v": "x"}],
            "column 'v' holds values that do not fit together",
        ),
        ([{1: 2}], "the key 1; keys must be texts"),
        (pd.DataFrame({0: [1]}), "column 0 has a name that is not text"),
        (gpd.GeoDataFrame({"type": ["a"]}), "no active geometry"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(batches(data))


def test_importing_is_light_and_loads_no_package_that_the_table_is_not_from() -> None:
    # Arrow itself loads pandas, where it is installed, with the first value it is given.
    script = (
        "import sys\n"
        "import whimbrel.io\n"
        "from whimbrel.model.frames import batches\n"
        "from whimbrel.model.batch import normalise\n"
        "assert not {'pandas', 'polars', 'geopandas', 'shapely'} & set(sys.modules)\n"
        "for batch in batches([{'type': 'a', 'time': 1, 'x': 0.0, 'y': 0.0}]): normalise(batch)\n"
        "assert not {'polars', 'geopandas', 'shapely'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
