"""An index of ranges of numbers: an interval tree whose nodes are found through a hash table.

Numbers are read as whole numbers of 64 bits that have the same order. The node of a range is where the bits
of its two ends part: they have the bits above in common, and the node's middle lies between them. So a range
is in one node, and a number has one node to look into for each level, of those levels that are in use. There,
a number below the middle lies in the ranges that begin at or before it, and any other in those that end at or
after it: a node keeps its ranges in two chains, by where they begin and by where they end (the end negated).

A value is looked up in O(levels in use + ranges found), a range entered or taken out in O(log n + 255) for
the n ranges of its node. (The tree is Edelsbrunner's, "Dynamic Data Structures for Orthogonal Intersection
Queries", 1980, with its nodes fixed by the numbers themselves, so that nothing is ever balanced.)

A chain is sorted. Its list holds blocks; a block is the number of its entries, then two words for each, the
bound and the condition. Blocks that are full are split, so that no change moves more than one block and
the list of them.
"""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import inlined, kernel
from whimbrel.space.kernels.lists import (
    TOP,
    allocate,
    count_of,
    cut,
    exponent_for,
    has_slots,
    insert,
    look,
    release,
    room_of,
    scramble,
    settle,
    start_of,
)

LEVELS = 65
"""The ends of a range may part at any of 64 bits, or be the same."""
_FULL = 255
"""So many entries fit into a block."""
_WORDS = 1 << 9
_POSITIVE = (1 << 62) - 2
_SIGN, _ALL = 1 << 63, (1 << 64) - 1


@inlined
def ordered(bits):
    """Turn the bits of a float into a whole number that has the same order; there must be no -0.0."""
    return np.uint64(bits) ^ (np.uint64(_ALL) if bits < 0 else np.uint64(_SIGN))


@kernel
def level_of(low, high):
    """Tell at which bit, from below, two ordered numbers part; 0 if they are the same."""
    apart, level = low ^ high, 0
    while apart:
        apart >>= np.uint64(1)
        level += 1
    return level


@inlined
def _node(number, level):
    """Cut off all bits below a level."""
    return number >> np.uint64(level) if level < 64 else np.uint64(0)


@inlined
def is_above(number, level):
    """Tell on which side of the middle of its node a number lies: 1 if not below it."""
    return np.int64((number >> np.uint64(level - 1)) & np.uint64(1)) if level else 0


@inlined
def key_of_chain(column, level, number, by_end):
    """Compute the key of a chain of the node that a number has on a level; an even one, as no list has."""
    above = scramble(np.int64(_node(number, level)))
    kind = np.uint64((column << 8) | (level << 1) | by_end)
    return np.int64((scramble(np.int64(above + kind)) & np.uint64(_POSITIVE)) | np.uint64(2))


@kernel
def key_of_range(column, low, high):
    """Compute the key of the first chain of a range, from the bits of its ends; and its level."""
    level = level_of(ordered(low), ordered(high))
    return key_of_chain(column, level, ordered(low), 0), level


@kernel
def has_room_for_range(column, low, high, slots, old, words, counters):
    """Tell whether a range can be entered without running out of room on the way."""
    level = level_of(ordered(low), ordered(high))
    wanted = 4 * _WORDS
    for by_end in range(2):
        wanted += 2 * room_of(look(slots, old, key_of_chain(column, level, ordered(low), by_end))) + 1
    return has_slots(slots, counters, 2) and counters[TOP] + wanted <= words.size


@kernel
def enter_range(column, low, high, number, slots, old, words, free, counters):
    """Put a range into both chains of its node; there must be room."""
    level = level_of(ordered(low), ordered(high))
    ends = np.array([low, high]).view(np.float64)
    for by_end in range(2):
        key = key_of_chain(column, level, ordered(low), by_end)
        slot = settle(slots, old, counters, key, True)
        bound = -ends[1] if by_end else ends[0]
        _enter(slot, bound, number, slots, words, words.view(np.float64), free, counters)


