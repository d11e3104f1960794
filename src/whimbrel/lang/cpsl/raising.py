"""From the tree of the Whimbrel language back to CPSL, where a query has a form there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

from whimbrel.errors import Span
from whimbrel.graph.operators import ANY
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.raised_tests import (
    RaisedTests,
    distance_of,
    duration,
    no_form,
    plain,
    predicate,
    seconds,
)
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.lower import Declarations
from whimbrel.lang.wbl.regions import NamedRegions
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES
from whimbrel.model.time import TIME_POINT, instant
from whimbrel.space.geometry import as_circle

CORNERS = 256
"""CPSL has no circles: corners of the polygon that stands for one, less than 0.01 % smaller."""

_CLAUSES = {
    "assign": "assign",
    "consuming": "consuming",
    "group_by": "group by",
    "context": "context",
    "pre": "<pre>",
    "post": "<post>",
    "having": "having",
    "among": "among",
    "skip": "skip",
    "counting": "counting matches",
    "limit": "limit",
    "timing_out": "timing out as",
}

_BUILT_IN = set(BUILT_IN_ATTRIBUTES)
_OF_WHOLE_EVENTS = ("distance", "intersects", "same_place")


def raise_file(tree: t.WblFile) -> c.CpslFile:
    """Turn a query into subscriptions.

    Raises
    ------
    QueryError
        If something in the query has no CPSL form; it names it.
    """
    regions = Declarations.read(tree, None).regions
    lines = []
    for statement in tree.statements:
        match statement:
            case t.Definition():
                lines.append(_Raising(regions).subscription(statement))
            case t.RegionNode():
                pass  # written out where it is used
            case t.MobileNode():
                raise no_form("`around`", statement.at, "CPSL has definitions only; leave it out")
            case _:
                word = type(statement).__name__.removesuffix("Statement").removesuffix("Node").lower()
                raise no_form(f"`{word}`", statement.at, "CPSL has definitions only; leave it out")
    return c.CpslFile(tuple(lines), at=tree.at)


@dataclass(slots=True)
class _Raising:
    """Turn one definition into a line."""

    regions: NamedRegions
    bindings: dict[str, c.Sub] = field(default_factory=dict)
    predicates: dict[str, list[c.Predicate]] = field(default_factory=dict)
    """What is to be added to parts, because their attributes are compared with each other."""

    def subscription(self, statement: t.Definition) -> c.CpslSubscription:
        if statement.window is not None or statement.aggr:
            raise no_form("a window", statement.at, "CPSL does not aggregate")
        if statement.attributes is not None:
            raise no_form("a list of attributes", statement.at, "leave out what stands in its parentheses")
        if not statement.name.isascii():
            raise no_form(f"the name {statement.name!r}", statement.at, "use ASCII letters, digits and _")
        bodies = [self._case(case) for case in statement.cases]
        body = bodies[0] if len(bodies) == 1 else c.Any(tuple(bodies))
        bindings = tuple(c.Binding(name, sub) for name, sub in self.bindings.items())
        return c.CpslSubscription(statement.name, body, bindings, at=statement.at)

    def _case(self, case: t.CaseNode) -> c.Sub:
        for name, shown in _CLAUSES.items():
            value = getattr(case, name)
            if value:
                first = value[0] if isinstance(value, tuple) else value
                raise no_form(f"`{shown}`", getattr(first, "at", None) or case.detect.at)
        if isinstance(case.detect, t.MotionNode):
            raise no_form(f"`{case.detect.verb}`", case.detect.at)
        return self._pattern(case.detect, _conjuncts(case.where))

    # Patterns

    def _pattern(self, pattern: t.PatternNode, where: list[t.Expression]) -> c.Sub:
        if pattern.connective is None:
            return self._single(pattern, where)
        if pattern.connective == t.STEPS or pattern.gaps is not None:
            raise no_form("a sequence of steps", pattern.at)
        if pattern.within is not None:
            raise no_form("`within` behind a whole pattern", pattern.within.at, "write 'within D from a'")
        if pattern.connective == "or":
            _refuse(where)
            return c.Any(tuple(self._part(part, []) for part in pattern.parts))
        if where or pattern.connective == "and" or not _is_simple(pattern):
            return self._joined(pattern, where)
        return self._sequence(pattern)

    def _single(self, pattern: t.PatternNode, where: list[t.Expression]) -> c.Sub:
        (part,) = pattern.parts
        if part.times is None and pattern.within is not None:
            raise no_form("`within` around a single event", pattern.within.at)
        own = [_about_this(node, part.alias or _type(part)) for node in where]
        if part.times is None:
            return self._part(part, own)
        _refuse(where)
        count = self._exactly(part)
        sub = self._core(part, [])
        if pattern.within is None:
            return c.Successive(count, sub)
        time = duration(pattern.within)
        return c.Recurring(time, sub) if count == 2 else c.CpslGroups(count, time, 1, sub)

    def _sequence(self, pattern: t.PatternNode) -> c.Sub:
        """Write a sequence that one operator says."""
        first, *rest = pattern.parts
        if isinstance(first.what, t.TimePoint) and len(rest) == 1 and rest[0].negated:
            return c.Timed("!", _time_of(first.what), duration(rest[0].lasting), self._part(rest[0], []))
        subs = [self._part(part, []) for part in pattern.parts]
        match pattern.parts, subs:
            case (_, t.PatternPartNode(negated=True, lasting=lasting)), (a, b):
                return c.Timed("!", a, duration(lasting), b)
            case (_, second), (a, b):
                gap = second.gaps[0].duration if second.gaps else None
                return c.Timed("|=", a, c.Amount(0), b) if gap is None else c.Timed("=|", a, duration(gap), b)
            case (_, middle, _), (a, b, last):
                return c.Timed("!" if middle.negated else "=|", a, last, b)
        raise no_form("this sequence", pattern.at)

    def _joined(self, pattern: t.PatternNode, where: list[t.Expression]) -> c.Sub:
        """Write parts as variables, and what holds between them as operators joined by &&."""
        names = [part.alias or _type(part) for part in pattern.parts]
        where = [node for node in where if not self._compare_attributes(node, names)]
        for part, name in zip(pattern.parts, names, strict=True):
            if part.negated:
                raise no_form("`not` in a longer pattern", part.at, "write 'A then not B then C' alone")
            own = [_about_this(node, name) for node in where if _names(node, names) == {name}]
            self._bind(name, self._part(part, own), part.at)
        relations = self._orders(pattern, names)
        relations += [self._relation(node, names) for node in where if len(_names(node, names)) != 1]
        related = {
            child.name
            for relation in relations
            for child in c.children(relation)
            if isinstance(child, c.Variable)
        }
        alone: list[c.Sub] = [c.Variable(name) for name in names if name not in related]
        parts = [*alone, *relations]
        return parts[0] if len(parts) == 1 else c.All(tuple(parts))

    def _compare_attributes(self, node: t.Expression, names: list[str]) -> bool:
        """Write a comparison of attributes of two parts with a predicate variable; tell whether it is one."""
        match node:
            case t.Compare((t.Dotted(a, x), t.Dotted(b, y)), (sign,)):
                other = c.CpslBound(f"{b}_{y}")
            case t.Compare((t.Dotted(a, x), t.Infix(operator, t.Dotted(b, y), number)), (sign,)) if (
                y not in _BUILT_IN and operator in "+-*/"
            ):
                other = c.CpslBound(f"{b}_{y}", operator, plain(number))
            case _:
                return False
        if a == b or {x, y} & _BUILT_IN or not {a, b} <= set(names):
            return False
        self._require(b, c.CpslComparison(y, "=", c.CpslBound(other.name)))
        self._require(a, c.CpslComparison(x, "!" if sign == "!=" else sign, other))
        return True

    def _require(self, name: str, test: c.CpslComparison) -> None:
        predicate = c.Predicate("ARITH", ((test,),))
        known = self.predicates.setdefault(name, [])
        if predicate not in known:
            known.append(predicate)

    def _bind(self, name: str, sub: c.Sub, at: Span | None) -> None:
        if self.bindings.get(name, sub) != sub:
            raise no_form(f"the name {name!r} for two different parts", at, "give each of them its own name")
        self.bindings[name] = sub

    def _orders(self, pattern: t.PatternNode, names: list[str]) -> list[c.Sub]:
        orders: list[c.Sub] = []
        for index, part in enumerate(pattern.parts):
            before = names[index - 1] if index and pattern.connective == "then" else None
            gaps = {gap.other: duration(gap.duration) for gap in part.gaps}
            if pattern.connective == "and" and gaps:
                raise no_form("`within ... from` between parts in any order", part.at, "write 'then'")
            here = c.Variable(names[index])
            for other, time in gaps.items():
                orders.append(c.Timed("=|", c.Variable(other), time, here))
            if before is not None and before not in gaps:
                orders.append(c.Timed("|=", c.Variable(before), c.Amount(0), here))
        return orders

    def _relation(self, node: t.Expression, names: list[str]) -> c.Sub:
        match node:
            case t.Relation(t.Name(a), "concurrent", t.Name(b)):
                return c.Concurrent(c.Variable(a), c.Variable(b))
            case t.Relation(t.Name(a), "before", t.Name(b)):
                return c.Timed("|=", c.Variable(a), c.Amount(0), c.Variable(b))
            case t.Compare((t.Dotted(b, "start"), t.Infix("+", t.Dotted(a, "end"), amount)), (">",)):
                return c.Timed("|=", c.Variable(a), duration(amount), c.Variable(b))
            case t.InRegionNode(t.Name(b), t.ShapeNode(name=str() as a), False) if a in names:
                return c.CpslRelation("IN", c.Variable(a), c.Variable(b))
            case t.Apply("intersects", (t.Name(a), t.Name(b))):
                return c.CpslRelation("OVLP", c.Variable(a), c.Variable(b))
            case t.Apply("same_place", (t.Name(a), t.Name(b))):
                return c.CpslRelation("SPL", c.Variable(a), c.Variable(b))
        distance = distance_of(node)
        match distance:
            case ((t.Name(a), t.Name(b)), sign, length):
                return c.Distance(c.Variable(a), sign, length, c.Variable(b))
        raise no_form("this condition between parts", node.at, "CPSL relates parts in time and space")

    # Parts

    def _part(self, part: t.PatternPartNode, own: list[t.Expression]) -> c.Sub:
        for wrong, shown in ((part.select, part.select), (part.outer, "outer"), (part.until, "until")):
            if wrong:
                raise no_form(f"`{shown}`", part.at)
        if part.times is None:
            return self._core(part, own)
        _refuse(own)
        return c.Successive(self._exactly(part), self._core(part, []))

    def _exactly(self, part: t.PatternPartNode) -> int:
        assert part.times is not None
        if part.times.at_least != part.times.at_most:
            raise no_form("a number of times that varies", part.at, "write for example A{3}")
        return part.times.at_least

    def _core(self, part: t.PatternPartNode, own: list[t.Expression]) -> c.Sub:
        if isinstance(part.what, t.PatternNode):
            _refuse(own)
            return self._pattern(part.what, [])
        if isinstance(part.what, t.TimePoint):
            raise no_form("a time point here", part.at, "CPSL has '!(T;t)A', =|(T;t)A and |=(T;t)A")
        tests = RaisedTests(self._region)
        for node in (*part.what.conditions, *own):
            tests.add(_about_this(node, part.alias or part.what.type))
        first = [] if part.what.type == ANY else [_type_test(part.what)]
        predicates = (*first, *tests.predicates, *self.predicates.get(part.alias or part.what.type, ()))
        if not predicates:
            raise no_form("any event whatsoever", part.at, "name a type, or test an attribute")
        return tests.around(c.Primitive(predicates, at=part.at))

    def _region(self, shape: t.ShapeNode) -> c.CpslRegion:
        import shapely

        text = self.regions.wkt(shape)
        circle = as_circle(text)
        if circle is not None:
            return c.CpslRegion(_corners_of_circle(*circle[1:]), at=shape.at)
        polygon = shapely.from_wkt(text)
        if polygon.geom_type != "Polygon" or polygon.interiors:
            raise no_form("a region with holes or several pieces", shape.at)
        return c.CpslRegion(tuple((_tidy(x), _tidy(y)) for x, y in polygon.exterior.coords[:-1]), at=shape.at)


def _time_of(point: t.TimePoint) -> c.CpslInstant:
    return c.CpslInstant(seconds(instant(point.type.removeprefix(TIME_POINT))), at=point.at)


def _corners_of_circle(x: float, y: float, radius_m: float) -> tuple[c.Corner, ...]:
    angles = [2 * math.pi * corner / CORNERS for corner in range(CORNERS)]
    return tuple((_tidy(x + radius_m * math.cos(a)), _tidy(y + radius_m * math.sin(a))) for a in angles)


def _tidy(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(value)


def _type_test(what: t.Occurrence) -> c.Predicate:
    return predicate(t.Compare((t.Name("type"), t.Constant(what.type)), ("=",), at=what.at))


def _type(part: t.PatternPartNode) -> str:
    if isinstance(part.what, t.Occurrence):
        return part.what.type
    raise no_form("a group without a name", part.at, "define it by itself, and use that definition")


def _is_simple(pattern: t.PatternNode) -> bool:
    """Tell whether one operator says the whole sequence."""
    parts = pattern.parts
    if len(parts) == 2:
        return (
            not parts[0].negated
            and len(parts[1].gaps) <= 1
            and (not parts[1].negated or parts[1].lasting is not None)
        )
    ends_occur = not parts[0].negated and not parts[-1].negated
    return len(parts) == 3 and ends_occur and not any(part.gaps for part in parts)


def _conjuncts(where: t.Expression | None) -> list[t.Expression]:
    if where is None:
        return []
    if isinstance(where, t.Logic) and where.operator == "and":
        return [conjunct for operand in where.operands for conjunct in _conjuncts(operand)]
    return [where]


def _refuse(where: list[t.Expression]) -> None:
    if where:
        raise no_form("`where` here", where[0].at, "write the condition into the parentheses of an event")


def _names(node: object, known: list[str]) -> set[str]:
    """Name the parts that a condition reads."""
    match node:
        case t.Name(name) | t.Dotted(name, _):
            return {name} & set(known)
        case t.ShapeNode(name=str() as name):
            return {name} & set(known)
        case tuple():
            return set().union(*(_names(each, known) for each in node))
        case t.WblNode():
            fields = [getattr(node, name) for name in node.__slots__]
            return set().union(*(_names(each, known) for each in fields))
    return set()


def _about_this(node: t.Expression, name: str) -> t.Expression:
    """Write a condition on a part as one on the event in whose parentheses it stands."""
    change = partial(_about_this, name=name)
    match node:
        case t.Dotted(part, attribute) if part == name:
            return t.Name(attribute, at=node.at)
        case t.Logic(operator, operands):
            return t.Logic(operator, tuple(change(operand) for operand in operands), at=node.at)
        case t.Compare(operands, operators):
            return t.Compare(tuple(change(each) for each in operands), operators, at=node.at)
        case t.BetweenNode(value, low, high, negated):
            return t.BetweenNode(change(value), low, high, negated, at=node.at)
        case t.Among(value, choices, negated):
            return t.Among(change(value), choices, negated, at=node.at)
        case t.InRegionNode(value, region, negated):
            return t.InRegionNode(_whole(value, name), region, negated, at=node.at)
        case t.Apply(function, arguments) if function in _OF_WHOLE_EVENTS:
            return t.Apply(function, tuple(_whole(argument, name) for argument in arguments), at=node.at)
        case t.Apply(function, arguments):
            return t.Apply(function, tuple(change(each) for each in arguments), at=node.at)
    return node


def _whole(node: t.Expression, name: str) -> t.Expression:
    # Only here does a bare name stand for an event; anywhere else it is an attribute.
    return t.Name("this", at=node.at) if node == t.Name(name) else node
