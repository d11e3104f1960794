"""Ships that stay close to each other for a minute, in a real recording, cut into however many parts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

pytestmark = [pytest.mark.slow, pytest.mark.needs_data]

NEAR_M, MEET_S, STAY_S, TIMES = 50.0, 10, 60, 6
QUERY = f"""
define Near(one, other)
  detect P as a and P as b within {MEET_S} s
  where distance(a, b) < {NEAR_M} m and a.source < b.source
  assign one = a.source, other = b.source

define Together(one, other, times) over {STAY_S} s
  detect Near
  assign one = group.one, other = group.other, times = count(Near)
  group by one, other
  having times >= {TIMES}
"""


@pytest.fixture(scope="module")
def ships(data_dir):
    """Twenty minutes of positions, each with an id."""
    table = pq.read_table(
        data_dir / "ais_northsea_2022" / "positions.parquet", columns=["object_id", "t", "lon", "lat"]
    )
    first = table.column("t")[0].value
    table = table.filter(pa.compute.less(table.column("t").cast(pa.int64()), first + 20 * 60 * 1_000_000))
    return pa.table(
        {
            "id": [f"p{number}" for number in range(table.num_rows)],
            "type": ["P"] * table.num_rows,
            "time": table.column("t").cast(pa.timestamp("us", "UTC")),
            "source": table.column("object_id").cast(pa.string()),
            "lon": table.column("lon"),
            "lat": table.column("lat"),
        }
    )


def metres(one, other):
    """The distance on the sphere, as the textbook has it."""
    lon1, lat1, lon2, lat2 = (math.radians(value) for value in (*one, *other))
    half = (
        math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * 6_371_008.8 * math.asin(math.sqrt(half))


def naive(ships):
    """Every pair of positions looked at; then for every meeting, those of the pair in the minute up to it."""
    rows = sorted(
        (time.timestamp(), source, (lon, lat))
        for time, source, lon, lat in zip(
            *(ships.column(name).to_pylist() for name in ("time", "source", "lon", "lat")), strict=True
        )
        if lon is not None
    )
    meetings = defaultdict(list)
    for place, (time, source, here) in enumerate(rows):
        for later, other, there in rows[place + 1 :]:
            if later - time > MEET_S:
                break
            if source != other and metres(here, there) < NEAR_M:
                meetings[min(source, other), max(source, other)].append(later)
    found = Counter()
    for pair, times in meetings.items():
        times.sort()
        for place, end in enumerate(times):
            count = sum(end - time <= STAY_S for time in times[: place + 1])
            if count >= TIMES:
                found[*pair, end, count] += 1
    return found


def answers(table):
    return Counter(
        (row["one"], row["other"], row["end"].timestamp(), row["times"]) for row in table.to_pylist()
    )


def test_ships_that_stay_together_are_those_of_the_naive_search(spark, ships):
    expected, query = naive(ships), wb.compile(QUERY)
    assert expected.total() > 1000
    assert answers(wb.detect(query, ships)) == expected
    frame = spark.createDataFrame(ships)
    for partitions in (1, 4, 64):
        assert answers(wb.detect(query, frame, partitions=partitions).toArrow()) == expected, partitions
