"""How far the partial matches of a pattern came, and what stopped each.

The events of the first part are followed one by one, depth first: as far as the parts can be filled, then to
the nearest event that does not fit, and from there on as if it did. So a miss says how many things were
wrong, not only which was the first. A search ends after a set amount of work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Int64Array
from whimbrel.graph.operators import JoinPattern
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, EventGroups, SearchBudget, same_value
from whimbrel.whynot.candidates import NO_INDICES, Binding, BoundEvent, CandidateGroup, CandidateSet
from whimbrel.whynot.events import values
from whimbrel.whynot.explanation import Finding, Miss, Reason
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.finishing import Finish
from whimbrel.whynot.nothing import nothing_came
from whimbrel.whynot.rule_checks import WEIGHTS, RuleCheck, RuleChecks

AROUND = 48
"""How many events before and after a partial match are looked at as near candidates for its next part."""
TRIED = 3
"""How many of the nearest of them are followed further."""
FOLLOWED = 40
"""How many steps a match with a part that does not fit is followed further."""


@dataclass(frozen=True)
class MissDraft:
    """A miss before it is put into words."""

    cost: float
    binding: Binding
    kinds: tuple[str, ...]
    say: Callable[[], tuple[Reason, ...]]
    group: CandidateGroup


class Unfinished(Exception):
    """The effort is spent."""


class Search:
    """The search through the partial matches of one pattern."""

    def __init__(self, op: JoinPattern, view: EngineView) -> None:
        self.op = op
        self.view = view
        self.candidates = CandidateSet(op, view)
        self.finish = Finish(self.candidates)
        self.effort = SearchBudget(view.effort)
        self._sequences: dict[int, list[int]] = {}
        self._of_all_groups: dict[int, Int64Array] = {}

    # -- all misses ------------------------------------------------------------------------------------------

    def drafts(self) -> Iterator[MissDraft]:
        """Find the best miss of every first event that is in no detection, the newest events first."""
        for group, index in self._anchors():
            part = self.sequence(group)[0]
            try:
                draft = self._follow(group, {part: BoundEvent(part, index)}, 1)
            except Unfinished:
                return
            if draft is not None:
                # Of equal misses, one that begins where the pattern begins reads better.
                yield replace(draft, cost=draft.cost + (0.05 if part else 0.0))
        yield from self._almost_begun()

    @cached_property
    def asked(self) -> list[CandidateGroup]:
        """The groups that were asked for."""
        asked = [group for group in self.candidates.groups if self.view.of_group(group.values)]
        return sorted(asked, key=CandidateGroup.first)  # however they happen to be numbered

    def _anchors(self) -> list[tuple[CandidateGroup, int]]:
        """Select the events with which a match can begin, the newest first."""
        anchors = []
        for group in self.asked:
            part = self.sequence(group)[0]
            anchors += [(group, index) for index in self._beginning(group, part).tolist()]
        return sorted(anchors, key=lambda item: -item[1])

    def _beginning(self, group: CandidateGroup, part: int) -> Int64Array:
        """Mark the events that were asked for and that fill the first part as all rules want it."""
        indices = self._asked_for(group.indices[part], part)
        return self._fitting({}, part, indices)

    def _asked_for(self, indices: Int64Array, slot: int) -> Int64Array:
        """Leave out events that are not of the time or key that was asked for."""
        candidates = self.candidates
        indices = indices[self.view.in_time(candidates.start[indices], candidates.end[indices])]
        names = [key.name for key in self.op.partitioning.keys]
        stream = candidates.slots[slot].stream
        for name, wanted in self.view.key.items():
            if name not in names and len(indices):
                column = RowsFrame(self.view.context, stream, candidates.row[indices]).column(None, name)
                if column.type is not None:
                    indices = indices[np.array([same_value(v, wanted) for v in values(column)], np.bool_)]
        return indices

    def _almost_begun(self) -> Iterator[MissDraft]:
        """Collect misses that begin with an event that does not fit, in groups without any detection."""
        for group in self.asked:
            if self.effort.is_spent:
                return
            if tuple(group.values.values()) in self._with_detections:
                continue
            part = self.sequence(group)[0]
            drafts = [
                draft
                for slot in (part, *self.candidates.near(part))
                for draft in self._nearly(group, {}, 0, slot, self._asked_for(group.indices[slot], slot))
            ]
            begun = len(self._beginning(group, part))
            # Where matches have begun properly, one that begins wrongly is told if all the rest of it fits.
            drafts = [draft for draft in drafts if not begun or len(draft.binding) == len(self.op.parts)]
            yield from sorted(drafts, key=lambda draft: draft.cost)
            if not drafts and not len(group.indices[part]) and self._is_around(group):
                yield self._lacking(group, {}, 0)

    def _is_around(self, group: CandidateGroup) -> bool:
        candidates = self.candidates
        return any(
            bool(self.view.in_time(candidates.start[indices], candidates.end[indices]).any())
            for indices in group.indices.values()
        )

    @cached_property
    def _with_detections(self) -> set[tuple[Any, ...]]:
        rows = self.view.rows_asked_for(self.op.name, self.op.partitioning)
        groups = EventGroups(self.view.context, self.op.partitioning.keys)
        numbers = groups.of(self.view.stream(self.op.name), rows)
        return {tuple(groups.values[number].values()) for number in set(numbers.tolist())}

    # -- one partial match -----------------------------------------------------------------------------------

    def sequence(self, group: CandidateGroup) -> list[int]:
        """Choose the order in which parts are filled: as written, those that nothing can fill last."""
        known = self._sequences.get(group.code)
        if known is None:
            lacks = [
                not any(len(group.indices[slot]) for slot in (part, *self.candidates.near(part)))
                for part in range(len(self.op.parts))
            ]
            known = self._sequences[group.code] = sorted(
                range(len(lacks)), key=lambda part: (lacks[part], part)
            )
        return known

    def _follow(self, group: CandidateGroup, binding: Binding, depth: int) -> MissDraft | None:
        """Find the best miss that begins with a binding; None if it is part of a detection."""
        if self.effort.is_spent:
            raise Unfinished
        self.effort.spend()
        if depth == len(self.op.parts):
            return self._completed(group, binding)
        part = self.sequence(group)[depth]
        best: MissDraft | None = None
        for index in self.extensions(group, binding, part).tolist():
            draft = self._follow(group, {**binding, part: BoundEvent(part, index)}, depth + 1)
            if draft is None:
                return None
            best = draft if best is None or draft.cost < best.cost else best
        for draft in self._near_candidates(group, binding, depth) if best is None or best.cost > 0.5 else ():
            best = draft if best is None or draft.cost < best.cost else best
        return best or self._lacking(group, binding, depth)

    def _completed(self, group: CandidateGroup, binding: Binding) -> MissDraft | None:
        if self.finish.is_detected(binding):
            return None
        reasons = self.finish.reasons(group, binding)
        kinds = tuple(reason.kind for reason in reasons)
        return MissDraft(sum(WEIGHTS[kind] for kind in kinds), binding, kinds, lambda: reasons, group)

    def extensions(self, group: CandidateGroup, binding: Binding, part: int) -> Int64Array:
        """Select the events that fill the next part as all rules want it."""
        return self._fitting(binding, part, self._in_reach(group.indices[part], binding))

    def _fitting(self, binding: Binding, part: int, indices: Int64Array) -> Int64Array:
        return (
            RuleChecks(self.candidates, binding, part, part, indices).fitting()
            if len(indices)
            else NO_INDICES
        )

    def _in_reach(self, indices: Int64Array, binding: Binding) -> Int64Array:
        if not binding:
            return indices
        low, high = self.candidates.span([bound.index for bound in binding.values()])
        ends = self.candidates.end[indices]  # in order, as indices are
        first = np.searchsorted(ends, high - self.op.within, side="left")
        last = np.searchsorted(ends, low + self.op.within, side="right")
        return indices[first:last]

    # -- events that do not fit ------------------------------------------------------------------------------

    def _near_candidates(self, group: CandidateGroup, binding: Binding, depth: int) -> list[MissDraft]:
        part = self.sequence(group)[depth]
        drafts = []
        for slot in (part, *self.candidates.near(part)):
            drafts += self._nearly(group, binding, depth, slot, self._nearby(group.indices[slot], binding))
        if not drafts and self.op.partitioning.keys:
            drafts = self._of_other_groups(group, binding, depth)
        return drafts

    def _nearby(self, indices: Int64Array, binding: Binding) -> Int64Array:
        last = max(bound.index for bound in binding.values())
        at = int(np.searchsorted(indices, last))
        return indices[max(0, at - AROUND) : at + AROUND]

    def _of_other_groups(self, group: CandidateGroup, binding: Binding, depth: int) -> list[MissDraft]:
        part = self.sequence(group)[depth]
        nearby = self._nearby(self._everyone(part), binding)
        others = nearby[self.candidates.group_of[nearby] != group.code]
        return self._nearly(group, binding, depth, part, others, with_group=True)

    def _everyone(self, part: int) -> Int64Array:
        """Select the events of all groups that a part can take."""
        if part not in self._of_all_groups:
            every = np.arange(len(self.candidates.row))
            self._of_all_groups[part] = every[self.candidates.has(every, part)]
        return self._of_all_groups[part]

    def _nearly(
        self,
        group: CandidateGroup,
        binding: Binding,
        depth: int,
        slot: int,
        indices: Int64Array,
        *,
        with_group: bool = False,
    ) -> list[MissDraft]:
        """Collect misses with the nearest of some events that do not fit the next part."""
        if not len(indices):
            return []
        self.effort.spend()
        part = self.sequence(group)[depth]
        checks = RuleChecks(self.candidates, binding, slot, part, indices).every(
            group=group.code if with_group else None
        )
        cost = np.sum([check.cost for check in checks], axis=0) if checks else np.zeros(len(indices))
        broken = np.flatnonzero(cost > 0)
        most = TRIED if binding else max(TRIED, self.view.limit)
        nearest = broken[np.argsort(cost[broken], kind="stable")][:most].tolist()
        return [
            self._as_if_it_fitted(
                group, {**binding, part: BoundEvent(slot, int(indices[at]))}, depth + 1, checks, at
            )
            for at in nearest
        ]

    def _as_if_it_fitted(
        self, group: CandidateGroup, binding: Binding, depth: int, checks: list[RuleCheck], at: int
    ) -> MissDraft:
        broken = [check for check in checks if not check.holds[at]]
        full = self._filled_further(group, binding, depth, [FOLLOWED])
        more = self.finish.absences(group, full) if len(full) == len(self.op.parts) else ()
        missing = len(self.op.parts) - len(full)
        cost = float(sum(check.cost[at] for check in broken)) + WEIGHTS["nothing"] * missing
        kinds = (*(check.kind for check in broken), *(reason.kind for reason in more))
        return MissDraft(
            cost + sum(WEIGHTS[reason.kind] for reason in more),
            full,
            kinds,
            lambda: (*(check.say(at) for check in broken), *more),
            group,
        )

    def _filled_further(
        self, group: CandidateGroup, binding: Binding, depth: int, left: list[int]
    ) -> Binding:
        """Fill as many of the other parts as possible."""
        best = binding
        if depth == len(self.op.parts) or left[0] <= 0:
            return best
        left[0] -= 1
        self.effort.spend()
        part = self.sequence(group)[depth]
        for index in self.extensions(group, binding, part).tolist():
            further = self._filled_further(group, {**binding, part: BoundEvent(part, index)}, depth + 1, left)
            best = further if len(further) > len(best) else best
            if len(best) == len(self.op.parts) or left[0] <= 0:
                break
        return best

    def _lacking(self, group: CandidateGroup, binding: Binding, depth: int) -> MissDraft:
        part = self.sequence(group)[depth]
        missing = len(self.op.parts) - len(binding)

        def say() -> tuple[Reason, ...]:
            name = self.candidates.name(part)
            return (nothing_came(self.view, self.op.parts[part].input, name, group.values),)

        return MissDraft(WEIGHTS["nothing"] * missing, binding, ("nothing",), say, group)

    # -- the answer ------------------------------------------------------------------------------------------

    def miss(self, definition: str, draft: MissDraft) -> Miss:
        """Put a draft into words."""
        parts = tuple(
            (self.candidates.name(n), self.candidates.seen(draft.binding[n]) if n in draft.binding else None)
            for n in range(len(self.op.parts))
        )
        return Miss(definition, self.op.name, dict(draft.group.values), parts, draft.say(), draft.cost)


def explain_match(op: JoinPattern, view: EngineView, definition: str) -> Finding:
    """Explain what a pattern found, and which partial matches came near."""
    search = Search(op, view)
    drafts = sorted(search.drafts(), key=lambda draft: draft.cost)
    shown, rest = drafts[: view.limit], drafts[view.limit :]
    notes = []
    misses = [search.miss(definition, draft) for draft in shown]
    parts = [(search.candidates.name(number), part.input) for number, part in enumerate(op.parts)]
    if search.effort.is_spent:
        tried = f"the search ended after {many(view.effort, 'step')}"
        notes.append(f"{tried}; not all events were tried: give a key or a time")
    return finding_of(
        view,
        op.name,
        definition,
        op.partitioning,
        misses,
        begins_with=() if search.effort.is_spent else parts,
        more=Counter(draft.kinds[0] for draft in rest),
        notes=notes,
    )
