"""Each sink writes what it is given, and writing a micro-batch again changes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import shapely
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from whimbrel.errors import DataError, WhimbrelError
from whimbrel.io.files import read_events
from whimbrel.model.schema import Coordinates
from whimbrel.spark.sinks import (
    ConsoleSink,
    DetectionForm,
    FolderSink,
    KafkaSink,
    TableSink,
    WebhookSink,
    open_sink,
    start,
)
from whimbrel.spark.sources import read_replay

SCHEMA = (
    "id STRING, type STRING, start TIMESTAMP, end TIMESTAMP, geometry BINARY, truck STRING, load LONG, "
    "events ARRAY<STRING>"
)
EIGHT = datetime(2025, 3, 3, 8, tzinfo=UTC)


def rows(*numbers: int) -> list[tuple]:
    """Detections, by their numbers."""
    return [
        (
            f"d{n}",
            "Overdue" if n % 2 else "Lost",
            EIGHT + timedelta(minutes=n),
            EIGHT + timedelta(minutes=n, microseconds=5),
            shapely.to_wkb(shapely.Point(n, 0)) if n % 3 else None,
            f"T{n}",
            None if n == 2 else n,
            [f"e{n}", f"f{n}"],
        )
        for n in numbers
    ]


@pytest.fixture
def detections(spark) -> Callable[..., DataFrame]:
    """Frames of detections, by their numbers, in three partitions."""

    def make(*numbers: int) -> DataFrame:
        return spark.createDataFrame(rows(*numbers), SCHEMA).repartition(3)

    return make


def ids(folder) -> list[str]:
    return sorted(pa.dataset.dataset(str(folder), format="parquet").to_table()["id"].to_pylist())


@pytest.mark.slow
def test_a_folder_holds_each_micro_batch_once(detections, tmp_path, spark):
    sink = FolderSink(str(tmp_path / "out"))
    sink.write(detections(1, 2, 3), 0)
    sink.write(detections(4, 5), 1)
    sink.write(detections(4, 5), 1)
    sink.write(detections(), 2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "batch-000000000000.parquet",
        "batch-000000000001.parquet",
    ]
    assert ids(tmp_path / "out") == ["d1", "d2", "d3", "d4", "d5"]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5


@pytest.mark.slow
def test_a_write_that_was_cut_half_way_leaves_nothing_to_see(detections, tmp_path):
    out = tmp_path / "out"
    sink = FolderSink(str(out))
    sink.write(detections(1), 0)
    # What a process that was killed leaves behind: half a file under its temporary name.
    half = out / f".{sink.file(1).name}.4711.0.part"
    half.write_bytes(sink.file(0).read_bytes()[:100])
    assert ids(out) == ["d1"]
    sink.write(detections(2, 3), 1)
    assert not half.exists()
    assert ids(out) == ["d1", "d2", "d3"]


@pytest.mark.slow
def test_a_folder_of_another_query_is_refused(detections, tmp_path):
    FolderSink(str(tmp_path)).write(detections(1), 7)
    with pytest.raises(DataError, match="up to 7, and this is number 0: the folder belongs to a query with"):
        FolderSink(str(tmp_path)).write(detections(1), 0)


@pytest.mark.slow
def test_a_folder_has_the_forms_that_whimbrel_writes(detections, tmp_path):
    form = DetectionForm({"Overdue": ["truck", "load"], "Lost": ["truck"]}, Coordinates.PLANE)
    for name in ("json", "csv", "geojson", "parquet"):
        FolderSink(str(tmp_path / name), name, form).write(detections(1, 2), 0)
    lines = (tmp_path / "json" / "batch-000000000000.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "type": "Overdue",
            "start": "2025-03-03T08:01:00.000000Z",
            "end": "2025-03-03T08:01:00.000005Z",
            "geometry": "POINT (1 0)",
            "attributes": {"truck": "T1", "load": 1},
            "events": ["e1", "f1"],
            "id": "d1",
        },
        {
            "type": "Lost",
            "start": "2025-03-03T08:02:00.000000Z",
            "end": "2025-03-03T08:02:00.000005Z",
            "geometry": "POINT (2 0)",
            "attributes": {"truck": "T2"},
            "events": ["e2", "f2"],
            "id": "d2",
        },
    ]
    csv = (tmp_path / "csv" / "batch-000000000000.csv").read_text("utf-8")
    assert '"d1","Overdue",2025-03-03T08:01:00.000000Z' in csv.replace('"2025', "2025").replace('Z"', "Z")
    features = json.loads((tmp_path / "geojson" / "batch-000000000000.geojson").read_text("utf-8"))[
        "features"
    ]
    assert [feature["properties"]["type"] for feature in features] == ["Overdue", "Lost"]
    assert b"geo" in pq.read_schema(tmp_path / "parquet" / "batch-000000000000.parquet").metadata
    (batch,) = read_events(tmp_path / "parquet", columns=["truck"])
    assert batch.column("truck").to_pylist() == ["T1", "T2"]


@pytest.mark.slow
def test_a_table_holds_each_micro_batch_once(detections, spark, tmp_path):
    spark.sql(f"CREATE SCHEMA sinks_test LOCATION '{tmp_path / 'tables'}'")
    try:
        sink = open_sink("table:sinks_test.found")
        sink.write(detections(1, 2), 0)
        sink.write(detections(3), 1)
        sink.write(detections(3), 1)
        sink.write(detections(), 2)
        table = spark.table("sinks_test.found")
        assert sorted((row["id"], row["batch_id"]) for row in table.collect()) == [
            ("d1", 0),
            ("d2", 0),
            ("d3", 1),
        ]
        with pytest.raises(DataError, match="holds micro-batches up to 1, and this is number 0"):
            TableSink("sinks_test.found").write(detections(1), 0)
        with pytest.raises(DataError, match="differ in the column 'more'"):
            sink.write(detections(1).selectExpr("*", "1 AS more"), 3)
    finally:
        spark.sql("DROP SCHEMA sinks_test CASCADE")


@pytest.mark.slow
def test_the_console_shows_a_line_for_each(detections, capsys):
    ConsoleSink(rows=2, form=DetectionForm({"Lost": ["truck"]})).write(detections(1, 2, 3), 9)
    assert capsys.readouterr().out.splitlines() == [
        "2025-03-03 08:01:00Z .. 2025-03-03 08:01:00.000005Z  Overdue  truck=T1  load=1  (2 events)",
        "2025-03-03 08:02:00Z .. 2025-03-03 08:02:00.000005Z  Lost  truck=T2  (2 events)",
        "... and 1 more in micro-batch 9",
    ]


class Hook:
    """A web server that notes what is posted to it and answers as it is told."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.posts: list[tuple[str, list[dict]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = hook.answers.pop(0) if hook.answers else 200
                if answer == 200:
                    hook.posts.append((self.headers["Idempotency-Key"], json.loads(body)))
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_about: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?key=1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hook(monkeypatch) -> Iterator[Hook]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    hook = Hook()
    yield hook
    hook.close()


