"""The test of many candidates at once: pairs of an event and a subscription."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.grid import number_of
from whimbrel.space.kernels.jit import kernel, prefetch
from whimbrel.subscriptions.kernels.conditions import BETWEEN, EQUAL, asked, column_of, meets


@kernel
def keep_meeting(
    begin, near, items, waiting, conditions, words, highs, lows, values, begins, ends, data
):  # fmt: skip
    """Keep the pairs of an event and an item whose condition it meets, at the front; give how many.

    Most clauses ask for a value or a range. These are compared first, for all pairs; then the others are
    tested on what is left.
    """
    for n in range(waiting):
        prefetch(conditions, number_of(items[n]))
    for n in range(waiting):
        prefetch(words, abs(conditions[number_of(items[n])]))
    kept, others, bounds = 0, 0, words.view(np.float64)
    for n in range(waiting):
        event, start = begin + near[n], abs(conditions[number_of(items[n])])
        holds = True
        while start:
            for at in range(start + 2, start + 2 + 3 * words[start], 3):
                what, column = asked(words[at]), column_of(words[at])
                if what == EQUAL:
                    holds &= (highs[column, event] == words[at + 1]) & (lows[column, event] == words[at + 2])
                elif what == BETWEEN:
                    value = values[column, event]
                    holds &= (bounds[at + 1] <= value) & (value <= bounds[at + 2])
                else:
                    others += 1
            start = words[start + 1]
        near[kept] = near[n]
        items[kept] = items[n]
        kept += np.int64(holds)
    if others == 0:
        return kept
    waiting, kept = kept, 0
    for n in range(waiting):
        start = abs(conditions[number_of(items[n])])
        near[kept] = near[n]
        items[kept] = items[n]
        kept += np.int64(meets(start, begin + near[n], words, highs, lows, values, begins, ends, data))
    return kept
