"""From the expressions of the tree to those of the graph: every name is bound, every type is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from whimbrel.errors import QueryError, QueryTypeError, Span, UnknownNameError, did_you_mean
from whimbrel.graph.expressions import (
    AGGREGATES,
    GROUP,
    PLACE_RELATIONS,
    RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    parts_of,
)
from whimbrel.graph.functions import BUILT_IN, Function
from whimbrel.graph.policies import Key
from whimbrel.lang.types import a_kind, infer
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope, TypeInfo
from whimbrel.lang.wbl.regions import NamedRegions
from whimbrel.lang.wbl.values import Params, constant, instant_literal, joined, quantity
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES, RESERVED_COLUMNS, Type, common_type

_HIDDEN_FUNCTIONS = frozenset({"in", "between", "is_null", "lies_in", "within_region"})
_OF_PLACES = PLACE_RELATIONS - _HIDDEN_FUNCTIONS
SAME_PLACE_M = 1.0
"""How far apart centres may lie that are in the same place, if a query does not say."""


MATCHES = "matches"
"""How the number of matches is read where they are counted."""


class ExpressionSite(Enum):
    """Where an expression stands, which decides what it may read."""

    PLAIN = "a condition or assignment about single events"
    AGGREGATE = "an assignment over the events of a window"
    POST = "an assignment over partial results"
    HAVING = "a condition on results"


@dataclass(slots=True)
class QueryScope:
    """What does not change within one query text."""

    params: Params
    regions: NamedRegions
    functions: Mapping[str, Function]
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class VisibleNames:
    """The names an expression may use at one place of a definition."""

    scope: QueryScope
    parts: Mapping[str, PartName]
    keys: dict[str, Key]
    place: ExpressionSite = ExpressionSite.PLAIN
    own: Occurring | None = None
    """The event whose parentheses the expression stands in."""
    results: Mapping[str, Type | None] = field(default_factory=dict)
    """What was assigned before, in POST and HAVING."""
    lenient: bool = False
    """Accept a part name that is off by one letter, with a warning."""
    assigning: bool = False
    """Whether the value goes into the detection; an absent part has none to give."""
    inside: str | None = None
    """The aggregate that is being read."""
    counted: bool = False
    """Whether matches are counted instead of being listed."""
    walked: Mapping[str, bool] | None = None
    """In a sequence of steps: the steps, and whether each may take several events."""

    def condition(self, node: t.Expression) -> Expr:
        """Resolve a condition; it must be true or false."""
        expr, kind = self.value(node)
        if kind is not None and kind is not Type.BOOL:
            raise QueryTypeError(
                f"a condition is true or false; this is {a_kind(kind)}", node.at, "compare it with something"
            )
        return expr

    def value(self, node: t.Expression) -> tuple[Expr, Type | None]:
        """Resolve an expression and tell its type."""
        expr = self.resolve(node)
        return expr, infer(expr, self.type_of, self.scope.functions)

    def type_of(self, attribute: Attribute) -> Type | None:
        """Tell the type of an attribute, as far as it is known."""
        if attribute.part is None:
            return self.results.get(attribute.name)
        if attribute.part == GROUP:
            return self._key_type(self.keys[attribute.name])
        return attribute_type(self._info(attribute.part), attribute.name)

    def _info(self, part: str) -> TypeInfo:
        own = self.own
        return own.info if own is not None and own.name == part else self.parts[part].info

    def _key_type(self, key: Key) -> Type | None:
        if key.kind == "cell":
            return None
        if key.kind == "source":
            return Type.STRING
        return common_type([attribute_type(part.info, key.name) for part in self.parts.values()])

    # Expressions

    def resolve(self, node: t.Expression) -> Expr:
        """Bind every name in an expression."""
        at = node.at
        match node:
            case t.Constant(value):
                return constant(value, at)
            case t.QuantityNode():
                return quantity(node)
            case t.InstantNode():
                return instant_literal(node)
            case t.Name(name):
                return self._name(name, at)
            case t.Dotted(part, name):
                return self._dotted(part, name, at)
            case t.Negative(operand):
                return _negative(self.resolve(operand), at)
            case t.Infix(operator, left, right):
                return Binary(operator, self.resolve(left), self.resolve(right), at=at)
            case t.Apply(function, arguments):
                return self._apply(function, arguments, at)
        return self._test(node)

    def _test(self, node: t.Expression) -> Expr:
        at = node.at
        match node:
            case t.Not(operand):
                return Unary("not", self.resolve(operand), at=at)
            case t.Logic(operator, operands):
                return joined(operator, [self.resolve(operand) for operand in operands], at)
            case t.Compare():
                return self._compare(node)
            case t.Relation(left, relation, right):
                sides = self._relation_side(left, relation), self._relation_side(right, relation)
                return Call(relation, sides, at=at)
            case t.Among(value, choices, negated):
                return self._call("in", (value, *choices), negated, at)
            case t.BetweenNode(value, low, high, negated):
                return self._call("between", (value, low, high), negated, at)
            case t.IsNullNode(value, negated):
                return self._call("is_null", (value,), negated, at)
            case t.InRegionNode():
                return self._in_region(node)
        raise TypeError(f"not an expression: {node!r}")

    def _call(self, name: str, values: tuple[t.Expression, ...], negated: bool, at: Span | None) -> Expr:
        return _maybe_not(Call(name, tuple(self.resolve(value) for value in values), at=at), negated)

    def _compare(self, node: t.Compare) -> Expr:
        operands = [self.resolve(operand) for operand in node.operands]
        pairs = zip(node.operators, operands, operands[1:], strict=False)
        return joined("and", [Binary(sign, left, right, at=node.at) for sign, left, right in pairs], node.at)

    def _in_region(self, node: t.InRegionNode) -> Expr:
        outer = self._part_named_like(node.region)
        region = outer or constant(self.scope.regions.wkt(node.region), node.region.at)
        part = self._whole_part(node.value)
        if part is None:
            raise QueryTypeError(
                "only an event can lie in a region",
                node.value.at,
                "write 'this in Region' in the event's parentheses, or 'a in Region' with the name of a part",
            )
        function = "within_region" if outer is None else "lies_in"
        return _maybe_not(Call(function, (part, region), at=node.at), node.negated)

    def _part_named_like(self, shape: t.ShapeNode) -> PartRef | None:
        """Find the part that a name stands for where no region has it."""
        if shape.name is None or shape.name in self.scope.regions.named:
            return None
        return self._whole_part(t.Name(shape.name, at=shape.at))

    # Places

    def _of_places(self, function: str, arguments: tuple[t.Expression, ...], at: Span | None) -> Expr:
        """Resolve a function of two locations: of events, or of an event and a region."""
        most = 3 if function == "same_place" else 2
        if not 2 <= len(arguments) <= most:
            wanted = "two places" if most == 2 else "two places and perhaps a distance"
            raise QueryTypeError(
                f"{function} takes {wanted}, not {len(arguments)} arguments", at, f"write {function}(a, b)"
            )
        one, two = (self._location(argument, function) for argument in arguments[:2])
        if isinstance(one, Literal):
            one, two = two, one
        if isinstance(one, Literal):
            raise QueryTypeError(
                f"{function} needs an event; these are two regions", at, f"write {function}(this, Region)"
            )
        if function != "same_place":
            return Call(function, (one, two), at=at)
        limit = self.resolve(arguments[2]) if len(arguments) > 2 else Literal(SAME_PLACE_M, Type.FLOAT)
        if not isinstance(limit, Literal) or isinstance(limit.value, bool | str | None) or limit.value < 0:
            raise QueryTypeError("this is no distance", arguments[2].at, "write for example 5 m")
        return Call(function, (one, two, Literal(float(limit.value), Type.FLOAT)), at=at)

    def _location(self, node: t.Expression, function: str) -> Expr:
        if not self._is_param(node):
            part = self._whole_part(node)
            if part is not None:
                return part
        regions = self.scope.regions
        match node:
            case t.Constant(str() as text):
                return constant(regions.place(t.ShapeNode(text=text, at=node.at)), node.at)
            case t.Apply(made, numbers):
                return constant(
                    regions.place(t.ShapeNode(function=made, arguments=numbers, at=node.at)), node.at
                )
            case t.Name(name) if name in regions.named:
                return constant(regions.named[name], node.at)
            case t.Name(name) if self._is_param(node):
                value = self.scope.params.value(name, node.at).value
                if isinstance(value, str):
                    return constant(regions.place(t.ShapeNode(text=value, at=node.at)), node.at)
            case t.Name(name) if self.place in (ExpressionSite.POST, ExpressionSite.HAVING):
                self._result(name, node.at)
            case t.Name(name):
                raise UnknownNameError("part or region", name, [*self.parts, *regions.named], node.at)
        raise QueryTypeError(
            f"{function} needs places: parts of the pattern, or regions",
            node.at,
            f"write {function}(a, b), {function}(this, Region) or {function}(this, point(3, 4))",
        )

    def _relation_side(self, node: t.Expression, relation: str) -> Expr:
        part = self._whole_part(node)
        if part is not None:
            return part
        if isinstance(node, t.Name):
            raise UnknownNameError("part", node.name, self.parts, node.at)
        raise QueryTypeError(
            f"{relation!r} stands between two parts of the pattern",
            node.at,
            f"write for example 'a {relation} b'",
        )

    def _whole_part(self, node: t.Expression) -> PartRef | None:
        if not isinstance(node, t.Name) or self.place in (ExpressionSite.POST, ExpressionSite.HAVING):
            return None
        if node.name == "this":
            return PartRef(self._sole_name("this", node.at), at=node.at)
        if node.name in self.parts or (self.own is not None and node.name == self.own.name):
            self._check_readable(node.name, node.at)
            self._check_aggregated(
                f"{node.name!r}", f"aggregate it, as in count({node.name}) or avg({node.name}.x)", node.at
            )
            return PartRef(node.name, at=node.at)
        return None

    # Names

    def _name(self, name: str, at: Span | None) -> Expr:
        if name == "this":
            return PartRef(self._sole_name("this", at), at=at)
        if name == MATCHES and self.counted:
            return Call(MATCHES, (), at=at)
        if name in self.scope.params.literals:
            return self._param(name, at)
        if self.place in (ExpressionSite.POST, ExpressionSite.HAVING):
            return self._result(name, at)
        if self.place is ExpressionSite.AGGREGATE and self.inside is None and name in self.keys:
            return Attribute(GROUP, name, at=at)
        if self.own is None and len(self.parts) != 1:
            raise self._ambiguous(name, at)
        return self._attribute(self._sole_name(name, at), name, at)

    def _param(self, name: str, at: Span | None) -> Expr:
        info = self.own.info if self.own is not None else None
        if info is not None and name in info.attributes:
            raise QueryError(
                f"{name!r} is a parameter and an attribute of {info.name}",
                at,
                f"write this.{name} for the attribute, or rename the parameter",
            )
        literal = self.scope.params.value(name, at)
        return Literal(literal.value, literal.type, at=at)

    def _result(self, name: str, at: Span | None) -> Expr:
        if name not in self.results:
            raise UnknownNameError("assigned attribute", name, self.results, at)
        if self.place is ExpressionSite.POST and self.inside is None:
            raise QueryError(
                f"{name!r} has one value for each partial result",
                at,
                f"choose how they are put together: sum({name}), max({name}), last({name}), ...",
            )
        return Attribute(None, name, at=at)

    def _sole_name(self, name: str, at: Span | None) -> str:
        if self.own is not None:
            return self.own.name
        if len(self.parts) == 1 and self.place in (ExpressionSite.PLAIN, ExpressionSite.AGGREGATE):
            return next(iter(self.parts))
        raise QueryError(
            f"{name!r} does not say which event is meant", at, f"name a part: {', '.join(sorted(self.parts))}"
        )

    def _ambiguous(self, name: str, at: Span | None) -> QueryError:
        if name in self.parts:
            return QueryTypeError(
                f"{name!r} is a whole event, not a value", at, f"write {name}.ATTRIBUTE to read one value"
            )
        owners = [part.name for part in self.parts.values() if name in part.info.attributes]
        shown = " or ".join(f"{part}.{name}" for part in owners or list(self.parts)[:3])
        near = did_you_mean(name, self.parts) or ""
        hint = f"write {shown}" + (f"; {near}" if near.startswith("did you") else "")
        return QueryError(f"{name!r} does not say which event is meant", at, hint)

    def _dotted(self, part: str, name: str, at: Span | None) -> Expr:
        if part == GROUP:
            if name not in self.keys:
                raise _no_key(name, self.keys, at)
            return Attribute(GROUP, name, at=at)
        if self.place in (ExpressionSite.POST, ExpressionSite.HAVING):
            raise QueryError(
                f"events cannot be read here, only what was assigned: {', '.join(self.results)}",
                at,
                f"assign {part}.{name} or an aggregate of it first",
            )
        if part == "this":
            return self._attribute(self._sole_name("this", at), name, at)
        return self._attribute(self._part_name(part, at), name, at)

    def _part_name(self, name: str, at: Span | None) -> str:
        if name in self.parts or (self.own is not None and name == self.own.name):
            return name
        near = [known for known in self.parts if _one_letter_apart(name, known)]
        if self.lenient and len(near) == 1:
            where = f"{at}: " if at else ""
            self.scope.warnings.append(f"{where}no part is named {name!r}; read as {near[0]!r}")
            return near[0]
        for part in self.parts.values():
            if any(leaf.occurrence.type == name for leaf in part.leaves):
                error = UnknownNameError("part", name, self.parts, at)
                error.hint = f"the event {name} is called {part.name!r} here"
                raise error
        raise UnknownNameError("part", name, self.parts, at)

    def _attribute(self, part: str, name: str, at: Span | None) -> Attribute:
        self._check_readable(part, at)
        info = self._info(part)
        if not info.is_open and name not in info.attributes and name not in BUILT_IN_ATTRIBUTES:
            known = info.attributes or BUILT_IN_ATTRIBUTES
            raise UnknownNameError(f"attribute of {info.name}", name, known, at)
        hint = f"use an aggregate such as last({part}.{name}), or group by {name} and read group.{name}"
        self._check_aggregated(f"{part}.{name}", hint, at)
        return Attribute(part, name, at=at)

    def _check_aggregated(self, shown: str, hint: str, at: Span | None) -> None:
        if self.place is ExpressionSite.AGGREGATE and self.inside is None:
            raise QueryError(f"{shown} has one value for each event of the window", at, hint)

    def _check_readable(self, part: str, at: Span | None) -> None:
        if self.walked is not None:
            self._check_step(part, at)
            return
        if self.own is not None and part == self.own.name:
            return
        visible = self.parts[part]
        viewpoint = self.own.scope if self.own is not None else Scope()
        if visible.barrier_seen_from(viewpoint, "absent") and (self.own is not None or self.assigning):
            raise QueryError(
                f"{part!r} does not occur, so it has no values",
                at,
                "only its own conditions and 'where' can read an absent part",
            )
        repeated = visible.barrier_seen_from(viewpoint, "repeat") is not None
        if repeated and self.inside is None and self.place is ExpressionSite.PLAIN:
            raise QueryError(
                f"{part!r} stands for several events",
                at,
                f"use an aggregate: count({part}), avg({part}.x), last({part}.x), ...",
            )
        if not repeated and self.inside is not None and self.place is ExpressionSite.PLAIN:
            raise QueryError(
                f"{self.inside} needs several events; {part!r} is one",
                at,
                f"repeat the part, as in '{part}{{2,5}}', or aggregate over a window with 'every' or 'over'",
            )

    def _check_step(self, part: str, at: Span | None) -> None:
        """In a sequence of steps, a step that takes several events is read through aggregates."""
        assert self.walked is not None
        if self.counted and self.own is None and self.inside not in ("count", "sum", "avg", "min", "max"):
            raise QueryError(
                f"{part!r} stands for the events of many matches, which are only counted",
                at,
                f"use count({part}), or sum, avg, min, max of an attribute; {MATCHES} is their number",
            )
        is_own = self.own is not None and part == self.own.name
        if self.walked.get(part) and self.inside is None and not is_own:
            raise QueryError(
                f"{part!r} may take several events",
                at,
                f"use an aggregate: first({part}.x), last({part}.x), count({part}), avg({part}.x), ...",
            )

    # Functions

    def _apply(self, function: str, arguments: tuple[t.Expression, ...], at: Span | None) -> Expr:
        if function == "ids" and self.walked is not None:
            return self._ids(arguments, at)
        if function in AGGREGATES or self._is_user_aggregate(function):
            return self._aggregate(function, arguments, at)
        if function in _OF_PLACES:
            return self._of_places(function, arguments, at)
        takes_parts = function in RELATIONS or function in self.scope.functions
        if not takes_parts and (function not in BUILT_IN or function in _HIDDEN_FUNCTIONS):
            raise self._no_function(function, at)
        return Call(function, tuple(self._argument(argument, takes_parts) for argument in arguments), at=at)

    def _ids(self, arguments: tuple[t.Expression, ...], at: Span | None) -> Expr:
        if self.counted:
            raise QueryError("matches that are counted have no list of events", at, f"use {MATCHES}")
        step = arguments[0] if len(arguments) == 1 else None
        if not isinstance(step, t.Name) or step.name not in self.parts:
            raise QueryError("ids(step) takes the name of a step", at, f"one of {', '.join(self.parts)}")
        return Call("ids", (PartRef(step.name, at=step.at),), at=at)

    def _is_user_aggregate(self, function: str) -> bool:
        return function in self.scope.functions and self.scope.functions[function].aggregate

    def _argument(self, node: t.Expression, takes_parts: bool) -> Expr:
        part = self._whole_part(node) if takes_parts and not self._is_param(node) else None
        return part if part is not None else self.resolve(node)

    def _is_param(self, node: t.Expression) -> bool:
        return isinstance(node, t.Name) and node.name in self.scope.params.literals

    def _no_function(self, name: str, at: Span | None) -> UnknownNameError:
        known = (BUILT_IN - _HIDDEN_FUNCTIONS - frozenset(RELATIONS)) | set(self.scope.functions)
        error = UnknownNameError("function", name, known, at)
        if not (error.hint or "").startswith("did you"):
            error.hint = (
                "write it in Python with @whimbrel.function and hand it over: compile(..., functions=[...])"
            )
        return error

    def _aggregate(self, function: str, arguments: tuple[t.Expression, ...], at: Span | None) -> Expr:
        if self.inside is not None:
            raise QueryError(
                f"{function} stands inside {self.inside}", at, "assign the inner one, and use it in <post>"
            )
        if self.place is ExpressionSite.HAVING:
            raise QueryError("`having` reads results", at, f"assign n = {function}(...) and test n")
        self.inside = function
        try:
            resolved = tuple(self._argument(argument, function == "count") for argument in arguments)
        finally:
            self.inside = None
        self._check_one_part(function, resolved, at)
        return Call(function, resolved, at=at)

    def _check_one_part(self, function: str, arguments: tuple[Expr, ...], at: Span | None) -> None:
        read = {name for argument in arguments for name in parts_of(argument)} - {GROUP}
        if not read and self.place is not ExpressionSite.POST:
            raise QueryError(
                f"{function} reads no event", at, f"write {function}(part) or {function}(part.attribute)"
            )
        if len(read) > 1:
            raise QueryError(
                f"{function} reads several parts",
                at,
                "aggregate one part, or define the combination with an attribute first and aggregate that",
            )


def attribute_type(info: TypeInfo, name: str) -> Type | None:
    """Tell the type of an attribute; an attribute of the data comes before a built-in one."""
    if name in info.attributes:
        return info.attributes[name]
    # The data of an undeclared type may well have a `duration` of its own, of whatever type.
    return None if info.is_open and name not in RESERVED_COLUMNS else BUILT_IN_ATTRIBUTES.get(name)


def _negative(operand: Expr, at: Span | None) -> Expr:
    match operand:
        case Literal(int() | float() as value, kind) if not isinstance(value, bool):
            return Literal(-value, kind, at=at)
    return Unary("-", operand, at=at)


def _maybe_not(expr: Expr, negated: bool) -> Expr:
    return Unary("not", expr, at=expr.at) if negated else expr


def _one_letter_apart(one: str, two: str) -> bool:
    if one == two or abs(len(one) - len(two)) > 1:
        return False
    if len(one) == len(two):
        return sum(a != b for a, b in zip(one, two, strict=True)) == 1
    short, long = sorted((one, two), key=len)
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))


def _no_key(name: str, keys: Mapping[str, Key], at: Span | None) -> UnknownNameError:
    error = UnknownNameError("group key", name, keys, at)
    if not (error.hint or "").startswith("did you"):
        error.hint = f"add it: 'group by {name}'"
    return error
