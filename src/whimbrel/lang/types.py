"""The types of expressions: inferred where the attributes are known, refused where they clash.

`None` is an unknown type: an attribute of an undeclared event, or null. It fits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from whimbrel.errors import QueryError, QueryTypeError
from whimbrel.graph.expressions import (
    AGGREGATES,
    PLACE_RELATIONS,
    RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    format_expr,
)
from whimbrel.graph.functions import Function
from whimbrel.model.schema import Type, common_type

AttributeTypes = Callable[[Attribute], Type | None]

ARITY: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("abs", "sqrt", "floor", "ceil", "sign", "exp", "ln"), (1, 1)),
    **dict.fromkeys(("lower", "upper", "length"), (1, 1)),
    **dict.fromkeys(("contains", "startswith", "endswith", "pow"), (2, 2)),
    **dict.fromkeys(PLACE_RELATIONS - {"same_place"}, (2, 2)),
    "same_place": (3, 3),
    **dict.fromkeys(("least", "greatest", "coalesce"), (1, None)),
    **dict.fromkeys(AGGREGATES, (1, 1)),
    **dict.fromkeys((name for name in RELATIONS if name != "contains"), (2, 2)),
    "round": (1, 2),
    "is_null": (1, 1),
    "between": (3, 3),
    "in": (2, None),
}
"""How many arguments a built-in function takes; None: any number."""

_NUMBERS_TO_FLOAT = frozenset({"sqrt", "exp", "ln", "pow"})
_NUMBERS_TO_SAME = frozenset({"abs", "sign", "floor", "ceil", "round"})
_TEXT_TESTS = frozenset({"contains", "startswith", "endswith"})


def infer(expr: Expr, attributes: AttributeTypes, functions: Mapping[str, Function]) -> Type | None:
    """Tell the type of an expression.

    Raises
    ------
    QueryTypeError
        If operands do not fit together; it points at the expression.
    """
    return _Inference(attributes, functions).of(expr)


class _Inference:
    def __init__(self, attributes: AttributeTypes, functions: Mapping[str, Function]) -> None:
        self.attributes = attributes
        self.functions = functions
        self.known: dict[int, Type | None] = {}

    def of(self, expr: Expr) -> Type | None:
        # Asked for more than once a level; without memory, deep expressions would take for ever.
        if id(expr) not in self.known:
            self.known[id(expr)] = self._infer(expr)
        return self.known[id(expr)]

    def _infer(self, expr: Expr) -> Type | None:
        match expr:
            case Literal(_, kind):
                return kind
            case Attribute():
                return self.attributes(expr)
            case PartRef(name):
                shown = name or "this"
                raise QueryTypeError(
                    f"{shown!r} is a whole event, not a value",
                    expr.at,
                    f"write {shown}.ATTRIBUTE to read one value",
                )
            case Unary("not", operand):
                self._want(operand, Type.BOOL)
                return Type.BOOL
            case Unary(_, operand):
                kind = self.of(operand)
                if kind is not None and not (kind.is_number or kind is Type.DURATION):
                    raise QueryTypeError(
                        f"{a_kind(kind)} has no negative", operand.at, "use 'not' for conditions"
                    )
                return kind
            case Binary(operator, left, right):
                return self._binary(expr, operator, left, right)
            case Call("ids"):
                return Type.TEXTS
            case Call("matches", ()):
                return Type.INT
            case Call(name, arguments):
                return self._call(expr, name, arguments)
        raise QueryError(f"cannot tell the type of {expr!r}")

    def _want(self, expr: Expr, wanted: Type) -> None:
        kind = self.of(expr)
        if kind is not None and kind is not wanted:
            hint = "compare it with something" if wanted is Type.BOOL else f"use {a_kind(wanted)} here"
            raise QueryTypeError(
                f"{format_expr(expr)} is {a_kind(kind)}, not {a_kind(wanted)}", expr.at, hint
            )

    def _want_number(self, expr: Expr) -> Type | None:
        kind = self.of(expr)
        if kind is not None and not kind.is_number:
            raise QueryTypeError(
                f"{format_expr(expr)} is {a_kind(kind)}, not a number", expr.at, "use a number here"
            )
        return kind

    def _binary(self, expr: Expr, operator: str, left: Expr, right: Expr) -> Type | None:
        if operator in ("and", "or"):
            self._want(left, Type.BOOL)
            self._want(right, Type.BOOL)
            return Type.BOOL
        kinds = self.of(left), self.of(right)
        if operator in ("+", "-", "*", "/", "%"):
            return _arithmetic(expr, operator, *kinds)
        self._comparable(expr, left, right)
        if operator not in ("=", "!=") and Type.BOOL in kinds:
            raise QueryTypeError("true and false have no order", expr.at, "use = or !=")
        return Type.BOOL

    def _comparable(self, expr: Expr, left: Expr, right: Expr) -> None:
        one, two = self.of(left), self.of(right)
        if one is None or two is None or one is two or (one.is_number and two.is_number):
            return
        hint = "compare values of one type"
        if Type.TIMESTAMP in (one, two) and Type.STRING in (one, two):
            hint = "write the time as timestamp '2024-05-01T12:00:00Z'"
        elif Type.DURATION in (one, two) and (one.is_number or two.is_number):
            hint = "give the number a unit, for example '5 s'"
        elif Type.STRING in (one, two) and (one.is_number or two.is_number):
            hint = "put the number in quotes to compare texts, or compare a number"
        raise QueryTypeError(
            f"{_shown(left, one)} cannot be compared with {_shown(right, two)}",
            expr.at,
            hint,
        )

    def _call(self, expr: Call, name: str, arguments: tuple[Expr, ...]) -> Type | None:
        if name in self.functions:
            for argument in arguments:
                if not isinstance(argument, PartRef):
                    self.of(argument)
            return self.functions[name].returns
        _check_arity(expr, name, arguments)
        if name in AGGREGATES:
            return self._aggregate(name, arguments[0])
        if name in RELATIONS and not (name in _TEXT_TESTS and not isinstance(arguments[0], PartRef)):
            return self._relation(name, arguments)
        if name in PLACE_RELATIONS:
            return Type.FLOAT if name == "distance" else Type.BOOL
        return self._scalar(expr, name, arguments)

    def _aggregate(self, name: str, argument: Expr) -> Type | None:
        if name == "count":
            if not isinstance(argument, PartRef):
                self.of(argument)
            return Type.INT
        kind = self.of(argument)
        if name == "distinct":
            return Type.INT
        if name not in ("sum", "avg") or kind is None:
            return kind
        if not (kind.is_number or kind is Type.DURATION):
            raise QueryTypeError(
                f"{name} needs numbers; {format_expr(argument)} is {a_kind(kind)}",
                argument.at,
                "min, max, first, last, count and distinct take any values",
            )
        return Type.FLOAT if name == "avg" and kind is Type.INT else kind

    def _relation(self, name: str, arguments: tuple[Expr, ...]) -> Type:
        for argument in arguments:
            if not isinstance(argument, PartRef):
                raise QueryTypeError(
                    f"{name!r} stands between two parts of the pattern",
                    argument.at,
                    f"write for example 'a {name} b'",
                )
        return Type.BOOL

    def _scalar(self, expr: Call, name: str, arguments: tuple[Expr, ...]) -> Type | None:
        if name in ("in", "between"):
            for other in arguments[1:]:
                self._comparable(expr, arguments[0], other)
            return Type.BOOL
        if name == "is_null":
            self.of(arguments[0])
            return Type.BOOL
        if name in ("least", "greatest", "coalesce"):
            return self._common(expr, arguments)
        if name in _NUMBERS_TO_FLOAT or name in _NUMBERS_TO_SAME:
            kinds = [self._want_number(argument) for argument in arguments]
            return Type.FLOAT if name in _NUMBERS_TO_FLOAT else kinds[0]
        for argument in arguments:
            self._want(argument, Type.STRING)
        if name in _TEXT_TESTS:
            return Type.BOOL
        return Type.INT if name == "length" else Type.STRING

    def _common(self, expr: Expr, arguments: tuple[Expr, ...]) -> Type | None:
        for other in arguments[1:]:
            self._comparable(expr, arguments[0], other)
        return common_type([self.of(argument) for argument in arguments])


def a_kind(kind: Type | None) -> str:
    """Name a type with its article."""
    if kind is None:
        return "an unknown value"
    return f"an {kind.value}" if kind is Type.INT else f"a {kind.value}"


def fits(kind: Type | None, declared: Type) -> bool:
    """Tell whether a value of type `kind` can be kept as `declared`."""
    if kind is None or kind is declared:
        return True
    if declared.is_number:
        return kind.is_number or kind in (Type.DURATION, Type.BOOL)
    return False


def _arithmetic(expr: Expr, operator: str, one: Type | None, two: Type | None) -> Type | None:
    if one is None or two is None:
        return Type.FLOAT if operator == "/" and (one or two) in (Type.INT, Type.FLOAT) else None
    if one.is_number and two.is_number:
        return Type.INT if one is two is Type.INT and operator != "/" else Type.FLOAT
    result = _TIME_ARITHMETIC.get((operator, _rough(one), _rough(two)))
    if result is None:
        raise QueryTypeError(
            f"{one.value} {operator} {two.value} has no meaning", expr.at, _arithmetic_hint(one, two)
        )
    return result


def _rough(kind: Type) -> Type:
    return Type.FLOAT if kind.is_number else kind


_TIME_ARITHMETIC: dict[tuple[str, Type, Type], Type] = {
    ("-", Type.TIMESTAMP, Type.TIMESTAMP): Type.DURATION,
    ("-", Type.TIMESTAMP, Type.DURATION): Type.TIMESTAMP,
    ("+", Type.TIMESTAMP, Type.DURATION): Type.TIMESTAMP,
    ("+", Type.DURATION, Type.TIMESTAMP): Type.TIMESTAMP,
    ("+", Type.DURATION, Type.DURATION): Type.DURATION,
    ("-", Type.DURATION, Type.DURATION): Type.DURATION,
    ("%", Type.DURATION, Type.DURATION): Type.DURATION,
    ("/", Type.DURATION, Type.DURATION): Type.FLOAT,
    ("*", Type.DURATION, Type.FLOAT): Type.DURATION,
    ("*", Type.FLOAT, Type.DURATION): Type.DURATION,
    ("/", Type.DURATION, Type.FLOAT): Type.DURATION,
}


def _arithmetic_hint(one: Type, two: Type) -> str:
    if Type.TIMESTAMP in (one, two) and (one.is_number or two.is_number):
        return "give the number a unit, for example '5 s'"
    return "only numbers, times and durations can be calculated with"


def _check_arity(expr: Call, name: str, arguments: tuple[Expr, ...]) -> None:
    low, high = ARITY[name]
    if low <= len(arguments) and (high is None or len(arguments) <= high):
        return
    wanted = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
    noun = "argument" if wanted == "1" else "arguments"
    example = f"write {name}({', '.join('abc'[:low])})"
    raise QueryTypeError(f"{name} takes {wanted} {noun}, not {len(arguments)}", expr.at, example)


def _shown(expr: Expr, kind: Type) -> str:
    return f"{format_expr(expr)} ({a_kind(kind)})"
