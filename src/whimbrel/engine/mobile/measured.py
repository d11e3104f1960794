"""Measured, where it is asked for: how well interests stand for what is around their objects meanwhile.

An object moves on while its interest stays where it is. At each of its location updates, the interest that
would begin then is compared with the one that it has, by the events of all the time that the latter has
(equations 2.4 and 2.5 of the thesis). That is known when the interest has ended, so events are kept for as
long as that takes: this is dear, and decides about nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whimbrel.engine.mobile.area_counts import types_read
from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.history import EventHistory, Pairs
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.monitor import Monitor
from whimbrel.engine.mobile.quality import shares
from whimbrel.engine.mobile.updates import FocalKeys, Updates
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.mobile.additional_time import additional_time
from whimbrel.graph.operators import ANY
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

MOST_ROWS = 1 << 21
"""About so many pairs of an area and an event are looked at at once."""
_ROW_BITS = 40


class MeasuredInterests:
    """Compares interests with what is around their objects, and with the interests before them."""

    def __init__(self, query: MobileQuery, events: SourceEvents, user: str, monitor: Monitor) -> None:
        self.monitor = monitor
        self.back = additional_time(query.detect.graph)
        self.longest_back = max(self.back.values(), default=0)
        self.used: list[Selector] = [(name, None) for name in types_read(query.detect.graph)]
        self.needs_since = BEGINNING_OF_TIME
        """Since when events may still be looked at."""
        self._events = events
        self._selections = [events.select(selector, user) for selector in self.used]
        self._histories: list[EventHistory] = []
        self._updates: Interests | None = None
        """Updates of interests that have not ended, as interests of that number that begin there."""

    def take_in(self) -> None:
        """Add what is new to the events."""
        for history in self._histories:
            history.take_in()

    def begin(self, coordinates: Coordinates, excluding: FocalKeys | None) -> None:
        """Begin to remember events, now that it is known how locations are given."""
        self._histories = [
            EventHistory(stream, self._events, self._back_of(name), coordinates, excluding)
            for (name, _), stream in zip(self.used, self._selections, strict=True)
        ]

    def _back_of(self, event_type: str) -> int:
        return self.back.get(event_type, self.back.get(ANY, 0))

    # -- a step --------------------------------------------------------------------------------------------

    def step(
        self,
        of: Interests,
        updates: tuple[Updates, AreaSet],
        streamed: list[EventHistory],
        joined: Int64Array,
        watermark: int,
        lifetime: int,
    ) -> None:
        """Measure the interests of a step that end in it.

        Parameters
        ----------
        updates
            The location updates of the step, and the interest that would begin at each.
        streamed
            The events that runs of single interests take.
        joined
            The interests that begin in the step for which no history was streamed.
        lifetime
            For how long, at most, an interest looks back.
        """
        self.take_in()
        pending = self._with_new(of, *updates)
        over = of.end <= watermark
        self._count_events(of.take(over))
        self._count_duplicates(of, over, streamed, joined)
        code = _codes(of)
        order = np.argsort(code)
        place = order[np.searchsorted(code[order], _codes(pending))]
        ended = over[place]
        self._measure(pending.take(ended), of.take(place[ended]))
        self._updates = pending.take(~ended)
        starts = of.start[~over].min(initial=min(watermark + 1, END_OF_TIME))
        self.needs_since = int(starts) - lifetime - self.longest_back
        for history in self._histories:
            history.forget_before(self.needs_since)

    def _with_new(self, of: Interests, updates: Updates, areas: AreaSet) -> Interests:
        """Add the updates of the step, each to the last interest of its object that has begun by then."""
        order = np.lexsort((of.start, of.obj))
        keys, asked = _by_time(of.obj[order], of.start[order], updates.obj, updates.time)
        place = order[np.searchsorted(keys, asked, side="right") - 1]
        new = replace(of.take(place), areas=areas)
        return new if self._updates is None else Interests.concat([self._updates, new])

    def _measure(self, updates: Interests, interests: Interests) -> None:
        """Compare what would be the interest at each update with what is."""
        since = interests.start - interests.lifetime - self.longest_back
        for lot in self._lots(updates, since, interests.end):
            some, used = updates.take(lot), interests.take(lot)
            in_true, in_used, in_both = np.zeros((3, len(lot)), np.int64)
            for history in self._histories:
                one, other = (history.find(each, since[lot], used.end) for each in (some, used))
                in_true += np.bincount(one[0], minlength=len(lot))
                in_used += np.bincount(other[0], minlength=len(lot))
                in_both += np.bincount(_common(one, other) >> _ROW_BITS, minlength=len(lot))
            quality: FloatArray = np.stack([shares(in_both, in_used), shares(in_both, in_true)], axis=1)
            self.monitor.note_quality(some.obj, quality)

    def _count_events(self, of: Interests) -> None:
        """Count the events of interests: what would be streamed if each were run by itself."""
        for history in self._histories:
            since = of.start - of.lifetime - history.back
            for lot in self._lots(of, since, of.end):
                which, rows = history.find(of.take(lot), since[lot], of.end[lot])
                is_old = rows < history.first_at(of.start[lot])[which]
                for name, some in (("historical", is_old), ("live", ~is_old)):
                    counts = np.bincount(which[some], minlength=len(lot))
                    self.monitor.count_for(f"interest_events_{name}", of.obj[lot], counts)

    def _count_duplicates(
        self, of: Interests, over: BoolArray, streamed: list[EventHistory], joined: Int64Array
    ) -> None:
        """Count the history of new interests that those before them had, and is not streamed again."""
        ending = np.flatnonzero(over)
        next_code = _codes(of)[ending] + 1
        order = np.argsort(_codes(of))
        at = np.minimum(np.searchsorted(_codes(of)[order], next_code), len(of) - 1)
        after = order[at]
        follows = (_codes(of)[after] == next_code) & (of.start[after] == of.end[ending])
        before, after = of.take(ending[follows]), after[follows]
        now = of.take(after)
        counts = np.zeros(len(now), np.int64)
        for history in self._histories:
            counts += self._both(before, now, [history])
        shared = np.isin(after, joined)
        again = np.zeros(len(now), np.int64)
        again[~shared] = self._both(before.take(~shared), now.take(~shared), streamed)
        self.monitor.count_for("duplicates_avoided", now.obj, counts - again)

    def _both(self, before: Interests, now: Interests, histories: list[EventHistory]) -> Int64Array:
        """Count the different events that interests and those before them have of some histories."""
        found = [np.zeros(0, np.int64)]
        for history in histories:
            since = np.maximum(before.start - before.lifetime, now.start - now.lifetime) - history.back
            for lot in self._lots(now, since, now.start):
                until = now.start[lot]
                one, other = (history.find(each.take(lot), since[lot], until) for each in (before, now))
                common = _common(one, other)
                place, row = lot[common >> _ROW_BITS], common & ((1 << _ROW_BITS) - 1)
                found.append((place << _ROW_BITS) | row)
        different = np.unique(np.concatenate(found))
        return np.bincount(different >> _ROW_BITS, minlength=len(now))

    def _lots(self, of: Interests, since: Int64Array, until: Int64Array) -> list[Int64Array]:
        """Part interests into lots that can be looked at at once."""
        if not len(of):
            return []
        counts = sum((each.count(of, since, until) for each in self._histories), np.zeros(len(of), np.int64))
        lots = np.cumsum(counts) // MOST_ROWS
        return np.split(np.arange(len(of)), np.flatnonzero(np.diff(lots)) + 1)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the updates of interests that have not ended, and the events."""
        about = {"updates": self._updates is not None, "histories": len(self._histories)}
        blocks.put_json(name, {**about, "since": self.needs_since})
        if self._updates is not None:
            self._updates.save(blocks, f"{name}/updates")
        for number, history in enumerate(self._histories):
            history.save(blocks, f"{name}/history/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self.needs_since = about["since"]
        self._updates = Interests.load(blocks, f"{name}/updates") if about["updates"] else None
        for number, history in enumerate(self._histories[: about["histories"]]):
            history.load(blocks, f"{name}/history/{number}")


def _codes(of: Interests) -> Int64Array:
    """Give each interest one number by its object and its own number."""
    return (of.obj << 32) | of.number


def _by_time(
    obj: Int64Array, time: Int64Array, other_obj: Int64Array, other_time: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Write objects and times, of two lots, as numbers in order of object, then of time."""
    every = np.unique(np.concatenate([time, other_time]))
    keys = obj * len(every) + np.searchsorted(every, time)
    return keys, other_obj * len(every) + np.searchsorted(every, other_time)


def _common(one: Pairs, other: Pairs) -> Int64Array:
    """Give the pairs of a place and a row that both have, each as one number."""
    mine, others = ((which << _ROW_BITS) | rows for which, rows in (one, other))
    return np.intersect1d(mine, others, assume_unique=True)
