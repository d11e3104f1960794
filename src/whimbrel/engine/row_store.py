"""What the engine still remembers of a stream: rows by number, columns by the expression they hold.

A stream of plain events keeps its attributes as `Attribute(None, name)`; a stream of composites keeps
what later operators read of its parts, as `Attribute("a", "speed")` or `avg(a.speed)`. The *lineage* of a
row lists the atomic events it was made of, as row numbers of the stream of all atomic events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

import numpy as np

from whimbrel.engine.values import Column, Int64Array, concat, nothing
from whimbrel.graph.expressions import Attribute, Expr

SMALL = 16_384
"""Neighbouring chunks up to this many rows are merged, so that single events do not pile up as chunks."""
MERGED = 32
"""How many chunks are merged at once."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """For every row the atomic events below it, in the order of the parts."""

    offsets: Int64Array
    refs: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def oldest(self) -> Int64Array:
        """The first atomic event below each row: they are numbered in order."""
        return np.minimum.reduceat(self.refs, self.offsets[:-1])

    @staticmethod
    def single(refs: Int64Array) -> Lineage:
        """Make the lineage of rows that are atomic events themselves."""
        return Lineage(np.arange(len(refs) + 1, dtype=np.int64), refs)

    def take(self, rows: Int64Array) -> Lineage:
        """Choose the lineage of some rows."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        return Lineage(offsets_of(lengths), self.refs[ranges(self.offsets[rows], lengths)])

    @staticmethod
    def concat(parts: list[Lineage]) -> Lineage:
        """Put the rows of several lineages one after the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return Lineage(offsets_of(lengths), np.concatenate([part.refs for part in parts]))

    @staticmethod
    def zip(parts: list[Lineage]) -> Lineage:
        """Join several lineages row by row."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.stack([np.diff(part.offsets) for part in parts], axis=1)
        joined = Lineage.concat(parts)
        rows = len(lengths)
        # Row r of part p is row p * rows + r of the concatenation.
        order = (np.arange(len(parts))[None, :] * rows + np.arange(rows)[:, None]).reshape(-1)
        return Lineage(offsets_of(lengths.sum(axis=1)), joined.take(order).refs)


