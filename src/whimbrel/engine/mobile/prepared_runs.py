"""Runs that are prepared for predicted areas: when an object comes, they have dealt with history already.

To the cohorts a candidate is an interest that has not begun. What is found for it is kept, in case it takes
over; what nobody takes over is let go of.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.mobile.predicted import Candidates
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array
from whimbrel.model.time import END_OF_TIME


class PreparedRuns:
    """The prepared members of the cohorts of a query."""

    def __init__(self) -> None:
        self.found: list[Told] = []
        """What was found for candidates lately; each row has its member in place of the interest."""

    def step(
        self,
        cohorts: Cohorts,
        of: Interests,
        since: Int64Array,
        candidates: Candidates | None,
        before: int,
        watermark: int,
        lifetimes: Int64Array,
    ) -> tuple[Int64Array, list[Told], Candidates | None]:
        """Let time pass for interests and for candidates; give the members of both, and what is told.

        An interest that a candidate stands for has its member already: what was found for that in the
        lifetime of the interest is told with what is new.
        """
        told = self._taken_over(of, since, before)
        if candidates is None or not len(candidates):
            member, new = cohorts.step(of, since, before, watermark)
            return member, told + new, candidates
        ahead = _as_interests(candidates, lifetimes)
        fresh = candidates.member == NOBODY
        first = np.where(fresh, watermark + 1 - lifetimes, before + 1)
        both, firsts = Interests.concat([of, ahead]), np.concatenate([since, first])
        member, found = cohorts.step(both, firsts, before, watermark)
        cohorts.fed = cohorts.fed.of_first(len(of))
        for each in found:
            is_told = each.interest < len(of)
            told.append(each.take(np.flatnonzero(is_told)))
            kept = each.take(np.flatnonzero(~is_told))
            self.found.append(replace(kept, interest=member[kept.interest]))
        return member[: len(of)], told, replace(candidates, member=member[len(of) :])

    def _taken_over(self, of: Interests, since: Int64Array, before: int) -> list[Told]:
        """Tell of interests that candidates stand for what was found for these."""
        begun = np.flatnonzero((of.start > before) & (of.member != NOBODY))
        if not len(begun):
            return []
        order = begun[np.argsort(of.member[begun])]
        members = of.member[order]
        told = []
        for lot in self.found:
            at = np.minimum(np.searchsorted(members, lot.interest), len(members) - 1)
            place = order[at]
            counts = (members[at] == lot.interest) & (lot.known >= since[place]) & (lot.known < of.end[place])
            some = lot.take(np.flatnonzero(counts))
            told.append(Told.added(some.table, some.row, some.key, place[counts], some.known, of))
        return told

    def forget(self, candidates: Candidates | None, time: int) -> None:
        """Let go of what was found for candidates that are no more, or before a time."""
        members = np.zeros(0, np.int64) if candidates is None else candidates.member
        kept = (
            each.take(np.flatnonzero(np.isin(each.interest, members) & (each.known >= time)))
            for each in self.found
        )
        self.found = [each for each in kept if len(each)]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what was found for candidates."""
        blocks.put_json(name, len(self.found))
        for number, each in enumerate(self.found):
            each.save(blocks, f"{name}/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.found = [Told.load(blocks, f"{name}/{number}") for number in range(blocks.json(name))]


def _as_interests(candidates: Candidates, lifetimes: Int64Array) -> Interests:
    return Interests(
        obj=candidates.obj,
        number=candidates.number,
        start=candidates.since,
        end=np.full(len(candidates), END_OF_TIME),
        lifetime=lifetimes,
        member=candidates.member,
        candidate=np.full(len(candidates), AROUND_OBJECT, np.int64),
        areas=candidates.areas,
    )
