"""Many short lists of whole numbers, each found by a key: a hash table over one long array of blocks.

The table is open addressing with linear probing: a slot is two numbers, the key and the list. A list is one
number, too: where its block starts, the power of two that is the block's size, a mark, and how many items
there are. Blocks that are no longer used hang in chains by their size, and are used again.

A table that is full enough gets a successor of twice its size, into which the slots are moved a few at a
time; until that is done a key that is not found in the new table is looked for in the old one.
"""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import inlined, kernel

FREE, DEAD = 0, -1
"""Keys of slots that were never used, and of those whose list has moved away. Real keys are positive."""

TOP, USED, MOVED, BIGGEST = 0, 1, 2, 3
"""Places in the array of counters: the first word never used, slots used (in both tables, each key once),
slots of the old table done, and the exponent of the largest block there is."""

MOST_SLOTS = 0.6
"""How full a table may be."""

_START, _SIZE, _MARK = 32, 27, 1 << 26
_COUNT = _MARK - 1


@inlined
def scramble(key):
    """Spread neighbouring keys over a table."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@inlined
def probe(slots, key):
    """Find the slot that has a key, or else the free one where it would be put."""
    last = slots.size // 2 - 1
    slot = np.int64(scramble(key) & np.uint64(last))
    while slots[2 * slot] != key and slots[2 * slot] != FREE:
        slot = (slot + 1) & last
    return 2 * slot


@inlined
def look(slots, old, key):
    """Look up the list of a key to read; 0 (an empty list) if there is none."""
    slot = probe(slots, key)
    if slots[slot] == key:
        return slots[slot + 1]
    if old.size:
        slot = probe(old, key)
        if old[slot] == key:
            return old[slot + 1]
    return 0


@kernel
def settle(slots, old, counters, key, create):
    """Find the slot of a key in the new table, to be changed; -1 if there is none and none is to be made."""
    slot = probe(slots, key)
    if slots[slot] == key:
        return slot
    if old.size:
        before = probe(old, key)
        if old[before] == key:
            old[before] = DEAD
            slots[slot] = key
            slots[slot + 1] = old[before + 1]
            return slot
    if not create:
        return -1
    slots[slot] = key
    slots[slot + 1] = 0
    counters[USED] += 1
    return slot


@kernel
def has_slots(slots, counters, wanted):
    """Tell whether the table has room for some more keys."""
    return counters[USED] + wanted <= MOST_SLOTS * (slots.size // 2)


@inlined
def start_of(value):
    """Tell where the items of a list begin."""
    return value >> _START


@inlined
def count_of(value):
    """Tell how many items a list has."""
    return value & _COUNT


@inlined
def is_marked(value):
    """Tell whether a list bears the mark."""
    return value & _MARK != 0


@inlined
def marked(value):
    """Mark a list."""
    return value | _MARK


@kernel
def emptied(value):
    """Empty a list of block and items; the mark stays."""
    return value & _MARK


@inlined
def room_of(value):
    """Tell how many items fit into the block of a list."""
    return (1 << ((value >> _SIZE) & 31)) if value >> _START else 0


@kernel
def exponent_for(count):
    """Find the least power of two that is at least `count`, as an exponent."""
    exponent = 0
    while (1 << exponent) < count:
        exponent += 1
    return exponent


@kernel
def allocate(words, free, counters, exponent):
    """Allocate a block of 2**exponent words: its start, or -1 if there is no room."""
    start = free[exponent]
    if start:
        free[exponent] = words[start]
        return start
    start = counters[TOP]
    if start + (1 << exponent) > words.size:
        return -1
    counters[TOP] = start + (1 << exponent)
    counters[BIGGEST] = max(counters[BIGGEST], exponent)
    return start


@kernel
def release(words, free, start, exponent):
    """Hang a block that is no longer used into the chain of its size."""
    words[start] = free[exponent]
    free[exponent] = start


@kernel
def append(slots, words, free, counters, slot, item):
    """Put an item at the end of the list in a slot; False, and no change, if there is no room."""
    value = slots[slot + 1]
    count = value & _COUNT
    if count == room_of(value):
        exponent = ((value >> _SIZE) & 31) + 1 if count else 0
        start = allocate(words, free, counters, exponent)
        if start < 0:
            return False
        before = value >> _START
        for n in range(count):
            words[start + n] = words[before + n]
        if count:
            release(words, free, before, exponent - 1)
        value = (start << _START) | (exponent << _SIZE) | (value & _MARK) | count
    words[(value >> _START) + count] = item
    slots[slot + 1] = value + 1
    return True


@kernel
def clear(slots, words, free, slot):
    """Empty the list in a slot; its mark stays."""
    value = slots[slot + 1]
    if value >> _START:
        release(words, free, value >> _START, (value >> _SIZE) & 31)
    slots[slot + 1] = value & _MARK


@kernel
def drop(slots, words, free, slot, at):
    """Take the item at `at` out of the list in a slot; the last one takes its place."""
    value = slots[slot + 1]
    start, count = value >> _START, value & _COUNT
    words[start + at] = words[start + count - 1]
    slots[slot + 1] = value - 1
    if count == 1:
        clear(slots, words, free, slot)


@kernel
def insert(slots, words, free, counters, slot, at, item):
    """Put an item into the list in a slot at `at`; False, and no change, if there is no room."""
    if not append(slots, words, free, counters, slot, item):
        return False
    first = start_of(slots[slot + 1]) + at
    for n in range(start_of(slots[slot + 1]) + count_of(slots[slot + 1]) - 1, first, -1):
        words[n] = words[n - 1]
    words[first] = item
    return True


@kernel
def cut(slots, words, free, slot, at):
    """Take the item at `at` out of the list in a slot; the order of the others stays."""
    start, last = start_of(slots[slot + 1]), count_of(slots[slot + 1]) - 1
    for n in range(start + at, start + last):
        words[n] = words[n + 1]
    drop(slots, words, free, slot, last)


@kernel
def move_slots(slots, old, counters, most):
    """Move some slots of the old table to the new one; lists that are empty and not marked are forgotten."""
    first = counters[MOVED]
    stop = min(first + most, old.size // 2)
    for slot in range(2 * first, 2 * stop, 2):
        if old[slot] > 0 and old[slot + 1] == 0:
            counters[USED] -= 1
        elif old[slot] > 0:
            at = probe(slots, old[slot])
            slots[at] = old[slot]
            slots[at + 1] = old[slot + 1]
    counters[MOVED] = stop
