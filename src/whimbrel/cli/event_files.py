"""Options that say how event files are read, and notes on how they were."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import click

from whimbrel.errors import DataError

FORMATS = ("csv", "jsonl", "json", "geojson", "geojsonl", "mfjson", "gpx", "nmea", "parquet")
"""Those of `whimbrel.io.files`, which is loaded when something is read."""

Body = TypeVar("Body", bound=Callable[..., Any])


def file_options(command: Body) -> Body:
    """Add what every command that reads event files takes; its `events` then say how each is read."""

    @functools.wraps(command)
    def with_paths(*args: Any, **given: Any) -> Any:
        from whimbrel.io.paths import event_paths

        how = {name: given.pop(name) for name in ("format", "delimiter", "encoding")}
        if given.get("events"):
            given["events"] = event_paths(given["events"], **how)
        elif any(how.values()):
            raise click.UsageError(
                "--events-format, --delimiter and --encoding are about files; give --events"
            )
        with nullcontext() if given.get("quiet") else notes():
            return command(*args, **given)

    for option in reversed(_OPTIONS):
        with_paths = option(with_paths)
    return with_paths  # type: ignore[return-value]


def _checked(
    check: Callable[[str], str],
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    def callback(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else check(value)
        except DataError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def _delimiter(value: str) -> str:
    from whimbrel.io._csv import known_delimiter

    return known_delimiter(value)


def _encoding(value: str) -> str:
    from whimbrel.io._streams import known_encoding

    return known_encoding(value)


_OPTIONS = (
    click.option(
        "--events-format", "format", type=click.Choice(FORMATS),
        help="The format of the event files, where neither their names nor their contents tell it.",
    ),
    click.option(
        "--delimiter", metavar="CHAR", callback=_checked(_delimiter),
        help="What parts the fields of CSV files, such as ';' or tab. By default the header tells.",
    ),
    click.option(
        "--encoding", metavar="NAME", callback=_checked(_encoding),
        help="The encoding of text files that are not UTF-8, such as latin-1.",
    ),
)  # fmt: skip


class _Notes(logging.Handler):
    """Prints what readers have to say to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"note: {record.getMessage()}", err=True)


@contextmanager
def notes() -> Iterator[None]:
    """Print the notes of readers: which list of a document was taken, and such."""
    logger, handler = logging.getLogger("whimbrel.io"), _Notes(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
