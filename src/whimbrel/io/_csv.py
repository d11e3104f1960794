"""Read events from CSV and TSV files, block by block."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from whimbrel.errors import DataError
from whimbrel.io import _kinds, _streams
from whimbrel.io._pieces import ReadBatch, ReadPlan, malformed
from whimbrel.io._streams import Progress, is_blank, open_text, reading
from whimbrel.model.columns import arrow_type
from whimbrel.model.faults import rows_as_json
from whimbrel.model.schema import Type

_BLOCK = 8 * 2**20
_TAIL = b"\n\r\n\n\n\r\n\r\n\r\n\n\n\r\n\n"
"""Blank lines, which mean nothing, after the end of the file: a text that ends in them was never closed."""


DELIMITERS = (",", ";", "\t", "|")
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
"""Words for delimiters that are hard to type in a shell."""
_PEEK = 1 << 16
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BEGINS_LIKE_DATA = re.compile(r'^"?[-+]?\d')


class DecimalCommas:
    """Finds the columns whose values are all numbers, with a comma in some of them, and reads them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._kinds: dict[str, Type | None] = dict.fromkeys(names)
        self._names: frozenset[str] = frozenset()

    def see(self, batch: pa.RecordBatch) -> None:
        """Take more values into account."""
        for name, kind in self._kinds.items():
            if kind is not Type.STRING:
                self._kinds[name] = _kinds.kind_of_texts(_with_points(batch.column(name)), kind)

    def settle(self, found: Mapping[str, Type | None], plan: ReadPlan) -> dict[str, Type | None]:
        """Return what columns hold, given what they hold if a comma is a comma.

        A declared column is left to its schema, unless its numbers have commas.
        """
        self._names = frozenset(
            name
            for name, kind in found.items()
            if kind is Type.STRING and self._kinds[name] in (Type.FLOAT, Type.INT)
        )
        return {
            name: self._kinds[name] if name in self._names else kind
            for name, kind in found.items()
            if name in self._names or name not in plan.declared
        }

    def plain(self, name: str, texts: pa.Array) -> pa.Array:
        """Return the values of a column with decimal points."""
        return _with_points(texts) if name in self._names else texts


def _with_points(texts: pa.Array) -> pa.Array:
    # Only one comma makes a number: 1,234,567 and 1.234,5 stay what they are, which is text.
    return pc.if_else(
        pc.match_substring_regex(texts, r"^[+-]?\d+,\d+$"), pc.replace_substring(texts, ",", "."), texts
    )


