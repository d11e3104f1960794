"""Rows by place and time: which of them lie in areas, for thousands of areas at once.

Rows are kept in chunks, one after the other in time. New ones make chunks of their own, which are merged as
soon as there are two of about one size: so single rows are cheap to add, each is moved a few times, and there
are never many chunks (log-structured merging [1]_). A chunk is parted into columns, and these into cells, by
the quantiles of a sample of its own rows: cells hold about equally many, however rows crowd [2]_. They are
small, `IN_CELL` rows: of a circle with a hundred times as many, most lie in cells that are wholly inside.

References
----------
.. [1] O'Neil, Cheng, Gawlick, O'Neil: "The Log-Structured Merge-Tree", Acta Informatica 33(4), 1996.
.. [2] Muralikrishna, DeWitt: "Equi-Depth Histograms for Estimating Selectivity Factors for Multi-Dimensional
   Queries", SIGMOD 1988.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.kernels import place_index as k
from whimbrel.engine.mobile.areas import AreaSet, plain
from whimbrel.engine.row_store import offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME

IN_CELL = 32
"""About so many rows are in a cell."""
LARGEST = 1 << 20
"""Chunks are merged up to this many rows; whole ones are let go of."""
_SAMPLED = 8
"""So many rows of each cell are looked at to find the borders of cells."""


_SAVED = ("rows", "times", "x", "y")
_SPREAD = (5, 95)
"""Between these percentiles the extent of rows is measured: a few far ones do not count."""


class Growing:
    """Arrays of one length that grow at their end and shrink at both."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = list(arrays)
        self.begin = self.end = 0

    def push(self, *arrays: np.ndarray) -> None:
        """Add rows."""
        first, self.end = self.end, self.end + len(arrays[0])
        if len(self.arrays[0]) < self.end:
            self.arrays = [longer(array, max(self.end, 2 * first), None) for array in self.arrays]
        for mine, array in zip(self.arrays, arrays, strict=True):
            mine[first : self.end] = array

    def settle(self) -> int:
        """Move rows to the front where that is worth it; tell by how much."""
        moved = self.begin
        if 2 * moved <= self.end:
            return 0
        self.arrays = [array[moved : self.end].copy() for array in self.arrays]
        self.begin, self.end = 0, self.end - moved
        return moved

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return sum(array.nbytes for array in self.arrays)


