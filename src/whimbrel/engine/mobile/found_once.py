"""Detections that are found once for all interests, by place and by when they are known.

Of a plain query the detections of an interest are those of one run over all events whose events all lie in
it: so that run is done once, however many objects are followed, and a switch is a look at what it found
lately. With `of situations` that is so by definition, whatever the query is: then the location of a detection
counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.mobile.deliveries import Told, concat_detections
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.located_rows import LocatedRows
from whimbrel.engine.mobile.placed_rows import MERGED, SMALL, PlacedRows
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array, UInt64Array
from whimbrel.model.schema import Coordinates


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Some detections: as they are reported, what tells them apart, and when they are known."""

    table: pa.Table
    key: UInt64Array
    known: Int64Array

    def __len__(self) -> int:
        return len(self.known)

    def take(self, rows: Int64Array) -> FoundRows:
        """Give some of them."""
        return FoundRows(self.table.take(pa.array(rows)), self.key[rows], self.known[rows])

    @staticmethod
    def concat(parts: list[FoundRows]) -> FoundRows:
        """Put several lots one after the other."""
        if len(parts) == 1:
            return parts[0]
        return FoundRows(
            concat_detections([part.table for part in parts]).combine_chunks(),
            np.concatenate([part.key for part in parts]),
            np.concatenate([part.known for part in parts]),
        )


class FoundOnce:
    """Detections by place and by when they are known, for as long as any interest may look back at them."""

    def __init__(self, coordinates: Coordinates, *, by_own_location: bool = False) -> None:
        self.by_own_location = by_own_location
        """Whether a detection belongs to an interest by its own location, and not by its events."""
        self._placed = LocatedRows(coordinates) if by_own_location else PlacedRows(coordinates)
        self._chunks: list[FoundRows] = []
        self._firsts: list[int] = []
        """The number of the first detection of each chunk."""
        self._total = 0

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def append(self, found: FoundRows, atoms: AtomPlaces) -> None:
        """Add detections, and where they or their events are; none is known before those added earlier."""
        order = np.argsort(found.known, kind="stable")
        chosen = found.take(order)
        self._placed.append(self._total + np.arange(len(order)), chosen.known, atoms.take(order))
        self._chunks.append(chosen)
        self._firsts.append(self._total)
        self._total += len(order)
        while len(self._chunks) >= MERGED and self._is_worth_merging(self._chunks[-MERGED:]):
            self._chunks[-MERGED:] = [FoundRows.concat(self._chunks[-MERGED:])]
            del self._firsts[1 - MERGED :]

    def _is_worth_merging(self, last: list[FoundRows]) -> bool:
        return len(last[0]) <= SMALL and len(last[0]) <= MERGED * len(last[-1])

    def told_of(
        self, of: Interests, since: Int64Array, until: Int64Array, *, excluding_own: bool
    ) -> list[Told]:
        """Find what each interest has that is known from one time on and before another."""
        which, numbers = self._placed.find(of, since, until, excluding_own=excluding_own)
        bounds = np.append(np.searchsorted(numbers, self._firsts), len(numbers))
        told = []
        for chunk, first, (low, high) in zip(self._chunks, self._firsts, pairwise(bounds), strict=True):
            if high > low:
                row = numbers[low:high] - first
                told.append(
                    Told.added(chunk.table, row, chunk.key[row], which[low:high], chunk.known[row], of)
                )
        return told

    def forget_before(self, time: int) -> None:
        """Let go of what was known before a time."""
        self._placed.forget_before(time)
        while self._chunks and self._chunks[0].known[-1] < time:
            del self._chunks[0], self._firsts[0]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write all detections."""
        self._placed.save(blocks, f"{name}/placed")
        blocks.put_json(name, {"total": self._total, "firsts": self._firsts})
        for place, chunk in enumerate(self._chunks):
            blocks.put_arrays(f"{name}/{place}", {"key": chunk.key, "known": chunk.known})
            blocks.put_batches(f"{name}/{place}/table", chunk.table.combine_chunks().to_batches())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._placed.load(blocks, f"{name}/placed")
        about = blocks.json(name)
        self._total, self._firsts = about["total"], about["firsts"]
        self._chunks = []
        for place in range(len(self._firsts)):
            table = pa.Table.from_batches(blocks.batches(f"{name}/{place}/table"))
            self._chunks.append(FoundRows(table, **blocks.arrays(f"{name}/{place}")))
