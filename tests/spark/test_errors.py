"""Errors of Spark reach nobody but the log: what users see are plain words."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb
from whimbrel.errors import DataError, QueryError, SparkError
from whimbrel.spark import log
from whimbrel.spark.errors import plain_errors

QUERY = "define Late detect Leave then not Arrive for 1 h group by source\n"
EVENTS = "type,time,source,n\nLeave,0,a,1\nLeave,1,b,2\nArrive,2,b,3\n"
NEVER = ("Exception", "at org.apache", "Py4J", "Traceback", "SQLSTATE", "\tat ")


# -- in a program -------------------------------------------------------------------------------------------


def failing(frame, action):
    """Give a frame that does something on a worker."""

    def run(batches):
        for batch in batches:
            action()
            yield batch

    return frame.mapInArrow(run, frame.schema)


def raise_data_error():
    raise DataError("trips.csv: row 3 is bad;\n  mend it")


def raise_unknown_name():
    raise QueryError("no such thing", hint="look elsewhere")


def divide():
    return 1 / 0


def end():
    os._exit(9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (raise_data_error, DataError, r"^trips\.csv: row 3 is bad;\n  mend it\n"),
        (raise_unknown_name, QueryError, r"^no such thing\nhint: look elsewhere\n"),
        (
            divide,
            SparkError,
            r"^a Python function failed on a worker: ZeroDivisionError: division by zero \(.*",
        ),
        (end, SparkError, r"^a worker of Spark has ended, most likely for want of memory; use fewer cores"),
    ],
    ids=["data", "query", "python", "worker"],
)
def test_what_a_worker_raises_comes_out_in_plain_words(spark, action, kind, message):
    with pytest.raises(kind, match=message) as raised, plain_errors():
        failing(spark.range(2), action).toArrow()
    assert type(raised.value.__cause__).__module__.startswith(("pyspark", "py4j"))
    assert not any(word in str(raised.value) for word in NEVER)
    (note,) = raised.value.__notes__
    assert note == f"the whole report is in {log.log_file()}"
    assert "org.apache.spark" in log.log_file().read_text(errors="replace")


@pytest.mark.slow
def test_what_spark_itself_raises_comes_out_in_plain_words(spark, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(DataError, match=r"/no/such: no such file or folder\n"), plain_errors():
        spark.read.parquet("/no/such")
    with (
        pytest.raises(DataError, match=rf"^{tmp_path}/bad\.parquet: the Parquet file is cut off"),
        plain_errors(),
    ):
        spark.read.parquet(str(tmp_path / "bad.parquet"))
    with pytest.raises(SparkError, match="with name `nope` cannot be resolved"), plain_errors():
        spark.range(1).select("nope")
    with (
        pytest.raises(SparkError, match=r"^/dev/full: is a file, and a folder is needed there"),
        plain_errors(),
    ):
        spark.range(1).write.parquet("/dev/full/found")


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_or_cannot_be_written_is_told(spark, tmp_path):
    def run(frame, folder, write=lambda _frame, _number: None):
        writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(folder))
        with plain_errors():
            writer.trigger(availableNow=True).start().awaitTermination()

    def fill(_frame, _number):
        Path("/dev/full").write_text("x")

    spark.range(3).write.parquet(str(tmp_path / "in"))
    events = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    run(events, tmp_path / "state")
    with pytest.raises(SparkError, match="the checkpoint does not fit this stream"):
        run(events.union(events), tmp_path / "state")
    with pytest.raises(SparkError, match=r"^no space left on device; make room there"):
        run(events, tmp_path / "other", fill)
    (tmp_path / "file").touch()
    with pytest.raises(SparkError, match=rf"^{tmp_path}/file: is a file, and a folder is needed there"):
        run(events, tmp_path / "file")


def test_the_log_is_in_the_folder_for_the_state_of_programs_or_where_it_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "_current", None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert log.open_log() == tmp_path / "whimbrel" / "spark.log"
    assert log.open_log(tmp_path / "mine.log") == tmp_path / "mine.log"
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert log.open_log().name == f"whimbrel-{os.getuid()}-spark.log"
    with pytest.raises(DataError, match=r"no/mine\.log: the log cannot be written: No such file"):
        log.open_log("no/mine.log")


# -- on the command line ------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    """A folder with a query and events."""
    (tmp_path / "late.wbl").write_text(QUERY)
    (tmp_path / "trips.csv").write_text(EVENTS)
    return tmp_path


def whimbrel(*args, cwd, before=None, **environment):
    """Run the command; give its exit status and what it says on standard error."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("whimbrel")), *map(str, args), "--log", "spark.log"],
        cwd=cwd, env={**os.environ, **environment}, preexec_fn=before,
        capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert not [word for word in NEVER if word in done.stderr], done.stderr
    return done.returncode, done.stderr