@pytest.mark.slow
def test_a_webhook_is_tried_again(detections, hook):
    hook.answers = [503, 500, 200]
    sink = WebhookSink(hook.url, size=2, wait=0.01)
    sink.write(detections(3, 1, 2), 0)
    assert [[found["id"] for found in body] for _, body in hook.posts] == [["d1", "d2"], ["d3"]]
    assert hook.posts[0][1][0]["attributes"] == {"truck": "T1", "load": 1}
    sink.write(detections(2, 3, 1), 0)
    assert hook.posts[2:] == hook.posts[:2], "the same posts with the same keys"
    assert hook.posts[0][0] != hook.posts[1][0]


@pytest.mark.slow
def test_a_webhook_that_keeps_failing_fails_the_micro_batch(detections, hook, caplog):
    hook.answers = [500] * 3
    with pytest.raises(
        WhimbrelError,
        match=r"2 detections of micro-batch 4 could not be posted: .* 500 .*3 tries",
    ):
        WebhookSink(hook.url, retries=2, wait=0.01).write(detections(1, 2), 4)
    assert [line.partition(": ")[2] for line in caplog.messages] == [
        f"the answer was 500 Internal Server Error; micro-batch 4 is tried again in {wait} s"
        for wait in (0.01, 0.02)
    ]
    assert hook.answers == []
    hook.answers = [404, 200]
    with pytest.raises(WhimbrelError, match="the answer was 404"):
        WebhookSink(hook.url, retries=2, wait=0.01).write(detections(1), 4)
    assert hook.answers == [200], "an answer that will not change is not asked for again"


