"""Subscriptions that are found through their place: a look-up in the grid that tests conditions on the way."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.grid import BLOCK, candidates, lie_in, number_of, scratch, write_in_order
from whimbrel.space.kernels.jit import kernel, prefetch
from whimbrel.subscriptions.kernels.conditions import EQUAL, asked, column_of, meets


@kernel
def find_placed(
    x, y, first, levels, natives, scales, shapes, rings, lonlat, slots, old, cells,
    conditions, words, highs, lows, values, begins, ends, data, rows, numbers,
):  # fmt: skip
    """Find the subscriptions whose place events lie in and whose condition they meet, from `first` on.

    Gives the first event that is not done for lack of room in `rows` and `numbers`, and the number of pairs.
    Conditions come before the exact test of a place, since comparing values costs less.
    """
    near, items, room = scratch()
    count = 0
    for begin in range(first, x.size, BLOCK):
        px, py = x[begin : begin + BLOCK], y[begin : begin + BLOCK]
        kept, near, items = candidates(px, py, levels, natives, scales, slots, old, cells, near, items, room)
        if highs.shape[0]:
            kept = _keep_meeting(begin, near, items, kept, conditions, words, highs, lows,
                                 values, begins, ends, data)  # fmt: skip
        kept = lie_in(px, py, near, items, kept, shapes, rings, cells, lonlat)
        if count + kept > rows.size:
            return begin, count
        write_in_order(near, items, kept, begin, rows, numbers, count, room)
        count += kept
    return x.size, count


@kernel
def _keep_meeting(
    begin, near, items, waiting, conditions, words, highs, lows, values, begins, ends, data
):  # fmt: skip
    """Keep the pairs of an event and an item whose condition it meets, at the front; give how many.

    Most clauses ask for a value. These are compared first, without branches, for all pairs; then the others
    are tested on what is left.
    """
    for n in range(waiting):
        prefetch(conditions, number_of(items[n]))
    for n in range(waiting):
        prefetch(words, abs(conditions[number_of(items[n])]))
    kept, others = 0, 0
    for n in range(waiting):
        event, start = begin + near[n], abs(conditions[number_of(items[n])])
        are_equal = True
        while start:
            for at in range(start + 2, start + 2 + 3 * words[start], 3):
                column, is_other = column_of(words[at]), asked(words[at]) != EQUAL
                same = (highs[column, event] == words[at + 1]) & (lows[column, event] == words[at + 2])
                are_equal &= same | is_other
                others += np.int64(is_other)
            start = words[start + 1]
        near[kept] = near[n]
        items[kept] = items[n]
        kept += np.int64(are_equal)
    if others == 0:
        return kept
    waiting, kept = kept, 0
    for n in range(waiting):
        start = abs(conditions[number_of(items[n])])
        near[kept] = near[n]
        items[kept] = items[n]
        kept += np.int64(meets(start, begin + near[n], words, highs, lows, values, begins, ends, data))
    return kept
