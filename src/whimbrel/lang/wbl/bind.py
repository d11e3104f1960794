"""Bind the names of a pattern: from the tree to nodes that know their parts, types and borders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, Span, UnknownNameError
from whimbrel.graph.expressions import GROUP, Attribute, Binary, Literal
from whimbrel.graph.operators import ANY
from whimbrel.graph.policies import Select
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.pattern import (
    AbsentSlot,
    Alternatives,
    Barrier,
    BoundPattern,
    Joined,
    Node,
    Occurring,
    PartName,
    Repeated,
    RequiredPart,
    Scope,
    TypeInfo,
)
from whimbrel.model.schema import Type, common_type
from whimbrel.model.time import written_time_point

_RESERVED = (GROUP, "this")


@dataclass(slots=True)
class Binder:
    """Bind one pattern. `aggregate`: a top-level `and` joins streams, and its parts may be `outer`."""

    type_of: Callable[[str, Span | None], TypeInfo]
    duration_of: Callable[[t.Amount], int]
    aggregate: bool = False
    parts: dict[str, PartName] = field(default_factory=dict)
    leaves: list[Occurring] = field(default_factory=list)

    def bind(self, pattern: t.PatternNode) -> BoundPattern:
        """Bind a whole pattern."""
        root = self._pattern(pattern, Scope(), top=True)
        return BoundPattern(root, self.parts, self.leaves)

    def _pattern(self, pattern: t.PatternNode, scope: Scope, *, top: bool = False) -> Node:
        if pattern.connective is None:
            node = self._single(pattern.parts[0], scope, top=top)
        elif pattern.connective == "or":
            node = self._alternatives(pattern, scope, None)
        else:
            node = self._joined(pattern, scope, top=top)
        if pattern.within is not None:
            self._refuse_within_of_streams(pattern, pattern.within, top)
            bound_span(node, self.duration_of(pattern.within))
        return node

    def _refuse_within_of_streams(self, pattern: t.PatternNode, within: t.Amount, top: bool) -> None:
        if self.aggregate and top and pattern.connective == "and":
            raise QueryError(
                "`within` has no meaning between streams that are aggregated each for itself",
                within.at,
                "leave it out; the window says which events count",
            )

    # Single parts

    def _single(self, part: t.PatternPartNode, scope: Scope, *, top: bool) -> Node:
        if part.negated:
            raise QueryError(
                "`not` needs a part that occurs",
                part.at,
                "write for example 'A then not B for 1 h' or 'not A then B'",
            )
        if part.gaps:
            raise QueryError(
                "there is no other part to be near to", part.gaps[0].at, "write 'within D' without 'from'"
            )
        if part.outer and not (self.aggregate and top):
            raise _outer(part)
        if part.select in ("first", "last"):
            raise QueryError(
                f"{part.select!r} chooses among events for the same other parts, and there is no other part",
                part.at,
                "write for example 'first A then B', or an aggregate with first(A.start)",
            )
        return self._part(part, scope)

    def _part(self, part: t.PatternPartNode, scope: Scope) -> Node:
        if isinstance(part.what, t.Occurrence):
            return self._event(part, part.what, scope)
        return self._group(part, part.what, scope)

    def _event(self, part: t.PatternPartNode, what: t.Occurrence, scope: Scope) -> Node:
        name = part.alias or type_shown(what)
        if name == ANY:
            raise QueryError("a part for any event needs a name", part.at, "write for example '* as other'")
        if part.times is None:
            return self._leaf(what, name, scope, part.at)
        inner = scope.inside(Barrier("repeat"))
        leaf = self._leaf(what, name, inner, part.at)
        return Repeated(leaf, name, part.times, self._until(part, inner), part.at)

    def _group(self, part: t.PatternPartNode, what: t.PatternNode, scope: Scope) -> Node:
        if part.alias is not None:
            return self._named_group(part, what, scope, part.alias)
        if part.times is None:
            return self._pattern(what, scope)
        inner = scope.inside(Barrier("repeat"))
        return Repeated(self._pattern(what, inner), None, part.times, self._until(part, inner), part.at)

    def _named_group(self, part: t.PatternPartNode, what: t.PatternNode, scope: Scope, name: str) -> Node:
        plain = all(choice == t.PatternPartNode(choice.what) for choice in what.parts)
        events = all(isinstance(choice.what, t.Occurrence) for choice in what.parts)
        if what.connective != "or" or not plain or not events or what.within is not None:
            raise QueryError(
                f"a pattern in parentheses cannot be named {name!r}",
                part.at,
                "name the events inside; only '(A or B) as x' stands for one event",
            )
        if part.times is None:
            return self._alternatives(what, scope, name)
        inner = scope.inside(Barrier("repeat"))
        merged = self._alternatives(what, inner, name)
        return Repeated(merged, name, part.times, self._until(part, inner), part.at)

    def _until(self, part: t.PatternPartNode, scope: Scope) -> Occurring | None:
        if part.until is None:
            return None
        return self._new_leaf(part.until, type_shown(part.until), scope)

    # Alternatives

    def _alternatives(self, pattern: t.PatternNode, scope: Scope, name: str | None) -> Alternatives:
        branches: list[Node] = []
        for part in pattern.parts:
            self._check_branch(part)
            if name is not None and isinstance(part.what, t.Occurrence):
                branches.append(self._new_leaf(part.what, name, scope))
            else:
                branches.append(self._part(part, scope.inside(Barrier("or"))))
        if name is not None:
            leaves = [branch for branch in branches if isinstance(branch, Occurring)]
            self._register(PartName(name, _joint_info(leaves), scope, leaves, pattern.at))
        return Alternatives(branches, name, pattern.at)

    def _check_branch(self, part: t.PatternPartNode) -> None:
        if part.outer:
            raise _outer(part)
        if part.negated or part.gaps or part.select in ("first", "last"):
            wrong = "not" if part.negated else "within ... from" if part.gaps else part.select
            raise QueryError(
                f"{wrong!r} has no meaning inside `or`",
                part.at,
                "use it in a sequence: 'A then not B then C'",
            )

    # Sequences and conjunctions

    def _joined(self, pattern: t.PatternNode, scope: Scope, *, top: bool) -> Joined:
        joined = Joined(scope, pattern.connective == "then", pattern.at)
        inner = scope.within(joined)
        streams = self.aggregate and top and not joined.is_sequence
        direct: dict[str, int] = {}
        pending: list[AbsentSlot] = []
        for part in pattern.parts:
            if part.negated:
                pending.append(self._absent(part, inner, joined))
                continue
            self._check_slot(part, streams)
            for absent in pending:
                absent.before = len(joined.slots)
            pending.clear()
            node = self._part(part, inner)
            if not isinstance(node, Joined) and (name := _name_of(node)):
                direct[name] = len(joined.slots)
            joined.slots.append(RequiredPart(node, Select(part.select or "each"), part.outer))
        self._check_absent(joined, pattern)
        self._add_gaps(pattern, joined, direct)
        return joined

    def _check_slot(self, part: t.PatternPartNode, streams: bool) -> None:
        if part.outer and not streams:
            raise _outer(part)
        if streams and part.select in ("first", "last"):
            raise QueryError(
                f"{part.select!r} has no meaning for a stream that is aggregated",
                part.at,
                "use the aggregates first(...) and last(...)",
            )
        if part.lasting is not None:
            raise QueryError("`for` belongs to a part with `not`", part.at)

    def _absent(self, part: t.PatternPartNode, scope: Scope, owner: Joined) -> AbsentSlot:
        if not owner.is_sequence:
            raise QueryError(
                "`not` belongs into a sequence",
                part.at,
                "write for example 'A then not B then C', or 'A then not B for 1 h'",
            )
        barrier = Barrier("absent", owner=owner)
        node = self._part(part, scope.inside(barrier))
        after = len(owner.slots) - 1 if owner.slots else None
        duration = None if part.lasting is None else self.duration_of(part.lasting)
        barrier.absent = AbsentSlot(node, after, None, duration, part.at)
        owner.absent.append(barrier.absent)
        return barrier.absent

    def _check_absent(self, joined: Joined, pattern: t.PatternNode) -> None:
        if not joined.slots:
            raise QueryError(
                "a pattern needs a part that occurs", pattern.at, "write for example 'A then not B for 1 h'"
            )
        for absent in joined.absent:
            if absent.duration is not None and absent.before is not None:
                raise QueryError(
                    "`for` belongs to the last part of a sequence",
                    absent.at,
                    "between two parts, leave out 'for'; 'within' bounds the whole",
                )

    def _add_gaps(self, pattern: t.PatternNode, joined: Joined, direct: dict[str, int]) -> None:
        index = -1
        for part in pattern.parts:
            index += 0 if part.negated else 1
            for gap in part.gaps:
                joined.gaps.append(
                    (self._other(gap, direct, index, joined), index, self.duration_of(gap.duration))
                )

    def _other(self, gap: t.Gap, direct: dict[str, int], index: int, joined: Joined) -> int:
        if gap.other not in direct:
            if gap.other in self.parts:
                raise QueryError(
                    f"{gap.other!r} is not a part of this sequence that occurs",
                    gap.at,
                    f"'from' can name {' or '.join(repr(name) for name in direct)}",
                )
            raise UnknownNameError("part", gap.other, direct, gap.at)
        other = direct[gap.other]
        if other == index:
            raise QueryError(
                "a part cannot be measured from itself", gap.at, "name another part behind 'from'"
            )
        if joined.is_sequence and other > index:
            raise QueryError(
                f"{gap.other!r} comes later in the sequence", gap.at, "name an earlier part behind 'from'"
            )
        return other

    # Leaves and names

    def _leaf(self, what: t.Occurrence, name: str, scope: Scope, at: Span | None) -> Occurring:
        leaf = self._new_leaf(what, name, scope)
        self._register(PartName(name, leaf.info, scope, [leaf], at))
        return leaf

    def _new_leaf(self, what: t.Occurrence, name: str, scope: Scope) -> Occurring:
        info = TypeInfo("any event") if what.type == ANY else self.type_of(what.type, what.at)
        leaf = Occurring(what, name, info, scope)
        self.leaves.append(leaf)
        return leaf

    def _register(self, part: PartName) -> None:
        if part.name in _RESERVED:
            raise QueryError(
                f"{part.name!r} has a meaning of its own", part.at, "choose another name behind 'as'"
            )
        if part.name in self.parts:
            raise QueryError(
                f"two parts are named {part.name!r}",
                part.at,
                f"name one of them: '{part.name} as {_other_name(part)}'",
            )
        self.parts[part.name] = part


def type_shown(what: t.Occurrence) -> str:
    """Name what occurs, as people write it."""
    return written_time_point(what.type) if isinstance(what, t.TimePoint) else what.type


def bound_span(node: Node, within: int) -> None:
    """Let `node` and every group inside it span at most `within`."""
    match node:
        case Occurring():
            length = Binary("-", Attribute(node.name, "end"), Attribute(node.name, "start"))
            node.conditions.append(Binary("<=", length, Literal(within, Type.DURATION)))
        case Alternatives():
            for branch in node.branches:
                bound_span(branch, within)
        case Repeated():
            node.within = within if node.within is None else min(node.within, within)
            _bound_inside(node.body, within)
        case Joined():
            node.within = within if node.within is None else min(node.within, within)
            for slot in node.slots:
                _bound_inside(slot.node, within)
            for absent in node.absent:
                _bound_inside(absent.node, within)


def _bound_inside(node: Node, within: int) -> None:
    # The whole is bounded already; a single event inside it needs no test of its own.
    if isinstance(node, Alternatives):
        for branch in node.branches:
            _bound_inside(branch, within)
    elif not isinstance(node, Occurring):
        bound_span(node, within)


def _name_of(node: Node) -> str | None:
    return None if isinstance(node, Joined) else node.name


def _other_name(part: PartName) -> str:
    first = part.name[0].lower()
    return first if first != part.name else f"{part.name}2"


def _joint_info(leaves: list[Occurring]) -> TypeInfo:
    names = dict.fromkeys(name for leaf in leaves for name in leaf.info.attributes)
    attributes = {name: common_type([leaf.info.attributes.get(name) for leaf in leaves]) for name in names}
    title = " or ".join(leaf.info.name for leaf in leaves)
    return TypeInfo(title, attributes, any(leaf.info.is_open for leaf in leaves))


def _outer(part: t.PatternPartNode) -> QueryError:
    return QueryError(
        "`outer` belongs to an aggregating definition",
        part.at,
        "write 'define Name every 2 min detect outer A and outer B ...', or leave 'outer' out",
    )
