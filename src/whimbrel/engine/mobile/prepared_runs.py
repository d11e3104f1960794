"""Runs that are prepared for predicted areas: when an object comes, they have dealt with history already.

To the cohorts a candidate is an interest that has not begun. What is found for it is kept, in case it takes
over; what nobody takes over is let go of.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.found_lately import FoundLately
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.mobile.predicted import CandidateAreas
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array
from whimbrel.model.time import END_OF_TIME


class PreparedRuns:
    """The prepared members of the cohorts of a query."""

    def __init__(self) -> None:
        self.found = FoundLately()
        """What was found for candidates lately, by member."""

    def step(
        self,
        cohorts: Cohorts,
        of: Interests,
        since: Int64Array,
        candidates: CandidateAreas | None,
        before: int,
        watermark: int,
        lifetimes: Int64Array,
    ) -> tuple[Int64Array, list[Told], CandidateAreas | None]:
        """Let time pass for interests and for candidates; give the members of both, and what is told.

        An interest that a candidate stands for has its member already: what was found for that in the
        lifetime of the interest is told with what is new.
        """
        begun = np.flatnonzero((of.start > before) & (of.member != NOBODY))
        told = self.found.told_of(of, begun, of.member, since, of.end)
        if candidates is None or not len(candidates):
            member, new = cohorts.step(of, since, before, watermark)
            return member, told + new, candidates
        ahead = _as_interests(candidates, lifetimes)
        fresh = candidates.member == NOBODY
        first = np.where(fresh, watermark + 1 - lifetimes, before + 1)
        both, firsts = Interests.concat([of, ahead]), np.concatenate([since, first])
        member, found = cohorts.step(both, firsts, before, watermark, ahead=len(ahead))
        cohorts.fed = cohorts.fed.of_first(len(of))
        self.found.renumber(candidates.member[~fresh], member[len(of) :][~fresh])
        for each in found:
            is_told = each.interest < len(of)
            told.append(each.take(np.flatnonzero(is_told)))
            kept = each.take(np.flatnonzero(~is_told))
            self.found.add([replace(kept, interest=member[kept.interest])])
        return member[: len(of)], told, replace(candidates, member=member[len(of) :])

    def forget(self, candidates: CandidateAreas | None, time: int) -> None:
        """Let go of what was found for candidates that are no more, or before a time."""
        members = np.zeros(0, np.int64) if candidates is None else candidates.member
        self.found.keep(members, time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what was found for candidates."""
        self.found.save(blocks, name)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.found.load(blocks, name)


def _as_interests(candidates: CandidateAreas, lifetimes: Int64Array) -> Interests:
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
