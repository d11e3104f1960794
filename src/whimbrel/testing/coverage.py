"""Which branches of a query the tests reach.

The engine is not asked: for every branch there is a stream that has an event exactly when the branch was
reached, or two streams of which one has more. These streams hang on the operators of the query in a second
query, which is run over the same events and only counted. So nothing is slower when nobody measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch
from pathlib import Path
from typing import TypeVar

from whimbrel.errors import Span
from whimbrel.graph.expressions import (
    GROUP,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    conjunction,
    conjuncts,
    format_expr,
    parts_of,
    walk,
)
from whimbrel.graph.operators import (
    Absent,
    Aggregate,
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
    TimePoints,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import NO_SKIP, PatternStep, StepPattern, TimedOut, is_absent
from whimbrel.graph.policies import Assign, Context, Select
from whimbrel.graph.query import Query
from whimbrel.graph.scope import scope
from whimbrel.model.schema import Type
from whimbrel.testing.positions import QueryPositions
from whimbrel.testing.scenario import Scenario
from whimbrel.testing.scenario_input import ScenarioInput

PREFIX = "covered by tests: "
"""How the names of the added operators begin; no query can name one so."""

LONGEST = 80
"""Characters of a condition that are shown."""

Item = TypeVar("Item")

Counts = Mapping[str, int]
"""How many events each counted stream had, by its name."""


@dataclass(frozen=True)
class Goal:
    """A branch of a query: what it is, where it stands, and how to tell from counts that it was reached."""

    text: str
    at: Span | None
    is_reached: Callable[[Counts], bool]


# Streams that are counted -----------------------------------------------------------------------------------


@dataclass
class Probe:
    """The operators of a query, those that are added, and which streams are counted."""

    query: Query
    positions: QueryPositions
    added: dict[str, Operator] = field(default_factory=dict)
    counted: dict[str, None] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The graph of the query under test."""
        return self.query.graph

    def some(self, stream: str) -> Callable[[Counts], bool]:
        """Ask whether a stream had any event."""
        self.counted[stream] = None
        return lambda counts: counts.get(stream, 0) > 0

    def more(self, stream: str, other: str) -> Callable[[Counts], bool]:
        """Ask whether a stream had more events than another."""
        self.counted |= dict.fromkeys((stream, other))
        return lambda counts: counts.get(stream, 0) > counts.get(other, 0)

    def add(self, operator: Operator) -> str:
        """Add a variant of an operator under a name of its own; equal ones are added once."""
        for name, other in self.added.items():
            if replace(other, name=operator.name) == operator:
                return name
        name = f"{PREFIX}{len(self.added)}"
        self.added[name] = replace(operator, name=name)
        return name

    def to_query(self) -> Query:
        """Make a query that reports each event of every counted stream, under the name of the stream."""
        one = (Assign("one", Literal(1, Type.INT)),)
        outputs = [
            Derive(f"{PREFIX}{stream}", stream, (DeriveCase(stream, None, one),)) for stream in self.counted
        ]
        operators = (*self.graph.operators, *self.added.values(), *outputs)
        graph = Graph(operators, tuple(output.name for output in outputs), self.graph.coordinates)
        return replace(self.query, graph=graph, subscriptions=(), mobile=())


# Goals, by kind of operator. A new kind of operator registers its own. -------------------------------------


@singledispatch
def goals_of(operator: Operator, probe: Probe) -> Iterable[Goal]:
    """List the branches of one operator; of a kind not listed here, its results and its conditions."""
    yield Goal(f"{operator.name} gave a result", None, probe.some(operator.name))
    for condition in operator.conditions:
        without = probe.add(operator.with_conditions(partial(_without, condition)))
        text = f"{_definition_of(operator.name)}: the condition {condition_text(condition)} refused something"
        yield Goal(text, span_of(condition), probe.more(without, operator.name))


