"""An index of shapes: it tells which circles, boxes and polygons a point lies in.

A grid of cells of many sizes. Each shape is held by the few cells of its own level that it touches (cells
about as wide as the shape), each cell being a list found through a hash table. Cells that get crowded are
split: their shapes are then held by finer cells, and where such a cell lies wholly inside a shape, its points
need no test. A point is looked up once in every level that holds anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import EARTH_RADIUS_M, Floats
from whimbrel.space.kernels import grid as kernels
from whimbrel.space.kernels.exact import BOX, CIRCLE, POLYGON
from whimbrel.space.lists import Ints, Lists, lengthen

Numbers = npt.NDArray[np.int32]
Pairs = tuple[Numbers, Numbers]
"""Rows of events or points, and the numbers of what they meet."""

_SLICE = 1 << 13
"""So many shapes are put in or taken out between two looks at whether the table is to be moved on."""
_SCALES = np.ldexp(1.0, kernels.MIDDLE - np.arange(kernels.LEVELS))


class ShapeGrid:
    """Shapes with numbers that the caller chooses; small ones, since arrays are as long as the largest.

    A shape is first kept, then put in. What is given must have been checked: finite coordinates within
    `FARTHEST_M`, valid polygons, numbers that are not in use. `whimbrel.space.places` does that.
    """

    def __init__(self, coordinates: Coordinates = Coordinates.PLANE) -> None:
        self.coordinates = coordinates
        self._lonlat = coordinates is Coordinates.LONLAT
        self._kinds = np.zeros(0, np.uint8)
        self._levels = np.zeros(0, np.uint8)
        self._shapes: Floats = np.zeros((0, 4))
        self._rings: Ints = np.zeros(0, np.int64)
        self._natives: Ints = np.zeros(2 * kernels.LEVELS, np.int64)
        self._lists = Lists()
        self._stack: Ints = np.zeros((1 << 12, 2), np.int64)

    def __len__(self) -> int:
        return int(self._natives[: kernels.LEVELS].sum())

    @property
    def nbytes(self) -> int:
        """The memory that the index takes."""
        arrays = (self._kinds, self._levels, self._shapes, self._rings, self._natives, self._stack)
        return sum(array.nbytes for array in arrays) + self._lists.nbytes

    def keep_circles(self, numbers: Ints, x: Floats, y: Floats, radius_m: Floats) -> None:
        """Remember circles, in no cell yet; their radius is in metres, on the globe too."""
        if self._lonlat:
            limit = np.sin(np.minimum(radius_m / (2 * EARTH_RADIUS_M), np.pi / 2)) ** 2
        else:
            limit = radius_m * radius_m
        self._keep(numbers, CIRCLE, np.stack([x, y, radius_m, limit], axis=1))

    def keep_boxes(self, numbers: Ints, boxes: Floats) -> None:
        """Remember boxes, each a row of least x and y and largest x and y."""
        self._keep(numbers, BOX, boxes)

    def keep_polygons(self, numbers: Ints, polygons: npt.NDArray[Any]) -> None:
        """Remember an array of Shapely polygons, with holes or of several parts."""
        import shapely

        xy, offsets = _rings_of(polygons)
        self._reserve(numbers)
        done = 0
        while True:
            lists = self._lists
            done = kernels.store_rings(
                numbers, done, self._rings, offsets, xy, lists.words, lists.free, lists.counters
            )
            if done == len(numbers):
                break
            lists.make_room(4 * int(offsets[done + 1] - offsets[done]) + 2)
        self._keep(numbers, POLYGON, shapely.bounds(polygons))

    def _reserve(self, numbers: Ints) -> None:
        if len(numbers):
            for array in (self._kinds, self._levels, self._shapes, self._rings):
                lengthen(array, int(numbers.max()) + 1)

    def _keep(self, numbers: Ints, kind: int, rows: Floats) -> None:
        self._reserve(numbers)
        self._kinds[numbers] = kind
        self._shapes[numbers] = rows

    def put_in(self, numbers: Ints) -> None:
        """Put shapes that are remembered into their cells, so that points find them."""
        for first in range(0, len(numbers), _SLICE):
            self._put_in(numbers[first : first + _SLICE])
            self._lists.go_on()

    def _put_in(self, numbers: Ints) -> None:
        done = 0
        while True:
            lists = self._lists
            done = kernels.add_shapes(
                numbers, done, *self._arrays(),
                lists.slots, lists.old, lists.words, lists.free, lists.counters, self._stack,
            )  # fmt: skip
            waiting = int(lists.counters[kernels.PENDING])
            if done == len(numbers) and not waiting:
                return
            lists.make_room()
            lengthen(self._stack, waiting + 4 * kernels.HOPELESS)

    def take_out(self, numbers: Ints) -> None:
        """Take shapes out of their cells; they are still remembered."""
        for first in range(0, len(numbers), _SLICE):
            lists = self._lists
            kernels.remove_shapes(
                numbers[first : first + _SLICE], *self._arrays(),
                lists.slots, lists.old, lists.words, lists.free, lists.counters, self._stack,
            )  # fmt: skip
            lists.go_on()

    def forget(self, numbers: Ints) -> None:
        """Forget shapes that are in no cell; their numbers may be used again."""
        kernels.release_rings(numbers, self._kinds, self._rings, self._lists.words, self._lists.free)

    def _arrays(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        return (
            self._kinds, self._levels, self._shapes, self._rings, self._lonlat, _SCALES, self._natives,
        )  # fmt: skip

    def match(self, x: Floats, y: Floats) -> Pairs:
        """Find the pairs of a point (its row) and a shape (its number) that it lies in, in order of the rows.

        Borders count; a point with a NaN coordinate lies nowhere.
        """
        arrays = self.to_look_up(len(x))
        return collected(len(x), lambda done, *room: kernels.look_up(x, y, done, *arrays, *room))

    def to_look_up(self, points: int) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
        """List the arrays in which kernels look up so many points, in the order in which they take them."""
        self._lists.go_on(points // 2)  # looking into two tables costs more than this
        counts = self._natives[: kernels.LEVELS] + self._natives[kernels.LEVELS :]
        levels = np.flatnonzero(counts)[::-1].copy()
        lists = self._lists
        return (
            levels, self._natives, _SCALES, self._shapes, self._rings, self._lonlat,
            lists.slots, lists.old, lists.words,
        )  # fmt: skip

    def hold(self, x: Floats, y: Floats, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Tell which points lie in which shape, pair by pair."""
        holds: npt.NDArray[np.bool_] = kernels.hold(
            x, y, numbers, self._kinds, self._shapes, self._rings, self._lonlat, self._lists.words
        )
        return holds


