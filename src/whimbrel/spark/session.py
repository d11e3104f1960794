"""A Spark session on this machine, for examples, tests and the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from os import PathLike
from pathlib import Path

from pyspark.sql import SparkSession

from whimbrel.errors import SparkError
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.log import java_options, open_log, send_python_log, standard_error_to

__all__ = ["JAVA_OPTIONS", "LOOPBACK", "OLDEST_JAVA", "ROCKSDB", "SparkSession", "java", "local_session"]

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that stateful Python on Spark needs."""

LOOPBACK = "127.0.0.1"
OLDEST_JAVA = 17
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def local_session(
    name: str = "whimbrel",
    *,
    cores: int | str = "*",
    settings: dict[str, str] | None = None,
    log: str | PathLike[str] | None = None,
) -> SparkSession:
    """Start a Spark session that runs in this process, or the one that is active already.

    Workers use the Python that runs now, so they find Whimbrel where it was found here. Times are UTC, names
    of columns are taken as they are written, what Spark has to say goes to a log file and not to standard
    error, and nothing listens outside this machine.

    Parameters
    ----------
    cores
        How many cores to use; "*" for all.
    settings
        More Spark settings, which outweigh those made here.
    log
        The file for Spark's log; by default `~/.local/state/whimbrel/spark.log`. It is added to.

    Raises
    ------
    WhimbrelError
        If there is no Java, or it cannot be used; the message says what to do.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    # Read when the first session of a process starts; the setting spark.pyspark.python would come too late.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    written = open_log(log)
    for key, value in _together(_settings() | {JAVA_OPTIONS: java_options(written)}, settings or {}).items():
        builder = builder.config(key, value)
    send_python_log(written)
    with plain_errors(), standard_error_to(written):
        return builder.getOrCreate()


def _together(usual: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """Let given settings outweigh the usual ones; options for Java are added to ours."""
    joined = f"{usual[JAVA_OPTIONS]} {given.get(JAVA_OPTIONS, '')}".strip()
    return usual | given | {JAVA_OPTIONS: joined}


def _settings() -> dict[str, str]:
    parallel = str(2 * (os.cpu_count() or 1))
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.shuffle.partitions": parallel,
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.metricsEnabled": "false",
    }


def java() -> str | None:
    """Find the path of the Java that Spark would use, or None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        return str(program) if program.exists() else None
    return shutil.which("java")


def check_java() -> None:
    """Refuse to start Spark where it would find no Java that it can use."""
    otherwise = "or leave Spark out: the embedded engine gives the same detections"
    program, home = java(), os.environ.get("JAVA_HOME")
    if program is None and home:
        raise SparkError(
            f"JAVA_HOME is {home}, and there is no bin/java in it; set it to the folder of a JDK, Java "
            f"{OLDEST_JAVA} or newer, {otherwise}"
        )
    if program is None:
        raise SparkError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and none was found; install a JDK and set JAVA_HOME, "
            f"{otherwise}"
        )
    version = _version(program)
    if version is None:
        raise SparkError(f"{program} does not run as Java does; set JAVA_HOME to another JDK, {otherwise}")
    if version < OLDEST_JAVA:
        raise SparkError(
            f"{program} is Java {version}, and Spark needs {OLDEST_JAVA} or newer; set JAVA_HOME to a newer "
            f"JDK, {otherwise}"
        )


def _version(program: str) -> int | None:
    """Ask a Java for its version: 17 for 17.0.15, 8 for 1.8.0."""
    try:
        done = subprocess.run(  # noqa: S603 - the very program that Spark would start
            [program, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match and done.returncode == 0 else None
