"""Which rows a query can do without, said in Spark's words, so that Spark need not even read them.

What is pushed down may keep more rows than the query needs, never fewer: the engine tests everything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as fn

from whimbrel.graph.clauses import Between, Comparison, OneOf, read_clause
from whimbrel.graph.expressions import Attribute, Binary, Expr, Literal, conjuncts
from whimbrel.graph.mobile.reading import Selections
from whimbrel.graph.operators import ANY
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema, Type
from whimbrel.spark.types import quoted

Types = Mapping[str, Type]


def rows_wanted(
    wanted: Selections,
    types: Types,
    schemas: Mapping[str, EventSchema],
    *,
    has_type: bool,
    default_type: str | None,
) -> Column | None:
    """Say which rows any operator reads; None if that cannot be said, and all must be kept.

    Rows without a type pass, so that they are rejected with a reason and counted.
    """
    if ANY in wanted:
        return None
    cases = []
    for event_type, conditions in wanted.items():
        if not has_type and event_type != default_type:
            continue
        tests = [_all_of(condition, _readable(event_type, types, schemas)) for condition in conditions]
        known = [test for test in tests if test is not None]
        of_type = fn.col("type") == event_type if has_type else fn.lit(True)
        cases.append(of_type & reduce(or_, known) if len(known) == len(tests) else of_type)
    if not has_type:
        return reduce(or_, cases) if cases else None
    return reduce(or_, [fn.col("type").isNull(), fn.col("type") == "", *cases])


def _readable(event_type: str, types: Types, schemas: Mapping[str, EventSchema]) -> Types:
    """Name the columns that Spark and the engine read as the same values."""
    declared = schemas[event_type].attributes if event_type in schemas else {}
    return {
        name: kind
        for name, kind in types.items()
        if name not in RESERVED_COLUMNS and (declared.get(name, kind) is kind)
    }


def _all_of(condition: Expr | None, types: Types) -> Column | None:
    """Build a test that every event which fits passes; None if there is none."""
    tests = [test for part in conjuncts(condition) if (test := _test(part, types)) is not None]
    return reduce(and_, tests) if tests else None


def _test(expr: Expr, types: Types) -> Column | None:
    match expr:
        case Binary("or", left, right):
            tests = [_all_of(left, types), _all_of(right, types)]
            known = [test for test in tests if test is not None]
            return reduce(or_, known) if len(known) == 2 else None
        case Binary("and", _, _):
            return _all_of(expr, types)
    match read_clause(expr):
        case Comparison(Attribute(None, name), operator, value):
            return _compared(operator, name, value, types)
        case Between(Attribute(None, name), low, high):
            bounds = [_compared(">=", name, low, types), _compared("<=", name, high, types)]
            known = [bound for bound in bounds if bound is not None]
            return reduce(and_, known) if known else None
        case OneOf(Attribute(None, name), choices) if all(_fit(name, choice, types) for choice in choices):
            return fn.col(quoted(name)).isin([each.value for each in choices])
    return None


def _fit(name: str, value: Literal, types: Types) -> bool:
    """Tell whether Spark compares a column with a constant as the engine does."""
    kind = types.get(name)
    if kind is None or value.value is None or value.type is None:
        return False
    if kind.is_number:
        return value.type.is_number
    return kind is value.type and kind in (Type.STRING, Type.BOOL)


def _compared(operator: str, name: str, value: Literal, types: Types) -> Column | None:
    if not _fit(name, value, types):
        return None
    column, constant = fn.col(quoted(name)), fn.lit(value.value)
    match operator:
        case "=":
            return column == constant
        case "!=":
            return column != constant
        case "<":
            return column < constant
        case "<=":
            return column <= constant
        case ">":
            return column > constant
    return column >= constant
