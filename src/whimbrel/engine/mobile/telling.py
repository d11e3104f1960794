"""What is told of what each interest has: all of it, what is new to the object, or what changes.

All three take, step by step, what the interests of the step have, and the interests themselves. They keep
what was told before for as long as it decides about what is told next.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from whimbrel.engine.mobile.deliveries import ADDED, KEPT, REMOVED, Told
from whimbrel.engine.mobile.interests import Interests, codes, followers, places_among, predecessors
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import BoolArray, Int64Array, UInt64Array
from whimbrel.graph.mobile import MobilePolicy
from whimbrel.model.time import END_OF_TIME


class Telling(Protocol):
    """A way of telling."""

    @property
    def due(self) -> int:
        """When something is told even if nothing happens."""
        ...

    def tell(self, had: list[Told], of: Interests, watermark: int) -> tuple[list[Told], Interests]:
        """Choose what is told, given what the interests of a step have, and all that end in it.

        Gives it with the interests that it is told of: those of the step, and perhaps earlier ones.
        """
        ...

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what was told."""
        ...

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        ...


def telling(policy: MobilePolicy) -> Telling:
    """Choose the way of telling that a policy asks for."""
    ways: dict[str, type[TellAll] | type[TellNew] | type[TellChanges]] = {
        "all": TellAll,
        "new": TellNew,
        "changes": TellChanges,
    }
    return ways[policy.deliver]()


class TellAll:
    """Each detection in each interest that has it."""

    due = END_OF_TIME

    def tell(self, had: list[Told], of: Interests, watermark: int) -> tuple[list[Told], Interests]:  # noqa: ARG002
        """Tell everything."""
        return had, of

    def save(self, blocks: Blocks, name: str) -> None:
        """Write nothing: nothing that was told matters again."""

    def load(self, blocks: Blocks, name: str) -> None:
        """Read nothing."""


