"""Conditions that are found through a list, a range or a place, a block of events at a time.

A block is small enough for what it touches to stay in the cache of the processor. Each loop over it asks for
the memory that the next one reads, so that waiting for memory overlaps: lists and nodes lie scattered. What a
block costs follows the conditions in the lists, nodes and cells of its events, not all there are.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.access_paths import ALWAYS, LONGEST
from whimbrel.engine.kernels.conditions import (
    BETWEEN,
    EQUAL,
    PREFIX,
    SUBSTRING,
    SUFFIX,
    asked,
    column_of,
    key_of_text,
    key_of_value,
    meets,
)
from whimbrel.engine.kernels.interval_tree import is_above, key_of_chain, ordered
from whimbrel.space.kernels.grid import (
    BLOCK,
    candidates,
    item_of,
    lie_in,
    longer,
    number_of,
    scratch,
    write_in_order,
)
from whimbrel.space.kernels.jit import kernel, prefetch
from whimbrel.space.kernels.lists import FREE, count_of, look, scramble, start_of


@kernel
def find_listed(
    count, first, uses, sizes, slots, old,
    conditions, words, highs, lows, values, begins, ends, data, rows, numbers,
):  # fmt: skip
    """Find the conditions that events meet through the lists, from the `first` event on.

    Gives the first event that is not done for lack of room in `rows` and `numbers`, and the number of pairs.
    """
    near, items, room = scratch()
    keys = np.empty(64, np.int64)
    written = 0
    for begin in range(first, count, BLOCK):
        size, kept = min(BLOCK, count - begin), 0
        always = look(slots, old, np.int64(ALWAYS))
        if count_of(always):
            for n in range(size):
                kept, near, items = _with_list(n, always, words, near, items, kept)
        for column in range(min(uses.shape[0], highs.shape[0])):
            if uses[column, EQUAL]:
                block = highs[column, begin : begin + size]
                kept, near, items = _of_values(block, column, slots, old, words, near, items, kept, room)
            if uses[column, PREFIX] + uses[column, SUFFIX] + uses[column, SUBSTRING]:
                for n in range(size):
                    start, end = begins[column, begin + n], ends[column, begin + n]
                    used = _keys_of_text(column, start, end, keys, sizes, data, slots, old)
                    if used > keys.size:
                        keys = np.empty(2 * used, np.int64)
                        used = _keys_of_text(column, start, end, keys, sizes, data, slots, old)
                    for key in keys[:used]:
                        kept, near, items = _with_list(n, look(slots, old, key), words, near, items, kept)
        kept = keep_meeting(begin, near, items, kept, conditions, words, highs, lows,
                            values, begins, ends, data)  # fmt: skip
        if written + kept > rows.size:
            return begin, written
        write_in_order(near, items, kept, begin, rows, numbers, written, room)
        written += kept
    return count, written


@kernel
def _of_values(block, column, slots, old, words, near, items, waiting, room):
    """Add the pairs of events and the conditions in the list of the value that a column has."""
    keys, probes, lists = room[0], room[1], room[2]
    last = np.uint64(slots.size // 2 - 1)
    for n in range(block.size):
        keys[n] = FREE
        if block[n]:
            keys[n] = key_of_value(column, block[n])
            probes[n] = 2 * np.int64(scramble(keys[n]) & last)
            prefetch(slots, probes[n])
    most = waiting
    for n in range(block.size):
        lists[n] = 0
        if keys[n] != FREE:
            is_there = slots[probes[n]] == keys[n]
            lists[n] = slots[probes[n] + 1] if is_there else look(slots, old, keys[n])
            prefetch(words, start_of(lists[n]))
            most += count_of(lists[n])
    if most > near.size:
        near, items = longer(near, most), longer(items, most)
    for n in range(block.size):
        for at in range(start_of(lists[n]), start_of(lists[n]) + count_of(lists[n])):
            near[waiting] = n
            items[waiting] = item_of(words[at])
            waiting += 1
    return waiting, near, items


@kernel
def _with_list(event, value, words, near, items, waiting):
    """Add the pairs of an event and the conditions in a list."""
    if waiting + count_of(value) > near.size:
        near, items = longer(near, waiting + count_of(value)), longer(items, waiting + count_of(value))
    for at in range(start_of(value), start_of(value) + count_of(value)):
        near[waiting] = event
        items[waiting] = item_of(words[at])
        waiting += 1
    return waiting, near, items


@kernel
def _keys_of_text(column, begin, end, keys, sizes, data, slots, old):
    """Collect the keys of all lists that may concern a text; give how many there are.

    A null ends before it begins: it has none.
    """
    used = 0
    for size in range(1, min(LONGEST, end - begin) + 1):
        if sizes[column, PREFIX, size]:
            used = _note(key_of_text(PREFIX, column, data, begin, size), used, keys, slots, old)
        if sizes[column, SUFFIX, size]:
            used = _note(key_of_text(SUFFIX, column, data, end - size, size), used, keys, slots, old)
        if sizes[column, SUBSTRING, size]:
            for at in range(begin, end - size + 1):
                used = _note(key_of_text(SUBSTRING, column, data, at, size), used, keys, slots, old)
    return used


@kernel
def _note(key, used, keys, slots, old):
    """Note the key of a list that holds anything, once; keys that do not fit are only counted."""
    if count_of(look(slots, old, key)) == 0:
        return used
    for n in range(min(used, keys.size)):
        if keys[n] == key:
            return used
    if used < keys.size:
        keys[used] = key
    return used + 1


@kernel
def find_placed(
    x, y, first, levels, natives, scales, shapes, rings, lonlat, slots, old, cells,
    conditions, words, highs, lows, values, begins, ends, data, rows, numbers,
):  # fmt: skip
    """Find the conditions whose place events lie in and whose condition they meet, from `first` on.

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