def detect(desk, events, **more):
    return whimbrel(
        "detect", "late.wbl", "--engine", "spark", "--events", events, "--quiet", cwd=desk, **more
    )


def test_a_file_that_is_not_there_is_told(desk):
    assert detect(desk, "trip.csv") == (1, "error: trip.csv: no such file; did you mean 'trips.csv'?\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"JAVA_HOME": "/no/java"}, "JAVA_HOME is /no/java, and there is no bin/java in it; set it to"),
        ({"PATH": "/no/programs"}, "Spark needs Java 17 or newer, and none was found; install a JDK"),
        ({"JAVA_HOME": "old"}, "is Java 8, and Spark needs 17 or newer; set JAVA_HOME to a newer JDK"),
        ({"JAVA_HOME": "broken"}, "does not run as Java does; set JAVA_HOME to another JDK"),
    ],
)
def test_java_that_is_missing_or_too_old_is_told(desk, variables, message):
    for name, script in {
        "old": "echo 'openjdk version \"1.8.0_392\"' >&2",
        "broken": "exit 127",
    }.items():
        (desk / name / "bin").mkdir(parents=True)
        (desk / name / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
        (desk / name / "bin" / "java").chmod(0o755)
    if variables.get("JAVA_HOME") in ("old", "broken"):
        variables = {"JAVA_HOME": str(desk / variables["JAVA_HOME"])}
    elif "JAVA_HOME" not in variables:
        variables = variables | {"JAVA_HOME": ""}
    code, errors = detect(desk, "trips.csv", **variables)
    assert code == 1
    assert message in errors
    assert "the embedded engine gives the same detections" in errors


@pytest.mark.slow
def test_files_that_cannot_be_read_are_told_as_the_embedded_engine_tells_it(java, desk):
    pq.write_table(pa.table({"type": ["A"] * 1000, "time": range(1000)}), desk / "whole.parquet")
    whole = (desk / "whole.parquet").read_bytes()
    # The end, which says what is where, stays whole: only whoever reads the rows finds the damage.
    (desk / "holed.parquet").write_bytes(whole[:4] + b"?" * 400 + whole[404:])
    query = wb.compile(QUERY)
    with pytest.raises(DataError, match="cannot be read") as embedded:
        wb.detect(query, desk / "holed.parquet")
    code, errors = detect(desk, "holed.parquet")
    assert code == 1
    assert "holed.parquet: " in errors
    assert "holed.parquet: " in str(embedded.value)
    assert f"the whole report is in {desk / 'spark.log'}" in errors
    assert "at org.apache" in (desk / "spark.log").read_text()


@pytest.mark.slow
def test_a_full_disk_is_told(java, desk):
    rows = pa.table(
        {"type": ["Leave"] * 400_000, "time": range(400_000), "source": [str(n) for n in range(400_000)]}
    )
    pq.write_table(rows, desk / "many.parquet")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    code, errors = detect(desk, "many.parquet", before=limit)
    assert code == 1
    assert "file too large; make room there, or name places on another disk" in errors
    code, errors = whimbrel(
        "detect", "late.wbl", "--engine", "spark", "--events", "trips.csv", "--out", "/dev/full",
        "--format", "jsonl", "--quiet", cwd=desk,
    )  # fmt: skip
    assert (code, errors) == (1, "error: No space left on device\n")


@pytest.mark.slow
def test_a_stream_with_another_checkpoint_is_told(java, desk):
    def stream(source, *more):
        return whimbrel(
            "stream",
            "late.wbl",
            "--source",
            source,
            "--checkpoint",
            "state",
            "--once",
            "--quiet",
            *more,
            cwd=desk,
        )

    assert stream("replay:trips.csv", "--shards", 2) == (0, "")
    (desk / "other.csv").write_text(EVENTS + "Leave,9,c,4\n")
    code, errors = stream("replay:other.csv", "--shards", 2)
    assert code == 1
    assert "the checkpoint was made with another recording" in errors
    code, errors = stream("replay:trips.csv", "--shards", 3)
    assert code == 1
    assert errors.startswith(
        "error: state: the checkpoint is of a stream with 2 shards, and this one has 3; start it with"
    )
    assert "org.apache.spark" in (desk / "spark.log").read_text()