def collected(rows: int, look_up: Callable[[int, Numbers, Numbers], tuple[int, int]]) -> Pairs:
    """Look up all rows; where a kernel runs out of room for pairs, it goes on with more.

    The kernel takes the first row that is not done, and room for pairs; it gives the same row for the next
    call, and how many pairs it wrote.
    """
    pairs: list[Pairs] = []
    done, room = 0, rows + 1024
    while done < rows:
        some, numbers = np.empty(room, np.int32), np.empty(room, np.int32)
        before = done
        done, count = look_up(done, some, numbers)
        pairs.append((some[:count], numbers[:count]))
        room = 2 * room if done == before else room
    return joined(pairs)


def joined(pairs: list[Pairs]) -> Pairs:
    """Put pairs one behind the other."""
    if len(pairs) == 1:
        return pairs[0]
    if not pairs:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate([rows for rows, _ in pairs]), np.concatenate([numbers for _, numbers in pairs])


def _rings_of(polygons: npt.NDArray[Any]) -> tuple[Floats, Ints]:
    """List the corners of polygons, a NaN corner between two rings of one, and where those of each begin."""
    import shapely

    parts, part_of = shapely.get_parts(polygons, return_index=True)
    rings, ring_of = shapely.get_rings(parts, return_index=True)
    xy, corner_of = shapely.get_coordinates(rings, return_index=True)
    owner = part_of[ring_of]
    goes_on = np.flatnonzero(owner[1:] == owner[:-1])
    ends = np.searchsorted(corner_of, goes_on, side="right")
    counts = np.bincount(owner[corner_of], minlength=len(polygons))
    counts += np.bincount(owner[goes_on], minlength=len(polygons))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return np.insert(xy, ends, np.nan, axis=0), offsets.astype(np.int64)
