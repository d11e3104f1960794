"""Trying an event for a part: every rule that it has to keep, and by how much it breaks those it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.engine.evaluate import Frame
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr, conjuncts
from whimbrel.graph.operators import TimeOrder
from whimbrel.model.time import END_OF_TIME, format_duration
from whimbrel.whynot.candidates import Binding, BoundEvent, CandidateSet
from whimbrel.whynot.conditions import OTHER_THINGS, holds, missing_values, said, shortfall
from whimbrel.whynot.explanation import Reason
from whimbrel.whynot.words import clock, shortened, value_text

WEIGHTS = {
    "condition": 1.0, "null": 1.0, "order": 1.5, "time": 1.0, "same": 1.5, "group": 2.5, "present": 1.0,
    "selected": 0.5, "consumed": 0.5, "context": 0.5, "waiting": 0.25, "nothing": 3.0,
}  # fmt: skip
"""How much each kind of reason counts: a match that was passed over is nearer than one without events."""


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule, tried on several events at once."""

    kind: str
    holds: BoolArray
    off: Callable[[], FloatArray]
    """Measure how far the rule is from being kept, from 0 on."""
    say: Callable[[int], Reason]
    """Say of one of the events why it breaks the rule."""

    @property
    def cost(self) -> FloatArray:
        """What breaking the rule counts for each event; nothing where it is kept."""
        off = np.clip(self.off(), 0.0, OTHER_THINGS)
        return np.where(self.holds, 0.0, WEIGHTS[self.kind] * (0.5 + 0.5 * off))


