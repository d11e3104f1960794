"""Send events and detections through Kafka, over Spark Connect: kafka_program.py FOLDER SERVER JARS [stream].

A process of its own, because a JVM takes packages only when it starts. Over Spark Connect, because what works
there needs no access to the JVM of the driver.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from whimbrel.spark.sinks import FolderSink, KafkaSink, start
from whimbrel.spark.sources import open_source, read_kafka, read_replay

MESSAGES = [
    ("truck-1", '{"id": "e1", "type": "A", "time": "2025-03-03T08:00:00.000001Z", "speed": 7.5}'),
    ("truck-2", '[{"id": "e2", "type": "A", "time": "2025-03-03T08:01:00Z"}, {"id": "e3", "speed": "fast"}]'),
    ("truck-3", "no JSON"),
    ("truck-4", "[]"),
    (None, '[{"id": "e4", "type": "B", "time": "2025-03-03T08:02:00Z", "speed": 1}'),
]
SCHEMA = "id STRING, type STRING, time TIMESTAMP, speed DOUBLE"
DETECTIONS = (
    "concat('d', n) AS id",
    "type",
    "time AS start",
    "time AS end",
    "CAST(NULL AS BINARY) AS geometry",
    "n",
    "array('e') AS events",
)


def connect(jars: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.jars": jars,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(folder: Path, server: str, jars: str, stream: bool) -> None:
    spark = connect(jars)
    sent = spark.createDataFrame(MESSAGES, "key STRING, value STRING")
    sent.write.format("kafka").options(**{"kafka.bootstrap.servers": server, "topic": "events"}).save()
    report = {"events": rows(read_kafka(spark, server, "events", schema=SCHEMA, key="source", stream=False))}

    (folder / "events.csv").write_text("type,time,n\nA,2,0\nA,1,1\nB,3,2\n", encoding="utf-8")
    events = read_replay(spark, str(folder / "events.csv"), rows_per_batch=2, cache=str(folder / "replays"))
    sinks = [KafkaSink(server, "found"), FolderSink(str(folder / "found"), "json")]
    query = start(events.selectExpr(*DETECTIONS), sinks, checkpoint=folder / "checkpoint", available_now=True)
    query.awaitTermination(120)
    KafkaSink(server, "found").write(spark.read.json(str(folder / "found")).limit(0), 9)
    report["found"] = rows(read_kafka(spark, server, "found", stream=False).select("key", "value"))

    if stream:
        streamed = open_source(spark, f"kafka://{server}/events?key=source&max_per_batch=2", schema=SCHEMA)
        streamed.writeStream.format("parquet").option(
            "checkpointLocation", str(folder / "streaming")
        ).trigger(availableNow=True).start(str(folder / "streamed")).awaitTermination(120)
        report["streamed"] = rows(spark.read.parquet(str(folder / "streamed")))
    (folder / "report.json").write_text(json.dumps(report, default=str), encoding="utf-8")
    spark.stop()


def rows(frame: DataFrame) -> list[dict[str, object]]:
    return [row.asDict() for row in frame.collect()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], len(sys.argv) > 4)