@pytest.mark.slow
def test_a_query_that_failed_goes_on_with_the_same_micro_batch(spark, hook, tmp_path):
    lines = [f"A,{n},d{n}" for n in range(30)]
    (tmp_path / "events.csv").write_text("\n".join(["type,time,id", *lines]) + "\n", encoding="utf-8")

    def run() -> None:
        events = read_replay(
            spark, str(tmp_path / "events.csv"), rows_per_batch=10, cache=str(tmp_path / "replays")
        )
        found = events.selectExpr(
            "id",
            "type",
            "time AS start",
            "time AS end",
            "CAST(NULL AS BINARY) AS geometry",
            "array(id) AS events",
        )
        sinks = [f"folder:{tmp_path / 'out'}", WebhookSink(hook.url, retries=0)]
        start(found, sinks, checkpoint=tmp_path / "checkpoint", available_now=True).awaitTermination(90)

    hook.answers = [200, 500]
    with pytest.raises(StreamingQueryException, match="10 detections of micro-batch 1 could not be posted"):
        run()
    assert len(hook.posts) == 1
    run()
    expected = [f"d{n}" for n in range(30)]
    assert [found["id"] for _, body in hook.posts for found in body] == expected
    assert ids(tmp_path / "out") == sorted(expected)


@pytest.mark.parametrize(
    ("text", "sink"),
    [
        ("console:", ConsoleSink()),
        ("console:?rows=5", ConsoleSink(5)),
        ("folder:/a%20b/c?format=csv", FolderSink("/a b/c", "csv")),
        ("table:town.found", TableSink("town.found")),
        ("kafka://a:1,b:2/found?kafka.acks=all", KafkaSink("a:1,b:2", "found", {"kafka.acks": "all"})),
        ("webhook:https://h/x?key=1#size=7&wait=2", WebhookSink("https://h/x?key=1", size=7, wait=2)),
    ],
)
def test_sinks_have_a_text_form(text, sink):
    assert open_sink(text) == sink


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("found.parquet", "names no kind of source or sink; write one of: console:, folder:found"),
        ("foldr:out", "did you mean 'folder'"),
        ("folder:", "nothing follows 'folder'; write it like folder:found"),
        ("folder:out?formats=csv", "folder has no option 'formats'; did you mean 'format'"),
        ("folder:out?format=xml", "format 'xml' is not known"),
        ("folder:s3://bucket/x", "a folder must be a path"),
        ("table:a; DROP TABLE b", "is no name of a table"),
        ("kafka:///found", "no server is named; write kafka://host:port/topic"),
        ("kafka://h:1", "no topic is named; write kafka://h:1/topic"),
        ("webhook:ftp://h/x", "a webhook needs an address such as http"),
        ("webhook:http://h/x#size=0", "size is 0; it must be at least 1"),
        ("webhook:http://h/x#size=many", "size must be a number, not 'many'"),
        ("webhook:http://h/x#size=1.5", "size must be a whole number, not '1.5'"),
        ("console:?rows=1&rows=2", "option 'rows' is given twice"),
        ("console:out", "the console has no place"),
    ],
)
def test_wrong_text_forms_are_explained(text, message):
    with pytest.raises(DataError, match=message):
        open_sink(text)


def test_a_query_needs_a_sink_and_one_way_to_run():
    with pytest.raises(DataError, match="no sink is given"):
        start(None, [], checkpoint="cp")
    with pytest.raises(DataError, match="either a trigger or available_now"):
        start(None, "console:", checkpoint="cp", trigger="1 second", available_now=True)
