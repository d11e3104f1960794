"""Detections as tests observe them, and how far one is from what was expected of it."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from whimbrel.engine.report import ATTRIBUTES_KEY, FIXED
from whimbrel.errors import DataError
from whimbrel.model.deliveries import DELIVERY, DELIVERY_COLUMNS, has_deliveries
from whimbrel.model.schema import Type
from whimbrel.model.time import duration, format_duration, instant
from whimbrel.testing.scenario import AttributeTest, Description, Point, WrittenValue
from whimbrel.testing.values import format_time

CLOSE = 1e-9
"""How far numbers may lie apart, relative to their size, and still be equal."""
CLOSE_PLACE = 1e-6
"""The same for coordinates, absolutely."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class ObservedDetection:
    """A detection. `start` and `end` are microseconds."""

    id: str
    type: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    events: tuple[str, ...]
    geometry: bytes | None = None

    @property
    def centre(self) -> Point | None:
        """The centre of the box around its location."""
        if self.geometry is None:
            return None
        import shapely

        left, bottom, right, top = shapely.bounds(shapely.from_wkb(self.geometry))
        return float(left + right) / 2, float(bottom + top) / 2

    def is_same(self, other: ObservedDetection) -> bool:
        """Tell whether another way of running gave the same."""
        fixed = ("id", "type", "start", "end", "events")
        return all(getattr(self, name) == getattr(other, name) for name in fixed) and all(
            _equal(self.attributes.get(name), other.attributes.get(name))
            for name in {*self.attributes, *other.attributes}
        )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=CLOSE)
    return bool(one == other)


def observed_detections(table: pa.Table) -> list[ObservedDetection]:
    """Read the rows of a table of detections; each has the attributes of its type.

    Deliveries also have those that say who was told, when and what, and the id of the delivery.
    """
    owned = json.loads((table.schema.metadata or {}).get(ATTRIBUTES_KEY, b"{}"))
    tells = has_deliveries(table.schema)
    return [_observed(row, owned, tells and row["delivery"] is not None) for row in table.to_pylist()]


def _observed(row: dict[str, Any], owned: Mapping[str, list[str]], is_told: bool) -> ObservedDetection:
    others = (*FIXED, "events", *(DELIVERY_COLUMNS if is_told else ()))
    names = owned.get(row["type"], [name for name in row if name not in others])
    names = [*names, *(name for name in DELIVERY if is_told and name != "delivery")]
    return ObservedDetection(
        row["delivery"] if is_told else row["id"],
        row["type"],
        instant(row["start"]),
        instant(row["end"]),
        {name: row.get(name) for name in names},
        tuple(row["events"]),
        row["geometry"],
    )


# What was expected of it ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was said of a detection, and what was observed instead; `is_met` where it holds."""

    name: str
    expected: str
    observed: str
    is_met: bool


def fits(what: Description, detection: ObservedDetection) -> bool:
    """Tell whether a detection is as described."""
    return what.type == detection.type and all(part.is_met for part in compare(what, detection, 0))


def compare(what: Description, detection: ObservedDetection, origin: int) -> list[Difference]:
    """Go through everything that is said of a detection."""
    compared = [Difference("type", what.type, detection.type, what.type == detection.type)]
    compared += [_compare_attribute(test, detection, origin) for test in what.tests]
    for name, wanted, time in (("from", what.start, detection.start), ("to", what.end, detection.end)):
        if wanted is not None:
            compared.append(
                Difference(name, format_time(wanted, origin), format_time(time, origin), wanted == time)
            )
    if what.location is not None:
        compared.append(_compare_location(what.location, detection.centre))
    if what.events is not None:
        wanted_events, there = sorted(what.events), " ".join(detection.events)
        compared.append(
            Difference("events", " ".join(wanted_events), there, what.events == set(detection.events))
        )
    return compared


def _compare_location(wanted: Point, there: Point | None) -> Difference:
    is_met = there is not None and math.dist(wanted, there) <= CLOSE_PLACE * max(1.0, *map(abs, wanted))
    return Difference("at", format_point(wanted), "nowhere" if there is None else format_point(there), is_met)


def _compare_attribute(test: AttributeTest, detection: ObservedDetection, origin: int) -> Difference:
    written = f"'{test.value.text}'" if test.value.is_quoted else test.value.text
    expected = written if test.operator == "=" else f"{test.operator} {written}"
    if test.name not in detection.attributes:
        known = ", ".join(detection.attributes) or "none"
        return Difference(test.name, expected, f"no such attribute; there are: {known}", is_met=False)
    value = detection.attributes[test.name]
    return Difference(test.name, expected, format_value(value, origin), holds(test, value))


def holds(test: AttributeTest, value: Any) -> bool:
    """Tell whether a value compares as the test says. Null is equal to null alone, and never less or more."""
    wanted = _wanted(test.value, value)
    if value is None or wanted is None:
        same = value is None and test.value.value is None
        return {"=": same, "!=": not same}.get(test.operator, False)
    if test.operator in ("=", "!="):
        return _is_close(value, wanted) == (test.operator == "=")
    return _COMPARE[test.operator](value, wanted)


def _wanted(written: WrittenValue, value: Any) -> Any:
    """Read what was written as the kind of value that was observed; None where it is of another kind."""
    if isinstance(value, str):
        return None if written.value is None else written.text
    if isinstance(value, bool):
        return written.value if isinstance(written.value, bool) else None
    if isinstance(value, timedelta):
        return _timedelta(written.text)
    if isinstance(value, datetime):
        return (
            EPOCH + timedelta(microseconds=int(written.value or 0))
            if written.type is Type.TIMESTAMP
            else None
        )
    is_number = isinstance(written.value, int | float) and not isinstance(written.value, bool)
    return written.value if isinstance(value, int | float) and is_number else None


def _timedelta(text: str) -> timedelta | None:
    try:
        return timedelta(microseconds=duration(text))
    except DataError:
        return None


def _is_close(value: Any, wanted: Any) -> bool:
    if isinstance(value, float) or isinstance(wanted, float):
        return math.isclose(value, wanted, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(value == wanted)


# As text ----------------------------------------------------------------------------------------------------


def format_point(point: Point) -> str:
    """Write a place as test files do."""
    return f"({point[0]:.12g}, {point[1]:.12g})"


def format_value(value: Any, origin: int) -> str:
    """Write a value of a detection as a test file would."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return format_time(instant(value), origin)
    if isinstance(value, timedelta):
        return format_duration(value // timedelta(microseconds=1)).replace(" ", "")
    if isinstance(value, str):
        return value if _is_plain_word(value) else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _is_plain_word(text: str) -> bool:
    """Tell whether a test file reads the bare word as this text and as nothing else."""
    return bool(text) and text not in ("true", "false", "null") and text[0].isalpha() and text.isalnum()


def format_detection(detection: ObservedDetection, origin: int) -> str:
    """Write a detection in the words of an expectation, with everything that is known of it."""
    words = [detection.type]
    words += [f"{name}={format_value(value, origin)}" for name, value in detection.attributes.items()]
    start, end = format_time(detection.start, origin), format_time(detection.end, origin)
    words.append(f"at {end}" if start == end else f"from {start} to {end}")
    return " ".join([*words, "events", *detection.events])
