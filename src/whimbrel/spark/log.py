"""The log of Spark: where its Java process writes, and where traces of errors go that users do not see."""

from __future__ import annotations

import logging
import os
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from pyspark.logger import PySparkLogger

from whimbrel.errors import DataError

PROPERTIES = Path(__file__).with_name("log4j2.properties")
NAME = "spark.log"
_RAISING = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""The loggers to which PySpark writes each error of a query once more, as JSON on standard error."""

_current: Path | None = None


def log_file() -> Path | None:
    """Name the file that Spark of this process logs to; None if `local_session` did not start it."""
    return _current


def open_log(given: str | PathLike[str] | None = None) -> Path | None:
    """Choose the file for the log, and make sure that it can be written.

    By default it is `whimbrel/spark.log` in the folder for the state of programs (`$XDG_STATE_HOME`, or
    `~/.local/state`), or else among the temporary files. None if nothing can be written anywhere.

    Raises
    ------
    DataError
        If a file is given that cannot be written.
    """
    global _current  # noqa: PLW0603 - a process has one Java process, and that has one log
    if given is not None:
        path = Path(given).absolute()
        if (error := _refusal(path)) is not None:
            raise DataError(f"{given}: the log cannot be written: {error.strerror}")
        _current = path
        return path
    _current = next((path for path in _usual() if _refusal(path, make=True) is None), None)
    return _current


def _usual() -> Iterator[Path]:
    home = os.environ.get("HOME")
    state = os.environ.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else None)
    if state and Path(state).is_absolute():
        yield Path(state) / "whimbrel" / NAME
    yield Path(tempfile.gettempdir()) / f"whimbrel-{os.getuid()}-{NAME}"


def _refusal(path: Path, *, make: bool = False) -> OSError | None:
    """Try to open a log; give the error if that does not work."""
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a"):
            return None
    except OSError as error:
        return error


def java_options(log: Path | None) -> str:
    """Write the options that make a Java process write its log there."""
    target = str(log or os.devnull)
    return f'"-Dlog4j2.configurationFile={PROPERTIES.as_uri()}" "-Dwhimbrel.log={target}"'


@contextmanager
def standard_error_to(log: Path | None) -> Iterator[None]:
    """Let a process that is started inside write what it writes to standard error to the log."""
    target = os.open(str(log or os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    real = os.dup(2)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        os.dup2(real, 2)
        os.close(real)


def send_python_log(log: Path | None) -> None:
    """Send what Spark's Python side logs there, too: every lost connection, and every error it raises."""
    target = logging.FileHandler(log, delay=True) if log else logging.NullHandler()
    loggers = [PySparkLogger.getLogger(name) for name in _RAISING]
    for logger in (logging.getLogger("py4j"), *loggers):
        logger.propagate = False
        logger.handlers = [target]


def record(error: BaseException, more: str = "") -> bool:
    """Write the whole report of an error to the log; tell whether there is one that took it."""
    if _current is None:
        return False
    lines = "".join(traceback.format_exception(error))
    try:
        with _current.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} ERROR whimbrel:\n{lines}{more}\n")
    except OSError:
        return False
    return True
