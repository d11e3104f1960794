"""Queries in Python: the same algebra as the language, and it prints as the language does.

>>> a = event("Position", as_="a").where(col("speed") > 30)
>>> b = event("Position", as_="b")
>>> brake = define("Brake", detect=a.then(b).within("5 s").where(b["speed"] < a["speed"] * 0.5))
>>> print(brake)
define Brake
  detect Position(speed > 30) as a then Position as b within 5 s
  where b.speed < a.speed * 0.5

`brake.compile()` gives the same query as compiling that text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict, Unpack

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.expressions import RELATIONS
from whimbrel.graph.operators.encounter import Meeting
from whimbrel.graph.operators.motion import Verb
from whimbrel.graph.query import Query
from whimbrel.lang.values import (
    Duration,
    Events,
    Plain,
    ValueBuilder,
    all_of,
    amount_of,
    length_of,
    node_of,
    value,
)
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.compile import CompileSettings, compile_text
from whimbrel.lang.wbl.details import WORDS
from whimbrel.lang.wbl.format import format_tree
from whimbrel.lang.wbl.parse import parse
from whimbrel.lang.wbl.printer import print_motion, print_part, print_pattern
from whimbrel.model.length import LENGTHS
from whimbrel.model.settings import check_settings
from whimbrel.model.time import instant, time_point

__all__ = [
    "Events",
    "MotionBuilder",
    "PartBuilder",
    "PatternBuilder",
    "Program",
    "RegionBuilder",
    "Statement",
    "ValueBuilder",
    "absent",
    "at_time",
    "avg",
    "box",
    "call",
    "case",
    "cell",
    "circle",
    "col",
    "coordinates",
    "count",
    "define",
    "distance",
    "distinct",
    "event",
    "first",
    "group",
    "intersects",
    "last",
    "layer",
    "max_",
    "min_",
    "motion",
    "param",
    "point",
    "previous",
    "program",
    "region",
    "same_place",
    "schema",
    "subscription",
    "sum_",
    "this",
    "value",
]


# Regions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegionBuilder:
    """A region that events may lie in."""

    shape: t.ShapeNode
    declaration: t.RegionNode | None = None

    def named(self, name: str) -> RegionBuilder:
        """Name the region, which detections can tell; hand it to `program`, too."""
        return RegionBuilder(t.ShapeNode(name=name), t.RegionNode(name, self.shape))


def region(wkt: str) -> RegionBuilder:
    """Make a region of WKT: `region("POLYGON ((0 0, 10 0, 10 10, 0 0))")`."""
    return RegionBuilder(t.ShapeNode(text=wkt))


def circle(x: float, y: float, radius: str | float) -> RegionBuilder:
    """Make a circle around a point; the radius is in metres or has a unit: `circle(0, 0, "500 m")`."""
    return RegionBuilder(
        t.ShapeNode(function="circle", arguments=(node_of(x), node_of(y), length_of(radius)))
    )


def box(x1: float, y1: float, x2: float, y2: float) -> RegionBuilder:
    """Make a rectangle of two opposite corners."""
    corners = tuple(node_of(number) for number in (x1, y1, x2, y2))
    return RegionBuilder(t.ShapeNode(function="box", arguments=corners))


def point(x: float, y: float) -> RegionBuilder:
    """Make a place to measure distances from: `distance(this, point(3, 4))`."""
    return RegionBuilder(t.ShapeNode(function="point", arguments=(node_of(x), node_of(y))))


def layer(file: str, *, name: str | None = None) -> RegionBuilder:
    """Take the regions of a GeoJSON or GeoParquet file; `name` is the property that names them."""
    called = () if name is None else (t.Compare((t.Name("name"), t.Constant(name)), ("=",)),)
    return RegionBuilder(t.ShapeNode(function="layer", arguments=(t.Constant(file), *called)))


# Patterns ------------------------------------------------------------------------------------------


class _Joinable:
    """What parts and patterns have in common: they are joined to larger patterns."""

    __slots__ = ()

    def members(self, connective: str) -> tuple[t.PatternPartNode, ...]:
        """List the parts this contributes to a pattern with that connective."""
        raise NotImplementedError

    def all_conditions(self) -> tuple[ValueBuilder, ...]:
        """List the conditions that belong behind `where`."""
        raise NotImplementedError

    def then(self, other: PartBuilder | PatternBuilder) -> PatternBuilder:
        """Follow with another part: this one ends before `other` starts. Also written `>>`."""
        return self._join("then", other)

    def and_(self, other: PartBuilder | PatternBuilder) -> PatternBuilder:
        """Ask for both, in any order. Also written `&`."""
        return self._join("and", other)

    def or_(self, other: PartBuilder | PatternBuilder) -> PatternBuilder:
        """Ask for either. Also written `|`."""
        return self._join("or", other)

    __rshift__ = then
    __and__ = and_
    __or__ = or_

    def _join(self, connective: str, other: PartBuilder | PatternBuilder) -> PatternBuilder:
        members = (*self.members(connective), *other.members(connective))
        return PatternBuilder(
            t.PatternNode(connective, members), (*self.all_conditions(), *other.all_conditions())
        )


@dataclass(frozen=True, slots=True, eq=False)
class PartBuilder(_Joinable):
    """One part of a pattern: an event, or a pattern in parentheses, and what is said about it."""

    node: t.PatternPartNode
    conditions: tuple[ValueBuilder, ...] = ()
    """Conditions of a pattern inside; they belong behind `where`."""

    def __repr__(self) -> str:
        return f"<{print_part(self.node)}>"

    def __getitem__(self, attribute: str) -> ValueBuilder:
        return ValueBuilder(t.Dotted(self.name, attribute))

    @property
    def name(self) -> str:
        """How expressions call this part: its alias, or the type of its event."""
        if self.node.alias is not None:
            return self.node.alias
        if isinstance(self.node.what, t.Occurrence) and not isinstance(self.node.what, t.TimePoint):
            return self.node.what.type
        raise QueryError(f"{self!r} has no name", hint="name the event, or those inside a group, with as_")

    def members(self, connective: str) -> tuple[t.PatternPartNode, ...]:
        del connective
        return (self.node,)

    def all_conditions(self) -> tuple[ValueBuilder, ...]:
        return self.conditions

    def where(self, *conditions: ValueBuilder) -> PartBuilder:
        """Keep only events that fulfil the conditions; `col("speed")` reads the event itself."""
        what = self.node.what
        if not isinstance(what, t.Occurrence):
            raise QueryError(
                "a group has no attributes of its own", hint="write where(...) behind the whole pattern"
            )
        added = tuple(condition.node for condition in conditions)
        return self._with(what=replace(what, conditions=(*what.conditions, *added)))

    def as_(self, name: str) -> PartBuilder:
        """Name the part."""
        return self._with(alias=name)

    def first(self) -> PartBuilder:
        """Of several events that fit, take the earliest."""
        return self._with(select="first")

    def last(self) -> PartBuilder:
        """Of several events that fit, take the latest."""
        return self._with(select="last")

    def outer(self) -> PartBuilder:
        """In an aggregate, let groups count that have no event of this part."""
        return self._with(outer=True)

    def repeat(
        self, at_least: int, at_most: int | None = None, *, until: PartBuilder | None = None
    ) -> PartBuilder:
        """Ask for at least and at most so many successive events; without `at_most`, for any number."""
        closing = None
        if until is not None:
            if not isinstance(until.node.what, t.Occurrence):
                raise QueryError("until needs a single event")
            closing = until.node.what
        return self._with(times=t.TimesNode(at_least, at_most), until=closing)

    def not_(self, *, for_: Duration | None = None) -> PartBuilder:
        """Ask that the part does not occur; as the last part, for the time given."""
        return self._with(negated=True, lasting=None if for_ is None else amount_of(for_))

    def within_from(self, duration: Duration, other: PartBuilder) -> PartBuilder:
        """Let this part come at most `duration` after `other`."""
        return self._with(gaps=(*self.node.gaps, t.Gap(amount_of(duration), other.name)))

    def within(self, duration: Duration) -> PatternBuilder:
        """Let the whole pattern, which is this part, span at most `duration`."""
        return PatternBuilder(t.PatternNode(None, (self.node,)), self.conditions).within(duration)

    def relates(self, relation: str, other: PartBuilder) -> ValueBuilder:
        """Test how two parts lie in time: `a.relates("during", b)`; Allen's relations and `concurrent`."""
        if relation not in RELATIONS:
            raise QueryError(f"{relation!r} is no relation in time", hint=f"there are {', '.join(RELATIONS)}")
        return ValueBuilder(t.Relation(t.Name(self.name), relation, t.Name(other.name)))

    def inside(self, area: RegionBuilder | PartBuilder) -> ValueBuilder:
        """Test whether the event lies in a region or in the location of another, borders included."""
        shape = t.ShapeNode(name=area.name) if isinstance(area, PartBuilder) else area.shape
        return ValueBuilder(t.InRegionNode(t.Name(self.name), shape))

    def moves(
        self,
        verb: str,
        toward: RegionBuilder | PartBuilder | None = None,
        *,
        near: str | None = None,
        **details: Detail,
    ) -> MotionBuilder:
        """Say how the events of this part, the samples of a mover, move: verb and details as in the language.

        >>> truck = event("Truck", as_="t")
        >>> truck.moves("enters", box(0, 0, 10, 10).named("Depot"), margin="20 m", settling=Events(3))
        <Truck as t enters Depot margin 20 m settling 3 events>
        >>> truck.moves("comes within", box(0, 0, 10, 10).named("Depot"), near="50 m")
        <Truck as t comes within 50 m of Depot>
        >>> truck.moves("stops", for_="5 min", within="20 m")
        <Truck as t stops for 5 min within 20 m>
        >>> truck.moves("meets", event("Truck", as_="u"), within="50 m", for_="1 min")
        <Truck as t meets Truck as u within 50 m for 1 min>
        """
        what = self._single("move")
        _check_motion(verb, toward, near, details)
        target = None if toward is None else _target(toward)
        distance = None if near is None else _amount(near)
        return MotionBuilder(
            t.MotionNode(what, self.node.alias, verb, target, distance, tuple(_details(details))),
            self.conditions,
        )

    def changes(
        self,
        attribute: str,
        *,
        from_: ValueBuilder | Plain = None,
        to: ValueBuilder | Plain = None,
        by_more_than: ValueBuilder | Plain = None,
        within: Duration | None = None,
    ) -> MotionBuilder:
        """Say that an attribute of this part changes; `previous["status"]` reads the event before.

        >>> event("Position", as_="p").changes("status", to="moored", within="1 h")
        <Position as p changes status to 'moored' within 1 h>
        """
        what = self._single("change")
        given = {"from": from_, "to": to, "by more than": by_more_than}
        details = [t.Detail(word, node_of(value)) for word, value in given.items() if value is not None]
        details += [] if within is None else [t.Detail("within", amount_of(within))]
        target = t.TargetNode(attribute)
        return MotionBuilder(
            t.MotionNode(what, self.node.alias, "changes", target, None, tuple(details)), self.conditions
        )

    def _single(self, what: str) -> t.Occurrence:
        """Read the event that the part is; refuse a part that is more than one event."""
        occurrence = self.node.what
        if not isinstance(occurrence, t.Occurrence) or self.node != t.PatternPartNode(
            occurrence, alias=self.node.alias
        ):
            raise QueryError(f"{self!r} does not {what}: only a single event does")
        return occurrence

    def _with(self, **changes: object) -> PartBuilder:
        # Mypy cannot follow keyword arguments through replace; the callers above name the fields.
        return replace(self, node=replace(self.node, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class PatternBuilder(_Joinable):
    """Parts joined by `then`, `and` or `or`."""

    node: t.PatternNode
    conditions: tuple[ValueBuilder, ...] = ()

    def __repr__(self) -> str:
        return f"<{print_pattern(self.node)}>"

    def members(self, connective: str) -> tuple[t.PatternPartNode, ...]:
        if self.node.within is None and self.node.connective in (None, connective):
            return self.node.parts
        return (t.PatternPartNode(self.node),)

    def all_conditions(self) -> tuple[ValueBuilder, ...]:
        return self.conditions

    def within(self, duration: Duration) -> PatternBuilder:
        """Let the whole pattern span at most `duration`."""
        return replace(self, node=replace(self.node, within=amount_of(duration)))

    def where(self, *conditions: ValueBuilder) -> PatternBuilder:
        """Add conditions on the parts: `b["speed"] < a["speed"]`."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def grouped(self) -> PartBuilder:
        """Put parentheses around the pattern, so that it can be repeated or named as one part."""
        return PartBuilder(t.PatternPartNode(self.node), self.conditions)


@dataclass(frozen=True, slots=True, eq=False)
class MotionBuilder:
    """How something moves; made by `PartBuilder.moves`."""

    node: t.MotionNode
    conditions: tuple[ValueBuilder, ...] = ()

    def __repr__(self) -> str:
        return f"<{print_motion(self.node)}>"

    def where(self, *conditions: ValueBuilder) -> MotionBuilder:
        """Add conditions on the mover and on the motion: `motion("region") == "Depot"`."""
        return replace(self, conditions=(*self.conditions, *conditions))


Detail = Duration | Events | bool
"""A length or a time as text, a number of events, the name of an attribute, or True for a bare word."""


_VERBS = tuple(dict.fromkeys(verb.value for kind in (Verb, Meeting) for verb in kind))
_MEASURED = (Verb.COMES_WITHIN, Verb.STAYS_BEYOND)
_ALONE = (Verb.STOPS, Verb.IS_SILENT)


def _check_motion(
    verb: str, toward: RegionBuilder | PartBuilder | None, near: str | None, details: Mapping[str, Detail]
) -> None:
    """Refuse what cannot be written; what does not go together is refused when the query is compiled."""
    if verb not in _VERBS:
        raise UnknownNameError("motion", verb, _VERBS)
    if verb in _MEASURED and near is None:
        raise QueryError(f"`{verb}` needs a distance", hint=f"write moves({verb!r}, ..., near='50 m')")
    if verb not in _MEASURED and near is not None:
        raise QueryError(f"`near` does not go with `{verb}`", hint=f"it goes with {' and '.join(_MEASURED)}")
    if (toward is None) != (verb in _ALONE):
        hint = "leave the region or the other mover out" if verb in _ALONE else f"moves({verb!r}, depot, ...)"
        raise QueryError(
            f"`{verb}` {'takes no' if verb in _ALONE else 'needs a'} place to move to", hint=hint
        )
    for key, given in details.items():
        word = _word(key)
        if word not in WORDS:
            raise UnknownNameError("detail of a motion", key, [each.replace(" ", "_") for each in WORDS])
        if isinstance(given, bool) != (word == "between samples"):
            raise QueryError(f"`{word}` cannot be {given!r}", hint="see the docs on motion for what it takes")


def _word(key: str) -> str:
    """Read the word of the language; Python keeps some to itself: `for_` and `from_` are `for` and `from`."""
    return key.rstrip("_").replace("_", " ")


def _target(toward: RegionBuilder | PartBuilder) -> t.TargetNode:
    if isinstance(toward, PartBuilder):
        what = toward.node.what
        if not isinstance(what, t.Occurrence):
            raise QueryError(f"{toward!r} does not move: only a single event does")
        return t.TargetNode(what.type, None, what.conditions or None, toward.node.alias)
    shape = toward.shape
    if shape.function is None:
        return t.TargetNode(shape.name, shape.text)
    return t.TargetNode(shape.function, None, shape.arguments)


def _details(details: Mapping[str, Detail]) -> Iterable[t.Detail]:
    for key, given in details.items():
        word = _word(key)
        if isinstance(given, bool):
            if given:
                yield t.Detail(word)
        elif word == "accuracy" and isinstance(given, str):
            yield t.Detail(word, t.Name(given))
        else:
            yield t.Detail(word, _amount(given))


def _amount(given: Duration | Events) -> t.Amount:
    """Read a length or a time with its unit, or a number of events."""
    if isinstance(given, str) and given.split()[-1].lstrip("0123456789.") in LENGTHS:
        length = length_of(given)
        assert isinstance(length, t.QuantityNode)
        return length
    return amount_of(given)


def event(kind: str, *, as_: str | None = None) -> PartBuilder:
    """Start a pattern with an event of a type, perhaps under another name."""
    return PartBuilder(t.PatternPartNode(t.Occurrence(kind), alias=as_))


def at_time(when: datetime | str | int, *, as_: str | None = None) -> PartBuilder:
    """Start a pattern with a time point, as `time '2024-05-01T12:00:00Z'` does; numbers are microseconds."""
    return PartBuilder(t.PatternPartNode(t.TimePoint(time_point(instant(when))), alias=as_))


def absent(part: PartBuilder, *, for_: Duration | None = None) -> PartBuilder:
    """Ask that a part does not occur: `a.then(absent(b, for_="1 h"))`."""
    return part.not_(for_=for_)


# Expressions ---------------------------------------------------------------------------------------


def col(name: str) -> ValueBuilder:
    """Read an attribute of the event at hand; in `having`, of the result."""
    return ValueBuilder(t.Name(name))


def motion(name: str) -> ValueBuilder:
    """Read what is known of a motion: `motion("region")`, `motion("at")`."""
    return ValueBuilder(t.Dotted("motion", name))


def previous(name: str) -> ValueBuilder:
    """Read the event before a change: `previous("status")`."""
    return ValueBuilder(t.Dotted("previous", name))


def group(key: str) -> ValueBuilder:
    """Read a key of `group_by`."""
    return ValueBuilder(t.Dotted("group", key))


@dataclass(frozen=True, slots=True)
class This:
    """The event whose conditions are being written."""

    def __getitem__(self, attribute: str) -> ValueBuilder:
        return ValueBuilder(t.Dotted("this", attribute))

    def inside(self, area: RegionBuilder) -> ValueBuilder:
        """Test whether the event lies in a region, borders included."""
        return ValueBuilder(t.InRegionNode(t.Name("this"), area.shape))


this = This()
"""The event at hand: `event("Position").where(this.inside(depot))`."""


def call(function: str, *arguments: ValueBuilder | PartBuilder | Plain) -> ValueBuilder:
    """Call a function by name, built in or your own; a part stands for its whole event."""
    return ValueBuilder(t.Apply(function.lower(), tuple(_argument(argument) for argument in arguments)))


def _argument(item: ValueBuilder | PartBuilder | Plain) -> t.Expression:
    return t.Name(item.name) if isinstance(item, PartBuilder) else node_of(item)


def count(item: PartBuilder | ValueBuilder) -> ValueBuilder:
    """Count events, or values that are not null."""
    return call("count", item)


def sum_(item: ValueBuilder) -> ValueBuilder:
    """Add up."""
    return call("sum", item)


def avg(item: ValueBuilder) -> ValueBuilder:
    """Take the mean."""
    return call("avg", item)


def min_(item: ValueBuilder) -> ValueBuilder:
    """Take the least."""
    return call("min", item)


def max_(item: ValueBuilder) -> ValueBuilder:
    """Take the largest."""
    return call("max", item)


def first(item: ValueBuilder) -> ValueBuilder:
    """Take the value of the earliest event."""
    return call("first", item)


def last(item: ValueBuilder) -> ValueBuilder:
    """Take the value of the latest event."""
    return call("last", item)


def distinct(item: ValueBuilder) -> ValueBuilder:
    """Count the different values."""
    return call("distinct", item)


def distance(one: PartBuilder | This, other: PartBuilder | RegionBuilder) -> ValueBuilder:
    """Tell how many metres two parts, or a part and a region, lie apart: `distance(this, point(3, 4))`."""
    return _of_places("distance", one, other)


def intersects(one: PartBuilder | This, other: PartBuilder | RegionBuilder) -> ValueBuilder:
    """Test whether two locations share a point."""
    return _of_places("intersects", one, other)


def same_place(
    one: PartBuilder | This, other: PartBuilder | RegionBuilder, within: str | float = 1.0
) -> ValueBuilder:
    """Test whether the centres of two locations lie at most so far apart, in metres or with a unit."""
    return _of_places("same_place", one, other, length_of(within))


def _of_places(
    function: str, one: PartBuilder | This, other: PartBuilder | RegionBuilder, *more: t.Expression
) -> ValueBuilder:
    return ValueBuilder(t.Apply(function, (_place_of(one), _place_of(other), *more)))


def _place_of(place: PartBuilder | This | RegionBuilder) -> t.Expression:
    match place:
        case PartBuilder():
            return t.Name(place.name)
        case RegionBuilder(shape) if shape.text is not None:
            return t.Constant(shape.text)
        case RegionBuilder(shape):
            return t.Apply(str(shape.function), shape.arguments)
    return t.Name("this")


# Statements ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """Statements that belong together; prints as a file of the language."""

    statements: tuple[t.Statement, ...]

    def __str__(self) -> str:
        return format_tree(t.WblFile(self.statements)).rstrip("\n")

    def compile(self, **settings: Unpack[CompileSettings]) -> Query:
        """Compile what the program prints, with the settings of `whimbrel.compile`; errors show that text."""
        text = f"{self}\n"
        # A name such as "A then B" would print as something else than it says here.
        if parse(text) != t.WblFile(self.statements):
            raise QueryError(
                "a name in this query cannot be written in the language", hint=f"it prints as:\n{text}"
            )
        return compile_text(text, **settings)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; compile it alone, or together with others by `program`."""

    node: t.Statement

    def __str__(self) -> str:
        return str(Program((self.node,)))

    def compile(self, **settings: Unpack[CompileSettings]) -> Query:
        """Compile this statement alone."""
        return Program((self.node,)).compile(**settings)


def program(*statements: Statement | ValueBuilder | RegionBuilder) -> Program:
    """Put statements together; parameters and named regions are statements, too."""
    nodes: list[t.Statement] = []
    for item in statements:
        node = item.node if isinstance(item, Statement) else item.declaration
        if node is None:
            raise QueryError(f"{item!r} is an expression, not a statement")
        nodes.append(node)
    return Program(tuple(nodes))


def param(name: str, default: Plain) -> ValueBuilder:
    """Declare a constant, to be used in expressions and handed to `program`."""
    return ValueBuilder(t.Name(name), t.ParamNode(name, node_of(default)))


def coordinates(kind: str) -> Statement:
    """Say how locations are given: "plane" or "lonlat"."""
    return Statement(t.CoordinatesStatement(kind))


def schema(
    kind: str, from_columns: Mapping[str, str | Sequence[str]] | None = None, /, **attributes: str
) -> Statement:
    """Declare the attributes of an event type: `schema("Position", vehicle="string", speed="float")`.

    A mapping says which columns of an input events are made of, where they have other names:
    `schema("Ship", {"time": "BaseDateTime", "sog": "speed over ground"}, sog="float")`. A time may stand in
    several columns: `{"time": ["date", "clock"]}`.
    """
    declared = tuple(t.Declared(name, kind_name.lower()) for name, kind_name in attributes.items())
    columns = tuple(
        t.Mapped(name, (column,) if isinstance(column, str) else tuple(column))
        for name, column in (from_columns or {}).items()
    )
    return Statement(t.EventNode(kind, declared, columns))


def cell(size: str | float) -> t.GroupKey:
    """Group by the grid cell of the location: `group_by=[cell("500 m")]`."""
    return t.GroupKey(
        "cell", t.QuantityNode(((size, "m"),)) if not isinstance(size, str) else length_of(size)
    )


class ClauseSettings(TypedDict, total=False):
    """The clauses of one way of detecting; each may be left out."""

    where: ValueBuilder | None
    assign: Mapping[str, ValueBuilder | Plain] | None
    consuming: Sequence[PartBuilder | str]
    group_by: Sequence[str | t.GroupKey]
    context: str | None


class DefinitionClauses(ClauseSettings, total=False):
    """The clauses of a definition; each may be left out."""

    post: Mapping[str, ValueBuilder | Plain] | None
    """For aggregates: how partial results are put together."""
    having: ValueBuilder | None
    """For aggregates: which results count."""


@dataclass(frozen=True, slots=True)
class Clauses:
    """One way of detecting: a pattern and its clauses."""

    detect: PartBuilder | PatternBuilder | MotionBuilder
    where: ValueBuilder | None = None
    assign: Mapping[str, ValueBuilder | Plain] | None = None
    consuming: Sequence[PartBuilder | str] = ()
    group_by: Sequence[str | t.GroupKey] = ()
    context: str | None = None
    post: Mapping[str, ValueBuilder | Plain] | None = None
    having: ValueBuilder | None = None

    def tree(self, label: str | None = None) -> t.CaseNode:
        """Make the tree of this case."""
        detect = self.detect
        pattern = t.PatternNode(None, (detect.node,)) if isinstance(detect, PartBuilder) else detect.node
        conditions = (*self.detect.conditions, *((self.where,) if self.where is not None else ()))
        return t.CaseNode(
            pattern,
            label=label,
            where=all_of(conditions).node if conditions else None,
            assign=_assignments(self.assign),
            consuming=tuple(
                t.Consuming(item if isinstance(item, str) else item.name) for item in self.consuming
            ),
            group_by=tuple(t.GroupKey(item) if isinstance(item, str) else item for item in self.group_by),
            context=None if self.context is None else t.Chosen(self.context),
            post=_assignments(self.post),
            having=None if self.having is None else self.having.node,
        )


case = Clauses


def _assignments(values: Mapping[str, ValueBuilder | Plain] | None) -> tuple[t.Assignment, ...]:
    return tuple(t.Assignment(name, node_of(item)) for name, item in (values or {}).items())


def define(
    name: str,
    *,
    detect: PartBuilder | PatternBuilder | MotionBuilder | None = None,
    cases: Sequence[Clauses] = (),
    attributes: Mapping[str, str | None] | None = None,
    every: Duration | Events | None = None,
    over: Duration | Events | None = None,
    within: Duration | None = None,
    **clauses: Unpack[DefinitionClauses],
) -> Statement:
    """Define a kind of event by what is detected.

    Parameters
    ----------
    detect, cases
        The pattern, or several cases with a pattern each.
    attributes
        The attributes of the new events and their types; without it, those of `assign`.
    every, over, within
        A window: the definition aggregates, and `assign` uses `count`, `avg` and so on. Where it counts
        events, `within` says how old they may be.
    where, assign, consuming, group_by, context, post, having
        The clauses that go with `detect`; `post` and `having` are for aggregates: how partial results are put
        together, and which results count.
    """
    check_settings(clauses, DefinitionClauses, "define()")
    whole = Clauses(detect, **clauses) if detect else None
    declared = None
    if attributes is not None:
        declared = tuple(t.Declared(key, kind.lower() if kind else None) for key, kind in attributes.items())
    window = None
    if every is not None or over is not None:
        window = t.WindowClause(
            *(None if item is None else amount_of(item) for item in (over, every, within))
        )
    return Statement(t.Definition(name, _trees(whole, cases), declared, window=window))


def subscription(
    subscriber: str,
    actor: str,
    *,
    detect: PartBuilder | PatternBuilder | MotionBuilder,
    sequence: int = 1,
    name: str | None = None,
    **clauses: Unpack[ClauseSettings],
) -> Statement:
    """Ask for detections on behalf of a subscriber, to be sent to an actor.

    The other settings are clauses: `where`, `assign`, `consuming`, `group_by`, `context`, as for `define`.
    """
    check_settings(clauses, ClauseSettings, "subscription()")
    return Statement(
        t.SubscriptionNode(name, sequence, subscriber, actor, (Clauses(detect, **clauses).tree(),))
    )


def _trees(whole: Clauses | None, cases: Sequence[Clauses]) -> tuple[t.CaseNode, ...]:
    if (whole is None) == (not cases):
        raise QueryError("a definition needs detect=... or cases=[...], one of the two")
    if whole is not None:
        return (whole.tree(),)
    return tuple(item.tree(str(number)) for number, item in enumerate(cases))
