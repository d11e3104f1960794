"""Random choices and random expressions, which random graphs are made of.

Every event has the attributes v (whole), w (float) and k (text).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from whimbrel.graph.expressions import RELATIONS, Attribute, Binary, Call, Expr, Literal, PartRef, Unary
from whimbrel.graph.policies import WHOLE, Partitioning
from whimbrel.model.schema import Type
from whimbrel.model.time import SECOND

FEATURES = frozenset(
    {
        "filter",  # streams with a condition
        "conjunction",  # parts in any order; sequences are always there
        "conditions",  # conditions over several parts
        "absent",  # absent parts, in every position
        "gap",  # orders with a gap
        "select",  # first and last
        "contexts",  # contexts other than each
        "consuming",  # each, with consumed parts
        "repeat",  # repetitions, alone and as a part
        "merge",  # alternatives, alone and as a part
        "aggregate",  # windows of every kind
        "change",  # values that differ from the one before
        "partition",  # by attribute and by source
        "cell",  # by grid cell
        "space",  # distances in conditions
        "layers",  # definitions on definitions
        "cases",  # definitions with several cases
        "assign",  # attributes of derived events
        "clock",  # time points
    }
)
T = TypeVar("T")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_RELATIONS = tuple(sorted(RELATIONS))
_OF_EVENTS = frozenset({"times", "relation", "distance", "places"})
_REGIONS = (
    "POLYGON ((0 0, 3 0, 3 3, 0 3, 0 0))",
    "POLYGON ((1 0, 5 0, 5 4, 1 4, 1 0), (2 1, 2 3, 4 3, 4 1, 2 1))",
    "POLYGON ((0 0, 4 4, 0 4, 0 0))",
    "CIRCLE (1.0 1.0 2.0)",
)


@dataclass
class Scope:
    """The names an expression may read: those of one event each, and those of several."""

    single: list[str | None] = field(default_factory=list)
    many: list[str] = field(default_factory=list)
    group: Partitioning = WHOLE

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.single + other.single, self.many + other.many, self.group)


class Chooser:
    """Draws choices and expressions, within the features that are wanted."""

    def __init__(self, draw: st.DrawFn, features: frozenset[str]) -> None:
        unknown = features - FEATURES
        if unknown:
            raise ValueError(f"no such features: {', '.join(sorted(unknown))}")
        self.draw = draw
        self.features = features

    # Choices.

    def choose(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def apart(self, make: Callable[[], T]) -> T:
        """Draw something as one unit, which shrinking can take away as a whole."""
        return self.draw(st.builds(make))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flip(self, feature: str | None = None) -> bool:
        """Yes or no; always no where the feature is not wanted."""
        return (feature is None or feature in self.features) and self.draw(st.booleans())

    def rarely(self, feature: str | None = None) -> bool:
        return (feature is None or feature in self.features) and self.number(0, 3) == 3

    def mostly(self) -> bool:
        return self.number(0, 7) > 0

    def seldom(self, feature: str | None = None) -> bool:
        return (feature is None or feature in self.features) and self.number(0, 7) == 7

    def time(self, low: int, high: int) -> int:
        return self.number(low, high) * SECOND

    # Expressions.

    def whole(self, scope: Scope) -> Expr:
        """A term whose value is a whole number."""
        single, many = self.reader(scope)
        if many is not None:
            function = self.choose(("count", "sum", "min", "max", "first", "last", "distinct"))
            if function == "count" and self.flip():
                return Call("count", (PartRef(many),))
            return Call(function, (Attribute(many, "v"),))
        term: Expr = Attribute(single, "v")
        match self.number(0, 7):
            case 5:
                return Binary(self.choose(("+", "-", "*", "%")), term, self.whole_constant())
            case 6:
                return Call("coalesce", (term, self.whole_constant()))
            case 7:
                return Call(self.choose(("abs", "sign")), (Unary("-", term),))
        return term

    def real(self, scope: Scope) -> Expr:
        """A term whose value is a float."""
        single, many = self.reader(scope)
        if many is not None:
            return Call(self.choose(("avg", "sum", "min", "max", "first", "last")), (Attribute(many, "w"),))
        term: Expr = Attribute(single, "w")
        match self.number(0, 7):
            case 4:
                return Binary(self.choose(("+", "-", "*", "/", "%")), term, self.whole(scope))
            case 5:
                return Call(self.choose(("floor", "ceil", "round", "abs", "sign", "sqrt")), (term,))
            case 6:
                return Call(self.choose(("least", "greatest")), (term, self.real_constant()))
            case 7:
                return Binary("/", Attribute(single, "v"), self.whole_constant())
        return term

    def text(self, scope: Scope) -> Expr:
        """A term whose value is a text."""
        if any(key.name == "k" for key in scope.group.keys) and self.flip():
            return Attribute("group", "k")
        single, many = self.reader(scope)
        if many is not None:
            return Call(self.choose(("first", "last", "min", "max")), (Attribute(many, "k"),))
        return Attribute(single, "k")

    def reader(self, scope: Scope) -> tuple[str | None, str | None]:
        """The name of a part with one event, or that of one with several."""
        pairs: list[tuple[str | None, str | None]] = [(name, None) for name in scope.single]
        return self.choose(pairs + [(None, name) for name in scope.many])

    def whole_constant(self) -> Literal:
        return Literal(self.number(0, 3), Type.INT)

    def real_constant(self) -> Literal:
        return Literal(self.choose((0.0, 0.5, 1.0)), Type.FLOAT)

    def text_constant(self) -> Literal:
        return Literal(self.choose(("x", "y", "z")), Type.STRING)

    def compare(self, left: Expr, right: Expr) -> Expr:
        return Binary(self.choose(_COMPARISONS), left, right)

    def condition(self, scope: Scope) -> Expr:
        match self.number(0, 9):
            case 8:
                pair = (self.simple_condition(scope), self.simple_condition(scope))
                return Binary(self.choose(("or", "and")), *pair)
            case 9:
                return Unary("not", self.simple_condition(scope))
        return self.simple_condition(scope)

    def simple_condition(self, scope: Scope) -> Expr:
        kinds = ["constant", "whole", "real", "text", "in", "between", "null"]
        events = [name for name in scope.single if name is not None]
        if len(events) >= 2:
            kinds += ["times", "relation"] + ["distance", "places"] * ("space" in self.features)
        if "space" in self.features and scope.single:
            kinds.append("region")
        kind = self.choose(kinds)
        made: Any = getattr(self, f"{kind}_condition")(events if kind in _OF_EVENTS else scope)
        return made

    def constant_condition(self, scope: Scope) -> Expr:
        return self.compare(self.whole(scope), self.whole_constant())

    def whole_condition(self, scope: Scope) -> Expr:
        return self.compare(self.whole(scope), self.whole(scope))

    def real_condition(self, scope: Scope) -> Expr:
        return self.compare(self.real(scope), self.choose((self.real_constant(), self.whole(scope))))

    def text_condition(self, scope: Scope) -> Expr:
        right = self.text_constant() if self.flip() else self.text(scope)
        return Binary(self.choose(("=", "!=", "<")), self.text(scope), right)

    def in_condition(self, scope: Scope) -> Expr:
        if self.flip():
            return Call("in", (self.text(scope), self.text_constant(), self.text_constant()))
        return Call("in", (self.whole(scope), self.whole_constant(), self.whole(scope)))

    def between_condition(self, scope: Scope) -> Expr:
        return Call("between", (self.whole(scope), self.whole_constant(), self.whole(scope)))

    def null_condition(self, scope: Scope) -> Expr:
        return Call("is_null", (self.choose((self.whole(scope), self.text(scope))),))

    def times_condition(self, events: list[str]) -> Expr:
        bounds = [Attribute(self.choose(events), self.choose(("start", "end"))) for _ in range(2)]
        return self.compare(Binary("-", *bounds), Literal(self.time(0, 3), Type.DURATION))

    def relation_condition(self, events: list[str]) -> Expr:
        return Call(self.choose(_RELATIONS), (PartRef(self.choose(events)), PartRef(self.choose(events))))

    def distance_condition(self, events: list[str]) -> Expr:
        parts = (PartRef(self.choose(events)), PartRef(self.choose(events)))
        return self.compare(Call("distance", parts), Literal(self.choose((1.0, 2.0, 3.0)), Type.FLOAT))

    def places_condition(self, events: list[str]) -> Expr:
        parts = (PartRef(self.choose(events)), PartRef(self.choose(events)))
        name = self.choose(("intersects", "lies_in", "same_place"))
        more = (Literal(self.choose((0.0, 1.0, 2.0)), Type.FLOAT),) if name == "same_place" else ()
        return Call(name, parts + more)

    def region_condition(self, scope: Scope) -> Expr:
        part, region = PartRef(self.choose(scope.single)), Literal(self.choose(_REGIONS), Type.STRING)
        name = self.choose(("within_region", "intersects", "distance"))
        made = Call(name, (part, region))
        return (
            made if name != "distance" else self.compare(made, Literal(self.choose((0.0, 1.0)), Type.FLOAT))
        )
