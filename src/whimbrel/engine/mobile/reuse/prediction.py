"""How similar selections and batches will be, before all of their events have come (RECEP, 5.3.3).

All take, for each pair, how many events have come of one side (`own`), how many of these are in common, and
how many are missing. With those of the selection that is given up they predict recall, with those of the one
that would stand for it precision.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.mobile.reuse.kernels.chances import chances_of_at_least
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


def pessimistic(common: FloatArray, own: FloatArray, missing: FloatArray) -> FloatArray:
    """Predict that nothing of what is missing will be in common."""
    return _share(common, own + missing)


def optimistic(common: FloatArray, own: FloatArray, missing: FloatArray) -> FloatArray:
    """Predict that all of what is missing will be in common."""
    return _share(common + missing, own + missing)


def so_far(common: FloatArray, own: FloatArray) -> FloatArray:
    """Predict that all will be as what has come is."""
    return _share(common, own)


def by_urn(
    common: FloatArray, own: FloatArray, missing: FloatArray, good: FloatArray, known: FloatArray
) -> FloatArray:
    """Predict that of what is missing as many are in common as of events before: the mean of an urn.

    Parameters
    ----------
    common, own, missing
        Of each pair.
    good, known
        How many events are remembered from before (M), and how many of them were in common (K).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(known > 0, missing * good / known, 0.0)
    return _share(common + drawn, own + missing)


def chance_of(least: Int64Array, missing: Int64Array, good: Int64Array, known: Int64Array) -> FloatArray:
    """Give the chance that at least so many of the missing events are in common, P(X >= k).

    They are drawn from the events before, without putting back. Where more are missing than are remembered,
    the urn is taken as many times as it needs.
    """
    times = np.maximum(-(-missing // np.maximum(known, 1)), 1)
    known = np.where(known == 0, 0, known * times)
    good = good * times
    drawn = np.minimum(missing, known)
    return chances_of_at_least(least, drawn, good, known)


def needed(common: FloatArray, own: FloatArray, missing: FloatArray, threshold: FloatArray) -> Int64Array:
    """Tell how many of the missing events have to be in common for a similarity above the threshold."""
    total = own + missing
    least = np.floor(threshold * total).astype(np.int64)
    least += least <= threshold * total  # strictly more
    return np.maximum(least - common.astype(np.int64), 0)


def by_location(inside: list[BoolArray]) -> tuple[FloatArray, FloatArray]:
    """Predict average precision and recall from where interests will be, if events stay as they are.

    Parameters
    ----------
    inside
        For each time step ahead, a matrix of the operators by recent events: which ones lie in the processing
        interest that is predicted for then.

    Returns
    -------
    Matrices of precision and recall: row a, column b, of what b selects in place of what a does.
    """
    precision, recall = [], []
    for step in inside:
        held = step.astype(np.float64)
        common, own = held @ held.T, held.sum(axis=1)
        precision.append(_share(common, np.broadcast_to(own[None, :], common.shape)))
        recall.append(_share(common, np.broadcast_to(own[:, None], common.shape)))
    return np.mean(precision, axis=0), np.mean(recall, axis=0)


def dead_reckoning(
    x: FloatArray, y: FloatArray, vx: FloatArray, vy: FloatArray, times_s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Predict where objects will be if they go on as they do: a row for each time."""
    return x + times_s[:, None] * vx, y + times_s[:, None] * vy


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Divide; nothing of nothing is all of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole == 0, 1.0, part / whole)
