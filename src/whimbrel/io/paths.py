"""Paths of event files, and the formats these are in: as they say, or as their names or first bytes tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from whimbrel.errors import DataError
from whimbrel.io import _streams
from whimbrel.io._streams import open_bytes, open_text, reading

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".geojson": "geojson",
    ".geojsonl": "geojsonl",
    ".geojsons": "geojsonl",
    ".geojsonseq": "geojsonl",
    ".mfjson": "mfjson",
    ".mf.json": "mfjson",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".gpx": "gpx",
    ".nmea": "nmea",
    ".ais": "nmea",
}
FORMATS = ("csv", "jsonl", "json", "geojson", "geojsonl", "mfjson", "gpx", "nmea", "parquet")
"""Names for `format`; TSV is csv with tabs, and GeoParquet is parquet."""
_PEEK = 16_384
_SENTENCE = re.compile(rb"![A-Z]{2}VD[MO],\d,\d,|\$[A-Z]{2}RMC,")
_SEPARATORS = (b",", b";", b"\t", b"|")


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


def format_by_name(path: Path) -> str | None:
    """Tell the format from the ending of a name; None if it does not tell."""
    ending = _streams.known_ending(path.name, ENDINGS)
    known = ENDINGS.get(ending or "")
    return None if known == "parquet" and _streams.packing_by_name(path.name) else known


def format_of(path: Path, encoding: str | None = None) -> str:
    """Tell the format of a file by its name, or else by what it holds.

    Raises
    ------
    DataError
        If neither tells, or if it is a Parquet file in a packed one.
    """
    named_parquet = ENDINGS.get(_streams.known_ending(path.name, ENDINGS) or "") == "parquet"
    start = b"PAR1" if named_parquet else _start(path)
    if start == b"PAR1" and (_streams.packing_by_name(path.name) if named_parquet else _is_packed(path)):
        raise DataError(
            f"{path}: Parquet is packed inside and is not read out of a packed file; unpack it first"
        )
    known = format_by_name(path) or _format_by_content(path, start, encoding)
    if known is None:
        raise DataError(
            f"{path}: the ending does not tell a format; known: {endings()}; or say --events-format, "
            f"in Python format=..."
        )
    return known


def endings() -> str:
    """List the endings that are known."""
    packed = ", ".join(_streams.PACKED_ENDINGS)
    return f"{', '.join(ENDINGS)} (text files also with {packed})"


def _start(path: Path) -> bytes:
    with reading(path), open_bytes(path, lambda _: None) as stream:
        return stream.read(4)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) != b"PAR1"


def _format_by_content(path: Path, start: bytes, encoding: str | None) -> str | None:
    if start.startswith(b"PAR1"):
        return "parquet"
    try:
        with reading(path), open_text(path, lambda _: None, encoding=encoding) as stream:
            text = stream.read(_PEEK).lstrip()
    except DataError:
        return None
    if text.startswith(b"\x1e"):
        return "geojsonl"
    if text.startswith((b"{", b"[")):
        return "json"
    if text.startswith(b"<") and re.search(rb"<(\w+:)?gpx[\s>]", text):
        return "gpx"
    if any(_SENTENCE.search(line) for line in text.splitlines()[:20]):
        return "nmea"
    return "csv" if _is_table(text) else None


def _is_table(text: bytes) -> bool:
    """Tell whether the first lines have the same number of fields, more than one, under a header of names."""
    lines = [line for line in text.splitlines()[:6] if line.strip() and not line.startswith(b"#")]
    if len(text) == _PEEK:
        lines = lines[:-1]
    if len(lines) < 2 or not re.search(rb"[A-Za-z]", lines[0]):
        return False
    counts = [{line.count(separator) for line in lines} for separator in _SEPARATORS]
    return any(len(count) == 1 and count != {0} for count in counts)
