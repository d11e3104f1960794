"""Turn conditions between events into programs for the stack machine.

Whatever reads a single part is computed as a column when the event comes in; only what really
correlates two parts is left for the machine. What the machine cannot do (functions of several parts
written in Python) raises `BeyondTheMachine`; the caller then tests it on the
combinations found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from whimbrel.engine.evaluate import arithmetic_type
from whimbrel.engine.kernels import machine as m
from whimbrel.engine.kernels.relation_address import address_of_related
from whimbrel.engine.shapes import NO_SHAPE, ShapeLayout
from whimbrel.engine.spatial_relations import ASKED, tolerance
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.errors import QueryTypeError
from whimbrel.graph.expressions import (
    PLACE,
    PLACE_RELATIONS,
    RELATIONS,
    SHAPE,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    format_expr,
    parts_of,
    transform,
)
from whimbrel.model.schema import Coordinates, Type

_COMPARE_I = {"=": m.EQ_I, "!=": m.NE_I, "<": m.LT_I, "<=": m.LE_I, ">": m.GT_I, ">=": m.GE_I}
_COMPARE_F = {"=": m.EQ_F, "!=": m.NE_F, "<": m.LT_F, "<=": m.LE_F, ">": m.GT_F, ">=": m.GE_F}
_INT = {"+": m.ADD_I, "-": m.SUB_I, "*": m.MUL_I, "%": m.MOD_I}
_FLOAT = {"+": m.ADD_F, "-": m.SUB_F, "*": m.MUL_F, "/": m.DIV_F, "%": m.MOD_F, "pow": m.POW}
_UNARY_F = {"sqrt": m.SQRT, "floor": m.FLOOR, "ceil": m.CEIL, "round": m.ROUND, "exp": m.EXP, "ln": m.LN}
_PICK = {
    "least": (m.LEAST_I, m.LEAST_F),
    "greatest": (m.GREATEST_I, m.GREATEST_F),
    "coalesce": (m.COALESCE_I, m.COALESCE_F),
}


REGISTERS = 1
"""The slot in which a run's own values lie."""


class BeyondTheMachine(Exception):
    """The stack machine cannot run this condition."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Where a column of a part lies in the pool, and what type it has (None: not known yet)."""

    type: Type | None
    index: int


