"""How subscriptions are found: each in one way, chosen when it is added.

That is its place, or a range that a number must lie in, or a list. A list belongs to a value that a column
must have, to a text that it must begin or end with or contain, or to nothing in particular. Whoever is in the
shortest list, or in the narrowest range, is tried least often.
"""

from __future__ import annotations

import numpy as np

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
from whimbrel.subscriptions.kernels.conditions import (
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
from whimbrel.subscriptions.kernels.ranges import (
    enter_range,
    has_room_for_range,
    key_of_range,
    leave_range,
)

PLACE = 0
"""Instead of a key: the subscription is found through its place."""
ALWAYS = 1
"""The key of the list of those that every event is tried against."""
FEW = 4
"""A list shorter than this is a better way to a subscription than its place. A list that did not stay so
short is marked, and then it is no way to subscriptions that have a place."""
HALF = 16
"""A list so long is thought to concern half of all events; one that is longer, more of them."""
LONGEST = 16
"""Of a beginning or an end, so many bytes choose the list."""
GRAM = 4
"""Of a text that may lie anywhere, the first bytes choose the list."""


@kernel
def key_of_clause(at, words):
    """Give the key of the list that a clause chooses (0: none), and how many bytes of its text that takes."""
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
    """Choose a way to subscriptions, from the `at`-th on, and enter them there.

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
        place = settle(slots, old, counters, best, True)
        if not append(slots, words, free, counters, place, number):
            return at, gone
        keys[number] = best
        if chosen >= 0:
            _count(chosen, taken, 1, words, uses, sizes)
        at += 1
    return at, gone


@kernel
def _narrowest(start, words, seen):
    """Give the clause with the range in which the fewest values lie, 0 if there is none; and their share.

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
    place = settle(slots, old, counters, key, False)
    slots[place + 1] = marked(slots[place + 1])
    start = start_of(slots[place + 1])
    n = 0
    while n < count_of(slots[place + 1]):
        number = words[start + n]
        if has_place[number]:
            drop(slots, words, free, place, n)
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
    """Take subscriptions out of their lists and ranges."""
    for number in numbers:
        if keys[number] == PLACE:
            continue
        if keys[number] & 1 == 0:
            _leave_range(number, abs(conditions[number]), keys[number], ranges,
                         slots, old, words, free, counters)  # fmt: skip
            continue
        place = settle(slots, old, counters, keys[number], False)
        value = slots[place + 1]
        start = start_of(value)
        for n in range(count_of(value)):
            if words[start + n] == number:
                drop(slots, words, free, place, n)
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


@kernel
def find(
    count, first, uses, sizes, conditions, highs, lows, values, begins, ends, data,
    slots, old, words, rows, numbers,
):  # fmt: skip
    """Find the subscriptions that events meet through the lists, from the `first` event on.

    Gives the first event that is not done for lack of room in `rows` and `numbers`, and the number of pairs.
    """
    found = 0
    keys = np.empty(64, np.int64)
    for event in range(first, count):
        began = found
        used = _keys_of(event, keys, uses, sizes, highs, begins, ends, data, slots, old)
        while used > keys.size:
            keys = np.empty(2 * used, np.int64)
            used = _keys_of(event, keys, uses, sizes, highs, begins, ends, data, slots, old)
        for n in range(used):
            value = look(slots, old, keys[n])
            start = start_of(value)
            for place in range(start, start + count_of(value)):
                number = words[place]
                if meets(abs(conditions[number]), event, words, highs, lows, values, begins, ends, data):
                    if found == rows.size:
                        return event, began
                    rows[found] = event
                    numbers[found] = number
                    found += 1
    return count, found


@kernel
def _keys_of(event, keys, uses, sizes, highs, begins, ends, data, slots, old):
    """Collect the keys of all lists that may concern an event; give how many there are."""
    used = _note(np.int64(ALWAYS), 0, keys, slots, old)
    for column in range(min(uses.shape[0], highs.shape[0])):
        if uses[column, EQUAL] and highs[column, event]:
            used = _note(key_of_value(column, highs[column, event]), used, keys, slots, old)
        if uses[column, PREFIX] + uses[column, SUFFIX] + uses[column, SUBSTRING] == 0:
            continue
        begin, end = begins[column, event], ends[column, event]
        for size in range(1, min(LONGEST, end - begin) + 1):  # none of a null, which ends before it begins
            if sizes[column, PREFIX, size]:
                used = _note(key_of_text(PREFIX, column, data, begin, size), used, keys, slots, old)
            if sizes[column, SUFFIX, size]:
                used = _note(key_of_text(SUFFIX, column, data, end - size, size), used, keys, slots, old)
            if sizes[column, SUBSTRING, size]:
                for place in range(begin, end - size + 1):
                    used = _note(key_of_text(SUBSTRING, column, data, place, size), used, keys, slots, old)
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
