"""Along a route: objects go where they said they would."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from whimbrel.engine.mobile.prediction.dead_reckoning import DeadReckoning
from whimbrel.engine.mobile.prediction.places import LastSamples, PredictedPlaces, likeliest_first
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.errors import DataError, QueryError
from whimbrel.model.time import SECOND
from whimbrel.space.geometry import parse
from whimbrel.space.local_plane import gone, way

_SPREAD = 2.0
"""Places lie within so many standard deviations of where the mean speed leads to."""


@dataclass(frozen=True)
class AlongRoute:
    """Objects go on along the line that they said last, at the speed of their last samples.

    Objects without a route, or too far from it, are predicted by dead reckoning.
    """

    route_attribute: str | None = "route"
    samples: int = 2
    error_m: float = 10.0
    """The standard deviation of the way along the route at once."""
    error_m_s: float = 3.0
    """How much it grows each second."""
    near_m: float = 100.0
    """How far from its route an object may be."""
    otherwise: DeadReckoning = field(default_factory=DeadReckoning)

    def __post_init__(self) -> None:
        if self.route_attribute is None:
            raise QueryError("prediction along a route needs the name of the attribute that holds the route")

    def predict(self, seen: LastSamples, ahead: Int64Array, most: int) -> PredictedPlaces:
        """Give at most so many places for each row of samples, `ahead` microseconds after its newest one."""
        lines, near = self._routes(seen)
        on, off = np.flatnonzero(near), np.flatnonzero(~near)
        rest = self.otherwise.predict(seen.take(off), ahead[off], most)
        if not len(on):
            return rest
        row, x, y, weight = self._along(seen.take(on), lines[on], ahead[on] / SECOND, most)
        return likeliest_first(
            np.concatenate([on[row], off[rest.row]]),
            np.concatenate([x, rest.x]),
            np.concatenate([y, rest.y]),
            np.concatenate([weight, rest.probability]),
            most,
        )

    def _routes(self, seen: LastSamples) -> tuple[np.ndarray, BoolArray]:
        """Give the route of each object in metres around its newest place, and which objects are near it."""
        import shapely

        lines = np.full(len(seen), None, object)
        if seen.routes is not None:
            lines[:] = [None if text is None else _line(text) for text in seen.routes.tolist()]
        coords, owner = shapely.get_coordinates(lines, return_index=True)
        here_x, here_y = seen.x[owner, -1], seen.y[owner, -1]
        local = np.stack(way(here_x, here_y, coords[:, 0], coords[:, 1], seen.coordinates), axis=1)
        lines = shapely.set_coordinates(lines, local)
        off = shapely.distance(lines, shapely.points(np.zeros(len(seen)), np.zeros(len(seen))))
        return lines, off <= self.near_m  # no line is at no distance, which is not near

    def _along(
        self, seen: LastSamples, lines: np.ndarray, seconds: FloatArray, most: int
    ) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
        import shapely

        x0, y0 = seen.x[:, -1], seen.y[:, -1]
        east, north = way(x0, y0, seen.x[:, 0], seen.y[:, 0], seen.coordinates)
        here = shapely.line_locate_point(lines, shapely.points(np.zeros(len(seen)), np.zeros(len(seen))))
        before = shapely.line_locate_point(lines, shapely.points(east, north))
        passed = -seen.seconds[:, 0]
        speed = (here - before) / np.where(passed > 0, passed, np.inf)
        off = np.linspace(-_SPREAD, _SPREAD, most) if most > 1 else np.zeros(1)
        error = self.error_m + self.error_m_s * np.abs(seconds)
        reached = (here + speed * seconds)[:, None] + error[:, None] * off
        reached = np.clip(reached, 0.0, shapely.length(lines)[:, None])
        weight = np.tile(np.exp(-off * off / 2), len(seen))
        row = np.repeat(np.arange(len(seen)), most)
        row, reached, weight = _at_one_place(row, reached.ravel(), weight)
        points = shapely.line_interpolate_point(lines[row], reached)
        x, y = gone(x0[row], y0[row], shapely.get_x(points), shapely.get_y(points), seen.coordinates)
        return row, x, y, weight / np.bincount(row, weight)[row]


def _at_one_place(
    row: Int64Array, reached: FloatArray, weight: FloatArray
) -> tuple[Int64Array, FloatArray, FloatArray]:
    """Add up what is at one place: whoever has come to the end of the route stays there."""
    first = np.ones(len(row), np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (reached[1:] != reached[:-1])
    total = np.bincount(np.cumsum(first) - 1, weight).astype(np.float64, copy=False)
    return row[first], reached[first], total


@lru_cache(maxsize=4096)
def _line(text: str) -> object:
    line = parse(text)
    if line.geom_type != "LineString" or line.is_empty:
        raise DataError(f"{text[:60]!r} is not a route; write WKT such as 'LINESTRING (0 0, 3 4)'")
    return line
