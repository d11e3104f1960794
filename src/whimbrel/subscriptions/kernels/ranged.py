"""Subscriptions that are found through a range."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.grid import BLOCK, item_of, longer, scratch, write_in_order
from whimbrel.space.kernels.jit import kernel, prefetch
from whimbrel.space.kernels.lists import FREE, count_of, look, scramble, start_of
from whimbrel.subscriptions.kernels.meeting import keep_meeting
from whimbrel.subscriptions.kernels.ranges import is_above, key_of_chain, ordered


@kernel
def find_ranged(
    count, first, columns, levels, slots, old,
    conditions, words, highs, lows, values, begins, ends, data, rows, numbers,
):  # fmt: skip
    """Find the subscriptions whose range a value of an event lies in, and whose condition it meets.

    `columns` and `levels` are the levels in use, each with its column. Gives the first event that is not done
    for lack of room in `rows` and `numbers`, and the number of pairs.
    """
    near, items, room = scratch()
    found = 0
    for begin in range(first, count, BLOCK):
        kept = 0
        for n in range(columns.size):
            block = values[columns[n], begin : begin + BLOCK]
            kept, near, items = _in_nodes(
                block, columns[n], levels[n], slots, old, words, near, items, kept, room
            )
        kept = keep_meeting(begin, near, items, kept, conditions, words, highs, lows,
                            values, begins, ends, data)  # fmt: skip
        if found + kept > rows.size:
            return begin, found
        write_in_order(near, items, kept, begin, rows, numbers, found, room)
        found += kept
    return count, found


@kernel
def _in_nodes(block, column, level, slots, old, words, near, items, waiting, room):
    """Add the pairs of values and ranges that they lie in, of the nodes of one level: value and item."""
    keys, places, chains, sides = room[0], room[1], room[2], room[3]
    bits, bounds, last = block.view(np.int64), words.view(np.float64), np.uint64(slots.size // 2 - 1)
    # Each loop asks for memory that the next one reads, as in the look-up of points.
    for n in range(block.size):
        keys[n] = FREE
        if block[n] == block[n]:
            place = ordered(bits[n])
            sides[n] = is_above(place, level)
            keys[n] = key_of_chain(column, level, place, sides[n])
            places[n] = 2 * np.int64(scramble(keys[n]) & last)
            prefetch(slots, places[n])
    for n in range(block.size):
        chains[n] = 0
        if keys[n] != FREE:
            is_there = slots[places[n]] == keys[n]
            chains[n] = slots[places[n] + 1] if is_there else look(slots, old, keys[n])
    for n in range(block.size):
        limit = -block[n] if sides[n] else block[n]
        for place in range(start_of(chains[n]), start_of(chains[n]) + count_of(chains[n])):
            first, entries = words[place] + 1, words[words[place]]
            if bounds[first] > limit:
                break
            if waiting + entries > near.size:
                near, items = longer(near, waiting + entries), longer(items, waiting + entries)
            for at in range(first, first + 2 * entries, 2):
                if bounds[at] > limit:
                    break
                near[waiting] = n
                items[waiting] = item_of(words[at + 1])
                waiting += 1
    return waiting, near, items
