"""Aggregates: one value for each segment of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.interner import Interner
from whimbrel.engine.kernels import segments as k
from whimbrel.engine.values import Column, Int64Array, decoded, from_arrow, nothing, to_arrow
from whimbrel.errors import QueryError, QueryTypeError
from whimbrel.graph.expressions import Expr, format_expr
from whimbrel.graph.functions import Function
from whimbrel.model.columns import ARROW_TYPES
from whimbrel.model.schema import Type


@dataclass(frozen=True, slots=True)
class Segments:
    """Which rows belong to which result: segment s is places[offsets[s]:offsets[s + 1]]."""

    offsets: Int64Array
    places: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64Array:
        """How many rows each segment has."""
        return np.diff(self.offsets)

    @property
    def work(self) -> int:
        """How many turns a loop over all of them takes."""
        return len(self.offsets) + len(self.places)


def count_rows(segments: Segments) -> Column:
    """Count the rows of every segment."""
    return Column(Type.INT, segments.lengths)


def reduce(
    name: str, column: Column, segments: Segments, functions: Mapping[str, Function], expr: Expr
) -> Column:
    """Compute the aggregate `name` of a column over every segment."""
    if name in functions and functions[name].aggregate:
        return _user_aggregate(functions[name], column, segments, expr)
    null = column.nulls
    if name == "count":
        return Column(Type.INT, k.count_segments.at(segments.work)(null, segments.offsets, segments.places))
    if name == "distinct":
        codes = Interner().codes(column)
        return Column(
            Type.INT, k.distinct_segments.at(segments.work)(codes, null, segments.offsets, segments.places)
        )
    if column.type is None:
        return nothing(len(segments))
    if name in ("first", "last"):
        return _taken(
            column, k.pick_segments.at(segments.work)(null, segments.offsets, segments.places, name == "last")
        )
    if column.type is Type.STRING:
        return _extreme_text(name, column, segments, expr)
    return _numeric(name, column, segments, expr)


def _taken(column: Column, places: Int64Array) -> Column:
    missing = places < 0
    if missing.all():
        return nothing(len(places))
    taken = column.take(np.where(missing, places.max(), places))
    return Column(column.type, taken.values, missing if missing.any() else None)


def _numeric(name: str, column: Column, segments: Segments, expr: Expr) -> Column:
    kind = column.type
    if name in ("sum", "avg") and kind not in (Type.INT, Type.FLOAT, Type.DURATION):
        assert kind is not None
        raise QueryTypeError(f"{format_expr(expr)!r} needs numbers, not a {kind.value}", expr.at)
    how = {"sum": k.SUM, "avg": k.SUM, "min": k.MIN, "max": k.MAX}[name]
    values = column.values.astype(np.float64) if name == "avg" else column.values
    found, empty = k.reduce_segments.at(segments.work)(
        how, values, column.nulls, segments.offsets, segments.places
    )
    null = empty if empty.any() else None
    if name != "avg":
        return Column(kind, found, null)
    counts = k.count_segments.at(segments.work)(column.nulls, segments.offsets, segments.places)
    means = found / np.maximum(counts, 1)
    if kind is Type.DURATION:
        return Column(kind, np.rint(means).astype(np.int64), null)
    return Column(Type.FLOAT, means, null)


def _extreme_text(name: str, column: Column, segments: Segments, expr: Expr) -> Column:
    if name not in ("min", "max"):
        raise QueryTypeError(f"{format_expr(expr)!r} needs numbers, not texts", expr.at)
    encoded = decoded(column.values).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    ranked = sorted(texts)
    rank_of = {text: rank for rank, text in enumerate(ranked)}
    ranks = np.array([rank_of[text] for text in texts] or [0], np.int64)
    codes = ranks[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    how = k.MIN if name == "min" else k.MAX
    found, empty = k.reduce_segments.at(segments.work)(
        how, codes, column.nulls, segments.offsets, segments.places
    )
    if not ranked:
        return nothing(len(segments))
    values = pa.array(ranked).take(pa.array(np.where(empty, 0, found)))
    return Column(Type.STRING, values, empty if empty.any() else None)


def _user_aggregate(function: Function, column: Column, segments: Segments, expr: Expr) -> Column:
    values = to_arrow(column).to_pylist()
    results: list[Any] = []
    # An aggregate written in Python is called once a window, by the user's choice.
    for s in range(len(segments)):
        places = segments.places[segments.offsets[s] : segments.offsets[s + 1]]
        members = [values[p] for p in places if values[p] is not None]
        try:
            results.append(function.call(members))
        except Exception as error:
            raise QueryError(f"the function {function.name!r} failed: {error}", expr.at) from error
    try:
        return from_arrow(pa.array(results, ARROW_TYPES[function.returns], from_pandas=True))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise QueryTypeError(
            f"{function.name!r} should return {function.returns.value}: {error}", expr.at
        ) from error
