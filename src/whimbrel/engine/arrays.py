"""Arrays that grow as what they hold does."""

from __future__ import annotations

import numpy as np

NO_ROWS = np.zeros(0, np.int64)
"""No rows of a stream. It can be shared: there is nothing in it to write to."""


def longer(array: np.ndarray, size: int, fill: int | None = 0) -> np.ndarray:
    """Copy an array into one of `size` rows, the new ones filled up with one value (None: with anything)."""
    shape = size, *array.shape[1:]
    if fill is None:
        grown = np.empty(shape, array.dtype)
    else:
        grown = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    grown[: len(array)] = array
    return grown
