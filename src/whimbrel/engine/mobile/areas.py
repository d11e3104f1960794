"""Areas: where interests are, as arrays, and what lies in them.

An area is a circle, a box, a polygon, or nowhere. Circles are round on the globe; the sides of all others are
straight in the coordinates given, and what crosses the antimeridian is laid out beyond 180 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.kernels import areas as k
from whimbrel.engine.kernels import shapes
from whimbrel.engine.kernels.place_index import boxes_around
from whimbrel.engine.locations import wkb_of_corners
from whimbrel.engine.row_store import different, offsets_of, ranges
from whimbrel.engine.shapes import NO_SHAPE
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.errors import DataError, QueryError
from whimbrel.graph.mobile import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    Interest,
    OutlineInterest,
    SectorInterest,
)
from whimbrel.model.antimeridian import unwrapped
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import EARTH_RADIUS_M, as_circle, circle_box, invalid_reason, wkt_column
from whimbrel.space.kernels.exact import BOX, CIRCLE, POLYGON

if TYPE_CHECKING:
    import shapely

NOWHERE = k.NOWHERE
NO_RINGS = -1

DEGREES_OF_ARC = 5.0
"""How far apart the corners of a sector's arc are, at most."""
QUARTER = 8
"""So many corners stand for a quarter of a circle, where a polygon has to."""
_DECIMALS = {Coordinates.PLANE: 6, Coordinates.LONLAT: 10}
"""Of the corners of polygons that are shown for circles: thousandths of a millimetre, hundredths of one."""
_ROUND_A_BOX = [0, 1, 2, 1, 2, 3, 0, 3, 0, 1]
"""The numbers of a box that are the coordinates of its corners, one after the other."""
_WHOLE_GLOBE = (-180.0, -90.0, 180.0, 90.0)


