"""Sequences of steps: how many steps matches in the making took, and what did not let them take the next.

The engine itself tells how far they came: beside a `StepPattern` run its beginnings, one step longer each. An
event that begins the first of them and not the next was stopped there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import row_ids
from whimbrel.engine.ordered_inputs import OrderedInputs
from whimbrel.engine.reduce import Segments, reduce
from whimbrel.engine.streams import ExecutionContext, RowsFrame
from whimbrel.engine.values import Column, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Call, Expr, PartRef, conjuncts, parts_of
from whimbrel.graph.operators.step_pattern import Contiguity, Element, PatternStep, StepPattern, StepTest
from whimbrel.model.schema import Type
from whimbrel.model.time import format_duration
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, EventGroups
from whimbrel.whynot.candidates import wider
from whimbrel.whynot.conditions import holds, shortfall
from whimbrel.whynot.events import Seen, seen, values
from whimbrel.whynot.explanation import Finding, Miss, Reason
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.rule_checks import WEIGHTS, condition_reason
from whimbrel.whynot.watching import beginning, is_negative
from whimbrel.whynot.words import clock

AHEAD = 32
"""How many events behind a match in the making are looked at as candidates for its next step."""
WAYS = 8
"""How many ways in which one event began a match are compared."""
LOOKED_AT = 60
"""How many matches in the making are looked at, the ones that came farthest first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One event as a step sees it: itself, and aggregates over what the steps before it took."""

    context: ExecutionContext
    event: RowsFrame
    taken: Mapping[str, RowsFrame]

    def __len__(self) -> int:
        return 1

    def column(self, part: str | None, name: str) -> Column:
        """Look up an attribute of the event, or of its group."""
        return self.event.column(part if part in (None, GROUP) else None, name)

    def attributes(self, part: str | None) -> dict[str, Column]:
        """Collect all attributes of the event."""
        return self.event.attributes(None if part != GROUP else part)

    def known(self, expr: Expr) -> Column:
        """Compute an aggregate over the events that a step took."""
        assert isinstance(expr, Call)
        frame = self.taken.get(next(iter(parts_of(expr) - {GROUP}), None) or "")
        size = 0 if frame is None else len(frame)
        if not expr.arguments or isinstance(expr.arguments[0], PartRef):
            return Column(Type.INT, np.array([size], np.int64))
        if frame is None or not size:
            return _NO_SUM if expr.function == "sum" else nothing(1)
        column = evaluate(expr.arguments[0], frame)
        whole = Segments(np.array([0, size]), np.arange(size))
        total = reduce(expr.function, column, whole, self.context.functions, expr)
        is_null = total.type is None or (total.null is not None and bool(total.null[0]))
        return _NO_SUM if expr.function == "sum" and is_null else total


_NO_SUM = Column(Type.INT, np.zeros(1, np.int64))
"""What nothing adds up to where a step tests an event."""


@dataclass(frozen=True)
class Begun:
    """A match in the making that went no further: how many steps, and the indices of their events."""

    length: int
    taken: Mapping[str, tuple[int, ...]]
    group: Mapping[str, Any]

    @property
    def indices(self) -> list[int]:
        """Everything that was taken, in order."""
        return sorted(index for indices in self.taken.values() for index in indices)


class Walk:
    """The events that a sequence walks along, and how far its matches came."""

    def __init__(self, op: StepPattern, view: EngineView) -> None:
        self.op = op
        self.view = view
        arrivals = OrderedInputs(view.context, [view.stream(name) for name in op.streams])
        self.events = arrivals.collect()
        self.roots = arrivals.roots
        groups = EventGroups(view.context, op.partitioning.keys)
        self.groups = groups
        self.group = np.zeros(len(self.events), np.int64)
        for number, root in enumerate(self.roots):
            at = np.flatnonzero(self.events.root == number)
            self.group[at] = groups.of(root, self.events.row[at])

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Where the event with an id stands."""
        numbers: dict[str, int] = {}
        for number, root in enumerate(self.roots):
            at = np.flatnonzero(self.events.root == number)
            ids = row_ids(self.view.context, root, self.events.row[at]).to_pylist()
            numbers |= dict(zip(ids, at.tolist(), strict=True))
        return numbers

    # -- how far matches came ----------------------------------------------------------------------------

    def begun(self) -> list[list[Begun]]:
        """Give, for each event that begins no detection, the longest matches that it began."""
        best: dict[int, list[Begun]] = {}
        for length in range(1, len(self.op.steps) + 1):
            if not is_negative(self.op.steps[length - 1]):
                reached: dict[int, list[Begun]] = {}
                for each in self._of_length(length):
                    if each.indices:
                        reached.setdefault(each.indices[0], []).append(each)
                best |= reached
        detected = self._starts_of_detections()
        longest = [
            each for start, each in best.items() if start not in detected and self._is_asked_for(each[-1])
        ]
        return sorted(longest, key=lambda each: (-each[0].length, -each[0].indices[0]))

    def _starts_of_detections(self) -> set[int]:
        stream = self.view.stream(self.op.name)
        lineage = stream.store.lineage(stream.new)
        firsts = lineage.refs[lineage.offsets[:-1]] if len(stream.new) else np.zeros(0, np.int64)
        atoms = self.view.context.atoms
        ids = row_ids(self.view.context, atoms, np.unique(firsts)).to_pylist() if len(firsts) else []
        return {self.index_of[identity] for identity in ids if identity in self.index_of}

    def _of_length(self, length: int) -> Iterator[Begun]:
        name = beginning(self.op.name, length)
        stream = self.view.stream(f"{name}@steps")
        steps = [step.name for step in replace(self.op, steps=self.op.steps[:length]).taken()]
        columns = {s: values(stream.store.column(Attribute(None, f"@{s}"), stream.new)) for s in steps}
        keys = [key.name for key in self.op.partitioning.keys]
        groups = {key: values(stream.store.column(Attribute(None, key), stream.new)) for key in keys}
        for row in range(len(stream.new)):
            taken = {s: tuple(self.index_of[each] for each in columns[s][row] or ()) for s in steps}
            yield Begun(length, taken, {key: groups[key][row] for key in keys})

    def _is_asked_for(self, begun: Begun) -> bool:
        indices = np.array(begun.indices, np.int64)
        context = self.view.in_time(self.events.start[indices], self.events.end[indices]).any()
        return bool(context) and self.view.of_group(begun.group)

    # -- what could not even begin -------------------------------------------------------------------------

    def beginnings_missed(self, definition: str) -> list[Miss]:
        """Say of the events that were asked for, nearest first, why none of them is the first of a match."""
        nobody = Begun(0, {}, {})
        misses = []
        for index in self._asked_for()[:LOOKED_AT]:
            for step in entries(self.op.steps):
                cost, reasons = self._tested(nobody, step.test, step.name, index)
                if reasons:
                    group = self.groups.values[self.group[index]]
                    cost += WEIGHTS["nothing"] * (len(self.op.steps) - 1)
                    parts = ((step.name, self._seen(index)),)
                    misses.append(Miss(definition, self.op.name, dict(group), parts, reasons, cost))
        return sorted(misses, key=lambda miss: miss.cost)

    def _asked_for(self) -> list[int]:
        """Select the events of the key and around the time that were asked for."""
        wanted = self.view.in_time(self.events.start, self.events.end)
        known = np.array([self.view.of_group(group) for group in self.groups.values] or [True], np.bool_)
        return [int(index) for index in np.flatnonzero(wanted & known[self.group])]

    # -- what stopped them -------------------------------------------------------------------------------

    def miss(self, definition: str, ways: list[Begun]) -> Miss:
        """Say what stopped the nearest of the matches that began with one event."""
        tried = [(self._stopped(begun), begun) for begun in ways[-WAYS:]]
        stopped, begun = min(tried, key=lambda pair: pair[0].cost)
        shown = {name: list(indices) for name, indices in begun.taken.items()}
        if stopped.index is not None and stopped.step is not None:
            shown.setdefault(stopped.step.name, []).append(stopped.index)
        parts = tuple(
            part for step in self.op.taken() for part in self._parts(step, shown.get(step.name, []))
        )
        cost = stopped.cost + WEIGHTS["nothing"] * max(0, len(self.op.steps) - begun.length - 1)
        return Miss(definition, self.op.name, dict(begun.group), parts, stopped.reasons, cost)

    def _parts(self, step: PatternStep, indices: list[int]) -> list[tuple[str, Seen | None]]:
        if len(indices) < 2:
            return [(step.name, self._seen(indices[0]) if indices else None)]
        return [(f"{step.name} {number}", self._seen(index)) for number, index in enumerate(indices, start=1)]

    def _stopped(self, begun: Begun) -> Stopped:
        rest = self.op.steps[begun.length :]
        if not rest:
            text = f"the matches that were skipped to are others ({self.op.skip.strategy})"
            return Stopped((Reason("context", text),), 0.5)
        ahead = self._ahead(begun)
        negative = rest[0] if isinstance(rest[0], PatternStep) and is_negative(rest[0]) else None
        positive = rest[1:] if negative is not None else rest
        nearest = self._nearest(begun, positive, ahead)
        if negative is not None:
            blocked = self._blocked(begun, negative, ahead, positive)
            if blocked is not None:
                return blocked
        if not positive:
            return self._undecided(begun, rest[0])
        return nearest or self._none_came(positive[0], begun)

    def _ahead(self, begun: Begun) -> list[int]:
        """Select the events of the partition that follow, as many as are looked at."""
        last = begun.indices[-1]
        behind = np.flatnonzero(self.group[last + 1 :] == self.group[last])[:AHEAD]
        return [int(index) + last + 1 for index in behind]

    def _nearest(self, begun: Begun, rest: tuple[Element, ...], ahead: list[int]) -> Stopped | None:
        best: Stopped | None = None
        for step in entries(rest):
            reachable = ahead[:1] if step.contiguity is Contiguity.NEXT else ahead
            for index in reachable:
                cost, reasons = self._tried(begun, step, index)
                if reasons and (best is None or cost < best.cost):
                    best = Stopped(reasons, cost, step, index)
            if best is None and reachable and step.quantifier.at_least > 1:
                best = self._too_few(begun, step, reachable)
        return best

    def _too_few(self, begun: Begun, step: PatternStep, ahead: list[int]) -> Stopped:
        fitting = [index for index in ahead if not self._tried(begun, step, index)[1]]
        apart = self._apart(step, fitting)
        if apart is not None:
            return Stopped((apart,), 1.0, step)
        count = len(fitting)
        text = f"{many(count, 'event')} of {step.name} came, needed at least {step.quantifier.at_least}"
        return Stopped((Reason("few", text, step.name),), 1.0, step)

    def _apart(self, step: PatternStep, fitting: list[int]) -> Reason | None:
        """Say that enough events came for a loop, but not soon enough after each other."""
        window = step.quantifier.window
        if window is None or len(fitting) < step.quantifier.at_least:
            return None
        gaps = [(int(self.events.end[b] - self.events.end[a]), a, b) for a, b in pairwise(fitting)]
        late = [gap for gap in gaps if gap[0] >= window]
        if not late:
            return None
        took, before, after = min(late)
        text = (
            f"{self._seen(after)} came {format_duration(took)} after {self._seen(before)}, "
            f"needed less than {format_duration(window)} between the events of {step.name}"
        )
        return Reason("time", text, step.name)

    def _tried(self, begun: Begun, step: PatternStep, index: int) -> tuple[float, tuple[Reason, ...]]:
        """Say what keeps an event from being taken by a step, and what that counts."""
        cost, reasons = self._tested(begun, step.test, step.name, index)
        late = self._late(begun, step, index)
        return (cost + 1.0, (*reasons, late)) if late is not None else (cost, reasons)

    def _tested(
        self, begun: Begun, test: StepTest, name: str, index: int
    ) -> tuple[float, tuple[Reason, ...]]:
        row, root = int(self.events.row[index]), self.roots[int(self.events.root[index])]
        frame = RowsFrame(self.view.context, root, np.array([row], np.int64), None, self.op.partitioning)
        taken = {step: self._rows_of(step, indices) for step, indices in begun.taken.items() if indices}
        candidate = Candidate(self.view.context, frame, taken)
        conditions: list[Expr] = list(conjuncts(test.condition))
        selected = self.view.stream(test.input)
        if selected.store is not root.store or row not in selected.new:
            own = [slot for slot in wider(self.view, 0, test.input, None) if row in slot.stream.new]
            if not own:
                return 2.0, (Reason("condition", f"{self._seen(index)} is none of {test.input}", name),)
            conditions = [*own[0].conditions, *conditions]
        false = [condition for condition in conditions if not holds(condition, candidate)[0]]
        cost = sum(0.5 + 0.5 * min(1.0, float(shortfall(each, candidate)[0])) for each in false)
        return cost, tuple(condition_reason(each, candidate, name) for each in false)

    def _rows_of(self, step: str, indices: tuple[int, ...]) -> RowsFrame:
        root = self.roots[int(self.events.root[indices[0]])]
        return RowsFrame(self.view.context, root, self.events.row[list(indices)], step, self.op.partitioning)

    def _late(self, begun: Begun, step: PatternStep, index: int) -> Reason | None:
        """Tell whether time had run out; the bounds themselves are too late."""
        first, last = begun.indices[0], begun.indices[-1]
        bounds = [(self.op.within, first), (self.op.gap, last), (step.within_previous, last)]
        for bound, since in bounds:
            took = int(self.events.end[index] - self.events.end[since])
            if bound is not None and took >= bound:
                what = self._seen(since)
                text = f"came {format_duration(took)} after {what}, needed less than {format_duration(bound)}"
                return Reason("time", text, step.name)
        return None

    def _blocked(
        self, begun: Begun, negative: PatternStep, ahead: list[int], positive: tuple[Element, ...]
    ) -> Stopped | None:
        """Name the event that must not have come."""
        reachable = ahead[:1] if negative.contiguity is Contiguity.NOT_NEXT else ahead
        for index in reachable:
            if not self._tested(begun, negative.test, negative.name, index)[1]:
                if self._late(begun, negative, index) is not None:
                    return None
                event = self._seen(index)
                reason = Reason("present", f"{event} came, which must not", negative.name, events=(event,))
                return Stopped((reason,), WEIGHTS["present"])
            if any(not self._tried(begun, step, index)[1] for step in entries(positive)):
                return None
        return None

    def _undecided(self, begun: Begun, negative: Element) -> Stopped:
        """Say why a match that lacks nothing but an absence at its end was not detected."""
        due = int(self.events.end[begun.indices[0]]) + (self.op.within or 0)
        if self.op.within is not None and due > self.view.watched.session.watermark:
            text = f"everything is there; it is detected at {clock(due)} if nothing prevents it"
            return Stopped((Reason("waiting", text),), WEIGHTS["waiting"])
        if negative.contiguity is Contiguity.NOT_NEXT and not self._ahead(begun):
            last = self._seen(begun.indices[-1])
            text = f"no event came after {last}, so that what is next is not known"
            return Stopped((Reason("nothing", text),), WEIGHTS["nothing"])
        return Stopped((Reason("context", "what must not occur ruled it out before it could end so"),), 2.0)

    def _none_came(self, element: Element, begun: Begun) -> Stopped:
        names = "/".join(step.name for step in entries((element,)))
        last = self._seen(begun.indices[-1])
        return Stopped((Reason("nothing", f"no event that could be {names} came after {last}", names),), 3.0)

    def _seen(self, index: int) -> Seen:
        root = self.roots[int(self.events.root[index])]
        return seen(self.view.context, root, int(self.events.row[index]), self.op.streams[0])


