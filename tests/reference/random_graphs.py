"""Random graphs: definitions over the types A to D and over each other.

Names of parts are letters by their place (a, b, c, d); n is an absent part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hypothesis import strategies as st

from whimbrel.graph.expressions import Attribute, Binary, Call, Expr, PartRef
from whimbrel.graph.operators import (
    Absent,
    Aggregate,
    AggregateInput,
    Branch,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Repeat,
    Source,
    TimeOrder,
    clock,
)
from whimbrel.graph.operators.change import PREVIOUS, Change
from whimbrel.graph.policies import WHOLE, Assign, Context, Key, Partitioning, Select, Window
from whimbrel.model.schema import Coordinates, EventSchema, Type
from whimbrel.model.time import SECOND

from .random_terms import Chooser, Scope

TYPES = "ABCD"
CLOCK = "@"
SCHEMA = {"v": Type.INT, "w": Type.FLOAT, "k": Type.STRING}
BY_K = Partitioning((Key("attribute", "k"),))
BY_SOURCE = Partitioning((Key("source", "source"),))
BY_BOTH = Partitioning((Key("attribute", "k"), Key("source", "source")))
BY_CELL = Partitioning((Key("cell", "cell", 2.0),))

_CONTEXTS = tuple(context for context in Context if context is not Context.EACH)


class GraphDraft(Chooser):
    """A graph that grows by one definition at a time."""

    def __init__(self, draw: st.DrawFn, features: frozenset[str], max_parts: int) -> None:
        super().__init__(draw, features)
        self.max_parts = max_parts
        self.operators: list[Operator] = []
        self.defined: list[str] = []
        for name in TYPES:
            self.add(Source(name, name, EventSchema(name, dict(SCHEMA))))

    def finish(self) -> Graph:
        """Report the last definition, and most of the earlier ones."""
        if not self.defined:
            self.add_definition()
        outputs = [name for name in self.defined[:-1] if not self.rarely()] + self.defined[-1:]
        return Graph(tuple(self.operators), tuple(outputs), Coordinates.PLANE)

    def add(self, operator: Operator) -> str:
        self.operators.append(operator)
        return operator.name

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{len(self.operators)}"

    # Definitions.

    def add_definition(self) -> None:
        name = f"X{len(self.defined) + 1}"
        drawn = [
            self.apart(lambda: self.case("0") if self.mostly() else None),
            self.apart(lambda: self.case("1") if self.rarely("cases") else None),
        ]
        cases = [case for case in drawn if case is not None] or [self.case("0")]
        self.add(Derive(name, name, tuple(cases)))
        self.defined.append(name)

    def add_perhaps(self) -> None:
        if self.flip():
            self.add_definition()

    def case(self, label: str) -> DeriveCase:
        kinds = ["pattern"] * 4 + ["plain"]
        kinds += [kind for kind in ("repeat", "merge", "aggregate", "change") if kind in self.features]
        kind = self.choose(kinds)
        by = self.partitioning(self.defined == [] and kind != "aggregate")
        made: DeriveCase = getattr(self, f"{kind}_case")(by)
        return replace(made, label=label)

    def plain_case(self, by: Partitioning) -> DeriveCase:
        stream = self.stream()
        return DeriveCase(stream, "a", self.assignments(Scope(["a"], group=by)), by)

    def repeat_case(self, by: Partitioning) -> DeriveCase:
        stream, scope = self.repeat("a", by)
        return DeriveCase(stream, None, self.assignments(scope), by)

    def merge_case(self, by: Partitioning) -> DeriveCase:
        stream, scope = self.merge("a")
        return DeriveCase(stream, None, self.assignments(replace(scope, group=by)), by)

    def pattern_case(self, by: Partitioning) -> DeriveCase:
        stream, scope = self.pattern(by)
        return DeriveCase(stream, None, self.assignments(scope), by)

    def change_case(self, by: Partitioning) -> DeriveCase:
        scope = Scope([PREVIOUS, "a"], group=by)
        stream = self.stream()
        name = self.fresh("change")
        conditions = tuple(self.conditions(scope)) if self.flip() else ()
        attribute = self.choose(("v", "v", "w", "k"))
        self.add(Change(name, stream, "a", attribute, self.time(1, 4), conditions, by))
        return DeriveCase(name, None, self.assignments(scope), by)

    def aggregate_case(self, by: Partitioning) -> DeriveCase:
        return DeriveCase(self.aggregate(by), "a", (), by)

    def partitioning(self, may_use_cells: bool) -> Partitioning:
        choices = [WHOLE] * 5
        if "partition" in self.features:
            choices += [BY_K, BY_SOURCE, BY_BOTH]
        if "cell" in self.features and may_use_cells:
            choices.append(BY_CELL)
        return self.choose(choices)

    # Streams.

    def stream(self, *, atomic: bool = False, timed: bool = True) -> str:
        """A stream of plain events: a type, a time point or an earlier definition, perhaps filtered."""
        names = list("AAABBBCD")
        if "layers" in self.features and not atomic:
            names += self.defined
        if "clock" in self.features and timed:
            names.append(CLOCK)
        name = self.choose(names)
        if name == CLOCK:
            name = self.clock()
        if self.seldom("filter"):
            name = self.add(Filter(self.fresh("filter"), name, self.condition(Scope([None]))))
        return name

    def clock(self) -> str:
        """A time point, perhaps one before or after all events; the same one is one stream."""
        made = clock(self.choose((4, 3, 5, 0, 1, 8, -2, 12)) * SECOND)
        return made.name if made in self.operators else self.add(made)

    def repeat(self, alias: str, by: Partitioning) -> tuple[str, Scope]:
        at_least = self.number(1, 3)
        at_most = self.choose((at_least, at_least + 1, None))
        until = self.stream() if self.rarely() else None
        stream = self.stream()
        name = self.fresh("repeat")
        self.add(Repeat(name, stream, alias, at_least, at_most, self.time(1, 4), until, by))
        return name, Scope(many=[alias], group=by)

    def merge(self, alias: str) -> tuple[str, Scope]:
        other = alias + "2"
        # Alternatives of different streams are tried by hand: an event that such a pattern also uses
        # elsewhere counts as two triggers there.
        branches = (Branch(self.stream(atomic=True), alias), Branch(self.stream(atomic=True), other))
        return self.add(Merge(self.fresh("merge"), branches)), Scope([alias, other])

    def parts(self, by: Partitioning) -> list[tuple[PatternPart, Scope]]:
        """Mostly two or three."""
        found = [self.part("a", by)]
        for alias, is_wanted in (("b", self.mostly), ("c", self.flip), ("d", self.rarely)):
            more = self.apart(partial(self.part_perhaps, alias, by, is_wanted))
            if more is not None and len(found) < self.max_parts:
                found.append(more)
        return found

    def part_perhaps(
        self, alias: str, by: Partitioning, is_wanted: Callable[[], bool]
    ) -> tuple[PatternPart, Scope] | None:
        return self.part(alias, by) if is_wanted() else None

    def part(self, alias: str, by: Partitioning) -> tuple[PatternPart, Scope]:
        if self.seldom("repeat"):
            stream, scope = self.repeat(alias, by)
            return PatternPart(stream, None), scope
        if self.seldom("merge"):
            stream, scope = self.merge(alias)
            return PatternPart(stream, None), scope
        return PatternPart(self.stream(), alias), Scope([alias])

    # Patterns.

    def pattern(self, by: Partitioning) -> tuple[str, Scope]:
        scope = Scope(group=by)
        parts: list[PatternPart] = []
        for part, more in self.parts(by):
            parts.append(part)
            scope = scope + more
        context, consuming = self.context(len(parts))
        match = JoinPattern(
            "",
            tuple(self.marked(part, context) for part in parts),
            within=self.choose((5, 5, 7, 7, 9, 3, 1, 0)) * SECOND,
            orders=self.orders(len(parts)),
            absent=tuple(self.absences(len(parts), scope)),
            conditions=tuple(self.conditions(scope)),
            partitioning=by,
            context=context,
            consuming=consuming,
        )
        return self.add(replace(match, name=self.fresh("match"))), scope

    def context(self, count: int) -> tuple[Context, tuple[int, ...]]:
        if self.flip("contexts"):
            return self.choose(_CONTEXTS), ()
        if self.rarely("consuming"):
            return Context.EACH, tuple(part for part in range(count) if self.flip())
        return Context.EACH, ()

    def marked(self, part: PatternPart, context: Context) -> PatternPart:
        # Marks thin out M, which the chronicle context does not use.
        if context is Context.CHRONICLE or not self.seldom("select"):
            return part
        return replace(part, select=self.choose((Select.FIRST, Select.LAST)))

    def orders(self, count: int) -> tuple[TimeOrder, ...]:
        if self.rarely("conjunction"):
            return ()
        pairs = [(number, number + 1) for number in range(count - 1)]
        if self.rarely("conjunction"):
            pairs = [pair for pair in pairs if self.flip()]
        return tuple(TimeOrder(*pair, self.time(0, 4) if self.rarely("gap") else None) for pair in pairs)

    def absences(self, count: int, scope: Scope) -> list[Absent]:
        first = self.apart(lambda: self.absence(count, scope, "n") if self.rarely("absent") else None)
        second = self.apart(lambda: self.absence(count, scope, "o") if self.seldom("absent") else None)
        return [made for made in (first, second) if made is not None]

    def absence(self, count: int, scope: Scope, alias: str) -> Absent:
        positions: list[tuple[int | None, int | None, int | None]] = [
            (number, number + 1, None) for number in range(count - 1)
        ]
        last = self.number(0, count - 1) if self.rarely() else count - 1
        positions += [(None, 0, None), (last, None, self.time(1, 4)), (last, None, None)]
        after, before, duration = self.choose(positions)
        conditions = (self.condition(Scope([alias]) + scope),) if self.rarely("conditions") else ()
        return Absent(self.stream(), alias, after, before, duration, conditions)

    def conditions(self, scope: Scope) -> list[Expr]:
        first = self.apart(lambda: self.condition(scope) if self.rarely("conditions") else None)
        second = self.apart(lambda: self.condition(scope) if self.seldom("conditions") else None)
        return [made for made in (first, second) if made is not None]

    # Aggregates.

    def aggregate(self, by: Partitioning) -> str:
        # A time point has no attributes to aggregate.
        inputs = [AggregateInput(self.stream(timed=False), "a")]
        if self.rarely():
            inputs.append(AggregateInput(self.stream(timed=False), "b", outer=self.flip()))
        names = [part.alias for part in inputs if part.alias is not None]
        scope = Scope(many=names, group=by)
        assign, post = self.aggregate_values(scope)
        having = self.compare(Attribute(None, "v"), self.whole_constant()) if self.rarely() else None
        name = self.fresh("aggregate")
        return self.add(Aggregate(name, tuple(inputs), self.window(), assign, post, having, by))

    def aggregate_values(self, scope: Scope) -> tuple[tuple[Assign, ...], tuple[Assign, ...]]:
        key = self.text(scope)
        if not self.rarely():
            return (
                Assign("v", self.whole(scope)),
                Assign("w", self.real(scope)),
                Assign("k", key),
            ), ()
        alias = self.choose(scope.many)
        total, count = Call("sum", (Attribute(alias, "v"),)), Call("count", (PartRef(alias),))
        sums = tuple(Call("sum", (Attribute(None, name),)) for name in ("s", "n"))
        return (
            (Assign("s", total), Assign("n", count), Assign("k", key)),
            (
                Assign("v", sums[1]),
                Assign("w", Binary("/", sums[0], sums[1])),
                Assign("k", Call("first", (Attribute(None, "k"),))),
            ),
        )

    def window(self) -> Window:
        kind = self.choose(("every", "over", "over every", "events", "events every"))
        match kind:
            case "every":
                length = self.time(1, 4)
                return Window("temporal", length, length)
            case "over":
                return Window("temporal", self.time(0, 4))
            case "over every":
                return Window("temporal", self.time(1, 5), self.time(1, 3))
            case "events":
                return Window("counting", self.number(1, 4), within=self.time(2, 9))
        return Window("counting", self.number(1, 4), self.number(1, 3), within=self.time(2, 9))

    # Assignments.

    def assignments(self, scope: Scope) -> tuple[Assign, ...]:
        if "assign" not in self.features or self.rarely():
            return ()
        made = (
            Assign("v", self.whole(scope), "int"),
            Assign("w", self.real(scope), "float"),
            Assign("k", self.text(scope), "string"),
        )
        return made[: self.number(1, 3)][:: self.choose((1, -1))]
