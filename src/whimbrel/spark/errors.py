"""Errors of Spark in plain words: what went wrong, where, and what to do; traces go to the log.

Everything that Spark raises comes through here, whichever of its many exceptions it is: those of the classic
session and of Spark Connect, of streams, of Python workers and of the bridge to Java.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from whimbrel import errors as ours
from whimbrel.errors import DataError, SparkError, WhimbrelError
from whimbrel.spark.log import log_file, record

__all__ = ["plain_error", "plain_errors"]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise what Spark raises inside as a `WhimbrelError` in plain words, with the original as its cause.

    An error that Whimbrel raised in a worker comes out as that error. The whole report goes to the log of
    the session, if `local_session` started it.

    >>> from whimbrel.spark.errors import plain_errors
    >>> def show(frame):
    ...     with plain_errors():
    ...         return frame.collect()
    """
    try:
        yield
    except Exception as error:
        if not _is_of_spark(error):
            raise
        plain = plain_error(error)
        if record(error, _java_trace(error)):
            plain.add_note(f"the whole report is in {log_file()}")
        raise plain from error


def _is_of_spark(error: Exception) -> bool:
    """Tell whether Spark has raised this, itself or through the bridge to Java, which Connect lacks."""
    homes = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(homes & {"pyspark", "py4j"}) or isinstance(
        error, ConnectionRefusedError | ConnectionResetError
    )


def plain_error(error: BaseException) -> WhimbrelError:
    """Say in plain words what an exception of Spark means."""
    text = _whole_text(error)
    own = _own_error(text)
    if own is not None:
        return own
    for rule in _RULES:
        match = rule.pattern.search(text)
        if match is not None:
            return rule.say(match, text)
    return SparkError(f"Spark could not do it: {_first_line(text)}")


def _whole_text(error: BaseException) -> str:
    """Collect all that an exception and its causes say, the traces of Java included."""
    parts: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        parts.append(_text(at))
        at = at.__cause__
    return "\n".join(parts) + "\n" + _java_trace(error)


def _text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - to tell what it is, the exception asks a Java process that may be gone
        return type(error).__name__


def _java_trace(error: BaseException) -> str:
    return str(getattr(error, "_stackTrace", None) or "")


# -- errors of our own, from a worker -----------------------------------------------------------------------

_OWN = re.compile(
    r"whimbrel\.errors\.(\w+): (.*?)"
    r"(?=\n\s*\n|\n\s*at |\n\s*Traceback|\nJVM |\nCaused by|\norg\.|\njava\.|\n=== |\s*SQLSTATE: |\Z)",
    re.DOTALL,
)
_LAST_LINE = re.compile(
    r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning))(?:: (?P<what>.*))?$", re.MULTILINE
)
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def _own_error(text: str) -> WhimbrelError | None:
    matches = _OWN.findall(text)
    if not matches:
        return None
    name, message = matches[-1]
    kind = getattr(ours, name, WhimbrelError)
    message = message.strip()
    try:
        error = kind(message)
    except TypeError:  # one that is made from more than a message
        error = WhimbrelError(message)
    return error if isinstance(error, WhimbrelError) else WhimbrelError(message)


def _of_python(_found: re.Match[str], text: str) -> WhimbrelError:
    """Tell what a Python function raised on a worker: the last line of its traceback, and its place."""
    trace = text[text.index("Traceback (most recent call last)") :]
    raised = list(_LAST_LINE.finditer(trace))
    places = _PLACE.findall(trace[: raised[0].start()] if raised else trace)
    what = raised[0].group(0).strip() if raised else _first_line(trace)
    where = f" ({places[-1][0]}, line {places[-1][1]})" if places else ""
    return SparkError(f"a Python function failed on a worker: {what}{where}")


# -- what Spark itself says ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """What a text in an exception means."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str], str], WhimbrelError]


def _rule(pattern: str, say: str | Callable[[re.Match[str], str], WhimbrelError]) -> _Rule:
    if callable(say):
        return _Rule(re.compile(pattern), say)
    return _Rule(re.compile(pattern), lambda found, _text: SparkError(found.expand(say)))


def _full(found: re.Match[str], text: str) -> WhimbrelError:
    """Say which disk is full, as far as the text tells."""
    path = re.search(r"(/[^\s:'\"]+)[^\n]{0,40}(?:No space left|File too large|quota exceeded)", text)
    where = f"{path.group(1)}: " if path else ""
    return SparkError(
        f"{where}{found.group(0).lower()}; make room there, or name places on another disk: --out and "
        "--checkpoint for results and state, the environment variable SPARK_LOCAL_DIRS for what Spark sorts"
    )


