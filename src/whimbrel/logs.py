"""Logs: a logger for each module, quiet until someone listens, at the same level on Spark's workers."""

from __future__ import annotations

import logging
import sys
import time

ROOT = "whimbrel"
LEVELS = ("debug", "info", "warning", "error")
_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what is standard error when a line is written: it may be another one by then."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        formatter = logging.Formatter(_LINE, _TIME)
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def listen(level: int | str = "info") -> None:
    """Write what is logged at a level, and above, to standard error; calling it again changes the level.

    Programs that have logging of their own need not call it: the loggers are called as their modules are,
    `whimbrel.spark.processor` for one, and pass on what they are told to `logging`.
    """
    logger = logging.getLogger(ROOT)
    logger.setLevel(level if isinstance(level, int) else level.upper())
    if not any(isinstance(handler, _StandardError) for handler in logger.handlers):
        logger.addHandler(_StandardError())


def level() -> int:
    """Tell from which level on something is logged here, to send it along to workers."""
    return logging.getLogger(ROOT).getEffectiveLevel()


def follow(level: int) -> None:
    """Log at the level of the program that sent this process its work, if it wanted more than is usual.

    A worker's standard error goes to where the cluster keeps the logs of its executors.
    """
    if level < logging.WARNING and level < logging.getLogger(ROOT).getEffectiveLevel():
        listen(level)
