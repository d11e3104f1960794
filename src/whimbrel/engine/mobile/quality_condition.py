"""The condition on quality: an interest moves when its events stand badly for those around the object now.

Algorithm 3.5 of the thesis: at a location update, the events of a while are counted that lie in the current
interest, in that which would begin now, and in both. Nothing has to be moved for that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.kernels import focal_objects as k
from whimbrel.engine.mobile.area_counts import AreaCounts
from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.quality import quality_falls
from whimbrel.engine.mobile.timelines import Switches, Timelines
from whimbrel.engine.mobile.updates import Updates
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import MobileQuery, RefreshWhenQualityFalls

_NONE = -1


class QualityCondition:
    """Finds the updates at which precision or recall of the current interest is down to the threshold."""

    def __init__(self, query: MobileQuery, counts: AreaCounts) -> None:
        refresh = query.policy.refresh
        assert isinstance(refresh, RefreshWhenQualityFalls)
        self.over, self.threshold = refresh.over, query.policy.quality
        self._counts = counts
        self._areas: AreaSet | None = None
        self._place = np.zeros(0, np.int64)
        """Where the current interest of each object stands among the areas; -1: it has none."""

    def find_switches(
        self, timelines: Timelines, updates: Updates, areas_of: Callable[[Switches], AreaSet]
    ) -> tuple[Int64Array, FloatArray]:
        """Find the updates that begin interests, as `timelines.settle` takes them.

        Whether one does depends on the one before it of the same object: so all objects take one update each,
        then the next one each, and so on.
        """
        if len(timelines.numbers) > len(self._place):
            self._place = longer(self._place, len(timelines.numbers), _NONE)
        found, came_from = [np.zeros((0, 3), np.int64)], [np.zeros((0, 2))]
        for some in rounds(updates.obj):
            switches, places = self._round(timelines, updates, some, areas_of)
            found.append(switches)
            came_from.append(places)
        order = np.argsort(np.concatenate(found)[:, 0], kind="stable")
        return np.concatenate(found)[order], np.concatenate(came_from)[order]

    def _round(
        self,
        timelines: Timelines,
        updates: Updates,
        some: Int64Array,
        areas_of: Callable[[Switches], AreaSet],
    ) -> tuple[Int64Array, FloatArray]:
        obj, time = updates.obj[some], updates.time[some]
        before, start = timelines.times[obj, k.T_LAST], timelines.times[obj, k.T_START]
        had = start != k.NEVER
        silent = had & (timelines.silent >= 0) & (time - before > timelines.silent)
        _move(timelines, updates, some)
        came_from = timelines.places[obj][:, [k.P_FROM_X, k.P_FROM_Y]]
        areas = areas_of(Switches.at(updates, some, came_from))
        switch = ~had | silent
        asked = np.flatnonzero(~switch)
        if len(asked):
            switch[asked] = self._has_fallen(obj[asked], time[asked], areas.take(asked))
        which = np.flatnonzero(switch)
        self._take_over(obj[which], areas.take(which))
        timelines.times[obj[which], k.T_START] = time[which]
        ends = np.where(silent, before + timelines.silent + 1, time)
        return np.stack([some, ends, had.astype(np.int64)], axis=1)[which], came_from[which]

    def _has_fallen(self, obj: Int64Array, time: Int64Array, now: AreaSet) -> BoolArray:
        """Compare current interests with those that would begin now (equations 2.4 and 2.5)."""
        assert self._areas is not None
        used = self._areas.take(self._place[obj])
        found = self._counts.overlaps(obj, used, now, time - self.over, time + 1)
        return quality_falls(found.common, found.used, found.wanted, self.threshold)

    def _take_over(self, obj: Int64Array, areas: AreaSet) -> None:
        """Remember the interests that have begun, in place of earlier ones."""
        self._place[obj] = _NONE
        having = np.flatnonzero(self._place >= 0)
        kept = [] if self._areas is None else [self._areas.take(self._place[having])]
        self._areas = AreaSet.concat([*kept, areas])
        self._place[having] = np.arange(len(having))
        self._place[obj] = len(having) + np.arange(len(obj))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the current interests."""
        blocks.put_json(name, self._areas is not None)
        blocks.put_array(f"{name}/place", self._place)
        if self._areas is not None:
            self._areas.save(blocks, f"{name}/areas")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._place = blocks.array(f"{name}/place")
        self._areas = AreaSet.load(blocks, f"{name}/areas") if blocks.json(name) else None


def rounds(obj: Int64Array) -> list[Int64Array]:
    """Part updates so that no object has two in one part: the first of each, the second of each, ..."""
    if not len(obj):
        return []
    order = np.argsort(obj, kind="stable")
    first = np.ones(len(order), np.bool_)
    first[1:] = obj[order][1:] != obj[order][:-1]
    places = np.arange(len(order))
    rank = np.empty(len(order), np.int64)
    rank[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    by_rank = np.argsort(rank, kind="stable")
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def _move(timelines: Timelines, updates: Updates, some: Int64Array) -> None:
    """Take note of where objects are, each of them once."""
    obj, x, y = updates.obj[some], updates.x[some], updates.y[some]
    places, times = timelines.places, timelines.times
    elsewhere = (times[obj, k.T_LAST] != k.NEVER) & (
        (places[obj, k.P_LAST_X] != x) | (places[obj, k.P_LAST_Y] != y)
    )
    moved = obj[elsewhere]
    places[moved, k.P_FROM_X], places[moved, k.P_FROM_Y] = (
        places[moved, k.P_LAST_X],
        places[moved, k.P_LAST_Y],
    )
    places[obj, k.P_LAST_X], places[obj, k.P_LAST_Y] = x, y
    times[obj, k.T_LAST] = updates.time[some]
