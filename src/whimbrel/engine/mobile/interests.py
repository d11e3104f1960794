"""The interests that a step is about: whose they are, from when to when, and where."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, Int64Array

AROUND_OBJECT = -1


@dataclass(frozen=True, slots=True)
class Interests:
    """Some interests of focal objects."""

    obj: Int64Array
    number: Int64Array
    """Which one of its object, from 1."""
    start: Int64Array
    end: Int64Array
    """When it ends, without that instant; the end of time where nobody knows."""
    lifetime: Int64Array
    member: Int64Array
    """Which member of the cohorts it is, if anything is found for it alone."""
    candidate: Int64Array
    """Which of the areas that were predicted for it is used, by rank; `AROUND_OBJECT`: none of them."""
    areas: AreaSet

    def __len__(self) -> int:
        return len(self.obj)

    def take(self, which: Int64Array | BoolArray) -> Interests:
        """Give some of them."""
        rows: Int64Array = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64)
        arrays = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return Interests(**arrays, areas=self.areas.take(rows))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        blocks.put_arrays(name, {each: getattr(self, each) for each in _ARRAYS})
        self.areas.save(blocks, f"{name}/areas")

    @classmethod
    def load(cls, blocks: Blocks, name: str) -> Interests:
        """Read what `save` wrote."""
        return cls(**blocks.arrays(name), areas=AreaSet.load(blocks, f"{name}/areas"))

    @staticmethod
    def concat(parts: list[Interests]) -> Interests:
        """Put several one after the other."""
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
        return Interests(**arrays, areas=AreaSet.concat([part.areas for part in parts]))


_ARRAYS = tuple(field.name for field in fields(Interests) if field.name != "areas")


def codes(obj: Int64Array, number: Int64Array) -> Int64Array:
    """Give each interest one number by its object and its own number."""
    return (obj << 32) | number


def places_among(wanted: Int64Array, among: Int64Array) -> Int64Array:
    """Find where each number stands among others; -1 where it does not."""
    order = np.argsort(among, kind="stable")
    if not len(order):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(among[order], wanted), len(order) - 1)
    found = order[at]
    return np.where(among[found] == wanted, found, -1)


def followers(interests: Interests) -> Int64Array:
    """Find the interest that follows each without a gap; -1 where there is none."""
    own = codes(interests.obj, interests.number)
    found = places_among(own + 1, own)
    return np.where((found >= 0) & (interests.start[found] == interests.end), found, -1)


def predecessors(follower: Int64Array) -> Int64Array:
    """Turn it round: the interest that each follows."""
    before = np.full(len(follower), -1, np.int64)
    followed = np.flatnonzero(follower >= 0)
    before[follower[followed]] = followed
    return before
