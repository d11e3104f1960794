"""Tell a device when it must report its position. Standard library only: copy this file to the device.

A server answers a reported position with a *safe region*. While the device is in it, the server would learn
nothing new from another report, and the device stays silent:

>>> region = SafeRegion(version=1, mode=CHANGES, coordinates=PLANE, at=(0, 0), rectangle=(-50, -20, 50, 80))
>>> device = SafeRegionFilter(region.to_json())
>>> device.must_report(30, 60), device.must_report(51, 60)
(False, True)
"""

from __future__ import annotations

import json
import math
import struct
import sys
import zlib
from dataclasses import dataclass

FORMAT = 1
"""Of the messages. It is raised when an older client could misread one."""
KIND = "whimbrel-safe-region"
EVERY_MATCH, CHANGES = "every match", "changes"
MODES = (EVERY_MATCH, CHANGES)
PLANE, LONLAT = "plane", "lonlat"
COORDINATES = (PLANE, LONLAT)
EARTH_RADIUS_M = 6_371_008.8

_MAGIC = b"WSR"
_HEAD = struct.Struct("<3sBBQ")
_CHECKSUM = struct.Struct("<I")
_LONLAT_BIT, _CHANGES_BIT = 1, 2
_PARTS = (("at", 2, 4), ("rectangle", 4, 8), ("radius_m", 1, 16), ("expires", 1, 32), ("report", 1, 64))
"""The parts of a message that may be missing: name, how many numbers, bit that tells that it is there."""
_ALL_BITS = 127
_ROUNDING = 1 - 1e-9
"""Distances are rounded down by this, so that no rounding error lets a device sleep too long."""


class MessageError(ValueError):
    """A message that is damaged, of another format, or no safe region at all."""


@dataclass(frozen=True, slots=True)
class SafeRegion:
    """Where a device may stay silent: in the rectangle or in the disc round `at`. Without both: nowhere.

    Lengths are metres. `expires` is a time in seconds; which clock they count by is up to device and server.
    """

    version: int
    """Of the subscriptions that the region covers."""
    mode: str
    coordinates: str
    at: tuple[float, float] | None = None
    """The position that the region answers."""
    rectangle: tuple[float, float, float, float] | None = None
    """Left, low, right, high."""
    radius_m: float | None = None
    expires: float | None = None
    report: int | None = None
    """The number of the report that the region answers."""

    def contains(self, x: float, y: float) -> bool:
        """Tell whether a position lies in the region; what is no position never does."""
        if not (math.isfinite(x) and math.isfinite(y)) or not self._is_on_the_map(x, y):
            return False
        if self.rectangle is not None:
            left, low, right, high = self.rectangle
            if left <= x <= right and low <= y <= high:
                return True
        return self.radius_m is not None and self._from_centre(x, y) <= self.radius_m

    def metres_to_border(self, x: float, y: float) -> float:
        """Bound from below how far a device can go, in any direction, without leaving the region."""
        if not self.contains(x, y):
            return 0.0
        best = 0.0
        if self.radius_m is not None:
            best = self.radius_m - self._from_centre(x, y)
        if self.rectangle is not None:
            best = max(best, self._to_sides(x, y, self.rectangle))
        return max(0.0, best * _ROUNDING)

    def to_json(self) -> str:
        """Write the region as JSON that says what it is."""
        parts = {name: getattr(self, name) for name, _, _ in _PARTS if getattr(self, name) is not None}
        head = {"kind": KIND, "format": FORMAT, "version": self.version, "mode": self.mode}
        return json.dumps({**head, "coordinates": self.coordinates, **parts}, separators=(",", ":"))

    def to_bytes(self) -> bytes:
        """Write the region in 17 to 89 bytes, with a checksum."""
        flags = _LONLAT_BIT * (self.coordinates == LONLAT) + _CHANGES_BIT * (self.mode == CHANGES)
        numbers: list[float] = []
        for name, size, bit in _PARTS:
            value = getattr(self, name)
            if value is not None:
                flags += bit
                numbers += value if size > 1 else (value,)
        body = _HEAD.pack(_MAGIC, FORMAT, flags, self.version) + struct.pack(f"<{len(numbers)}d", *numbers)
        return body + _CHECKSUM.pack(zlib.crc32(body))

    def _is_on_the_map(self, x: float, y: float) -> bool:
        return self.coordinates == PLANE or (-180 <= x <= 180 and -90 <= y <= 90)

    def _from_centre(self, x: float, y: float) -> float:
        assert self.at is not None
        return metres_between(*self.at, x, y, self.coordinates)

    def _to_sides(self, x: float, y: float, rectangle: tuple[float, float, float, float]) -> float:
        left, low, right, high = rectangle
        if self.coordinates == PLANE:
            return min(x - left, right - x, y - low, high - y)
        upright = min(metres_to_meridian(x - left, y), metres_to_meridian(right - x, y))
        return min(upright, EARTH_RADIUS_M * math.radians(min(y - low, high - y)))


