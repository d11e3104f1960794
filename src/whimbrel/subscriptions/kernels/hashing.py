"""Hashes of numbers."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.ordering import mix
from whimbrel.space.kernels.jit import kernel


@kernel
def hash_numbers(numbers, kinds, high, low):
    """Hash 64-bit numbers, each with its kind, into two independent ones."""
    for n in range(numbers.size):
        number, kind = np.uint64(numbers[n]), np.uint64(kinds[n])
        high[n] = np.int64(mix(number * np.uint64(31) + kind))
        low[n] = np.int64(mix(number * np.uint64(37) + mix(kind + np.uint64(1))))
