"""Rows by time and by their own location: it has to have a point in common with an interest.

Points are looked up as they are. What is more than a point is looked up by the centre of the box around it,
in areas that are larger by half the size of the box: rows are parted by that size, in powers of four, so
that a few that are large do not make the look-up of small ones any wider.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from whimbrel.engine.mobile.areas import NO_RINGS, AreaSet
from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.mobile.place_index import PlaceIndex
from whimbrel.engine.mobile.placed_rows import PlacedRows
from whimbrel.engine.shapes import NO_SHAPE, lay_out_shapes
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.model.schema import Coordinates
from whimbrel.space.kernels.exact import BOX

_SURE = 1e-9
"""Boxes are taken a little larger, as they are rounded."""
_SMALLEST = -32
"""Smaller boxes than this power of four are as good as points."""


class LocatedRows(PlacedRows):
    """Rows, numbered by whoever adds them: in order, and none earlier than those that were added before."""

    def __init__(self, coordinates: Coordinates) -> None:
        super().__init__(coordinates)
        self._coordinates = coordinates
        self._by_size: dict[int, PlaceIndex] = {}
        """Rows that are more than points, by the power of four that half of their boxes does not exceed."""

    def _index_rows(
        self, numbers: Int64Array, times: Int64Array, x: FloatArray, y: FloatArray, atoms: AtomPlaces
    ) -> None:
        is_point = atoms.shape == NO_SHAPE
        self._index.append(numbers[is_point], times[is_point], x[is_point], y[is_point])
        more = np.flatnonzero(~is_point)
        x0, y0, x1, y1 = (atoms.shapes[atoms.shape[more] + 1 + axis] for axis in range(4))
        power = np.frexp(np.maximum(x1 - x0, y1 - y0) / 2)[1]
        power = np.maximum(-(-power // 2), _SMALLEST)
        middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
        for size in np.unique(power).tolist():
            some = np.flatnonzero(power == size)
            rows = more[some]
            self._of_size(size).append(numbers[rows], times[rows], middle_x[some], middle_y[some])

    def _of_size(self, size: int) -> PlaceIndex:
        return self._by_size.setdefault(size, PlaceIndex(self._coordinates))

    def _candidates(
        self, areas: AreaSet, since: Int64Array, until: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        found = [self._index.find(areas, since, until)]
        around = areas.boxes() if self._by_size else np.zeros((0, 4))
        for size, index in self._by_size.items():
            found.append(index.find(_larger(areas, around, 4.0**size), since, until))
        which, numbers = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return which, numbers

    def _are_in(
        self,
        atoms: AtomPlaces,
        areas: AreaSet,
        which: Int64Array,
        own: Int64Array | None,  # noqa: ARG002 (what is found among all events is nobody's own)
    ) -> BoolArray:
        return atoms.meet(areas, which)

    def forget_before(self, time: int) -> None:
        """Let go of rows of before a time."""
        super().forget_before(time)
        for index in self._by_size.values():
            index.forget_before(time)
        self._by_size = {size: index for size, index in self._by_size.items() if len(index)}

    def save(self, blocks: Blocks, name: str) -> None:
        """Write all rows."""
        super().save(blocks, name)
        blocks.put_json(f"{name}/sizes", list(self._by_size))
        for size, index in self._by_size.items():
            index.save(blocks, f"{name}/size/{size}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        super().load(blocks, name)
        self._by_size = {}
        for size in blocks.json(f"{name}/sizes"):
            self._of_size(size).load(blocks, f"{name}/size/{size}")


def _larger(areas: AreaSet, around: FloatArray, by: float) -> AreaSet:
    """Give boxes around areas that reach so much farther on all sides; no area is lost by rounding."""
    more = by * (1 + _SURE) + _SURE * np.abs(np.where(np.isinf(around), 0.0, around)).max(axis=1)
    numbers = around + more[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])
    kind = np.where(np.isnan(around[:, 0]), areas.kind, BOX).astype(np.int8)
    return AreaSet(areas.coordinates, kind, numbers, np.full(len(areas), NO_RINGS), np.zeros(0))


def own_locations(wkb: pa.ChunkedArray, coordinates: Coordinates) -> AtomPlaces:
    """Read the locations of detections, each as the place of one event; NaN where one has none."""
    import shapely

    shapes = np.asarray(shapely.from_wkb(wkb.to_numpy()), dtype=object)
    kind = shapely.get_type_id(shapes)
    more = np.flatnonzero(kind > 0)
    x, y = shapely.get_x(shapes), shapely.get_y(shapes)
    shape = np.full(len(shapes), NO_SHAPE, np.int64)
    data, places = lay_out_shapes(shapes[more], coordinates is Coordinates.LONLAT)
    shape[more] = places
    x[more], y[more] = data[places + 5], data[places + 6]
    single = np.arange(len(shapes) + 1)
    nobody = np.full(len(shapes), -1, np.int64)
    return AtomPlaces(single, x, y, np.zeros(len(shapes), np.bool_), nobody, shape, data)
