"""Patterns between objects give the same, into however many parts the world is cut."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.spark.frames import ids

import whimbrel as wb

pytestmark = pytest.mark.slow

NEAR = """
define Near(one, other)
  detect P as a and P as b within 5 s
  where distance(a, b) < 50 m and a.source < b.source
  assign one = a.source, other = b.source
"""
TOGETHER = (
    NEAR
    + """
define Together(one, other, times) over 60 s
  detect Near
  assign one = group.one, other = group.other, times = count(Near)
  group by one, other
  having times >= 3
"""
)


def walkers(lonlat: bool) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    here = rng.uniform(0, 800, (25, 2))
    rows = []
    for time in range(0, 240, 3):
        here += rng.normal(0, 8, here.shape)
        for number, (x, y) in enumerate(here):
            place = {"lon": 179.998 + x * 1e-5, "lat": 60 + y * 9e-6} if lonlat else {"x": x, "y": y}
            if lonlat and place["lon"] > 180:
                place["lon"] -= 360  # some of them cross the date line
            rows.append(
                {"id": f"{time}-{number}", "type": "P", "time": time, "source": f"w{number}", **place}
            )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("query", [NEAR, TOGETHER], ids=["near", "together"])
@pytest.mark.parametrize("lonlat", [False, True], ids=["plane", "lonlat"])
def test_any_number_of_parts_gives_the_same(spark, query, lonlat):
    compiled, rows = wb.compile(query), walkers(lonlat)
    expected = ids(wb.detect(compiled, rows))
    assert len(expected) > 20
    frame = spark.createDataFrame(rows)
    for partitions in (1, 4, 64) if not lonlat else (5,):
        assert ids(wb.detect(compiled, frame, partitions=partitions)) == expected
