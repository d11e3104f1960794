"""Which broker serves a place, and to which brokers a mover is connected over time.

Movers connect to leaves: brokers with an area below which no other broker has one. A border belongs to the
area whose smallest x or y it is; a place outside of all areas belongs to none of them, and a mover there
connects to the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.network import Broker, Mover, Network


def leaves(network: Network) -> tuple[Broker, ...]:
    """Return the brokers that movers connect to: those with an area, and no broker with one below them."""
    above = {broker.parent for broker in network.brokers if broker.area is not None}
    return tuple(broker for broker in network.brokers if broker.area is not None and broker.name not in above)


_MOST_CELLS = 4_000_000


class Areas:
    """The areas of a network's leaves, ready for many places at once.

    Where borders cut space into a few million cells, a table finds a place in O(log n); else a tree of boxes.

    Raises
    ------
    NetworkError
        If no broker has an area, or two leaves serve the same places.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.leaves = leaves(network)
        if not self.leaves:
            raise NetworkError(
                "no broker has an area, so movers cannot connect",
                "give brokers an area: [smallest x, smallest y, largest x, largest y]",
            )
        self.boxes: Floats = np.array([broker.area for broker in self.leaves], np.float64)
        self.number: Ints = np.array([network.number[broker.name] for broker in self.leaves], np.int64)
        self._xs, self._ys = np.unique(self.boxes[:, ::2]), np.unique(self.boxes[:, 1::2])
        self._tree = _tree(self.boxes)
        self._check_overlaps()

    def find(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Ints:
        """Return the number of the broker that serves each place; -1 outside of all areas, and for NaN."""
        import shapely

        xs, ys = np.atleast_1d(np.asarray(x, np.float64)), np.atleast_1d(np.asarray(y, np.float64))
        numbers = np.full(len(xs), -1, np.int64)
        known = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
        if len(self._xs) * len(self._ys) <= _MOST_CELLS:
            # A border belongs to the area whose smallest x or y it is: so do the cells of this table.
            column = np.searchsorted(self._xs, xs[known], "right")
            row = np.searchsorted(self._ys, ys[known], "right")
            numbers[known] = self._cells[column, row]
            return numbers
        places, boxes = self._tree.query(shapely.points(xs[known], ys[known]))
        places, box = known[places], self.boxes[boxes]
        inside = (box[:, :2] <= np.column_stack([xs, ys])[places]).all(axis=1)
        inside &= (np.column_stack([xs, ys])[places] < box[:, 2:]).all(axis=1)
        numbers[places[inside]] = self.number[boxes[inside]]
        return numbers

    @cached_property
    def _cells(self) -> Ints:
        """The leaf of each cell between borders of areas; the first column and row lie before all borders."""
        cells = np.full((len(self._xs) + 1, len(self._ys) + 1), -1, np.int64)
        x0, y0, x1, y1 = self.boxes.T
        columns = np.searchsorted(self._xs, x0) + 1, np.searchsorted(self._xs, x1) + 1
        rows = np.searchsorted(self._ys, y0) + 1, np.searchsorted(self._ys, y1) + 1
        for leaf, a, b, c, d in zip(self.number, *columns, *rows, strict=True):
            cells[a:b, c:d] = leaf
        return cells

    def serving(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Ints:
        """Return the number of the broker that serves each place, or the nearest outside of all areas."""
        import shapely

        xs, ys = np.atleast_1d(np.asarray(x, np.float64)), np.atleast_1d(np.asarray(y, np.float64))
        numbers = self.find(xs, ys)
        outside = np.flatnonzero((numbers < 0) & np.isfinite(xs) & np.isfinite(ys))
        if len(outside):
            nearest = self._tree.query_nearest(shapely.points(xs[outside], ys[outside]))
            # Of several that are as near, the one that the network names first.
            order = np.lexsort((self.number[nearest[1]], nearest[0]))
            at, first = np.unique(nearest[0][order], return_index=True)
            numbers[outside[at]] = self.number[nearest[1][order][first]]
        return numbers

    def _check_overlaps(self) -> None:
        import shapely

        one, other = self._tree.query(shapely.box(*self.boxes.T))
        a, b = self.boxes[one], self.boxes[other]
        shared = (np.minimum(a[:, 2:], b[:, 2:]) > np.maximum(a[:, :2], b[:, :2])).all(axis=1)
        twice = np.flatnonzero(shared & (one < other))
        if len(twice):
            names = (self.leaves[int(one[twice[0]])].name, self.leaves[int(other[twice[0]])].name)
            raise NetworkError(
                f"the areas of {names[0]!r} and {names[1]!r} overlap",
                "leaves serve places of their own; name a broker that serves both as their parent",
            )


def _tree(boxes: Floats) -> Any:
    import shapely

    return shapely.STRtree(shapely.box(*boxes.T))


@dataclass(frozen=True, slots=True)
class Attachment:
    """A mover is connected to a broker from a time on."""

    time_s: float
    broker: str


def attachments(mover: Mover, network: Network | Areas) -> tuple[Attachment, ...]:
    """Return when a mover connects to which broker: the first, and every change.

    Between two positions it moves straight on at a constant speed; before the first and after the last it
    stands still. A change is when it reaches the border.
    """
    areas = network if isinstance(network, Areas) else Areas(network)
    track = np.array(mover.track, np.float64).reshape(-1, 3)
    if not len(track):
        raise NetworkError(f"the mover {mover.name!r} has no position", "give it at least one: [0, x, y]")
    times = np.unique(np.concatenate([track[:, 0], *_crossings(track, areas.boxes)]))
    # Between two successive times it crosses no border, so its middle tells where it is.
    middles = np.append((times[1:] + times[:-1]) / 2, times[-1])
    x, y = (np.interp(middles, track[:, 0], track[:, axis]) for axis in (1, 2))
    hosts = areas.serving(x, y)
    is_new = np.ones(len(hosts), np.bool_)
    is_new[1:] = hosts[1:] != hosts[:-1]
    brokers = areas.network.brokers
    return tuple(
        Attachment(float(time), brokers[host].name)
        for time, host in zip(times[is_new].tolist(), hosts[is_new].tolist(), strict=True)
    )


def _crossings(track: Floats, boxes: Floats) -> list[Floats]:
    """Return the times at which a track may cross a border, one array for each axis."""
    times = []
    for axis in (1, 2):
        borders = np.unique(boxes[:, [axis - 1, axis + 1]])
        start, end = track[:-1, axis], track[1:, axis]
        low = np.searchsorted(borders, np.minimum(start, end), "left")
        count = np.searchsorted(borders, np.maximum(start, end), "right") - low
        count[start == end] = 0
        step = np.repeat(np.arange(len(start)), count)
        first = np.cumsum(count) - count
        border = borders[np.arange(len(step)) - first[step] + low[step]]
        share = (border - start[step]) / (end[step] - start[step])
        times.append(track[step, 0] + share * (track[step + 1, 0] - track[step, 0]))
    return times
