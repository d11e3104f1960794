"""Regions: named, in WKT, or made of numbers; in the graph all of them are texts, WKT or a circle's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from whimbrel.errors import DataError, QueryError, Span, UnknownNameError
from whimbrel.graph.operators.motion import NamedRegion
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.values import Params, quantity
from whimbrel.model.length import LENGTHS
from whimbrel.model.schema import Coordinates

LAYER = "layer"
"""The function that reads many regions from a file."""

_SMALLER = "make it smaller, or give the region as a polygon in WKT"
_AREAS = ("Polygon", "MultiPolygon")
_PLACES = ("Point", *_AREAS)
_EXAMPLE = "write 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"


@dataclass(slots=True)
class NamedRegions:
    """The regions of a query, by name, as WKT."""

    params: Params
    coordinates: Coordinates | None
    named: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    """Where the query file is: layers are looked up from there."""
    layers: dict[str, tuple[NamedRegion, ...]] = field(default_factory=dict)

    def declare(self, statement: t.RegionNode) -> None:
        """Add a named region."""
        if statement.name in self.named:
            raise QueryError(f"the region {statement.name!r} is declared twice", statement.at)
        if statement.shape.function == LAYER:
            self.layers[statement.name] = self._layer(statement.shape)
            self.named[statement.name] = self._united(self.layers[statement.name])
        else:
            self.named[statement.name] = self.wkt(statement.shape)

    def wkt(self, shape: t.ShapeNode) -> str:
        """Work out a region: look it up, check its WKT, or compute it."""
        if shape.name is not None:
            return self._known(shape.name, shape.at)
        if shape.text is not None:
            return self._checked(shape.text, shape.at)
        if shape.function == LAYER:
            return self._united(self._layer(shape))
        numbers = [_number(argument, self.params) for argument in shape.arguments]
        if shape.function == "circle" and len(numbers) == 3:
            x, y, radius = numbers
            return self._circle(x, y, radius, shape.at)
        if shape.function == "box" and len(numbers) == 4:
            x1, y1, x2, y2 = numbers
            return self._checked(self._box(x1, y1, x2, y2, shape.at), shape.at)
        raise QueryError(
            f"{shape.function!r} with {len(numbers)} numbers is no region",
            shape.at,
            "write circle(x, y, 500 m), box(x1, y1, x2, y2), or WKT in quotes",
        )

    def place(self, shape: t.ShapeNode) -> str:
        """Work out a place that is a region or a point."""
        if shape.function == "point" and len(shape.arguments) == 2:
            x, y = (_number(argument, self.params) for argument in shape.arguments)
            return self._checked(f"POINT ({x!r} {y!r})", shape.at, _PLACES)
        if shape.text is not None:
            return self._checked(shape.text, shape.at, _PLACES)
        return self.wkt(shape)

    def named_regions(self, shape: t.ShapeNode) -> tuple[NamedRegion, ...]:
        """Build a region with its name, or all those of a layer, so that a detection can tell which one."""
        if shape.function == LAYER:
            return self._layer(shape)
        return self.layers.get(shape.name or "") or (NamedRegion(shape.name, self.wkt(shape)),)

    def _layer(self, shape: t.ShapeNode) -> tuple[NamedRegion, ...]:
        """Read `layer('shops.geojson', name = 'shop')`."""
        from whimbrel.io.layers import read_layer

        match shape.arguments:
            case (t.Constant(str() as file),):
                name = None
            case (t.Constant(str() as file), t.Compare((t.Name("name"), t.Constant(str() as name)), ("=",))):
                pass
            case _:
                raise QueryError(
                    "a layer is a file, and perhaps the property that names its regions",
                    shape.at,
                    "write layer('shops.geojson', name = 'shop')",
                )
        try:
            regions = read_layer(self.folder / file, name, self.coordinates)
        except DataError as error:
            hint = "layers are looked up beside the query file" if self.folder != Path() else None
            raise QueryError(str(error), shape.at, hint or "mend the file, or name another one") from error
        return tuple(NamedRegion(*region) for region in regions)

    def _united(self, regions: tuple[NamedRegion, ...]) -> str:
        """Join the regions of a layer, for conditions that ask whether an event lies in any of them."""
        import shapely

        from whimbrel.model.antimeridian import unwrapped
        from whimbrel.space.geometry import to_wkt

        shapes = list(shapely.from_wkt([region.wkt for region in regions]))
        if self.coordinates is Coordinates.LONLAT:
            shapes = [unwrapped(shape) for shape in shapes]
        return to_wkt(shapely.union_all(shapes))

    def _known(self, name: str, at: Span | None) -> str:
        if name in self.named:
            return self.named[name]
        if self.named:
            raise UnknownNameError("region", name, self.named, at)
        raise QueryError(
            f"no region is named {name!r}",
            at,
            f"declare it: 'region {name} = ...'; a list of values needs parentheses: 'in ({name})'",
        )

    def _circle(self, x: float, y: float, radius: float, at: Span | None) -> str:
        from whimbrel.space.geometry import circle_text

        if radius <= 0:
            raise QueryError(
                "a circle needs a radius above zero", at, "write for example circle(0, 0, 500 m)"
            )
        if not all(map(math.isfinite, (x, y, radius))):
            raise QueryError("this region is too large", at, _SMALLER)
        if self.coordinates is Coordinates.LONLAT and not (-180 <= x <= 180 and -90 <= y <= 90):
            raise QueryError(
                "the centre of the circle is no longitude and latitude", at, "write circle(lon, lat, 500 m)"
            )
        _check_distance((x - radius, y - radius, x + radius, y + radius), at)
        return circle_text(x, y, radius)

    def _box(self, x1: float, y1: float, x2: float, y2: float, at: Span | None) -> str:
        low, high = min(y1, y2), max(y1, y2)
        if self.coordinates is not Coordinates.LONLAT:
            left, right = min(x1, x2), max(x1, x2)
            return _polygon([(left, low), (right, low), (right, high), (left, high)], at)
        _check_degrees((min(x1, x2), low, max(x1, x2), high), at)
        # From west to east, across the antimeridian if the west is the larger number; corners at every
        # ninety degrees say that a wide box does not go the other way round.
        east = x2 if x1 <= x2 else x2 + 360.0
        steps = max(1, math.ceil((east - x1) / 90.0))
        along = [x1 + (east - x1) * step / steps for step in range(steps + 1)]
        border = [(lon, low) for lon in along] + [(lon, high) for lon in reversed(along)]
        return _polygon([(lon if lon <= 180.0 else lon - 360.0, lat) for lon, lat in border], at)

    def _checked(self, text: str, at: Span | None, kinds: tuple[str, ...] = _AREAS) -> str:
        # Shapely is slow to import, and most queries have no region.
        import numpy as np
        import shapely

        from whimbrel.model.antimeridian import goes_round_a_pole, unwrapped

        try:
            with np.errstate(all="ignore"):
                shape = shapely.from_wkt(text)
        except (shapely.errors.GEOSException, ValueError) as error:
            raise QueryError(f"this is no region in WKT: {error}", at, _EXAMPLE) from None
        if shape is None or shape.geom_type not in kinds or shape.is_empty:
            kind = "nothing" if shape is None or shape.is_empty else f"a {shape.geom_type}"
            wanted = "polygon" if kinds == _AREAS else "polygon or a point"
            raise QueryError(f"a region is a {wanted}, not {kind}", at, _EXAMPLE)
        if not np.isfinite(shapely.get_coordinates(shape)).all():
            raise QueryError("this region has a coordinate that is no number", at, _EXAMPLE)
        _check_distance(shape.bounds, at)
        if self.coordinates is Coordinates.LONLAT:
            _check_degrees(shape.bounds, at)
            if goes_round_a_pole(shape):
                raise QueryError(
                    "this region goes round a pole",
                    at,
                    "write circle(lon, lat, 500 km), which may hold one, or leave the pole out",
                )
            shape = unwrapped(shape)
        if not shape.is_valid:
            raise QueryError("this is no simple polygon", at, "give the corners in the order of its border")
        return text


def outline_corners(text: str, at: Span | None) -> tuple[tuple[float, float], ...]:
    """Read the outline of an interest: a polygon in WKT, in metres east and north of the focal object."""
    import shapely

    wkt = NamedRegions(Params(), Coordinates.PLANE).wkt(t.ShapeNode(text=text, at=at))
    shape = shapely.from_wkt(wkt)
    if not isinstance(shape, shapely.Polygon) or len(shape.interiors):
        raise QueryError(
            "an outline is one polygon without holes",
            at,
            "write for example 'POLYGON ((-50 0, 50 0, 0 200, -50 0))': metres east and north",
        )
    return tuple((float(x), float(y)) for x, y in shape.exterior.coords[:-1])


def _check_distance(bounds: tuple[float, ...], at: Span | None) -> None:
    from whimbrel.space.geometry import FARTHEST_M

    if max(map(abs, bounds)) > FARTHEST_M:
        raise QueryError("this region is too large", at, f"let it end within {FARTHEST_M:.0e} m")


def _check_degrees(bounds: tuple[float, ...], at: Span | None) -> None:
    x0, y0, x1, y1 = bounds
    if x0 < -360.0 or x1 > 360.0 or y0 < -90.0 or y1 > 90.0:
        raise QueryError(
            "this region lies outside of the globe",
            at,
            "with 'coordinates lonlat', give longitudes (beyond 180 if you like) and latitudes -90 to 90",
        )


def _polygon(corners: list[tuple[float, float]], at: Span | None) -> str:
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in corners):
        raise QueryError("this region is too large", at, _SMALLER)
    closed = [*corners, corners[0]]
    return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in closed)}))"


def _number(node: t.Expression, params: Params) -> float:
    match node:
        case t.Constant(int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case t.Negative(operand):
            return -_number(operand, params)
        case t.QuantityNode() if node.amounts[0][1] in LENGTHS:
            return float(quantity(node).value or 0)
        case t.Name(name):
            given = params.value(name, node.at).value
            if isinstance(given, int | float):
                return float(given)
    raise QueryError("a number is needed here", node.at, "write for example circle(0, 0, 500 m)")
