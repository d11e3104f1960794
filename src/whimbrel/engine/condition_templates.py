"""Conditions that differ in nothing but constants, tested together.

What they have in common is their *form*: clauses with holes, and a table of the constants that fill them.
Each condition is tried on rows of its own; all of them together are computed as one, with columns of
constants instead of constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import COMPARISONS, true_rows
from whimbrel.engine.spatial_relations import RegionTable, RowLocation, kind_of_region
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import NUMPY_TYPES, Column, Int64Array
from whimbrel.errors import WhimbrelError
from whimbrel.graph.expressions import Attribute, Binary, Call, Expr, Literal, PartRef, Unary, conjuncts
from whimbrel.model.schema import Type

MANY = 256
"""With more rows a condition than this, each is better computed by itself."""
_REGIONS = ("point", "circle", "region")
_WHOLE = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class HollowCondition:
    """A condition without its constants, and the constants."""

    clauses: tuple[Expr, ...]
    kinds: tuple[str, ...]
    """What fills each hole: the name of a type, a point, or a region."""
    constants: tuple[Any, ...]


def hollow(condition: Expr) -> HollowCondition:
    """Take the constants out that are compared with, and the regions."""
    kinds: list[str] = []
    constants: list[Any] = []

    def hole(kind: str, value: Any) -> Attribute:
        kinds.append(kind)
        constants.append(value)
        return Attribute(None, _hole_name(len(kinds) - 1))

    def without(expr: Expr) -> Expr:
        match expr:
            case Literal(value, kind) if kind in _FILLING and value is not None:
                return hole(kind.value, value) if kind is not Type.INT or value in _WHOLE else expr
            case _:
                return visit(expr)

    def visit(expr: Expr) -> Expr:
        match expr:
            case Binary(operator, left, right) if operator in COMPARISONS:
                return replace(expr, left=without(left), right=without(right))
            case Binary(_, left, right):
                return replace(expr, left=visit(left), right=visit(right))
            case Unary(_, operand):
                return replace(expr, operand=visit(operand))
            case Call("between", arguments):
                return replace(expr, arguments=tuple(map(without, arguments)))
            case Call("distance" | "within_region" | "intersects", (PartRef(), Literal(str() as text))):
                filled = hole(kind_of_region(text), text)
                return replace(expr, arguments=(expr.arguments[0], filled))
        return expr

    clauses = tuple(visit(clause) for clause in conjuncts(condition))
    return HollowCondition(clauses, tuple(kinds), tuple(constants))


_FILLING = (Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP, Type.DURATION)


def _hole_name(number: int) -> str:
    return f"@hole{number}"


@dataclass(eq=False, slots=True)
class TemplateInstance:
    """A condition of some form."""

    form: ConditionTemplate
    number: int
    whole: Expr


@dataclass(eq=False, slots=True)
class ConditionTemplate:
    """Conditions of one form."""

    clauses: tuple[Expr, ...]
    kinds: tuple[str, ...]
    holes: dict[str, ConstantTable | RegionTable]
    _free: list[int] = field(default_factory=list)
    _size: int = 0

    @staticmethod
    def of(hollowed: HollowCondition) -> ConditionTemplate:
        """Make a form that no condition has yet."""
        tables = [RegionTable() if kind in _REGIONS else ConstantTable(Type(kind)) for kind in hollowed.kinds]
        holes = {_hole_name(number): table for number, table in enumerate(tables)}
        return ConditionTemplate(hollowed.clauses, hollowed.kinds, holes)

    def add(self, condition: Expr, constants: Sequence[Any]) -> TemplateInstance:
        """Take in a condition."""
        number = self._free.pop() if self._free else self._size
        self._size = max(self._size, number + 1)
        for table, constant in zip(self.holes.values(), constants, strict=True):
            table.put(number, constant)
        return TemplateInstance(self, number, condition)

    def remove(self, condition: TemplateInstance) -> None:
        """Forget a condition; another may have its number."""
        self._free.append(condition.number)

    @property
    def key(self) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
        """What tells it from other forms."""
        return self.clauses, self.kinds

    @property
    def is_empty(self) -> bool:
        """Whether no condition is left."""
        return len(self._free) == self._size

    def sift(
        self, asked: list[tuple[TemplateInstance, Int64Array]], context: ExecutionContext
    ) -> Iterator[tuple[int, Int64Array]]:
        """Keep the rows for which conditions are true, by the places of the conditions in `asked`."""
        lengths = [len(rows) for _, rows in asked]
        if sum(lengths) > MANY * len(asked):
            yield from _one_by_one(asked, context)
            return
        try:
            rows, owner = self._passing(asked, lengths, context)
        except WhimbrelError:
            # The error is to be told of the condition that has it, with its constants.
            yield from _one_by_one(asked, context)
            return
        present, begins, counts = np.unique(owner, return_index=True, return_counts=True)
        for number, begin, count in zip(present.tolist(), begins.tolist(), counts.tolist(), strict=True):
            yield number, rows[begin : begin + count]

    def _passing(
        self, asked: list[tuple[TemplateInstance, Int64Array]], lengths: list[int], context: ExecutionContext
    ) -> tuple[Int64Array, Int64Array]:
        """Keep the rows that pass, and the places of the conditions that they pass."""
        rows = np.concatenate([candidates for _, candidates in asked])
        owner = np.repeat(np.arange(len(asked)), lengths)
        numbers = np.array([condition.number for condition, _ in asked], np.int64)
        for clause in self.clauses:
            if not len(rows):
                break
            frame = TemplateFrame(context, context.atoms, rows, form=self, numbers=numbers[owner])
            true = true_rows(clause, frame)
            rows, owner = rows[true], owner[true]
        return rows, owner


def _one_by_one(
    asked: list[tuple[TemplateInstance, Int64Array]], context: ExecutionContext
) -> Iterator[tuple[int, Int64Array]]:
    for number, (condition, rows) in enumerate(asked):
        passing = rows_passing(condition.whole, context, context.atoms, rows)
        if len(passing):
            yield number, passing


def rows_passing(
    condition: Expr | None, context: ExecutionContext, stream: OperatorStream, rows: Int64Array
) -> Int64Array:
    """Keep the rows for which a condition is true; a clause is tried on what the ones before it left."""
    for clause in conjuncts(condition):
        if not len(rows):
            break
        rows = rows[true_rows(clause, RowsFrame(context, stream, rows))]
    return rows


@dataclass(slots=True)
class TemplateFrame(RowsFrame):
    """Rows, each for a condition of its own, as the clauses of their form see them."""

    form: ConditionTemplate = field(kw_only=True)
    numbers: Int64Array = field(kw_only=True)
    """Which condition each row is tried for."""

    def column(self, part: str | None, name: str) -> Column:
        """Read the column that `part.name`, or a hole, stands for."""
        table = self.form.holes.get(name)
        if isinstance(table, ConstantTable):
            return table.column(self.numbers)
        return RowsFrame.column(self, part, name)

    def location(self, name: str) -> RowLocation:
        """Look up the regions that fill a hole."""
        table = self.form.holes[name]
        assert isinstance(table, RegionTable)
        return table.location(self.numbers, self.context.coordinates)


@dataclass(slots=True)
class ConstantTable:
    """What fills one hole, condition by condition."""

    type: Type
    _values: list[Any] = field(default_factory=list)
    _column: Any = None

    def put(self, number: int, value: Any) -> None:
        """Fill the hole for a condition."""
        if number == len(self._values):
            self._values.append(value)
        else:
            self._values[number] = value
        self._column = None

    def column(self, numbers: Int64Array) -> Column:
        """Look up the constants of some conditions."""
        if self.type is Type.STRING:
            self._column = pa.array(self._values, pa.string()) if self._column is None else self._column
            codes = pa.array(numbers.astype(np.int32))
            return Column(self.type, pa.DictionaryArray.from_arrays(codes, self._column))
        if self._column is None:
            self._column = np.array(self._values, NUMPY_TYPES[self.type])
        return Column(self.type, self._column[numbers])
