"""Partitioning of events among shards so that whatever lies close together meets in one of them.

The plane or the globe is cut into cells, and every cell belongs to a shard. The *primary copy* of an event
goes to the shard of its own cell, and another copy to every other shard that has a cell within reach. So the
shard of the primary copy knows everything that lies within reach of the event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import METRES_PER_DEGREE, Floats

Ints = npt.NDArray[np.int64]

CELLS_PER_REACH = 8.0
"""A cell is so many times as wide as the reach: wider cells mean fewer copies and fewer cells."""
CELLS_PER_INTEREST = 4.0
"""The same where objects are followed: they are often in one town, which should have cells for all shards."""
MARGIN = 1.001
"""Rounding must not keep from a shard what lies at the very edge of its reach."""


@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """Copies of events: which event, for which shard, and whether it is the primary copy there."""

    row: Ints
    shard: Ints
    is_primary: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cells:
    """How places are parted among shards that each know everything within reach of their own."""

    reach_m: float
    shards: int
    per_reach: float = CELLS_PER_INTEREST

    def of_shard(self, shard: int) -> PlacesOfShard:
        """Give the places of one shard."""
        return PlacesOfShard(self, shard)


@dataclass(frozen=True, slots=True)
class PlacesOfShard:
    """The places in the cells of one shard."""

    cells: Cells
    shard: int

    def holds(self, x: Floats, y: Floats, coordinates: Coordinates | None) -> npt.NDArray[np.bool_]:
        """Tell which of some places are its own."""
        cells = _cells(self.cells.reach_m, coordinates, self.cells.per_reach)
        own: npt.NDArray[np.bool_] = _shards_of(cells.at(x, y), self.cells.shards) == self.shard
        return own


def place_copies(
    x: Floats,
    y: Floats,
    reach_m: float,
    shards: int,
    coordinates: Coordinates | None,
    everywhere: npt.NDArray[np.bool_] | None = None,
    per_reach: float = CELLS_PER_REACH,
) -> PartitionedRows:
    """Partition events at points (NaN: nowhere) among shards; every copy comes once.

    Those that are needed `everywhere` go to all shards. A cell is `per_reach` times as wide as the reach.
    """
    cells = _cells(reach_m, coordinates, per_reach)
    nowhere = np.isnan(x) | np.isnan(y)
    x, y = np.where(nowhere, 0.0, x), np.where(nowhere, 0.0, y)
    numbers = np.stack([cells.at(x, y), *cells.corners(x, y)])
    numbers[:, nowhere] = 0  # what lies nowhere is near nothing: any shard will do
    of_cell = _shards_of(numbers, shards)
    placed = _copies(of_cell)
    if everywhere is None or not everywhere.any():
        return placed
    near = ~everywhere[placed.row]
    spread = np.repeat(np.flatnonzero(everywhere), shards)
    shard = np.tile(np.arange(shards), int(np.count_nonzero(everywhere)))
    rows = np.concatenate([placed.row[near], spread])
    order = np.argsort(rows, kind="stable")
    return PartitionedRows(
        rows[order],
        np.concatenate([placed.shard[near], shard])[order],
        np.concatenate([placed.is_primary[near], shard == of_cell[0, spread]])[order],
    )


def _cells(reach_m: float, coordinates: Coordinates | None, per_reach: float) -> _Globe | _Plane:
    kind = _Globe if coordinates is Coordinates.LONLAT else _Plane
    return kind(reach_m, per_reach)


def _shards_of(cells: Ints, shards: int) -> Ints:
    return (_scrambled(cells) % np.uint64(shards)).astype(np.int64)


def _copies(of_cell: Ints) -> PartitionedRows:
    """Send each event to the shards of its own cell and of those at the corners of its reach, once each."""
    new = np.ones(of_cell.shape, np.bool_)
    for corner_number in range(1, len(of_cell)):
        new[corner_number] = (of_cell[:corner_number] != of_cell[corner_number]).all(axis=0)
    corner, row = np.nonzero(new)
    order = np.argsort(row, kind="stable")
    corner, row = corner[order], row[order]
    return PartitionedRows(row, of_cell[corner, row], corner == 0)


class _Plane:
    def __init__(self, reach_m: float, per_reach: float) -> None:
        self.reach = max(reach_m, 1e-3) * MARGIN
        self.size = self.reach * per_reach

    def at(self, x: Floats, y: Floats) -> Ints:
        return _number(np.floor(y / self.size), np.floor(x / self.size))

    def corners(self, x: Floats, y: Floats) -> list[Ints]:
        """List the cells at the corners of the square within reach: it is smaller than a cell."""
        steps = (-self.reach, self.reach)
        return [self.at(x + dx, y + dy) for dx in steps for dy in steps]


class _Globe:
    def __init__(self, reach_m: float, per_reach: float) -> None:
        self.reach = max(reach_m, 1e-3) * MARGIN / METRES_PER_DEGREE
        self.per_reach = per_reach
        self.size = self.reach * per_reach

    def at(self, lon: Floats, lat: Floats) -> Ints:
        row = np.floor(lat / self.size)
        return self._cell(row, lon)

    def _cell(self, row: Floats, lon: Floats) -> Ints:
        columns = self._columns(row)
        column = np.floor(((lon + 180.0) % 360.0) / 360.0 * columns)
        return _number(row, np.minimum(column, columns - 1))

    def _columns(self, row: Floats) -> Floats:
        """Count the cells in rows: fewer towards the poles, so that each is wide enough."""
        far = np.maximum(np.abs(row), np.abs(row + 1)) * self.size
        narrowest = self._half_width(far + self.size)
        return np.maximum(1.0, np.floor(360.0 / (self.per_reach * narrowest)))

    def _half_width(self, lat: Floats) -> Floats:
        """Convert the reach to degrees of longitude, for events up to a latitude."""
        nearest_pole = np.minimum(np.abs(lat) + self.reach, 90.0)
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(self.reach / np.maximum(np.cos(np.radians(nearest_pole)), 1e-12), 180.0)

    def corners(self, lon: Floats, lat: Floats) -> list[Ints]:
        half = self._half_width(lat)
        cells = []
        for dy in (-self.reach, self.reach):
            row = np.floor((lat + dy) / self.size)
            cells += [self._cell(row, lon - half), self._cell(row, lon + half)]
        return cells


def _number(row: Floats, column: Floats) -> Ints:
    """Make numbers of cells; two that share one go to one shard, which harms nothing."""
    return row.astype(np.int64) * np.int64(1_000_003) + column.astype(np.int64)


def _scrambled(numbers: Ints) -> npt.NDArray[np.uint64]:
    """Spread neighbouring numbers over all shards."""
    bits = numbers.astype(np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))
