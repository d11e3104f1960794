"""Which selections stand for similar ones (`reuse similar`), decided by event time alone.

Selections that become complete at the same time are compared with each other, those of all interests that are
current then; and of what is history to interests that begin at the same time, those that were complete at the
same time before. So nobody waits, and who stands for whom does not depend on how events came in. Operators go
by how many events they have in common with others (MNH), then by the keys of their objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whimbrel.engine.copies import BITS
from whimbrel.engine.mobile.borrowed import BorrowedDetection
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.mobile.member_operators import MemberCustomRuntime
from whimbrel.engine.mobile.member_pipeline import MemberPipeline, advance_together
from whimbrel.engine.mobile.member_steps import SelectionReuse, WaitingSelection
from whimbrel.engine.mobile.reporting import places_of_atoms
from whimbrel.engine.mobile.reuse import (
    EventSets,
    Selections,
    Tolerance,
    disparity,
    maximum_neighbour_cover_of,
    similarity,
)
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.operators.custom.runtime import Key
from whimbrel.engine.operators.custom.steps import Emitted
from whimbrel.engine.row_store import Lineage, different
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import Quality
from whimbrel.graph.mobile.knowing import known_when

NOBODY = -1


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A selection that waits, and whose it is."""

    runtime: MemberCustomRuntime
    key: Key
    selection: WaitingSelection
    place: int
    """Its interest, among those of the step."""

    @property
    def atoms(self) -> Int64Array:
        """Give the atomic events that it is made of."""
        refs = [item.refs for item in self.selection.stamp.items.values()]
        return np.concatenate(refs) >> BITS

    def process(self) -> list[Emitted]:
        """Process it, unless an equal one was processed."""
        return self.selection.steps.process_now(self.selection)


@dataclass(frozen=True, slots=True)
class Step:
    """What a step is about."""

    of: Interests
    member: Int64Array
    since: Int64Array
    """From when on what is known is told of each interest."""
    places: Mapping[int, Int64Array]
    """For each cohort, the interests that are its members, in the order of these."""
    ahead: int
    """So many of the interests, the last ones, are prepared for areas that may never be used."""

    def places_of(self, cohort: int, members: Int64Array) -> Int64Array:
        """Give the interests that some members of a cohort are; `NOBODY` where they are none any more."""
        places = self.places[cohort]
        if not len(places):
            return np.full(len(members), NOBODY, np.int64)
        known, wanted = self.member[places], (cohort << BITS) | members
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[at] == wanted, places[at], NOBODY)


