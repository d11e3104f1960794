"""How well selections stand for each other: precision and recall of all pairs that share an event."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from whimbrel.engine.mobile.reuse.kernels.similarities import similar_pairs, similarities, transposed
from whimbrel.engine.mobile.reuse.selections import EventSets, Selections, Tolerance, everybody, offsets_of
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, slots=True)
class Coverable:
    """The pairs in which one selection (or batch) may stand for another one.

    Parameters
    ----------
    owner
        The operator of each selection.
    serves
        Which operators may stand for which.
    covered, covering
        The pairs, in order; nobody is paired with itself.
    precision, recall
        How well the second stands for the first.
    """

    owner: Int64Array
    serves: BoolArray
    covered: Int64Array
    covering: Int64Array
    precision: FloatArray
    recall: FloatArray

    def __len__(self) -> int:
        return len(self.covered)

    @property
    def compared(self) -> int:
        """How many pairs Algorithm 5.1 compares: all of neighbours, in both directions where both may."""
        counts = np.bincount(self.owner, minlength=len(self.serves)).astype(np.int64)
        pairs = counts @ self.serves.astype(np.int64) @ counts
        return int(pairs - (np.diag(self.serves) * counts).sum())

    def take(self, kept: BoolArray) -> Coverable:
        """Give some of the pairs."""
        names = ("covered", "covering", "precision", "recall")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def by_covered(self) -> tuple[Int64Array, Int64Array]:
        """For each selection, those that may stand for it: offsets and numbers."""
        order = np.lexsort((self.covering, self.covered))
        return offsets_of(np.bincount(self.covered, minlength=len(self.owner))), self.covering[order]

    def by_covering(self) -> tuple[Int64Array, Int64Array]:
        """For each selection, those that it may stand for: offsets and numbers."""
        order = np.lexsort((self.covered, self.covering))
        return offsets_of(np.bincount(self.covering, minlength=len(self.owner))), self.covered[order]


def coverable(selections: Selections, agreed: Tolerance, serves: BoolArray | None = None) -> Coverable:
    """Find all pairs of selections in which one may stand for the other.

    Precision and recall (5.1, 5.2) are more than what the owner of the *covered* one agreed to, or both have
    the same events. One sparse product: O(the number of common events of all pairs).

    Parameters
    ----------
    selections
        What waits for a decision.
    agreed
        What the owner of each operator agreed to.
    serves
        Which operators may stand for which; all for all others unless given.
    """
    atoms = selections.atoms.marked()
    return coverable_by(selections.owner, atoms, atoms, agreed, serves, by_ids=True)


def coverable_by(
    owner: Int64Array,
    actual: EventSets,
    used: EventSets,
    agreed: Tolerance,
    serves: BoolArray | None = None,
    *,
    by_ids: bool = False,
) -> Coverable:
    """Find the pairs by weighted sets: what a selection should depend on against what another one does.

    Parameters
    ----------
    owner
        The operator of each selection.
    actual
        What each would depend on if nothing was reused; in common is the lesser of both weights of an id.
    used
        What each does depend on.
    agreed, serves
        As for `coverable`.
    by_ids
        Whether equal sets mean the same events. Else owners who agreed to equal ones alone get nothing.
    """
    serves = everybody(len(agreed)) if serves is None else serves
    both = EventSets(
        np.append(actual.offsets, used.offsets[1:] + actual.offsets[-1]), np.append(actual.ids, used.ids)
    )
    dense, size = both.dense
    mine, others = dense[: len(actual.ids)], dense[len(actual.ids) :]
    t_offsets, t_rows, t_values = transposed.at(len(others) + size)(used.offsets, others, used.values, size)
    work = len(actual) + int(np.diff(t_offsets)[mine].sum())
    pairs = similar_pairs.at(work)(
        actual.offsets, mine, actual.values, actual.total, t_offsets, t_rows, t_values, used.total,
        owner, serves, agreed.precision, agreed.recall, agreed.exact, by_ids,
    )  # fmt: skip
    return Coverable(owner, serves, *pairs)


def coverable_by_estimate(
    owner: Int64Array,
    precision: FloatArray,
    recall: FloatArray,
    agreed: Tolerance,
    serves: BoolArray | None = None,
) -> Coverable:
    """Find the pairs by how well all selections of one operator stand for those of another.

    Parameters
    ----------
    owner
        The operator of each selection or batch.
    precision, recall
        Row a, column b: of what b owns in place of what a owns.
    agreed, serves
        As for `coverable`. Who agreed to equal selections alone gets nothing: an estimate does not know.
    """
    serves, covered, covering = neighbouring(owner, agreed, serves)
    mine, others = owner[covered], owner[covering]
    pairs = Coverable(owner, serves, covered, covering, precision[mine, others], recall[mine, others])
    return pairs.take(good_enough(pairs, agreed))


def neighbouring(
    owner: Int64Array, agreed: Tolerance, serves: BoolArray | None
) -> tuple[BoolArray, Int64Array, Int64Array]:
    """Give who serves whom, and all pairs of which the second may stand for the first if it is good."""
    serves = everybody(len(agreed)) if serves is None else serves
    allowed = serves[owner[None, :], owner[:, None]]
    np.fill_diagonal(allowed, val=False)
    covered, covering = np.nonzero(allowed)
    return serves, covered.astype(np.int64), covering.astype(np.int64)


def good_enough(pairs: Coverable, agreed: Tolerance, equal: BoolArray | None = None) -> BoolArray:
    """Tell which pairs are better than what the owner of the covered one agreed to, or known to be equal."""
    mine = pairs.owner[pairs.covered]
    good = (pairs.precision > agreed.precision[mine]) & (pairs.recall > agreed.recall[mine])
    good &= ~agreed.exact[mine]
    return good if equal is None else good | equal


def similarity(atoms: EventSets, covered: Int64Array, covering: Int64Array) -> tuple[FloatArray, FloatArray]:
    """Measure precision and recall of the second of each pair in place of the first (5.1, 5.2); 0/0 is 1."""
    work = merging(atoms, len(covered))
    return similarities.at(work)(atoms.offsets, atoms.ids, covered, covering)


def merging(atoms: EventSets, pairs: int) -> int:
    """Tell about how many steps it takes to compare so many pairs of rows."""
    return pairs * 2 * (1 + len(atoms.ids) // max(len(atoms), 1))