@kernel
def leave_range(column, low, high, number, slots, old, words, free, counters):
    """Take a range out of both chains of its node."""
    level = level_of(ordered(low), ordered(high))
    ends = np.array([low, high]).view(np.float64)
    for by_end in range(2):
        key = key_of_chain(column, level, ordered(low), by_end)
        slot = settle(slots, old, counters, key, False)
        bound = -ends[1] if by_end else ends[0]
        _leave(slot, bound, number, slots, words, words.view(np.float64), free)


@inlined
def _is_after(at, bound, number, words, bounds):
    """Tell whether the entry at a place comes after a bound and a condition."""
    return bounds[at] > bound or (bounds[at] == bound and words[at + 1] > number)


@kernel
def _block_for(value, bound, number, words, bounds):
    """Tell which block of a chain an entry belongs to: the last one that does not begin after it."""
    start, first, last = start_of(value), 0, count_of(value) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if _is_after(words[start + middle] + 1, bound, number, words, bounds):
            last = middle - 1
        else:
            first = middle
    return first


@kernel
def _enter(slot, bound, number, slots, words, bounds, free, counters):
    value = slots[slot + 1]
    if count_of(value) == 0:
        block = allocate(words, free, counters, 2)
        words[block] = 0
        insert(slots, words, free, counters, slot, 0, block)
        value = slots[slot + 1]
    which = _block_for(value, bound, number, words, bounds)
    block = words[start_of(value) + which]
    if words[block] == _FULL:
        later = _split(block, words, free, counters)
        insert(slots, words, free, counters, slot, which + 1, later)
        if not _is_after(later + 1, bound, number, words, bounds):
            block, which = later, which + 1
    block = _with_room(block, words, free, counters)
    words[start_of(slots[slot + 1]) + which] = block
    at = block + 1 + 2 * words[block]
    while at > block + 1 and _is_after(at - 2, bound, number, words, bounds):
        words[at], words[at + 1] = words[at - 2], words[at - 1]
        at -= 2
    bounds[at] = bound
    words[at + 1] = number
    words[block] += 1


@kernel
def _with_room(block, words, free, counters):
    """Make a block with the same entries that has room for one more."""
    count = words[block]
    exponent = exponent_for(1 + 2 * count)
    if 3 + 2 * count <= 1 << exponent or count == 0:
        return block
    larger = allocate(words, free, counters, exponent + 1)
    words[larger : larger + 1 + 2 * count] = words[block : block + 1 + 2 * count]
    release(words, free, block, exponent)
    return larger


@kernel
def _split(block, words, free, counters):
    """Move the later half of a full block into a new one."""
    half = _FULL // 2
    later = allocate(words, free, counters, exponent_for(1 + 2 * (_FULL - half)))
    words[later] = _FULL - half
    words[later + 1 : later + 1 + 2 * (_FULL - half)] = words[block + 1 + 2 * half : block + 1 + 2 * _FULL]
    _shorten(block, half, words, free)
    return later


@kernel
def _shorten(block, count, words, free):
    """Leave so many entries in a block, and release the half of it that is no longer needed, if it is not."""
    exponent, needed = max(2, exponent_for(1 + 2 * words[block])), max(2, exponent_for(1 + 2 * count))
    words[block] = count
    while exponent > needed:
        exponent -= 1
        release(words, free, block + (1 << exponent), exponent)


@kernel
def _leave(slot, bound, number, slots, words, bounds, free):
    value = slots[slot + 1]
    which = _block_for(value, bound, number, words, bounds)
    block = words[start_of(value) + which]
    at, stop = block + 1, block + 1 + 2 * words[block]
    while words[at + 1] != number or bounds[at] != bound:
        at += 2
    words[at : stop - 2] = words[at + 2 : stop].copy()
    if words[block] > 1:
        _shorten(block, words[block] - 1, words, free)
        return
    release(words, free, block, 2)
    cut(slots, words, free, slot, which)
