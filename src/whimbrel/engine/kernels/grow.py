"""Longer copies of arrays, for kernels whose output has no known size."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.jit import kernel


@kernel
def grow(array, size):
    """Give a longer copy of a one-dimensional array."""
    longer = np.empty(size, array.dtype)
    for i in range(array.size):
        longer[i] = array[i]
    return longer


@kernel
def grow_rows(array, size):
    """Give a copy of a table with room for `size` rows."""
    # Loops, because a slice assignment takes the compiler seconds.
    longer = np.empty((size, array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            longer[i, j] = array[i, j]
    return longer