class CsvFile:
    """A CSV or TSV file with a header line. Empty fields are missing values; `""` is an empty text.

    Where semicolons part the fields, numbers may have a decimal comma. Then a column is numbers if every
    value of it is one, and what the query declares is found out, too.
    """

    rows: int | None = None
    _has_commas = False
    _commas = DecimalCommas(())

    def __init__(self, path: Path, delimiter: str | None = None, encoding: str | None = None) -> None:
        self.path = path
        self._delimiter = None if delimiter is None else known_delimiter(delimiter)
        self._usual = "\t" if _streams.unpacked_name(path.name).endswith(".tsv") else ","
        self._encoding = encoding
        self._header: list[str] | None = None

    def _text(self, on_read: Progress, tail: bytes = b"") -> io.BufferedReader:
        return open_text(self.path, on_read, strict=True, tail=tail, encoding=self._encoding)

    def columns(self) -> list[str]:
        """Return the names in the header line."""
        if self._header is None:
            with reading(self.path), self._text(_ignore) as stream:
                if is_blank(stream):
                    raise DataError(f"{self.path}: the file is empty; its first line must name the columns")
                self._header = self._open(stream, [], None).schema.names
        return self._header

    def unknown(self, plan: ReadPlan) -> list[str]:
        """Return the columns whose kind only the first pass can tell."""
        return [
            name
            for name in self.columns()
            if not plan.is_text(name)
            and plan.wants(name)
            and (not plan.is_declared(name) or self._has_commas)
        ]

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:
        """Make the first pass: find what the columns hold that nothing is known about."""
        kinds: dict[str, Type | None] = dict.fromkeys(self.unknown(plan))
        if not kinds:
            return kinds
        commas = self._commas = DecimalCommas(kinds)
        with reading(self.path), self._text(on_read, _TAIL) as stream:
            for batch, _ in _split_off_unclosed(self._open(stream, self._with_last(list(kinds)), [])):
                kinds = {name: _kinds.kind_of_texts(batch.column(name), kind) for name, kind in kinds.items()}
                if self._has_commas:
                    commas.see(batch)
        return commas.settle(kinds, plan) if self._has_commas else kinds

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        """Yield the rows, and the lines that are no rows."""
        names = [name for name in self.columns() if plan.wants(name)]
        skipped: list[pa.csv.InvalidRow] = []
        with reading(self.path), self._text(on_read, _TAIL) as stream:
            reader = self._open(stream, self._with_last(names), skipped)
            next_row = 1
            for batch, unclosed in _split_off_unclosed(reader):
                bad = _take_up_to(skipped, next_row + batch.num_rows)
                yield self._piece(batch.select(list(range(len(names)))), plan.kinds, bad, next_row)
                next_row += batch.num_rows + len(bad)
                if unclosed:
                    reason = "a quote is not closed: all that follows it was read as one text"
                    yield ReadBatch(
                        self.path,
                        _no_rows(names, plan.kinds),
                        next_row,
                        rejected=malformed([(next_row, reason, unclosed)]),
                    )
            if skipped:
                yield ReadBatch(self.path, _no_rows(names, plan.kinds), next_row, rejected=_rejected(skipped))

    def _with_last(self, names: list[str]) -> list[str]:
        """Add the last column of the file, which shows whether the last quote was closed."""
        last = self.columns()[-1]
        return names if last in names else [*names, last]

    def _piece(
        self,
        batch: pa.RecordBatch,
        kinds: Mapping[str, Type | None],
        bad: list[pa.csv.InvalidRow],
        first: int,
    ) -> ReadBatch:
        arrays = [
            _kinds.read_texts(self._commas.plain(name, column), kinds[name]) if name in kinds else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        typed = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
        if not bad:
            return ReadBatch(self.path, typed, first)
        numbers = np.setdiff1d(
            np.arange(first, first + batch.num_rows + len(bad)), [row.number - 1 for row in bad]
        )
        return ReadBatch(self.path, typed, first, numbers=numbers, rejected=_rejected(bad))

    def _open(
        self,
        stream: io.BufferedReader,
        names: list[str],
        skipped: list[pa.csv.InvalidRow] | None,
    ) -> pa.csv.CSVStreamingReader:
        head = head_of(stream, self._delimiter, self._usual)
        self._has_commas = head.has_decimal_commas
        stream.read(head.skip)

        def skip(row: pa.csv.InvalidRow) -> str:
            if skipped is not None:
                skipped.append(row)
            return "skip"

        return pa.csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            # Only the single-threaded reader tells the numbers of malformed rows.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(
                delimiter=head.delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=pa.csv.ConvertOptions(
                # The stream has checked it, also in malformed rows, where the reader would not.
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _ignore(count: int) -> None:
    """Take no notice: a look at the header is not progress."""


def _split_off_unclosed(reader: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Take away the last row if its last text runs on to the end of the file; return it as text."""
    for batch in reader:
        last = batch.column(-1)[-1].as_py() if batch.num_rows and batch.num_columns else None
        if last is not None and last.endswith(_TAIL.decode()):
            (text,) = rows_as_json(batch.slice(batch.num_rows - 1))
            yield batch.slice(0, batch.num_rows - 1), text
        else:
            yield batch, None


def _take_up_to(skipped: list[pa.csv.InvalidRow], end: int) -> list[pa.csv.InvalidRow]:
    """Take away the malformed rows that stand before row `end`, which each of them moves on by one.

    The reader looks ahead: some of those it has skipped stand behind the batch that it has given.
    """
    taken = 0
    while taken < len(skipped) and skipped[taken].number - 1 < end + taken:
        taken += 1
    before, skipped[:] = skipped[:taken], skipped[taken:]
    return before


def _no_rows(names: list[str], kinds: Mapping[str, Type | None]) -> pa.RecordBatch:
    columns = [pa.nulls(0, arrow_type(kinds.get(name))) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _rejected(bad: list[pa.csv.InvalidRow]) -> pa.RecordBatch:
    return malformed(
        [
            (
                row.number - 1,
                f"the line has a wrong number of fields: {row.actual_columns}, not {row.expected_columns}",
                row.text,
            )
            for row in bad
        ]
    )


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
    delimiter = NAMES.get(given.lower(), given)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise DataError(
            f"{given!r} cannot stand between fields; give one character, or one of: {', '.join(NAMES)}"
        )
    return delimiter


def head_of(stream: io.BufferedReader, delimiter: str | None, usual: str) -> Head:
    """Look at the beginning of a file without moving on.

    Lines that begin with # stand before the header and are passed over. But where the last of them has as
    many fields as the line below, and that one is data, it is the header itself. Excel's `sep=;` is obeyed.
    """
    text = stream.peek(_PEEK)[:_PEEK].decode(errors="replace")
    lines = text.splitlines(keepends=True)
    line = 0
    while line < len(lines) and not lines[line].strip():
        line += 1
    if line < len(lines) and (said := re.fullmatch(r"sep=(.)\r?\n", lines[line], re.IGNORECASE)):
        delimiter, line = delimiter or said[1], line + 1
    comments = line
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    skip = _size(lines[:comments])
    header = lines[comments] if comments < len(lines) else ""
    if comments > line and _is_header(lines[comments - 1], header, delimiter, usual):
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
    counts = {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}
    most = max(counts.values())
    return (
        usual
        if most == counts[usual]
        else next(delimiter for delimiter in DELIMITERS if counts[delimiter] == most)
    )
