"""Repetitions: stretches of events that were too short, took too long or were ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from whimbrel.engine.ordered_inputs import OrderedInputs
from whimbrel.engine.values import Int64Array
from whimbrel.graph.operators import Repeat
from whimbrel.model.time import format_duration
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, EventGroups
from whimbrel.whynot.events import Seen, seen
from whimbrel.whynot.explanation import Finding, Miss, Reason
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.words import clock


class Stretches:
    """The events that a repetition reads, group by group in total order."""

    def __init__(self, op: Repeat, view: EngineView) -> None:
        self.op = op
        self.view = view
        self.inputs = [view.stream(op.input)] + ([view.stream(op.until)] if op.until else [])
        arrivals = OrderedInputs(view.context, self.inputs)
        self.events = arrivals.collect()
        self.roots = arrivals.roots
        self.groups = self._by_group()

    def _by_group(self) -> list[tuple[dict[str, Any], Int64Array]]:
        numbers = EventGroups(self.view.context, self.op.partitioning.keys)
        codes = np.zeros(len(self.events), np.int64)
        for number, root in enumerate(self.roots):
            at = np.flatnonzero(self.events.root == number)
            codes[at] = numbers.of(root, self.events.row[at])
        groups = [(values, np.flatnonzero(codes == code)) for code, values in enumerate(numbers.values)]
        asked = [group for group in groups if len(group[1]) and self.view.of_group(group[0])]
        return sorted(asked, key=lambda group: int(group[1][0]))  # however they happen to be numbered

    def misses(self, definition: str) -> list[Miss]:
        """Give, for every event that begins no long enough stretch, what cut it short."""
        return [miss for group, indices in self.groups for miss in self._of_group(definition, group, indices)]

    def _of_group(self, definition: str, group: dict[str, Any], indices: Int64Array) -> list[Miss]:
        fitting = indices[(self.events.mask[indices] & np.uint64(1)) != 0]
        enders = indices[(self.events.mask[indices] & np.uint64(2)) != 0]
        misses: list[Miss] = []
        covered = 0
        for first in range(len(fitting)):
            length, reason = self._longest(fitting, enders, first)
            last = first + max(length, 1)  # an event that alone takes too long is a stretch of none
            is_inside_another, covered = last <= covered, max(covered, last)
            stretch = fitting[first:last]
            if reason is not None and not is_inside_another and self._is_asked_for(stretch):
                misses.append(self._miss(definition, group, stretch, reason))
        return misses

    def _is_asked_for(self, indices: Int64Array) -> bool:
        return bool(self.view.in_time(self.events.start[indices], self.events.end[indices]).any())

    def _longest(
        self, fitting: Int64Array, enders: Int64Array, first: int
    ) -> tuple[int, tuple[Reason, float] | None]:
        """Measure the longest stretch from an event on, and what ended it if it is too short."""
        op, name = self.op, self.op.alias or self.op.input
        low = high = None
        for length in range(1, len(fitting) - first + 1):
            index = fitting[first + length - 1]
            start, end = int(self.events.start[index]), int(self.events.end[index])
            low, high = (start, end) if low is None or high is None else (min(low, start), max(high, end))
            blocker = enders[(enders > fitting[first]) & (enders < index)]
            if len(blocker):
                event = self._seen(int(blocker[0]), op.until or "")
                text = f"{event} came before there were {op.at_least} of {name}"
                return length - 1, (Reason("ended", text, name, events=(event,)), 0.5)
            if high - low > op.within:
                took, allowed = format_duration(high - low), format_duration(op.within)
                text = f"{length} of {name} took {took} (until {clock(end)}), needed within {allowed}"
                return length - 1, (Reason("time", text, name), (high - low - op.within) / max(1, high - low))
            if length >= op.at_least:
                return length, None
        had = len(fitting) - first
        text = f"{many(had, 'event')} of {name} came in a row, needed at least {op.at_least}"
        return had, (Reason("few", text, name), 0.5)

    def _miss(
        self, definition: str, group: dict[str, Any], indices: Int64Array, reason: tuple[Reason, float]
    ) -> Miss:
        name = self.op.alias or self.op.input
        lacking = self.op.at_least - len(indices)
        had = [self._seen(int(index), self.op.input) for index in indices]
        parts = tuple((f"{name} {n}", event) for n, event in enumerate((*had, *([None] * lacking)), start=1))
        cost = lacking + 0.5 * min(1.0, reason[1])
        return Miss(definition, self.op.name, group, parts, (reason[0],), cost)

    def _seen(self, index: int, name: str) -> Seen:
        root = self.roots[int(self.events.root[index])]
        return seen(self.view.context, root, int(self.events.row[index]), name)


def explain_repeat(op: Repeat, view: EngineView, definition: str) -> Finding:
    """Explain which stretches were found, and which were too short."""
    misses = sorted(Stretches(op, view).misses(definition), key=lambda miss: miss.cost)
    part = (op.alias or op.input, op.input)
    return finding_of(view, op.name, definition, op.partitioning, misses, begins_with=[part])
