"""Test what concerns one event before the event meets others.

A condition of a pattern that reads one part only becomes a filter of that part's stream: `A as a then B as b
where a.v > 5` is `A(v > 5) as a then B as b`. It goes on down through what passes events on unchanged: groups
in parentheses, alternatives that share one name, and definitions, as long as the attribute is a plain copy
and nobody else reads the definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from whimbrel.graph.expressions import (
    GROUP,
    PLACE_RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    conjunction,
    conjuncts,
    parts_of,
    transform,
    walk,
)
from whimbrel.graph.operators import (
    Absent,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Source,
)
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.policies import Context
from whimbrel.graph.scope import scope
from whimbrel.graph.wiring import filter_name, fixed, renamed
from whimbrel.model.schema import TYPE_NAMES, Type

_EVERY_EVENT_HAS = frozenset(
    {"id", "type", "source", "srcid", "start", "end", "timestamp", "duration", "x", "y", "lon", "lat"}
)
_HARMLESS = frozenset({"in", "between", "is_null", "abs", "coalesce", "lower", "upper", "length"})


def push_down_filters(graph: Graph) -> Graph:
    """Turn conditions on one part into filters, as close to the source as their meaning allows."""
    pushing = _Pushing(graph)
    for operator in reversed(graph.operators):
        pushing.visit(operator.name)
    return pushing.finish()


class _Pushing:
    """A graph whose conditions are on their way down; readers are visited before what they read."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.stays = fixed(graph)
        self.operators = {operator.name: operator for operator in graph.operators}
        self.filters: dict[str, list[Filter]] = {}
        """New filters, by the operator they come after."""
        self.known = {
            (operator.input, operator.condition): operator.name
            for operator in graph.operators
            if isinstance(operator, Filter)
        }
        self.passed_on: dict[str, str] = {}
        self.has_changed = False

    def finish(self) -> Graph:
        if not self.has_changed:
            return self.graph
        every = {name: operator.reading(self.passed_on) for name, operator in self.operators.items()}
        every |= {new.name: new for after in self.filters.values() for new in after}
        placed: dict[str, Operator] = {}

        def place(name: str) -> None:
            """Put what an operator reads before it: a filter that was there may have come after it."""
            if name not in placed:
                for below in every[name].inputs:
                    place(below)
                placed[name] = every[name]

        for old in self.graph.operators:
            place(old.name)
            for new in self.filters.get(old.name, ()):
                place(new.name)
        return drop_unused(replace(self.graph, operators=tuple(placed.values())))

    def visit(self, name: str) -> None:
        operator = self.operators[name]
        if isinstance(operator, JoinPattern) and operator.context is not Context.CHRONICLE:
            # A chronicle tests conditions after it has chosen; filtered, it would choose among fewer events.
            self._visit_match(operator)
        elif isinstance(operator, Filter) and isinstance(self.operators[operator.input], Derive):
            self._visit_filter(operator)

    def _visit_match(self, match: JoinPattern) -> None:
        kept: list[Expr] = []
        parts = list(match.parts)
        for condition in _clauses(match.conditions):
            slot = self._only_part(condition, parts)
            moved = None if slot is None else self._below_part(parts[slot], condition)
            if slot is None or moved is None:
                kept.append(condition)
            else:
                parts[slot] = replace(parts[slot], input=moved)
        absent = tuple(self._absent(each) for each in match.absent)
        self._put(replace(match, parts=tuple(parts), absent=absent, conditions=tuple(kept)))

    def _absent(self, absent: Absent) -> Absent:
        kept = []
        for condition in _clauses(absent.conditions):
            moved = None
            if absent.alias is not None and parts_of(condition) == {absent.alias} and not _relates(condition):
                moved = self._below(absent.input, renamed(condition, {absent.alias: None}))
            if moved is None:
                kept.append(condition)
            else:
                absent = replace(absent, input=moved)
        return replace(absent, conditions=tuple(kept))

    def _visit_filter(self, filtered: Filter) -> None:
        """Push what a filter tests through the definition below it."""
        if filtered.name in self.stays:
            return
        kept = tuple(
            clause
            for clause in conjuncts(filtered.condition)
            if not self._through_definition(filtered.input, clause)
        )
        rest = conjunction(kept)
        if rest is None:
            self.passed_on[filtered.name] = filtered.input
        elif len(kept) < len(conjuncts(filtered.condition)):
            self._put(replace(filtered, condition=rest))

    def _put(self, operator: Operator) -> None:
        self.has_changed |= operator != self.operators[operator.name]
        self.operators[operator.name] = operator

    # -- where a condition belongs -----------------------------------------------------------------------

    def _only_part(self, condition: Expr, parts: list[PatternPart]) -> int | None:
        """Find the part that a condition reads, if it reads one only."""
        names = parts_of(condition)
        if len(names) != 1 or names & {None, GROUP} or _relates(condition):
            return None
        (name,) = names
        binding = [slot for slot, part in enumerate(parts) if name in self._names(part)]
        return binding[0] if len(binding) == 1 else None

    def _names(self, part: PatternPart) -> set[str | None]:
        return {part.alias, *scope(self._now(), part.input)} if part.alias is None else {part.alias}

    def _now(self) -> Graph:
        """Give the graph as it is at the moment, without what has not been linked in yet."""
        added = [new for after in self.filters.values() for new in after]
        return _Lookup(self.operators | {new.name: new for new in added})  # type: ignore[return-value]

    def _below_part(self, part: PatternPart, condition: Expr) -> str | None:
        """Put a condition below a part; give the stream that the part reads then, None if it cannot be."""
        if part.alias is not None:
            return self._below(part.input, renamed(condition, {part.alias: None}))
        return part.input if self._into_composite(part.input, condition) else None

    def _below(self, stream: str, condition: Expr) -> str:
        """Give the stream of the events of `stream` for which a condition is true."""
        operator = self._at(stream)
        if isinstance(operator, Filter):
            joined = conjunction((*conjuncts(operator.condition), condition))
            assert joined is not None
            return self._filter(operator.input, joined)
        if isinstance(operator, Derive) and self._through_definition(stream, condition):
            return stream
        return self._filter(stream, condition)

    def _at(self, stream: str) -> Operator:
        added = (new for after in self.filters.values() for new in after if new.name == stream)
        return self.operators[stream] if stream in self.operators else next(added)

    def _filter(self, stream: str, condition: Expr) -> str:
        self.has_changed = True
        if (stream, condition) not in self.known:
            taken = {*self.operators, *self.known.values()}
            made = Filter(filter_name(stream, condition, taken), stream, condition)
            self.filters.setdefault(stream, []).append(made)
            self.known[stream, condition] = made.name
        return self.known[stream, condition]

    def _into_composite(self, stream: str, condition: Expr) -> bool:
        """Push a condition into the operator that makes composites, if nobody else reads them."""
        operator = self.operators[stream]
        if not self._has_one_reader(stream):
            return False
        (name,) = parts_of(condition)
        if (
            isinstance(operator, JoinPattern)
            and operator.is_free
            and not scope(self._now(), stream)[name or ""]
        ):
            self._put(replace(operator, conditions=(*operator.conditions, condition)))
            return True
        if isinstance(operator, Merge) and all(branch.alias == name for branch in operator.branches):
            own = renamed(condition, {name: None})
            branches = tuple(replace(b, input=self._below(b.input, own)) for b in operator.branches)
            self._put(replace(operator, branches=branches))
            return True
        return False

    def _has_one_reader(self, stream: str) -> bool:
        """Tell whether a stream is read in one place only."""
        uses: Counter[str] = Counter(self.graph.outputs)
        added = [new for after in self.filters.values() for new in after]
        for operator in (*self.operators.values(), *added):
            if operator.name not in self.passed_on:
                uses.update(link.stream for link in operator.links)
        return uses[stream] + sum(uses[name] for name, to in self.passed_on.items() if to == stream) == 1

    # -- through definitions -----------------------------------------------------------------------------

    def _through_definition(self, stream: str, condition: Expr) -> bool:
        """Push a condition on the events of a definition below it: what it tests must be a plain copy."""
        derive = self.operators[stream]
        if not isinstance(derive, Derive) or not _is_harmless(condition) or not self._has_one_reader(stream):
            return False
        if not derive.cases:  # its events come from elsewhere
            return False
        copies = [self._copied(case, condition) for case in derive.cases]
        inner = [copy for copy in copies if copy is not None]
        if len(inner) < len(copies):
            return False
        cases = []
        for case, moved in zip(derive.cases, inner, strict=True):
            if self._at(case.input).is_composite:
                self._into_composite(case.input, moved)
                cases.append(case)
            else:
                cases.append(replace(case, input=self._below(case.input, moved)))
        self._put(replace(derive, cases=tuple(cases)))
        return True

    def _copied(self, case: DeriveCase, condition: Expr) -> Expr | None:
        """Say a condition on an event of a definition in terms of what the event is made from."""
        names = {node.name for node in walk(condition) if isinstance(node, Attribute)}
        origins = {name: self._origin(case, name) for name in names}
        found = {name: origin for name, origin in origins.items() if origin is not None}
        if len(found) < len(origins) or not found:
            return None
        moved = transform(condition, lambda node: found[node.name] if isinstance(node, Attribute) else node)
        if self._at(case.input).is_composite:
            return moved if self._can_enter(case.input, moved) else None
        return moved

    def _can_enter(self, stream: str, condition: Expr) -> bool:
        operator, names = self.operators[stream], parts_of(condition)
        if len(names) != 1 or not self._has_one_reader(stream) or not isinstance(operator, JoinPattern):
            return False
        repeated = scope(self._now(), stream)
        return operator.is_free and all(not repeated.get(name or "", True) for name in names)

    def _origin(self, case: DeriveCase, name: str) -> Attribute | None:
        """Find the attribute that an attribute of a derived event is a plain copy of."""
        if name in _EVERY_EVENT_HAS:
            return None
        plain = not self._at(case.input).is_composite
        if not case.assign:
            return Attribute(None, name) if plain and self._takes_over(case.input, name) else None
        assigned = next((each for each in case.assign if each.name == name), None)
        if assigned is None or not isinstance(assigned.value, Attribute) or assigned.value.part == GROUP:
            return None
        value = assigned.value
        if plain:
            value = replace(value, part=None)
        if assigned.type is None:
            return value
        kept = TYPE_NAMES[assigned.type.lower()]
        return value if self._declared(case.input, value) is kept else None

    def _takes_over(self, stream: str, name: str) -> bool:
        root = self._root(stream)
        return isinstance(root, Source) and (root.schema is None or name in root.schema.attributes)

    def _declared(self, stream: str, value: Attribute) -> Type | None:
        """Give the declared type of an attribute of a plain stream, or of a part of a pattern."""
        operator = self._at(stream)
        if isinstance(operator, JoinPattern):
            inputs = [part.input for part in operator.parts if part.alias == value.part]
            return self._declared(inputs[0], replace(value, part=None)) if inputs else None
        root = self._root(stream)
        if not isinstance(root, Source) or root.schema is None or value.part is not None:
            return None
        return root.schema.attributes.get(value.name)

    def _root(self, stream: str) -> Operator:
        operator = self._at(stream)
        while isinstance(operator, Filter):
            operator = self._at(operator.input)
        return operator


class _Lookup:
    """As much of a graph as finding the names in a stream takes."""

    def __init__(self, operators: dict[str, Operator]) -> None:
        self.operators = operators

    def __getitem__(self, name: str) -> Operator:
        return self.operators[name]


def _clauses(conditions: Iterable[Expr]) -> list[Expr]:
    return [clause for condition in conditions for clause in conjuncts(condition)]


def _relates(condition: Expr) -> bool:
    """Tell whether a condition relates whole parts with each other, if only one with itself."""
    calls = [node for node in walk(condition) if isinstance(node, Call) and not _is_of_one_place(node)]
    return any(isinstance(argument, PartRef) for call in calls for argument in call.arguments)


def _is_of_one_place(call: Call) -> bool:
    """Tell whether a call asks how one event lies to a region."""
    return call.function in PLACE_RELATIONS and isinstance(call.arguments[1], Literal)


def _is_harmless(condition: Expr) -> bool:
    """Tell whether a condition reads attributes only, and calls nothing that may be the query's own."""
    for node in walk(condition):
        known = isinstance(node, Attribute | Literal | Unary | Binary)
        if not known and not (isinstance(node, Call) and node.function in _HARMLESS):
            return False
    return True
