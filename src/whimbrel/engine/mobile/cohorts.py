"""Finds for each interest what depends on all the events in it: absences, aggregates, operators in Python.

The interests that begin in one step are the members of a *cohort*: one run, to which history is fed once for
all of them, each event to those in whose interest it lies, and then what happens live. A cohort goes on until
the last of its members has ended.

An interest that begins with the very events which the one before it had needs no run of its own: it takes the
place of that one, and what was found in its lifetime is told again (Lemma 2 of the thesis).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import thread_time_ns

import numpy as np

from whimbrel.engine.copies import BITS
from whimbrel.engine.mobile.borrowed import with_borrowed
from whimbrel.engine.mobile.deliveries import ADDED, Told
from whimbrel.engine.mobile.found_lately import FoundLately, told_of_runs
from whimbrel.engine.mobile.history import EventHistory, GivenHistory, History
from whimbrel.engine.mobile.interests import Interests, followers, predecessors
from whimbrel.engine.mobile.member_pipeline import MemberPipeline
from whimbrel.engine.mobile.monitor import Fed, rows_taken
from whimbrel.engine.mobile.reporting import detection_keys
from whimbrel.engine.mobile.similar_selections import SimilarSelections, Step
from whimbrel.engine.report import apart_from_deliveries, report
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import BoolArray, Int64Array
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

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
    merges: bool = True
    """Whether many cohorts are made into one, where they can be."""
    keeps_runs: bool = False
    """Whether an interest that begins with the events of the one before it keeps the run, where it can."""
    lately: FoundLately = field(default_factory=FoundLately)
    """What was found lately, by member, where runs are kept."""
    running: dict[int, Cohort] = field(default_factory=dict)
    begun: int = 0
    similar: SimilarSelections | None = None
    """What lets selections of one member stand for those of another one, where that is allowed."""
    fed: Fed = field(default_factory=Fed.nothing)
    """What the last step streamed into them."""

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min((each.pipeline.due for each in self.running.values()), default=END_OF_TIME)

    def step(
        self, of: Interests, since: Int64Array, before: int, watermark: int, *, ahead: int = 0
    ) -> tuple[Int64Array, list[Told]]:
        """Let time pass from one watermark to another for some interests; give their members and what is new.

        Those that are nobody's yet begin. Told is what is known from `since` on and before they end. The last
        ones, `ahead`, are prepared for areas that may never be used.
        """
        self.take_in()
        self.fed, first = Fed.nothing(len(of)), self.begun
        root = self._kept_runs(of)
        joined = np.flatnonzero(root != np.arange(len(of)))
        member = of.member.copy()
        older = np.flatnonzero(member != NOBODY)
        if self.merges and self.bounded and self.shares and len(older) and len(self.running) > MANY:
            member[older] = self._merge(of.take(older), before, watermark, older)
            first = self.begun
        elif len(older):
            self._go_on(of.take(older), np.full(len(older), before + 1), watermark, older)
        began = thread_time_ns()
        fresh = np.flatnonzero((member == NOBODY) & (root == np.arange(len(of))))
        if len(fresh):
            member[fresh] = self._begin(of.take(fresh), since[fresh], watermark, fresh)
        member = member[root]
        if len(joined):
            some = replace(of.take(joined), member=member[joined])
            self._go_on(some, some.start, watermark, joined)
        self.fed.processor += thread_time_ns() - began
        self.fed.begun, self.fed.joined = self.begun - first, joined
        found = list(self._found(of, member, since, watermark, first, ahead))
        told = self.lately.told_of(of, joined, member, since, of.end)
        told += told_of_runs(found, of, np.arange(len(of)), member, since, of.end)
        if self._may_keep_runs:
            self.lately.add(found)
        return member, told

    def take_in(self) -> None:
        """Add what is new to the histories."""
        for history in self.histories:
            history.take_in()

    # -- runs that are kept --------------------------------------------------------------------------------

    @property
    def _may_keep_runs(self) -> bool:
        return self.keeps_runs and self.bounded

    def _kept_runs(self, of: Interests) -> Int64Array:
        """Tell of each interest whose run it has: its own, or that of another one, which it takes over.

        A run is taken over from the interest before it, if both have the same events up to the switch, from
        the first on that may decide about what is told.
        """
        root = np.arange(len(of))
        if not self._may_keep_runs:
            return root
        earlier = predecessors(followers(of))
        new = np.flatnonzero((of.member == NOBODY) & (earlier >= 0))
        new = new[of.lifetime[new] <= of.lifetime[earlier[new]]]
        for history in self.histories if len(new) else ():
            new = new[_have_same_rows(history, of.take(earlier[new]), of.take(new))]
        root[new] = earlier[new]
        while len(new) and (root[root] != root).any():
            root = root[root]
        return root

    # -- events --------------------------------------------------------------------------------------------

    def _begin(
        self, of: Interests, since: Int64Array, watermark: int, places: Int64Array, *, again: bool = False
    ) -> Int64Array:
        """Begin cohorts for some interests, and feed history to them.

        History is all that decides about what is known from `since` on. `places` is where the interests stand
        among those of the step; `again` says that they go on from `since`, and had other cohorts before.
        """
        until = np.minimum(of.end, watermark + 1)
        member = np.empty(len(of), np.int64)
        for lot in self._lots(of, since, until):
            some = of.take(lot)
            copies = []
            for history in self.histories:
                which, rows = history.find(some, since[lot] - history.back, until[lot])
                self._count(history, places[lot], which, rows, (since if again else of.start)[lot], again)
                copies.append(np.sort((rows << BITS) | which))
            pipeline = self.start()
            pipeline.feed(copies)
            self.running[self.begun] = Cohort(pipeline, len(lot))
            member[lot] = (self.begun << BITS) | np.arange(len(lot))
            self.begun += 1
        return member

    def _merge(self, of: Interests, before: int, watermark: int, places: Int64Array) -> Int64Array:
        """Let all interests go on in new cohorts, as few as possible."""
        since, first = np.full(len(of), before + 1), self.begun
        member = self._begin(of, since, watermark, places, again=True)
        self.running = {number: each for number, each in self.running.items() if number >= first}
        self.lately.renumber(of.member, member)
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

    def _count(
        self,
        history: History,
        places: Int64Array,
        which: Int64Array,
        rows: Int64Array,
        live: Int64Array | None,
        again: bool = False,
    ) -> None:
        """Count what is streamed, which is live from some time on (None: all of it).

        What is older is history, or it was streamed to earlier cohorts and is `again`.
        """
        if isinstance(history, GivenHistory):
            self.fed.derived += len(rows)
        if not isinstance(history, EventHistory) or not len(rows):
            return
        counts = np.bincount(which, minlength=len(places))
        if live is not None:
            is_old = rows < history.first_at(live)[which]
            old = np.bincount(which[is_old], minlength=len(places))
            counts -= old
            if again:
                self.fed.again += int(old.sum())
            else:
                self.fed.historical[places] += old
        self.fed.live[places] += counts

    def _go_on(self, of: Interests, since: Int64Array, watermark: int, places: Int64Array) -> None:
        """Feed what happens from some time on to the cohorts that are there."""
        until = np.minimum(of.end, watermark + 1)
        fed: dict[int, list[Int64Array]] = {}
        for place, history in enumerate(self.histories):
            which, rows = history.find(of, since, until)
            self._count(history, places, which, rows, None)
            for cohort, copies in _by_cohort(of.member[which], rows):
                fed.setdefault(cohort, [_NO_COPIES] * len(self.histories))[place] = copies
        for cohort, each in fed.items():
            self.running[cohort].pipeline.feed(each)

    # -- detections ----------------------------------------------------------------------------------------

    def _found(
        self, of: Interests, member: Int64Array, since: Int64Array, watermark: int, first: int, ahead: int
    ) -> Iterator[Told]:
        """Run all cohorts, and give what they find for anybody, by member.

        `first` is the first of those that begin.
        """
        places = self._places(member)
        step = Step(of, member, since, places, ahead)
        for number in self._advance(watermark, first, step):
            cohort, some = self.running[number], places[number]
            begin, end = np.full(cohort.size, END_OF_TIME), np.full(cohort.size, BEGINNING_OF_TIME)
            np.minimum.at(begin, member[some] & _NUMBER, since[some])
            np.maximum.at(end, member[some] & _NUMBER, of.end[some])
            self.fed.steps += rows_taken(cohort.pipeline)
            for stream in cohort.pipeline.outputs:
                found = _found(cohort.pipeline, stream, number << BITS, begin, end)
                if found is not None:
                    yield found

    def _places(self, member: Int64Array) -> dict[int, Int64Array]:
        """Give for each cohort the interests of the step that are its members, in the order of these."""
        order = np.argsort(member, kind="stable")
        numbers = member[order] >> BITS
        bounds = ((number, *np.searchsorted(numbers, [number, number + 1])) for number in self.running)
        return {number: order[low:high] for number, low, high in bounds}

    def _advance(self, watermark: int, first: int, step: Step) -> Iterator[int]:
        """Let time pass in all cohorts; give the number of one whenever its outputs are to be looked at."""
        if self.similar is not None:
            pipelines = {number: cohort.pipeline for number, cohort in self.running.items()}
            yield from self.similar.advance(pipelines, step, watermark)
            return
        for number, cohort in self.running.items():
            began = thread_time_ns()
            for _ in cohort.pipeline.advance(watermark):
                yield number
            if number >= first:
                self.fed.processor += thread_time_ns() - began

    def keep(self, member: Int64Array) -> None:
        """Let go of cohorts that have no member left."""
        live = set(np.unique(member >> BITS).tolist())
        self.running = {number: cohort for number, cohort in self.running.items() if number in live}

    def forget_before(self, time: int) -> None:
        """Let go of what no interest can look back at."""
        for history in self.histories:
            history.forget_before(time - history.back)
        self.lately.forget_before(time)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the cohorts and what they take."""
        sizes = {str(number): cohort.size for number, cohort in self.running.items()}
        blocks.put_json(name, {"begun": self.begun, "sizes": sizes})
        for place, history in enumerate(self.histories):
            history.save(blocks, f"{name}/history/{place}")
        for number, cohort in self.running.items():
            cohort.pipeline.save(blocks, f"{name}/cohort/{number}")
        self.lately.save(blocks, f"{name}/lately")

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
        self.lately.load(blocks, f"{name}/lately")


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


