"""Matches that are complete: whether they were detected, and if not, what prevented it or was preferred."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import product

import numpy as np

from whimbrel.engine.identity import HASH, fold
from whimbrel.engine.values import Int64Array
from whimbrel.graph.operators import Absent
from whimbrel.graph.policies import Context, Select
from whimbrel.model.time import format_duration
from whimbrel.whynot.candidates import Binding, BoundEvent, CandidateGroup, CandidateSet
from whimbrel.whynot.conditions import holds
from whimbrel.whynot.events import Seen, seen
from whimbrel.whynot.explanation import Reason
from whimbrel.whynot.rule_checks import RuleChecks
from whimbrel.whynot.words import clock

MOST_COMBINATIONS = 20_000
"""So many combinations of a detection's events are tried to find out which event filled which part."""


class Finish:
    """What becomes of complete matches of one pattern."""

    def __init__(self, candidates: CandidateSet) -> None:
        self.candidates = candidates
        self.op = candidates.op
        self.view = candidates.view
        self.stream = candidates.view.stream(candidates.op.name)

    # -- detected ----------------------------------------------------------------------------------------

    def is_detected(self, binding: Binding) -> bool:
        """Tell whether the engine reported a match."""
        if self.op.context is Context.CUMULATIVE:
            return any(self._contains(row, binding) for row in self._rows_with(binding))
        return self._identity(binding) in self._detected

    def _identity(self, binding: Binding) -> tuple[int, int]:
        high, low = self.candidates.hashes(binding)
        folded = fold(np.array([0, len(high)]), high, low)
        return int(folded[HASH[0]].values[0]), int(folded[HASH[1]].values[0])

    @cached_property
    def _detected(self) -> dict[tuple[int, int], int]:
        high, low = (self.stream.store.column(key, self.stream.new).values.tolist() for key in HASH)
        return dict(zip(zip(high, low, strict=True), self.stream.new.tolist(), strict=True))

    def _contains(self, row: int, binding: Binding) -> bool:
        """Tell whether a cumulative detection is also of the events of a match, at the same time."""
        atoms = frozenset(self.stream.store.lineage(np.array([row])).refs.tolist())
        _, end = self.stream.store.spans(np.array([row]))
        inside = all(self.candidates.atoms(bound.index) <= atoms for bound in binding.values())
        return inside and int(end[0]) == self.completion(binding)

    def completion(self, binding: Binding) -> int:
        """Tell when a match is complete: at its end, or at the last deadline of its absent parts."""
        start, end = self.candidates.span([bound.index for bound in binding.values()])
        deadlines = [self._deadline(each, binding, start) for each in self.op.absent if each.before is None]
        return max([end, *deadlines])

    def _deadline(self, absent: Absent, binding: Binding, start: int) -> int:
        if absent.duration is None or absent.after is None:
            return start + self.op.within
        return int(self.candidates.end[binding[absent.after].index]) + absent.duration

    # -- not detected ------------------------------------------------------------------------------------

    def reasons(self, group: CandidateGroup, binding: Binding) -> tuple[Reason, ...]:
        """Say why a complete match was not detected."""
        reasons = self.absences(group, binding)
        if reasons:
            return reasons
        if self.completion(binding) > self.view.watched.session.watermark:
            return (self._waiting(binding),)
        return (self._selected(group, binding) or self._consumed(binding) or self._passed_over(binding),)

    def absences(self, group: CandidateGroup, binding: Binding) -> tuple[Reason, ...]:
        """Name for each absent part that is violated the first event that did it."""
        reasons = []
        for number, absent in enumerate(self.op.absent):
            blocking = self._blocking(group, binding, number, absent)
            if len(blocking):
                reasons.append(self._present(number, absent, int(blocking[0])))
        return tuple(reasons)

    def _blocking(self, group: CandidateGroup, binding: Binding, number: int, absent: Absent) -> Int64Array:
        slot = self.candidates.absent_slot(number)
        indices = group.indices[slot]
        indices = indices[self._between(binding, absent, indices)]
        if not len(indices) or not absent.conditions:
            return indices
        frame = self.candidates.frame(binding, {slot: (slot, indices)}, len(indices))
        fits = np.ones(len(indices), np.bool_)
        for condition in absent.conditions:
            fits &= holds(condition, frame)
        return indices[fits]

    def _between(self, binding: Binding, absent: Absent, indices: Int64Array) -> np.ndarray:
        """Tell which events lie where the absent part must not occur."""
        begins, ends = self.candidates.start[indices], self.candidates.end[indices]
        start, end = self.candidates.span([bound.index for bound in binding.values()])
        inside = np.ones(len(indices), np.bool_)
        if absent.after is not None:
            inside &= begins > self.candidates.end[binding[absent.after].index]
        if absent.before is not None:
            inside &= ends < self.candidates.start[binding[absent.before].index]
            if absent.after is None:
                inside &= end - begins <= self.op.within
        else:
            inside &= ends <= self._deadline(absent, binding, start)
        return inside

    def _present(self, number: int, absent: Absent, index: int) -> Reason:
        slot = self.candidates.absent_slot(number)
        event = self.candidates.seen(BoundEvent(slot, index))
        return Reason(
            "present",
            f"{event} came {self._position(absent)}",
            self.candidates.name(slot),
            events=(event,),
        )

    def _position(self, absent: Absent) -> str:
        name = self.candidates.name
        if absent.after is not None and absent.before is not None:
            return f"between {name(absent.after)} and {name(absent.before)}"
        if absent.before is not None:
            return f"before {name(absent.before)}, within {format_duration(self.op.within)}"
        assert absent.after is not None
        if absent.duration is not None:
            return f"within {format_duration(absent.duration)} after {name(absent.after)}"
        return f"after {name(absent.after)}, within {format_duration(self.op.within)}"

    def _waiting(self, binding: Binding) -> Reason:
        due = clock(self.completion(binding))
        return Reason("waiting", f"everything is there; it is detected at {due} if nothing prevents it")

    # -- other combinations were preferred ---------------------------------------------------------------

    def _selected(self, group: CandidateGroup, binding: Binding) -> Reason | None:
        if len(self.op.parts) == 1 or self.op.context is Context.CHRONICLE:
            return None
        for part, member in enumerate(self.op.parts):
            if member.select is not Select.EACH:
                rival = self._rival(group, binding, part, member.select)
                if rival is not None:
                    event, name = self.candidates.seen(BoundEvent(part, rival)), self.candidates.name(part)
                    return Reason(
                        "selected", f"{member.select.value} {name} takes {event}", name, events=(event,)
                    )
        return None

    def _rival(self, group: CandidateGroup, binding: Binding, part: int, mark: Select) -> int | None:
        """Find the event that `first` or `last` prefers for a part, the others being the same."""
        others = {number: bound for number, bound in binding.items() if number != part}
        own = binding[part].index
        trigger = max(bound.index for bound in binding.values())
        indices = group.indices[part]
        indices = indices[indices < own if mark is Select.FIRST else (indices > own) & (indices <= trigger)]
        if not len(indices):
            return None
        fitting = RuleChecks(self.candidates, others, part, part, indices).fitting()
        for index in (fitting if mark is Select.FIRST else fitting[::-1]).tolist():
            if not self._violated_now(group, {**others, part: BoundEvent(part, index)}):
                return int(index)
        return None

    def _violated_now(self, group: CandidateGroup, binding: Binding) -> bool:
        """Tell whether an absence is violated that does not wait for a deadline."""
        return any(
            absent.before is not None and len(self._blocking(group, binding, number, absent)) > 0
            for number, absent in enumerate(self.op.absent)
        )

    def _consumed(self, binding: Binding) -> Reason | None:
        if not self.op.consuming and self.op.context in (Context.EACH, Context.RECENT):
            return None
        due = self.completion(binding)
        for row in self._rows_with(binding):
            taken = self._taken_by(row)
            for part, bound in binding.items():
                if int(self.candidates.ident[bound.index]) in taken and self._end(row) <= due:
                    event, by = self.candidates.seen(bound), self._seen_row(row)
                    text = f"{event} was used up by the detection of {by}"
                    return Reason("consumed", text, self.candidates.name(part), events=(event, by))
        return None

    def _taken_by(self, row: int) -> set[int]:
        """List the identities of the events that a detection used up."""
        if self.op.context is Context.CUMULATIVE:
            return {int(self.candidates.ident[index]) for index in self._inside(row)}
        binding = self.parts_of_detection(row)
        if binding is None:
            return set()
        parts = self.op.consuming or range(len(self.op.parts))
        return {int(self.candidates.ident[binding[part].index]) for part in parts}

    def _passed_over(self, binding: Binding) -> Reason:
        context = self.op.context
        if context is Context.RECENT:
            trigger = max(bound.index for bound in binding.values())
            for row in self._rows_with(binding):
                other = self.parts_of_detection(row)
                if other is not None and max(b.index for b in other.values()) == trigger:
                    by = self._seen_row(row)
                    return Reason("context", f"recent takes the newest combination: {by}", events=(by,))
        if context is Context.CHRONICLE:
            return Reason(
                "context",
                "chronicle tries only the oldest combination for its last event, which is another",
            )
        return Reason("context", f"the context {context.value} chose other combinations")

    # -- which event of a detection filled which part ----------------------------------------------------

    def parts_of_detection(self, row: int) -> Binding | None:
        """Find out which event filled which part; None if there are too many to try."""
        if row not in self._parts:
            self._parts[row] = self._find_parts(row)
        return self._parts[row]

    @cached_property
    def _parts(self) -> dict[int, Binding | None]:
        return {}

    def _find_parts(self, row: int) -> Binding | None:
        candidates = self.candidates
        inside = np.array(sorted(self._inside(row)), np.int64)
        choices = [inside[candidates.has(inside, part)].tolist() for part in range(len(self.op.parts))]
        if np.prod([float(len(choice)) for choice in choices]) > MOST_COMBINATIONS:
            return None
        for indices in product(*choices):
            binding = {part: BoundEvent(part, index) for part, index in enumerate(indices)}
            if self._detected.get(self._identity(binding)) == row:
                return binding
        return None

    def _atoms_of(self, row: int) -> frozenset[int]:
        return frozenset(self.stream.store.lineage(np.array([row])).refs.tolist())

    def _inside(self, row: int) -> set[int]:
        """Select the candidates that a detection is made of."""
        atoms = self._atoms_of(row)
        return {index for index in self._candidates_of(row) if self.candidates.atoms(index) <= atoms}

    def _candidates_of(self, row: int) -> set[int]:
        return {index for atom in self._atoms_of(row) for index in self._candidates_by_atom.get(atom, ())}

    def _rows_with(self, binding: Binding) -> list[int]:
        """Select the detections that share an atomic event with a match, in order."""
        atoms = {atom for bound in binding.values() for atom in self.candidates.atoms(bound.index)}
        return sorted({row for atom in atoms for row in self._rows_by_atom.get(atom, ())})

    @cached_property
    def _candidates_by_atom(self) -> dict[int, list[int]]:
        by_atom: dict[int, list[int]] = defaultdict(list)
        parts = np.uint64((1 << len(self.op.parts)) - 1)
        for index in np.flatnonzero(self.candidates.mask & parts).tolist():
            for atom in self.candidates.atoms(index):
                by_atom[atom].append(index)
        return by_atom

    @cached_property
    def _rows_by_atom(self) -> dict[int, list[int]]:
        by_atom: dict[int, list[int]] = defaultdict(list)
        lineage = self.stream.store.lineage(self.stream.new)
        for number, row in enumerate(self.stream.new.tolist()):
            for atom in lineage.refs[lineage.offsets[number] : lineage.offsets[number + 1]].tolist():
                by_atom[atom].append(row)
        return by_atom

    def _end(self, row: int) -> int:
        return int(self.stream.store.spans(np.array([row]))[1][0])

    def _seen_row(self, row: int) -> Seen:
        return seen(self.view.context, self.stream, row, self.op.name)
