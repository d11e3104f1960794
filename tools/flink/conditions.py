"""Turn a condition in Whimbrel's language into the tree that the Java program evaluates."""

from __future__ import annotations

from functools import cache
from typing import Any

from whimbrel.errors import QueryError
from whimbrel.lang.wbl import parse
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.values import instant_literal, quantity

Tree = dict[str, Any]

FUNCTIONS = ("contains", "startswith")
AGGREGATES = ("sum", "avg", "min", "max", "count", "first", "last")


@cache
def condition_tree(text: str) -> Tree:
    """Give the tree of a condition; do not change it, it is shared.

    Raises
    ------
    QueryError
        If the text is no condition, or one that a pattern cannot have.
    """
    definition = parse(f"define Lone detect Event\nwhere {text}\n").statements[0]
    assert isinstance(definition, t.Definition)
    case = definition.cases[0]
    if case.where is None or case != t.CaseNode(case.detect, where=case.where):
        raise QueryError(f"this is more than a condition: {text!r}", hint="give the expression alone")
    return _tree(case.where)


def _tree(node: t.Expression) -> Tree:
    match node:
        case t.Constant(value):
            return {"value": value}
        case t.QuantityNode():
            return {"value": quantity(node).value}
        case t.InstantNode():
            return {"value": instant_literal(node).value}
        case t.Name(name):
            return {"attr": name}
        case t.Negative(operand):
            return _operation("-", operand)
        case t.Infix(operator, left, right):
            return _operation(operator, left, right)
        case t.Apply(function, arguments):
            return _call(node, function, arguments)
        case t.Dotted(part, name):
            hint = f"say which of its events: first({part}.{name}) or last({part}.{name})"
            raise QueryError(f"a step may have taken many events: {part}.{name}", node.at, hint)
    return _test(node)


def _test(node: t.Expression) -> Tree:
    match node:
        case t.Not(operand):
            return _operation("not", operand)
        case t.Logic(operator, operands):
            return _operation(operator, *operands)
        case t.Compare(operands, operators):
            pairs = zip(operators, operands, operands[1:], strict=False)
            return _joined("and", [_operation(*pair) for pair in pairs])
        case t.Among(value, choices, negated):
            return _maybe_not(negated, _joined("or", [_operation("=", value, each) for each in choices]))
        case t.BetweenNode(value, low, high, negated):
            bounds = [_operation(">=", value, low), _operation("<=", value, high)]
            return _maybe_not(negated, _joined("and", bounds))
        case t.IsNullNode(value, negated):
            return _maybe_not(negated, _operation("is_null", value))
    raise QueryError("a pattern's condition does not test regions or relations in time", node.at)


def _call(node: t.Apply, function: str, arguments: tuple[t.Expression, ...]) -> Tree:
    if function in FUNCTIONS and len(arguments) == 2:
        return {"call": function, "args": [_tree(each) for each in arguments]}
    match arguments:
        case (t.Dotted(step, name),) if function in AGGREGATES:
            return {"agg": function, "step": step, "attr": name}
        case (t.Name(step),) if function == "count":
            return {"agg": "count", "step": step}
    known = ", ".join((*FUNCTIONS, *AGGREGATES))
    raise QueryError(f"a pattern's condition cannot call {function!r} so", node.at, f"it knows {known}")


def _operation(operator: str, *operands: t.Expression) -> Tree:
    return {"op": operator, "args": [_tree(each) for each in operands]}


def _joined(operator: str, trees: list[Tree]) -> Tree:
    return trees[0] if len(trees) == 1 else {"op": operator, "args": trees}


def _maybe_not(negated: bool, tree: Tree) -> Tree:
    return {"op": "not", "args": [tree]} if negated else tree
