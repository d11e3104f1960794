"""Expressions over whole columns at once, with SQL's nulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.spatial_relations import relate
from whimbrel.engine.values import BoolArray, Column, decoded, from_arrow, nothing, to_arrow
from whimbrel.errors import QueryError, QueryTypeError
from whimbrel.graph.expressions import (
    KEPT,
    PLACE_RELATIONS,
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
from whimbrel.model.schema import Type

if TYPE_CHECKING:
    from whimbrel.engine.streams import ExecutionContext

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_TEXT_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TIMES = (Type.TIMESTAMP, Type.DURATION)


class Frame(Protocol):
    """What an expression is evaluated over: rows, and the columns its names stand for."""

    @property
    def context(self) -> ExecutionContext: ...

    def __len__(self) -> int: ...

    def column(self, part: str | None, name: str) -> Column: ...

    def known(self, expr: Expr) -> Column: ...

    def attributes(self, part: str | None) -> dict[str, Column]: ...


def evaluate(expr: Expr, frame: Frame) -> Column:
    """Compute `expr` for every row of `frame`."""
    match expr:
        case Literal(value, kind):
            return constant(value, kind, len(frame))
        case Attribute(part, name):
            return frame.column(part, name)
        case Unary("not", operand):
            truth = as_truth(evaluate(operand, frame), expr)
            return Column(Type.BOOL, ~truth.values, truth.null)
        case Unary(_, operand):
            return _negative(evaluate(operand, frame), expr)
        case Binary("and" | "or" as operator, left, right):
            return _logic(
                operator, as_truth(evaluate(left, frame), expr), as_truth(evaluate(right, frame), expr)
            )
        case Binary(operator, left, right) if operator in COMPARISONS:
            return compare(operator, evaluate(left, frame), evaluate(right, frame), expr)
        case Binary(operator, left, right):
            return arithmetic(operator, evaluate(left, frame), evaluate(right, frame), expr)
        case Call():
            return _call(expr, frame)
    raise QueryError(f"{format_expr(expr)!r} is not a value here", expr.at)


def true_rows(expr: Expr, frame: Frame) -> BoolArray:
    """Tell for every row whether the condition `expr` is true (not false, not null)."""
    truth = as_truth(evaluate(expr, frame), expr)
    values: BoolArray = truth.values if truth.null is None else truth.values & ~truth.null
    return values


def constant(value: bool | int | float | str | None, kind: Type | None, size: int) -> Column:
    """Repeat one value `size` times."""
    if value is None:
        return nothing(size)
    if isinstance(value, str):
        index = pa.array(np.zeros(size, np.int32))
        return Column(Type.STRING, pa.DictionaryArray.from_arrays(index, pa.array([value])))
    if isinstance(value, bool):
        return Column(Type.BOOL, np.full(size, value))
    if isinstance(value, int):
        return Column(kind or Type.INT, np.full(size, value, np.int64))
    return Column(Type.FLOAT, np.full(size, value, np.float64))


def as_truth(column: Column, expr: Expr) -> Column:
    """Check that a column is a condition."""
    if column.type is None:
        return Column(Type.BOOL, np.zeros(len(column), np.bool_), column.null)
    if column.type is not Type.BOOL:
        raise QueryTypeError(f"{format_expr(expr)!r} needs a condition, not a {column.type.value}", expr.at)
    return column


def compare(operator: str, left: Column, right: Column, expr: Expr) -> Column:
    """Compare two columns."""
    null = either_null(left, right)
    if left.type is None or right.type is None:
        return Column(Type.BOOL, np.zeros(len(left), np.bool_), np.ones(len(left), np.bool_))
    if left.type is Type.STRING and right.type is Type.STRING:
        return Column(Type.BOOL, _compare_texts(operator, left.values, right.values), null)
    if not _comparable(left.type, right.type):
        raise QueryTypeError(
            f"{format_expr(expr)!r} compares a {left.type.value} with a {right.type.value}", expr.at
        )
    values = COMPARISONS[operator](left.values, right.values)
    return Column(Type.BOOL, values, null)


def _comparable(left: Type, right: Type) -> bool:
    return left is right or (left.is_number and right.is_number)


def _compare_texts(operator: str, left: Any, right: Any) -> BoolArray:
    if (
        pa.types.is_dictionary(right.type)
        and len(right.dictionary) == 1
        and pa.types.is_dictionary(left.type)
    ):
        # One constant: compare the few different texts, then spread the answer over the rows.
        verdict = _TEXT_COMPARISONS[operator](decoded(left.dictionary), right.dictionary[0])
        flags = verdict.fill_null(False).to_numpy(zero_copy_only=False)
        codes = left.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return flags[codes] if len(flags) else np.zeros(len(left), np.bool_)
    if pa.types.is_dictionary(right.type) and len(right.dictionary) == 1:
        right = right.dictionary[0]
    else:
        right = decoded(right)
    found = _TEXT_COMPARISONS[operator](decoded(left), right)
    values: BoolArray = found.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def either_null(*columns: Column) -> BoolArray | None:
    """Join null masks."""
    joined: BoolArray | None = None
    for column in columns:
        if column.null is not None:
            joined = column.null if joined is None else joined | column.null
    return joined


def _logic(operator: str, left: Column, right: Column) -> Column:
    if operator == "and":
        values = left.values & right.values
        decided = [(~c.values & ~c.nulls) for c in (left, right)]
    else:
        values = left.values | right.values
        decided = [(c.values & ~c.nulls) for c in (left, right)]
    null = either_null(left, right)
    if null is None:
        return Column(Type.BOOL, values)
    settled = decided[0] | decided[1]
    return Column(Type.BOOL, np.where(settled, operator == "or", values), null & ~settled)


def _negative(column: Column, expr: Expr) -> Column:
    if column.type is None:
        return column
    if not (column.type.is_number or column.type is Type.DURATION):
        raise QueryTypeError(f"{format_expr(expr)!r} needs a number, not a {column.type.value}", expr.at)
    return Column(column.type, -column.values, column.null)


def arithmetic(operator: str, left: Column, right: Column, expr: Expr) -> Column:
    """Add, subtract, multiply, divide or take the remainder of two columns."""
    if left.type is None or right.type is None:
        return nothing(len(left))
    kind = arithmetic_type(operator, left.type, right.type)
    if kind is None:
        raise QueryTypeError(
            f"{format_expr(expr)!r}: {operator!r} does not go with {left.type.value} and {right.type.value}",
            expr.at,
        )
    null = either_null(left, right)
    a, b = left.values, right.values
    if Type.DURATION in (left.type, right.type) and kind is Type.DURATION and operator in "*/":
        number = np.rint(_float_result(operator, a.astype(np.float64), b.astype(np.float64)))
        return _whole(number, null, kind)
    if kind is Type.FLOAT:
        return clean(_float_result(operator, a.astype(np.float64), b.astype(np.float64)), null)
    with np.errstate(over="ignore"):
        if operator == "%":
            zero = b == 0
            values = np.mod(a, np.where(zero, 1, b))
            return Column(kind, values, _also(null, zero))
        values = {"+": np.add, "-": np.subtract, "*": np.multiply}[operator](a, b)
    return Column(kind, values, null)


def arithmetic_type(operator: str, left: Type, right: Type) -> Type | None:
    """Give the type of `left operator right`, or None where it is not defined."""
    if left.is_number and right.is_number:
        return Type.INT if left is right is Type.INT and operator != "/" else Type.FLOAT
    if operator == "-" and left is right is Type.TIMESTAMP:
        return Type.DURATION
    if operator in "+-" and left is Type.TIMESTAMP and right is Type.DURATION:
        return Type.TIMESTAMP
    if operator == "+" and left is Type.DURATION and right is Type.TIMESTAMP:
        return Type.TIMESTAMP
    if left is right is Type.DURATION:
        return {"+": Type.DURATION, "-": Type.DURATION, "/": Type.FLOAT, "%": Type.DURATION}.get(operator)
    if left is Type.DURATION and right.is_number and operator in "*/":
        return Type.DURATION
    if left.is_number and right is Type.DURATION and operator == "*":
        return Type.DURATION
    return None


def _float_result(operator: str, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        if operator == "/":
            return np.where(b == 0, np.nan, a / b)
        if operator == "%":
            return np.where(b == 0, np.nan, np.mod(a, b))
        return {"+": np.add, "-": np.subtract, "*": np.multiply}[operator](a, b)


def clean(values: Any, null: BoolArray | None) -> Column:
    """Make a float column in which NaN is null."""
    return Column(Type.FLOAT, values, _also(null, np.isnan(values)))


def _whole(values: Any, null: BoolArray | None, kind: Type) -> Column:
    bad = ~np.isfinite(values) | (np.abs(values) >= 2.0**63)
    return Column(kind, np.where(bad, 0, values).astype(np.int64), _also(null, bad))


def _also(null: BoolArray | None, more: BoolArray) -> BoolArray | None:
    if not more.any():
        return null
    return more if null is None else null | more


def _call(expr: Call, frame: Frame) -> Column:
    name, arguments = expr.function, expr.arguments
    if name in KEPT or (name in frame.context.functions and frame.context.functions[name].aggregate):
        return frame.known(expr)
    if name in PLACE_RELATIONS:
        return relate(expr, frame)
    if name in frame.context.functions:
        return _user_function(frame.context.functions[name], expr, frame)
    columns = [evaluate(argument, frame) for argument in arguments]
    if name == "in":
        return _any_of([compare("=", columns[0], choice, expr) for choice in columns[1:]])
    if name == "between":
        low, high = compare(">=", columns[0], columns[1], expr), compare("<=", columns[0], columns[2], expr)
        return _logic("and", low, high)
    if name == "is_null":
        return Column(Type.BOOL, columns[0].nulls)
    if name in ("least", "greatest", "coalesce"):
        return _pick(name, columns, expr)
    if name in _NUMERIC:
        return _numeric(name, columns, expr)
    if name in _TEXT:
        return _text(name, columns, expr)
    raise QueryError(f"no function is named {name!r}", expr.at)


def _any_of(tests: list[Column]) -> Column:
    found = tests[0]
    for test in tests[1:]:
        found = _logic("or", found, test)
    return found


def _pick(name: str, columns: list[Column], expr: Expr) -> Column:
    known = [column for column in columns if column.type is not None]
    if not known:
        return columns[0]
    if any(not _comparable(known[0].type, c.type) for c in known if c.type and known[0].type):
        raise QueryTypeError(f"{format_expr(expr)!r} mixes types", expr.at)
    if known[0].type is Type.STRING:
        arrays = [to_arrow(column) for column in known]
        if name == "coalesce":
            return from_arrow(pc.coalesce(*arrays))
        picked = arrays[0]
        for other in arrays[1:]:
            take_other = _TEXT_COMPARISONS["<" if name == "least" else ">"](other, picked)
            either = pc.coalesce(picked, other)
            picked = pc.if_else(pc.fill_null(take_other, False), other, either)
        return from_arrow(picked)
    kind = Type.FLOAT if any(c.type is Type.FLOAT for c in known) else known[0].type
    values, null = (
        known[0].values.astype(np.float64) if kind is Type.FLOAT else known[0].values,
        known[0].nulls,
    )
    for other in known[1:]:
        better = null.copy()
        if name != "coalesce":
            better |= (other.values < values) if name == "least" else (other.values > values)
            better &= ~other.nulls | null
        values = np.where(better & ~other.nulls, other.values, values)
        null = null & other.nulls
    return Column(kind, values, null if null.any() else None)


_NUMERIC = {"abs", "sqrt", "floor", "ceil", "round", "sign", "pow", "exp", "ln"}
_TEXT = {"lower", "upper", "length", "contains", "startswith", "endswith"}


_OF_FLOATS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sign": np.sign,
    "exp": np.exp,
    "ln": lambda x: np.where(x > 0, np.log(x), np.nan),
}


def _numeric(name: str, columns: list[Column], expr: Expr) -> Column:
    first = columns[0]
    if any(column.type is None for column in columns):
        return nothing(len(first))
    for column in columns:
        if column.type is None or not (
            column.type.is_number or (column.type is Type.DURATION and name == "abs")
        ):
            raise QueryTypeError(f"{format_expr(expr)!r} needs numbers", expr.at)
    if first.type is not Type.FLOAT and name in ("abs", "floor", "ceil", "round", "sign"):
        if name not in ("abs", "sign"):
            return first
        return Column(first.type, _OF_FLOATS[name](first.values), first.null)
    floats = [column.values.astype(np.float64) for column in columns]
    with np.errstate(all="ignore"):
        if name == "pow":
            return clean(np.power(floats[0], floats[1]), either_null(*columns))
        return clean(_OF_FLOATS[name](floats[0]), first.null)


def _text(name: str, columns: list[Column], expr: Expr) -> Column:
    if any(column.type is None for column in columns):
        return nothing(len(columns[0]))
    if any(column.type is not Type.STRING for column in columns):
        raise QueryTypeError(f"{format_expr(expr)!r} needs texts", expr.at)
    arrays = [decoded(column.values) for column in columns]
    null = either_null(*columns)
    if name == "length":
        lengths = pc.utf8_length(arrays[0]).cast(pa.int64()).fill_null(0)
        return Column(Type.INT, lengths.to_numpy(zero_copy_only=False), null)
    if name in ("lower", "upper"):
        changed = pc.utf8_lower(arrays[0]) if name == "lower" else pc.utf8_upper(arrays[0])
        return Column(Type.STRING, changed, null)
    return Column(Type.BOOL, _search(name, arrays[0], arrays[1]), null)


def _search(name: str, texts: pa.Array, patterns: pa.Array) -> BoolArray:
    find = {"contains": pc.match_substring, "startswith": pc.starts_with, "endswith": pc.ends_with}[name]
    found = np.zeros(len(texts), np.bool_)
    for pattern in pc.unique(patterns).to_pylist():
        if pattern is not None:
            rows = pc.equal(patterns, pattern).fill_null(False).to_numpy(zero_copy_only=False)
            found |= rows & find(texts, pattern).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _user_function(function: Function, expr: Call, frame: Frame) -> Column:
    if function.vectorised:
        columns = [evaluate(argument, frame) for argument in expr.arguments]
        return _vectorised(function, columns, len(frame), expr)
    arguments = [_python_values(argument, frame) for argument in expr.arguments]
    # A scalar function is Python by the user's choice: it is called row by row.
    rows = zip(*arguments, strict=True) if arguments else [()] * len(frame)
    results = [_guarded(function, row, expr) for row in rows]
    return from_arrow(_typed(results, function, expr))


def _vectorised(function: Function, columns: list[Column], size: int, expr: Expr) -> Column:
    try:
        result = function.call(*(to_arrow(c).to_numpy(zero_copy_only=False) for c in columns))
    except Exception as error:
        raise QueryError(f"the function {function.name!r} failed: {error}", expr.at) from error
    typed = _typed(result, function, expr)
    if len(typed) != size:
        given = f"{len(typed)} values for {size} events"
        raise QueryError(f"the function {function.name!r} gave {given}", expr.at)
    return from_arrow(typed)


def _python_values(argument: Expr, frame: Frame) -> list[Any]:
    if not isinstance(argument, PartRef):
        values: list[Any] = to_arrow(evaluate(argument, frame)).to_pylist()
        return values
    columns = {name: to_arrow(column).to_pylist() for name, column in frame.attributes(argument.name).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
        {}
    ] * len(frame)


def _guarded(function: Function, row: tuple[Any, ...], expr: Expr) -> Any:
    try:
        return function.call(*row)
    except Exception as error:
        raise QueryError(f"the function {function.name!r} failed on {row}: {error}", expr.at) from error


def _typed(result: Any, function: Function, expr: Expr) -> pa.Array:
    from whimbrel.model.columns import ARROW_TYPES

    try:
        return pa.array(result, ARROW_TYPES[function.returns], from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise QueryTypeError(
            f"the function {function.name!r} should return {function.returns.value}: {error}", expr.at
        ) from error


def cast(column: Column, kind: Type, what: str) -> Column:
    """Turn a column into another type; `what` names it in the error."""
    if column.type in (kind, None):
        return column
    if kind is Type.FLOAT and column.type is Type.INT:
        return Column(kind, column.values.astype(np.float64), column.null)
    if kind is Type.INT and column.type is Type.FLOAT:
        return _whole(np.trunc(column.values), column.null, kind)
    if kind is Type.STRING:
        return from_arrow(_as_text(column))
    if kind is Type.TIMESTAMP and column.type is Type.INT:
        return Column(kind, column.values, column.null)
    raise QueryTypeError(
        f"{what} is a {column.type.value if column.type else 'null'} and cannot become a {kind.value}"
    )


def _as_text(column: Column) -> pa.Array:
    return to_arrow(column).cast(pa.string())
