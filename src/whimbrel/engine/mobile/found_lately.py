"""What runs found lately: an interest that begins and shares one of them is told of it as history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.placed_rows import MERGED, SMALL
from whimbrel.engine.row_store import ranges
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array


class FoundLately:
    """Detections of runs, lot by lot; each row has the number of its run in place of the interest."""

    def __init__(self) -> None:
        self._lots: list[Told] = []
        self._last: list[int] = []
        """When the last one of each lot is known."""

    def add(self, told: Iterable[Told]) -> None:
        """Add what was found in a step."""
        for lot in told:
            if not len(lot):
                continue
            self._lots.append(lot)
            self._last.append(int(lot.known.max()))
            if len(self._lots) >= MERGED and self._is_worth_merging(self._lots[-MERGED:]):
                self._lots[-MERGED:] = [Told.concat(self._lots[-MERGED:])]
                self._last[-MERGED:] = [max(self._last[-MERGED:])]

    def _is_worth_merging(self, last: list[Told]) -> bool:
        return len(last[0]) <= SMALL and len(last[0]) <= MERGED * len(last[-1])

    def told_of(
        self, of: Interests, places: Int64Array, run: Int64Array, since: Int64Array, until: Int64Array
    ) -> list[Told]:
        """Tell of the interests at some places what their runs found from one time on and before another."""
        if not len(places):
            return []
        first = int(since[places].min())
        lots = [lot for lot, last in zip(self._lots, self._last, strict=True) if last >= first]
        return told_of_runs(lots, of, places, run, since, until)

    def renumber(self, before: Int64Array, after: Int64Array) -> None:
        """Give other numbers to runs, which are the only ones that go on."""
        order = np.argsort(before)
        sorted_before, sorted_after = before[order], after[order]
        renumbered = []
        for lot in self._lots:
            at = np.searchsorted(sorted_before, lot.interest)
            goes_on = np.isin(lot.interest, sorted_before)
            kept = lot.take(np.flatnonzero(goes_on))
            renumbered.append(replace(kept, interest=sorted_after[at[goes_on]]))
        self._set(renumbered)

    def keep(self, runs: Int64Array, time: int) -> None:
        """Let go of what other runs found, or what was known before a time."""
        chosen = (np.isin(lot.interest, runs) & (lot.known >= time) for lot in self._lots)
        self._set([lot.take(np.flatnonzero(kept)) for lot, kept in zip(self._lots, chosen, strict=True)])

    def forget_before(self, time: int) -> None:
        """Let go of lots of which all was known before a time."""
        if self._last and min(self._last) < time:
            self._set([lot for lot, last in zip(self._lots, self._last, strict=True) if last >= time])

    def _set(self, lots: list[Told]) -> None:
        self._lots = [lot for lot in lots if len(lot)]
        self._last = [int(lot.known.max()) for lot in self._lots]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write all of it."""
        blocks.put_json(name, len(self._lots))
        for number, lot in enumerate(self._lots):
            lot.save(blocks, f"{name}/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._set([Told.load(blocks, f"{name}/{number}") for number in range(blocks.json(name))])


def told_of_runs(
    lots: Iterable[Told],
    of: Interests,
    places: Int64Array,
    run: Int64Array,
    since: Int64Array,
    until: Int64Array,
) -> list[Told]:
    """Tell of the interests at some places what their runs found from one time on and before another.

    A row may be told of several interests. `run` is the one of each interest.
    """
    order = places[np.argsort(run[places], kind="stable")]
    numbers = run[order]
    told = []
    for lot in lots:
        low = np.searchsorted(numbers, lot.interest, side="left")
        high = np.searchsorted(numbers, lot.interest, side="right")
        rows = np.repeat(np.arange(len(lot)), high - low)
        at = order[ranges(low, high - low)]
        counts = (lot.known[rows] >= since[at]) & (lot.known[rows] < until[at])
        if counts.any():
            some = lot.take(rows[counts])
            told.append(Told.added(some.table, some.row, some.key, at[counts], some.known, of))
    return told