@dataclass
class Programs:
    """The programs of one pattern, side by side in one code array."""

    operand: Callable[[int, Expr], Operand]
    """Gives the pool column that holds an expression over the event in a slot."""
    slots: Mapping[str, int]
    coordinates: Coordinates | None
    registers: Mapping[Expr, Operand] = field(default_factory=dict)
    """Values that were kept for a run, read as if they were columns of slot `REGISTERS`."""
    text_code: Callable[[str], int] | None = None
    """Gives the code of a constant text, where constants may be compared with what was kept."""
    code: list[int] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    orders_texts: bool = False
    """Whether any program asks which of two texts comes first, so that codes must be in their order."""
    _shapes_at: int | None = None

    def add(self, condition: Expr) -> tuple[int, int]:
        """Compile one condition; give where its program begins and stops."""
        begin, ints, floats = len(self.code), len(self.ints), len(self.floats)
        try:
            kind = self._push(condition)
        except BeyondTheMachine:
            del self.code[begin:], self.ints[ints:], self.floats[floats:]
            if self._shapes_at is not None and self._shapes_at >= ints:
                self._shapes_at = None
            raise
        if kind not in (Type.BOOL, None):
            raise QueryTypeError(f"{format_expr(condition)!r} is no condition", condition.at)
        return begin, len(self.code)

    @property
    def is_exact(self) -> bool:
        """Whether the machine computes the same to the last bit whether it is compiled or runs plainly."""
        return m.INEXACT.isdisjoint(self.code[::3])

    def _emit(self, operation: int, a: int = 0, b: int = 0) -> None:
        self.code += (operation, a, b)

    def _push(self, expr: Expr) -> Type | None:
        """Emit code that leaves the value of `expr` on the stack; give its type (None: null)."""
        if expr in self.registers:
            return self._push_register(self.registers[expr])
        names = parts_of(expr)
        if len(names) == 1 and not isinstance(expr, PartRef):
            (name,) = names
            if name is not None and name in self.slots:
                return self._push_column(self.slots[name], expr)
        match expr:
            case Literal(value, kind):
                return self._push_constant(value, kind)
            case Unary("not", operand):
                self._push_truth(operand)
                self._emit(m.NOT)
                return Type.BOOL
            case Unary(_, operand):
                kind = self._push(operand)
                self._emit(m.NEG_F if kind is Type.FLOAT else m.NEG_I)
                return kind
            case Binary("and" | "or" as operator, left, right):
                self._push_truth(left)
                self._push_truth(right)
                self._emit(m.AND if operator == "and" else m.OR)
                return Type.BOOL
            case Binary(operator, left, right) if operator in _COMPARE_I:
                return self._compare(operator, left, right, expr)
            case Binary(operator, left, right):
                return self._arithmetic(operator, left, right, expr)
            case Call():
                return self._call(expr)
        raise BeyondTheMachine

    def _push_register(self, operand: Operand) -> Type | None:
        if operand.type is None:
            self._emit(m.NULL)
        else:
            self._emit(m.LOAD_F if operand.type is Type.FLOAT else m.LOAD_I, REGISTERS, operand.index)
        return operand.type

    def _push_column(self, slot: int, expr: Expr) -> Type | None:
        if isinstance(expr, Attribute) and expr.name in ("start", "end") and self._is_own(slot, expr):
            self._emit(m.START if expr.name == "start" else m.END, slot)
            return Type.TIMESTAMP
        operand = self.operand(slot, expr)
        if operand.type is None:
            self._emit(m.NULL)
        else:
            self._emit(m.LOAD_F if operand.type is Type.FLOAT else m.LOAD_I, slot, operand.index)
        return operand.type

    def _is_own(self, slot: int, expr: Attribute) -> bool:
        return self.operand(slot, expr).index < 0

    def _push_constant(self, value: bool | int | float | str | None, kind: Type | None) -> Type | None:
        if value is None:
            self._emit(m.NULL)
            return None
        if isinstance(value, str):
            if self.text_code is None:
                raise BeyondTheMachine
            self._emit(m.CONST_I, len(self.ints))
            self.ints.append(self.text_code(value))
            return Type.STRING
        if isinstance(value, float):
            self._emit(m.CONST_F, len(self.floats))
            self.floats.append(value)
            return Type.FLOAT
        self._emit(m.CONST_I, len(self.ints))
        self.ints.append(int(value))
        return Type.BOOL if isinstance(value, bool) else kind or Type.INT

    def _push_truth(self, expr: Expr) -> None:
        if self._push(expr) not in (Type.BOOL, None):
            raise QueryTypeError(f"{format_expr(expr)!r} is no condition", expr.at)

    def _push_pair(self, left: Expr, right: Expr) -> tuple[Type | None, Type | None]:
        """Push two operands, both as floats if either is one."""
        first = self._push(left)
        second = self._push(right)
        if first is Type.FLOAT and second is Type.INT:
            self._emit(m.TO_F, 0)
        elif first is Type.INT and second is Type.FLOAT:
            self._emit(m.TO_F, 1)
        return first, second

    def _compare(self, operator: str, left: Expr, right: Expr, expr: Expr) -> Type:
        first, second = self._push_pair(left, right)
        if first is not None and second is not None:
            if first is not second and not (first.is_number and second.is_number):
                raise QueryTypeError(
                    f"{format_expr(expr)!r} compares a {first.value} with a {second.value}", expr.at
                )
            if first is Type.STRING and operator not in ("=", "!="):
                self.orders_texts = True
        floats = Type.FLOAT in (first, second)
        self._emit((_COMPARE_F if floats else _COMPARE_I)[operator])
        return Type.BOOL

    def _arithmetic(self, operator: str, left: Expr, right: Expr, expr: Expr) -> Type | None:
        first, second = self._push(left), self._push(right)
        if first is None or second is None:
            self._emit(m.ADD_I)  # null whatever the operation
            return None
        kind = arithmetic_type(operator, first, second)
        if kind is None:
            raise QueryTypeError(
                f"{format_expr(expr)!r}: {operator!r} does not go with {first.value} and {second.value}",
                expr.at,
            )
        scaled = kind is Type.DURATION and operator in "*/"
        if kind is Type.FLOAT or scaled:
            if first is not Type.FLOAT:
                self._emit(m.TO_F, 1)
            if second is not Type.FLOAT:
                self._emit(m.TO_F, 0)
            self._emit(_FLOAT[operator])
            if scaled:
                self._emit(m.TO_I)
        else:
            self._emit(_INT[operator])
        return kind

    def _call(self, expr: Call) -> Type | None:
        name, arguments = expr.function, expr.arguments
        if is_relation(expr):
            return self._push(relation(expr))
        if name in PLACE_RELATIONS:
            return self._relate_places(expr)
        if name == "in":
            return self._push(_any_equal(expr))
        if name == "between":
            low, high = Binary(">=", arguments[0], arguments[1]), Binary("<=", arguments[0], arguments[2])
            return self._push(Binary("and", low, high, at=expr.at))
        if name == "is_null":
            self._push(arguments[0])
            self._emit(m.IS_NULL)
            return Type.BOOL
        if name in _PICK and len(arguments) > 1:
            return self._pick(name, arguments)
        if name in _UNARY_F or name in ("abs", "sign"):
            return self._unary(name, arguments[0])
        if name == "pow":
            for argument in arguments:
                if self._push(argument) is Type.INT:
                    self._emit(m.TO_F, 0)
            self._emit(m.POW)
            return Type.FLOAT
        raise BeyondTheMachine

    def _unary(self, name: str, argument: Expr) -> Type | None:
        kind = self._push(argument)
        if kind is None:
            return None
        if kind is not Type.FLOAT and name in ("floor", "ceil", "round"):
            return kind
        if name in ("abs", "sign"):
            ints = {"abs": m.ABS_I, "sign": m.SIGN_I}[name]
            floats = {"abs": m.ABS_F, "sign": m.SIGN_F}[name]
            self._emit(floats if kind is Type.FLOAT else ints)
            return kind
        if kind is not Type.FLOAT:
            self._emit(m.TO_F, 0)
        self._emit(_UNARY_F[name])
        return Type.FLOAT

    def _pick(self, name: str, arguments: tuple[Expr, ...]) -> Type | None:
        kind = self._push(arguments[0])
        for argument in arguments[1:]:
            other = self._push(argument)
            if Type.STRING in (kind, other):
                raise BeyondTheMachine
            if kind is Type.FLOAT and other is Type.INT:
                self._emit(m.TO_F, 0)
            elif kind is Type.INT and other is Type.FLOAT:
                self._emit(m.TO_F, 1)
            kind = Type.FLOAT if Type.FLOAT in (kind, other) else kind or other
            self._emit(_PICK[name][1 if kind is Type.FLOAT else 0])
        return kind

    def _relate_places(self, expr: Call) -> Type | None:
        one, two = expr.arguments[:2]
        if not (isinstance(one, PartRef) and isinstance(two, PartRef)):
            raise BeyondTheMachine
        on_sphere = self.coordinates is Coordinates.LONLAT
        has_shapes = self._has_shape(one) or self._has_shape(two)
        if expr.function == "same_place" or (expr.function == "distance" and not has_shapes):
            for name in (one.name, two.name):
                self._push(Attribute(name, "@x"))
                self._push(Attribute(name, "@y"))
            self._emit(m.SPHERE if on_sphere else m.PLANE)
            return self._at_most(tolerance(expr)) if expr.function == "same_place" else Type.FLOAT
        for name in (one.name, two.name):
            for each in PLACE:
                self._push(Attribute(name, each))
        self._emit(m.APART + ASKED[expr.function], self._shapes_place(), int(on_sphere))
        return Type.FLOAT if expr.function == "distance" else Type.BOOL

    def _has_shape(self, part: PartRef) -> bool:
        shape = Attribute(part.name, SHAPE.name)
        if shape in self.registers:
            return self.registers[shape].type is not None
        return self.operand(self.slots[part.name or ""], shape).type is not None

    def _at_most(self, limit: float) -> Type:
        self._push_constant(limit, Type.FLOAT)
        self._emit(m.LE_F)
        return Type.BOOL

    def _shapes_place(self) -> int:
        """Give the place of two constants: where the places of the shapes stand, and the code of geometry."""
        if self._shapes_at is None:
            self._shapes_at = len(self.ints)
            self.ints += [0, 0]
        return self._shapes_at

    @property
    def reads_shapes(self) -> bool:
        """Whether any program asks how two shapes lie to each other."""
        return self._shapes_at is not None

    def constants(self, layout: ShapeLayout, texts: Sequence[Any]) -> tuple[Int64Array, FloatArray]:
        """Give the constants, followed by where the shape of every text lies, and by the shapes."""
        ints, floats = np.array(self.ints, np.int64), np.array(self.floats, np.float64)
        if self._shapes_at is None:
            return ints, floats
        places = layout.places(texts)
        ints[self._shapes_at : self._shapes_at + 2] = len(ints), address_of_related()
        places = np.where(places == NO_SHAPE, NO_SHAPE, places + len(floats))
        return np.concatenate([ints, places]), np.concatenate([floats, layout.data])


