"""Safe regions: devices know when they must report their position and when they may stay silent."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whimbrel.safe_regions.client import MessageError, SafeRegion, SafeRegionFilter
    from whimbrel.safe_regions.regions import SafeRegions

_MODULES = {
    "MessageError": "client",
    "SafeRegion": "client",
    "SafeRegionFilter": "client",
    "SafeRegions": "regions",
}

__all__ = ["MessageError", "SafeRegion", "SafeRegionFilter", "SafeRegions"]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'whimbrel.safe_regions' has no attribute {name!r}")
    member: object = getattr(import_module(f"whimbrel.safe_regions.{module}"), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
