"""Which columns every stream has to hold, read off the graph from its end to its beginning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from whimbrel.graph.expressions import (
    GROUP,
    KEPT,
    PLACE,
    PLACE_RELATIONS,
    SHAPE,
    Attribute,
    Call,
    Expr,
    PartRef,
    children,
    walk,
)
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import (
    ANY,
    Absent,
    Aggregate,
    Custom,
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
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.policies import Partitioning
from whimbrel.graph.scope import scope

EVERYTHING = Attribute(None, "*")
"""Stands for all attributes of an event."""


_EVENTS = Graph((Source("events", ANY),), ("events",))


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """Which attributes of atomic events are read: some, or all."""

    atoms: frozenset[str] = frozenset()
    all_atoms: bool = False


def all_read(each: Iterable[ColumnSet]) -> ColumnSet:
    """Give what any of several read."""
    found = list(each)
    return ColumnSet(frozenset().union(*(one.atoms for one in found)), any(one.all_atoms for one in found))


def read_by(condition: Expr | None) -> ColumnSet:
    """Give what a condition on one event reads."""
    if condition is None:
        return ColumnSet()
    required = RequiredColumns(_EVENTS, {})
    required.ask_for(_EVENTS.outputs[0], condition)
    return required.read


@dataclass
class RequiredColumns:
    """What each stream is asked for. `atoms` are attributes of atomic events."""

    graph: Graph
    functions: Mapping[str, Function]
    of: dict[str, set[Expr]] = field(default_factory=dict)
    atoms: set[str] = field(default_factory=set)
    all_atoms: bool = False

    asked: Mapping[str, Collection[Expr]] = field(default_factory=dict)
    """What readers outside the graph ask of its streams."""

    def __post_init__(self) -> None:
        for operator in self.graph.operators:
            self.of[operator.name] = set(self.asked.get(operator.name, ()))
        for operator in reversed(self.graph.operators):
            self._ask(operator)

    @property
    def read(self) -> ColumnSet:
        """What is read of atomic events."""
        return ColumnSet(frozenset(self.atoms), self.all_atoms)

    def _ask(self, operator: Operator) -> None:  # noqa: C901 - one case for each kind of operator
        match operator:
            case Filter():
                self.ask_for(operator.input, operator.condition)
            case Derive():
                for case in operator.cases:
                    self._case(case)
            case JoinPattern():
                self._match(operator)
            case Repeat():
                self._repeat(operator)
            case Merge():
                self._merge(operator)
            case Aggregate():
                self._aggregate(operator)
            case StepPattern():
                self._sequence(operator)
            case Motion():
                self._motion(operator)
            case Encounter():
                self._encounter(operator)
            case TimedOut():
                self.of[operator.input] |= self.of[operator.name]
            case Custom():
                self._custom(operator)

    def _custom(self, op: Custom) -> None:
        for stream in op.streams:
            self.want(stream, EVERYTHING)
            self._keys(stream, op.partitioning)

    def ask_for(self, stream: str, condition: Expr) -> None:
        """Ask a stream for all that a condition on its events reads."""
        self._expr(stream, None, condition, Partitioning())

    def want(self, stream: str, column: Expr) -> None:
        """Ask a stream for a column."""
        operator = self.graph[stream]
        if isinstance(operator, Filter):
            self.want(operator.input, column)
        elif isinstance(operator, Source):
            if column == EVERYTHING:
                self.all_atoms = True
            elif isinstance(column, Attribute):
                self.atoms.add(column.name)
        else:
            self.of[stream].add(column)

    def _keys(self, stream: str, partitioning: Partitioning) -> None:
        for key in partitioning.keys:
            operator = self.graph[stream]
            if isinstance(operator, JoinPattern | Repeat | StepPattern | TimedOut | Motion):
                self.want(stream, Attribute(GROUP, key.name))
            elif key.kind == "attribute":
                self.want(stream, Attribute(None, key.name))

    def _expr(self, stream: str, alias: str | None, expr: Expr, partitioning: Partitioning) -> None:
        """Ask `stream`, known as `alias`, for all that `expr` reads of it."""
        for node in self._leaves(expr):
            if isinstance(node, Call):
                self.want(stream, node)
            elif isinstance(node, PartRef):
                self._part(stream, alias, node)
            elif isinstance(node, Attribute):
                if node.part == GROUP:
                    self._keys(stream, partitioning)
                else:
                    own = node.part is None or node.part == alias
                    self.want(stream, Attribute(None, node.name) if own else Attribute(node.part, node.name))

    def _part(self, stream: str, alias: str | None, node: PartRef) -> None:
        own = node.name is None or node.name == alias
        self.want(stream, EVERYTHING if own else Attribute(node.name, "*"))

    def _leaves(self, expr: Expr) -> Iterable[Expr]:
        """Give the attributes, parts and aggregates that `expr` is made of."""
        if isinstance(expr, Attribute | PartRef) or (isinstance(expr, Call) and self.is_aggregate(expr)):
            yield expr
        elif isinstance(expr, Call) and expr.function in PLACE_RELATIONS:
            for argument in expr.arguments:
                if isinstance(argument, PartRef):
                    yield from (Attribute(argument.name, each) for each in PLACE)
        else:
            for child in children(expr):
                yield from self._leaves(child)

    def is_aggregate(self, call: Call) -> bool:
        """Tell whether a call takes many events to one value."""
        registered = self.functions.get(call.function)
        return call.function in KEPT or (registered is not None and registered.aggregate)

    def _case(self, case: DeriveCase) -> None:
        if not case.assign:
            part = only_part(self.graph, case)
            if part is not None:
                self.want(case.input, Attribute(part, "*"))
            elif self.graph[case.input].is_composite and case.alias is None:
                self._keys(case.input, case.partitioning)
            else:
                self.want(case.input, EVERYTHING)
        for assign in case.assign:
            self._expr(case.input, case.alias, assign.value, case.partitioning)

    def _match(self, op: JoinPattern) -> None:
        members: list[PatternPart | Absent] = [*op.parts, *op.absent]
        expressions = [*op.conditions, *(c for a in op.absent for c in a.conditions), *self.of[op.name]]
        for part in members:
            self._keys(part.input, op.partitioning)
            for name in op.joins:
                self.want(part.input, Attribute(None, name))
            names = {*scope(self.graph, part.input), *([part.alias] if part.alias else [])}
            for expr in expressions:
                for node in self._leaves(expr):
                    if self._names(node) & names:
                        self._expr(part.input, part.alias, node, op.partitioning)

    def _names(self, node: Expr) -> set[str | None]:
        from whimbrel.graph.expressions import parts_of

        return set(parts_of(node))

    def _repeat(self, op: Repeat) -> None:
        self._keys(op.input, op.partitioning)
        if op.until is not None:
            self._keys(op.until, op.partitioning)
        for need in self.of[op.name]:
            if isinstance(need, Call):
                for argument in need.arguments:
                    if not isinstance(argument, PartRef):
                        self._expr(op.input, op.alias, argument, op.partitioning)

    def _sequence(self, op: StepPattern) -> None:
        names = {step.name: step.test.input for step in op.taken()}
        for stream in op.inputs:
            self._keys(stream, op.partitioning)
        conditions = [test.condition for test in op.tests() if test.condition is not None]
        for expr in [*conditions, *self.of[op.name]]:
            for node in walk(expr):
                if isinstance(node, Attribute):
                    self._of_step(op, names, node)
                elif isinstance(node, Call) and node.function in PLACE_RELATIONS:
                    for part in node.arguments:
                        if isinstance(part, PartRef):
                            for each in PLACE:
                                self._of_step(op, names, Attribute(part.name, each))

    def _of_step(self, op: StepPattern, names: Mapping[str, str], node: Attribute) -> None:
        """Ask for an attribute of the events of a step, or of any event that is tested."""
        own = Attribute(None, node.name)
        if node.part in names:
            self.want(names[str(node.part)], own)
        elif node.part is None:
            for test in op.tests():
                self.want(test.input, own)

    def _motion(self, op: Motion) -> None:
        self._keys(op.input, op.partitioning)
        for name in ("@x", "@y", *([op.accuracy] if op.accuracy else [])):
            self.want(op.input, Attribute(None, name))
        for need in self.of[op.name]:
            if isinstance(need, Attribute) and need.part == op.alias:
                self.want(op.input, Attribute(None, need.name))

    def _encounter(self, op: Encounter) -> None:
        for stream, alias in ((op.input, op.alias), (op.other, op.other_alias)):
            self._keys(stream, Partitioning(op.keys))
            for name in ("@x", "@y", *([op.accuracy] if op.accuracy else [])):
                self.want(stream, Attribute(None, name))
            if op.verb.reads_shapes and stream == op.other:
                self.want(stream, SHAPE)
            for need in self.of[op.name]:
                if isinstance(need, Attribute) and need.part == alias:
                    self.want(stream, Attribute(None, need.name))

    def _merge(self, op: Merge) -> None:
        for need in self.of[op.name]:
            for branch in op.branches:
                if isinstance(need, Attribute) and need.part is None and self._groups_by(branch.input, need):
                    self.want(branch.input, Attribute(GROUP, need.name))
                elif not isinstance(need, Attribute) or need.part is None:
                    self.want(branch.input, need)
                else:
                    names = {*scope(self.graph, branch.input), branch.alias}
                    if need.part in names:
                        self._expr(branch.input, branch.alias, need, Partitioning())

    def _groups_by(self, stream: str, key: Attribute) -> bool:
        """Tell whether the rows of a stream know a value by the group they belong to."""
        operator = self.graph[stream]
        if not isinstance(operator, JoinPattern | Repeat | StepPattern | Motion):
            return False
        return any(each.name == key.name for each in operator.partitioning.keys)

    def _aggregate(self, op: Aggregate) -> None:
        for part in op.parts:
            self._keys(part.input, op.partitioning)
            names = {*scope(self.graph, part.input), part.alias}
            for assign in op.assign:
                for node in self._leaves(assign.value):
                    if isinstance(node, Call):
                        for argument in node.arguments:
                            if not isinstance(argument, PartRef) and self._names(argument) & names:
                                self._expr(part.input, part.alias, argument, op.partitioning)


def only_part(graph: Graph, case: DeriveCase) -> str | None:
    """Name the only part of a case whose input is a composite, if it has just one that does not repeat."""
    if case.alias is not None:
        return None
    names = scope(graph, case.input)
    return next(iter(names)) if len(names) == 1 and not any(names.values()) else None
