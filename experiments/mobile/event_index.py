"""Which events lie in many boxes, each over a time of its own: interests without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_AT_ONCE = 10_000_000
"""So many candidates are looked at in one piece."""


@dataclass(frozen=True)
class Boxes:
    """Boxes with their borders, each from one second up to, and without, another."""

    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    since: Ints
    until: Ints

    def __len__(self) -> int:
        return len(self.x0)

    @classmethod
    def around(cls, x: Floats, y: Floats, edge: float, since: Ints, until: Ints) -> Boxes:
        """Lay squares around places."""
        half = edge / 2
        return cls(x - half, y - half, x + half, y + half, since, until)

    def take(self, rows: Ints) -> Boxes:
        """Give some of them."""
        return Boxes(*(getattr(self, name)[rows] for name in ("x0", "y0", "x1", "y1", "since", "until")))

    def common(self, other: Boxes) -> Boxes:
        """Give what each has in common with another one: the place; the time stays that of `self`."""
        return Boxes(
            np.maximum(self.x0, other.x0), np.maximum(self.y0, other.y0),
            np.minimum(self.x1, other.x1), np.minimum(self.y1, other.y1), self.since, self.until,
        )  # fmt: skip

    def during(self, since: Ints, until: Ints) -> Boxes:
        """Give the same boxes at another time."""
        return Boxes(self.x0, self.y0, self.x1, self.y1, since, until)


class EventIndex:
    """Events by second, and by x in each second."""

    def __init__(self, second: Ints, x: Floats, y: Floats) -> None:
        order = np.lexsort((x, second))
        self.rows = order
        """The events in the order of the index, by the numbers that they came with."""
        self.second, self.x, self.y = second[order], x[order], y[order]
        self._low = float(x.min(initial=0.0))
        self._width = float(x.max(initial=0.0)) - self._low + 1.0
        self._last = int(second.max(initial=-1))

    @classmethod
    def of(cls, events: pa.Table) -> EventIndex:
        """Read the times and places of a table of events."""
        second = pc.divide(pc.cast(events.column("time"), pa.int64()), 1_000_000).to_numpy()
        return cls(second, events.column("x").to_numpy(), events.column("y").to_numpy())

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def _keys(self) -> Floats:
        return self.second * self._width + (self.x - self._low)

    def inside(self, boxes: Boxes) -> tuple[Ints, Ints]:
        """Give pairs of a box and an event in it, box by box, in order of time."""
        found = list(self._parts(boxes))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([box for box, _ in found]), np.concatenate([at for _, at in found])

    def count(self, boxes: Boxes) -> Ints:
        """Count the events in each box."""
        counts = np.zeros(len(boxes), np.int64)
        for box, _ in self._parts(boxes):
            counts += np.bincount(box, minlength=len(boxes))
        return counts

    def holds(self, boxes: Boxes, box: Ints, event: Ints) -> npt.NDArray[np.bool_]:
        """Tell of pairs whether the event lies in the box, whenever it was."""
        x, y = self.x[event], self.y[event]
        across = (x >= boxes.x0[box]) & (x <= boxes.x1[box])
        return across & (y >= boxes.y0[box]) & (y <= boxes.y1[box])

    def _parts(self, boxes: Boxes) -> Iterator[tuple[Ints, Ints]]:
        since, until = np.maximum(boxes.since, 0), np.minimum(boxes.until, self._last + 1)
        empty = (boxes.x0 > boxes.x1) | (boxes.y0 > boxes.y1)
        box, second = _spread(since, np.where(empty, since, until))
        start = second * self._width
        low = np.clip(boxes.x0 - self._low, 0.0, self._width)[box]
        high = np.clip(boxes.x1 - self._low, -0.5, self._width - 0.5)[box]
        # Keys are rounded: a little more is looked at, and compared exactly afterwards.
        first = np.searchsorted(self._keys, start + low - 1e-6, side="left")
        end = np.maximum(np.searchsorted(self._keys, start + high + 1e-6, side="right"), first)
        done = np.cumsum(end - first)
        cut = 0
        while cut < len(box):
            before = done[cut - 1] if cut else 0
            stop = max(int(np.searchsorted(done, before + _AT_ONCE, side="right")), cut + 1)
            which, at = _spread(first[cut:stop], end[cut:stop])
            owner = box[cut:stop][which]
            inside = self.holds(boxes, owner, at)
            yield owner[inside], at[inside]
            cut = stop


def _spread(first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Write out ranges: which one each number is of, and the number."""
    count = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(first)), count)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
