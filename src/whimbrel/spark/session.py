"""A Spark session on this machine, for examples, tests and the command line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from whimbrel.errors import WhimbrelError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that stateful Python on Spark needs."""

LOOPBACK = "127.0.0.1"


def local_session(
    name: str = "whimbrel", *, cores: int | str = "*", settings: dict[str, str] | None = None
) -> SparkSession:
    """Give a Spark session that runs in this process, or the one that is active already.

    Workers use the Python that runs now, so they find Whimbrel where it was found here. Times are UTC, the
    log shows errors only, and nothing listens outside this machine.

    Parameters
    ----------
    cores
        How many cores to use; "*" for all.
    settings
        More Spark settings, which outweigh those made here.

    Raises
    ------
    WhimbrelError
        If there is no Java; the message says what to do.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if java() is None:
        raise WhimbrelError(
            "Spark needs Java 17 or newer, and none was found; install a JDK and set JAVA_HOME, "
            "or leave Spark out: the embedded engine gives the same detections"
        )
    # Read when the first session of a process starts; the setting spark.pyspark.python would come too late.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in (_settings() | (settings or {})).items():
        builder = builder.config(key, value)
    with _without_chatter():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


CHATTER = (
    "Using Spark's default log4j profile",
    "To adjust logging level use sc.setLogLevel",
    "Setting default log level to",
    "WARNING: Using incubator modules",
    "Streaming TransformWithStateInPandas Python worker",
    " WARN ",
)
"""What the lines hold that Spark writes to standard error before its log can be told to be silent."""


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Let the Java process that is started inside write to standard error only what matters."""
    reading, writing = os.pipe()
    real = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    # The process keeps the pipe for as long as it lives.
    Thread(target=_pass_on, args=(reading, real), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(real, 2)


def _pass_on(reading: int, target: int) -> None:
    was_chatter = False
    with open(reading, errors="replace") as lines:
        for line in lines:
            is_chatter = any(text in line for text in CHATTER) or (was_chatter and not line.strip())
            if not is_chatter:
                os.write(target, line.encode(errors="replace"))
            was_chatter = is_chatter


def _settings() -> dict[str, str]:
    parallel = str(2 * (os.cpu_count() or 1))
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": parallel,
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.metricsEnabled": "false",
    }


def java() -> str | None:
    """Give the path of the Java that Spark would use, or None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")
