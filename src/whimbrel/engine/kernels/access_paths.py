"""How conditions are found: each in one way, chosen when it is added.

That is its place, or a range that a number must lie in, or a list. A list belongs to a value that a column
must have, to a text that it must begin or end with or contain, or to nothing in particular. Whoever is in the
shortest list, or in the narrowest range, is tried least often. Choosing takes O(clauses); a list that has
become too popular for those who have a place is emptied of them once, O(its length).
"""

from __future__ import annotations

import numpy as np

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
)
from whimbrel.engine.kernels.interval_tree import (
    enter_range,
    has_room_for_range,
    key_of_range,
    leave_range,
)
from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.lists import (
    append,
    count_of,
    drop,
    has_slots,
    is_marked,
    look,
    marked,
    settle,
    start_of,
)

PLACE = 0
"""Instead of a key: the condition is found through its place."""
ALWAYS = 1
"""The key of the list of those that every event is tried against."""
FEW = 4
"""A list shorter than this is a better way to a condition than its place. A list that did not stay so
short is marked, and then it is no way to conditions that have a place."""
HALF = 16
"""A list so long is thought to concern half of all events; one that is longer, more of them."""
LONGEST = 16
"""Of a beginning or an end, so many bytes choose the list."""
GRAM = 4
"""Of a text that may lie anywhere, the first bytes choose the list."""


@kernel
def key_of_clause(at, words):
    """Compute the key of the list of a clause (0: none), and how many bytes of its text that takes."""
    what, column = asked(words[at]), column_of(words[at])
    if what == EQUAL:
        return key_of_value(column, words[at + 1]), 0
    if what == PREFIX or what == SUFFIX or what == SUBSTRING:
        size = words[at + 2]
        taken = min(size, GRAM if what == SUBSTRING else LONGEST)
        begin = 8 * words[at + 1]
        if what == SUFFIX:
            begin += size - taken
        if taken:
            return key_of_text(what, column, words.view(np.uint8), begin, taken), taken
    return np.int64(0), 0


@kernel
def choose(
    numbers, at, has_place, conditions, keys, uses, sizes, ranges, seen, evicted,
    slots, old, words, free, counters,
):  # fmt: skip
    """Choose a way to conditions, from the `at`-th on, and enter them there.

    Gives the first that is not done for lack of room, and how many of others were evicted: the list that led
    to them has become popular, and now their place does. `uses` counts, for each column and kind of clause,
    who is found through it; `sizes` does so for each number of bytes of a text, `ranges` for each level.
    `seen` are some values that each column had, which tell how much a range selects.
    """
    gone = 0
    while at < numbers.size:
        number = numbers[at]
        best, least, chosen, taken = np.int64(ALWAYS), np.int64(1) << 62, np.int64(-1), 0
        start = abs(conditions[number])
        while start:
            for clause in range(start + 2, start + 2 + 3 * words[start], 3):
                key, size = key_of_clause(clause, words)
                value = look(slots, old, key) if key else np.int64(0)
                is_open = not (has_place[number] and is_marked(value))
                if key and is_open and count_of(value) < least:
                    best, least, chosen, taken = key, count_of(value), clause, size
            start = words[start + 1]
        if has_place[number] and least >= FEW:
            if chosen >= 0:
                if gone + least > evicted.size:
                    return at, gone
                gone = _evict(best, has_place, conditions, keys, uses, sizes, evicted, gone,
                              slots, old, words, free, counters)  # fmt: skip
                continue  # there may be another list
            keys[number] = PLACE
            at += 1
            continue
        narrowest, share = _narrowest(abs(conditions[number]), words, seen)
        if narrowest and not has_place[number] and (chosen < 0 or share * (least + HALF) < least):
            column, low, high = column_of(words[narrowest]), words[narrowest + 1], words[narrowest + 2]
            if not has_room_for_range(column, low, high, slots, old, words, counters):
                return at, gone
            enter_range(column, low, high, number, slots, old, words, free, counters)
            keys[number], level = key_of_range(column, low, high)
            ranges[column, level] += 1
            at += 1
            continue
        if not has_slots(slots, counters, 1):
            return at, gone
        slot = settle(slots, old, counters, best, True)
        if not append(slots, words, free, counters, slot, number):
            return at, gone
        keys[number] = best
        if chosen >= 0:
            _count(chosen, taken, 1, words, uses, sizes)
        at += 1
    return at, gone


@kernel
def _narrowest(start, words, seen):
    """Choose the clause with the range in which the fewest values lie, 0 if there is none; and their share.

    Where nothing was seen yet, a range of two ends is narrower than one that goes on for ever.
    """
    best, least, bounds = np.int64(0), np.inf, words.view(np.float64)
    while start:
        for clause in range(start + 2, start + 2 + 3 * words[start], 3):
            if asked(words[clause]) == BETWEEN:
                low, high, column = bounds[clause + 1], bounds[clause + 2], column_of(words[clause])
                inside, known = 1.0 if np.isinf(high - low) else 0.5, 2.0
                for value in seen[column]:
                    inside += low <= value <= high
                    known += value == value
                if inside / known < least:
                    best, least = clause, inside / known
        start = words[start + 1]
    return best, least


@kernel
def _evict(key, has_place, conditions, keys, uses, sizes, evicted, gone, slots, old, words, free, counters):
    """Mark a list as popular, and take out of it who has a place; give how many are evicted by now."""
    slot = settle(slots, old, counters, key, False)
    slots[slot + 1] = marked(slots[slot + 1])
    start = start_of(slots[slot + 1])
    n = 0
    while n < count_of(slots[slot + 1]):
        number = words[start + n]
        if has_place[number]:
            drop(slots, words, free, slot, n)
            _uncount(abs(conditions[number]), key, words, uses, sizes)
            keys[number] = PLACE
            evicted[gone] = number
            gone += 1
        else:
            n += 1
    return gone


@kernel
def _count(clause, taken, change, words, uses, sizes):
    what, column = asked(words[clause]), column_of(words[clause])
    uses[column, what] += change
    sizes[column, what, taken] += change


@kernel
def _uncount(start, chosen, words, uses, sizes):
    while start:
        for clause in range(start + 2, start + 2 + 3 * words[start], 3):
            key, size = key_of_clause(clause, words)
            if key == chosen:
                _count(clause, size, -1, words, uses, sizes)
                return
        start = words[start + 1]


@kernel
def leave(numbers, conditions, keys, uses, sizes, ranges, slots, old, words, free, counters):
    """Take conditions out of their lists and ranges."""
    for number in numbers:
        if keys[number] == PLACE:
            continue
        if keys[number] & 1 == 0:
            _leave_range(number, abs(conditions[number]), keys[number], ranges,
                         slots, old, words, free, counters)  # fmt: skip
            continue
        slot = settle(slots, old, counters, keys[number], False)
        value = slots[slot + 1]
        start = start_of(value)
        for n in range(count_of(value)):
            if words[start + n] == number:
                drop(slots, words, free, slot, n)
                break
        _uncount(abs(conditions[number]), keys[number], words, uses, sizes)


@kernel
def _leave_range(number, start, chosen, ranges, slots, old, words, free, counters):
    while start:
        for clause in range(start + 2, start + 2 + 3 * words[start], 3):
            column, low, high = column_of(words[clause]), words[clause + 1], words[clause + 2]
            if asked(words[clause]) == BETWEEN:
                key, level = key_of_range(column, low, high)
                if key == chosen:
                    leave_range(column, low, high, number, slots, old, words, free, counters)
                    ranges[column, level] -= 1
                    return
        start = words[start + 1]
