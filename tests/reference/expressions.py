"""What an expression says, given what its names are bound to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from whimbrel.graph.expressions import (
    AGGREGATES,
    GROUP,
    PLACE_RELATIONS,
    RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    parts_of,
)
from whimbrel.graph.functions import Function
from whimbrel.graph.policies import Assign
from whimbrel.model.schema import Coordinates, Type

from .arithmetic import binary, cast, clean, conjunction, disjunction, negation, negative
from .data import Duration, Item, Timestamp, Value
from .functions import AGGREGATE, LENIENT, STRICT, Place, centre, geometry, region, relate_places

Bound = Item | tuple[Item, ...] | None
Identify = Callable[[str | None, int, tuple[str, ...]], str]


def plain_identity(event_type: str | None, case: int, ids: tuple[str, ...]) -> str:
    """The id of a detection (`X.0(e1,e2)`), or, without a type, of a composite (`(e1,e2)`)."""
    listed = f"({','.join(ids)})"
    return listed if event_type is None else f"{event_type}.{case}{listed}"


@dataclass(frozen=True)
class World:
    """What holds for a whole run."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    coordinates: Coordinates = Coordinates.PLANE
    identify: Identify = plain_identity
    limit: int = 200_000


@dataclass(frozen=True)
class Env:
    """What the names of an expression are bound to. The name None is the event under test."""

    world: World
    parts: Mapping[str | None, Bound]
    group: Mapping[str, Value] = field(default_factory=dict)


def holds(condition: Expr, env: Env) -> bool:
    """A condition holds only if it is true."""
    return evaluate(condition, env) is True


def assigned(assignments: tuple[Assign, ...], env: Env) -> dict[str, Value]:
    return {item.name: cast(evaluate(item.value, env), item.type) for item in assignments}


def evaluate(expr: Expr, env: Env) -> Value:
    match expr:
        case Literal(value, kind):
            return _literal(value, kind)
        case Attribute(part, name):
            return env.group.get(name) if part == GROUP else _attribute(env.parts[part], name)
        case Unary("not", operand):
            return negation(evaluate(operand, env))
        case Unary("-", operand):
            return negative(evaluate(operand, env))
        case Binary("and", left, right):
            return conjunction(evaluate(left, env), evaluate(right, env))
        case Binary("or", left, right):
            return disjunction(evaluate(left, env), evaluate(right, env))
        case Binary(operator, left, right):
            return binary(operator, evaluate(left, env), evaluate(right, env))
        case Call(name, arguments):
            return clean(_call(name, arguments, env))
    raise TypeError(f"not an expression with a value: {expr!r}")


def _literal(value: Value, kind: Type | None) -> Value:
    if value is None:
        return None
    if kind is Type.DURATION:
        return Duration(value)
    return Timestamp(value) if kind is Type.TIMESTAMP else clean(value)


def _attribute(bound: Bound, name: str) -> Value:
    if isinstance(bound, tuple):
        raise TypeError(f"a repeated part is read through an aggregate, not as .{name}")
    return None if bound is None else read(bound, name)


def read(item: Item, name: str) -> Value:
    """An attribute of the data, else one that every event has, else null."""
    if name in item.attributes:
        return item.attributes[name]
    match name:
        case "start":
            return Timestamp(item.start)
        case "end" | "timestamp":
            return Timestamp(item.end)
        case "duration":
            return Duration(item.end - item.start)
        case "type":
            return item.type
        case "source" | "srcid":
            return item.source
        case "id":
            return item.id
        case "x" | "lon" | "y" | "lat":
            where = centre(item)
            return None if where is None else where[0 if name in ("x", "lon") else 1]
    return None


def _call(name: str, arguments: tuple[Expr, ...], env: Env) -> Value:
    if name in RELATIONS and arguments and isinstance(arguments[0], PartRef):
        return _relation(name, arguments, env)
    if name in AGGREGATES or (name in env.world.functions and env.world.functions[name].aggregate):
        return _aggregate(name, arguments, env)
    if name in PLACE_RELATIONS:
        one, two = (_location(argument, env) for argument in arguments[:2])
        more = [evaluate(argument, env) for argument in arguments[2:]]
        return relate_places(name, one, two, more, env.world.coordinates)
    if name == "is_null":
        return _is_null(arguments[0], env)
    values = [evaluate(argument, env) for argument in arguments]
    if name in LENIENT:
        return LENIENT[name](*values)
    if None in values:
        return None
    if name in STRICT:
        return STRICT[name](*values)
    return _registered(env.world.functions[name], values)