@dataclass(frozen=True, slots=True)
class AreaSet:
    """Some areas, numbered from 0."""

    coordinates: Coordinates
    kind: npt.NDArray[np.int8]
    """`CIRCLE`, `BOX`, `POLYGON` or `NOWHERE`."""
    numbers: FloatArray
    """A row each: x, y, radius and limit of a circle, else the bounding box."""
    rings: Int64Array
    """Where the rings of a polygon begin in `corners`; `NO_RINGS` for all others."""
    corners: FloatArray
    """Number of corners of a polygon, then x and y of each; rings are closed, and NaN parts them."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def is_lonlat(self) -> bool:
        """Whether coordinates are longitude and latitude."""
        return self.coordinates is Coordinates.LONLAT

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What kernels read of areas."""
        return self.kind, self.numbers, self.rings, self.corners

    def take(self, rows: Int64Array | BoolArray) -> AreaSet:
        """Give some of them."""
        rings = self.rings[rows]
        new, corners = np.full(len(rings), NO_RINGS, np.int64), self.corners[:0]
        has_rings = np.flatnonzero(rings != NO_RINGS)
        if len(has_rings):
            first = rings[has_rings]
            sizes = 1 + 2 * self.corners[first].astype(np.int64)
            corners = self.corners[ranges(first, sizes)]
            new[has_rings] = offsets_of(sizes)[:-1]
        return AreaSet(self.coordinates, self.kind[rows], self.numbers[rows], new, corners)

    @staticmethod
    def concat(parts: Sequence[AreaSet]) -> AreaSet:
        """Put several lots one after the other."""
        begins = offsets_of(np.array([len(part.corners) for part in parts]))
        rings = [
            np.where(part.rings == NO_RINGS, NO_RINGS, part.rings + begin)
            for part, begin in zip(parts, begins, strict=False)
        ]
        return AreaSet(
            parts[0].coordinates,
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate(rings),
            np.concatenate([part.corners for part in parts]),
        )

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        blocks.put_json(f"{name}/coordinates", self.coordinates.value)
        blocks.put_arrays(name, {each: getattr(self, each) for each in _ARRAYS})

    @classmethod
    def load(cls, blocks: Blocks, name: str) -> AreaSet:
        """Read what `save` wrote."""
        return cls(Coordinates(blocks.json(f"{name}/coordinates")), **blocks.arrays(name))

    def keys(self) -> list[bytes]:
        """Give what is the same of two areas if they are one and the same, and else is not."""
        numbers = self.numbers + 0.0  # below nought, too, nought is nought
        kinds = self.kind.astype("S2")
        rows = [kind + row.tobytes() for kind, row in zip(kinds.tolist(), numbers, strict=True)]
        for place in np.flatnonzero(self.rings != NO_RINGS).tolist():
            rows[place] += (self._ring(int(self.rings[place])) + 0.0).tobytes()
        return rows

    def bounds(self) -> FloatArray:
        """Give their bounding boxes, a row each; NaN for what is nowhere.

        Longitudes may lie beyond 180 degrees.
        """
        found = self.numbers.copy()
        found[self.kind == NOWHERE] = np.nan
        for row in np.flatnonzero(self.kind == CIRCLE):
            x, y, radius_m, _ = self.numbers[row].tolist()
            found[row] = circle_box(("circle", x, y, radius_m), self.coordinates)
        return found

    def shapes(self) -> npt.NDArray[np.object_]:
        """Give those that are boxes or polygons as Shapely polygons, as they are laid out; else None."""
        import shapely

        found = np.full(len(self), None, dtype=object)
        boxes = np.flatnonzero(self.kind == BOX)
        found[boxes] = shapely.box(*self.numbers[boxes].T)
        for row in np.flatnonzero(self.kind == POLYGON):
            found[row] = self._polygon(int(self.rings[row]))
        return found

    def _polygon(self, first: int) -> shapely.Geometry:
        import shapely

        corners = self._ring(first).reshape(-1, 2)
        gaps = np.flatnonzero(np.isnan(corners[:, 0]))
        if not len(gaps):
            return shapely.polygons(corners)
        rings = [ring[~np.isnan(ring[:, 0])] for ring in np.split(corners, gaps)]
        # Which ring is a hole of which other one shows by what lies where.
        return shapely.build_area(shapely.multilinestrings([shapely.linestrings(ring) for ring in rings]))

    def _ring(self, first: int) -> FloatArray:
        """Give the numbers of all corners of a polygon."""
        return self.corners[first + 1 : first + 1 + 2 * int(self.corners[first])]

    def laid_out(self) -> tuple[FloatArray, Int64Array]:
        """Lay those that are boxes or polygons out as shapes are; give where each begins, too.

        The point that stands for each is a corner.
        """
        is_polygon = self.kind == POLYGON
        counts = np.where(self.kind == BOX, 5, 0)
        counts[is_polygon] = self.corners[self.rings[is_polygon]]
        begins = offsets_of(np.where(counts > 0, shapes.CORNERS + 2 * counts, 0))
        data, places = np.empty(int(begins[-1])), begins[:-1]
        polygons, boxes = places[is_polygon], places[self.kind == BOX]
        taken = ranges(self.rings[is_polygon] + 1, 2 * counts[is_polygon])
        data[ranges(polygons + shapes.CORNERS, 2 * counts[is_polygon])] = self.corners[taken]
        around = self.numbers[self.kind == BOX][:, _ROUND_A_BOX]
        data[boxes[:, None] + shapes.CORNERS + np.arange(10)] = around
        for some, of_kind in ((polygons, is_polygon), (boxes, self.kind == BOX)):
            data[some] = counts[of_kind]
            data[some[:, None] + np.arange(1, 5)] = self.numbers[of_kind]
            data[some[:, None] + np.arange(5, 7)] = data[some[:, None] + shapes.CORNERS + np.arange(2)]
        return data, places

    def boxes(self) -> FloatArray:
        """Give boxes around them, a row each, for looking up: what is as wide as the globe has no ends.

        Longitudes may lie beyond 180 degrees; NaN for what is nowhere.
        """
        found = np.full((len(self), 4), np.nan)
        boxes_around(self.kind, self.numbers, self.is_lonlat, found)
        return found

    def texts(self) -> pa.Array:
        """Write them as WKT; null for what is nowhere."""
        return pa.array(wkt_column(self.wkb().to_numpy(zero_copy_only=False)), pa.string())

    def wkb(self) -> pa.Array:
        """Write them as well-known binary, as deliveries show them; null for what is nowhere.

        Circles are shown as polygons. What crosses the antimeridian has corners on both sides of it.
        """
        is_circle, is_polygon = self.kind == CIRCLE, self.kind == POLYGON
        counts = np.select([self.kind == BOX, is_circle], [4, 4 * QUARTER], 0)
        counts[is_polygon] = self.corners[self.rings[is_polygon]] - 1
        special = self._of_several_rings() | self._holds_a_pole()
        counts[special] = 0
        offsets = offsets_of(counts)
        points = np.empty((int(offsets[-1]), 2))
        begins, polygons = offsets[:-1], np.flatnonzero(is_polygon & ~special)
        taken = ranges(self.rings[polygons] + 1, 2 * counts[polygons])
        points[ranges(begins[polygons], counts[polygons])] = self.corners[taken].reshape(-1, 2)
        boxes, circles = np.flatnonzero(self.kind == BOX), np.flatnonzero(is_circle & ~special)
        around = self.numbers[boxes][:, _ROUND_A_BOX[:8]]
        points[begins[boxes][:, None] + np.arange(4)] = around.reshape(-1, 4, 2)
        points[begins[circles][:, None] + np.arange(4 * QUARTER)] = self._around_circles(circles)
        if self.is_lonlat:
            points = _within_180(points)
        written = wkb_of_corners(offsets, *plain(points.T))
        if not special.any():
            return written
        others = pa.array(self._special_wkb(np.flatnonzero(special)), pa.binary())
        return pc.replace_with_mask(written, pa.array(special), others)

    def _of_several_rings(self) -> BoolArray:
        """Tell which polygons have holes or parts."""
        found = np.zeros(len(self), np.bool_)
        gaps = np.flatnonzero(np.isnan(self.corners))
        if len(gaps):
            polygons = np.flatnonzero(self.rings != NO_RINGS)
            order = np.argsort(self.rings[polygons])
            at = np.searchsorted(self.rings[polygons][order], gaps, side="right") - 1
            found[polygons[order[at]]] = True
        return found

    def _holds_a_pole(self) -> BoolArray:
        """Tell which circles reach a pole, so that their borders are no polygons in degrees."""
        if not self.is_lonlat:
            return np.zeros(len(self), np.bool_)
        away = np.minimum(self.numbers[:, 2] / EARTH_RADIUS_M, np.pi)
        reaches: BoolArray = np.abs(np.radians(self.numbers[:, 1])) + away >= np.pi / 2
        return reaches & (self.kind == CIRCLE)

    def _special_wkb(self, rows: Int64Array) -> npt.NDArray[np.object_]:
        """Write what has several rings, and circles that hold a pole."""
        import shapely

        found = np.empty(len(rows), dtype=object)
        for place, row in enumerate(rows.tolist()):
            if self.kind[row] == POLYGON:
                found[place] = self._polygon(int(self.rings[row]))
                continue
            _, y, radius_m, _ = self.numbers[row]
            lat, away = math.radians(y), min(radius_m / EARTH_RADIUS_M, math.pi)
            (border,) = self._around_circles(np.array([row]))
            found[place] = _around_a_pole(border, lat + away >= math.pi / 2, lat - away <= -math.pi / 2)
        if self.is_lonlat:
            found = shapely.transform(found, _within_180)
        return np.asarray(shapely.to_wkb(found, byte_order=1), dtype=object)

    def _around_circles(self, circles: Int64Array) -> FloatArray:
        """Give the corners of the polygons that are shown for circles."""
        x, y, radius_m, _ = self.numbers[circles].T[:, :, None]
        turns = np.arange(4 * QUARTER) * (np.pi / 2 / QUARTER)
        decimals = _DECIMALS[self.coordinates]
        if not self.is_lonlat:
            return np.stack([x + radius_m * np.cos(turns), y + radius_m * np.sin(turns)], axis=2).round(
                decimals
            )
        away, lat = np.minimum(radius_m / EARTH_RADIUS_M, np.pi), np.radians(y)
        up = np.sin(lat) * np.cos(away) + np.cos(lat) * np.sin(away) * np.sin(turns)
        across = np.degrees(
            np.arctan2(np.cos(turns) * np.sin(away) * np.cos(lat), np.cos(away) - np.sin(lat) * up)
        )
        return np.stack([x + across, np.degrees(np.arcsin(np.clip(up, -1, 1)))], axis=2).round(decimals)


