"""How far samples lie from regions, and where the straight line between two samples meets one.

All geometry of motion is here. Distances are metres; the sides of a region are straight in its coordinates;
in longitude and latitude distances go by a plane that touches the earth at the sample, which is exact to a
millionth for a few kilometres. A region may reach across the date line: with longitudes beyond 180, or in two
pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whimbrel.engine.kernels.circles import circle_distances, circle_shares, circles_met
from whimbrel.engine.kernels.polygon_borders import (
    border_distances,
    boxes_meeting,
    cell_counts,
    fill_cells,
    line_meets,
)
from whimbrel.engine.row_store import offsets_of
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.model.antimeridian import unwrapped
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import METRES_PER_DEGREE, as_circle, circle_box, parse

FEW = 4
"""So many regions are tried one by one; more are looked up in a grid."""
_LEAST_COSINE = 1e-6
"""Close to the poles, degrees of longitude are no measure of anything."""


@dataclass(frozen=True, slots=True)
class RegionDistances:
    """Samples and regions that lie near each other, by sample and then by region.

    `metres` is the distance to the region, below zero inside it: how far the border is.
    """

    sample: Int64Array
    region: Int64Array
    metres: FloatArray


class WatchedRegions:
    """The regions of a motion, ready to be asked about many samples."""

    def __init__(self, wkts: tuple[str, ...], coordinates: Coordinates) -> None:
        import shapely

        self.lonlat = coordinates is Coordinates.LONLAT
        round_ones = [as_circle(wkt) for wkt in wkts]
        self.circles: FloatArray = np.array([(np.nan,) * 3 if c is None else c[1:] for c in round_ones])
        """x, y and radius in metres of the regions that are circles, NaN for others; the shape of a circle is
        that of its centre."""
        self.has_circles = any(circle is not None for circle in round_ones)
        shapes = [
            parse(wkt) if circle is None else shapely.Point(circle[1:3])
            for wkt, circle in zip(wkts, round_ones, strict=True)
        ]
        shapes = [unwrapped(shape) for shape in shapes] if self.lonlat else shapes
        self.shapes: Any = np.array(shapes, dtype=object)
        shapely.prepare(self.shapes)
        self.bounds: FloatArray = shapely.bounds(self.shapes)
        for number, circle in enumerate(round_ones):
            if circle is not None:
                self.bounds[number] = circle_box(circle, coordinates)

    def __len__(self) -> int:
        return len(self.shapes)

    # -- samples -------------------------------------------------------------------------------------------

    def near(self, x: FloatArray, y: FloatArray, reach: FloatArray, *, sharp: bool) -> RegionDistances:
        """Find the regions that lie within `reach` metres of each sample.

        `sharp` asks for distances; else all that counts is whether a sample lies inside (0 metres).
        """
        pairs = []
        for shift in self._shifts(x):
            sample, region = self._candidates(x + shift, y, reach)
            inside = self._inside(region, x[sample] + shift, y[sample])
            if sharp:
                metres = self._border(region, x[sample] + shift, y[sample])
                metres = np.where(inside, -metres, metres)
                kept = metres <= reach[sample]
            else:
                metres, kept = np.zeros(len(sample)), inside
            pairs.append((sample[kept], region[kept], metres[kept]))
        return _once_each(*(np.concatenate(column) for column in zip(*pairs, strict=True)))

    def distance(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Measure how far each sample is from the region that is nearest to it, 0 inside."""
        least = np.full(len(x), np.inf)
        every = np.arange(len(x))
        for number in range(len(self)):
            region = np.full(len(x), number, np.int64)
            for shift in (0.0, 360.0, -360.0) if self.lonlat else (0.0,):
                metres = self._border(region, x + shift, y)
                inside = self._inside(region, x + shift, y)
                least[every] = np.minimum(least, np.where(inside, 0.0, metres))
        return least

    def _shifts(self, x: FloatArray) -> tuple[float, ...]:
        """List by how many degrees samples are moved so that regions across the date line see them."""
        return (0.0, 360.0, -360.0) if self.lonlat and len(x) else (0.0,)

    def _margins(self, y: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Convert a reach in metres to coordinates, across and up; a little more does no harm."""
        if not self.lonlat:
            return reach, reach
        up = reach / METRES_PER_DEGREE * 1.001
        cosine = np.maximum(np.cos(np.radians(np.minimum(np.abs(y) + up, 90.0))), _LEAST_COSINE)
        return np.minimum(up / cosine, 360.0), up

    def _candidates(self, x: FloatArray, y: FloatArray, reach: FloatArray) -> tuple[Int64Array, Int64Array]:
        """Find the pairs of samples and regions whose boxes meet."""
        across, up = self._margins(y, reach)
        x0, y0, x1, y1 = self._whole
        kept = np.flatnonzero((x + across >= x0) & (x - across <= x1) & (y + up >= y0) & (y - up <= y1))
        x, y, across, up = x[kept], y[kept], across[kept], up[kept]
        sample, region = self._boxes_meeting(x - across, y - up, x + across, y + up)
        return kept[sample], region

    def _boxes_meeting(
        self, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray
    ) -> tuple[Int64Array, Int64Array]:
        if len(self) > FEW:
            return self._grid.boxes_meeting(x0, y0, x1, y1)
        pairs = []
        for number, (left, low, right, high) in enumerate(self.bounds):
            meets = np.flatnonzero((x1 >= left) & (x0 <= right) & (y1 >= low) & (y0 <= high))
            pairs.append((meets, np.full(len(meets), number, np.int64)))
        sample, region = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return sample, region

    def _inside(self, region: Int64Array, x: FloatArray, y: FloatArray) -> BoolArray:
        import shapely

        shapes = self.shapes[0] if len(self) == 1 else self.shapes[region]
        inside = np.array(shapely.intersects_xy(shapes, x, y), np.bool_)
        if self.has_circles:
            metres = np.full(len(x), np.nan)
            circle_distances(self.lonlat, self.circles, region, x, y, metres)
            inside = np.where(np.isnan(metres), inside, metres <= 0.0)
        return inside

    def _border(self, region: Int64Array, x: FloatArray, y: FloatArray) -> FloatArray:
        metres = np.empty(len(x))
        border_distances(*self._rings, region, x, y, METRES_PER_DEGREE if self.lonlat else 0.0, metres)
        if self.has_circles:
            circle_distances(self.lonlat, self.circles, region, x, y, metres)
        return np.abs(metres)

    # -- lines between samples -----------------------------------------------------------------------------

    def through(
        self, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray
    ) -> tuple[Int64Array, Int64Array]:
        """Find the straight lines that meet a region, and the regions, by line and then by region."""
        import shapely

        x1 = self._unwrapped(x0, x1)
        crossings = []
        for shift in self._shifts(x0):
            a, b = x0 + shift, x1 + shift
            low, high = np.minimum(a, b), np.maximum(a, b)
            line, region = self._boxes_meeting(low, np.minimum(y0, y1), high, np.maximum(y0, y1))
            lines = _lines(a[line], y0[line], b[line], y1[line])
            meets = np.array(shapely.intersects(self.shapes[region], lines), np.bool_)
            if self.has_circles:
                circles_met(self.lonlat, self.circles, region, a[line], y0[line], b[line], y1[line], meets)
            crossings.append((line[meets], region[meets], np.zeros(int(meets.sum()))))
        nearby = _once_each(*(np.concatenate(column) for column in zip(*crossings, strict=True)))
        return nearby.sample, nearby.region

    def meeting(
        self,
        region: Int64Array,
        x0: FloatArray,
        y0: FloatArray,
        x1: FloatArray,
        y1: FloatArray,
        *,
        first: bool,
    ) -> FloatArray:
        """Compute the share of each line at which it first (or last) meets its region; NaN for never."""
        x1 = self._unwrapped(x0, x1)
        share = np.full(len(x0), np.nan)
        moves = (x0 != x1) | (y0 != y1)
        for shift in self._shifts(x0):
            for at, x, y in ((0.0, x0, y0), (1.0, x1, y1)):
                inside = self._inside(region, x + shift, y) & moves
                share[inside] = (np.fmin if first else np.fmax)(share[inside], at)
            line_meets(*self._rings, region, x0 + shift, y0, x1 + shift, y1, first, share)
        if self.has_circles:
            circle_shares(self.lonlat, self.circles, region, x0, y0, x1, y1, first, share)
        return share

    def _unwrapped(self, x0: FloatArray, x1: FloatArray) -> FloatArray:
        """Let lines go the short way round the earth."""
        return x1 - 360.0 * np.round((x1 - x0) / 360.0) if self.lonlat else x1

    # -- what is made once -----------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> tuple[float, float, float, float]:
        low, high = self.bounds[:, :2].min(axis=0), self.bounds[:, 2:].max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @cached_property
    def _grid(self) -> RegionGrid:
        return RegionGrid(self.bounds, self._whole)

    @cached_property
    def _rings(self) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Find where the rings of each region begin, where the corners of each ring do, and all corners."""
        import shapely

        parts, of_region = shapely.get_parts(self.shapes, return_index=True)
        rings, of_part = shapely.get_rings(parts, return_index=True)
        corners, of_ring = shapely.get_coordinates(rings, return_index=True)
        rings_of = np.searchsorted(of_region[of_part], np.arange(len(self) + 1)).astype(np.int64)
        corners_of = np.searchsorted(of_ring, np.arange(len(rings) + 1)).astype(np.int64)
        return rings_of, corners_of, np.ascontiguousarray(corners)


class RegionGrid:
    """Boxes of regions by the cells of a grid, so that those near a sample are found without trying all."""

    def __init__(self, bounds: FloatArray, whole: tuple[float, float, float, float]) -> None:
        self.bounds = bounds
        left, low, right, high = whole
        cells = max(1, int(np.sqrt(len(bounds))) * 2)
        size_x, size_y = max((right - left) / cells, 1e-9), max((high - low) / cells, 1e-9)
        self._shape = (left, low, size_x, size_y, cells, cells)
        counts = np.zeros(cells * cells, np.int64)
        cell_counts(bounds, *self._shape, counts)
        self._begins = offsets_of(counts)
        self._members = np.zeros(int(self._begins[-1]), np.int64)
        fill_cells(bounds, *self._shape, self._begins[:-1].copy(), self._members)

    def boxes_meeting(
        self, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray
    ) -> tuple[Int64Array, Int64Array]:
        """Find the pairs of a box and a region whose box it meets."""
        room = 2 * len(x0) + 64
        while True:
            box, region = np.zeros(room, np.int64), np.zeros(room, np.int64)
            count = boxes_meeting(
                self.bounds, *self._shape, self._begins, self._members, x0, y0, x1, y1, box, region
            )
            if count <= room:
                return box[:count], region[:count]
            room = count


def _lines(x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray) -> Any:
    import shapely

    return shapely.linestrings(np.stack([np.stack([x0, y0], axis=1), np.stack([x1, y1], axis=1)], axis=1))


def _once_each(sample: Int64Array, region: Int64Array, metres: FloatArray) -> RegionDistances:
    """Put pairs into order; of those that were found twice, keep the nearer."""
    order = np.lexsort((metres, region, sample))
    sample, region, metres = sample[order], region[order], metres[order]
    new = np.ones(len(sample), np.bool_)
    new[1:] = (sample[1:] != sample[:-1]) | (region[1:] != region[:-1])
    return RegionDistances(sample[new], region[new], metres[new])