@kernel
def find_ranged(
    count, first, columns, levels, slots, old,
    conditions, words, highs, lows, values, begins, ends, data, rows, numbers,
):  # fmt: skip
    """Find the conditions whose range a value of an event lies in, and whose condition it meets.

    `columns` and `levels` are the levels in use, each with its column. Gives the first event that is not done
    for lack of room in `rows` and `numbers`, and the number of pairs.
    """
    near, items, room = scratch()
    written = 0
    for begin in range(first, count, BLOCK):
        kept = 0
        for n in range(columns.size):
            block = values[columns[n], begin : begin + BLOCK]
            kept, near, items = _in_nodes(
                block, columns[n], levels[n], slots, old, words, near, items, kept, room
            )
        kept = keep_meeting(begin, near, items, kept, conditions, words, highs, lows,
                            values, begins, ends, data)  # fmt: skip
        if written + kept > rows.size:
            return begin, written
        write_in_order(near, items, kept, begin, rows, numbers, written, room)
        written += kept
    return count, written


@kernel
def _in_nodes(block, column, level, slots, old, words, near, items, waiting, room):
    """Add the pairs of values and ranges that they lie in, of the nodes of one level: value and item."""
    keys, probes, chains, sides = room[0], room[1], room[2], room[3]
    bits, bounds, last = block.view(np.int64), words.view(np.float64), np.uint64(slots.size // 2 - 1)
    # Each loop asks for memory that the next one reads, as in the look-up of points.
    for n in range(block.size):
        keys[n] = FREE
        if block[n] == block[n]:
            chain = ordered(bits[n])
            sides[n] = is_above(chain, level)
            keys[n] = key_of_chain(column, level, chain, sides[n])
            probes[n] = 2 * np.int64(scramble(keys[n]) & last)
            prefetch(slots, probes[n])
    for n in range(block.size):
        chains[n] = 0
        if keys[n] != FREE:
            is_there = slots[probes[n]] == keys[n]
            chains[n] = slots[probes[n] + 1] if is_there else look(slots, old, keys[n])
    for n in range(block.size):
        limit = -block[n] if sides[n] else block[n]
        for chain in range(start_of(chains[n]), start_of(chains[n]) + count_of(chains[n])):
            first, entries = words[chain] + 1, words[words[chain]]
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
