"""Which of the combinations that one trigger completes become detections, and what they use up.

The contexts are those of Snoop, with `each` for none and `first matching` for the oldest that holds.

References
----------
.. [1] Chakravarthy, Mishra: "Snoop: An Expressive Event Specification Language for Active Databases", Data &
   Knowledge Engineering 14(1), 1994: recent, chronicle, continuous and cumulative parameter contexts.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.pattern import (
    CHRONICLE,
    CONSUMING,
    CONTEXT,
    CONTINUOUS,
    EACH,
    END,
    FIRST_MATCHING,
    PARTS,
    RECENT,
)
from whimbrel.space.kernels.jit import kernel


@kernel
def choose(spec, consume, rows, fine, number, chosen, consumed, pool_ident, hot, entries):
    """Apply the context to the combinations of one trigger; write the chosen ones, give how many.

    `fine` tells which hold; only a chronicle looks at the others. Marks the consumed events.
    """
    parts = spec[PARTS]
    context = spec[CONTEXT]
    found = 0
    if context == EACH and spec[CONSUMING] == 0:
        for i in range(number):
            if fine[i] == 1:
                chosen[found] = i
                found += 1
        return found
    # Combinations come in the order of the search, which may change; contexts go by the age of events.
    order = sort_oldest_first(rows, number)
    if context == RECENT:
        best = -1
        for k in range(number):
            i = order[k]
            if fine[i] == 0 or used_up(rows, i, consumed):
                continue
            if best < 0 or newer_from_the_end(rows, i, best):
                best = i
        if best >= 0:
            chosen[0] = best
            found = 1
        return found
    last_first = -1
    for k in range(number):
        i = order[k]
        if used_up(rows, i, consumed):
            continue
        if fine[i] == 0:
            if context == CHRONICLE:
                return found  # the oldest of each part are the ones to take, and they do not hold
            continue
        if context == CONTINUOUS and rows[i, 0] == last_first:
            continue
        last_first = rows[i, 0]
        chosen[found] = i
        found += 1
        if context == EACH:
            for part in range(parts):
                if consume[part] == 1:
                    use_up(rows[i, part], consumed, pool_ident, hot, entries)
        elif context == CHRONICLE or context == FIRST_MATCHING:
            break
    if context != EACH:
        for k in range(found):
            for part in range(parts):
                use_up(rows[chosen[k], part], consumed, pool_ident, hot, entries)
    return found


@kernel
def use_up(e, consumed, pool_ident, hot, entries):
    """Mark an event as consumed, also where it is in the pool a second time as an alternative."""
    consumed[e] = 1
    # Its other entries have the same times, so that they lie next to it.
    for step in (-1, 1):
        i = e + step
        while i >= 0 and i < entries and hot[i, END] == hot[e, END]:
            if pool_ident[i] == pool_ident[e]:
                consumed[i] = 1
            i += step


@kernel
def used_up(rows, i, consumed):
    """Tell whether combination i contains a consumed event."""
    for part in range(rows.shape[1]):
        if consumed[rows[i, part]] == 1:
            return True
    return False


@kernel
def newer_from_the_end(rows, i, j):
    """Tell whether combination i is newer than j, compared from the last part to the first."""
    for part in range(rows.shape[1] - 1, -1, -1):
        if rows[i, part] != rows[j, part]:
            return rows[i, part] > rows[j, part]
    return False


@kernel
def older(rows, i, j):
    """Tell whether combination i comes before j, oldest first, part by part."""
    for part in range(rows.shape[1]):
        if rows[i, part] != rows[j, part]:
            return rows[i, part] < rows[j, part]
    return False


@kernel
def sort_oldest_first(rows, number):
    """Give the order of the first `number` combinations, oldest first (heap sort)."""
    order = np.arange(number)
    for root in range(number // 2 - 1, -1, -1):
        sift(rows, order, root, number)
    for last in range(number - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        sift(rows, order, 0, last)
    return order


@kernel
def sift(rows, order, root, size):
    """Let the entry at `root` sink to its place in the heap order[:size]."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and older(rows, order[child], order[child + 1]):
            child += 1
        if not older(rows, order[root], order[child]):
            return
        order[root], order[child] = order[child], order[root]
        root = child
