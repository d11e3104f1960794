"""Which selections are processed, and which are stood for by one of these (RECEP, algorithms 5.1 and 5.2).

The fewest would be a least set cover, which is hard to find. MSH takes the selection that stands for most,
again and again, and needs all pairs; MNH goes through the operators by priority, and compares only with what
was chosen before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.mobile.reuse.kernels.covering import (
    cover_directly,
    cover_greedily,
    cover_in_order,
    drop_needless,
)
from whimbrel.engine.mobile.reuse.selections import EventSets, Selections, Tolerance, everybody
from whimbrel.engine.mobile.reuse.similarity import Coverable
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, slots=True)
class Cover:
    """Who stands for whom.

    Parameters
    ----------
    by
        For each selection, the number of the one that is processed for it: its own, if it is processed.
    compared
        How many pairs were compared, as the printed algorithm does it.
    """

    by: Int64Array
    compared: int

    @property
    def may_process(self) -> BoolArray:
        """Which selections are processed."""
        return self.by == np.arange(len(self.by))

    @property
    def readers(self) -> EventSets:
        """For each selection, those that get its result: nobody, if it is not processed."""
        return EventSets.of_pairs(self.by, np.arange(len(self.by)), len(self.by))

    def reader_owners(self, owner: Int64Array) -> EventSets:
        """For each selection, the operators that get its result, each once: with them it is annotated."""
        return EventSets.of_pairs(self.by, owner, len(self.by))


def maximum_similarity_cover(pairs: Coverable) -> Cover:
    """Cover by Johnson's greedy heuristic (MSH): at most ln(largest subset) + 1 times the fewest."""
    size = len(pairs.owner)
    by = cover_greedily.at(20 * size + 4 * len(pairs))(size, *pairs.by_covering(), *pairs.by_covered())
    return Cover(by, pairs.compared)


def maximum_neighbour_cover(pairs: Coverable, priority: FloatArray) -> Cover:
    """Cover by going through the operators by priority (MNH), with pairs that are compared already.

    Parameters
    ----------
    pairs
        Who may stand for whom.
    priority
        Of each operator; those of the same priority go by their numbers.
    """
    order, place, serves = _in_turn(pairs.owner, pairs.serves, priority)
    work = len(order) * (1 + len(serves)) + len(pairs)
    by, compared = cover_in_order.at(work)(order, place[pairs.owner], serves, *pairs.by_covered())
    return Cover(by, int(compared))


def maximum_neighbour_cover_of(
    selections: Selections, agreed: Tolerance, priority: FloatArray, serves: BoolArray | None = None
) -> Cover:
    """Cover as `maximum_neighbour_cover` does, without comparing all pairs before."""
    serves = everybody(len(agreed)) if serves is None else serves
    order, place, ordered = _in_turn(selections.owner, serves, priority)
    first = np.argsort(place)
    atoms = selections.atoms.marked()
    ids, events = atoms.dense
    # Most of the work is not known before: how many of the processed ones have each event.
    work = len(order) * (1 + len(ordered)) + len(ids) * (1 + len(ids) // max(events, 1))
    by, compared = cover_directly.at(work)(
        order, place[selections.owner], ordered, atoms.offsets, ids, events,
        agreed.precision[first], agreed.recall[first], agreed.exact[first],
    )  # fmt: skip
    return Cover(by, int(compared))


def refined(pairs: Coverable, cover: Cover, cost: FloatArray | None = None) -> Cover:
    """Do without what is not needed, dearest first, and read from the most similar that is left.

    Not in RECEP. It needs the pairs, and compares nothing anew.

    Parameters
    ----------
    pairs
        Who may stand for whom.
    cover
        What was chosen.
    cost
        What it takes to process each, the same for all unless given. A batch costs as much as it has
        selections.
    """
    processed = cover.may_process.copy()
    dearest = np.arange(len(processed)) if cost is None else np.argsort(-cost, kind="stable")
    drop_needless.at(2 * len(pairs) + len(processed))(processed, dearest, *pairs.by_covering())
    return read_from(pairs, processed, cover.compared)


def read_from(pairs: Coverable, processed: BoolArray, compared: int = 0) -> Cover:
    """Let each selection read from the most similar one that is processed, by the sum of both measures."""
    usable = np.flatnonzero(processed[pairs.covering] & ~processed[pairs.covered])
    order = usable[np.argsort(pairs.precision[usable] + pairs.recall[usable], kind="stable")]
    by = np.arange(len(pairs.owner))
    by[pairs.covered[order]] = pairs.covering[order]
    return Cover(by, compared)


def _in_turn(
    owner: Int64Array, serves: BoolArray, priority: FloatArray
) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Give the selections by priority, the place of each operator, and who serves whom by these places."""
    first = np.argsort(-priority, kind="stable")
    place = np.empty(len(first), np.int64)
    place[first] = np.arange(len(first))
    return np.argsort(place[owner], kind="stable"), place, np.ascontiguousarray(serves[np.ix_(first, first)])
