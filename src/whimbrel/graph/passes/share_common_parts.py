"""Compute equal parts of a graph once.

Two operators that do the same to the same streams make the same stream, and one of them will do. Patterns are
equal up to the names of their parts, where only definitions read those names. A stream that a pattern reads
side by side with others of its kind stays its own, even if another is equal: an event may fill only one part
of a combination, and where two are made of the same events, the names of their makers decide on their order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from whimbrel.graph.operators import Derive, DeriveCase, Filter, Graph, JoinPattern, Merge, Operator, Source
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.wiring import fixed, readers, renamed


def share_common_parts(graph: Graph) -> Graph:
    """Let one of several equal operators do the work of all."""
    if not _may_be_equal(graph):
        return graph
    sharing = _Sharing(graph)
    operators: list[Operator] = []
    for operator in graph.operators:
        kept = sharing.visit(operator)
        if kept is not None:
            operators.append(kept)
    changed = tuple(operators)
    return graph if changed == graph.operators else drop_unused(replace(graph, operators=changed))


def _may_be_equal(graph: Graph) -> bool:
    """Tell whether any operators read the same in the same way: without such, none are equal."""
    shared = [operator for operator in graph.operators if operator.may_be_merged]
    kinds = {(type(each), each.event_type if isinstance(each, Source) else each.inputs) for each in shared}
    return len(kinds) < len(shared)


class _Sharing:
    def __init__(self, graph: Graph) -> None:
        self.stays = fixed(graph)
        self.readers = readers(graph)
        self.apart = _side_by_side(graph)
        self.first: dict[Any, list[Operator]] = {}
        self.instead: dict[str, str] = {}
        """What is read instead of operators that are gone."""
        self.renamed: dict[str, dict[str | None, str | None]] = {}
        """Names of parts in composites that are gone, and what they are called in those read instead."""

    def visit(self, operator: Operator) -> Operator | None:
        """Give the operator as it is kept; None if another one does its work."""
        if isinstance(operator, Derive) and self.renamed:
            operator = replace(operator, cases=tuple(self._reading(case) for case in operator.cases))
        operator = operator.reading(self.instead)
        if not operator.may_be_merged or operator.name in self.stays:
            return operator
        same = self.first.setdefault(_key(operator), [])
        equal = next((each for each in same if self._may_replace(operator, each)), None)
        if equal is None:
            same.append(operator)
            return operator
        self.instead[operator.name] = equal.name
        if isinstance(operator, JoinPattern) and isinstance(equal, JoinPattern):
            self.renamed[operator.name] = dict(zip(_names(operator), _names(equal), strict=True))
        return None

    def _reading(self, case: DeriveCase) -> DeriveCase:
        names = self.renamed.get(case.input, {})
        assign = tuple(replace(each, value=renamed(each.value, names)) for each in case.assign)
        return replace(case, assign=assign)

    def _may_replace(self, operator: Operator, other: Operator) -> bool:
        if isinstance(operator, Source | Filter):
            return True
        if operator.name in self.apart:
            return False
        if not isinstance(operator, JoinPattern) or not isinstance(other, JoinPattern):
            return True
        only_definitions = all(isinstance(each, Derive) for each in self.readers[operator.name])
        return only_definitions or _names(operator) == _names(other)


def _key(operator: Operator) -> Any:
    """Say what an operator does, whatever it is called; of a pattern, also whatever its parts are called."""
    if isinstance(operator, Source):
        return operator.event_type, repr(operator.schema)
    if isinstance(operator, Filter):
        return operator.input, operator.condition
    nameless = replace(operator, name="")
    if not isinstance(nameless, JoinPattern) or not _is_nameable(nameless):
        return nameless
    numbers: dict[str | None, str | None] = {name: f"#{n}" for n, name in enumerate(_names(nameless))}
    absent = tuple(
        replace(
            each, alias=numbers[each.alias], conditions=tuple(renamed(c, numbers) for c in each.conditions)
        )
        for each in nameless.absent
    )
    return replace(
        nameless,
        parts=tuple(replace(part, alias=numbers[part.alias]) for part in nameless.parts),
        absent=absent,
        conditions=tuple(renamed(condition, numbers) for condition in nameless.conditions),
    )


def _names(match: JoinPattern) -> list[str | None]:
    return [part.alias for part in match.parts] + [absent.alias for absent in match.absent]


def _is_nameable(match: JoinPattern) -> bool:
    """Tell whether every part has one name, so that names can be told from each other."""
    names = _names(match)
    return None not in names and len(set(names)) == len(names)


def _side_by_side(graph: Graph) -> set[str]:
    """Find the streams that an operator reads beside other streams of derived events.

    Filters and merges pass events on, so that what reads them reads what they read.
    """
    seen: dict[str, frozenset[str]] = {}
    found: set[str] = set()
    for operator in graph.operators:
        below = frozenset[str]().union(*(seen[name] for name in operator.inputs))
        if len(below) > 1:
            found |= below
        match operator:
            case Source():
                seen[operator.name] = frozenset()
            case Filter():
                seen[operator.name] = below
            case Merge():
                seen[operator.name] = below | {operator.name}
            case _:
                seen[operator.name] = frozenset({operator.name})
    return found
