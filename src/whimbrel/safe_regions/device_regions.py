"""Remember which device holds which region, to tell whom a new shape concerns, and where it was."""

from __future__ import annotations

import math

import numpy as np

from whimbrel.model.schema import Coordinates
from whimbrel.safe_regions.client import SafeRegion
from whimbrel.safe_regions.shapes import Bounds, meets
from whimbrel.space.geometry import circle_box

_NONE = (math.nan,) * 4


class DeviceRegions:
    """Devices and the boxes round their regions, as columns."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._reports: dict[str, tuple[float, float]] = {}
        self._boxes = np.full((16, 2, 4), math.nan)

    def __len__(self) -> int:
        return len(self._rows)

    def keep(self, device: str, region: SafeRegion) -> None:
        """Remember the region that a device holds from now on."""
        row = self._rows.get(device)
        if row is None:
            row = self._rows[device] = self._free.pop() if self._free else len(self._rows)
        if row == len(self._boxes):
            self._boxes = np.concatenate([self._boxes, np.full_like(self._boxes, math.nan)])
        self._boxes[row] = region.rectangle or _NONE, _round_disc(region)
        if region.at is not None:
            self._reports[device] = region.at

    def last_report(self, device: str | None) -> tuple[float, float] | None:
        """Look up the position that a device reported last."""
        return self._reports.get(device) if device is not None else None

    def forget(self, device: str) -> None:
        """Forget a device; one that is not known may be forgotten, too."""
        self._reports.pop(device, None)
        row = self._rows.pop(device, None)
        if row is not None:
            self._boxes[row] = math.nan
            self._free.append(row)

    def meeting(self, bounds: Bounds) -> set[str]:
        """List the devices whose regions may reach into a box: none is missing, some may be too many."""
        concerned = set(np.flatnonzero(meets(self._boxes, bounds).any(axis=1)).tolist())
        if not concerned:
            return set()
        return {device for device, row in self._rows.items() if row in concerned}


def _round_disc(region: SafeRegion) -> Bounds:
    if region.radius_m is None or region.at is None:
        return _NONE
    return circle_box(("circle", *region.at, region.radius_m), Coordinates(region.coordinates))