_ARRAYS = ("kind", "numbers", "rings", "corners")


def _within_180(points: FloatArray) -> FloatArray:
    x = points[:, 0]
    return np.column_stack([np.where(np.abs(x) > 180.0, (x + 180.0) % 360.0 - 180.0, x), points[:, 1]])


def _around_a_pole(corners: FloatArray, north: bool, south: bool) -> shapely.Geometry:
    """Draw what holds a pole: the border from west to east, closed along the pole."""
    import shapely

    if north and south:
        return shapely.box(*_WHOLE_GLOBE)
    border = _within_180(corners)
    border = border[np.argsort(border[:, 0], kind="stable")]
    lat, pole = (border[0, 1] + border[-1, 1]) / 2, 90.0 if north else -90.0
    ends = [(180.0, lat), (180.0, pole), (-180.0, pole), (-180.0, lat)]
    return shapely.polygons(np.concatenate([border, ends]))


@dataclass(frozen=True, slots=True)
class ObjectPlaces:
    """Where focal objects are when interests begin."""

    x: FloatArray
    y: FloatArray
    from_x: FloatArray
    from_y: FloatArray
    """Where each was before, in another place; NaN if it has not moved."""
    radius_m: FloatArray
    """The radius that an object has of its own, of circles; NaN: that of the query."""

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Int64Array) -> ObjectPlaces:
        """Give some of them."""
        return ObjectPlaces(
            self.x[rows], self.y[rows], self.from_x[rows], self.from_y[rows], self.radius_m[rows]
        )


