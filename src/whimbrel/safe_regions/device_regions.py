"""Remember which device holds which region, to tell whom a new shape concerns, and where it was."""

from __future__ import annotations

import math

import numpy as np

from whimbrel.safe_regions.client import EARTH_RADIUS_M, LONLAT, SafeRegion
from whimbrel.safe_regions.shapes import Bounds

_NONE = (math.nan,) * 4


class DeviceRegions:
    """Devices and the boxes round their regions, as columns."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._reports: dict[str, tuple[float, float]] = {}
        self._boxes = np.full((16, 2, 4), math.nan)

    def __len__(self) -> int:
        return len(self._places)

    def keep(self, device: str, region: SafeRegion) -> None:
        """Remember the region that a device holds from now on."""
        place = self._places.get(device)
        if place is None:
            place = self._places[device] = self._free.pop() if self._free else len(self._places)
        if place == len(self._boxes):
            self._boxes = np.concatenate([self._boxes, np.full_like(self._boxes, math.nan)])
        self._boxes[place] = region.rectangle or _NONE, _round_disc(region)
        if region.at is not None:
            self._reports[device] = region.at

    def last_report(self, device: str | None) -> tuple[float, float] | None:
        """Give the position that a device reported last."""
        return self._reports.get(device) if device is not None else None

    def forget(self, device: str) -> None:
        """Forget a device; one that is not known may be forgotten, too."""
        self._reports.pop(device, None)
        place = self._places.pop(device, None)
        if place is not None:
            self._boxes[place] = math.nan
            self._free.append(place)

    def meeting(self, bounds: Bounds) -> set[str]:
        """Give the devices whose regions may reach into a box: none is missing, some may be too many."""
        left, low, right, high = bounds
        boxes = self._boxes
        meets = (boxes[..., 0] <= right) & (boxes[..., 2] >= left)
        meets &= (boxes[..., 1] <= high) & (boxes[..., 3] >= low)
        concerned = set(np.flatnonzero(meets.any(axis=1)).tolist())
        if not concerned:
            return set()
        return {device for device, place in self._places.items() if place in concerned}


def _round_disc(region: SafeRegion) -> Bounds:
    if region.radius_m is None or region.at is None:
        return _NONE
    x, y = region.at
    wide = high = region.radius_m
    if region.coordinates == LONLAT:
        radius = region.radius_m / EARTH_RADIUS_M
        sine = math.sin(min(radius, math.pi / 2)) / max(math.cos(math.radians(y)), 1e-12)
        wide, high = math.degrees(math.asin(min(1.0, sine))), math.degrees(radius)
    return x - wide, y - high, x + wide, y + high
