"""Chances of an urn."""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def log_ways(n, k):
    """Give the logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@kernel
def chances_of_at_least(least, drawn, good, known):
    """Give the chance of `least` or more good balls among those drawn at once from an urn, for each row."""
    found = np.empty(len(least), np.float64)
    for n in range(len(least)):
        low = max(least[n], drawn[n] - (known[n] - good[n]), 0)
        high = min(drawn[n], good[n])
        if least[n] <= max(0, drawn[n] - (known[n] - good[n])):
            found[n] = 1.0
            continue
        total = log_ways(known[n], drawn[n])
        chance = 0.0
        for k in range(low, high + 1):
            chance += math.exp(log_ways(good[n], k) + log_ways(known[n] - good[n], drawn[n] - k) - total)
        found[n] = min(chance, 1.0)
    return found