def offsets_of(lengths: Int64Array) -> Int64Array:
    """Turn the lengths of segments into where each begins and the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """List starts[0], starts[0] + 1, ... for `lengths[0]` numbers, then the same for the next."""
    total = int(lengths.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    offsets = offsets_of(lengths)[:-1]
    return np.repeat(starts - offsets, lengths) + np.arange(total)


def different(numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
    """List the different numbers in order, and for each number its place among them."""
    if not len(numbers):
        return numbers, numbers
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span > 16 * len(numbers) + 1024:
        found, inverse = np.unique(numbers, return_inverse=True)
        return found, inverse
    # They lie close together: mark them on a line instead of sorting.
    marked = np.zeros(span, np.bool_)
    marked[numbers - low] = True
    return np.nonzero(marked)[0] + low, (np.cumsum(marked) - 1)[numbers - low]


@dataclass(slots=True)
class Chunk:
    """Successive rows of a stream."""

    first: int
    start: Int64Array
    end: Int64Array
    columns: dict[Expr, Column]
    lineage: Lineage | None
    """None for atomic events: each is its own lineage."""
    last: int
    """The largest end of its rows."""

    def __len__(self) -> int:
        return len(self.end)

    def without_first(self, count: int) -> Chunk:
        """Copy all rows but the first so many."""
        rows = np.arange(count, len(self))
        return Chunk(
            self.first + count,
            self.start[rows],
            self.end[rows],
            {key: column.take(rows) for key, column in self.columns.items()},
            None if self.lineage is None else self.lineage.take(rows),
            self.last,
        )


@dataclass(slots=True)
class RowStore:
    """The remembered rows of one stream, numbered from 0 since the beginning."""

    chunks: list[Chunk] = field(default_factory=list)
    total: int = 0

    @property
    def first(self) -> int:
        """The number of the oldest row still here."""
        return self.chunks[0].first if self.chunks else self.total

    def __len__(self) -> int:
        return self.total - self.first

    def append(
        self,
        start: Int64Array,
        end: Int64Array,
        columns: Mapping[Expr, Column],
        lineage: Lineage | None,
    ) -> Int64Array:
        """Add rows; give their numbers."""
        rows = np.arange(self.total, self.total + len(end))
        if len(end):
            self.chunks.append(Chunk(self.total, start, end, dict(columns), lineage, int(end.max())))
            self.total += len(end)
            self._merge_small()
        return rows

    def _merge_small(self) -> None:
        """Merge the last chunks once there are several of about one size: a row is copied rarely then."""
        while len(self.chunks) >= MERGED:
            last = self.chunks[-MERGED:]
            if len(last[0]) > SMALL or len(last[0]) > MERGED * len(last[-1]):
                return
            self.chunks[-MERGED:] = [_merged(last)]

    def forget_before(self, time: int) -> bool:
        """Drop the oldest rows, which end before `time`, where that is worth it; tell whether it was."""
        keep = 0
        while keep < len(self.chunks) and self.chunks[keep].last < time:
            keep += 1
        del self.chunks[:keep]
        if not self.chunks:
            return keep > 0
        oldest = self.chunks[0]
        if oldest.end[(len(oldest) - 1) // 2] >= time:
            return keep > 0  # so does all that follows, which is more than half
        over = int(np.searchsorted(np.maximum.accumulate(oldest.end), time))
        if 2 * over < len(oldest):  # copying the others would cost more than it saves
            return keep > 0
        self.chunks[0] = oldest.without_first(over)
        return True

    def forget_all(self) -> None:
        """Drop all rows; new ones get the next numbers."""
        self.chunks.clear()

    def column(self, key: Expr, rows: Int64Array) -> Column:
        """Look up a column's values at some rows; nulls of unknown type if there is no such column."""
        pieces, places = [], []
        for chunk, local, at in self._located(rows):
            pieces.append(chunk.columns[key].take(local) if key in chunk.columns else nothing(len(local)))
            places.append(at)
        if not pieces:
            return nothing(len(rows))
        if len(pieces) == 1:
            return pieces[0]
        if isinstance(places[0], slice):
            return concat(pieces)
        here = np.concatenate([np.arange(len(rows))[at] for at in places])
        return concat(pieces).take(np.argsort(here, kind="stable"))

    def spans(self, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Look up the starts and ends of some rows."""
        start, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for chunk, local, at in self._located(rows):
            start[at], end[at] = chunk.start[local], chunk.end[local]
        return start, end

    def first_at(self, times: Int64Array) -> Int64Array:
        """Give the first row that ends at each of some times, or later, given rows in order of ends."""
        found = np.full(len(times), self.total, np.int64)
        owner = np.searchsorted(np.array([chunk.last for chunk in self.chunks], np.int64), times)
        for number in np.unique(owner[owner < len(self.chunks)]).tolist():
            chunk, at = self.chunks[number], owner == number
            found[at] = chunk.first + np.searchsorted(chunk.end, times[at])
        return found

    def lineage(self, rows: Int64Array) -> Lineage:
        """Look up the atomic events below some rows."""
        if not self.chunks or self.chunks[0].lineage is None:
            return Lineage.single(np.asarray(rows, np.int64))
        pieces, places = [], []
        for chunk, local, at in self._located(rows):
            assert chunk.lineage is not None
            pieces.append(chunk.lineage.take(local))
            places.append(np.arange(len(rows))[at])
        if not pieces:
            return Lineage(np.zeros(1, np.int64), np.zeros(0, np.int64))
        if len(pieces) == 1:
            return pieces[0]
        return Lineage.concat(pieces).take(np.argsort(np.concatenate(places), kind="stable"))

    def leading(self, rows: Int64Array) -> Int64Array:
        """Look up the first atomic event below each of some rows; -1 where there is none."""
        if not self.chunks or self.chunks[0].lineage is None:
            return np.asarray(rows, np.int64)
        found = np.full(len(rows), -1, np.int64)
        for chunk, local, at in self._located(rows):
            assert chunk.lineage is not None
            begin = chunk.lineage.offsets[local]
            filled = chunk.lineage.offsets[local + 1] > begin
            if filled.all():
                found[at] = chunk.lineage.refs[begin]
            elif filled.any():
                found[at] = np.where(filled, chunk.lineage.refs[np.where(filled, begin, 0)], -1)
        return found

    def origin(self, rows: Int64Array) -> tuple[RowStore, Int64Array]:
        """Give where the content of some rows lies: here."""
        return self, rows

    def names(self, part: str | None = None) -> list[str]:
        """Name the attributes that any remembered row has of its own, or of a part."""
        found: dict[str, None] = {}
        for chunk in self.chunks:
            for key in chunk.columns:
                if isinstance(key, Attribute) and key.part == part:
                    found.setdefault(key.name)
        return list(found)

    def has_any(self, keys: Set[Expr]) -> bool:
        """Tell whether any remembered row has one of some columns."""
        return any(keys & chunk.columns.keys() for chunk in self.chunks)

    def _located(self, rows: Int64Array) -> Iterable[tuple[Chunk, Int64Array, Int64Array | slice]]:
        """Part row numbers by chunk: the chunk, the places inside it, the places in `rows`."""
        if not len(rows):
            return
        if len(self.chunks) == 1 or int(rows.min()) >= self.chunks[-1].first:
            chunk = self.chunks[-1]
            yield chunk, rows - chunk.first, slice(None)
            return
        if bool((rows[1:] >= rows[:-1]).all()):
            yield from self._located_in_order(rows)
            return
        firsts = np.array([chunk.first for chunk in self.chunks])
        owner = np.searchsorted(firsts, rows, side="right") - 1
        for number in range(int(owner.min()), int(owner.max()) + 1):
            at = np.nonzero(owner == number)[0]
            if len(at):
                yield self.chunks[number], rows[at] - self.chunks[number].first, at

    def _located_in_order(self, rows: Int64Array) -> Iterable[tuple[Chunk, Int64Array, slice]]:
        begin = number = 0
        while begin < len(rows):  # once for each chunk that has any, of which there may be few
            number = bisect_right(self.chunks, int(rows[begin]), lo=number, key=_first_row) - 1
            chunk, stop = self.chunks[number], len(rows)
            if number + 1 < len(self.chunks):
                stop = int(rows.searchsorted(self.chunks[number + 1].first))
            yield chunk, rows[begin:stop] - chunk.first, slice(begin, stop)
            begin = stop


def _first_row(chunk: Chunk) -> int:
    return chunk.first


def _merged(chunks: list[Chunk]) -> Chunk:
    lineages = [chunk.lineage for chunk in chunks if chunk.lineage is not None]
    return Chunk(
        chunks[0].first,
        np.concatenate([chunk.start for chunk in chunks]),
        np.concatenate([chunk.end for chunk in chunks]),
        _merged_columns(chunks),
        Lineage.concat(lineages) if len(lineages) == len(chunks) else None,
        max(chunk.last for chunk in chunks),
    )


def _merged_columns(chunks: list[Chunk]) -> dict[Expr, Column]:
    keys = list(chunks[0].columns)
    if all(list(chunk.columns) == keys for chunk in chunks):
        columns = zip(*(chunk.columns.values() for chunk in chunks), strict=True)
        return {key: concat(list(pieces)) for key, pieces in zip(keys, columns, strict=True)}
    every = dict.fromkeys(key for chunk in chunks for key in chunk.columns)
    return {key: concat([chunk.columns.get(key) or nothing(len(chunk)) for chunk in chunks]) for key in every}
