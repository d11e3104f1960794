"""Constants of a query: parameters, durations, counts and regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from whimbrel.errors import DataError, QueryError, QueryTypeError, Span, UnknownNameError
from whimbrel.graph.expressions import Binary, Call, Expr, Literal, Part
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.literals import LENGTHS
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME, UNITS, duration, instant

ParamValue = bool | int | float | str | timedelta


def constant(value: bool | int | float | str | None, at: Span | None = None) -> Literal:
    """Make a literal of a Python value."""
    kinds = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}
    return Literal(value, None if value is None else kinds[type(value)], at=at)


def quantity(node: t.Quantity) -> Literal:
    """Make a literal of a number with a unit: microseconds, or metres as a float."""
    total = 0.0 if node.amounts[0][1] in LENGTHS else 0
    for amount, unit in node.amounts:
        total += amount * LENGTHS[unit] if unit in LENGTHS else round(amount * UNITS[unit])
    if isinstance(total, int) and total >= END_OF_TIME:
        raise QueryError("this duration is too long", node.at)
    return Literal(total, Type.DURATION if isinstance(total, int) else Type.FLOAT, at=node.at)


def instant_literal(node: t.Instant) -> Literal:
    """Make a literal of `timestamp '...'`."""
    return Literal(instant(node.text), Type.TIMESTAMP, at=node.at)


@dataclass(slots=True)
class Params:
    """The parameters of a query: those it declares, and those given when it is compiled."""

    literals: dict[str, Literal] = field(default_factory=dict)

    @classmethod
    def read(cls, declared: list[t.Param], given: Mapping[str, ParamValue] | None) -> Params:
        """Take declared values, each replaced by the given one of that name."""
        params, rest = cls(), dict(given or {})
        for param in declared:
            if param.name in params.literals:
                raise QueryError(f"the parameter {param.name!r} is declared twice", param.at)
            default = _declared_value(param)
            value = _given(param.name, rest.pop(param.name), default) if param.name in rest else default
            params.literals[param.name] = value
        for name, supplied in rest.items():
            params.literals[name] = _given(name, supplied, None)
        return params

    def duration(self, amount: t.Amount) -> int:
        """Tell how many microseconds an amount of time is."""
        literal = self._amount(amount)
        if literal.type is not Type.DURATION or not isinstance(literal.value, int):
            shown = "a length" if literal.type is Type.FLOAT else "a number of events"
            raise QueryTypeError(
                f"an amount of time is needed here, not {shown}", amount.at, "write for example '5 min'"
            )
        if literal.value <= 0:
            raise QueryError("an amount of time must be more than nothing", amount.at)
        return literal.value

    def window(self, amount: t.Amount) -> tuple[str, int]:
        """Tell whether an amount counts events or time, and how much."""
        literal = self._amount(amount)
        if literal.type is not Type.INT or not isinstance(literal.value, int):
            return "temporal", self.duration(amount)
        if literal.value <= 0:
            raise QueryError("a window needs at least one event", amount.at)
        return "counting", literal.value

    def _amount(self, amount: t.Amount) -> Literal:
        match amount:
            case t.Count(count):
                return constant(count)
            case t.Quantity():
                return quantity(amount)
            case t.NamedAmount(name, unit):
                return _with_unit(self.value(name, amount.at), unit, amount.at)

    def value(self, name: str, at: Span | None) -> Literal:
        """Give the value of a parameter, or say how to supply one."""
        if name not in self.literals:
            raise QueryError(
                f"the parameter {name!r} has no value",
                at,
                f"write 'param {name} = ...', or give it: params={{{name!r}: ...}}, --param {name}=...",
            )
        return self.literals[name]


def _with_unit(value: Literal, unit: str | None, at: Span | None) -> Literal:
    if unit is None:
        if value.type is Type.DURATION:
            return value
        raise QueryTypeError(
            "the parameter is no amount of time", at, "write a unit behind it, for example 'x secs'"
        )
    if (
        isinstance(value.value, bool)
        or not isinstance(value.value, int | float)
        or value.type is Type.DURATION
    ):
        raise QueryTypeError(f"the parameter must be a number, because {unit!r} follows", at)
    if unit == "events":
        return constant(int(value.value))
    return quantity(t.Quantity(((value.value, unit),), at=at))


def _declared_value(param: t.Param) -> Literal:
    value = param.value
    match value:
        case t.Constant(inner) if inner is not None:
            return constant(inner, value.at)
        case t.Quantity():
            return quantity(value)
        case t.Instant():
            return instant_literal(value)
        case t.Negative(t.Constant(int() | float() as number)) if not isinstance(number, bool):
            return constant(-number, value.at)
    raise QueryError(
        "a parameter is a constant", value.at, "write for example 'param limit = 60' or 'param gap = 5 min'"
    )


def _given(name: str, value: ParamValue, default: Literal | None) -> Literal:
    kind = default.type if default else None
    if isinstance(value, timedelta):
        return Literal(duration(value), Type.DURATION)
    if not isinstance(value, bool | int | float | str):
        raise QueryTypeError(f"the parameter {name!r} cannot be a {type(value).__name__}")
    if isinstance(value, str) and kind not in (None, Type.STRING):
        return _read_text(name, value, kind)
    if kind is Type.FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return constant(float(value))
    literal = constant(value)
    if (
        kind is not None
        and literal.type is not kind
        and not (kind is Type.INT and literal.type is Type.FLOAT)
    ):
        raise QueryTypeError(f"the parameter {name!r} is a {kind.value}; {value!r} does not fit")
    return literal


def _read_text(name: str, text: str, kind: Type | None) -> Literal:
    try:
        match kind:
            case Type.DURATION:
                return Literal(duration(text), kind)
            case Type.TIMESTAMP:
                return Literal(instant(text), kind)
            case Type.BOOL if text in ("true", "false"):
                return constant(text == "true")
            case Type.INT | Type.FLOAT:
                return constant(
                    float(text) if kind is Type.FLOAT or not text.lstrip("-").isdigit() else int(text)
                )
    except (ValueError, DataError):
        pass
    raise QueryTypeError(
        f"the parameter {name!r} is a {kind.value if kind else 'value'}; {text!r} does not fit"
    )


# Regions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Circle:
    """Everything at most `radius` metres from a point."""

    x: float
    y: float
    radius: float


RegionValue = str | Circle
"""A region as WKT, or a circle."""


def region_value(shape: t.Shape, regions: Mapping[str, RegionValue], params: Params) -> RegionValue:
    """Work out a region: look it up, check its WKT, or compute it."""
    if shape.name is not None:
        if shape.name not in regions:
            raise UnknownNameError("region", shape.name, regions, shape.at)
        return regions[shape.name]
    if shape.text is not None:
        return _checked_wkt(shape.text, shape.at)
    numbers = [_plain_number(argument, params) for argument in shape.arguments]
    if shape.function == "circle" and len(numbers) == 3:
        if numbers[2] <= 0:
            raise QueryError("a circle needs a radius above zero", shape.at)
        return Circle(*numbers)
    if shape.function == "box" and len(numbers) == 4:
        return _box(*numbers)
    raise QueryError(
        f"{shape.function!r} with {len(numbers)} numbers is no region",
        shape.at,
        "write circle(x, y, 500 m), box(x1, y1, x2, y2), or WKT in quotes",
    )


def region_test(part: Part, region: RegionValue, at: Span | None) -> Expr:
    """Test whether a part lies in a region, borders included."""
    if isinstance(region, str):
        return Call("within_region", (part, constant(region, at)), at=at)
    centre = constant(f"POINT ({region.x!r} {region.y!r})", at)
    return Binary("<=", Call("distance", (part, centre), at=at), constant(region.radius, at), at=at)


def _plain_number(node: t.Expression, params: Params) -> float:
    match node:
        case t.Constant(int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case t.Negative(operand):
            return -_plain_number(operand, params)
        case t.Quantity() if node.amounts[0][1] in LENGTHS:
            return float(quantity(node).value or 0)
        case t.Name(name):
            given = params.value(name, node.at).value
            if isinstance(given, int | float):
                return float(given)
    raise QueryError("a number is needed here", node.at, "write for example circle(0, 0, 500 m)")


def _box(x1: float, y1: float, x2: float, y2: float) -> str:
    left, right, low, high = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
    corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
    return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in corners)}))"


def _checked_wkt(text: str, at: Span | None) -> str:
    # Shapely is slow to import, and most queries have no region.
    import shapely

    try:
        shape = shapely.from_wkt(text)
    except (shapely.errors.GEOSException, ValueError) as error:
        raise QueryError(
            f"this is no region in WKT: {error}", at, "write 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"
        ) from None
    if shape is None or shape.is_empty or shape.geom_type not in ("Polygon", "MultiPolygon"):
        kind = "nothing" if shape is None else shape.geom_type
        raise QueryError(
            f"a region is a polygon, not {kind}", at, "write 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"
        )
    if not shape.is_valid:
        raise QueryError("this polygon crosses itself", at, "give the corners in the order of its border")
    return text