class PlaceIndex:
    """Rows, numbered by whoever adds them, each at a time and a place: in order of time."""

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates
        self._since = BEGINNING_OF_TIME
        """What is older is forgotten."""
        self._pending: list[tuple[np.ndarray, ...]] = []
        """Rows that are in no chunk yet."""
        self._forget_all()

    def _forget_all(self) -> None:
        self._chunks = np.zeros((0, k.OF_CHUNK), np.int64)
        numbers, places = np.zeros(0, np.int64), np.zeros(0)
        self._rows = Growing(numbers, numbers, places, places)
        """Numbers, times, x and y."""
        self._columns = Growing(np.zeros((0, 2)))
        """The least and the largest x of each column."""
        self._cells = Growing(numbers, np.zeros((0, 4)))
        """The first row of each cell, and the box around its rows; one more for each chunk."""

    def __len__(self) -> int:
        return self._rows.end - self._rows.begin + sum(len(rows[0]) for rows in self._pending)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        pending = sum(array.nbytes for rows in self._pending for array in rows)
        return self._rows.nbytes + self._columns.nbytes + self._cells.nbytes + pending

    def append(self, rows: Int64Array, times: Int64Array, x: FloatArray, y: FloatArray) -> None:
        """Add rows, none of which is earlier than those that were added before; NaN: it has no place."""
        placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if len(placed):
            self._pending.append((rows[placed], times[placed], x[placed], y[placed]))

    # -- looking up ----------------------------------------------------------------------------------------

    def find(self, areas: AreaSet, since: Int64Array, until: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Find the rows that lie in each area, borders included, from one time on and before another.

        Gives places of areas, which rise, and numbers of rows; those of one area are in no special order.
        """
        self._seal()
        times = self._times(since, until)
        (columns,), (starts, boxes) = self._columns.arrays, self._cells.arrays
        most = k.most_rows(
            areas.kind, areas.numbers, areas.is_lonlat, *times, self._chunks, columns, starts, boxes
        )
        which, found = np.empty(most, np.int64), np.empty(most, np.int64)
        if not most:
            return which, found
        total = self._look_up(areas, times, np.empty(len(areas), np.int64), which, found)
        which, found = which[:total], found[:total]
        return (which.copy(), found.copy()) if 2 * total < most else (which, found)

    def count(self, areas: AreaSet, since: Int64Array, until: Int64Array) -> Int64Array:
        """Tell how many rows `find` gives for each area."""
        self._seal()
        counts, nothing = np.zeros(len(areas), np.int64), np.zeros(0, np.int64)
        self._look_up(areas, self._times(since, until), counts, nothing, nothing)
        return counts

    def _times(self, since: Int64Array, until: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.maximum(since, self._since), plain(until, np.int64)

    def _look_up(
        self,
        areas: AreaSet,
        times: tuple[Int64Array, Int64Array],
        counts: Int64Array,
        which: Int64Array,
        found: Int64Array,
    ) -> int:
        (columns,), (starts, boxes) = self._columns.arrays, self._cells.arrays
        rows, at, x, y = self._rows.arrays
        return k.rows_in_areas(
            areas.kind, areas.numbers, areas.rings, areas.corners, areas.is_lonlat, *times,
            self._chunks, columns, starts, boxes, rows, at, x, y, counts, which, found,
        )  # fmt: skip

    # -- chunks --------------------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Put the rows that were added lately into chunks."""
        if not self._pending:
            return
        arrays = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        self._pending.clear()
        for first in range(0, len(arrays[0]), LARGEST):
            self._rows.push(*(array[first : first + LARGEST] for array in arrays))
            self._part(self._merged(self._rows.end - min(LARGEST, len(arrays[0]) - first)))

    def _merged(self, begin: int) -> int:
        """Merge the rows from `begin` on with the last chunks, as long as these have no more of them.

        Gives where the merged rows begin.
        """
        while len(self._chunks):
            last = self._chunks[-1]
            first = int(self._cells.arrays[0][last[k.FIRST_CELL]])
            if begin - first > self._rows.end - begin or self._rows.end - first > LARGEST:
                break
            self._columns.end, self._cells.end = int(last[k.FIRST_COLUMN]), int(last[k.FIRST_CELL])
            self._chunks = self._chunks[:-1]
            begin = first
        return begin

    def _part(self, begin: int) -> None:
        """Make a chunk of the rows from `begin` on."""
        rows, times, x, y = (array[: self._rows.end] for array in self._rows.arrays)
        across, up = self._borders(x[begin:], y[begin:])
        columns, each = up.shape[0], up.shape[1] + 1
        starts, boxes = np.empty(columns * each + 1, np.int64), np.full((columns * each + 1, 4), np.nan)
        cells = np.zeros(len(x) - begin, np.int64)
        if columns * each > 1:
            k.cells_of(x[begin:], y[begin:], across, up, cells)
        k.sort_into_cells(cells, begin, rows, times, x, y, starts, np.empty_like(cells))
        k.box_cells(x, y, starts, boxes[:-1])
        by_column = boxes[:-1].reshape(columns, each, 4)
        spans = np.stack([by_column[:, :, 0].min(axis=1), by_column[:, :, 2].max(axis=1)], axis=1)
        known = np.array([[0, 0, self._columns.end, columns, self._cells.end, each]])
        known[0, k.FIRST_TIME], known[0, k.LAST_TIME] = times[begin:].min(), times[begin:].max()
        self._columns.push(spans)
        self._cells.push(starts, boxes)
        self._chunks = np.concatenate([self._chunks, known])

    def _borders(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Choose the borders between columns, and between the cells of each."""
        cells = math.ceil(len(x) / IN_CELL)
        if cells == 1:
            return np.zeros(0), np.zeros((1, 0))
        if len(x) > 2 * _SAMPLED * cells:
            # At random: neighbours may follow each other in a pattern. Always the same: so do the results.
            chosen = np.random.default_rng(0).integers(0, len(x), _SAMPLED * cells)
            x, y = x[chosen], y[chosen]
        columns = self._columns_for(cells, x, y)
        each = math.ceil(cells / columns)
        across = np.sort(x)[len(x) * np.arange(1, columns) // columns]
        column = np.searchsorted(across, x, side="right")
        ordered = y[np.lexsort((y, column))]
        lengths = np.bincount(column, minlength=columns)
        places = offsets_of(lengths)[:-1, None] + lengths[:, None] * np.arange(1, each) // each
        up = ordered[np.minimum(places, len(y) - 1)]
        up[lengths == 0] = math.inf
        return across, up

    def _columns_for(self, cells: int, x: FloatArray, y: FloatArray) -> int:
        """Choose how many columns make cells about as wide as they are high."""
        (left, right), (low, high) = np.percentile(x, _SPREAD), np.percentile(y, _SPREAD)
        width, height = float(right - left), float(high - low)
        if self.coordinates is Coordinates.LONLAT:
            width *= math.cos(math.radians((low + high) / 2))
        if not (width > 0 and height > 0):
            return cells if width > 0 else 1
        return min(max(round(math.sqrt(cells * width / height)), 1), cells)

    # -- forgetting, and state -----------------------------------------------------------------------------

    def forget_before(self, time: int) -> None:
        """Let go of rows of before a time: they are found no more, and whole chunks of them take no room."""
        self._since = max(self._since, time)
        older = np.logical_and.accumulate(self._chunks[:, k.LAST_TIME] < time)
        count = int(older.sum())
        if not count:
            return
        if count == len(self._chunks):
            self._forget_all()
            return
        self._chunks = self._chunks[count:].copy()
        self._columns.begin = int(self._chunks[0, k.FIRST_COLUMN])
        self._cells.begin = int(self._chunks[0, k.FIRST_CELL])
        self._rows.begin = int(self._cells.arrays[0][self._cells.begin])
        self._chunks[:, k.FIRST_COLUMN] -= self._columns.settle()
        self._chunks[:, k.FIRST_CELL] -= self._cells.settle()
        self._cells.arrays[0][self._cells.begin : self._cells.end] -= self._rows.settle()

    def save(self, blocks: Blocks, name: str) -> None:
        """Write all rows."""
        self._seal()
        firsts = self._cells.arrays[0][self._chunks[:, k.FIRST_CELL]].tolist()
        for number, (first, end) in enumerate(pairwise([*firsts, self._rows.end])):
            # Each for itself: old ones are the same as in the snapshot before, and need not be kept again.
            chunk = [array[first:end] for array in self._rows.arrays]
            blocks.put_arrays(f"{name}/{number}", dict(zip(_SAVED, chunk, strict=True)))
        blocks.put_json(name, {"since": self._since, "chunks": len(firsts)})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self._since = about["since"]
        self._pending.clear()
        self._forget_all()
        for number in range(about["chunks"]):
            arrays = blocks.arrays(f"{name}/{number}")
            self._rows.push(*(arrays[each] for each in _SAVED))
            self._part(self._rows.end - len(arrays["rows"]))