def areas_at(
    interest: Interest,
    places: ObjectPlaces,
    coordinates: Coordinates,
    *,
    routes: Sequence[str | None] | npt.NDArray[np.object_] | None = None,
) -> AreaSet:
    """Give the areas of an interest at some places.

    Parameters
    ----------
    routes
        For corridors: the last route that each object has said, as WKT, or None. Without one, with one that
        cannot be read or has less than two points, an interest is nowhere.

    Raises
    ------
    QueryError
        For an interest that a function makes: `areas_of_shapes` takes what it gave.
    """
    match interest:
        case CircleInterest(radius_m):
            own = np.where(np.isnan(places.radius_m), radius_m, places.radius_m)
            return circles(places.x, places.y, own, coordinates)
        case BoxInterest(width_m, height_m):
            x, y = width_m / 2, height_m / 2
            laid_out = _outlines(places, ((-x, -y), (x, -y), (x, y), (-x, y)), coordinates)
            kind, rings = np.full_like(laid_out.kind, BOX), np.full_like(laid_out.rings, NO_RINGS)
            return AreaSet(coordinates, kind, laid_out.numbers, rings, laid_out.corners[:0])
        case OutlineInterest(corners):
            return _outlines(places, corners, coordinates)
        case SectorInterest(distance_m, degrees):
            return _sectors(places, distance_m, degrees, coordinates)
        case CorridorInterest(_, distance_m):
            return _corridors(places, distance_m, coordinates, [] if routes is None else routes)
    raise QueryError(
        f"the interest {interest.name!r} is made by a function", hint="call areas_of_shapes with its results"
    )


def circles(x: FloatArray, y: FloatArray, radius_m: FloatArray, coordinates: Coordinates) -> AreaSet:
    """Give circles as areas."""
    if coordinates is Coordinates.LONLAT:
        limit = np.sin(np.minimum(radius_m / (2 * EARTH_RADIUS_M), np.pi / 2)) ** 2
    else:
        limit = radius_m * radius_m
    numbers = np.stack([x, y, radius_m, limit], axis=1).astype(np.float64)
    kind = np.full(len(x), CIRCLE, np.int8)
    return AreaSet(coordinates, kind, numbers, np.full(len(x), NO_RINGS, np.int64), np.zeros(0))


def nowhere(size: int, coordinates: Coordinates) -> AreaSet:
    """Give areas that hold nothing."""
    kind = np.full(size, NOWHERE, np.int8)
    return AreaSet(
        coordinates, kind, np.full((size, 4), np.nan), np.full(size, NO_RINGS, np.int64), np.zeros(0)
    )


def _outlines(
    places: ObjectPlaces, outline: Sequence[tuple[float, float]], coordinates: Coordinates
) -> AreaSet:
    corners = np.array(outline, np.float64)
    if (corners[0] == corners[-1]).all():
        corners = corners[:-1]
    counts = np.full(len(places), len(corners))
    east, north = (np.tile(axis, len(places)) for axis in corners.T)
    return _around(places, counts, east, north, coordinates)


def _sectors(places: ObjectPlaces, distance_m: float, degrees: float, coordinates: Coordinates) -> AreaSet:
    reach = np.full(len(places), distance_m, np.float64)
    whole = circles(places.x, places.y, reach, coordinates)
    moved = np.flatnonzero(~(np.isnan(places.from_x) | np.isnan(places.from_y)))
    if degrees >= 360.0 or not len(moved):
        return whole
    some = places.take(moved)
    heading = _metres(some.from_x, some.from_y, np.arange(len(some)), some.x, some.y, coordinates)
    steps = math.ceil(degrees / DEGREES_OF_ARC)
    east, north = np.empty(len(some) * (steps + 2)), np.empty(len(some) * (steps + 2))
    k.sectors(*heading, reach[moved], math.radians(degrees), steps, east, north)
    laid_out = _around(some, np.full(len(some), steps + 2), east, north, coordinates)
    return _replaced(whole, moved, laid_out)


