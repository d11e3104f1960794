"""Areas that are predicted for interests to come, and which of them stands for the interest when it begins.

With each location update the places of the next switches are predicted, and for each the candidates are
chosen that are worth a run. At a switch the best of them takes over, if its events stand well enough for
those around the object; else the interest is where the object is. All of it follows from events up to the
update alone, so that it does not matter how events are cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whimbrel.engine.arrays import NO_ROWS, longer
from whimbrel.engine.mobile.area_counts import AreaCounts, split
from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.cohorts import NOBODY
from whimbrel.engine.mobile.interests import AROUND_OBJECT
from whimbrel.engine.mobile.prediction import (
    NONE,
    AreaEvents,
    LastSwitches,
    PlacePredictor,
    PreparedAreas,
    PreparedSteps,
    SampleMemory,
    choose_candidates,
    expected_switches,
    predictor,
    taking_over,
)
from whimbrel.engine.mobile.quality_condition import rounds
from whimbrel.engine.mobile.timelines import Switches
from whimbrel.engine.mobile.updates import Updates
from whimbrel.engine.row_store import different, offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import CorridorInterest, MobileQuery, Prediction
from whimbrel.graph.mobile.interests import depends_on_place_alone
from whimbrel.graph.mobile.quality_distance import distance_for_quality
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME

AreasAt = Callable[[Switches], AreaSet]
"""Works out where interests would be at some places, given as switches."""


@dataclass(frozen=True, slots=True)
class CandidateAreas:
    """Areas that are prepared for interests to come, the likeliest of each first."""

    obj: Int64Array
    number: Int64Array
    """For which interest of its object each is."""
    since: Int64Array
    """When it was chosen."""
    member: Int64Array
    """Which member of the cohorts is prepared for it; `NOBODY`: none is."""
    areas: AreaSet

    def __len__(self) -> int:
        return len(self.obj)

    @property
    def codes(self) -> Int64Array:
        """One number for each interest."""
        return code(self.obj, self.number)

    def take(self, rows: Int64Array | BoolArray) -> CandidateAreas:
        """Give some of them."""
        arrays = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return CandidateAreas(**arrays, areas=self.areas.take(rows))

    @staticmethod
    def concat(parts: list[CandidateAreas]) -> CandidateAreas:
        """Put several one after the other."""
        arrays = {name: np.concatenate([getattr(each, name) for each in parts]) for name in _ARRAYS}
        return CandidateAreas(**arrays, areas=AreaSet.concat([each.areas for each in parts]))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        blocks.put_arrays(name, {each: getattr(self, each) for each in _ARRAYS})
        self.areas.save(blocks, f"{name}/areas")

    @classmethod
    def load(cls, blocks: Blocks, name: str) -> CandidateAreas:
        """Read what `save` wrote."""
        return cls(**blocks.arrays(name), areas=AreaSet.load(blocks, f"{name}/areas"))


_ARRAYS = ("obj", "number", "since", "member")


def code(obj: Int64Array, number: Int64Array) -> Int64Array:
    """Give each interest one number by its object and its own number."""
    return (obj << 32) | number


@dataclass(frozen=True, slots=True)
class ChosenAreas:
    """The areas of interests that begin."""

    areas: AreaSet
    candidate: Int64Array
    """Which of its candidates each is, by rank; `AROUND_OBJECT`: none."""
    member: Int64Array
    """Which member of the cohorts was prepared for it; `NOBODY`: none."""


@dataclass(frozen=True, slots=True)
class _TakenOver:
    """The candidates that stand for some of several interests: for which, and which of its own each is."""

    served: Int64Array
    rank: Int64Array
    candidates: CandidateAreas


class PredictedAreas:
    """The candidates of all objects that a query follows."""

    def __init__(self, query: MobileQuery, counts: AreaCounts, window: int) -> None:
        asked = query.policy.prediction
        assert asked is not None
        self.asked: Prediction = asked
        self.query = query
        self.window = window
        """Over how much time before now events are counted: what a run that begins now would need."""
        self._counts = counts
        self._predictor = predictor_of(query)
        self._memory = SampleMemory(self._predictor.samples)
        self._steps = PreparedSteps(self._predictor, asked.steps, asked.candidates, _deviation(query))
        self._switches = np.zeros((0, 2), np.int64)
        """Of each object the last switch, and how far apart its switches are on average."""
        self._switch_places = np.zeros((0, 2))
        self._numbers = NO_ROWS
        self.candidates: CandidateAreas | None = None

    def choose(
        self,
        updates: Updates,
        switches: Switches,
        areas: AreaSet,
        areas_at: AreasAt,
        coordinates: Coordinates,
        routes: np.ndarray | None,
    ) -> ChosenAreas:
        """Choose the areas of interests that begin, given those around the objects."""
        self._reserve(int(updates.obj.max(initial=-1)) + 1)
        begins = np.searchsorted(switches.row, updates.row)
        is_switch = begins < len(switches)
        is_switch[is_switch] = switches.row[begins[is_switch]] == updates.row[is_switch]
        ranks = np.full(len(switches), AROUND_OBJECT, np.int64)
        members = np.full(len(switches), NOBODY, np.int64)
        chosen = [areas]
        place = np.arange(len(switches))
        for some in rounds(updates.obj):
            which = begins[some[is_switch[some]]]
            taken = self._take_over(switches, which, areas)
            if taken is not None:
                served = which[taken.served]
                ranks[served], members[served] = taken.rank, taken.candidates.member
                place[served] = sum(map(len, chosen)) + np.arange(len(served))
                chosen.append(taken.candidates.areas)
            self._note_switches(switches, which)
            self._predict(updates, some, areas_at, coordinates, routes)
        return ChosenAreas(AreaSet.concat(chosen).take(place), ranks, members)

    # -- at a switch ---------------------------------------------------------------------------------------

    def _take_over(self, switches: Switches, which: Int64Array, areas: AreaSet) -> _TakenOver | None:
        """Choose the candidates that stand for interests."""
        obj, number, time = switches.obj[which], switches.number[which], switches.time[which]
        if self.candidates is None or not len(which):
            return None
        order = np.argsort(self.candidates.codes, kind="stable")
        codes = self.candidates.codes[order]
        wanted = code(obj, number)
        low, high = (np.searchsorted(codes, wanted, side=side) for side in ("left", "right"))
        groups = offsets_of(high - low)
        switch = np.repeat(np.arange(len(which)), high - low)
        rows = order[np.arange(len(switch)) - groups[switch] + low[switch]]
        if not len(rows):
            return None
        mine = self.candidates.take(rows)
        true = areas.take(which[switch])
        found = self._counts.overlaps(
            obj[switch], mine.areas, true, time[switch] - self.window, time[switch] + 1
        )
        prepared = PreparedAreas(
            groups,
            mine.since < time[switch],
            np.array([a == b for a, b in zip(mine.areas.keys(), true.keys(), strict=True)], np.bool_),
            found.common, found.used, found.wanted,
        )  # fmt: skip
        best = taking_over(prepared, self.query.policy.quality)
        served = np.flatnonzero(best != NONE)
        return _TakenOver(served, best[served] - groups[served], mine.take(best[served]))

    def _note_switches(self, switches: Switches, which: Int64Array) -> None:
        obj, time = switches.obj[which], switches.time[which]
        before, had = self._switches[obj, 0], self._numbers[obj] > 0
        gap, mean = time - before, self._switches[obj, 1]
        # Of the last switches the later ones count for more: traffic changes.
        self._switches[obj, 1] = np.where(had, np.where(mean > 0, (3 * mean + gap) // 4, gap), 0)
        self._switches[obj, 0] = time
        self._switch_places[obj] = np.stack([switches.x[which], switches.y[which]], axis=1)
        self._numbers[obj] = switches.number[which]

    # -- ahead of it ---------------------------------------------------------------------------------------

    def _predict(
        self,
        updates: Updates,
        some: Int64Array,
        areas_at: AreasAt,
        coordinates: Coordinates,
        routes: np.ndarray | None,
    ) -> None:
        """Predict where the next interests of some objects will be, each of which has one update."""
        obj = updates.obj[some]
        self._memory.take_in(obj, updates.time[some], updates.x[some], updates.y[some])
        seen = self._memory.of(obj, coordinates, None if routes is None else routes[some])
        last = LastSwitches(
            self._switches[obj, 0],
            self._switch_places[obj, 0],
            self._switch_places[obj, 1],
            self._switches[obj, 1],
        )
        expected = expected_switches(self.query.policy.refresh, seen, last, self.asked.steps)
        renewal = self._steps.update(obj, self._numbers[obj], seen, expected)
        self._discard(code(renewal.discard.obj, renewal.discard.number))
        if not len(renewal.prepare):
            return
        at = np.full(len(self._numbers), -1, np.int64)
        at[obj] = some
        row = renewal.places.row
        update = at[renewal.prepare.obj[row]]
        nothing = np.zeros(len(row), np.int64)
        there = Switches(
            renewal.prepare.obj[row], renewal.prepare.number[row], updates.time[update],
            np.full(len(row), END_OF_TIME), renewal.places.x, renewal.places.y, updates.x[update],
            updates.y[update], updates.row[update] + nothing,
        )  # fmt: skip
        areas = areas_at(there)
        groups = np.searchsorted(row, np.arange(len(renewal.prepare) + 1)).astype(np.int64)
        chosen = self._worth_it(there, areas, groups)
        member = np.full(len(chosen), NOBODY, np.int64)
        obj, number, time = (each[chosen] for each in (there.obj, there.number, there.time))
        fresh = CandidateAreas(obj, number, time, member, areas.take(chosen))
        had = [] if self.candidates is None else [self.candidates]
        self.candidates = CandidateAreas.concat([*had, fresh])

    def _worth_it(self, there: Switches, areas: AreaSet, groups: Int64Array) -> Int64Array:
        """Choose the places that are worth a run: what a chosen one stands for, needs none of its own."""
        if self.asked.candidates == 1:
            return np.arange(len(there))
        rows = np.sort(self._counts.rows(there.obj, areas, there.time - self.window, there.time + 1))
        area, event = split(rows)
        events = AreaEvents(np.searchsorted(area, np.arange(len(there) + 1)), different(event)[1])
        costs: FloatArray = events.counts.astype(np.float64)
        quality = self.query.policy.quality
        turn = choose_candidates(groups, events, costs, quality, np.inf, self.asked.by)
        return np.flatnonzero(turn >= 0)

    def _discard(self, codes: Int64Array) -> None:
        if self.candidates is not None and len(codes):
            self.candidates = self.candidates.take(~np.isin(self.candidates.codes, codes))

    def _reserve(self, objects: int) -> None:
        if objects > len(self._numbers):
            room = max(objects, 2 * len(self._numbers))
            self._numbers = longer(self._numbers, room)
            self._switches = longer(self._switches, room)
            self._switch_places = longer(self._switch_places, room)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what is predicted, and what predictions are made of."""
        blocks.put_json(name, self.candidates is not None)
        arrays = {"switches": self._switches, "places": self._switch_places, "numbers": self._numbers}
        blocks.put_arrays(f"{name}/objects", arrays)
        self._memory.save(blocks, f"{name}/memory")
        self._steps.save(blocks, f"{name}/steps")
        if self.candidates is not None:
            self.candidates.save(blocks, f"{name}/candidates")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        arrays = blocks.arrays(f"{name}/objects")
        self._switches, self._switch_places = arrays["switches"], arrays["places"]
        self._numbers = arrays["numbers"]
        self._memory.load(blocks, f"{name}/memory")
        self._steps.load(blocks, f"{name}/steps")
        self.candidates = CandidateAreas.load(blocks, f"{name}/candidates") if blocks.json(name) else None


def predictor_of(query: MobileQuery) -> PlacePredictor:
    """Make the predictor that a query asks for; who says a route goes along it."""
    assert query.policy.prediction is not None
    if query.policy.prediction.predictor is not None:
        return predictor(query.policy.prediction.predictor)
    if isinstance(query.interest, CorridorInterest):
        return predictor("along a route", route_attribute=query.interest.attribute)
    return predictor("dead reckoning")


def _deviation(query: MobileQuery) -> float:
    """Tell how far off a prediction may be before it is made anew: half of what the quality allows."""
    if not depends_on_place_alone(query.interest):
        return 0.0
    return distance_for_quality(query.interest, query.policy.quality) / 2


def route_attribute(query: MobileQuery) -> str | None:
    """Name the attribute of location updates that says the route, if anything is made of it."""
    if isinstance(query.interest, CorridorInterest):
        return query.interest.attribute
    return None if query.policy.prediction is None else predictor_of(query).route_attribute
