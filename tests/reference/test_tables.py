"""Events as tables, and geometry as hulls."""

from __future__ import annotations

import pyarrow as pa
import pytest
import shapely
from tests.reference import Event
from tests.reference.data import hull
from tests.reference.notation import given
from tests.reference.tables import event_table, vertices


def test_a_table_has_typed_columns_even_where_all_is_null():
    made = event_table(given("A@1s!s(1,2):v=null,w=null,k=null B@2..3s:v=null"))
    assert made.schema.field("v").type == pa.int64()
    assert made.schema.field("w").type == pa.float64()
    assert made.column("source").to_pylist() == ["s", None]
    assert made.column("x").to_pylist() == [1.0, None]
    assert made.column("end").cast(pa.int64()).to_pylist() == [1_000_000, 3_000_000]


def test_polygons_travel_as_geometry():
    square = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    events = [Event("p", "A", 0, 0, polygon=square), *given("A@1s(0.25,3) A@1s")]
    written = event_table(events).column("geometry").to_pylist()
    assert [vertices(text) for text in written] == [square, ((0.25, 3.0),), None]


@pytest.mark.parametrize("points", [[(1, 2)], [(0, 0), (3, 1)], [(0, 0), (4, 0), (4, 4), (0, 4), (2, 2)]])
def test_a_hull_reads_back_as_it_was(points):
    expected = hull(points)
    kinds = {1: shapely.Point, 2: shapely.LineString}
    shape = kinds.get(len(expected), shapely.Polygon)(expected)
    assert vertices(shape) == vertices(shape.wkt) == vertices(shape.wkb) == expected
