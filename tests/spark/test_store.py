"""The event store on Spark: what tasks write, what Catalyst leaves out, what streams repeat."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

import whimbrel as wb
from whimbrel.errors import DataError, WhimbrelError
from whimbrel.store import Store

pytest.importorskip("pyspark")

from whimbrel.spark.store import batch_writer, normalised_frame, read_store, write_store
from whimbrel.store.write import WriteInput

pytestmark = pytest.mark.slow

DAY_S = 86_400
QUERY = """
coordinates plane
region Gate = box(95, 0, 135, 5)
define D detect Fix(this in Gate and end < timestamp '1970-01-02T06:00:00Z')
"""


def fixes(count: int = 40) -> pa.Table:
    rows = [
        {
            "id": f"e{n}",
            "type": "Fix" if n % 4 else "Stop",
            "source": f"s{n % 3}",
            "time": n * DAY_S // 20,
            "x": 10.0 * (n % 20),
            "y": 0.0,
            "v": n,
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "events", cell_m=40, coordinates="plane")


def frame_of(spark, table: pa.Table):
    return spark.createDataFrame(table.to_pandas()).repartition(3)


def plan_of(frame) -> str:
    setting = "spark.sql.maxMetadataStringLength"  # else filters end in an ellipsis
    before = frame.sparkSession.conf.get(setting)
    frame.sparkSession.conf.set(setting, "5000")
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        frame.explain()
    frame.sparkSession.conf.set(setting, before)
    return shown.getvalue()


def ids(frame) -> list[str]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_tasks_write_what_one_process_would(spark, store, tmp_path):
    done = write_store(frame_of(spark, fixes()), store.root, batch="all")
    assert (done.events, done.rejected, done.batch) == (40, 0, "all")
    other = Store.create(tmp_path / "other", cell_m=40, coordinates="plane")
    other.append(fixes())
    found, expected = (each.scan().read_all().sort_by("id") for each in (store, other))
    assert found == expected
    assert {file.path.rpartition("/")[0] for file in store.state.files.values()} == {
        file.path.rpartition("/")[0] for file in other.state.files.values()
    }


def test_a_frame_of_the_store_holds_what_the_query_can_use(spark, store):
    query = wb.compile(QUERY)
    store.append(fixes())
    frame = read_store(spark, store.root, query, since="1970-01-01T06:00:00Z")
    plan = plan_of(frame)
    assert "PartitionFilters: [isnotnull(day" in plan
    assert "cell#" in plan.partition("PartitionFilters: [")[2].partition("]")[0]
    pushed = plan.partition("PushedFilters: [")[2].partition("]")[0]
    assert "GreaterThanOrEqual(end,1970-01-01" in pushed
    assert "EqualTo(type,Fix)" in pushed
    assert "GreaterThanOrEqual(x,95.0)" in pushed
    expected = store.detect(query, since="1970-01-01T06:00:00Z")
    assert wb.detect(query, frame.drop("day", "cell").toArrow()).to_pylist() == expected.to_pylist()
    assert expected.num_rows > 0


def test_without_a_query_a_frame_holds_everything(spark, store):
    store.append(fixes())
    store.append([{"id": "later", "type": "Fix", "time": 9 * DAY_S, "w": 0.5, "v": 1.5}])
    frame = read_store(spark, store.root)
    assert ids(frame) == sorted([*(f"e{n}" for n in range(40)), "later"])
    assert {"v", "w", "day", "cell"} <= set(frame.columns)
    assert ids(read_store(spark, store.root, until="1970-01-01T00:00:00Z")) == []
    assert ids(spark.read.parquet(str(store.root))) == ids(frame)


def test_plain_spark_prunes_on_the_folders(spark, store):
    store.append(fixes())
    store.compact()
    frame = spark.read.parquet(str(store.root)).filter("day = '1970-01-02' and cell = 'x0y0'")
    assert "day#" in plan_of(frame).partition("PartitionFilters: [")[2].partition("]")[0]
    assert ids(frame) == ["e20", "e21", "e22", "e23"]


def test_a_stream_that_repeats_a_batch_leaves_nothing_twice(spark, store):
    append_batch = batch_writer(store.root, "fixes")
    whole = frame_of(spark, fixes())
    append_batch(whole.filter("v < 20"), 0)
    append_batch(whole.filter("v >= 20"), 1)
    append_batch(whole.filter("v >= 20"), 1)
    assert store.scan().read_all().num_rows == 40
    store.compact()
    append_batch(whole.filter("v >= 20"), 1)
    assert store.scan().read_all().num_rows == 40


def test_a_stream_is_written_batch_by_batch(spark, store, tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    for number in range(3):
        pq.write_table(fixes().slice(10 * number, 10), tmp_path / "in" / f"{number}.parquet")
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    running = (
        stream.writeStream.foreachBatch(batch_writer(store.root))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    assert store.scan().read_all().num_rows == 30
    assert set(store.state.batches) == {"stream-0", "stream-1", "stream-2"}


def test_rows_that_are_no_events_are_counted_and_kept(spark, store, tmp_path):
    bad = fixes(4).set_column(4, "x", pa.array([0.0, float("inf"), 1.0, 2.0]))
    done = write_store(frame_of(spark, bad), store.root, rejected=tmp_path / "bad.jsonl")
    assert (done.events, done.rejected, dict(done.reasons)) == (3, 1, {"x is not finite": 1})
    assert json.loads((tmp_path / "bad.jsonl").read_text())["reason"] == "x is not finite: inf"


def test_nothing_is_stored_of_a_frame_that_fails(spark, store):
    store.append(fixes(4))
    frame = frame_of(spark, fixes(8).set_column(6, "v", pa.array(["text"] * 8)))
    with pytest.raises(Exception, match="attribute 'v' is string here and int in the store"):
        write_store(frame, store.root)
    assert store.scan().read_all().num_rows == 4
    store.repair()
    assert not list(store.root.rglob(".*.new"))


def test_events_without_ids_get_those_that_detection_makes(spark, store):
    bare = fixes(12).drop_columns("id")
    twice = pa.concat_tables([bare, bare.slice(3, 4)])
    write_store(frame_of(spark, twice), store.root)
    write_store(frame_of(spark, bare.slice(0, 5)), store.root)
    whole = pa.concat_tables([twice, bare.slice(0, 5)])
    query = wb.compile("define D detect * as any")
    assert wb.detect(query, store).to_pylist() == wb.detect(query, whole).to_pylist()


def test_delta_tables_need_ids_and_streams_a_batch_writer(spark, store):
    with pytest.raises(DataError, match="no column 'id'"):
        write_store(frame_of(spark, fixes().drop_columns("id")), store.root, format="delta")
    with pytest.raises(DataError, match="batch_writer"):
        write_store(spark.readStream.format("rate").load(), store.root)
    with pytest.raises(DataError, match="'orc' is not known"):
        read_store(spark, store.root, format="orc")


def test_delta_without_its_package_says_what_to_install(spark, store):
    for attempt in (
        lambda: write_store(frame_of(spark, fixes()), store.root, format="delta"),
        lambda: read_store(spark, store.root, format="delta"),
    ):
        with pytest.raises(WhimbrelError, match=r"delta-spark.*pip install delta-spark"):
            attempt()


def test_rows_for_other_formats_are_normalised(spark):
    bad = fixes(4).set_column(4, "x", pa.array([0.0, float("inf"), 1.0, 2.0]))
    rows = normalised_frame(frame_of(spark, bad), WriteInput()).toPandas()
    events, rejected = rows[rows["rejected"].isna()], rows["rejected"].dropna()
    assert sorted(events["id"]) == ["e0", "e2", "e3"]
    assert [str(day) for day in events["day"].unique()] == ["1970-01-01"]
    assert json.loads(rejected.iloc[0])[0]["reason"] == "x is not finite: inf"
