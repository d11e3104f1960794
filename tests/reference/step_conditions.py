"""What the condition of a step says about an event, given the events that each step has taken so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from whimbrel.lang.wbl import parse
from whimbrel.lang.wbl import tree as t

from .arithmetic import binary, conjunction, disjunction, negation, negative
from .data import Value
from .functions import AGGREGATE

Json = Mapping[str, Any]
Taken = Mapping[str, Sequence[Json]]


def fulfils(event: Json, taken: Taken, condition: str | None, event_type: str | None = None) -> bool:
    """Tell whether a condition is true; one that is null does not hold."""
    if event_type is not None and event["type"] != event_type:
        return False
    return condition is None or evaluate(_tree(condition), event, taken) is True


@cache
def _tree(condition: str) -> t.Expression:
    statement = parse(f"define Lone detect Event where {condition}\n").statements[0]
    assert isinstance(statement, t.Definition)
    where = statement.cases[0].where
    assert where is not None
    return where


def evaluate(node: t.Expression, event: Json, taken: Taken) -> Value:
    """Give the value of an expression; None is null."""

    def value(of: t.Expression) -> Value:
        return evaluate(of, event, taken)

    match node:
        case t.Constant(constant):
            return constant
        case t.Name(name):
            return _attribute(event, name)
        case t.Negative(operand):
            return negative(value(operand))
        case t.Infix(operator, left, right):
            return binary(operator, value(left), value(right))
        case t.Not(operand):
            return negation(value(operand))
        case t.Logic(operator, operands):
            return _joined(operator, [value(operand) for operand in operands])
        case t.Compare(operands, operators):
            pairs = zip(operators, pairwise(operands), strict=True)
            return _joined("and", [binary(sign, value(a), value(b)) for sign, (a, b) in pairs])
        case t.Among(one, choices, negated):
            found = _joined("or", [binary("=", value(one), value(choice)) for choice in choices])
            return negation(found) if negated else found
        case t.IsNullNode(one, negated):
            return (value(one) is None) != negated
        case t.Apply(function, arguments):
            return _aggregate(function, arguments[0], taken)
    raise NotImplementedError(f"the random patterns have no {node!r}")


def _attribute(event: Json, name: str) -> Value:
    value: Value = event["attributes"].get(name)
    return value


def _joined(operator: str, values: Sequence[Value]) -> Value:
    join = conjunction if operator == "and" else disjunction
    found = values[0]
    for value in values[1:]:
        found = join(found, value)
    return found


def _aggregate(function: str, argument: t.Expression, taken: Taken) -> Value:
    """Sum up an attribute over the events that a step has taken; `count(step)` counts the events.

    Nothing adds up to 0; it has no average, no least and no first value.
    """
    if isinstance(argument, t.Name):
        return len(taken.get(argument.name, ()))
    assert isinstance(argument, t.Dotted)
    values = [_attribute(event, argument.name) for event in taken.get(argument.part, ())]
    known = [value for value in values if value is not None]
    return 0 if function == "sum" and not known else AGGREGATE[function](known)
