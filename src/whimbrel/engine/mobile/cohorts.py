"""Finds for each interest what depends on all the events in it: absences, aggregates, operators in Python.

The interests that begin in one step are the members of a *cohort*: one run, to which history is fed once for
all of them, each event to those in whose interest it lies, and then what happens live. A cohort goes on until
the last of its members has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from whimbrel.engine.copies import BITS
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.history import History
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.member_pipeline import MemberPipeline
from whimbrel.engine.mobile.reporting import apart_from_deliveries, detection_keys
from whimbrel.engine.report import report
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.model.time import END_OF_TIME

NOBODY = -1
"""The member that an interest is while it takes part in no cohort."""
MOST_COPIES = 1 << 22
"""About so many copies of history are fed to one cohort; if there are more, several cohorts begin."""
MANY = 16
"""More cohorts than this are made into one, where that may be: each costs something in every step."""
_NUMBER = (1 << BITS) - 1


@dataclass(slots=True)
class Cohort:
    """Members that share a run."""

    pipeline: MemberPipeline
    size: int
    """How many members it has, those that have ended too."""


@dataclass(slots=True)
class Cohorts:
    """All cohorts of a mobile query."""

    start: Callable[[], MemberPipeline]
    histories: list[History]
    """The streams that a run takes, in the order in which it takes them."""
    shares: bool
    """Whether members can share a run; else each has one of its own."""
    bounded: bool
    """Whether a run may begin anywhere, so that members can go on in another cohort."""
    running: dict[int, Cohort] = field(default_factory=dict)
    begun: int = 0

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min((each.pipeline.due for each in self.running.values()), default=END_OF_TIME)

    def step(
        self, of: Interests, since: Int64Array, before: int, watermark: int
    ) -> tuple[Int64Array, list[Told]]:
        """Let time pass from one watermark to another for some interests; give their members and what is new.

        Those that are nobody's yet begin. Told is what is known from `since` on and before they end.
        """
        self.take_in()
        member = of.member.copy()
        fresh = np.flatnonzero(member == NOBODY)
        older = np.flatnonzero(member != NOBODY)
        if self.bounded and self.shares and len(older) and len(self.running) > MANY:
            member[older] = self._begin(of.take(older), np.full(len(older), before + 1), watermark)
            self.running = {
                number: self.running[number] for number in np.unique(member[older] >> BITS).tolist()
            }
        elif len(older):
            self._go_on(of.take(older), before, watermark)
        if len(fresh):
            member[fresh] = self._begin(of.take(fresh), since[fresh], watermark)
        return member, list(self._found(of, member, since, watermark))

    def take_in(self) -> None:
        """Add what is new to the histories."""
        for history in self.histories:
            history.take_in()

    # -- events --------------------------------------------------------------------------------------------

    def _begin(self, of: Interests, since: Int64Array, watermark: int) -> Int64Array:
        """Begin cohorts for some interests, and feed them the history that decides on what is known since."""
        until = np.minimum(of.end, watermark + 1)
        member = np.empty(len(of), np.int64)
        for lot in self._lots(of, since, until):
            some = of.take(lot)
            copies = []
            for history in self.histories:
                which, rows = history.find(some, since[lot] - history.back, until[lot])
                copies.append(np.sort((rows << BITS) | which))
            pipeline = self.start()
            pipeline.feed(copies)
            self.running[self.begun] = Cohort(pipeline, len(lot))
            member[lot] = (self.begun << BITS) | np.arange(len(lot))
            self.begun += 1
        return member

    def _lots(self, of: Interests, since: Int64Array, until: Int64Array) -> list[Int64Array]:
        """Part interests into lots whose history can be fed at once."""
        if not self.shares:
            return [np.array([place]) for place in range(len(of))]
        copies = np.zeros(len(of), np.int64)
        for history in self.histories:
            copies += history.count(of, since - history.back, until)
        lots = np.cumsum(copies) // MOST_COPIES
        return np.split(np.arange(len(of)), np.flatnonzero(np.diff(lots)) + 1)

    def _go_on(self, of: Interests, before: int, watermark: int) -> None:
        """Feed what is new to the cohorts that are there."""
        since, until = np.full(len(of), before + 1), np.minimum(of.end, watermark + 1)
        fed: dict[int, list[Int64Array]] = {}
        for place, history in enumerate(self.histories):
            which, rows = history.find(of, since, until)
            for cohort, copies in _by_cohort(of.member[which], rows):
                fed.setdefault(cohort, [_NO_COPIES] * len(self.histories))[place] = copies
        for cohort, each in fed.items():
            self.running[cohort].pipeline.feed(each)

    # -- detections ----------------------------------------------------------------------------------------

    def _found(self, of: Interests, member: Int64Array, since: Int64Array, watermark: int) -> Iterator[Told]:
        order = np.argsort(member, kind="stable")
        numbers = member[order] >> BITS
        for number, cohort in self.running.items():
            low, high = np.searchsorted(numbers, [number, number + 1])
            place = np.full(cohort.size, NOBODY, np.int64)
            place[member[order[low:high]] & _NUMBER] = order[low:high]
            for _ in cohort.pipeline.advance(watermark):
                for stream in cohort.pipeline.outputs:
                    told = _told(cohort.pipeline, stream, place, of, since)
                    if told is not None:
                        yield told

    def keep(self, member: Int64Array) -> None:
        """Let go of cohorts that have no member left."""
        live = set(np.unique(member >> BITS).tolist())
        self.running = {number: cohort for number, cohort in self.running.items() if number in live}

    def forget_before(self, time: int) -> None:
        """Let go of what no interest can look back at."""
        for history in self.histories:
            history.forget_before(time - history.back)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the cohorts and what they take."""
        sizes = {str(number): cohort.size for number, cohort in self.running.items()}
        blocks.put_json(name, {"begun": self.begun, "sizes": sizes})
        for place, history in enumerate(self.histories):
            history.save(blocks, f"{name}/history/{place}")
        for number, cohort in self.running.items():
            cohort.pipeline.save(blocks, f"{name}/cohort/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self.begun = about["begun"]
        for place, history in enumerate(self.histories):
            history.load(blocks, f"{name}/history/{place}")
        self.running = {}
        for number, size in about["sizes"].items():
            pipeline = self.start()
            pipeline.load(blocks, f"{name}/cohort/{number}")
            self.running[int(number)] = Cohort(pipeline, size)


_NO_COPIES = np.zeros(0, np.int64)


def _by_cohort(member: Int64Array, rows: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """Part rows by the cohorts of the members that they are for, as sorted copies."""
    if not len(rows):
        return
    copies = (rows << BITS) | (member & _NUMBER)
    cohort = member >> BITS
    order = np.lexsort((copies, cohort))
    cohort, copies = cohort[order], copies[order]
    begins = np.flatnonzero(np.append(True, cohort[1:] != cohort[:-1]))
    for begin, some in zip(begins.tolist(), np.split(copies, begins[1:]), strict=True):
        yield int(cohort[begin]), some


def _told(
    pipeline: MemberPipeline, stream: OperatorStream, place: Int64Array, of: Interests, since: Int64Array
) -> Told | None:
    """Tell what is new in an output of a cohort, of the interests of a step."""
    rows = stream.new
    if not len(rows):
        return None
    at = place[pipeline.members(stream, rows)]
    known = pipeline.known(stream, rows)
    counts = (at != NOBODY) & (known >= since[at]) & (known < of.end[at])
    if not counts.any():
        return None
    rows, at, known = rows[counts], at[counts], known[counts]
    table = apart_from_deliveries(report(stream, rows, pipeline.context))
    keys = detection_keys(pipeline.context, stream, rows)
    return Told.added(table, np.arange(len(rows)), keys, at, known, of)