class RuleChecks:
    """The rules that the events of one slot have to keep to fill a part, the events of others being given."""

    def __init__(
        self, candidates: CandidateSet, binding: Binding, slot: int, part: int, indices: Int64Array
    ) -> None:
        self.candidates = candidates
        self.binding = binding
        self.slot = slot
        self.part = part
        self.indices = indices
        self.frame = candidates.frame(binding, {part: (slot, indices)}, len(indices))
        self.name = candidates.name(part)

    def every(self, *, group: int | None = None) -> list[RuleCheck]:
        """Try all rules; that of the group only where there is one."""
        own = [self._own_condition(condition) for condition in self.candidates.slots[self.slot].conditions]
        if group is not None:
            own.append(self._group(group))
        return [*own, *self.between()]

    def between(self) -> Iterator[RuleCheck]:
        """Try the rules between this part and the others one by one, the cheap ones first."""
        if self.binding:
            yield self._distinct()
            for order in self.candidates.op.orders:
                yield from self._order(order)
        yield self._within()
        for condition in self._conditions():
            yield self._condition_between(condition)

    def fitting(self) -> Int64Array:
        """Mark the events that keep all rules between the parts."""
        fits = np.ones(len(self.indices), np.bool_)
        for check in self.between():
            fits &= check.holds
            if not fits.any():
                break
        return self.indices[fits]

    # -- the rules -----------------------------------------------------------------------------------------

    def _group(self, group: int) -> RuleCheck:
        candidates = self.candidates
        same = candidates.group_of[self.indices] == group

        def say(at: int) -> Reason:
            wanted = candidates.groups[group].values
            values = candidates.groups[int(candidates.group_of[self.indices[at]])].values
            differ = [name for name in wanted if wanted[name] != values[name]]
            pairs = [
                (name, value_text(values[name], None), value_text(wanted[name], None)) for name in differ
            ]
            text = " and ".join(f"{name} was {other}, needed {own} as before" for name, other, own in pairs)
            return Reason("group", text, self.name)

        return RuleCheck("group", same, lambda: np.ones(len(same)), say)

    def _distinct(self) -> RuleCheck:
        candidates = self.candidates
        taken = {int(candidates.ident[bound.index]): part for part, bound in self.binding.items()}
        fresh = ~np.isin(candidates.ident[self.indices], list(taken))

        def say(at: int) -> Reason:
            other = candidates.name(taken[int(candidates.ident[self.indices[at]])])
            return Reason("same", f"the same event already is {other}", self.name)

        return RuleCheck("same", fresh, lambda: np.ones(len(fresh)), say)

    def _order(self, order: TimeOrder) -> list[RuleCheck]:
        if self.part not in (order.first, order.second):
            return []
        other = order.second if order.first == self.part else order.first
        if other not in self.binding:
            return []
        if order.gap is None:
            return [self._after(order, other)]
        return [self._stands_after(order, other), self._in_time(order, other)]

    def _ends(self, order: TimeOrder, other: int) -> tuple[Any, Any, Any, Any]:
        """Read start and end of the first and of the second event of an order."""
        candidates, index = self.candidates, self.binding[other].index
        mine = (candidates.start[self.indices], candidates.end[self.indices])
        theirs = (candidates.start[index], candidates.end[index])
        return (*mine, *theirs) if order.first == self.part else (*theirs, *mine)

    def _after(self, order: TimeOrder, other: int) -> RuleCheck:
        start1, end1, start2, end2 = self._ends(order, other)
        early = np.maximum(end1 - start2, 0) / max(1, min(self.candidates.op.within, END_OF_TIME))
        ends = np.broadcast_arrays(start1, end1, start2, end2)
        first, second = self.candidates.name(order.first), self.candidates.name(order.second)

        def say(at: int) -> Reason:
            begun, ended, next_begun, next_ended = (int(values[at]) for values in ends)
            return Reason(
                "order", _order_text(first, second, begun, ended, next_begun, next_ended), self.name
            )

        off = np.clip(np.asarray(early, np.float64), 0, 1)
        return RuleCheck("order", np.asarray(end1 < start2), lambda: off, say)

    def _stands_after(self, order: TimeOrder, other: int) -> RuleCheck:
        index = self.binding[other].index
        kept = self.indices < index if order.first == self.part else self.indices > index
        first, second = self.candidates.name(order.first), self.candidates.name(order.second)
        distance = self._gap(order, other)
        late = np.clip(np.abs(distance) / max(1, order.gap or 1), 0, 1)

        def say(at: int) -> Reason:
            before = int(-distance[at])
            text = f"{second} came {format_duration(before)} before {first}" if before > 0 else (
                f"{second} came at the same time as {first} and stands before it in the order of events"
            )  # fmt: skip
            return Reason("order", text, self.name)

        return RuleCheck("order", kept, lambda: late, say)

    def _gap(self, order: TimeOrder, other: int) -> Int64Array:
        _, end1, _, end2 = self._ends(order, other)
        return np.asarray(end2 - end1, np.int64)

    def _in_time(self, order: TimeOrder, other: int) -> RuleCheck:
        assert order.gap is not None
        distance, gap = self._gap(order, other), order.gap
        first, second = self.candidates.name(order.first), self.candidates.name(order.second)

        def say(at: int) -> Reason:
            took = format_duration(int(distance[at]))
            return Reason(
                "time", f"{second} came {took} after {first}, needed within {format_duration(gap)}", self.name
            )

        return RuleCheck("time", distance <= gap, lambda: _excess(distance, gap), say)

    def _within(self) -> RuleCheck:
        candidates = self.candidates
        start, end = candidates.start[self.indices], candidates.end[self.indices]
        took = end - start
        if self.binding:
            low, high = candidates.span([bound.index for bound in self.binding.values()])
            took = np.maximum(end, high) - np.minimum(start, low)
        within = candidates.op.within

        def say(at: int) -> Reason:
            everyone = {**self.binding, self.part: BoundEvent(self.slot, int(self.indices[at]))}
            first = min(everyone, key=lambda part: int(candidates.start[everyone[part].index]))
            last = max(everyone, key=lambda part: int(candidates.end[everyone[part].index]))
            text = f"{candidates.name(first)} alone takes {format_duration(int(took[at]))}"
            if first != last:
                lasted = format_duration(int(took[at]))
                text = f"{candidates.name(last)} ended {lasted} after {candidates.name(first)} started"
            return Reason("time", f"{text}, needed within {format_duration(within)}", self.name)

        return RuleCheck("time", took <= within, lambda: _excess(took, within), say)

    def _conditions(self) -> list[Expr]:
        """List the conditions that can be tried now, and could not before."""
        there = {*self.binding, self.part}
        ready = [
            condition
            for condition in self.candidates.op.conditions
            if (needs := self.candidates.needs(condition)) <= there
            and (self.part in needs or (not needs and not self.binding))
        ]
        return [conjunct for condition in ready for conjunct in conjuncts(condition)]

    def _own_condition(self, condition: Expr) -> RuleCheck:
        """Try a condition on the event itself."""
        frame = self.candidates.own_frame(self.slot, self.indices)
        return self._condition(
            condition, frame, lambda at: self.candidates.own_frame(self.slot, self.indices[[at]])
        )

    def _condition_between(self, condition: Expr) -> RuleCheck:
        """Try a condition that reads several parts."""

        def frame_of(at: int) -> Frame:
            return self.candidates.frame(self.binding, {self.part: (self.slot, self.indices[[at]])}, 1)

        return self._condition(condition, self.frame, frame_of)

    def _condition(self, condition: Expr, frame: Frame, frame_of: Callable[[int], Frame]) -> RuleCheck:
        size, name = len(self.indices), self.name
        try:
            kept = holds(condition, frame)
        except QueryError as error:  # a function that cannot take what the engine never gave it
            failed = Reason("condition", f"{shortened(condition)} failed: {error.message}", name, condition)
            return RuleCheck("condition", np.zeros(size, np.bool_), lambda: np.ones(size), lambda _: failed)
        return RuleCheck(
            "condition",
            kept,
            lambda: shortfall(condition, frame),
            lambda at: condition_reason(condition, frame_of(at), name),
        )


def condition_reason(condition: Expr, frame: Frame, part: str | None) -> Reason:
    """Say why a condition is not true of the one row of a frame; a missing value is a reason of its own."""
    text = said(condition, frame)
    is_missing = " missing, needed " in text and bool(missing_values(condition, frame))
    return Reason("null" if is_missing else "condition", text, part, condition)


def _excess(took: Int64Array, allowed: int) -> FloatArray:
    with np.errstate(all="ignore"):
        share = np.where(took > allowed, (took - allowed) / np.maximum(took, 1), 0.0)
    return np.asarray(share, np.float64)


def _order_text(first: str, second: str, begun: int, ended: int, next_begun: int, next_ended: int) -> str:
    if begun == ended == next_begun == next_ended:
        return f"{second} came at the same time as {first}, needed after it"
    if next_ended < begun or (begun == ended and next_begun == next_ended):
        return f"{second} came {format_duration(begun - next_ended)} before {first}, needed after it"
    return f"{second} started at {clock(next_begun)}, before {first} had ended at {clock(ended)}"
