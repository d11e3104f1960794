"""Keep what could not be read: a side file of rejected rows with their reasons."""

from __future__ import annotations

import json
from collections import Counter
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.model.faults import REJECTED_SCHEMA, kind_of_reason

KEPT = 3
"""How many rejected rows are kept to be shown."""

KEPT_ROWS = 100_000
"""How many rejected rows are kept to be looked at; all are counted."""

REJECTED_ROWS = pa.schema([pa.field("file", pa.string()), *REJECTED_SCHEMA])
"""The columns of rejected rows: `row` counts from 1 in a file; from 0 where the events were no files."""


class RejectedWriter:
    """Append rejected rows to a file as JSON lines: {"file", "row", "reason", "event"}.

    The file is made when the first row is rejected, so a clean run leaves none. Without a path, rows are only
    counted. `counts` holds the number of rows by reason, without the values in it (what follows the colon),
    `first` the first few rows as they are written; `table` gives those that were kept.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(fspath(path))
        self.counts: Counter[str] = Counter()
        self.first: list[dict[str, Any]] = []
        self._file: IO[str] | None = None
        self._kept: list[pa.RecordBatch] = []
        self._room = KEPT_ROWS

    @property
    def total(self) -> int:
        """How many rows were rejected."""
        return self.counts.total()

    def write(self, rejected: pa.RecordBatch, file: str | PathLike[str] = "") -> None:
        """Add rows with the columns `row`, `reason` and `event`, as `normalise` and the readers give them."""
        if rejected.num_rows == 0:
            return
        self._keep(rejected, fspath(file))
        lines = []
        for entry in rejected.to_pylist():
            self.counts[kind_of_reason(entry["reason"])] += 1
            named = {"file": fspath(file), **entry}
            if len(self.first) < KEPT:
                self.first.append(named)
            lines.append(json.dumps(named, ensure_ascii=False))
        if self.path is not None:
            self._opened(self.path).write("\n".join(lines) + "\n")

    def _keep(self, rejected: pa.RecordBatch, file: str) -> None:
        kept = rejected.slice(0, self._room).select(REJECTED_SCHEMA.names)
        self._room -= kept.num_rows
        if kept.num_rows:
            files = pa.repeat(pa.scalar(file, pa.string()), kept.num_rows)
            self._kept.append(pa.RecordBatch.from_arrays([files, *kept.columns], schema=REJECTED_ROWS))

    def table(self) -> pa.Table:
        """List the rows that were rejected first, with the columns `file`, `row`, `reason` and `event`."""
        return pa.Table.from_batches(self._kept, REJECTED_ROWS)

    def _opened(self, path: Path) -> IO[str]:
        if self._file is None:
            try:
                self._file = path.open("a", encoding="utf-8")
            except OSError as error:
                raise DataError(f"{path}: rejected events cannot be written: {error.strerror}") from error
        return self._file

    def close(self) -> None:
        """Close the file, if there is one; a later row opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
