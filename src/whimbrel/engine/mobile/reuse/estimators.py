"""Estimates of similarity that need less than the ids of all events (RECEP, 5.3.3).

| estimate | knows | wrong where |
|---|---|---|
| `by_area` | the interests | events are not spread evenly; something was reused before |
| `per_neighbour` | the events that both read, and how similar they are | operators are on many levels |
| `SpaceTimeGrid` | how many events there are in each cell | cells are coarser than what differs |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from whimbrel.engine.mobile.reuse.kernels.similarities import weights_in_common
from whimbrel.engine.mobile.reuse.selections import EventSets, Tolerance, offsets_of
from whimbrel.engine.mobile.reuse.similarity import Coverable, coverable_by, good_enough, merging
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


def by_area(overlaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimate by areas: precision and recall, row a, column b, of the interest of b in place of that of a.

    As if events were spread evenly.

    Parameters
    ----------
    overlaps
        What each two interests have in common; on the diagonal, their areas.
    """
    area = np.diag(overlaps)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = overlaps / area[None, :], overlaps / area[:, None]
    return np.where(area[None, :] == 0, 1.0, precision), np.where(area[:, None] == 0, 1.0, recall)


def per_neighbour(
    owner: Int64Array,
    read: EventSets,
    atoms: FloatArray,
    precision: FloatArray,
    recall: FloatArray,
    agreed: Tolerance,
    serves: BoolArray | None = None,
) -> Coverable:
    """Estimate by the events that both read: those of predecessors, which come once for all their readers.

    Each counts with the number of atomic events below it, and those in common with the similarity as which
    the selection that would be given up has them. By 5.1, precision is what is in common by what the *other*
    one reads.

    Parameters
    ----------
    owner
        The operator of each selection.
    read
        The events of predecessors that each selection reads.
    atoms
        For each of `read.ids`, how many atomic events are below it.
    precision, recall
        For each of `read.ids`, the similarity that was annotated for this reader; 1 for what was not reused.
    agreed, serves
        As for `coverable`.
    """
    anything = Tolerance.same(len(agreed), -1.0)
    pairs = coverable_by(owner, read, read, anything, serves)
    common_p, common_r = weights_in_common.at(merging(read, len(pairs)))(
        read.offsets, read.ids, atoms * precision, atoms * recall, pairs.covered, pairs.covering
    )
    total = EventSets(read.offsets, read.ids, atoms).total
    found = replace(pairs, precision=common_p / total[pairs.covering], recall=common_r / total[pairs.covered])
    return found.take(good_enough(found, agreed))


@dataclass(frozen=True, slots=True)
class SpaceTimeGrid:
    """Cells of space and time, in which atomic events are counted: what selections carry in place of ids.

    Parameters
    ----------
    cell_m
        The side of a cell.
    cell_us
        How long it lasts, in microseconds.
    """

    cell_m: float
    cell_us: int

    def cells(self, x: FloatArray, y: FloatArray, time: Int64Array) -> Int64Array:
        """Give the numbers of cells in which events lie: unique as far as 2^20 cells in each direction."""
        mask = np.int64((1 << 20) - 1)
        column = np.floor(x / self.cell_m).astype(np.int64) & mask
        row = np.floor(y / self.cell_m).astype(np.int64) & mask
        return (((time // self.cell_us) & mask) << 40) | (row << 20) | column

    def counts(self, atoms: EventSets, cells: Int64Array) -> EventSets:
        """Count the events of each selection by cells; `atoms.ids` are places in `cells`."""
        return EventSets.counted(atoms.rows, cells[atoms.ids], len(atoms))


def joined(parts: list[EventSets]) -> EventSets:
    """Join the counts of several inputs of each selection: cells that are the same are summed up."""
    rows = np.concatenate([part.rows for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    values = np.concatenate([part.values for part in parts])
    order = np.lexsort((ids, rows))
    rows, ids, values = rows[order], ids[order], values[order]
    first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1]))[: len(rows)])
    sums = np.add.reduceat(values, first) if len(first) else values
    return EventSets(offsets_of(np.bincount(rows[first], minlength=len(parts[0]))), ids[first], sums)
