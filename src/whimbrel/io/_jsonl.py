"""Read events from JSON lines, in blocks of whole lines.

Arrow parses a block at once. Only where it cannot (a malformed line, a column of mixed types) is the block
halved, until a few lines are left that are gone through one by one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from whimbrel.errors import DataError
from whimbrel.io import _kinds
from whimbrel.io._pieces import ReadBatch, ReadPlan, malformed
from whimbrel.io._rows import Row, batch_of_rows, kinds_of_rows, row_from
from whimbrel.io._streams import Progress, is_blank, line_blocks, open_text, reading
from whimbrel.model.columns import arrow_type, type_of
from whimbrel.model.schema import Type

_BLOCK = 8 * 2**20
_FEW_LINES = 16
_DEEPEST = 200


class JsonLinesFile:
    """A file with one JSON object a line. Objects and lists inside it become their JSON text."""

    rows: int | None = None

    what = "line"
    """What a row is called in messages."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        self.encoding = encoding
        with reading(path), open_text(path, lambda _: None, encoding=encoding) as stream:
            if is_blank(stream):
                raise DataError("the file is empty; each line must be a JSON object")

    def open(self, on_read: Progress) -> io.BufferedReader:
        """Open the lines from the first one on."""
        return open_text(self.path, on_read, encoding=self.encoding)

    def unknown(self, plan: ReadPlan) -> list[str]:  # noqa: ARG002 - the same for every format
        """Return a stand-in name: JSON lines have no header, so a first pass is always needed."""
        return ["any"]

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:
        """Make the first pass: find which columns there are and what they hold."""
        kinds: dict[str, Type | None] = {}
        with reading(self.path), self.open(on_read) as stream:
            for block in line_blocks(stream, _BLOCK):
                for part in _kinds_of_block(block, plan):
                    _kinds.join_all(kinds, part)
        return kinds

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        """Yield the rows, and the lines that are no rows. A row's number is that of its line."""
        first = 1
        with reading(self.path), self.open(on_read) as stream:
            for block in line_blocks(stream, _BLOCK):
                yield self._read(block, first, plan.kinds)
                first += _lines_in(block)

    def _read(self, block: bytes, first: int, kinds: Mapping[str, Type | None]) -> ReadBatch:
        whole = _parse(block, kinds)
        if whole is not None:
            return ReadBatch(self.path, whole, first)
        batches: list[pa.RecordBatch] = []
        numbers: list[int] = []
        bad: list[tuple[int, str, str]] = []
        for part, start, parsed in _parts(block, first):
            batch = None if parsed is None else _parse(part, kinds)
            if batch is None:
                good, skipped = _rows_of(part, start, self.what)
                batch = batch_of_rows([row for _, row in good], kinds)
                numbers += [number for number, _ in good]
                bad += skipped
            else:
                numbers += range(start, start + batch.num_rows)
            batches.append(batch)
        rejected = malformed(bad) if bad else None
        return ReadBatch(self.path, pa.concat_batches(batches), first, np.array(numbers, "i8"), rejected)


def _parts(block: bytes, first: int) -> Iterator[tuple[bytes, int, pa.RecordBatch | None]]:
    """Cut a block into parts that Arrow can parse, and parts of a few lines that it cannot."""
    batch = _parse(block, None)
    cut = _middle(block) if batch is None and _lines_in(block) > _FEW_LINES else 0
    if cut == 0:
        yield block, first, batch
        return
    yield from _parts(block[:cut], first)
    yield from _parts(block[cut:], first + _lines_in(block[:cut]))


def _middle(block: bytes) -> int:
    """Return the start of a line near the middle of the block, or 0 if there is none but the first."""
    cut = block.find(b"\n", len(block) // 2) + 1
    return cut if 0 < cut < len(block) else block.rfind(b"\n", 0, len(block) // 2) + 1


def _lines_in(block: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(block, "u1") == ord("\n")))


def _parse(block: bytes, kinds: Mapping[str, Type | None] | None) -> pa.RecordBatch | None:
    """Parse a block with Arrow, by the kinds given or by its own guess; None if that cannot be relied on."""
    if not _is_plain(block):
        return None
    options = pa.json.ParseOptions()
    if kinds is not None:
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()])
        options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = pa.json.read_json(
            pa.BufferReader(block), pa.json.ReadOptions(block_size=len(block) + 1), options
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    # Arrow skips blank lines and takes two objects on one line; row numbers need one row for each line.
    if table.num_rows != _lines_in(block):
        return None
    table = table.select(list(kinds)) if kinds is not None else table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _is_plain(block: bytes) -> bool:
    """Tell whether the block is UTF-8 and not so deeply nested that Arrow's parser would run out of stack."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    data = np.frombuffer(block, "u1")
    is_open = (data == ord("{")) | (data == ord("["))
    if np.count_nonzero(is_open) - _lines_in(block) < _DEEPEST:
        return True
    opens = np.cumsum(is_open, dtype="i8")
    at_ends = opens[np.flatnonzero(data == ord("\n"))]
    return bool(np.diff(at_ends, prepend=0, append=opens[-1]).max() < _DEEPEST)


def _kinds_of_block(block: bytes, plan: ReadPlan) -> Iterator[dict[str, Type | None]]:
    for part, start, batch in _parts(block, 1):
        if batch is None or _has_huge_numbers(batch):
            yield kinds_of_rows([row for _, row in _rows_of(part, start)[0]], plan)
        else:
            yield {field.name: _kind(field.type) for field in batch.schema if plan.wants(field.name)}


def _has_huge_numbers(batch: pa.RecordBatch) -> bool:
    # Arrow reads a whole number of more than 64 bits as a float and says nothing.
    floats = [column for column in batch.columns if pa.types.is_float64(column.type)]
    return any(pc.any(pc.greater_equal(pc.abs(column), 2.0**63)).as_py() for column in floats)


def _kind(arrow: pa.DataType) -> Type | None:
    # Text that looks like a time is text: only a declared attribute is a timestamp.
    kind = type_of(arrow)
    return kind if kind in (None, Type.BOOL, Type.INT, Type.FLOAT) else Type.STRING


def _rows_of(
    block: bytes, first: int, what: str = "line"
) -> tuple[list[tuple[int, Row]], list[tuple[int, str, str]]]:
    """Read a block line by line into numbered rows and numbered complaints; blank lines are neither."""
    good: list[tuple[int, Row]] = []
    bad: list[tuple[int, str, str]] = []
    for number, line in enumerate(block.split(b"\n"), first):
        if line.strip():
            row = row_from(line, what)
            if isinstance(row, str):
                bad.append((number, row, line.decode(errors="replace").strip()))
            else:
                good.append((number, row))
    return good, bad