class SimilarSelections:
    """Lets selections of the members of all cohorts stand for each other.

    Parameters
    ----------
    quality
        What precision and recall have to be more than.
    keys
        The objects that are followed.
    """

    def __init__(
        self, quality: Quality, reuse: SelectionReuse, keys: FocalKeys, events: SourceEvents
    ) -> None:
        self._quality = quality
        self._reuse = reuse
        self._keys = keys
        self._events = events

    def advance(self, runs: Mapping[int, MemberPipeline], step: Step, watermark: int) -> Iterator[int]:
        """Let time pass in all cohorts; give the number of one whenever its outputs are to be looked at."""

        def settle(name: str, runtimes: Mapping[int, MemberCustomRuntime]) -> None:
            if name in self._reuse.similar:
                self._settle(runtimes, step)

        yield from advance_together(runs, watermark, settle)

    def _settle(self, runtimes: Mapping[int, MemberCustomRuntime], step: Step) -> None:
        """Decide about what waits in some runs of an operator, and let them go on."""
        waiting: list[_Waiting] = []
        for number, runtime in runtimes.items():
            some = runtime.take_waiting()
            members = np.array([runtime.member(key) for key, _ in some], np.int64)
            places = step.places_of(number, members).tolist()
            waiting += [
                _Waiting(runtime, key, one, place) for (key, one), place in zip(some, places, strict=True)
            ]
        if not waiting:
            return
        self._reuse.selections += len(waiting)
        found: dict[int, list[tuple[Key, Emitted]]] = {id(runtime): [] for runtime in runtimes.values()}
        for group in self._groups(waiting, step):
            for one, emitted in self._found(group, step):
                found[id(one.runtime)] += [(one.key, each) for each in emitted]
        for runtime in runtimes.values():
            runtime.settle(found[id(runtime)])

    def _groups(self, waiting: Sequence[_Waiting], step: Step) -> Iterator[list[_Waiting]]:
        """Part what waits into groups that are decided about together; what nobody is told is left out."""
        place = np.array([one.place for one in waiting], np.int64)
        moment = np.array([one.selection.stamp.moment for one in waiting], np.int64)
        runtime = waiting[0].runtime
        known = known_when(runtime.graph, runtime.op, moment)
        of, start = step.of, step.of.start[place]
        is_told = (place != NOBODY) & (known >= step.since[place]) & (known < of.end[place])
        is_predicted = (of.candidate[place] != AROUND_OBJECT) & (known < start)
        alone = is_predicted | (place >= len(of) - step.ahead)
        available = np.maximum(known, start)
        order = np.lexsort((of.number[place], self._ranks(of)[place], moment, available))
        groups: dict[tuple[object, ...], list[_Waiting]] = {}
        for at in order[is_told[order]].tolist():
            one = waiting[at]
            own = (at,) if alone[at] else ()
            name = (int(available[at]), int(moment[at]), one.selection.partition, *own)
            groups.setdefault(name, []).append(one)
        yield from groups.values()

    def _ranks(self, of: Interests) -> Int64Array:
        """Rank interests by the keys of their objects, which are numbered as they happened to come."""
        keys = self._keys.values()
        names = np.array([str(keys[obj]) if 0 <= obj < len(keys) else "" for obj in of.obj.tolist()])
        ranks: Int64Array = np.unique(names, return_inverse=True)[1].astype(np.int64)
        return ranks

    def _found(self, group: list[_Waiting], step: Step) -> Iterator[tuple[_Waiting, list[Emitted]]]:
        """Process some selections of a group, and tell the others what is found in them."""
        places, owner = np.unique([one.place for one in group], return_inverse=True)
        if len(places) == 1:
            for one in group:
                yield one, one.process()
            return
        # Owners are numbered as the group is in order, for the sake of those of one priority.
        owner, places = _numbered(owner, places)
        atoms = EventSets.of_pairs(*_pairs([one.atoms for one in group]), len(group))
        agreed = Tolerance.same(len(places), self._quality.precision, self._quality.recall)
        cover = maximum_neighbour_cover_of(Selections(owner, atoms), agreed, _in_common(atoms, owner))
        processed = {at: group[at].process() for at in np.flatnonzero(cover.may_process).tolist()}
        for at, found in processed.items():
            yield group[at], found
        readers = np.flatnonzero(~cover.may_process)
        readers = readers[_first_of_pairs(owner[readers], cover.by[readers])]
        self._reuse.reused += int(np.count_nonzero(~cover.may_process))
        by = cover.by[readers]
        precision, recall = similarity(atoms, readers, by)
        apart = self._disparity(atoms.take(by), owner[readers], owner[by], places, step.of)
        for n, (at, other) in enumerate(zip(readers.tolist(), by.tolist(), strict=True)):
            similar = (float(precision[n]), float(recall[n]), float(apart[n]))
            one, obj = group[at], int(step.of.obj[group[other].place])
            member = one.runtime.member(one.key)
            yield one, [BorrowedDetection.of(each, member, similar, obj) for each in processed[other]]

    def _disparity(
        self, atoms: EventSets, mine: Int64Array, others: Int64Array, places: Int64Array, of: Interests
    ) -> FloatArray:
        """Tell how far one's own interest and that of what was processed differ on the events of this."""
        if not len(mine):
            return np.zeros(0)
        rows, event = different(atoms.ids)
        pairs = len(rows) * len(places)
        which, at = np.divmod(np.arange(pairs), len(rows))
        held = places_of_atoms(self._events, Lineage.single(rows), None).take(at)
        inside = held.all_in(of.areas, places[which], None)
        holders = EventSets.of_pairs(at[inside], which[inside], len(rows))
        reader = np.arange(len(mine))
        used = EventSets.of_pairs(np.append(reader, reader), np.append(mine, others), len(mine))
        return disparity(EventSets(atoms.offsets, event), used, holders)


def _numbered(owner: Int64Array, places: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Give owners numbers, in the order in which they come first."""
    first = np.unique(owner, return_index=True)[1]
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[owner], places[order]


def _pairs(atoms: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
    rows = np.repeat(np.arange(len(atoms)), [len(each) for each in atoms])
    return rows, np.concatenate(atoms)


def _in_common(atoms: EventSets, owner: Int64Array) -> FloatArray:
    """Give the priority of owners: how many events they have in common with other selections."""
    event = different(atoms.ids)[1]
    others = np.bincount(event)[event] - 1
    sums = np.bincount(owner[atoms.rows], weights=others, minlength=int(owner.max()) + 1)
    return sums.astype(np.float64)


def _first_of_pairs(owner: Int64Array, by: Int64Array) -> BoolArray:
    """Mark the first of several selections of one owner for which the same one stands: all are told once."""
    first = np.zeros(len(owner), np.bool_)
    first[np.unique(owner * (int(by.max(initial=0)) + 1) + by, return_index=True)[1]] = True
    return first