def relation(expr: Call) -> Expr:
    """Spell a temporal relation out as comparisons of starts and ends."""
    first, second = expr.arguments
    if not (isinstance(first, PartRef) and isinstance(second, PartRef)):
        raise QueryTypeError(f"{expr.function!r} relates two parts of the pattern", expr.at)
    names = {"a": first.name, "b": second.name}
    joined: Expr | None = None
    for clause in RELATIONS[expr.function].split(" and "):
        left, operator, right = clause.split()
        sides = [Attribute(names[side[0]], side[2:], at=expr.at) for side in (left, right)]
        comparison = Binary(operator, *sides, at=expr.at)
        joined = comparison if joined is None else Binary("and", joined, comparison, at=expr.at)
    assert joined is not None
    return joined


def spell_out_relations(expr: Expr) -> Expr:
    """Replace every temporal relation inside `expr` by comparisons."""
    return transform(expr, lambda e: relation(e) if is_relation(e) else e)


def is_relation(expr: Expr) -> TypeGuard[Call]:
    """Tell whether `expr` relates two parts in time; `contains` is also a function of texts."""
    return isinstance(expr, Call) and expr.function in RELATIONS and isinstance(expr.arguments[0], PartRef)


def _any_equal(expr: Call) -> Expr:
    value, *choices = expr.arguments
    found: Expr = Binary("=", value, choices[0], at=expr.at)
    for choice in choices[1:]:
        found = Binary("or", found, Binary("=", value, choice), at=expr.at)
    return found
