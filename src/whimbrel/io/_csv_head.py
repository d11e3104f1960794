"""Find out how a CSV file is written from its first lines: where the header begins, what parts the fields."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from whimbrel.errors import DataError

DELIMITERS = (",", ";", "\t", "|")
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
"""Words for delimiters that are hard to type in a shell."""

_PEEK = 1 << 16
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BEGINS_LIKE_DATA = re.compile(r'^"?[-+]?\d')


@dataclass(frozen=True)
class Head:
    """How a CSV file is written.

    Parameters
    ----------
    skip
        How many bytes stand before the header.
    delimiter
        What stands between two fields.
    """

    skip: int
    delimiter: str

    @property
    def has_decimal_commas(self) -> bool:
        """Whether numbers may be written 12,5, as they are where fields are parted by semicolons."""
        return self.delimiter == ";"


def known_delimiter(given: str) -> str:
    r"""Return the character that a delimiter is given as; words stand for what is hard to type.

    Raises
    ------
    DataError
        If it is not one character.

    Examples
    --------
    >>> known_delimiter("tab") == "\t"
    True
    """
    found = NAMES.get(given.lower(), given)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise DataError(
            f"{given!r} cannot stand between fields; give one character, or one of: {', '.join(NAMES)}"
        )
    return found


def head_of(stream: io.BufferedReader, delimiter: str | None, usual: str) -> Head:
    """Look at the beginning of a file without moving on.

    Lines that begin with # stand before the header and are passed over. But where the last of them has as
    many fields as the line below, and that one is data, it is the header itself. Excel's `sep=;` is obeyed.
    """
    text = stream.peek(_PEEK)[:_PEEK].decode(errors="replace")
    lines = text.splitlines(keepends=True)
    place = 0
    while place < len(lines) and not lines[place].strip():
        place += 1
    if place < len(lines) and (said := re.fullmatch(r"sep=(.)\r?\n", lines[place], re.IGNORECASE)):
        delimiter, place = delimiter or said[1], place + 1
    comments = place
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    skip = _size(lines[:comments])
    header = lines[comments] if comments < len(lines) else ""
    if comments > place and _is_header(lines[comments - 1], header, delimiter, usual):
        last = lines[comments - 1]
        header = last.lstrip("# ")
        skip = _size(lines[: comments - 1]) + _size([last]) - _size([header])
    return Head(skip, delimiter or _parted_by(header, usual))


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) for line in lines)


def _is_header(comment: str, below: str, delimiter: str | None, usual: str) -> bool:
    parts = delimiter or _parted_by(comment, usual)
    fields = _fields(below, parts)
    is_data = any(_BEGINS_LIKE_DATA.match(field) for field in fields)
    return is_data and 1 < len(fields) == len(_fields(comment, parts))


def _fields(line: str, delimiter: str) -> list[str]:
    return _QUOTED.sub("0", line.strip("\r\n")).split(delimiter)


def _parted_by(header: str, usual: str) -> str:
    """Return the delimiter that the header has most of, the usual one if it has none."""
    bare = _QUOTED.sub("", header)
    counts = {each: bare.count(each) for each in DELIMITERS}
    most = max(counts.values())
    return usual if most == counts[usual] else next(each for each in DELIMITERS if counts[each] == most)
