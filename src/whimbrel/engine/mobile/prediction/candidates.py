"""Which of the predicted places runs are prepared for (thesis, algorithm 3.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np

from whimbrel.engine.kernels import candidate_areas as k
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.graph.mobile import Quality

_POLICIES = {"greedy": k.GREEDY, "location": k.LOCATION, "resource": k.RESOURCE}


@dataclass(frozen=True, slots=True)
class AreaEvents:
    """The recent events in some areas: those of one after those of the other, in order of their numbers."""

    offsets: Int64Array
    """Where the events of each area begin; at the end, where the last ones end."""
    events: Int64Array
    """Small numbers from 0 on, each event by one."""

    @property
    def counts(self) -> Int64Array:
        """How many events each area has."""
        return np.diff(self.offsets)


def choose_candidates(
    groups: Int64Array,
    recent: AreaEvents,
    costs: FloatArray,
    threshold: Quality,
    limit: float,
    by: OneOf["greedy", "location", "resource"],
) -> Int64Array:
    """Choose areas to prepare runs for; give as which one of its group each is chosen, -1 if it is not.

    Areas are taken one after the other. One that a chosen one stands for, with precision and recall above the
    threshold, needs no run of its own, and one that would cost more than is left is passed over.

    Parameters
    ----------
    groups
        Where the areas of each prepared interest begin, the likeliest first; at the end, where the last end.
    costs
        What a run for each area costs.
    limit
        What all runs of a group may cost together.
    by
        Which one is taken next: with the most events that no chosen one has, the likeliest, the cheapest.
    """
    turn = np.empty(len(costs), np.int64)
    covered = np.zeros(int(recent.events.max(initial=-1)) + 1, np.int64)
    choose = k.choose_areas.at(len(recent.events) * max(len(costs) // max(len(groups) - 1, 1), 1))
    choose(
        groups, recent.offsets, recent.events, np.asarray(costs, np.float64),
        threshold.precision, threshold.recall, limit, _POLICIES[by], covered, turn,
    )  # fmt: skip
    return turn
