"""Which events a query can use at all: their types, times and places, read off its operator graph.

A bound is a promise about the events that pass: what lies outside it passes no condition of the query. It
says nothing about what lies inside, so it may always be wider than the condition it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.graph.clauses import Comparison, InRegion, read_clause
from whimbrel.graph.expressions import Binary, Call, Expr, Literal, Unary
from whimbrel.graph.operators import ANY, Filter, Graph, Source
from whimbrel.graph.query import Query
from whimbrel.graph.scope import selection
from whimbrel.model.columns import INSTANT
from whimbrel.model.schema import Coordinates, Type
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME, format_instant
from whimbrel.space.geometry import Circle, as_circle, circle_box, prepared
from whimbrel.store.log import Box, StoredFile

Times = tuple[int, int]
"""The first and the last microsecond that are allowed."""

ALWAYS: Times = (BEGINNING_OF_TIME, END_OF_TIME)
EVERYWHERE: Box = (-math.inf, -math.inf, math.inf, math.inf)
MANY = 16
"""More alternatives than this are read as one that covers them all."""

_TIMES = ("start", "end", "timestamp")
_PLACES = {"x": 0, "lon": 0, "y": 1, "lat": 1}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Events of some types (None: any) that start, end and lie in these ranges, borders included.

    The place of an event is the centre of its location. An event without one lies `EVERYWHERE` only.
    """

    types: frozenset[str] | None = None
    start: Times = ALWAYS
    end: Times = ALWAYS
    box: Box = EVERYWHERE

    @property
    def is_empty(self) -> bool:
        """Whether no event can lie in it."""
        x0, y0, x1, y1 = self.box
        nothing = self.types is not None and not self.types
        return nothing or self.start[0] > self.start[1] or self.end[0] > self.end[1] or x0 > x1 or y0 > y1

    def both(self, other: Bounds) -> Bounds:
        """Bound what lies in this and in the other."""
        types = self.types if other.types is None else other.types
        if self.types is not None and other.types is not None:
            types = self.types & other.types
        (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = self.box, other.box
        box = (max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1))
        return Bounds(types, _common(self.start, other.start), _common(self.end, other.end), box)

    def either(self, other: Bounds) -> Bounds:
        """Bound what lies in this or in the other."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        types = None if self.types is None or other.types is None else self.types | other.types
        (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = self.box, other.box
        box = (min(ax0, bx0), min(ay0, by0), max(ax1, bx1), max(ay1, by1))
        return Bounds(types, _around(self.start, other.start), _around(self.end, other.end), box)

    def may_be_in(self, file: StoredFile) -> bool:
        """Tell whether an event of the file can lie in these bounds."""
        if self.types is not None and file.types is not None and self.types.isdisjoint(file.types):
            return False
        if not _meet(self.end, (file.first_end, file.last_end)):
            return False
        if not _meet(self.start, (file.first_start, file.last_start)):
            return False
        if self.box == EVERYWHERE:
            return True
        return file.box is not None and _overlap(self.box, file.box)

    def expression(self, coordinates: Coordinates | None) -> pc.Expression | None:
        """Build the test for the rows of a file; None where every row passes.

        Polygons pass wherever they lie: their centre is not in the file.
        """
        tests: list[pc.Expression] = []
        if self.types is not None:
            tests.append(pc.field("type").isin(pa.array(sorted(self.types), pa.string())))
        for name, (low, high) in (("end", self.end), ("start", self.start)):
            tests += [pc.field(name) >= pa.scalar(low, INSTANT)] if low > BEGINNING_OF_TIME else []
            tests += [pc.field(name) <= pa.scalar(high, INSTANT)] if high < END_OF_TIME else []
        if self.box != EVERYWHERE:
            tests.append(_in_box(self.box, coordinates) | pc.field("geometry").is_valid())
        return reduce(pc.and_kleene, tests) if tests else None

    def __str__(self) -> str:
        words = [" or ".join(sorted(self.types))] if self.types is not None else ["any type"]
        for name, (low, high) in (("start", self.start), ("end", self.end)):
            words += [f"{name} from {format_instant(low)}"] if low > BEGINNING_OF_TIME else []
            words += [f"{name} to {format_instant(high)}"] if high < END_OF_TIME else []
        x0, y0, x1, y1 = self.box
        for name, least, most in (("x", x0, x1), ("y", y0, y1)):
            if (least, most) != (-math.inf, math.inf):
                words.append(f"{name} {_number(least)} to {_number(most)}")
        return ", ".join(words)


ANYTHING = Bounds()
NOTHING = Bounds(frozenset())


def _number(value: float) -> str:
    return "any" if math.isinf(value) else f"{value:.9g}"


def _common(one: Times, other: Times) -> Times:
    return max(one[0], other[0]), min(one[1], other[1])


def _around(one: Times, other: Times) -> Times:
    return min(one[0], other[0]), max(one[1], other[1])


def _meet(one: Times, other: Times) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _in_box(box: Box, coordinates: Coordinates | None) -> pc.Expression:
    x, y = (pc.field(name) for name in location_names(coordinates))
    limits = ((x, box[0], box[2]), (y, box[1], box[3]))
    tests = [axis >= low for axis, low, _ in limits if low > -math.inf]
    tests += [axis <= high for axis, _, high in limits if high < math.inf]
    return reduce(pc.and_kleene, tests)


def location_names(coordinates: Coordinates | None) -> tuple[str, str]:
    """List the names that points have in the files: those that say which coordinates they are in."""
    return ("lon", "lat") if coordinates is Coordinates.LONLAT else ("x", "y")


def simplified(alternatives: Iterable[Bounds]) -> tuple[Bounds, ...]:
    """Leave out what is empty or covered by another alternative, and join what are too many."""
    kept = [bounds for bounds in dict.fromkeys(alternatives) if not bounds.is_empty]
    kept = [
        bounds
        for bounds in kept
        if not any(other is not bounds and other.either(bounds) == other for other in kept)
    ]
    return tuple(kept) if len(kept) <= MANY else (reduce(Bounds.either, kept),)


def any_of(alternatives: Sequence[Bounds], coordinates: Coordinates | None) -> pc.Expression | None:
    """Build the test for rows that lie in any of several bounds; None where every row passes."""
    tests = [bounds.expression(coordinates) for bounds in alternatives]
    if not tests or any(test is None for test in tests):
        return None
    return reduce(pc.or_kleene, tests)


# -- from a query ------------------------------------------------------------------------------------------


def bounds_of(query: Query, attributes: Collection[str] = ()) -> tuple[Bounds, ...]:
    """List the alternatives, one of which every event that the query can use lies in.

    Parameters
    ----------
    attributes
        The attributes that events have. One of the name `timestamp` hides the time of the event.
    """
    graph, reader = query.rewritten, _reader(query, attributes)
    alternatives = []
    for name in _streams_read(graph):
        root, condition = selection(graph, name)
        if isinstance(root, Source):
            of_type = Bounds(None if root.event_type == ANY else frozenset({root.event_type}))
            alternatives.append(of_type if condition is None else of_type.both(reader.read(condition)))
    return simplified(alternatives)


def of_condition(condition: Expr, query: Query, attributes: Collection[str] = ()) -> Bounds:
    """Bound the events that a condition on single events lets pass."""
    return _reader(query, attributes).read(condition)


def _reader(query: Query, attributes: Collection[str]) -> _Reader:
    hidden = {*attributes, *(name for schema in query.schemas.values() for name in schema.attributes)}
    return _Reader(frozenset(hidden & {"timestamp"}), query.graph.coordinates)


def _streams_read(graph: Graph) -> list[str]:
    """Name the streams that are reported, or read by operators that do more than test single events."""
    readers = [operator for operator in graph.operators if not isinstance(operator, Filter)]
    names = [name for operator in readers for name in operator.inputs]
    return list(dict.fromkeys([*names, *graph.outputs]))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads bounds off a condition on one event. What it does not understand does not bound anything."""

    hidden: frozenset[str]
    coordinates: Coordinates | None

    def read(self, condition: Expr) -> Bounds:
        match condition:
            case Literal(value, _):
                return ANYTHING if value is True else NOTHING
            case Binary("and", left, right):
                return self.read(left).both(self.read(right))
            case Binary("or", left, right):
                return self.read(left).either(self.read(right))
            case Call("between", (value, low, high)):
                return self.read(Binary(">=", value, low)).both(self.read(Binary("<=", value, high)))
            case Call("in", (value, *choices)):
                return reduce(Bounds.either, [self.read(Binary("=", value, choice)) for choice in choices])
        match read_clause(condition, _constant):
            case Comparison() as clause:
                return self._comparison(clause)
            case InRegion(region, "within_region"):
                return Bounds(box=box_of(region, self.coordinates))
        return ANYTHING

    def _comparison(self, clause: Comparison) -> Bounds:
        attribute, constant = clause.attribute, clause.constant
        if attribute.part is not None or attribute.name in self.hidden:
            return ANYTHING
        if attribute.name in _TIMES and constant.type is Type.TIMESTAMP:
            return _of_time(attribute.name, clause.operator, int(constant.value or 0))
        if attribute.name in _PLACES and constant.type in (Type.INT, Type.FLOAT):
            return _of_place(attribute.name, clause.operator, float(constant.value or 0))
        return ANYTHING