def _corridors(
    places: ObjectPlaces,
    distance_m: float,
    coordinates: Coordinates,
    routes: Sequence[str | None] | np.ndarray,
) -> AreaSet:
    import shapely

    found = nowhere(len(places), coordinates)
    texts = np.array([text if isinstance(text, str) else None for text in routes], dtype=object)
    lines = np.asarray(shapely.from_wkt(texts, on_invalid="ignore"), dtype=object)
    known = np.flatnonzero(shapely.get_num_coordinates(lines) >= 2)
    if not len(known):
        return found
    points, owner = shapely.get_coordinates(lines[known], return_index=True)
    some = places.take(known)
    flat = np.stack(_metres(some.x, some.y, owner, points[:, 0], points[:, 1], coordinates), axis=1)
    widened = shapely.buffer(shapely.linestrings(flat, indices=owner), distance_m, quad_segs=QUARTER)
    border, owner = shapely.get_coordinates(shapely.get_exterior_ring(widened), return_index=True)
    is_last = np.ones(len(owner), np.bool_)
    is_last[:-1] = owner[1:] != owner[:-1]
    corners = border[~is_last]  # that is the first one again
    counts = np.bincount(owner, minlength=len(some)) - 1
    return _replaced(found, known, _around(some, counts, corners[:, 0], corners[:, 1], coordinates))


def _metres(
    x: FloatArray,
    y: FloatArray,
    owner: Int64Array,
    to_x: FloatArray,
    to_y: FloatArray,
    coordinates: Coordinates,
) -> tuple[FloatArray, FloatArray]:
    """Tell how far east and north of places points lie."""
    east, north = np.empty(len(to_x)), np.empty(len(to_x))
    k.metres_from(
        plain(x), plain(y), coordinates is Coordinates.LONLAT, plain(owner, np.int64),
        plain(to_x), plain(to_y), east, north,
    )  # fmt: skip
    return east, north


def _around(
    places: ObjectPlaces, counts: Int64Array, east: FloatArray, north: FloatArray, coordinates: Coordinates
) -> AreaSet:
    """Lay out polygons whose corners lie so many metres east and north of places."""
    sizes = offsets_of(2 * counts + 3)
    corners, numbers = np.empty(int(sizes[-1])), np.empty((len(places), 4))
    k.lay_around(
        plain(places.x), plain(places.y), coordinates is Coordinates.LONLAT, offsets_of(counts),
        plain(east), plain(north), sizes[:-1], numbers, corners,
    )  # fmt: skip
    return AreaSet(coordinates, np.full(len(places), POLYGON, np.int8), numbers, sizes[:-1], corners)


def _replaced(areas: AreaSet, rows: Int64Array, others: AreaSet) -> AreaSet:
    """Put others in the place of some areas."""
    if len(rows) == len(areas):
        return others
    order = np.arange(len(areas))
    order[rows] = len(areas) + np.arange(len(rows))
    return AreaSet.concat([areas, others]).take(order)


def areas_of_shapes(shapes: Sequence[Any], coordinates: Coordinates) -> AreaSet:
    """Give shapes from outside as areas: polygons as Shapely or WKT, circles as text, or None: nowhere.

    Raises
    ------
    QueryError
        With the first one that is something else.
    """
    parts = [_area_of(shape, coordinates) for shape in shapes]
    return AreaSet.concat([nowhere(0, coordinates), *parts])


def _area_of(shape: Any, coordinates: Coordinates) -> AreaSet:
    import shapely

    if shape is None:
        return nowhere(1, coordinates)
    circle = as_circle(shape) if isinstance(shape, str) else None
    if circle is not None:
        x, y, radius_m = (np.array([number]) for number in circle[1:])
        return circles(x, y, radius_m, coordinates)
    polygon = _checked(shape)
    if polygon.is_empty:
        return nowhere(1, coordinates)
    if coordinates is Coordinates.LONLAT:
        polygon = unwrapped(polygon)
    rings = [shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.get_parts(polygon))]
    corners = rings[0]
    for ring in rings[1:]:
        corners = np.concatenate([corners, np.full((1, 2), np.nan), ring])
    return AreaSet(
        coordinates,
        np.full(1, POLYGON, np.int8),
        np.array([polygon.bounds], np.float64),
        np.zeros(1, np.int64),
        np.concatenate([[len(corners)], corners.ravel()]),
    )


