"""What every reader of event files takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.io._streams import Progress
from whimbrel.model.batch import REJECTED_SCHEMA
from whimbrel.model.reading import Reading, carried, plain_name
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema, Type


@dataclass(frozen=True)
class ReadPlan:
    """What to read: the attributes wanted, those whose type is declared, and what the first pass found."""

    keep: frozenset[str] | None = None
    declared: frozenset[str] = frozenset()
    kinds: Mapping[str, Type | None] = field(default_factory=dict)
    batch_rows: int = 262_144
    reading: Reading = Reading()
    schemas: Mapping[str, EventSchema] = field(default_factory=dict)

    def wants(self, name: str) -> bool:
        """Tell whether the column is to be read at all."""
        return self.keep is None or name in self.keep or self.role(name) is not None or self._is_kept(name)

    def role(self, name: str) -> str | None:
        """Tell what of an event the column may be: one of the reserved names, or None for an attribute."""
        return self.reading.may_take(name, self.schemas)

    def is_text(self, name: str) -> bool:
        """Tell whether the column is text whatever it looks like; what stays an attribute may be more."""
        role = self.role(name)
        return role in _TEXTS and (role != "source" or name in RESERVED_COLUMNS)

    def is_declared(self, name: str) -> bool:
        """Tell whether the query says what the attribute in a column is."""
        return name in self.declared and self.role(name) is None

    def _is_kept(self, name: str) -> bool:
        """Tell whether the column is taken for an attribute to keep."""
        plain = plain_name(name)
        given = {**carried(self.schemas.values()), **self.reading.columns}
        renamed = any(column == name and new in (self.keep or ()) for new, column in given.items())
        return renamed or any(plain_name(kept) == plain for kept in self.keep or ())


_TEXTS = frozenset({"id", "type", "source", "geometry"})


@dataclass(frozen=True)
class ReadBatch:
    """A batch of rows as they stand in a file, and the lines around them that could not be read.

    Rows are numbered from 1 within their file, malformed ones included.
    """

    file: Path
    batch: pa.RecordBatch
    first_row: int
    numbers: npt.NDArray[np.int64] | None = None
    rejected: pa.RecordBatch | None = None

    def numbered(self, rejected: pa.RecordBatch, before: int = 0) -> pa.RecordBatch:
        """Replace positions in `batch` (what `normalise` gives by default) by row numbers in the file.

        `before` is how many rows were counted before those of `batch`, where `rejected` counts them, too.
        """
        positions = rejected.column("row").to_numpy(zero_copy_only=False) - before
        rows = positions + self.first_row if self.numbers is None else self.numbers[positions]
        return rejected.set_column(0, "row", pa.array(rows, pa.int64()))

    def slices(self, rows: int) -> Iterator[ReadBatch]:
        """Cut the piece into pieces of at most `rows` rows; what was rejected goes with the first."""
        if self.batch.num_rows <= rows:
            yield self
            return
        for start in range(0, self.batch.num_rows, rows):
            numbers = None if self.numbers is None else self.numbers[start : start + rows]
            first = self.first_row + start if numbers is None else int(numbers[0])
            yield ReadBatch(
                self.file,
                self.batch.slice(start, rows),
                first,
                numbers,
                self.rejected if start == 0 else None,
            )


class EventFile(Protocol):
    """One event file, whatever its format."""

    path: Path
    rows: int | None

    def unknown(self, plan: ReadPlan) -> list[str]:
        """Return the columns for which a first pass over the whole file is needed."""

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:
        """Return what columns hold, as far as the file can tell; makes the first pass if one is needed."""

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        """Yield what the file holds."""


def malformed(rows: Iterable[tuple[int, str, str]]) -> pa.RecordBatch:
    """Build the batch of rejected rows from (row, reason, text)."""
    ordered = sorted(rows)
    columns = [[row[field] for row in ordered] for field in range(3)]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind.type) for values, kind in zip(columns, REJECTED_SCHEMA, strict=True)],
        schema=REJECTED_SCHEMA,
    )