def _have_same_rows(history: History, earlier: Interests, new: Interests) -> BoolArray:
    """Tell which interests have the same history as those before them, pair by pair."""
    since, until = new.start - new.lifetime - history.back, new.start
    alike = np.flatnonzero(history.count(earlier, since, until) == history.count(new, since, until))
    same = np.zeros(len(new), np.bool_)
    pair = (history.find(each.take(alike), since[alike], until[alike]) for each in (earlier, new))
    (which, rows), (others, other_rows) = (_sorted(*found) for found in pair)
    counts = np.bincount(which, minlength=len(alike))
    is_same = counts == np.bincount(others, minlength=len(alike))
    differ = rows[is_same[which]] != other_rows[is_same[others]]
    is_same[which[is_same[which]][differ]] = False
    same[alike] = is_same
    return same


def _sorted(which: Int64Array, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    order = np.lexsort((rows, which))
    return which[order], rows[order]


def _found(
    pipeline: MemberPipeline, stream: OperatorStream, first: int, begin: Int64Array, end: Int64Array
) -> Told | None:
    """Give what is new in an output of a cohort, as far as it is known in the time of its member.

    Members are numbered from `first` on, and stand in place of the interests, which nobody has looked up yet.
    """
    rows = stream.new
    if not len(rows):
        return None
    member = pipeline.members(stream, rows)
    known = pipeline.known(stream, rows)
    counts = (known >= begin[member]) & (known < end[member])
    if not counts.any():
        return None
    rows, member, known = rows[counts], member[counts], known[counts]
    table = apart_from_deliveries(report(stream, rows, pipeline.context))
    table = with_borrowed(table, stream, rows)
    keys = detection_keys(pipeline.context, stream, rows)
    return Told(table, np.arange(len(rows)), keys, first + member, known, np.full(len(rows), ADDED), known)
