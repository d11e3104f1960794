"""One operator's turn in the dynamic program over several operators at once."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def relax(cost, first, sources, prices):
    """Let one operator go from state to state, while the states of the others stay as they are.

    `cost[l, s, r]` is the cost so far with the operator in state s; l and r count the states of the operators
    before and after it. The ways into state s are `sources` and `prices` from `first[s]` up to `first[s +
    1]`. Returns the new costs, and the state that each came from.
    """
    before, size, after = cost.shape
    least = np.full(cost.shape, np.inf)
    via = np.zeros(cost.shape, np.int32)
    for left in range(before):
        for s in range(size):
            for e in range(first[s], first[s + 1]):
                source, price = sources[e], prices[e]
                for right in range(after):
                    there = cost[left, source, right] + price
                    if there < least[left, s, right]:
                        least[left, s, right] = there
                        via[left, s, right] = source
    return least, via
