"""Subscriptions that are found through their place: a look-up in the grid that tests conditions, too."""

from __future__ import annotations

from whimbrel.space.kernels.grid import BLOCK, candidates, lie_in, scratch, write_in_order
from whimbrel.space.kernels.jit import kernel
from whimbrel.subscriptions.kernels.meeting import keep_meeting


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
            kept = keep_meeting(begin, near, items, kept, conditions, words, highs, lows,
                                values, begins, ends, data)  # fmt: skip
        kept = lie_in(px, py, near, items, kept, shapes, rings, cells, lonlat)
        if count + kept > rows.size:
            return begin, count
        write_in_order(near, items, kept, begin, rows, numbers, count, room)
        count += kept
    return x.size, count
