"""Events and detections go through a real Kafka broker and come back as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.brokers.kafka import kafka, kafka_connector
from tests.spark.sources import kafka_program

from whimbrel.errors import WhimbrelError
from whimbrel.spark.sinks import KafkaSink
from whimbrel.spark.sources import KAFKA_PACKAGE, read_kafka


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, list[dict]]:
    """Run the program once against a broker, and give what it found."""
    connector = kafka_connector()
    folder = tmp_path_factory.mktemp("kafka")
    with kafka(folder) as server:
        jars = ",".join(str(jar) for jar in connector.jars)
        more = ["stream"] if connector.matches else []
        done = subprocess.run(
            [sys.executable, Path(kafka_program.__file__), folder, server, jars, *more],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return {
        **json.loads((folder / "report.json").read_text("utf-8")),
        "folder": [
            json.loads(line)
            for path in sorted((folder / "found").iterdir())
            for line in path.read_text("utf-8").splitlines()
        ],
    }


def by_id(rows: list[dict]) -> dict[str, dict]:
    return {row["id"]: row for row in rows if row["id"]}


def check_events(events: list[dict]) -> None:
    assert sorted(by_id(events)) == ["e1", "e2"]
    assert by_id(events)["e1"] == {
        "id": "e1",
        "type": "A",
        "time": "2025-03-03 08:00:00.000001",
        "speed": 7.5,
        "_raw": None,
        "source": "truck-1",
    }
    # What does not fit the schema is a row without a type, which Whimbrel rejects, and shows its text.
    misfits = [event for event in events if event["id"] is None]
    assert {event["type"] for event in misfits} == {None}
    assert sorted((event["_raw"], event["source"]) for event in misfits if event["source"]) == [
        ("no JSON", "truck-3"),
        ('{"id":"e3","speed":"fast"}', "truck-2"),
    ]
    assert len(events) == 5


@pytest.mark.slow
def test_messages_become_events(report):
    check_events(report["events"])


@pytest.mark.slow
def test_messages_become_a_stream_of_events(report):
    if "streamed" not in report:
        pytest.skip(f"Maven could not get {KAFKA_PACKAGE}, and an older connector cannot stream")
    check_events(report["streamed"])


@pytest.mark.slow
def test_detections_become_messages(report):
    found = {row["key"]: json.loads(row["value"]) for row in report["found"]}
    assert len(report["found"]) == 3
    assert found["d1"] == {
        "type": "A",
        "start": "1970-01-01T00:00:01.000000Z",
        "end": "1970-01-01T00:00:01.000000Z",
        "geometry": None,
        "attributes": {"n": 1},
        "events": ["e"],
        "id": "d1",
    }
    assert sorted(report["folder"], key=lambda row: row["id"]) == [found[key] for key in sorted(found)]


@pytest.mark.slow
def test_a_missing_connector_is_told(spark):
    with pytest.raises(WhimbrelError, match=f"set spark.jars.packages to {KAFKA_PACKAGE}"):
        read_kafka(spark, "127.0.0.1:1", "events")
    frame = spark.sql("SELECT 'a' AS id")
    with pytest.raises(WhimbrelError, match="no Kafka connector"):
        KafkaSink("127.0.0.1:1", "found").write(frame, 0)