class TellNew:
    """Each detection once for each object."""

    due = END_OF_TIME

    def __init__(self) -> None:
        self.seen: UInt64Array = np.zeros(0, np.uint64)
        self.until: Int64Array = np.zeros(0, np.int64)
        """Until when each may be found again: as long as history reaches back to it."""
        self._added = 0
        """How many came since old ones were forgotten."""

    def tell(self, had: list[Told], of: Interests, watermark: int) -> tuple[list[Told], Interests]:
        """Tell what no interest of the object had before."""
        marks = [_marks(each, of.obj[each.interest]) for each in had]
        mark = np.concatenate([*marks, np.zeros(0, np.uint64)])
        number = np.concatenate([*(of.number[each.interest] for each in had), np.zeros(0, np.int64)])
        until = np.concatenate(
            [*(each.known + of.lifetime[each.interest] for each in had), np.zeros(0, np.int64)]
        )
        place = np.searchsorted(self.seen, mark)
        known = _are_at(place, mark, self.seen)
        np.maximum.at(self.until, place[known], until[known])
        fresh = np.flatnonzero(~known)
        order = fresh[np.lexsort((number[fresh], mark[fresh]))]
        first = np.ones(len(order), np.bool_)
        first[1:] = mark[order][1:] != mark[order][:-1]
        latest = np.maximum.reduceat(until[order], np.flatnonzero(first)) if len(order) else until[order]
        order = order[first]
        chosen = np.zeros(len(mark), np.bool_)
        chosen[order] = True
        self._remember(mark[order], latest, place[order], watermark)
        bounds = np.cumsum([0, *map(len, had)])
        picked = [np.flatnonzero(chosen[a:b]) for a, b in pairwise(bounds)]
        return [each.take(rows) for each, rows in zip(had, picked, strict=True) if len(rows)], of

    def _remember(self, marks: UInt64Array, until: Int64Array, place: Int64Array, watermark: int) -> None:
        """Put new marks, in order, among those that were seen; now and then forget the old ones."""
        self.seen = np.insert(self.seen, place, marks)
        self.until = np.insert(self.until, place, until)
        self._added += len(marks)
        if 2 * self._added > len(self.seen):
            live = self.until >= watermark
            self.seen, self.until, self._added = self.seen[live], self.until[live], 0

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what was told."""
        blocks.put_arrays(name, {"seen": self.seen, "until": self.until})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        arrays = blocks.arrays(name)
        self.seen, self.until = arrays["seen"], arrays["until"]


class TellChanges:
    """At each switch what is gone and what stays, and then what is added.

    When an interest ends without a successor, all that was seen of it goes.
    """

    def __init__(self) -> None:
        self.shown: Told | None = None
        """What the interests that have not been followed by others have."""
        self.of: Interests | None = None

    @property
    def due(self) -> int:
        """When an interest has ended, and no other follows."""
        return int(self.of.end.min()) if self.of is not None and len(self.of) else END_OF_TIME

    def tell(self, had: list[Told], of: Interests, watermark: int) -> tuple[list[Told], Interests]:
        """Compare each interest that begins with the one before it."""
        interests, places = self._with_earlier(of)
        shown = _joined([*([self.shown] if self.shown is not None else []), *_moved(had, places)])
        follower = followers(interests)
        told = had if shown is None else self._compared(shown, interests, follower, places, had, watermark)
        self._keep(shown, interests, follower, watermark)
        return told, interests

    def _with_earlier(self, of: Interests) -> tuple[Interests, Int64Array]:
        """Put the interests of a step behind those of earlier steps that are not among them.

        Those that are take their places: they may have ended since. Gives the new place of each.
        """
        if self.of is None:
            return of, np.arange(len(of))
        found = places_among(codes(of.obj, of.number), codes(self.of.obj, self.of.number))
        fresh = np.flatnonzero(found < 0)
        joined = Interests.concat([self.of, of.take(fresh)])
        end = joined.end.copy()
        end[found[found >= 0]] = of.end[found >= 0]
        places = found.copy()
        places[fresh] = len(self.of) + np.arange(len(fresh))
        return replace(joined, end=end), places

    def _compared(
        self,
        shown: Told,
        interests: Interests,
        follower: Int64Array,
        places: Int64Array,
        had: list[Told],
        watermark: int,
    ) -> list[Told]:
        """Tell what changes: of what is shown, what goes; of what is there, what stays and what is new."""
        told: list[Told] = []
        before = predecessors(follower)
        seen = np.sort(_marks(shown, shown.interest))
        now: list[UInt64Array] = [np.zeros(0, np.uint64)]
        for each in _moved(had, places):
            marks = _marks(each, before[each.interest])
            stays = _are_among(marks, seen) & (before[each.interest] >= 0)
            now.append(marks[stays])
            change = np.where(stays, KEPT, ADDED)
            time = np.where(stays, interests.start[each.interest], each.time)
            told.append(replace(each, change=change, time=time))
        goes = ~_are_among(_marks(shown, shown.interest), np.sort(np.concatenate(now)))
        followed = follower[shown.interest] >= 0
        end = interests.end[shown.interest]
        over = ~followed & (end <= watermark) & (end < END_OF_TIME)  # the last ones last as long as the input
        gone = shown.take(np.flatnonzero(goes & (followed | over)))
        if len(gone):
            next_one = follower[gone.interest]
            where = np.where(next_one >= 0, next_one, gone.interest)
            time = np.where(next_one >= 0, interests.start[where], interests.end[gone.interest])
            told.append(replace(gone, interest=where, change=np.full(len(gone), REMOVED), time=time))
        return told

    def _keep(self, shown: Told | None, interests: Interests, follower: Int64Array, watermark: int) -> None:
        """Keep what a later interest will be compared with."""
        stays = (follower < 0) & (interests.end > watermark)
        rows = np.flatnonzero(stays)
        place = np.full(len(interests), -1, np.int64)
        place[rows] = np.arange(len(rows))
        self.of = interests.take(rows)
        if shown is None:
            self.shown = None
            return
        left = shown.take(np.flatnonzero(stays[shown.interest]))
        self.shown = replace(left, interest=place[left.interest]) if len(left) else None

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what is shown, and of which interests."""
        blocks.put_json(name, [self.shown is not None, self.of is not None])
        if self.shown is not None:
            self.shown.save(blocks, f"{name}/shown")
        if self.of is not None:
            self.of.save(blocks, f"{name}/of")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        has_shown, has_interests = blocks.json(name)
        self.shown = Told.load(blocks, f"{name}/shown") if has_shown else None
        self.of = Interests.load(blocks, f"{name}/of") if has_interests else None


def _are_among(marks: UInt64Array, among: UInt64Array) -> BoolArray:
    """Tell which marks are among others, which are in order: `np.isin` would build a table of all of them."""
    return _are_at(np.searchsorted(among, marks), marks, among)


def _are_at(places: Int64Array, marks: UInt64Array, among: UInt64Array) -> BoolArray:
    """Tell which marks stand where they would among others that are in order."""
    if not len(among):
        return np.zeros(len(marks), np.bool_)
    return np.asarray(among[np.minimum(places, len(among) - 1)] == marks)


def _marks(told: Told, of: Int64Array) -> UInt64Array:
    """Mix what tells a detection apart with whose it is."""
    mixed: UInt64Array = told.key ^ (of.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return mixed


def _moved(had: list[Told], places: Int64Array) -> list[Told]:
    """Say of which interests detections are, by their new places."""
    return [replace(each, interest=places[each.interest]) for each in had]


def _joined(told: list[Told]) -> Told | None:
    """Put several one after the other; None if there is nothing in them."""
    told = [each for each in told if len(each)]
    if not told:
        return None
    return Told.concat(told)
