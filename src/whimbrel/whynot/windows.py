"""Windows: which were computed, and which were refused by `having` or for want of events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from whimbrel.engine.operators.aggregate import ResultsFrame
from whimbrel.engine.streams import WINDOW, OperatorStream
from whimbrel.engine.values import Column, Int64Array
from whimbrel.graph.expressions import GROUP, Attribute, conjuncts
from whimbrel.graph.operators import Aggregate
from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, group_of
from whimbrel.whynot.conditions import holds, said, shortfall
from whimbrel.whynot.events import first, seen, values
from whimbrel.whynot.explanation import Finding, Miss, Reason
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.nothing import nothing_at_all
from whimbrel.whynot.watching import count_in, windows_of
from whimbrel.whynot.words import clock


@dataclass(frozen=True, slots=True)
class Refused:
    """A window without a result: its row, how far it was from one, and which inputs had no event."""

    row: int
    cost: float
    empty: tuple[int, ...]


class AllWindows:
    """All windows of an aggregate, also the refused ones."""

    def __init__(self, op: Aggregate, view: EngineView) -> None:
        self.op = op
        self.view = view
        self.name = windows_of(op.name)
        self.stream: OperatorStream = view.stream(self.name)
        self.rows = view.rows_asked_for(self.name, op.partitioning)

    def frame(self, rows: Int64Array) -> ResultsFrame:
        """Present results as `having` reads them."""
        store = self.stream.store
        named = {
            assign.name: store.column(Attribute(None, assign.name), rows)
            for assign in self.op.post or self.op.assign
        }
        groups = {
            key.name: store.column(Attribute(GROUP, key.name), rows) for key in self.op.partitioning.keys
        }
        return ResultsFrame(self.view.context, len(rows), {}, groups, named)

    def refused(self) -> list[Refused]:
        """Select the windows that had no result, the nearest to one first."""
        if not len(self.rows):
            return []
        frame = self.frame(self.rows)
        cost = np.zeros(len(self.rows))
        for condition in conjuncts(self.op.having):
            off = np.clip(shortfall(condition, frame), 0, 1)
            cost += np.where(holds(condition, frame), 0.0, 0.5 + 0.5 * off)
        empty = self._empty_inputs()
        misses = [
            Refused(int(row), float(c) + 3.0 * len(lacking), lacking)
            for row, c, lacking in zip(self.rows, cost, empty, strict=True)
            if c > 0 or lacking
        ]
        return sorted(misses, key=lambda each: each.cost)

    def _empty_inputs(self) -> list[tuple[int, ...]]:
        needed = [number for number, part in enumerate(self.op.parts) if not part.outer]
        counts = [values(self._count(number, self.rows)) for number in needed]
        return [
            tuple(number for number, count in zip(needed, row, strict=True) if not count)
            for row in zip(*counts, strict=True)
        ] or [() for _ in self.rows]

    def _count(self, number: int, rows: Int64Array) -> Column:
        return self.stream.store.column(Attribute(None, count_in(number)), rows)

    def miss(self, definition: str, refused: Refused) -> Miss:
        """Put a refused window into words."""
        rows = np.array([refused.row], np.int64)
        group = group_of(self.view.context, self.stream, refused.row, self.op.partitioning.keys)
        event = seen(self.view.context, self.stream, refused.row, self.op.name)
        reasons = [self._without(number) for number in refused.empty]
        frame = self.frame(rows)
        reasons += [
            Reason("having", said(conjunct, frame), None, conjunct)
            for conjunct in conjuncts(self.op.having)
            if not holds(conjunct, frame)[0]
        ]
        return Miss(
            definition, self.op.name, group, ((self._label(rows), event),), tuple(reasons), refused.cost
        )

    def _without(self, number: int) -> Reason:
        name = self.op.parts[number].alias or self.op.parts[number].input
        return Reason("empty", f"no {name} in the window", name)

    def _label(self, rows: Int64Array) -> str:
        window = self.op.window
        end = first(self.stream.store.column(WINDOW, rows))
        if end is None:
            return "window"
        return f"window {clock(end - window.length)} to {clock(end)}"


def explain_aggregate(op: Aggregate, view: EngineView, definition: str) -> Finding:
    """Explain which windows had a result, and which were refused."""
    windows = AllWindows(op, view)
    refused = windows.refused()
    misses = [windows.miss(definition, each) for each in refused[: view.limit]]
    notes = []
    if not len(windows.rows):
        misses = [_no_window(op, view, definition)]
    if op.window.every is not None and op.window.kind == "temporal":
        notes += _still_open(op, view)
    more = Counter("empty" if each.empty else "having" for each in refused[view.limit :])
    return finding_of(view, op.name, definition, op.partitioning, misses, more=more, notes=notes)


def _no_window(op: Aggregate, view: EngineView, definition: str) -> Miss:
    """Say why not even one window was computed."""
    parts = [(part.alias or part.input, part.input) for part in op.parts]
    came = sum(len(view.rows_asked_for(input, op.partitioning)) for _, input in parts)
    if not came:
        return nothing_at_all(view, definition, op.name, parts)
    kind, why = "empty", "none of them in a window"
    if op.window.kind == "counting":
        kind, why = "few", f"a result is due at every {op.window.every} events of a group"
    elif _still_open(op, view):
        kind, why = "waiting", "and their windows are still open"
    reason = Reason(kind, f"{many(came, 'event')} came; {why}", parts[0][0])
    return Miss(definition, op.name, {}, tuple((name, None) for name, _ in parts), (reason,), 1.0)


def _still_open(op: Aggregate, view: EngineView) -> list[str]:
    """Say that windows are still open, where time has not reached their end."""
    watermark, every = view.watched.session.watermark, op.window.every or 1
    streams = [view.stream(part.input) for part in op.parts]
    newest = max(int(s.store.spans(s.new)[1].max(initial=BEGINNING_OF_TIME)) for s in streams)
    is_open = newest > BEGINNING_OF_TIME and (newest // every + 1) * every - 1 > watermark
    return [f"windows that end after {clock(watermark)} are still open"] if is_open else []
