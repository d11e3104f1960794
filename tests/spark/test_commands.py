"""The command line on Spark, and a program handed to spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAM = """
import sys
import whimbrel as wb
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
query = wb.read(sys.argv[1])
frame = spark.createDataFrame([("Leave", 0, "t1"), ("Leave", 1, "t2"), ("Arrive", 9, "t2")],
                              "type string, time long, truck string")
print("FOUND", [row.truck for row in wb.detect(query, frame).collect()])
spark.stop()
"""


def run(*command, cwd, **more):
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **more}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    return done.returncode, done.stdout, done.stderr


def whimbrel(*args, cwd):
    return run(str(Path(sys.executable).with_name("whimbrel")), *map(str, args), cwd=cwd)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_detect_on_spark_writes_what_the_embedded_engine_writes(java, tmp_path):
    detect = ("detect", EXAMPLES / "overdue.wbl", "--events", EXAMPLES / "trips.csv")
    code, embedded, _ = whimbrel(*detect, cwd=tmp_path)
    assert code == 0
    code, on_spark, errors = whimbrel(*detect, "--engine", "spark", cwd=tmp_path)
    assert (code, errors.splitlines()[-1]) == (
        0,
        "7 events read, 2 detections, 0 late, 0 duplicate, 0 rejected",
    )
    assert lines(on_spark) == lines(embedded)


def test_a_stream_tells_its_progress_keeps_what_it_sets_aside_and_goes_on_where_it_was(java, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text((EXAMPLES / "trips.csv").read_text() + ",2025-03-03T10:31:00Z,,,,\n")
    stream = (
        "stream", EXAMPLES / "overdue.wbl", "--source", f"replay:{events}?rows_per_batch=4",
        "--sink", "folder:found?format=json", "--checkpoint", "state", "--set-aside", "aside", "--once",
    )  # fmt: skip
    code, _, errors = whimbrel(*stream, cwd=tmp_path)
    assert code == 0, errors
    told = errors.splitlines()
    assert told[0].startswith("#0  4 events, ")
    assert told[1].startswith("#1  4 events, ")
    assert "1 rejected" in told[1]
    found = [row for path in (tmp_path / "found").iterdir() for row in lines(path.read_text())]
    assert sorted(row["attributes"]["truck"] for row in found) == ["T1", "T3"]
    (aside,) = [row for path in (tmp_path / "aside").iterdir() for row in lines(path.read_text())]
    assert (aside["kind"], aside["reason"]) == ("rejected", "type is missing")
    code, _, errors = whimbrel(*stream, cwd=tmp_path)
    assert (code, errors) == (0, "")


def test_wrong_usage_of_a_stream_is_told_before_spark_does_anything(tmp_path):
    code, _, errors = whimbrel("stream", EXAMPLES / "overdue.wbl", "--source", "smoke:x", "--checkpoint", "c",
                               "--once", cwd=tmp_path)  # fmt: skip
    assert code == 1
    assert "smoke" in errors


def test_a_program_runs_with_spark_submit(java, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    code, out, errors = run(
        str(submit), "--master", "local[2]", "--conf", "spark.driver.host=127.0.0.1", "--conf",
        "spark.driver.bindAddress=127.0.0.1", "program.py", str(EXAMPLES / "overdue.wbl"), cwd=tmp_path,
    )  # fmt: skip
    assert code == 0, errors[-3000:]
    assert "FOUND ['t1']" in out
