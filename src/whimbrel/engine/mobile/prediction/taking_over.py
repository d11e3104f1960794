"""Which prepared run takes over at a switch, if any does (thesis, algorithm 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np

from whimbrel.engine.mobile.quality import shares
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import Quality

NONE = -1
"""No run takes over: the query has to react, and to begin a run at its initialization point."""


@dataclass(frozen=True, slots=True)
class PreparedAreas:
    """Runs that are prepared for switches that happen now, beside the interests that they may stand for."""

    groups: Int64Array
    """Where the runs for each switch begin, the likeliest first; at the end, where the last ones end."""
    is_complete: BoolArray
    """Whether each is done with history."""
    is_interest: BoolArray
    """Whether its area is the interest itself."""
    common: Int64Array
    used: Int64Array
    wanted: Int64Array
    """How many recent events lie in both areas, in the prepared one, and in the interest."""
    overlap: FloatArray | None = None
    """How much of the interest each covers; only to choose by that."""


def taking_over(
    prepared: PreparedAreas, threshold: Quality, by: OneOf["overlap", "precision", "recall"] = "precision"
) -> Int64Array:
    """Choose the run that takes over at each switch; `NONE` where the query has to react.

    A run may if it is complete and its quality reaches the threshold. For quality 1 its area has to be the
    interest: that of events that have yet to come nobody can count. Of those that may, the best takes over;
    of equally good ones, the likeliest.
    """
    values = _values(prepared, by)
    may = np.flatnonzero(may_take_over(prepared, threshold))
    group = np.searchsorted(prepared.groups, may, side="right") - 1
    order = np.lexsort((may, -values[may], group))
    may, group = may[order], group[order]
    chosen = np.full(len(prepared.groups) - 1, NONE, np.int64)
    # Written from the last to the first, so that the best of each group stays.
    chosen[group[::-1]] = may[::-1]
    return chosen


def may_take_over(prepared: PreparedAreas, threshold: Quality) -> BoolArray:
    """Tell which runs may take over: complete ones that are good enough."""
    if max(threshold.precision, threshold.recall) >= 1.0:
        return prepared.is_complete & prepared.is_interest
    precise = shares(prepared.common, prepared.used) >= threshold.precision
    recalls = shares(prepared.common, prepared.wanted) >= threshold.recall
    return prepared.is_complete & (prepared.is_interest | (precise & recalls))


def _values(prepared: PreparedAreas, by: str) -> FloatArray:
    if by == "overlap":
        if prepared.overlap is None:
            raise ValueError("to choose by overlap, say how much of the interest each area covers")
        return prepared.overlap
    whole = prepared.used if by == "precision" else prepared.wanted
    return shares(prepared.common, whole)
