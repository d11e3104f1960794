"""Selections that are decided about together: a batch stands for another one, or does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.mobile.reuse.covering import Cover
from whimbrel.engine.mobile.reuse.kernels.similarities import mean_similarities
from whimbrel.engine.mobile.reuse.selections import Selections, Tolerance
from whimbrel.engine.mobile.reuse.similarity import Coverable, good_enough, merging, neighbouring
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of the selections of each operator, one after the other.

    Parameters
    ----------
    owner
        The operator of each batch.
    offsets
        Where each begins among the selections, and where the last one ends.
    """

    owner: Int64Array
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def of_selection(self) -> Int64Array:
        """The batch of each selection."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def batches_by_time(owner: Int64Array, end: Int64Array, length: int) -> Batches:
    """Batch selections by windows of the time grid, each by when it ends.

    Selections are in order of their owners, then of time. By the printed bounds, a selection across two
    windows would be in none.
    """
    return _cut(owner, end // length)


def batches_by_number(owner: Int64Array, number: int) -> Batches:
    """Batch so many selections in a row; 1: each decides for itself. Selections are in order of owners."""
    first = np.searchsorted(owner, owner)
    return _cut(owner, (np.arange(len(owner)) - first) // number)


def all_or_none(owner: Int64Array) -> Batches:
    """Put all selections of an operator into one batch: it reuses all that another one does, or nothing."""
    return _cut(owner, np.zeros(len(owner), np.int64))


def _cut(owner: Int64Array, part: Int64Array) -> Batches:
    new = np.append(True, (owner[1:] != owner[:-1]) | (part[1:] != part[:-1]))[: len(owner)]
    first = np.flatnonzero(new)
    return Batches(owner[first], np.append(first, len(owner)))


def coverable_batches(
    selections: Selections,
    end: Int64Array,
    batches: Batches,
    agreed: Tolerance,
    serves: BoolArray | None = None,
) -> Coverable:
    """Find all pairs of batches in which one may stand for the other, by average precision and recall.

    Each selection of the batch that is covered is stood for by the one of the other batch that ended last by
    then, or else by its first one: what was known last. Some may be stood for badly, if others make up for
    it.

    Parameters
    ----------
    selections
        In order of owners, then of time.
    end
        When each ends.
    batches
        How they are batched.
    agreed, serves
        As for `coverable`. Who agreed to equal selections alone gets batches in which all of them are.
    """
    serves, covered, covering = neighbouring(batches.owner, agreed, serves)
    atoms = selections.atoms
    work = merging(atoms, len(covered) * (1 + len(selections) // max(len(batches), 1)))
    precision, recall, equal = mean_similarities.at(work)(
        batches.offsets, end, atoms.offsets, atoms.ids, covered, covering
    )
    pairs = Coverable(batches.owner, serves, covered, covering, precision, recall)
    return pairs.take(good_enough(pairs, agreed, equal))


def stand_ins(batches: Batches, end: Int64Array, cover: Cover) -> Int64Array:
    """Give for each selection the number of the one that is processed for it, by a cover of the batches."""
    found = np.arange(len(end))
    for batch in np.flatnonzero(~cover.may_process).tolist():
        begin, stop = batches.offsets[batch], batches.offsets[batch + 1]
        by = int(cover.by[batch])
        first, last = batches.offsets[by], batches.offsets[by + 1]
        place = np.searchsorted(end[first:last], end[begin:stop], side="right") - 1
        found[begin:stop] = first + np.maximum(place, 0)
    return found


def mean_of(values: FloatArray, batches: Batches) -> FloatArray:
    """Average what each selection has over its batch."""
    sizes = np.diff(batches.offsets)
    return np.bincount(batches.of_selection, weights=values, minlength=len(batches)) / sizes