@dataclass(frozen=True)
class Stopped:
    """What stopped a match in the making: reasons, what they count, and the step and event they concern."""

    reasons: tuple[Reason, ...]
    cost: float
    step: PatternStep | None = None
    index: int | None = None


def entries(elements: tuple[Element, ...]) -> list[PatternStep]:
    """List the steps that some elements can begin with."""
    steps: list[PatternStep] = []
    for element in elements:
        if isinstance(element, PatternStep):
            steps.append(element)
        else:
            steps += [step for branch in element.branches for step in entries(branch)]
        if not element.quantifier.optional:
            break
    return [step for step in steps if not is_negative(step)]


def explain_sequence(op: StepPattern, view: EngineView, definition: str) -> Finding:
    """Explain what a sequence of steps found, and how far its other matches came."""
    walk = Walk(op, view)
    begun = walk.begun()
    misses = sorted((walk.miss(definition, each) for each in begun[:LOOKED_AT]), key=lambda miss: miss.cost)
    if not misses and not len(view.rows_asked_for(op.name, op.partitioning)):
        misses = walk.beginnings_missed(definition)
    first = entries(op.steps)[0]
    left = len(begun) - LOOKED_AT
    notes = (f"{many(left, 'other match')} in the making were not looked at",) if left > 0 else ()
    part = (first.name, first.test.input)
    return finding_of(view, op.name, definition, op.partitioning, misses, begins_with=[part], notes=notes)