class SafeRegionFilter:
    """Decide on the device whether a position must be reported.

    A region ends with the report that it asks for: until the server has answered that one, every position is
    reported. `reports` counts them; send it along, and let the server answer with it.
    """

    __slots__ = ("_is_void", "_newest", "_reported", "_seen", "_seen_time", "region", "reports")

    def __init__(self, message: str | bytes | None = None) -> None:
        self.region: SafeRegion | None = None
        self.reports = 0
        self._newest = 0
        self._is_void = False
        self._reported: tuple[float, float] | None = None
        self._seen: tuple[float, float] | None = None
        self._seen_time: float | None = None
        if message is not None:
            self.update(message)

    def must_report(self, x: float, y: float, time: float | None = None) -> bool:
        """Tell whether this position must be reported; a region that expires needs the time."""
        if self._may_stay_silent(x, y, time):
            self._seen, self._seen_time = (x, y), time
            return False
        # The server will know another place, and give another region. Back in the old one, silence would
        # deceive it, and nobody would withdraw that one when a subscription comes that it does not cover.
        self._is_void, self._seen = True, None
        self._reported, self.reports = (x, y), self.reports + 1
        return True

    def check_again_after(self, speed: float) -> float:
        """Tell for how many seconds a device of at most this speed (m/s) need not even look where it is.

        They count from the last position that `must_report` was asked about.
        """
        if not speed > 0:
            raise ValueError(f"the greatest speed must be above 0 metres a second, not {speed!r}")
        if self.region is None or self._seen is None:
            return 0.0
        seconds = self.region.metres_to_border(*self._seen) / speed
        if self.region.expires is not None and self._seen_time is not None:
            seconds = min(seconds, self.region.expires - self._seen_time)
        return max(0.0, seconds)

    def update(self, message: str | bytes) -> bool:
        """Take over what the server sent; False if it is out of date and everything stays as it was."""
        region = read_message(message)
        if region.version < self._newest:
            return False
        # Whatever becomes of this message, there are subscriptions now that older regions do not cover.
        self._newest = region.version
        if self.reports and not self._answers_the_last_report(region):
            return False
        self.region, self._is_void, self._seen = region, False, None
        return True

    def drop(self) -> None:
        """Forget the region, such as after a lost link: report all positions until a new one comes."""
        self._is_void, self._seen = True, None

    def _answers_the_last_report(self, region: SafeRegion) -> bool:
        if region.at is None:  # a withdrawal answers nothing, and always holds
            return True
        return region.at == self._reported if region.report is None else region.report == self.reports

    def _may_stay_silent(self, x: float, y: float, time: float | None) -> bool:
        if self.region is None or self._is_void:
            return False
        if self.region.expires is not None:
            if time is None:
                raise ValueError("this region expires: give must_report the time of the position, too")
            if not time < self.region.expires:
                return False
        return self.region.contains(x, y)


def read_message(message: str | bytes) -> SafeRegion:
    """Read a region from its JSON text or its bytes."""
    if isinstance(message, bytes) and message.startswith(_MAGIC):
        return _from_bytes(message)
    return _from_json(message)


