"""Everything that a pattern could choose from, in one total order.

Places are numbers in that order. A *slot* is a stream that a part can take its events from: first the parts,
then the absent parts, then for each part the events that fail its conditions on the event itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whimbrel.engine.identity import HashArray, row_hashes
from whimbrel.engine.ordered_inputs import OrderedInputs
from whimbrel.engine.streams import OperatorStream, RowsFrame, identities
from whimbrel.engine.values import Int64Array
from whimbrel.graph.expressions import GROUP, Expr, conjuncts, parts_of
from whimbrel.graph.operators import Absent, Filter, JoinPattern, Merge, PatternPart
from whimbrel.graph.scope import scope
from whimbrel.whynot.asking import EngineView, EventGroups
from whimbrel.whynot.conditions import NamedRows
from whimbrel.whynot.events import Seen, seen

MOST_SLOTS = 63
NO_INDICES = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class CandidateStream:
    """A stream that a part can take its events from; `conditions` are those that its events fail."""

    part: int
    name: str
    stream: OperatorStream
    alias: str | None
    names: frozenset[str]
    conditions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundEvent:
    """An event that fills a part: the slot it came by, and its index."""

    slot: int
    index: int


Binding = Mapping[int, BoundEvent]
"""The events of some parts, by the number of the part."""


@dataclass(eq=False)
class CandidateGroup:
    """The events of one group, slot by slot."""

    values: Mapping[str, Any]
    code: int
    indices: dict[int, Int64Array] = field(default_factory=dict)

    def first(self) -> int:
        """Look up the index of its first event."""
        return min((int(indices[0]) for indices in self.indices.values() if len(indices)), default=0)


class CandidateSet:
    """The events that the parts of a `JoinPattern` can take, and those that they nearly could."""

    def __init__(self, op: JoinPattern, view: EngineView) -> None:
        self.op = op
        self.view = view
        self.slots = self._slots()
        arrivals = OrderedInputs(view.context, [slot.stream for slot in self.slots])
        arrived = arrivals.collect()
        self.root, self.row, self.mask = arrived.root, arrived.row, arrived.mask
        self.start, self.end = arrived.start, arrived.end
        self.roots = arrivals.roots
        self.ident = self._idents()
        self.part_names = [self._names(member) for member in self._members()]
        self.owner = self._owners()
        self.group_of, self.groups = self._groups()

    # -- what there is to choose from --------------------------------------------------------------------

    def _members(self) -> list[PatternPart | Absent]:
        return [*self.op.parts, *self.op.absent]

    def _slots(self) -> list[CandidateStream]:
        slots = [
            CandidateStream(
                n, member.input, self.view.stream(member.input), member.alias, self._names(member)
            )
            for n, member in enumerate(self._members())
        ]
        more = [
            slot
            for number, part in enumerate(self.op.parts)
            for slot in near_slots(self.view, number, part.input, part.alias)
        ]
        return (slots + more)[:MOST_SLOTS]

    def _names(self, member: PatternPart | Absent) -> frozenset[str]:
        inner = scope(self.view.graph, member.input)
        return frozenset({*inner, *([member.alias] if member.alias else [])})

    def _owners(self) -> dict[str, int]:
        owner: dict[str, int] = {}
        for number, names in enumerate(self.part_names):
            for name in names:
                owner.setdefault(name, number)
        return owner

    def _idents(self) -> Int64Array:
        idents = np.empty(len(self.row), np.int64)
        for number, root in enumerate(self.roots):
            at = self.root == number
            idents[at] = identities(self.view.context, root, self.row[at])
        return idents

    def _groups(self) -> tuple[Int64Array, list[CandidateGroup]]:
        """Part all indices by group; only those of groups that were asked for are looked through."""
        numbers = EventGroups(self.view.context, self.op.partitioning.keys)
        codes = np.zeros(len(self.row), np.int64)
        for number, root in enumerate(self.roots):
            at = np.flatnonzero(self.root == number)
            codes[at] = numbers.of(root, self.row[at])
        groups = (
            [CandidateGroup(values, code) for code, values in enumerate(numbers.values)] if len(codes) else []
        )
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        for group in groups:
            if self.view.of_group(group.values):
                mine = order[bounds[group.code] : bounds[group.code + 1]]
                group.indices = {slot: mine[self.has(mine, slot)] for slot in range(len(self.slots))}
        return codes, groups

    def has(self, indices: Int64Array, slot: int) -> Any:
        """Tell which events are among those of a slot."""
        return (self.mask[indices] >> np.uint64(slot)) & np.uint64(1) == 1

    def near(self, part: int) -> list[int]:
        """List the slots of events that a part nearly takes."""
        first = len(self.op.parts) + len(self.op.absent)
        return [n for n in range(first, len(self.slots)) if self.slots[n].part == part]

    def absent_slot(self, number: int) -> int:
        """Find the slot of an absent part."""
        return len(self.op.parts) + number

    # -- names -------------------------------------------------------------------------------------------

    def name(self, part: int) -> str:
        """Name a part of the pattern, or an absent part behind them."""
        member = self._members()[part]
        return member.alias or "/".join(sorted(self.part_names[part])) or member.input

    def needs(self, condition: Expr) -> frozenset[int]:
        """List the parts that a condition reads."""
        names = parts_of(condition)
        parts = {self.owner[name] for name in names if name is not None and name in self.owner}
        return frozenset(parts | ({0} if None in names else set()))

    def frame(self, binding: Binding, varied: Mapping[int, tuple[int, Int64Array]], size: int) -> NamedRows:
        """Bind the names of parts to their events; those of `varied` (slot and indices) have many rows."""
        frames: dict[str | None, RowsFrame | None] = {}
        rows = {part: (b.slot, np.full(size, b.index, np.int64)) for part, b in binding.items()}
        for part, (slot, indices) in sorted({**rows, **varied}.items()):
            chosen = self.slots[slot]
            frame = RowsFrame(
                self.view.context, chosen.stream, self.row[indices], chosen.alias, self.op.partitioning
            )
            for name in self.part_names[part]:
                frames.setdefault(name, frame if name in chosen.names else None)
            frames.setdefault(GROUP, frame)
            if len(self.op.parts) == 1:
                frames.setdefault(None, frame)
        return NamedRows(self.view.context, size, frames)

    def own_frame(self, slot: int, indices: Int64Array) -> RowsFrame:
        """Present events as conditions on one event see them."""
        chosen = self.slots[slot]
        return RowsFrame(self.view.context, chosen.stream, self.row[indices], chosen.alias)

    # -- events ------------------------------------------------------------------------------------------

    def seen(self, bound: BoundEvent) -> Seen:
        """Look at the event that fills a part."""
        slot = self.slots[bound.slot]
        return seen(self.view.context, slot.stream, int(self.row[bound.index]), slot.name)

    def hashes(self, binding: Binding) -> tuple[HashArray, HashArray]:
        """Tell what the events of a complete binding count with in the id of a detection."""
        pairs = [self._hash(binding[part]) for part in range(len(self.op.parts))]
        high, low = zip(*pairs, strict=True)
        return np.array(high, np.uint64), np.array(low, np.uint64)

    def _hash(self, bound: BoundEvent) -> tuple[Any, Any]:
        rows = self.row[[bound.index]]
        high, low = row_hashes(self.view.context, self.slots[bound.slot].stream, rows)
        return high[0], low[0]

    def atoms(self, index: int) -> frozenset[int]:
        """Look up the numbers of the atomic events below an event."""
        root = self.roots[int(self.root[index])]
        return frozenset(root.store.lineage(self.row[[index]]).refs.tolist())

    def span(self, indices: Sequence[int]) -> tuple[int, int]:
        """Compute the least start and the largest end of some events."""
        return int(self.start[list(indices)].min()), int(self.end[list(indices)].max())


def near_slots(view: EngineView, part: int, input: str, alias: str | None) -> list[CandidateStream]:
    """List the streams of events that fail only the conditions of a part on the event itself."""
    taken = view.stream(input)
    return [replace(slot, stream=_without(slot.stream, taken)) for slot in wider(view, part, input, alias)]


def wider(view: EngineView, part: int, input: str, alias: str | None) -> list[CandidateStream]:
    """List the streams that a selection selects from, without what it selects, and its conditions."""
    operator = view.graph[input]
    if isinstance(operator, Merge):
        return [slot for b in operator.branches for slot in wider(view, part, b.input, b.alias or alias)]
    conditions: list[Expr] = []
    while isinstance(operator, Filter):
        conditions = [*conjuncts(operator.condition), *conditions]
        operator = view.graph[operator.input]
    if not conditions:
        return []
    names = frozenset({*scope(view.graph, operator.name), *([alias] if alias else [])})
    stream = _without(view.stream(operator.name), view.stream(input))
    return [CandidateStream(part, operator.name, stream, alias, names, tuple(conditions))]


def _without(stream: OperatorStream, other: OperatorStream) -> OperatorStream:
    """Leave out the rows that another selection of the same events has."""
    if stream.store is not other.store:
        return stream
    return replace(stream, new=np.setdiff1d(stream.new, other.new))