def box_of(region: str | bytes, coordinates: Coordinates | None = None) -> Box:
    """Determine the box around a region; that of a circle in unknown coordinates is everywhere."""
    circle = as_circle(region)
    if circle is not None:
        return EVERYWHERE if coordinates is None else _box_of_circle(circle, coordinates)
    x0, y0, x1, y1 = prepared(region).bounds
    return float(x0), float(y0), float(x1), float(y1)


def _box_of_circle(circle: Circle, coordinates: Coordinates) -> Box:
    x0, y0, x1, y1 = circle_box(circle, coordinates)
    if coordinates is Coordinates.LONLAT and (x0 < -180.0 or x1 > 180.0):
        return -180.0, y0, 180.0, y1
    return x0, y0, x1, y1


def _of_time(name: str, operator: str, moment: int) -> Bounds:
    low, high = BEGINNING_OF_TIME, END_OF_TIME
    if operator in (">", ">=", "="):
        low = moment + (operator == ">")
    if operator in ("<", "<=", "="):
        high = moment - (operator == "<")
    if name == "start":
        # What starts after a moment ends after it too, and files are kept by the end.
        return Bounds(start=(low, high), end=(low, END_OF_TIME))
    return Bounds(start=(BEGINNING_OF_TIME, high), end=(low, high))


def _of_place(name: str, operator: str, value: float) -> Bounds:
    box = list(EVERYWHERE)
    if operator in (">", ">=", "="):
        box[_PLACES[name]] = value
    if operator in ("<", "<=", "="):
        box[_PLACES[name] + 2] = value
    return Bounds(box=(box[0], box[1], box[2], box[3]))


def _constant(expr: Expr) -> Literal | None:
    """Compute `timestamp '...' + 1 h` and the like; None for what is not constant or not a time."""
    match expr:
        case Literal(bool() | None, _):
            return None
        case Literal(int() | float() as value, kind):
            return expr if kind is not Type.DURATION and math.isfinite(value) else None
        case Unary("-", Literal(int() | float() as value, (Type.INT | Type.FLOAT) as kind)):
            return Literal(-value, kind)
        case Binary("+" | "-" as operator, left, Literal(int() as shift, Type.DURATION)):
            moment = _constant(left)
            if moment is None or moment.type is not Type.TIMESTAMP:
                return None
            moved = int(moment.value or 0) + (shift if operator == "+" else -shift)
            return replace(moment, value=moved) if BEGINNING_OF_TIME < moved < END_OF_TIME else None
    return None
