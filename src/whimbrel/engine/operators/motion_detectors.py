"""The state of movers, and how each kind of motion is found in it: arrays that kernels read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.kernels import border_crossings as k
from whimbrel.engine.kernels import stops
from whimbrel.engine.region_distances import RegionDistances, WatchedRegions
from whimbrel.engine.row_store import offsets_of
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.streams import ExecutionContext
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.graph.operators.motion import Motion, Verb
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME
from whimbrel.space.geometry import EARTH_RADIUS_M

_WHAT = {
    Verb.ENTERS: k.ENTERING,
    Verb.REACHES: k.ENTERING,
    Verb.COMES_WITHIN: k.ENTERING,
    Verb.LEAVES: k.LEAVING,
    Verb.CROSSES: k.CROSSING,
    Verb.STAYS_IN: k.STAYING,
    Verb.STAYS_OUTSIDE: k.STAYING,
    Verb.STAYS_BEYOND: k.STAYING,
}


@dataclass(frozen=True, slots=True)
class MotionEvents:
    """What was found, one row each: columns `F_KEY` and so on, and what goes with some verbs only."""

    ints: Int64Array
    xy: FloatArray | None = None
    """Where the samples before and after a change of sides lie."""
    distance: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.ints)


class MotionDetector(SavedState, ABC):
    """The movers of one operator, and what was found about them."""

    state: ClassVar[tuple[str, ...]] = ("movers", "mover_xy", "count")
    columns: int
    """Of the table of movers."""
    wide: int
    """How many floats a mover has."""

    def __init__(self, op: Motion, context: ExecutionContext) -> None:
        self.op = op
        self.context = context
        self.spec = _spec(op)
        self.movers = np.zeros((0, self.columns), np.int64)
        self.mover_xy = np.zeros((0, self.wide))
        self.count = np.zeros(k.COUNTS, np.int64)
        self.count[k.DUE] = k.NO_END
        self.count[k.FREE] = -1
        self.found = np.zeros((64, k.F_COLUMNS), np.int64)
        self.found_xy = np.zeros((64, 4))
        self._places: WatchedRegions | None = None

    @property
    def due(self) -> int:
        """When something happens even if no sample comes."""
        return int(min(self.count[k.DUE], END_OF_TIME))

    @property
    def lonlat(self) -> bool:
        """Whether coordinates are degrees."""
        return self.context.coordinates is Coordinates.LONLAT

    @property
    def places(self) -> WatchedRegions:
        """The regions; how coordinates are meant may only be known from the first events."""
        if self._places is None:
            wkts = tuple(region.wkt for region in self.op.regions)
            self._places = WatchedRegions(wkts, Coordinates.LONLAT if self.lonlat else Coordinates.PLANE)
        return self._places

    @abstractmethod
    def process(self, samples: k.Samples, accuracy: FloatArray, movers: int) -> None:
        """Take in samples in order; so many movers are known by now."""

    @abstractmethod
    def expire(self, watermark: int) -> None:
        """Let time pass."""

    def take(self) -> MotionEvents:
        """Give what was found, and forget it."""
        size = int(self.count[k.FOUND])
        self.count[k.FOUND] = 0
        return self._taken(size)

    def _taken(self, size: int) -> MotionEvents:
        return MotionEvents(self.found[:size].copy())

    def meeting(self, region: Int64Array, xy: FloatArray, *, first: bool) -> FloatArray:
        """Give the share of the way between two samples at which the border is first met, or left."""
        return self.places.meeting(region, *np.ascontiguousarray(xy.T), first=first)

    def across(self, xy: FloatArray) -> FloatArray:
        """Give how far it is from one sample to the next along the first axis, the short way round."""
        way = xy[:, 2] - xy[:, 0]
        return way - 360.0 * np.round(way / 360.0) if self.lonlat else way

    def live(self, watermark: int, movers: int) -> Int64Array:
        """Give the movers that are not new when they are seen again."""
        patience = self.op.duration if self.op.verb is Verb.IS_SILENT else self.op.gap
        return np.flatnonzero(self.movers[:movers, k.M_TIME] >= watermark - patience)

    def keep(self, live: Int64Array) -> None:
        """Forget all movers but these."""
        self.movers, self.mover_xy = self.movers[live], self.mover_xy[live]

    def _make_room_for(self, movers: int) -> None:
        old = len(self.movers)
        if movers <= old:
            return
        self.movers = longer(self.movers, max(2 * old, movers, 16))
        self.movers[old:, k.M_TIME] = k.NO_TIME
        self.mover_xy = longer(self.mover_xy, len(self.movers))

    def _make_room_to_find(self, more: int) -> None:
        wanted = int(self.count[k.FOUND]) + more
        if len(self.found) < wanted:
            self.found, self.found_xy = longer(self.found, 2 * wanted), longer(self.found_xy, 2 * wanted)


class BorderCrossings(MotionDetector):
    """On which side of each region a mover is: enters, leaves, crosses, reaches, comes within, stays."""

    state = (*MotionDetector.state, "nodes", "node_xy")
    columns = k.M_COLUMNS
    wide = 2

    def __init__(self, op: Motion, context: ExecutionContext) -> None:
        super().__init__(op, context)
        self.nodes = np.zeros((0, k.N_COLUMNS), np.int64)
        self.node_xy = np.zeros((0, 4))
        self.seen = np.zeros(max(len(op.regions), 1), np.int64)

    def _make_room_for(self, movers: int) -> None:
        old = len(self.movers)
        super()._make_room_for(movers)
        self.movers[old:, k.M_HEAD] = -1

    def process(self, samples: k.Samples, accuracy: FloatArray, movers: int) -> None:
        """Take in samples in order; so many movers are known by now."""
        self._make_room_for(movers)
        near_at, region, says = self._readings(samples, accuracy)
        line_at, lines = self._lines(samples)
        done = 0
        while True:
            done = k.process_samples(
                self.spec, *samples, near_at, region, says, line_at, lines, done,
                self.movers, self.mover_xy, self.nodes, self.node_xy, self.count, self.found, self.found_xy,
                self.seen,
            )  # fmt: skip
            if done == len(samples.key):
                break
            many = int(near_at[done + 1] - near_at[done] + line_at[done + 1] - line_at[done])
            self._make_room(many, int(self.movers[samples.key[done], k.M_NODES]))
        self.count[k.SERIAL] += len(samples.key)

    def _make_room(self, many: int, nodes: int) -> None:
        self._make_room_to_find(2 * (many + nodes))
        old = len(self.nodes)
        if old - int(self.count[k.LIVE]) < many:
            size = max(2 * old, old + many, 64)
            self.nodes, self.node_xy = longer(self.nodes, size), longer(self.node_xy, size)
            self.nodes[old:, k.N_NEXT] = np.arange(old + 1, size + 1)
            self.nodes[-1, k.N_NEXT] = self.count[k.FREE]
            self.nodes[old:, k.N_DEADLINE] = k.NO_END
            self.count[k.FREE] = old

    def expire(self, watermark: int) -> None:
        """Let time pass."""
        while not k.expire(self.spec, self.movers, self.nodes, self.count, self.found, watermark):
            self._make_room_to_find(len(self.found))

    def _taken(self, size: int) -> MotionEvents:
        return MotionEvents(self.found[:size].copy(), self.found_xy[:size].copy())

    def keep(self, live: Int64Array) -> None:
        """Forget all movers but these."""
        gone = np.ones(len(self.movers), np.bool_)
        gone[live] = False
        for mover in np.flatnonzero(
            gone & (self.movers[:, k.M_TIME] != k.NO_TIME) & (self.movers[:, k.M_HEAD] >= 0)
        ):
            k.drop_all(self.movers, self.nodes, self.count, mover)
        super().keep(live)
        table = np.cumsum(~gone) - 1
        used = self.nodes[:, k.N_SIDE] != k.UNUSED
        self.nodes[used, k.N_KEY] = table[self.nodes[used, k.N_KEY]]

    def loaded(self) -> None:
        """Forget which regions were looked at: the marks are of another session's events."""
        self.seen[:] = 0

    # -- what samples and the lines between them say ---------------------------------------------------------

    def _readings(
        self, samples: k.Samples, accuracy: FloatArray
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Tell for every sample which regions it is in, and of which it does not tell."""
        op = self.op
        sharp = op.near_m > 0 or op.margin_m > 0 or op.accuracy is not None
        reach = op.near_m + op.margin_m + accuracy
        near = self.places.near(samples.x, samples.y, reach, sharp=sharp)
        within = near.metres + accuracy[near.sample] <= op.near_m
        says = np.where(within, k.IN, k.UNSURE)
        if op.verb.is_outside:
            return self._outside(near, says, len(samples.key))
        return offsets_of(np.bincount(near.sample, minlength=len(samples.key))), near.region, says

    def _outside(
        self, near: RegionDistances, says: Int64Array, size: int
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Turn it round: in is what is outside of all regions, as if that were a region of its own."""
        inside, unsure = (
            np.bincount(near.sample[says == which], minlength=size) > 0 for which in (k.IN, k.UNSURE)
        )
        kept = ~inside
        turned = np.where(unsure, k.UNSURE, k.IN)[kept]
        return offsets_of(kept.astype(np.int64)), np.zeros(len(turned), np.int64), turned

    def _lines(self, samples: k.Samples) -> tuple[Int64Array, Int64Array]:
        """Find the regions that the line from a mover's last sample to each sample meets."""
        size = len(samples.key)
        if not self.op.between:
            return np.zeros(size + 1, np.int64), np.zeros(0, np.int64)
        x0, y0, there = self._before(samples)
        line, region = self.places.through(x0[there], y0[there], samples.x[there], samples.y[there])
        return offsets_of(np.bincount(there[line], minlength=size)), region

    def _before(self, samples: k.Samples) -> tuple[FloatArray, FloatArray, Int64Array]:
        """Give where each mover was one sample earlier, and the samples that have one before them."""
        order = np.argsort(samples.key, kind="stable")
        first = np.ones(len(order), np.bool_)
        first[1:] = samples.key[order[1:]] != samples.key[order[:-1]]
        x0, y0 = np.empty(len(order)), np.empty(len(order))
        time = np.empty(len(order), np.int64)
        x0[order[1:]], y0[order[1:]] = samples.x[order[:-1]], samples.y[order[:-1]]
        time[order[1:]] = samples.time[order[:-1]]
        begins = order[first]
        movers = samples.key[begins]
        x0[begins], y0[begins] = self.mover_xy[movers].T
        time[begins] = self.movers[movers, k.M_TIME]
        there = (time != k.NO_TIME) & (samples.time - time <= self.op.gap)
        return x0, y0, np.flatnonzero(there)


class Stops(MotionDetector):
    """Movers that stay where they are, or are not seen any more."""

    columns = stops.R_COLUMNS
    wide = 2

    def process(self, samples: k.Samples, accuracy: FloatArray, movers: int) -> None:  # noqa: ARG002
        """Take in samples in order; so many movers are known by now."""
        self._make_room_for(movers)
        radius = -1.0 if self.op.verb is Verb.IS_SILENT else self.op.near_m
        earth = EARTH_RADIUS_M if self.lonlat else 0.0
        done = 0
        while True:
            done = stops.find_stops(
                self.spec, *samples, done, radius, earth, self.movers, self.mover_xy, self.count, self.found
            )
            if done == len(samples.key):
                return
            self._make_room_to_find(len(self.found))

    def expire(self, watermark: int) -> None:
        """Let time pass."""
        size = len(self.movers)
        while not stops.expire(self.spec, self.movers, size, self.count, self.found, watermark):
            self._make_room_to_find(len(self.found))


class Approaches(MotionDetector):
    """Movers that come nearer to a region."""

    columns = stops.R_COLUMNS
    wide = 2

    def process(self, samples: k.Samples, accuracy: FloatArray, movers: int) -> None:  # noqa: ARG002
        """Take in samples in order; so many movers are known by now."""
        self._make_room_for(movers)
        metres = self.places.distance(samples.x, samples.y)
        done = 0
        while True:
            done = stops.find_approaches(
                self.spec, samples.key, samples.time, samples.ident, metres, done, self.op.by_m,
                self.op.margin_m, self.movers, self.mover_xy, self.count, self.found, self.found_xy,
            )  # fmt: skip
            if done == len(samples.key):
                return
            self._make_room_to_find(len(self.found))

    def expire(self, watermark: int) -> None:
        """Let time pass: nothing waits for it."""

    def _taken(self, size: int) -> MotionEvents:
        return MotionEvents(self.found[:size].copy(), distance=self.found_xy[:size, 0].copy())


def _spec(op: Motion) -> Int64Array:
    spec = np.zeros(k.SPEC, np.int64)
    spec[k.WHAT] = _WHAT.get(op.verb, 0)
    # Silence is what is looked for: it does not make a mover unknown.
    spec[k.GAP] = k.NO_END if op.verb is Verb.IS_SILENT else op.gap
    spec[k.SETTLE_EVENTS] = op.settling.events
    spec[k.SETTLE_TIME] = op.settling.duration
    spec[k.DURATION] = op.duration
    # What was seen once and never again was not seen to stay; silence is just that.
    spec[k.SAMPLES] = 1 if op.verb is Verb.IS_SILENT else 2
    return spec