def metres_between(x1: float, y1: float, x2: float, y2: float, coordinates: str) -> float:
    """Measure the distance between two points in the plane or on the sphere."""
    if coordinates == PLANE:
        return math.hypot(x2 - x1, y2 - y1)
    lat1, lat2 = math.radians(y1), math.radians(y2)
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin(math.radians(x2 - x1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


def metres_to_meridian(degrees: float, lat: float) -> float:
    """Measure the distance from a point at a latitude to the meridian that lies so many degrees off."""
    if degrees >= 90:
        return EARTH_RADIUS_M * math.radians(90 - abs(lat))
    return EARTH_RADIUS_M * math.asin(math.sin(math.radians(degrees)) * math.cos(math.radians(lat)))


def _from_json(message: str | bytes) -> SafeRegion:
    try:
        content = json.loads(message)
    except (ValueError, TypeError, RecursionError) as error:
        raise MessageError(f"the message is neither JSON nor the bytes of a safe region: {error}") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise MessageError(f"the message is no safe region: its 'kind' is not {KIND!r}")
    _check_format(content.get("format"))
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 2**64:
        raise MessageError(f"'version' must be a whole number, not {version!r}")
    for name, allowed in (("mode", MODES), ("coordinates", COORDINATES)):
        if content.get(name) not in allowed:
            raise MessageError(f"{name!r} must be one of {', '.join(allowed)}, not {content.get(name)!r}")
    parts = {name: _numbers(name, content.get(name), size) for name, size, _ in _PARTS}
    return _checked(version, content["mode"], content["coordinates"], parts)


def _from_bytes(message: bytes) -> SafeRegion:
    if len(message) < _HEAD.size + _CHECKSUM.size:
        raise MessageError(f"the message ends after {len(message)} bytes; ask for it again")
    _, its_format, flags, version = _HEAD.unpack_from(message)
    _check_format(its_format)
    body, checksum = message[: -_CHECKSUM.size], message[-_CHECKSUM.size :]
    wanted = _HEAD.size + 8 * sum(size for _, size, bit in _PARTS if flags & bit)
    if _CHECKSUM.unpack(checksum)[0] != zlib.crc32(body) or len(body) != wanted or flags > _ALL_BITS:
        raise MessageError("the message is damaged: its checksum does not fit; ask for it again")
    numbers = list(struct.unpack_from(f"<{(wanted - _HEAD.size) // 8}d", body, _HEAD.size))
    parts: dict[str, tuple[float, ...] | None] = {}
    for name, size, bit in _PARTS:
        count = size if flags & bit else 0
        values, numbers = numbers[:count], numbers[count:]
        parts[name] = _numbers(name, values[0] if count == 1 else values or None, size)
    mode = CHANGES if flags & _CHANGES_BIT else EVERY_MATCH
    return _checked(version, mode, LONLAT if flags & _LONLAT_BIT else PLANE, parts)


def _check_format(its_format: object) -> None:
    if its_format != FORMAT:
        raise MessageError(
            f"the message has format {its_format!r} and this client reads format {FORMAT}; "
            "put the client that belongs to the server on the device"
        )


def _numbers(name: str, value: object, size: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    given = value if isinstance(value, list) and size > 1 else [value]
    if len(given) != size or not all(map(_is_finite_number, given)):
        raise MessageError(f"{name!r} must be {size} finite number{'s' * (size > 1)}, not {value!r}")
    return tuple(map(float, given))


def _is_finite_number(value: object) -> bool:
    # Whole numbers in JSON have no bound; those beyond any float are no coordinates either.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _checked(
    version: int, mode: str, coordinates: str, parts: dict[str, tuple[float, ...] | None]
) -> SafeRegion:
    at, rectangle, radius, expires, report = (parts[name] for name, _, _ in _PARTS)
    if radius is not None and at is None:
        raise MessageError("'radius_m' needs 'at', the centre of the disc")
    if report is not None and not (report[0].is_integer() and 0 <= report[0] < 2**53):
        raise MessageError(f"'report' must be a whole number, not {report[0]!r}")
    return SafeRegion(
        version,
        mode,
        coordinates,
        (at[0], at[1]) if at else None,
        (rectangle[0], rectangle[1], rectangle[2], rectangle[3]) if rectangle else None,
        radius[0] if radius else None,
        expires[0] if expires else None,
        int(report[0]) if report else None,
    )
