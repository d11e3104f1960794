"""From conditions of the Whimbrel language on one event to predicates and operators of CPSL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from whimbrel.errors import QueryError, Span
from whimbrel.graph.clauses import FLIPPED
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.places import TOLERANCE_M
from whimbrel.lang.wbl import tree as t
from whimbrel.model.length import LENGTHS
from whimbrel.model.time import SECOND, UNITS
from whimbrel.model.time import instant as microseconds

Wrapper = Callable[[c.Sub], c.Sub]
_TEXT = {"startswith": (">*", "*<"), "endswith": ("*>", "<*"), "contains": ("*=", "=*")}
_RELATIONS: dict[str, Literal["OVLP", "SPL"]] = {"intersects": "OVLP", "same_place": "SPL"}


def no_form(what: str, at: Span | None, hint: str = "leave it out, or keep the query as it is") -> QueryError:
    """Say that something cannot be written in CPSL."""
    return QueryError(f"{what} has no CPSL form", at, hint)


@dataclass(slots=True)
class RaisedTests:
    """What is tested of one event: predicates, and operators to be put around it."""

    region_of: Callable[[t.ShapeNode], c.CpslRegion]
    predicates: list[c.Predicate] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    after: t.InstantNode | None = None
    until: t.InstantNode | None = None

    def add(self, node: t.Expression) -> None:
        """Add a condition on `this`."""
        if isinstance(node, t.Logic) and node.operator == "and":
            for operand in node.operands:
                self.add(operand)
        elif not self._add_time(node):
            wrapper = self._wrapper(node)
            if wrapper is not None:
                self.wrappers.append(wrapper)
            else:
                self.predicates.append(predicate(node))

    def around(self, sub: c.Sub) -> c.Sub:
        """Put the operators around a subscription."""
        for wrap in self.wrappers:
            sub = wrap(sub)
        if self.after is None and self.until is None:
            return sub
        if self.after is None:
            raise no_form("a bound on `end` alone", self.until.at if self.until else None)
        start = microseconds(self.after.text)
        point = c.CpslInstant(seconds(start))
        if self.until is None:
            return c.Timed("|=", point, c.Amount(0), sub)
        length = microseconds(self.until.text) - start
        return c.Timed("=|", point, c.Amount(seconds(length)), sub)

    def _add_time(self, node: t.Expression) -> bool:
        match node:
            case t.Compare((t.Name("start"), t.InstantNode() as point), (">",)) if self.after is None:
                self.after = point
            case t.Compare((t.Name("end"), t.InstantNode() as point), ("<=",)) if self.until is None:
                self.until = point
            case _:
                return False
        return True

    def _wrapper(self, node: t.Expression) -> Wrapper | None:
        match node:
            case t.InRegionNode(t.Name("this"), shape, False):
                region = self.region_of(shape)
                return lambda sub: c.Inside(region, sub)
            case t.Apply("intersects" | "same_place" as name, (t.Name("this"), other)):
                place = self.region_of(_shape(other))
                return lambda sub: c.CpslRelation(_RELATIONS[name], place, sub)
        distance = distance_of(node)
        if distance is None or distance[0][0] != t.Name("this"):
            return None
        where, sign, length = self._place(distance[0][1]), distance[1], distance[2]
        return lambda sub: c.Distance(where, sign, length, sub)

    def _place(self, node: t.Expression) -> c.CpslRegion | c.CpslPoint:
        match node:
            case t.Apply("point", (x, y)):
                return c.CpslPoint(plain(x), plain(y))
        return self.region_of(_shape(node))


def distance_of(
    node: t.Expression,
) -> tuple[tuple[t.Expression, ...], Literal["<", "=", ">"], c.Amount] | None:
    """Read `distance(a, b) < 50`, and `between 49 and 51`, which says `=`."""
    match node:
        case t.Compare((t.Apply("distance", (_, _) as places), length), ("<" | ">" as sign,)):
            return places, sign, _length(length)
        case t.BetweenNode(t.Apply("distance", (_, _) as places), low, high, False):
            middle = plain(high) - TOLERANCE_M
            if plain(low) == max(middle - TOLERANCE_M, 0):
                return places, "=", c.Amount(middle)
    return None


def plain(node: t.Expression) -> int | float:
    """Read a number."""
    match node:
        case t.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case t.Negative(inner):
            return -plain(inner)
    raise no_form("what is no plain number", node.at, "write a number here")


def duration(amount: t.Amount | t.Expression | None) -> c.Amount:
    """Read an amount of time."""
    match amount:
        case t.QuantityNode(((number, unit),)) if unit in UNITS:
            return c.Amount(number, None if unit == "s" else unit, at=amount.at)
        case t.QuantityNode(amounts) if all(unit in UNITS for _, unit in amounts):
            total = sum(round(number * UNITS[unit]) for number, unit in amounts)
            return c.Amount(seconds(total), at=amount.at)
    raise no_form("this amount", None if amount is None else amount.at, "write a number with a unit of time")


def predicate(node: t.Expression) -> c.Predicate:
    """Turn a condition on attributes into a predicate."""
    operands = node.operands if isinstance(node, t.Logic) and node.operator == "or" else (node,)
    alternatives = tuple(_tests(operand) for operand in operands)
    kinds = {_kind(test) for tests in alternatives for test in tests}
    if len(kinds) > 1:
        raise no_form("`or` between numbers and texts", node.at)
    return c.Predicate(kinds.pop(), alternatives, at=node.at)


def _tests(node: t.Expression) -> tuple[c.Test, ...]:
    if isinstance(node, t.Logic) and node.operator == "and":
        return tuple(_test(operand) for operand in node.operands)
    return (_test(node),)


def _kind(test: c.Test) -> c.Kind:
    if isinstance(test, c.CpslList) or (isinstance(test, c.CpslComparison) and isinstance(test.value, str)):
        return "STRING"
    return "ARITH"


def _test(node: t.Expression) -> c.Test:
    match node:
        case t.Compare((left, right), (sign,)):
            return _comparison(left, sign, right, node)
        case t.Compare((low, value, high), ("<" | "<=" as first, "<" | "<=" as second)):
            opening: Literal["[", "("] = "[" if first == "<=" else "("
            closing: Literal["]", ")"] = "]" if second == "<=" else ")"
            return c.Interval(_attribute(value), plain(low), plain(high), opening, closing, at=node.at)
        case t.BetweenNode(value, low, high, negated):
            ends = plain(low), plain(high)
            return c.Interval(_attribute(value), *ends, outside=negated, at=node.at)
        case t.Among(value, choices, negated):
            texts = tuple(_text(choice) for choice in choices)
            return c.CpslList(_attribute(value), texts, negated, at=node.at)
        case t.Apply("startswith" | "endswith" | "contains" as name, (left, right)):
            if isinstance(left, t.Constant):
                return c.CpslComparison(_attribute(right), _TEXT[name][1], _text(left), at=node.at)
            return c.CpslComparison(_attribute(left), _TEXT[name][0], _text(right), at=node.at)
    raise no_form("this condition", node.at, "compare an attribute with a number or a text")


def _comparison(left: t.Expression, sign: str, right: t.Expression, node: t.Expression) -> c.CpslComparison:
    if not isinstance(left, t.Name | t.Dotted):
        left, sign, right = right, FLIPPED[sign], left
    shown = "!" if sign == "!=" else sign
    if isinstance(right, t.Constant) and isinstance(right.value, str):
        if shown not in ("=", "!"):
            raise no_form(f"{sign!r} between texts", node.at)
        return c.CpslComparison(_attribute(left), shown, right.value, at=node.at)
    return c.CpslComparison(_attribute(left), shown, plain(right), at=node.at)


def _attribute(node: t.Expression) -> str:
    match node:
        case t.Name(name) | t.Dotted("this", name):
            if name not in ("start", "end", "timestamp", "duration") and name.isascii():
                return name
    raise no_form("what is compared here", node.at, "compare an attribute of the event itself")


def _text(node: t.Expression) -> str:
    if isinstance(node, t.Constant) and isinstance(node.value, str) and "\n" not in node.value:
        return node.value
    raise no_form("what is no text on one line", node.at)


def _shape(node: t.Expression) -> t.ShapeNode:
    match node:
        case t.Constant(str() as text):
            return t.ShapeNode(text=text, at=node.at)
        case t.Name(name):
            return t.ShapeNode(name=name, at=node.at)
        case t.Apply("circle" | "box" as function, arguments):
            return t.ShapeNode(function=function, arguments=arguments, at=node.at)
    raise no_form("this place", node.at, "write a region, or a point such as point(3, 4)")


def _length(node: t.Expression) -> c.Amount:
    match node:
        case t.QuantityNode(((number, unit),)) if unit in LENGTHS:
            return c.Amount(number, unit)
    return c.Amount(plain(node))


def seconds(amount: int) -> int | float:
    """Write microseconds as seconds, whole ones as such."""
    whole, rest = divmod(amount, SECOND)
    return amount / SECOND if rest else whole