def _is_null(argument: Expr, env: Env) -> bool:
    if isinstance(argument, PartRef):
        return env.parts[argument.name] is None
    return evaluate(argument, env) is None


def _one(argument: Expr, env: Env) -> Item | None:
    """The one event an argument stands for."""
    if not isinstance(argument, PartRef):
        raise TypeError(f"not a part of the pattern: {argument!r}")
    bound = env.parts[argument.name]
    if isinstance(bound, tuple):
        raise TypeError(f"the repeated part {argument.name!r} is not one event")
    return bound


def _location(argument: Expr, env: Env) -> Place:
    """Where an event or a region lies."""
    if isinstance(argument, Literal):
        return region(str(argument.value))
    item = _one(argument, env)
    return None if item is None else geometry(item, env.world.coordinates)


def _relation(name: str, arguments: tuple[Expr, ...], env: Env) -> Value:
    """A temporal relation; a repeated part stretches from its least start to its largest end."""
    left, right = (_interval(argument, env) for argument in arguments)
    return None if left is None or right is None else _RELATIONS[name](left, right)


class Interval(NamedTuple):
    """From when to when something lasts."""

    start: int
    end: int


def _interval(argument: Expr, env: Env) -> Interval | None:
    if not isinstance(argument, PartRef):
        raise TypeError(f"not a part of the pattern: {argument!r}")
    items = _several(env.parts[argument.name])
    return Interval(min(item.start for item in items), max(item.end for item in items)) if items else None


# The table RELATIONS, with its own words.
_RELATIONS: dict[str, Callable[[Interval, Interval], bool]] = {
    "before": lambda a, b: a.end < b.start,
    "after": lambda a, b: a.start > b.end,
    "meets": lambda a, b: a.end == b.start,
    "met_by": lambda a, b: a.start == b.end,
    "overlaps": lambda a, b: a.start < b.start and b.start < a.end and a.end < b.end,
    "overlapped_by": lambda a, b: b.start < a.start and a.start < b.end and b.end < a.end,
    "starts": lambda a, b: a.start == b.start and a.end < b.end,
    "started_by": lambda a, b: a.start == b.start and a.end > b.end,
    "during": lambda a, b: a.start > b.start and a.end < b.end,
    "contains": lambda a, b: a.start < b.start and a.end > b.end,
    "finishes": lambda a, b: a.end == b.end and a.start > b.start,
    "finished_by": lambda a, b: a.end == b.end and a.start < b.start,
    "equals": lambda a, b: a.start == b.start and a.end == b.end,
    "concurrent": lambda a, b: a.start <= b.end and b.start <= a.end,
}


def _several(bound: Bound) -> tuple[Item, ...]:
    if bound is None:
        return ()
    return bound if isinstance(bound, tuple) else (bound,)


def _aggregate(name: str, arguments: tuple[Expr, ...], env: Env) -> Value:
    """An aggregate over the events of one part; nulls are skipped."""
    argument = arguments[0] if arguments else PartRef(None)
    if isinstance(argument, PartRef):
        return len(_several(env.parts[argument.name]))
    values = [value for value in _values(argument, env) if value is not None]
    if name in AGGREGATE:
        return AGGREGATE[name](values)
    function = env.world.functions[name]
    return _result(function, function.call(values)) if values else None


def _values(argument: Expr, env: Env) -> list[Value]:
    """The argument once for each event of the part it reads; other parts stay as they are."""
    names = sorted(parts_of(argument) - {GROUP}, key=str)
    repeated = [name for name in names if isinstance(env.parts[name], tuple)] or names
    if len(repeated) != 1:
        raise TypeError(f"an aggregate goes over one part, not over {repeated}")
    name = repeated[0]
    return [
        evaluate(argument, replace(env, parts={**env.parts, name: item}))
        for item in _several(env.parts[name])
    ]


def _registered(function: Function, values: list[Value]) -> Value:
    if function.vectorised:
        return _result(function, function.call(*[np.array([value]) for value in values])[0])
    return _result(function, function.call(*values))


def _result(function: Function, value: object) -> Value:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and math.isnan(value):
        return None
    return Duration(value) if function.returns is Type.DURATION else cast(value, function.returns.value)  # type: ignore[arg-type]
