"""Constants of a query: parameters, durations, counts and regions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from whimbrel.errors import DataError, QueryError, QueryTypeError, Span
from whimbrel.graph.expressions import Binary, Expr, Literal
from whimbrel.lang.wbl import tree as t
from whimbrel.model.length import LENGTHS
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME, UNITS, duration, instant

ParamValue = bool | int | float | str | timedelta


def constant(value: bool | int | float | str | None, at: Span | None = None) -> Literal:
    """Make a literal of a Python value."""
    kinds = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}
    return Literal(value, None if value is None else kinds[type(value)], at=at)


def quantity(node: t.QuantityNode) -> Literal:
    """Make a literal of a number with a unit: microseconds, or metres as a float."""
    if node.amounts[0][1] in LENGTHS:
        metres = sum(float(amount) * LENGTHS[unit] for amount, unit in node.amounts)
        if not math.isfinite(metres):
            raise QueryError("this length is too long", node.at, "leave the condition out")
        return Literal(metres, Type.FLOAT, at=node.at)
    # Compared before rounding, because infinity cannot be rounded.
    if sum(float(amount) * UNITS[unit] for amount, unit in node.amounts) >= END_OF_TIME:
        raise QueryError("this duration is too long", node.at, "the longest one is about 146,000 years")
    total = sum(round(amount * UNITS[unit]) for amount, unit in node.amounts)
    return Literal(total, Type.DURATION, at=node.at)


def instant_literal(node: t.InstantNode) -> Literal:
    """Make a literal of `timestamp '...'`."""
    return Literal(instant(node.text), Type.TIMESTAMP, at=node.at)


def joined(operator: str, operands: Sequence[Expr], at: Span | None = None) -> Expr:
    """Join conditions with `and` or `or`."""
    # `and` and `or` do not care how they are grouped; a flat tree keeps long lists from nesting deeply.
    if len(operands) == 1:
        return operands[0]
    if len(operands) <= 8:
        left = joined(operator, operands[:-1], at)
        return Binary(operator, left, operands[-1], at=at)
    middle = len(operands) // 2
    return Binary(
        operator,
        joined(operator, operands[:middle], at),
        joined(operator, operands[middle:], at),
        at=at,
    )


@dataclass(slots=True)
class Params:
    """The parameters of a query: those it declares, and those given when it is compiled."""

    literals: dict[str, Literal] = field(default_factory=dict)
    undeclared: set[str] = field(default_factory=set)
    """Given when compiling, but not declared, and not used so far."""

    @classmethod
    def read(cls, declared: list[t.ParamNode], given: Mapping[str, ParamValue] | None) -> Params:
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
            params.undeclared.add(name)
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
            raise QueryError(
                "an amount of time must be more than nothing", amount.at, "write for example '5 min'"
            )
        return literal.value

    def length(self, amount: t.Amount) -> float:
        """Tell how many metres a length is."""
        if isinstance(amount, t.NamedAmount) and amount.unit is None:
            literal = self.value(amount.name, amount.at)
        else:
            literal = self._amount(amount)
        if literal.type is not Type.FLOAT or not isinstance(literal.value, float):
            shown = "an amount of time" if literal.type is Type.DURATION else "a bare number"
            raise QueryTypeError(
                f"a length is needed here, not {shown}", amount.at, "write for example '50 m'"
            )
        if literal.value <= 0:
            raise QueryError("a length must be more than nothing", amount.at, "write for example '50 m'")
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
            case t.QuantityNode():
                return quantity(amount)
            case t.NamedAmount(name, unit):
                return _with_unit(self.value(name, amount.at), unit, amount.at)

    def value(self, name: str, at: Span | None) -> Literal:
        """Look up the value of a parameter, or say how to supply one."""
        if name not in self.literals:
            raise QueryError(
                f"the parameter {name!r} has no value",
                at,
                f"write 'param {name} = ...', or give it: params={{{name!r}: ...}}, --param {name}=...",
            )
        self.undeclared.discard(name)
        return self.literals[name]

    def unused(self) -> list[str]:
        """Name the values that were given, but that nothing in the query asks for."""
        return sorted(self.undeclared)


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
    return quantity(t.QuantityNode(((value.value, unit),), at=at))


def _declared_value(param: t.ParamNode) -> Literal:
    value = param.value
    match value:
        case t.Constant(inner) if inner is not None:
            return constant(inner, value.at)
        case t.QuantityNode():
            return quantity(value)
        case t.InstantNode():
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
    if (isinstance(value, float) and not math.isfinite(value)) or abs(_whole(value)) >= 2**63:
        raise QueryTypeError(f"the parameter {name!r} is no number that a query can hold: {value}")
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


def _whole(value: ParamValue) -> int:
    return value if isinstance(value, int) else 0


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