def _checked(shape: Any) -> shapely.Geometry:
    """Read a polygon that a function gave."""
    import shapely

    from whimbrel.space.geometry import parse

    hint = "give a Shapely polygon, its WKT, or None for no interest"
    if isinstance(shape, str | bytes):
        try:
            shape = parse(shape)
        except DataError as error:
            raise QueryError(f"the area of an interest cannot be read: {error}", hint=hint) from error
    if not isinstance(shape, shapely.Geometry) or shape.geom_type not in ("Polygon", "MultiPolygon"):
        kind = shape.geom_type if isinstance(shape, shapely.Geometry) else type(shape).__name__
        raise QueryError(f"the area of an interest is a polygon, not a {kind}", hint=hint)
    shape = shapely.force_2d(shape)
    for part in shapely.get_parts(shape):
        reason = invalid_reason(part)
        if reason is not None and not part.is_empty:
            raise QueryError(f"the area of an interest cannot be used: {reason}", hint=hint)
    return shape


def plain(array: np.ndarray, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Give an array in the one form for which kernels are compiled."""
    return np.require(array, dtype, ["C", "W"])


def holds(areas: AreaSet, which: Int64Array, x: FloatArray, y: FloatArray) -> BoolArray:
    """Tell for pairs of an area and a point whether it lies in it, borders included; NaN lies nowhere."""
    inside = np.zeros(len(which), np.bool_)
    if len(which):
        k.points_in_areas(*areas.arrays, areas.is_lonlat, plain(which, np.int64), plain(x), plain(y), inside)
    return inside


def covers(areas: AreaSet, which: Int64Array, data: FloatArray, places: Int64Array) -> BoolArray:
    """Tell for pairs of an area and a shape whether all of the shape belongs to the area.

    Parameters
    ----------
    data, places
        Shapes as `whimbrel.engine.shapes` lays them out, and where that of each pair is.
    """
    return _compared(areas, which, data, places, shapes.INSIDE, shapes.FARTHEST)


def meets(areas: AreaSet, which: Int64Array, data: FloatArray, places: Int64Array) -> BoolArray:
    """Tell for pairs of an area and a shape whether they have a point in common, borders included.

    Parameters
    ----------
    data, places
        Shapes as `whimbrel.engine.shapes` lays them out, and where that of each pair is.
    """
    return _compared(areas, which, data, places, shapes.MEET, shapes.APART)


def _compared(
    areas: AreaSet,
    which: Int64Array,
    data: FloatArray,
    places: Int64Array,
    of_polygon: int,
    of_circle: int,
) -> BoolArray:
    """Ask one thing about polygons, and of circles how far from the centre the shape is."""
    answers = np.zeros(len(which), np.bool_)
    kinds = areas.kind[which]
    in_polygons = np.flatnonzero(kinds > CIRCLE)
    if len(in_polygons):
        used, of = different(which[in_polygons])
        laid_out, begins = areas.take(used).laid_out()
        everything = np.concatenate([data, laid_out])
        found = _related(of_polygon, areas, everything, places[in_polygons], len(data) + begins[of])
        answers[in_polygons] = found == 1.0
    round_ones = np.flatnonzero(kinds == CIRCLE)
    x, y, radius_m, _ = areas.numbers[which[round_ones]].T
    points = np.full(len(round_ones), NO_SHAPE, np.int64)
    away = _related(of_circle, areas, data, places[round_ones], points, x, y)
    answers[round_ones] = away <= radius_m
    return answers


def _related(
    asked: int,
    areas: AreaSet,
    data: FloatArray,
    one: Int64Array,
    two: Int64Array,
    x: FloatArray | None = None,
    y: FloatArray | None = None,
) -> FloatArray:
    answers, zeros = np.zeros(len(one)), np.zeros(len(one))
    if len(one):
        x, y = (zeros if axis is None else plain(axis) for axis in (x, y))
        shapes.related_rows(asked, areas.is_lonlat, data, one, zeros, zeros, two, x, y, answers)
    return answers


def snapped(
    x: FloatArray, y: FloatArray, grid_m: float, coordinates: Coordinates
) -> tuple[FloatArray, FloatArray]:
    """Give the nearest points of a grid; of two equally near ones, that to the north or east."""
    new_x, new_y = np.empty(len(x)), np.empty(len(x))
    k.snap(plain(x), plain(y), float(grid_m), coordinates is Coordinates.LONLAT, new_x, new_y)
    return new_x, new_y
