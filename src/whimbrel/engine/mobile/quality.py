"""Quality of results from counts of events: how well those of one area stand for those of another."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import Quality


def shares(part: Int64Array, whole: Int64Array) -> FloatArray:
    """Return shares of counts; nothing of nothing is all of it."""
    return np.where(whole == 0, 1.0, part / np.maximum(whole, 1))


def quality_falls(common: Int64Array, used: Int64Array, wanted: Int64Array, threshold: Quality) -> BoolArray:
    """Tell which interests have to follow their objects (Algorithm 3.5).

    Parameters
    ----------
    common, used, wanted
        How many recent events lie in both areas, in the current interest, and in the one that it would be at
        the object now.
    threshold
        A precision or recall that is just as low is too low.
    """
    return (shares(common, wanted) <= threshold.recall) | (shares(common, used) <= threshold.precision)
