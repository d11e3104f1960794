"""A base for readers of files whose rows come one by one, because the file has no columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from whimbrel.io._pieces import ReadBatch, ReadPlan, malformed
from whimbrel.io._rows import Row, batch_of_rows, kinds_of_rows
from whimbrel.io._streams import Progress, reading
from whimbrel.model.batch import COORDINATES_KEY, TIME_UNIT_KEY
from whimbrel.model.schema import Coordinates, Type

Rejected = tuple[str, str]
"""A reason, and the text it is about."""
Item = tuple[int, Row | Rejected]
"""A number within the file, and what was found there."""

_LARGEST_BATCH = 65_536


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
        for number, found in chunk:
            if isinstance(found, dict):
                numbers.append(number)
                rows.append(found)
            else:
                bad.append((number, *found))
        batch = batch_of_rows(rows, plan.kinds)
        said = {COORDINATES_KEY: self.coordinates, TIME_UNIT_KEY: self.time_unit}
        batch = batch.replace_schema_metadata({key: text.encode() for key, text in said.items() if text})
        first = numbers[0] if numbers else 1
        return ReadBatch(self.path, batch, first, np.array(numbers, "i8"), malformed(bad) if bad else None)


def known_kinds(columns: dict[str, Type], plan: ReadPlan) -> dict[str, Type | None]:
    """Return those of a format's columns that are wanted."""
    return {name: kind for name, kind in columns.items() if plan.wants(name)}
