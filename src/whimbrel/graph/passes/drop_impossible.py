"""Leave out what can never be found.

`x > 5 and x < 3` is true for no event. A pattern with a part that never occurs is never found, nor is what
is made of it; an absence of what never occurs is no condition at all. What is left in the place of a pattern
is a filter that lets nothing through: a definition that is reported stays what it is, without results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from whimbrel.graph.clauses import Between, Comparison, IsNull, OneOf, read_clause
from whimbrel.graph.expressions import FALSE, Attribute, Expr, Literal, conjuncts
from whimbrel.graph.operators import Branch, Derive, Filter, Graph, Merge, Operator
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.scope import scope, selection
from whimbrel.graph.wiring import free_name, sources_below

_EXACT = 2**53
"""Up to here whole numbers and floats compare alike."""


def drop_impossible(graph: Graph) -> Graph:
    """Give the graph without the operators that can find nothing, as far as that is certain."""
    impossible: set[str] = set()
    for operator in graph.operators:
        # What stands in its place needs a source; without any, all events come from elsewhere.
        if _is_impossible(graph, operator, impossible) and sources_below(graph, operator.name):
            impossible.add(operator.name)
    if not impossible:
        return graph
    found: list[Operator] = []
    for operator in graph.operators:
        found += _left_of(graph, operator, impossible)
    return drop_unused(replace(graph, operators=tuple(found)))


def _is_impossible(graph: Graph, operator: Operator, impossible: set[str]) -> bool:
    if operator.finds_nothing_without(impossible):
        return True
    _, selected = selection(graph, operator.name)
    conditions = operator.conditions if selected is None else (selected,)  # which has those of the filter
    return contradicts(clause for condition in conditions for clause in conjuncts(condition))


def _left_of(graph: Graph, operator: Operator, impossible: set[str]) -> list[Operator]:
    """Give what takes the place of an operator."""
    return _nothing(graph, operator) if operator.name in impossible else [operator.without(impossible)]


def _nothing(graph: Graph, operator: Operator) -> list[Operator]:
    """Make a stream that is read as that of `operator` is, and never has an event."""
    if isinstance(operator, Derive):
        return [operator]
    first = sources_below(graph, operator.name)[0].name
    if not operator.is_composite:
        return [Filter(operator.name, first, FALSE)]
    never = Filter(free_name(f"{operator.name}.never", {each.name for each in graph.operators}), first, FALSE)
    branches = tuple(Branch(never.name, name) for name in scope(graph, operator.name))
    return [never, Merge(operator.name, branches)]


# -- contradictions ---------------------------------------------------------------------------------------


def contradicts(clauses: Iterable[Expr]) -> bool:
    """Tell whether conditions can surely not all be true.

    Only comparisons of an attribute with constants are looked at. A comparison that is true says that the
    attribute is not null, too.
    """
    allowed: dict[Attribute, _Allowed] = {}
    for clause in clauses:
        if clause == FALSE or clause == Literal(None, None):
            return True
        for attribute, operator, value in _demands(clause):
            allowed.setdefault(attribute, _Allowed()).narrow(operator, value)
    return any(each.is_empty for each in allowed.values())


def _demands(clause: Expr) -> list[tuple[Attribute, str, Any]]:
    """Read what a clause demands of one attribute."""
    match read_clause(clause):
        case Comparison(attribute, operator, constant):
            return [(attribute, operator, constant)]
        case Between(attribute, low, high):
            return [(attribute, ">=", low), (attribute, "<=", high)]
        case OneOf(attribute, choices):
            return [(attribute, "in", list(choices))]
        case IsNull(attribute):
            return [(attribute, "is_null", None)]
    return []


@dataclass(slots=True)
class _Allowed:
    """The values that conditions leave for one attribute."""

    low: tuple[Any, bool] | None = None
    """The least value, and whether it counts itself."""
    high: tuple[Any, bool] | None = None
    one_of: set[Any] | None = None
    none_of: set[Any] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    is_null: bool = False
    is_known: bool = True

    def narrow(self, sign: str, wanted: Any) -> None:
        """Take in one more demand."""
        if sign == "is_null":
            self.is_null = True
            return
        constants = wanted if isinstance(wanted, list) else [wanted]
        values = [each.value for each in constants if each.value is not None]
        self.kinds |= {_kind(each) for each in constants if each.value is not None}
        self.is_known &= all(_is_exact(value) for value in values)
        if not self.is_comparable:
            return
        self._narrow(sign, values)

    def _narrow(self, sign: str, values: list[Any]) -> None:
        if sign in ("in", "="):
            self.one_of = set(values) if self.one_of is None else self.one_of & set(values)
        elif not values:
            self.one_of = set()  # a comparison with null is never true
        elif sign == "!=":
            self.none_of.add(values[0])
        elif sign in (">", ">="):
            bound = (values[0], sign == ">=")
            self.low = bound if self.low is None else max(self.low, bound, key=lambda b: (b[0], not b[1]))
        else:
            bound = (values[0], sign == "<=")
            self.high = bound if self.high is None else min(self.high, bound, key=lambda b: (b[0], b[1]))

    @property
    def is_comparable(self) -> bool:
        """Whether all constants are of one kind; what compares others is an error, which has to be told."""
        return self.is_known and len(self.kinds) <= 1

    @property
    def is_empty(self) -> bool:
        """Whether surely no value is left."""
        if not self.is_comparable:
            return False
        compared = self.low or self.high or self.none_of or self.one_of is not None
        if self.is_null:
            return bool(compared)
        if self.one_of is not None:
            return not any(self._fits(value) for value in self.one_of)
        if self.low is None or self.high is None:
            return False
        return bool(self.low[0] > self.high[0]) or (
            self.low[0] == self.high[0] and not (self.low[1] and self.high[1])
        )

    def _fits(self, value: Any) -> bool:
        above = self.low is None or value > self.low[0] or (value == self.low[0] and self.low[1])
        below = self.high is None or value < self.high[0] or (value == self.high[0] and self.high[1])
        return bool(above and below and value not in self.none_of)


def _kind(constant: Literal) -> str:
    if constant.type is None:
        return "unknown"
    return "number" if constant.type.is_number else constant.type.value


def _is_exact(value: Any) -> bool:
    return isinstance(value, bool | str) or abs(value) <= _EXACT
