"""Where the atomic events of detections are, and whether all of them lie in an interest."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from whimbrel.engine.mobile.areas import AreaSet, holds
from whimbrel.engine.row_store import offsets_of, ranges
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, slots=True)
class AtomPlaces:
    """The atomic events of some detections, one after the other: where each is, and whose."""

    offsets: Int64Array
    x: FloatArray
    y: FloatArray
    """NaN where an event has no place."""
    is_everywhere: BoolArray
    """Time points lie in every interest."""
    obj: Int64Array
    """The object whose event it is; -1 where that does not matter."""

    def take(self, rows: Int64Array) -> AtomPlaces:
        """Give those of some detections."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        at = ranges(self.offsets[rows], lengths)
        return AtomPlaces(offsets_of(lengths), self.x[at], self.y[at], self.is_everywhere[at], self.obj[at])

    @staticmethod
    def concat(parts: list[AtomPlaces]) -> AtomPlaces:
        """Put those of several lots of detections one after the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        arrays = [
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("x", "y", "is_everywhere", "obj")
        ]
        return AtomPlaces(offsets_of(lengths), *arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """Give all arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def first_place(self) -> tuple[FloatArray, FloatArray]:
        """Give a place of each detection; NaN for one that has none."""
        x, y = np.full(len(self.offsets) - 1, np.nan), np.full(len(self.offsets) - 1, np.nan)
        owner = np.repeat(np.arange(len(x)), np.diff(self.offsets))
        placed = np.flatnonzero(~self.is_everywhere)[::-1]
        x[owner[placed]], y[owner[placed]] = self.x[placed], self.y[placed]
        return x, y

    def all_in(self, areas: AreaSet, which: Int64Array, own: Int64Array | None) -> BoolArray:
        """Tell, detection by detection, whether all events lie in an area, none of them of an object's own."""
        lengths = np.diff(self.offsets)
        inside = self.is_everywhere | holds(areas, np.repeat(which, lengths), self.x, self.y)
        if own is not None:
            inside &= self.obj != np.repeat(own, lengths)
        return np.logical_and.reduceat(inside, self.offsets[:-1]) if len(lengths) else np.zeros(0, np.bool_)
