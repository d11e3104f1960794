"""Compute safe regions: round a position, where the set of matching subscriptions stays the same."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.schema import Coordinates
from whimbrel.safe_regions.client import CHANGES, EVERY_MATCH, MODES, SafeRegion
from whimbrel.safe_regions.crs import crs_of
from whimbrel.safe_regions.device_regions import DeviceRegions
from whimbrel.safe_regions.index import ShapeIndex
from whimbrel.safe_regions.kernels.borders import MARGIN, WIDTH, boxes_over, metres_to_nearest
from whimbrel.safe_regions.kernels.rectangles import greedy_rectangle, widest_rectangle
from whimbrel.safe_regions.shapes import Bounds, ShapeLike, ShapePart, read_shape
from whimbrel.space.geometry import Floats

TIGHT, GLR = "tight", "glr"
METHODS = (TIGHT, GLR)

_USUAL, _FEWEST, _MOST = 32, 8, 256
"""How many shapes to look at round a position: about, at least and (where that helps) at most."""
_FAR = 4.0
"""So many times as far as the nearest border is far, whatever else there is."""
_LARGEST_DISC_M = 5e6
"""Beyond a quarter of the globe, distances on the sphere lose digits."""
_ROUNDING = 1e-15
"""What a few sums and differences may lose, as a part of the largest number."""
_MARGIN_M = 1e-5
"""What rounding may do to distances on the sphere, and more."""


class SafeRegions:
    """Tell devices where they need not report their position, for a set of subscriptions.

    Parameters
    ----------
    subscriptions
        Shapes by name: WKT, WKB or shapely polygons, `("circle", x, y, radius_m)` and
        `("box", x1, y1, x2, y2)`. Borders belong to their shapes.
    coordinates
        `plane` (metres) or `lonlat` (degrees; polygons are straight in degrees, circles round on the sphere).
    mode
        `every match`: each position within a shape matters and is reported. `changes`: only entering and
        leaving shapes matters, so that devices within shapes are silent, too.
    method
        `tight` or, to compare with, `glr`: the greedy largest rectangle of the Grus paper, which sees
        bounding boxes and the grid cell of the position.
    cell_m
        Side of the grid cells of `glr`.
    version
        Number to count changes of the subscriptions from. A server that starts anew must go on counting.

    Examples
    --------
    >>> safe = SafeRegions({"depot": ("box", 0, 0, 100, 100), "gate": ("circle", 300, 50, 40)})
    >>> region = safe.region_for(200, 50)
    >>> region.contains(120, 60), region.contains(100, 60)
    (True, False)
    """

    def __init__(
        self,
        subscriptions: Mapping[str, ShapeLike] | None = None,
        *,
        coordinates: Coordinates | str = Coordinates.PLANE,
        mode: str = EVERY_MATCH,
        method: str = TIGHT,
        cell_m: float | None = None,
        version: int = 0,
    ) -> None:
        self.coordinates = Coordinates(_choice("coordinates", coordinates, tuple(Coordinates)))
        self._crs = crs_of(self.coordinates)
        self.mode = _choice("mode", mode, MODES)
        self.method = _choice("method", method, METHODS)
        if (method == GLR) != (cell_m is not None and cell_m > 0):
            raise DataError(
                "method 'glr' needs cell_m, the side of its grid cells in metres; 'tight' has none"
            )
        if not _is_count(version):
            raise DataError(f"version must be a whole number from 0 on, not {version!r}")
        self._cell_m = cell_m
        self._version = version
        shapes = [read_shape(name, given, self.coordinates) for name, given in (subscriptions or {}).items()]
        self._index = ShapeIndex(shapes)
        self._device_regions = DeviceRegions()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def version(self) -> int:
        """How often the subscriptions have changed."""
        return self._version

    def add(self, name: str, shape: ShapeLike) -> tuple[str, ...]:
        """Add a subscription; give the devices whose regions it may meet, which are to be withdrawn.

        Devices are those named in `region_for`. They are found by bounding boxes: some may be too many.
        """
        if name in self._index:
            raise DataError(f"a subscription {name!r} is there already; remove it first")
        parts = self._index.add(read_shape(name, shape, self.coordinates))
        self._version += 1
        return tuple(sorted(set().union(*(self._device_regions.meeting(part.bounds) for part in parts))))

    def remove(self, name: str) -> None:
        """Remove a subscription. Regions stay right: they could be larger, and will be when next computed."""
        if name not in self._index:
            hint = did_you_mean(name, self._index.names)
            raise DataError(f"no subscription is named {name!r}" + (f"; {hint}" if hint else ""))
        self._index.remove(name)
        self._version += 1

    def forget(self, device: str) -> None:
        """Forget a device that will not be heard of again."""
        self._device_regions.forget(device)

    def withdrawal(self) -> SafeRegion:
        """Make the message that takes a region back: the device reports its next position."""
        return SafeRegion(self._version, self.mode, self.coordinates.value)

    def matching(self, x: float, y: float) -> tuple[str, ...]:
        """List the subscriptions that a position matches, by name."""
        self._crs.check(x, y)
        shapes = {part.shape for part in self._index.near((x, y, x, y))}
        return tuple(sorted(shape.name for shape in shapes if shape.contains(x, y)))

    def region_for(
        self,
        x: float,
        y: float,
        *,
        device: str | None = None,
        came_from: tuple[float, float] | None = None,
        expires: float | None = None,
        report: int | None = None,
    ) -> SafeRegion:
        """Compute the region round a reported position in which the device may stay silent.

        Parameters
        ----------
        device
            Its name, so that `add` can tell when the region must be withdrawn.
        came_from
            An earlier position; without it, the one that the named device reported last. The region reaches
            farther in the direction in which the device moves.
        expires
            When the region ends, in seconds of any clock that device and server share: the longest time that
            a device whose link is lost may miss a new subscription.
        report
            The number of the report (`SafeRegionFilter.reports`), so that the device can tell the answer from
            late answers to earlier reports. Without it, the position does.
        """
        x, y = float(x), float(y)
        if expires is not None and not math.isfinite(expires):
            raise DataError(
                f"expires must be a time in seconds, or None for a region without end, not {expires!r}"
            )
        if report is not None and not _is_count(report):
            raise DataError(f"report must be a whole number from 0 on, not {report!r}")
        inside = self.matching(x, y)
        rectangle, radius_m = None, None
        if not inside or self.mode == CHANGES:
            if self.method == GLR:
                rectangle = self._greedy(x, y)
            else:
                rectangle, radius_m = self._tight(x, y, came_from or self._device_regions.last_report(device))
        head = self._version, self.mode, self.coordinates.value
        region = SafeRegion(*head, (x, y), rectangle, radius_m, expires, report)
        if device is not None:
            self._device_regions.keep(device, region)
        return region

    def _tight(
        self, x: float, y: float, came_from: tuple[float, float] | None
    ) -> tuple[Bounds | None, float | None]:
        window, borders, nearest_m = self._neighbourhood(x, y)
        sides, scale = np.array(window), self._crs.scale(y)
        boxes = boxes_over(borders, x, y, sides, scale, self._crs.is_sphere)
        ahead = _direction(came_from or (x, y), (x, y), scale)
        most = max(self._usual_half(y), _FAR * self._crs.units(nearest_m))
        rectangle = _inward(widest_rectangle(boxes, x, y, sides, scale, most, *ahead), x, y)
        margin_m = _MARGIN_M if self._crs.is_sphere else float(borders[:, MARGIN].max(initial=0.0))
        radius_m = min(nearest_m * (1 - 1e-9) - margin_m, _LARGEST_DISC_M)
        return rectangle, radius_m if radius_m > 0 else None

    def _greedy(self, x: float, y: float) -> Bounds | None:
        """Compute the greedy largest rectangle; a position within a bounding box has none."""
        assert self._cell_m is not None
        cell = self._crs.cell(x, y, self._cell_m)
        boxes = np.array([part.bounds for part in self._index.near(cell)]).reshape(-1, 4)
        if ((boxes[:, 0] <= x) & (x <= boxes[:, 2]) & (boxes[:, 1] <= y) & (y <= boxes[:, 3])).any():
            return None
        return _inward(greedy_rectangle(boxes, x, y, np.array(cell)), x, y)

    def _neighbourhood(self, x: float, y: float) -> tuple[Bounds, Floats, float]:
        """Find a window round a position, all borders in it, and the way to the nearest, or out of it.

        It holds enough shapes to bound a region, the nearest border among them, and not many more.
        """
        bounds = self._index.bounds
        if bounds is None:
            return self._within(x, y, self._crs.extent, [])
        half = self._usual_half(y)
        window, parts = self._look(x, y, half)
        while len(parts) > _MOST:
            closer, fewer = self._look(x, y, half / 2)
            if len(fewer) > len(parts) / 2:  # they lie on top of each other
                break
            half, window, parts = half / 2, closer, fewer
        while True:
            if _covers(window, self._crs.clipped(bounds)):  # nothing lies beyond
                return self._within(x, y, self._crs.extent, parts)
            within = self._within(x, y, window, parts)
            if len(parts) >= _FEWEST and within[2] < self._crs.metres_to_sides(x, y, window):
                return within
            half *= 2
            window, parts = self._look(x, y, half)

    def _usual_half(self, y: float) -> float:
        """Estimate half the side of a window that usually holds enough shapes, in units of y."""
        if self._index.bounds is None:
            return math.inf
        left, low, right, high = self._index.bounds
        area = max((right - left) * self._crs.scale(y), 1e-9) * max(high - low, 1e-9)
        return math.sqrt(area * _USUAL / max(1, len(self._index))) / 2

    def _look(self, x: float, y: float, half: float) -> tuple[Bounds, list[ShapePart]]:
        window = self._crs.window(x, y, half)
        return window, self._index.near(window)

    def _within(
        self, x: float, y: float, window: Bounds, parts: list[ShapePart]
    ) -> tuple[Bounds, Floats, float]:
        borders = np.concatenate([part.borders for part in parts]) if parts else np.empty((0, WIDTH))
        most_m = self._crs.metres_to_sides(x, y, window)
        return window, borders, metres_to_nearest(borders, x, y, most_m, self._crs.is_sphere)


def _choice(what: str, given: str, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        raise DataError(f"{what} must be one of {', '.join(allowed)}, not {given!r}")
    return str(given)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**53


def _direction(start: tuple[float, float], end: tuple[float, float], scale: float) -> tuple[float, float]:
    """Normalise the way from one point to another to the length 1, or to 0 if there is none."""
    dx, dy = (end[0] - start[0]) * scale, end[1] - start[1]
    far = math.hypot(dx, dy)
    return (dx / far, dy / far) if 0 < far < math.inf else (0.0, 0.0)


def _covers(window: Bounds, bounds: Bounds) -> bool:
    left, low, right, high = window
    return left <= bounds[0] and low <= bounds[1] and right >= bounds[2] and high >= bounds[3]


def _inward(rectangle: Bounds, x: float, y: float) -> Bounds | None:
    """Take from each side what rounding may have added; None if nothing is left round the position."""
    left, low, right, high = rectangle
    left, right = min(x, left + _slack(x, left)), max(x, right - _slack(x, right))
    low, high = min(y, low + _slack(y, low)), max(y, high - _slack(y, high))
    return (left, low, right, high) if left < right and low < high else None


def _slack(position: float, side: float) -> float:
    return _ROUNDING * max(abs(position), abs(side))
