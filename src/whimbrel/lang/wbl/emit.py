"""Make the operators of bound patterns, sharing sources and equal filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, Span, UnboundedError
from whimbrel.graph.expressions import Attribute, Expr, PartRef, format_expr, transform
from whimbrel.graph.operators import (
    Absent,
    Branch,
    Filter,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Repeat,
    TimeOrder,
)
from whimbrel.graph.policies import WHOLE, Context, Partitioning
from whimbrel.lang.wbl.pattern import Alternatives, Joined, Node, Occurring, Repeated
from whimbrel.lang.wbl.values import joined
from whimbrel.model.time import END_OF_TIME

LONGEST_NAME = 100
"""Characters of a condition in the name of its filter."""


@dataclass(slots=True)
class Operators:
    """The operators made so far, by name."""

    made: dict[str, Operator] = field(default_factory=dict)
    filters: dict[tuple[str, Expr], str] = field(default_factory=dict)

    def add(self, operator: Operator) -> str:
        """Add an operator whose name is free."""
        if operator.name in self.made:
            raise QueryError(
                f"two operators are named {operator.name!r}", None, "rename a definition or a part"
            )
        self.made[operator.name] = operator
        return operator.name

    def free_name(self, wanted: str) -> str:
        """Choose `wanted`, or a numbered form of it if another operator has it."""
        name, number = wanted, 2
        while name in self.made:
            name, number = f"{wanted}#{number}", number + 1
        return name

    def filtered(self, stream: str, conditions: tuple[Expr, ...]) -> str:
        """Find the stream of a filter, made once for equal conditions on one input."""
        if not conditions:
            return stream
        condition = joined("and", conditions)
        if (stream, condition) not in self.filters:
            name = self.free_name(f"{stream}[{_shortened(format_expr(condition))}]")
            self.filters[stream, condition] = self.add(Filter(name, stream, condition))
        return self.filters[stream, condition]


def _shortened(text: str) -> str:
    # Regions make long conditions; a name only has to be read and to be unique.
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."


@dataclass(frozen=True, slots=True)
class EmittedStream:
    """An operator's stream; `alias` names the part where it carries plain events."""

    name: str
    alias: str | None


@dataclass(slots=True)
class Emitter:
    """Make the operators of one case. `base` starts the name of each."""

    operators: Operators
    base: str
    stream_of: Callable[[str], str]
    """The operator that makes the events of a type."""
    horizon: int | None
    partitioning: Partitioning = WHOLE
    context: Context = Context.EACH
    consuming: tuple[int, ...] = ()
    groups: int = 0

    def emit(self, node: Node) -> EmittedStream:
        """Make the operators of a whole pattern."""
        if isinstance(node, Joined):
            return EmittedStream(self.match(node, f"{self.base}.match", self.context, self.consuming), None)
        return self._inner(node)

    def leaf(self, leaf: Occurring) -> str:
        """Make the source and the filter of one event."""
        conditions = tuple(_about_this(condition, leaf.name) for condition in leaf.conditions)
        return self.operators.filtered(self.stream_of(leaf.occurrence.type), conditions)

    def _inner(self, node: Node) -> EmittedStream:
        match node:
            case Occurring():
                return EmittedStream(self.leaf(node), node.name)
            case Repeated():
                return EmittedStream(self._repeat(node), None)
            case Alternatives():
                return EmittedStream(self._merge(node), None)
            case Joined():
                return EmittedStream(self.match(node, self.group_name(), Context.EACH, ()), None)

    def group_name(self) -> str:
        """Name the next group of this case."""
        self.groups += 1
        return f"{self.base}.group{self.groups}"

    def _merge(self, node: Alternatives) -> str:
        streams = [self._inner(branch) for branch in node.branches]
        branches = tuple(Branch(stream.name, stream.alias) for stream in streams)
        return self.operators.add(Merge(self.operators.free_name(self.group_name()), branches))

    def _repeat(self, node: Repeated) -> str:
        within = self._required(node.within, node.at, "a repetition")
        body = self._inner(node.body)
        until = None if node.until is None else self.leaf(node.until)
        wanted = f"{self.base}.{node.name}" if node.name else self.group_name()
        return self.operators.add(
            Repeat(
                self.operators.free_name(wanted),
                body.name,
                body.alias,
                node.times.at_least,
                node.times.at_most,
                within,
                until,
                self.partitioning,
            )
        )

    def match(self, node: Joined, wanted: str, context: Context, consuming: tuple[int, ...]) -> str:
        """Make a match and everything below it."""
        within = self._span(node)
        streams = [self._inner(slot.node) for slot in node.slots]
        parts = tuple(
            PatternPart(stream.name, stream.alias, slot.select)
            for stream, slot in zip(streams, node.slots, strict=True)
        )
        return self.operators.add(
            JoinPattern(
                self.operators.free_name(wanted),
                parts,
                within,
                _orders(node),
                self._absent(node),
                tuple(node.conditions),
                self.partitioning,
                context,
                consuming,
            )
        )

    def _absent(self, node: Joined) -> tuple[Absent, ...]:
        absents = []
        for slot in node.absent:
            stream = self._inner(slot.node)
            absents.append(
                Absent(
                    stream.name, stream.alias, slot.after, slot.before, slot.duration, tuple(slot.conditions)
                )
            )
        return tuple(absents)

    # Bounds

    def _span(self, node: Joined) -> int:
        if node.within is not None:
            return node.within
        if _needs_no_span(node):
            return END_OF_TIME
        return self._required(None, node.at, "this pattern")

    def _required(self, within: int | None, at: Span | None, what: str) -> int:
        if within is not None:
            return within
        if self.horizon is not None:
            return self.horizon
        raise UnboundedError(
            f"{what} would have to remember events for ever",
            at,
            "add 'within 1 h' (or what fits) behind the pattern, or give a horizon: --horizon 1h",
        )


def _needs_no_span(node: Joined) -> bool:
    waits = any(
        absent.after is None or (absent.before is None and absent.duration is None) for absent in node.absent
    )
    return not waits and (len(node.slots) == 1 or _gaps_connect(node))


def _gaps_connect(node: Joined) -> bool:
    """Tell whether every part is near another one by `within ... from`, so that the first bounds them all."""
    reached = {0}
    for _ in node.slots:
        for first, second, _gap in node.gaps:
            if first in reached or second in reached:
                reached |= {first, second}
    return len(reached) == len(node.slots)


def _orders(node: Joined) -> tuple[TimeOrder, ...]:
    neighbours = (
        [TimeOrder(index, index + 1) for index in range(len(node.slots) - 1)] if node.is_sequence else []
    )
    return (*neighbours, *(TimeOrder(first, second, gap) for first, second, gap in node.gaps))


def _about_this(condition: Expr, name: str) -> Expr:
    """Rewrite a condition on the part `name` into one on the event under test."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part == name:
            return Attribute(None, node.name, at=node.at)
        if isinstance(node, PartRef) and node.name == name:
            return PartRef(None, at=node.at)
        return node

    return transform(condition, change)
