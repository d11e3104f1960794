"""Events without ids get the same ones on Spark as everywhere, and so do their detections."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.identity import made_ids
from tests.shared.backends import BACKENDS, arrivals, collected, streamed

import whimbrel as wb
from whimbrel.engine.identity import ATTRIBUTES, attribute_hashes
from whimbrel.model.batch import AS_NAMED
from whimbrel.spark import detect_live
from whimbrel.spark.contents import with_contents
from whimbrel.testing import table

pytestmark = pytest.mark.slow

NAN, INF = float("nan"), float("inf")
VALUES = {
    "truth": pa.array([True, False, None, True, False, None, True]),
    "byte": pa.array([1, -1, 0, 127, -128, None, 5], pa.int8()),
    "short": pa.array([1, -1, 0, 2**15 - 1, -(2**15), None, 5], pa.int16()),
    "int": pa.array([1, -1, 0, 2**31 - 1, -(2**31), None, 5], pa.int32()),
    "long": pa.array([1, -1, 0, 2**63 - 1, -(2**63), None, 5], pa.int64()),
    "float": pa.array([0.5, -0.0, NAN, 3e38, 0.1, None, 5.0], pa.float32()),
    "double": pa.array([0.5, -0.0, NAN, INF, -(2.0**63), None, 5.0], pa.float64()),
    "extreme": pa.array([1e300, 2.0**63, -1e-300, -INF, 5e-324, None, 0.1], pa.float64()),
    "decimal": pa.array([Decimal(text) for text in ("0.30", "1234567.89", "-5.00", "0.10", "7.77", "99.99")]
                        + [None], pa.decimal128(20, 2)),
    "text": pa.array(["", "a", "ü€😀" * 20, "x" * 31, "y" * 32, None, "z" * 33]),
    "day": pa.array([date(1969, 12, 31), date(2024, 5, 1), None, date(1, 1, 1), date(9999, 12, 31), None,
                     date(1970, 1, 1)]),
    "instant": pa.array([0, -1, 1_714_550_400_000_000, None, 1, 2, 3], pa.timestamp("us", "UTC")),
    "local": pa.array([0, -1, 1_714_550_400_000_000, None, 1, 2, 3], pa.timestamp("us")),
    "na`me.with 'signs'": pa.array(list("abcdefg")),
    "nothing": pa.nulls(7, pa.string()),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_spark_hashes_values_of_each_kind_as_the_engine_does(spark, name):
    batch = pa.RecordBatch.from_pydict({name: VALUES[name]})
    hashed = with_contents(spark.createDataFrame(pa.Table.from_batches([batch])), AS_NAMED)
    assert hashed.toArrow().column(ATTRIBUTES).to_pylist() == attribute_hashes(batch).view("i8").tolist()


def test_spark_hashes_whole_events_as_the_engine_does(spark):
    batch = pa.RecordBatch.from_pydict(VALUES)
    frame = spark.createDataFrame(pa.Table.from_batches([batch]))
    for shown in (frame, frame.select(*(f"`{name.replace('`', '``')}`" for name in reversed(frame.columns)))):
        found = with_contents(shown, AS_NAMED).toArrow().column(ATTRIBUTES).to_pylist()
        assert found == attribute_hashes(batch).view("i8").tolist()


def test_columns_that_cannot_be_attributes_count_on_neither(spark):
    batch = pa.RecordBatch.from_pydict({"v": [1, 2], "list": [[1], [2]], "bytes": [b"a", b"b"]})
    found = with_contents(spark.createDataFrame(pa.Table.from_batches([batch])), AS_NAMED)
    assert found.toArrow().column(ATTRIBUTES).to_pylist() == attribute_hashes(batch).view("i8").tolist()
    assert attribute_hashes(batch).tolist() == attribute_hashes(batch.select(["v"])).tolist()


PARTITIONED = {
    "anyhow": "define D detect A where A.v >= 0",
    "by source": "define D detect A as a then B as b within 20 s group by source",
    "by a key": "define D detect A as a and B as b within 20 s context recent group by k",
    "by space": "define D detect A as a and B as b within 5 s where distance(a, b) < 3",
    "in one place": "define D over 10 s detect A assign n = count(A), f = first(A.v)",
}
"""Queries for which Spark deals out events in different ways."""
STEPS = "define D detect A as a followed by B as b within 30 s group by k"


def rows(seed: int) -> list[dict]:
    """Events with many ties, some of them equal in all they say, in random order."""
    rng = Random(seed)
    few = [
        {
            "type": rng.choice("AB"),
            "start": (second := rng.randrange(30)) * 1_000_000,
            "end": (second + rng.choice((0, 0, 1))) * 1_000_000,
            "source": rng.choice(("bus", "tram", None)),
            "x": float(rng.randrange(12)),
            "y": rng.randrange(12) / 2,
            "k": rng.choice(("north", "süd", None)),
            "v": rng.choice((0, 1, 2, None)),
            "unread": rng.choice(("", "a remark that no query reads, and which is long", None)),
            "seen": datetime(2024, 5, 1, tzinfo=UTC),
        }
        for _ in range(25)
    ]
    found = [*few, *rng.choices(few, k=10)]
    rng.shuffle(found)
    return found


def answers(backend: str, text: str, data: list[dict]) -> list[tuple[str, list[str]]]:
    """The ids of detections and of their events."""
    found = BACKENDS[backend]().run(wb.compile(text), data)
    return sorted((row["id"], row["events"]) for each in found for row in each.to_pylist())


SEEDS = int(os.environ.get("WHIMBREL_ID_SEEDS", "1"))
"""How many sets of events to try with each query."""


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("case", PARTITIONED)
def test_ids_are_the_same_embedded_in_sessions_and_on_spark(spark, case, seed):
    data = rows(seed)
    expected = answers("embedded", PARTITIONED[case], data)
    assert expected
    assert {each for _, events in expected for each in events} <= set(made_ids(data))
    for backend in ("session", "spark-batch", "spark-stream"):
        assert answers(backend, PARTITIONED[case], data) == expected, backend


SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("start", pa.timestamp("us", "UTC")),
        ("end", pa.timestamp("us", "UTC")),
        ("source", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("unread", pa.string()),
        ("level", pa.float64()),
    ]
)
EVENTS = st.builds(
    lambda second, length, **values: {
        **values,
        "start": second * 1_000_000,
        "end": (second + length) * 1_000_000,
    },
    type=st.sampled_from("AB"),
    second=st.integers(0, 12),
    length=st.integers(0, 1),
    source=st.sampled_from(("bus", "tram", "", None)),
    x=st.sampled_from((0.0, -0.0, 1.5, 3.0)),
    y=st.sampled_from((0.0, 2.0)),
    k=st.sampled_from(("north", "süd", None)),
    v=st.sampled_from((0, 1, -1, 2**60, None)),
    unread=st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
    level=st.sampled_from((0.5, -0.0, NAN, 7.0, None)),
)
"""Events that often agree in much of what they say."""


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[dict], list[dict], list[int]]:
    """Some events, with some of them again; the same in another order; and where that is cut in pieces."""
    few = draw(st.lists(EVENTS, min_size=1, max_size=8))
    data = [*few, *draw(st.lists(st.sampled_from(few), max_size=4))]
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=3))
    return data, draw(st.permutations(data)), sorted(cuts)


def partitions(spark: Any, data: list[dict], cuts: list[int]) -> Any:
    """A frame whose partitions are the pieces of the rows between the cuts; some may be empty."""
    pieces = [data[begin:end] for begin, end in pairwise([0, *cuts, len(data)])]
    frames = [spark.createDataFrame(pa.Table.from_pylist(each, SCHEMA)).coalesce(1) for each in pieces]
    return reduce(lambda one, other: one.unionByName(other), frames)


@pytest.mark.filterwarnings("ignore:all events go to one partition")
@settings(max_examples=int(os.environ.get("WHIMBREL_ID_EXAMPLES", "4")))
@given(drawn=inputs(), count=st.integers(1, 3))
@pytest.mark.parametrize("case", PARTITIONED)
def test_neither_order_nor_partitions_nor_copies_change_an_id(spark, case, drawn, count):
    data, shuffled, cuts = drawn
    query = wb.compile(PARTITIONED[case])
    expected = wb.detect(query, pa.Table.from_pylist(data, SCHEMA))
    found = wb.detect(query, partitions(spark, shuffled, cuts), partitions=count).toArrow()
    assert told(found) == told(expected)


def told(found: Any) -> list[tuple[str, list[str]]]:
    """The ids of detections and of their events."""
    return sorted(zip(found["id"].to_pylist(), found["events"].to_pylist(), strict=True))


def test_steps_take_events_as_they_came_and_name_them_by_what_they_say(spark, tmp_path: Path):
    data = table(sorted(rows(7), key=lambda row: row["end"]))
    query = wb.compile(STEPS)
    expected = wb.detect(query, data).column("id").to_pylist()
    assert expected
    stream = wb.detect(query, streamed(data, tmp_path / "events"), lateness="0 s", shards=3)
    on_stream = collected(stream, tmp_path / "checkpoint")
    on_frame = wb.detect(query, spark.createDataFrame(data).coalesce(1), partitions=3).toArrow()
    assert sorted(on_stream.column("id").to_pylist()) == sorted(expected)
    assert sorted(on_frame.column("id").to_pylist()) == sorted(expected)


def test_queries_that_come_and_go_give_the_same_ids(spark, tmp_path: Path):
    data = rows(3)
    lateness, arriving = arrivals(data)
    whole = table([dict.fromkeys(data[0]) | row for row in arriving])
    orders = spark.createDataFrame(
        [("add", "D", PARTITIONED["by a key"])], "action string, name string, query string"
    )
    orders.write.json(str(tmp_path / "orders"))
    control = spark.readStream.schema(orders.schema).json(str(tmp_path / "orders"))
    events = streamed(whole, tmp_path / "events")
    found = detect_live(events, control, by="k", lateness=lateness, shards=3)
    live = collected(found, tmp_path / "checkpoint")
    expected = answers("embedded", PARTITIONED["by a key"], data)
    assert (
        sorted(zip(live.column("id").to_pylist(), live.column("events").to_pylist(), strict=True)) == expected
    )
