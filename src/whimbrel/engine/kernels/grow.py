"""Longer copies of arrays, for kernels whose output has no known size."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def grow(array, size):
    """Give a longer copy of a one-dimensional array."""
    longer = np.empty(size, array.dtype)
    for i in range(array.size):
        longer[i] = array[i]
    return longer
