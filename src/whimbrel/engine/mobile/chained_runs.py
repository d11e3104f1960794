"""Strong completeness: interests in one area share a run, whoever has them and whenever they begin.

What an operator that uses events up, or that knows where a mover was before, finds depends on where its run
began. With strong completeness that is the beginning of an unbroken *chain* of interests in the same area:
the run goes on until nobody can look back at it any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.found_lately import FoundLately
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.monitor import Fed
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


@dataclass(slots=True)
class ChainedRuns:
    """Runs that are shared by the interests in one area; they take the place of cohorts.

    A chain is, to the cohorts, one interest that lasts as long as the chain.
    """

    cohorts: Cohorts
    lifetime: int
    kept: int
    """How long after an interest another one may begin that still shares its run."""
    chains: Interests | None = None
    """The chains that are unbroken: `obj` is the number of each, `end` when its last interest ended."""
    lately: FoundLately = field(default_factory=FoundLately)
    """What was found lately, by the numbers of chains."""
    begun: int = 0
    watermark: int = BEGINNING_OF_TIME
    joined: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The interests of the last step that begin, and share a run which was there already."""

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return self.cohorts.due

    @property
    def fed(self) -> Fed:
        """What the last step streamed into the runs, which are nobody's alone."""
        return replace(self.cohorts.fed, is_by_interest=False, joined=self.joined)

    def step(
        self, of: Interests, since: Int64Array, before: int, watermark: int
    ) -> tuple[Int64Array, list[Told]]:
        """Let time pass from one watermark to another for interests; give their chains and what is new."""
        self.watermark = watermark
        chain = self._linked(of)
        if self.chains is None:
            return chain, []
        fresh = self.chains.member == NOBODY
        first = np.where(fresh, self.chains.start - self.lifetime, before + 1)
        running = replace(self.chains, end=np.full(len(self.chains), END_OF_TIME))
        members, told = self.cohorts.step(running, first, before, watermark)
        self.lately.add(replace(each, interest=self.chains.obj[each.interest]) for each in told)
        self.chains = replace(self.chains, member=members)
        until = np.minimum(of.end, watermark + 1)
        return chain, self.lately.told_of(of, np.arange(len(of)), chain, since, until)

    def take_in(self) -> None:
        """Add what is new to the histories."""
        self.cohorts.take_in()

    def _linked(self, of: Interests) -> Int64Array:
        """Give the chain of each interest; one that follows none begins one."""
        chain, areas = of.member.copy(), _keys(of.areas)
        ends: dict[int, int] = {}
        latest: dict[bytes, int] = {}
        if self.chains is not None:
            ends = dict(zip(self.chains.obj.tolist(), self.chains.end.tolist(), strict=True))
            latest = dict(zip(_keys(self.chains.areas), self.chains.obj.tolist(), strict=True))
        last = dict(ends)
        for place in np.flatnonzero(chain != NOBODY).tolist():
            last[int(chain[place])] = max(last[int(chain[place])], int(of.end[place]))
        begun: list[int] = []
        fresh = np.flatnonzero(chain == NOBODY)
        for place in fresh[np.argsort(of.start[fresh], kind="stable")].tolist():
            number = latest.get(areas[place])
            if number is None or last[number] + self.kept < int(of.start[place]):
                number, self.begun = self.begun, self.begun + 1
                latest[areas[place]] = number
                ends[number] = last[number] = BEGINNING_OF_TIME
                begun.append(place)
            chain[place] = number
            last[number] = max(last[number], int(of.end[place]))
        for place in np.flatnonzero(of.end <= self.watermark).tolist():
            ends[int(chain[place])] = max(ends[int(chain[place])], int(of.end[place]))
        self._begin(of, chain, begun, ends)
        self.joined = np.setdiff1d(fresh, np.array(begun, np.int64))
        return chain

    def _begin(self, of: Interests, chain: Int64Array, begun: list[int], ends: dict[int, int]) -> None:
        """Add the chains that begin, and say of all when their last interests ended."""
        fresh = of.take(np.array(begun, np.int64))
        fresh = replace(fresh, obj=chain[np.array(begun, np.int64)], member=np.full(len(begun), NOBODY))
        chains = fresh if self.chains is None else Interests.concat([self.chains, fresh])
        self.chains = replace(chains, end=np.array([ends[each] for each in chains.obj.tolist()], np.int64))

    def keep(self, current: Int64Array) -> None:
        """Let go of runs at which nobody can look back any more, given the chains of current interests."""
        if self.chains is None:
            return
        lasts = self.chains.end + self.kept >= self.watermark
        self.chains = self.chains.take(lasts | np.isin(self.chains.obj, current))
        self.cohorts.keep(self.chains.member)

    def forget_before(self, time: int) -> None:
        """Let go of what no interest can look back at."""
        self.cohorts.forget_before(time)
        self.lately.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the chains, their runs, and what was found lately."""
        about = {"begun": self.begun, "chains": self.chains is not None}
        blocks.put_json(name, {**about, "watermark": self.watermark})
        self.cohorts.save(blocks, f"{name}/cohorts")
        if self.chains is not None:
            self.chains.save(blocks, f"{name}/chains")
        self.lately.save(blocks, f"{name}/lately")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self.begun, self.watermark = about["begun"], about["watermark"]
        self.cohorts.load(blocks, f"{name}/cohorts")
        self.chains = Interests.load(blocks, f"{name}/chains") if about["chains"] else None
        self.lately.load(blocks, f"{name}/lately")


def _keys(areas: AreaSet) -> list[bytes]:
    """Give each area a key that no other area has."""
    keys = [kind.tobytes() + row.tobytes() for kind, row in zip(areas.kind, areas.numbers, strict=True)]
    for place in np.flatnonzero(areas.rings >= 0).tolist():
        first = int(areas.rings[place])
        keys[place] += areas.corners[first : first + 1 + 2 * int(areas.corners[first])].tobytes()
    return keys
