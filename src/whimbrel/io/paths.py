"""Paths of event files along with how they are to be read, where neither name nor content tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath


@dataclass(frozen=True)
class EventPath(PathLike[str]):
    """A file, a folder or a pattern, and how what it stands for is read.

    Whatever takes paths of events takes it: `wb.detect(query, EventPath("log.txt", format="nmea"))`.

    Parameters
    ----------
    format
        One of `whimbrel.io.files.FORMATS`; by default the ending tells, or the content.
    delimiter
        What stands between the fields of a CSV file; by default its first line tells.
    encoding
        The encoding of text; by default the byte order mark tells, and without one it is UTF-8.
    """

    path: str
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path


def event_path(
    item: str | PathLike[str],
    format: str | None = None,  # noqa: A002 - the name that users of every reader know
    delimiter: str | None = None,
    encoding: str | None = None,
) -> EventPath:
    """Make an `EventPath`; what the item says itself outweighs the other arguments."""
    if isinstance(item, EventPath):
        return EventPath(
            item.path, item.format or format, item.delimiter or delimiter, item.encoding or encoding
        )
    return EventPath(fspath(item), format, delimiter, encoding)


def event_paths(
    items: Iterable[str],
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[str | EventPath, ...]:
    """Say of several paths how they are read; they stay plain texts if nothing is said."""
    if not (format or delimiter or encoding):
        return tuple(items)
    return tuple(event_path(item, format, delimiter, encoding) for item in items)
