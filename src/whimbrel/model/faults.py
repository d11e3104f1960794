"""Why rows of a batch cannot be events, and what becomes of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Reason = str | Callable[[int], str | None]

REJECTED_SCHEMA = pa.schema([("row", pa.int64()), ("reason", pa.string()), ("event", pa.string())])
"""`row` is the number of the row in the input, `event` the whole row as JSON text."""


def kind_of_reason(reason: str) -> str:
    """Shorten a reason to what it is without the values in it, which follow a colon."""
    return reason.split(": ", maxsplit=1)[0]


def kinds_of_reasons(reasons: Mapping[str, int]) -> Counter[str]:
    """Count reasons without the values in them, of which there may be any number."""
    kinds: Counter[str] = Counter()
    for reason, count in reasons.items():
        kinds[kind_of_reason(reason)] += count
    return kinds


class Faults:
    """Collect a reason for each bad row of a batch; the first reason found wins."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._reasons: dict[int, str] = {}

    def add(self, bad: Mask, reason: Reason) -> None:
        """Note `reason` for every row of `bad`; a function is asked for each row, and None means no fault."""
        for row in np.flatnonzero(bad).tolist():
            if row not in self._reasons:
                text = reason if isinstance(reason, str) else reason(row)
                if text is not None:
                    self._reasons[row] = text

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def bad(self) -> Mask:
        """Return which rows have a fault."""
        mask = np.zeros(self.rows, dtype=bool)
        mask[list(self._reasons)] = True
        return mask

    def good(self) -> pa.Array:
        """Return which rows have no fault, as an Arrow filter."""
        return pa.array(~self.bad())

    def reason(self, row: int) -> str:
        """Return the reason noted for a bad row."""
        return self._reasons[row]

    def rejected(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the bad rows of `batch` with their reasons, in row order."""
        if not self._reasons:
            return no_rejects()
        rows = sorted(self._reasons)
        texts = rows_as_json(batch.take(pa.array(rows)))
        return pa.RecordBatch.from_arrays(
            [
                pa.array([first_row + row for row in rows], pa.int64()),
                pa.array([self._reasons[row] for row in rows], pa.string()),
                pa.array(texts, pa.string()),
            ],
            schema=REJECTED_SCHEMA,
        )


@cache
def no_rejects() -> pa.RecordBatch:
    """Return an empty batch of rejected rows."""
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, field.type) for field in REJECTED_SCHEMA], schema=REJECTED_SCHEMA
    )


def rows_as_json(batch: pa.RecordBatch) -> list[str]:
    """Write each row as one JSON object; what JSON has no form for becomes text."""
    columns = {name: _plain(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    return [
        json.dumps({name: values[row] for name, values in columns.items()}, ensure_ascii=False)
        for row in range(batch.num_rows)
    ]


def _plain(column: pa.Array) -> list[Any]:
    # Times go through Arrow's own text form: Python's datetime stops at the year 9999, and a nanosecond
    # column would import pandas.
    if pa.types.is_temporal(column.type):
        try:
            column = pc.cast(column, pa.string())
        except pa.ArrowException:
            column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return [_json_value(value) for value in column.to_pylist()]


def _json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    return str(value)
