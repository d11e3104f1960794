"""Definitions of single events: which of them came nearest to the conditions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.streams import RowsFrame
from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators import Derive, DeriveCase, Filter, Merge, Source
from whimbrel.graph.policies import Partitioning
from whimbrel.whynot.asking import EngineView, group_of
from whimbrel.whynot.candidates import CandidateStream, near_slots
from whimbrel.whynot.conditions import holds, shortfall
from whimbrel.whynot.events import seen
from whimbrel.whynot.explanation import Finding, Miss
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.rule_checks import condition_reason


@dataclass(frozen=True, slots=True)
class Origin:
    """Which selection a miss is of."""

    definition: str
    operator: str
    name: str


def explain_selection(
    op: Source | Filter | Merge | Derive, view: EngineView, definition: str, case: DeriveCase
) -> Finding:
    """Explain which events were selected, and which nearly were."""
    name = case.alias or definition
    found = sorted(_misses(op, view, case.partitioning), key=lambda item: item[0])
    shown, rest = found[: view.limit], found[view.limit :]
    origin = Origin(definition, op.name, name)
    misses = [_miss(view, origin, case.partitioning, *item[1:]) for item in shown]
    more = {"condition": len(rest)} if rest else {}
    return finding_of(
        view, op.name, definition, case.partitioning, misses, begins_with=[(name, op.name)], more=more
    )


def _misses(
    op: Source | Filter | Merge | Derive, view: EngineView, partitioning: Partitioning
) -> list[tuple[float, CandidateStream, int]]:
    """Measure how far every event is from being selected, with its slot and row."""
    misses: list[tuple[float, CandidateStream, int]] = []
    for slot in near_slots(view, 0, op.name, None):
        rows = slot.stream.new
        rows = rows[view.in_time(*slot.stream.store.spans(rows))]
        rows = view.of_key(slot.stream, rows, partitioning)
        if not len(rows):
            continue
        frame = RowsFrame(view.context, slot.stream, rows, slot.alias)
        cost = np.zeros(len(rows))
        for condition in slot.conditions:
            off = np.clip(shortfall(condition, frame), 0, 1)
            cost += np.where(holds(condition, frame), 0.0, 0.5 + 0.5 * off)
        misses += [(float(c), slot, int(row)) for c, row in zip(cost, rows, strict=True)]
    return misses


def _miss(
    view: EngineView, origin: Origin, partitioning: Partitioning, slot: CandidateStream, row: int
) -> Miss:
    rows = np.array([row], np.int64)
    frame = RowsFrame(view.context, slot.stream, rows, slot.alias)
    false = [condition for condition in slot.conditions if not holds(condition, frame)[0]]
    name = slot.alias or origin.name
    reasons = tuple(condition_reason(each, frame, name) for each in false)
    group = group_of(view.context, slot.stream, row, partitioning.keys)
    event = seen(view.context, slot.stream, row, slot.name)
    return Miss(origin.definition, origin.operator, group, ((name, event),), reasons, _cost(false, frame))


def _cost(false: list[Expr], frame: RowsFrame) -> float:
    return float(sum(0.5 + 0.5 * min(1.0, shortfall(each, frame)[0]) for each in false))
