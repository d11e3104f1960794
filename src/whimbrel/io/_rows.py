"""Rows as Python objects: for JSON that has to be read value by value, and for formats without columns."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.io import _kinds
from whimbrel.io._pieces import ReadBatch, ReadPlan, malformed
from whimbrel.io._streams import Progress, reading
from whimbrel.model.batch import COORDINATES_KEY, TIME_UNIT_KEY
from whimbrel.model.columns import arrow_type
from whimbrel.model.schema import Coordinates, Type

Row = dict[str, Any]


Rejected = tuple[str, str]
"""A reason, and the text it is about."""
Item = tuple[int, Row | Rejected]
"""A number within the file, and what was found there."""
_LARGEST_BATCH = 65_536


def kinds_of_rows(rows: Iterable[Row], plan: ReadPlan) -> dict[str, Type | None]:
    """Return what each wanted column holds over all rows."""
    kinds: dict[str, Type | None] = {}
    for row in rows:
        _kinds.join_all(kinds, {name: _kind(value) for name, value in row.items() if plan.wants(name)})
    return kinds


def _kind(value: Any) -> Type | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Type.BOOL
    if isinstance(value, int):
        return Type.INT if -(2**63) <= value < 2**63 else Type.STRING
    return Type.FLOAT if isinstance(value, float) else Type.STRING


def batch_of_rows(rows: Sequence[Row], kinds: Mapping[str, Type | None]) -> pa.RecordBatch:
    """Build a batch with the columns of `kinds`; objects and lists become their JSON text."""
    arrays = [_column([row.get(name) for row in rows], kind) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(kinds))


def _column(values: list[Any], kind: Type | None) -> pa.Array:
    try:
        return pa.array(values, arrow_type(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Some values are of a narrower kind than the column.
        return pa.array([_value(value, kind) for value in values], arrow_type(kind))


def _value(value: Any, kind: Type | None) -> Any:
    if value is None or kind in (Type.BOOL, Type.INT, Type.TIMESTAMP):
        return value
    if kind is Type.FLOAT:
        return float(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def row_from(text: bytes, what: str = "line") -> Row | str:
    """Parse one JSON object; return the reason as text if there is none. `what` names it there."""
    try:
        value = json.loads(text.decode())
        # Half of a surrogate pair can be written in JSON, but is no character and has no UTF-8 form.
        if b"\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return f"the {what} is not UTF-8 text"
    except UnicodeEncodeError:
        return f"the {what} holds half a character (a lone surrogate)"
    except (ValueError, RecursionError) as error:
        return f"the {what} is not JSON: {error}"
    return value if isinstance(value, dict) else f"the {what} is not a JSON object"


class RowFile(ABC):
    """An event file whose rows come one by one. What columns hold is told by a first pass over all of them.

    A reader that knows its columns overrides `unknown` and `kinds`.
    """

    rows: int | None = None
    coordinates: Coordinates | None = None
    """In which coordinates the format gives locations; None if it does not say."""
    time_unit: str | None = None
    """The unit of times that are numbers; None if the format does not say."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield the rows of the file, and what is no row."""

    def unknown(self, plan: ReadPlan) -> list[str]:  # noqa: ARG002 - the same for every format
        """Return a stand-in name: a first pass over the file is needed."""
        return ["any"]

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:
        """Find which columns there are and what they hold."""
        with reading(self.path):
            return kinds_of_rows((row for _, row in self.items(on_read) if isinstance(row, dict)), plan)

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        """Yield the rows, and what is no row, some thousands at a time."""
        size = min(plan.batch_rows, _LARGEST_BATCH)
        with reading(self.path):
            items = self.items(on_read)
            while chunk := list(islice(items, size)):
                yield self._piece(chunk, plan)

    def _piece(self, chunk: Iterable[Item], plan: ReadPlan) -> ReadBatch:
        numbers: list[int] = []
        rows: list[Row] = []
        bad: list[tuple[int, str, str]] = []
        for number, row in chunk:
            if isinstance(row, dict):
                numbers.append(number)
                rows.append(row)
            else:
                bad.append((number, *row))
        batch = batch_of_rows(rows, plan.kinds)
        said = {COORDINATES_KEY: self.coordinates, TIME_UNIT_KEY: self.time_unit}
        batch = batch.replace_schema_metadata({key: text.encode() for key, text in said.items() if text})
        first = numbers[0] if numbers else 1
        return ReadBatch(self.path, batch, first, np.array(numbers, "i8"), malformed(bad) if bad else None)


def known_kinds(columns: dict[str, Type], plan: ReadPlan) -> dict[str, Type | None]:
    """Return those of a format's columns that are wanted."""
    return {name: kind for name, kind in columns.items() if plan.wants(name)}