def _missing(found: re.Match[str], _text: str) -> WhimbrelError:
    return DataError(f"{_local(found.group(1))}: no such file or folder")


def _no_parquet(found: re.Match[str], text: str) -> WhimbrelError:
    path = re.search(r"((?:file:|hdfs:|s3a?:)?/[^\s,;'\"]+?)(?:[.,;:]?\s|$)", text[found.start() :])
    where = f"{_local(path.group(1))}: " if path else ""
    return DataError(f"{where}the Parquet file is cut off or damaged; write it again, or leave it out")


def _local(path: str) -> str:
    return re.sub(r"^file:/+", "/", path).rstrip(".")


_MEMORY = (
    "a worker of Spark has ended, most likely for want of memory; use fewer cores or smaller files, or give "
    "Spark more memory (spark.driver.memory, spark.executor.memory)"
)
_CHECKPOINT = (
    "the checkpoint does not fit this stream: it was made with another query, source or number of shards, or "
    "is damaged; start with a new --checkpoint folder, or go back to what it was made with"
)

_RULES = (
    _rule(r"(?i)no space left on device|file too large|disk quota exceeded", _full),
    _rule(r"java\.lang\.OutOfMemoryError|Java heap space|GC overhead limit|MemoryError", _MEMORY),
    _rule(r"Python worker exited unexpectedly|PythonWorkerException|worker .{0,40}crashed", _MEMORY),
    _rule(r"Traceback \(most recent call last\)", _of_python),
    _rule(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+)", _missing),
    _rule(r"FileNotFoundException: (?:File )?(\S+)", _missing),
    _rule(
        r"is not a Parquet file|CANNOT_READ_FILE_FOOTER|Could not read footer|FAILED_READ_FILE"
        r"|ParquetDecodingException|Could not read or convert schema for file",
        _no_parquet,
    ),
    _rule(
        r"(?i)STATE_STORE_\w*(?:SCHEMA|KEY|VALUE)\w*|STREAM_\w*CHECKPOINT\w*|STATEFUL_\w*|STREAMING_STATE\w*"
        r"|malformed log file|incomplete log file|sources? in the checkpoint"
        r"|STDS_\w+|CANNOT_LOAD_STATE_STORE\w*|detected .{0,60}offset log|Failed to read log file"
        r"|UNSUPPORTED_LOG_VERSION|LOG_VERSION|INVALID_LOG_VERSION",
        _CHECKPOINT,
    ),
    _rule(
        r"(?:AccessControlException|Permission denied|Mkdirs failed to create|failed to create new .*?folder)"
        r"[^\n]*?(/[^\s()'\"]+)",
        r"\1: cannot be written or read; check who may do so, or name another place",
    ),
    _rule(
        r"(?:not a directory|ParentNotDirectoryException[^\n]*): (?:file:)?(/\S+)",
        r"\1: is a file, and a folder is needed there; name another place",
    ),
    _rule(
        r"JAVA_GATEWAY_EXITED|Java gateway process exited",
        "Spark's Java process could not be started; is JAVA_HOME a Java 17 or newer, and is memory left?",
    ),
    _rule(
        r"Py4JNetworkError|Connection refused|ConnectionRefusedError|Answer from Java side is empty"
        r"|Error while sending or receiving|An error occurred while trying to connect to the Java server",
        "Spark's Java process has ended, most likely for want of memory; give it more (spark.driver.memory), "
        "or use smaller files",
    ),
    _rule(
        r"StatusCode\.UNAVAILABLE|failed to connect to all addresses",
        "the Spark Connect server cannot be reached; is it running, and is its address right?",
    ),
)  # fmt: skip


_NOISE = re.compile(
    r"^(?:An error occurred while calling \S+|: )|Query \[.*?\] terminated with exception: "
    r"|\[[A-Z_0-9.]+\]\s*|\s*SQLSTATE: \w+"
)
_NAME = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+\w*(?:Exception|Error):?\s*")


def _first_line(text: str) -> str:
    """Find the line that says most: not the name of an exception, an error class or a code."""
    for line in text.splitlines():
        plain = _NAME.sub("", _NOISE.sub("", line)).strip(" :.;")
        if plain and not plain.startswith("at "):
            return plain if len(plain) <= 300 else plain[:297] + "..."
    return "it gave no reason"
