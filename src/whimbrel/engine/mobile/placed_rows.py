"""Rows by time and by the places of the atomic events below them: all of these have to lie in an interest."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.place_index import PlaceIndex
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.model.schema import Coordinates

SMALL = 16_384
MERGED = 32
"""Neighbouring chunks are merged, so many at once, up to this many rows."""


class PlacedRows:
    """Rows, numbered by whoever adds them: in order, and none earlier than those that were added before."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._index = PlaceIndex(coordinates)
        self._numbers: list[Int64Array] = []
        self._times: list[Int64Array] = []
        self._atoms: list[AtomPlaces] = []

    def append(self, numbers: Int64Array, times: Int64Array, atoms: AtomPlaces) -> None:
        """Add rows; those that have an event without a place lie in no interest, and are left out."""
        x, y = atoms.first_place()
        kept = np.flatnonzero(_is_placed(atoms, x))
        if not len(kept):
            return
        self._index_rows(numbers[kept], times[kept], x[kept], y[kept], atoms := atoms.take(kept))
        self._numbers.append(numbers[kept])
        self._times.append(times[kept])
        self._atoms.append(atoms)
        while len(self._numbers) >= MERGED and self._is_worth_merging(self._numbers[-MERGED:]):
            self._numbers[-MERGED:] = [np.concatenate(self._numbers[-MERGED:])]
            self._times[-MERGED:] = [np.concatenate(self._times[-MERGED:])]
            self._atoms[-MERGED:] = [AtomPlaces.concat(self._atoms[-MERGED:])]

    def _index_rows(
        self,
        numbers: Int64Array,
        times: Int64Array,
        x: FloatArray,
        y: FloatArray,
        atoms: AtomPlaces,  # noqa: ARG002 (their own locations may be more than points)
    ) -> None:
        """Make rows known to the index, at a place of each."""
        self._index.append(numbers, times, x, y)

    def _is_worth_merging(self, last: list[Int64Array]) -> bool:
        """Tell whether chunks are of about one size, and small: a row is copied rarely then."""
        return len(last[0]) <= SMALL and len(last[0]) <= MERGED * len(last[-1])

    def find(
        self, of: Interests, since: Int64Array, until: Int64Array, *, excluding_own: bool
    ) -> tuple[Int64Array, Int64Array]:
        """Find the rows all of whose events lie in each interest, from one time on and before another.

        Gives places of interests and numbers of rows, in order of the numbers. With `excluding_own`, no event
        may be of the interest's own object.
        """
        which, numbers = self._candidates(of.areas, since, until)
        order = np.argsort(numbers, kind="stable")
        which, numbers = which[order], numbers[order]
        inside = np.zeros(len(which), np.bool_)
        firsts = [chunk[0] for chunk in self._numbers]
        bounds = np.append(np.searchsorted(numbers, firsts), len(numbers))
        for chunk, atoms, (low, high) in zip(self._numbers, self._atoms, pairwise(bounds), strict=True):
            if high > low:
                rows = np.searchsorted(chunk, numbers[low:high])
                own = of.obj[which[low:high]] if excluding_own else None
                inside[low:high] = self._are_in(atoms.take(rows), of.areas, which[low:high], own)
        return which[inside], numbers[inside]

    def _candidates(
        self, areas: AreaSet, since: Int64Array, until: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Find the rows that may lie in each area, in no special order."""
        return self._index.find(areas, since, until)

    def _are_in(
        self, atoms: AtomPlaces, areas: AreaSet, which: Int64Array, own: Int64Array | None
    ) -> BoolArray:
        """Tell row by row whether it lies in an area."""
        return atoms.all_in(areas, which, own)

    def count(self, of: Interests, since: Int64Array, until: Int64Array) -> Int64Array:
        """Tell how many rows have an event in each interest, from one time on and before another."""
        return self._index.count(of.areas, since, until)

    def forget_before(self, time: int) -> None:
        """Let go of rows of before a time."""
        self._index.forget_before(time)
        while self._times and self._times[0][-1] < time:
            del self._numbers[0], self._times[0], self._atoms[0]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write all rows."""
        self._index.save(blocks, f"{name}/index")
        blocks.put_json(name, len(self._numbers))
        for place, atoms in enumerate(self._atoms):
            rows = {"numbers": self._numbers[place], "times": self._times[place]}
            blocks.put_arrays(f"{name}/{place}", {**rows, **atoms.arrays()})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._index.load(blocks, f"{name}/index")
        chunks = [blocks.arrays(f"{name}/{place}") for place in range(blocks.json(name))]
        self._numbers = [chunk.pop("numbers") for chunk in chunks]
        self._times = [chunk.pop("times") for chunk in chunks]
        self._atoms = [AtomPlaces(**chunk) for chunk in chunks]


def _is_placed(atoms: AtomPlaces, x: FloatArray) -> BoolArray:
    """Tell which rows have a place for every event that needs one."""
    lengths = np.diff(atoms.offsets)
    placed = np.zeros(len(lengths), np.bool_)
    filled = np.flatnonzero(lengths)
    missing = np.isnan(atoms.x) & ~atoms.is_everywhere
    placed[filled] = ~np.logical_or.reduceat(missing, atoms.offsets[filled]) if len(filled) else True
    return placed & ~np.isnan(x)