def _without(condition: Expr, conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(each for each in conditions if each is not condition)


@goals_of.register
def _(operator: Source, probe: Probe) -> Iterable[Goal]:
    at = probe.positions.types.get(operator.event_type)
    yield Goal(f"an event of type {operator.event_type} came", at, probe.some(operator.name))


@goals_of.register
def _(operator: TimePoints, probe: Probe) -> Iterable[Goal]:  # noqa: ARG001, it comes whatever is given
    return ()


@goals_of.register
def _(operator: Filter, probe: Probe) -> Iterable[Goal]:
    tested, at = condition_text(operator.condition), span_of(operator.condition)
    yield Goal(f"an event passed the condition {tested}", at, probe.some(operator.name))
    for condition in conjuncts(operator.condition):
        # Each of several conditions has to refuse one by itself.
        others = [other for other in conjuncts(operator.condition) if other is not condition]
        without = operator.input if not others else probe.add(Filter("", operator.input, _all(others)))
        text = f"an event was refused by the condition {condition_text(condition)}"
        yield Goal(text, span_of(condition) or at, probe.more(without, operator.name))


@goals_of.register
def _(operator: Merge, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    users = [
        user for user in probe.graph.operators if isinstance(user, JoinPattern) and _uses(user, operator.name)
    ]
    for number, branch in enumerate(operator.branches):
        names = [branch.alias] if branch.alias else list(scope(probe.graph, branch.input))
        own = _only_in(probe.graph, operator, number)
        shown = names[0] if names else branch.input
        text = f"{owner}: the alternative {shown} was taken"
        stream = branch.input if not users or own is None else probe.add(_having_taken(users[0], own))
        yield Goal(text, probe.positions.parts.get((owner, shown)), probe.some(stream))


@goals_of.register
def _(operator: Repeat, probe: Probe) -> Iterable[Goal]:
    owner, name = _definition_of(operator.name), operator.alias or operator.name
    at = probe.positions.parts.get((owner, name))
    yield Goal(f"{owner}: {name} was repeated as often as asked", at, probe.some(operator.name))
    if operator.until is not None:
        without = probe.add(replace(operator, until=None))
        text = f"{owner}: `until` cut {name} short"
        yield Goal(text, at, probe.more(without, operator.name))


@goals_of.register
def _(operator: JoinPattern, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    plain = _plain(operator)
    held = operator.name if plain == operator else probe.add(plain)
    yield from _goals_of_parts(operator, probe, owner)
    for number, absent in enumerate(operator.absent):
        name = _shown(absent, probe.graph)
        at = probe.positions.parts.get((owner, name))
        without = probe.add(replace(plain, absent=_but(plain.absent, number)))
        yield Goal(f"{owner}: `not {name}` let something pass", at, probe.some(held))
        yield Goal(f"{owner}: `not {name}` prevented something", at, probe.more(without, held))
    for number, condition in enumerate(operator.conditions):
        text, at = condition_text(condition), span_of(condition)
        without = probe.add(replace(plain, conditions=_but(plain.conditions, number)))
        yield Goal(f"{owner}: the condition {text} held", at, probe.some(held))
        yield Goal(f"{owner}: the condition {text} refused something", at, probe.more(without, held))


@goals_of.register
def _(operator: StepPattern, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    plain = replace(operator, skip=NO_SKIP, counted=False)
    held = operator.name if plain == operator else probe.add(plain)
    for step in operator.taken():
        at = step.at or probe.positions.parts.get((owner, step.name))
        for text, test in _ways_to_take(step):
            yield Goal(f"{owner}: the step {step.name} was {text}", at, probe.some(_with(probe, held, test)))
    for number, element in enumerate(operator.steps):
        if isinstance(element, PatternStep):
            yield from _goals_of_step(element, probe, owner, plain, number, held)


@goals_of.register(Motion)
@goals_of.register(Encounter)
def _(operator: Motion | Encounter, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    at = probe.positions.parts.get((owner, operator.alias))
    yield Goal(f"{owner}: {operator.alias} {operator.verb} was found", at, probe.some(operator.name))


@goals_of.register
def _(operator: TimedOut, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    at = probe.positions.definitions.get(owner)
    yield Goal(f"{owner}: a match ran out of time", at, probe.some(operator.name))


def _ways_to_take(step: PatternStep) -> Iterable[tuple[str, Expr]]:
    """List what can become of a step in a match, each with the test that tells."""
    count = Call("count", (PartRef(step.name),))
    least = step.quantifier.at_least
    yield "taken", Binary(">", count, Literal(0, Type.INT))
    if step.quantifier.optional:
        yield "left out", Binary("=", count, Literal(0, Type.INT))
    if step.quantifier.at_most != least:
        yield (
            f"taken more than {least} {'time' if least == 1 else 'times'}",
            Binary(">", count, Literal(least, Type.INT)),
        )


def _with(probe: Probe, stream: str, test: Expr) -> str:
    return probe.add(Filter("", stream, test))


def _goals_of_step(
    step: PatternStep, probe: Probe, owner: str, plain: StepPattern, number: int, held: str
) -> Iterable[Goal]:
    """Ask whether the absence of a step, or its condition on earlier ones, ever mattered."""
    at = step.at or probe.positions.parts.get((owner, step.name))
    if is_absent(step):
        without = probe.add(replace(plain, steps=_but(plain.steps, number)))
        yield Goal(f"{owner}: `not` {step.name} prevented something", at, probe.more(without, held))
    elif step.test.condition is not None:
        free = replace(step, test=replace(step.test, condition=None))
        steps = (*plain.steps[:number], free, *plain.steps[number + 1 :])
        without = probe.add(replace(plain, steps=steps))
        text = f"{owner}: the condition {condition_text(step.test.condition)} refused something"
        yield Goal(text, span_of(step.test.condition) or at, probe.more(without, held))


@goals_of.register
def _(operator: Aggregate, probe: Probe) -> Iterable[Goal]:
    owner = _definition_of(operator.name)
    at = probe.positions.definitions.get(owner)
    if operator.having is None:
        yield Goal(f"{owner}: a window gave a result", at, probe.some(operator.name))
        return
    text, at = condition_text(operator.having), span_of(operator.having) or at
    without = probe.add(replace(operator, having=None))
    yield Goal(
        f"{owner}: a window gave a result", probe.positions.definitions.get(owner), probe.some(without)
    )
    yield Goal(f"{owner}: `having {text}` held", at, probe.some(operator.name))
    yield Goal(f"{owner}: `having {text}` refused a window", at, probe.more(without, operator.name))


@goals_of.register
def _(operator: Derive, probe: Probe) -> Iterable[Goal]:
    at = probe.positions.definitions.get(operator.name)
    if len(operator.cases) > 1:
        for number, case in enumerate(operator.cases):
            label = case.label or str(number)
            where = probe.positions.cases.get((operator.name, number)) or at
            yield Goal(f"{operator.name}: case {label} was detected", where, probe.some(case.input))
    yield Goal(f"{operator.name} was detected", at, probe.some(operator.name))


def _goals_of_parts(operator: JoinPattern, probe: Probe, owner: str) -> Iterable[Goal]:
    """Ask of a sequence how far it got, of a conjunction which of its parts came."""
    for number, part in enumerate(operator.parts):
        name = _shown(part, probe.graph)
        at = probe.positions.parts.get((owner, name))
        in_order = number > 0 and _is_sequence(operator)
        stream = probe.add(_beginning(operator, number + 1, probe.graph)) if in_order else part.input
        yield Goal(f"{owner}: the part {name} was filled", at, probe.some(stream))


def _is_sequence(operator: JoinPattern) -> bool:
    steps = {(order.first, order.second) for order in operator.orders if order.gap is None}
    return all((number, number + 1) in steps for number in range(len(operator.parts) - 1))


def _beginning(operator: JoinPattern, count: int, graph: Graph) -> JoinPattern:
    """Cut a match down to its first parts, with the conditions and absences that they can decide."""
    names: set[str | None] = {None, GROUP}
    for part in operator.parts[:count]:
        names |= {part.alias, *scope(graph, part.input)}
    within = [
        absent
        for absent in operator.absent
        if absent.before is not None
        and absent.before < count
        and _reads_only(absent.conditions, names, absent)
    ]
    plain = _plain(operator)
    return replace(
        plain,
        parts=plain.parts[:count],
        orders=tuple(order for order in plain.orders if max(order.first, order.second) < count),
        absent=tuple(within),
        conditions=tuple(test for test in plain.conditions if parts_of(test) <= names),
    )


def _reads_only(conditions: Sequence[Expr], names: set[str | None], absent: Absent) -> bool:
    return all(parts_of(condition) <= names | {absent.alias} for condition in conditions)


def _plain(operator: JoinPattern) -> JoinPattern:
    """Change a match so that it takes every combination and uses nothing up."""
    parts = tuple(replace(part, select=Select.EACH) for part in operator.parts)
    return replace(operator, parts=parts, context=Context.EACH, consuming=())


def _having_taken(user: JoinPattern, part: str) -> JoinPattern:
    """Add the condition that an alternative was the one taken: its name then has a time."""
    taken = Unary("not", Call("is_null", (Attribute(part, "start"),)))
    plain = _plain(user)
    return replace(plain, conditions=(*plain.conditions, taken))


def _only_in(graph: Graph, merge: Merge, number: int) -> str | None:
    """Name a part that only this alternative binds, and once; None if there is none."""
    bound = [
        scope(graph, branch.input) if branch.alias is None else {branch.alias: False}
        for branch in merge.branches
    ]
    others = {name for branch, names in enumerate(bound) if branch != number for name in names}
    for name, is_repeated in bound[number].items():
        if name not in others and not is_repeated:
            return name
    return None


def _uses(match: JoinPattern, stream: str) -> bool:
    return any(part.input == stream for part in match.parts)


def _all(conditions: Sequence[Expr]) -> Expr:
    joined = conjunction(tuple(conditions))
    assert joined is not None
    return joined


def _but(items: tuple[Item, ...], number: int) -> tuple[Item, ...]:
    return items[:number] + items[number + 1 :]


def _shown(part: PatternPart | Absent, graph: Graph) -> str:
    return part.alias or next(iter(scope(graph, part.input)), part.input)


def _definition_of(name: str) -> str:
    """Name the definition that an operator was made for."""
    return name.partition(".")[0]


def condition_text(condition: Expr) -> str:
    """Write a condition; regions make long ones, which are cut."""
    text = format_expr(condition)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def span_of(expr: Expr) -> Span | None:
    """Find where a condition stands: its own place, or that of the first thing in it that has one."""
    return next((node.at for node in walk(expr) if node.at is not None), None)


# Over many tests --------------------------------------------------------------------------------------------


@dataclass
class QueryCoverage:
    """The branches of one query, and which of them were reached so far."""

    name: str
    goals: list[Goal]
    reached: set[int] = field(default_factory=set)

    def add(self, goals: Sequence[Goal], counts: Counts) -> None:
        """Take note of what one more test reached; the goals are those of the query as that test ran it."""
        self.reached |= {number for number, goal in enumerate(goals) if goal.is_reached(counts)}

    @property
    def missed(self) -> list[Goal]:
        """The branches that no test reached, in the order of the lines."""
        left = [goal for number, goal in enumerate(self.goals) if number not in self.reached]
        return sorted(left, key=lambda goal: goal.at.line if goal.at else 0)


@dataclass
class Coverage:
    """Which branches of all tested queries were reached."""

    queries: dict[tuple[str, object], QueryCoverage] = field(default_factory=dict)

    def add(self, scenario: Scenario, query: Query, inputs: ScenarioInput, file: Path | None = None) -> None:
        """Run one test once more, and count. `file` is that of the query, if it has one."""
        from whimbrel.testing.mobile_coverage import counts_of_deliveries, goals_of_mobile
        from whimbrel.testing.running import detect_whole

        probe = Probe(query, QueryPositions() if file is None else QueryPositions.of(file))
        goals = [goal for operator in query.graph.operators for goal in goals_of(operator, probe)]
        goals += goals_of_mobile(query, probe)
        counts = Counter(detect_whole(scenario, probe.to_query(), inputs).column("type").to_pylist())
        if query.mobile:
            counts += counts_of_deliveries(detect_whole(scenario, query, inputs))
        # A query compiled with other settings may have other operators; it then has a list of its own.
        shape = tuple(type(operator).__name__ for operator in query.graph.operators), len(goals)
        name = "the query" if file is None else str(file)
        known = self.queries.setdefault((name, shape), QueryCoverage(name, goals))
        known.add(goals, counts)

    @property
    def count(self) -> int:
        """How many branches there are."""
        return sum(len(query.goals) for query in self.queries.values())

    @property
    def reached(self) -> int:
        """How many of them were reached."""
        return sum(len(query.reached) for query in self.queries.values())

    @property
    def percent(self) -> float:
        """The share of branches that were reached."""
        return 100.0 * self.reached / self.count if self.count else 100.0

    def report(self) -> list[str]:
        """Write the share for each query, and what is not covered with its line."""
        lines = [f"coverage: {self.reached} of {self.count} branches, {self.percent:.0f} %"]
        for query in self.queries.values():
            share = f"{len(query.reached)} of {len(query.goals)}"
            lines.append(f"{query.name}: {share}" + ("; never:" if query.missed else ""))
            for goal in query.missed:
                line = f"line {goal.at.line}" if goal.at else ""
                lines.append(f"  {line:<9} {goal.text}")
        return lines
