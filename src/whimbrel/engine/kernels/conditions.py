"""Conditions on one event, packed into words, and the test whether an event meets them.

A condition is a block of words: the number of its clauses, where another block of it starts (0: nowhere),
then three words for each clause: what is asked of which column, and two operands. The columns of a batch are
rows of two-dimensional arrays: two hashes of every value (both 0 for null), the value as a number (NaN if it
is none), and where its text lies in one array of bytes.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.ordering import mix
from whimbrel.space.kernels.jit import inlined, kernel
from whimbrel.space.kernels.lists import allocate, exponent_for, release, scramble

EQUAL, DIFFERENT, ONE_OF, BETWEEN, PREFIX, SUFFIX, SUBSTRING = range(7)
"""What a clause asks. Operands are two hashes; the start and length of a list of hashes; two numbers (as
bits); the start and length (in bytes) of a text."""

_COLUMN = 8


@inlined
def asked(clause):
    """Tell what a clause asks."""
    return clause & 255


@inlined
def column_of(clause):
    """Tell of which column."""
    return clause >> _COLUMN


@inlined
def clause_of(what, column):
    """Pack what is asked of which column."""
    return what | (column << _COLUMN)


@inlined
def meets(start, event, words, highs, lows, values, begins, ends, data):
    """Tell whether an event meets the condition that starts somewhere in the words; 0 asks nothing."""
    while start:
        for at in range(start + 2, start + 2 + 3 * words[start], 3):
            column = column_of(words[at])
            if asked(words[at]) == EQUAL:
                if highs[column, event] != words[at + 1] or lows[column, event] != words[at + 2]:
                    return False
            elif not _holds(at, event, words, highs, lows, values, begins, ends, data):
                return False
        start = words[start + 1]
    return True


@kernel
def _holds(at, event, words, highs, lows, values, begins, ends, data):
    """Tell whether an event meets a clause that asks for anything but a value."""
    what, column = asked(words[at]), column_of(words[at])
    one, two = words[at + 1], words[at + 2]
    high, low = highs[column, event], lows[column, event]
    if what == DIFFERENT:
        return (high != 0 or low != 0) and (high != one or low != two)
    if what == ONE_OF:
        for n in range(one, one + 2 * two, 2):
            if high == words[n] and low == words[n + 1]:
                return True
        return False
    if what == BETWEEN:
        bounds = words[at + 1 : at + 3].view(np.float64)
        return bounds[0] <= values[column, event] <= bounds[1]
    return _text_holds(what, one, two, begins[column, event], ends[column, event], words.view(np.uint8), data)


@kernel
def _text_holds(what, start, size, begin, end, patterns, data):
    last = end - size
    if begin < 0 or last < begin:
        return False
    if what == SUFFIX:
        return _same(patterns, 8 * start, data, last, size)
    if what == PREFIX:
        return _same(patterns, 8 * start, data, begin, size)
    for at in range(begin, last + 1):
        if _same(patterns, 8 * start, data, at, size):
            return True
    return False


@kernel
def _same(one, at, other, other_at, size):
    for n in range(size):
        if one[at + n] != other[other_at + n]:
            return False
    return True


_POSITIVE = (1 << 62) - 1


@kernel
def key_of_value(column, high):
    """Compute the key of the list of conditions that ask a column for one value; `high` is its hash."""
    return np.int64(scramble(high ^ (column << 48)) & np.uint64(_POSITIVE)) | 1


@kernel
def key_of_text(what, column, data, begin, size):
    """Compute the key of the list of conditions that ask for a text at the beginning, the end or anywhere."""
    h = np.uint64(0xCBF29CE484222325) + np.uint64(what)
    for n in range(begin, begin + size):
        h = (h ^ np.uint64(data[n])) * np.uint64(0x100000001B3)
    mixed = np.int64(h >> np.uint64(1)) ^ (column << 40) ^ (size << 20)
    return np.int64(scramble(mixed) & np.uint64(_POSITIVE)) | 1


@kernel
def write_own(numbers, at, shared, clauses, ones, twos, present, starts, words, free, counters):
    """Write conditions, from the `at`-th on, before a shared one: of every row of clauses those present.

    `clauses` says what each row asks of which column, `ones` and `twos` hold its operands, one for each
    condition. Gives the first number for which there is no room.
    """
    while at < numbers.size:
        count = 0
        for n in range(clauses.size):
            count += present[n, at]
        if count == 0:
            starts[numbers[at]] = -shared
            at += 1
            continue
        start = allocate(words, free, counters, exponent_for(2 + 3 * count))
        if start < 0:
            return at
        words[start] = count
        words[start + 1] = shared
        word = start + 2
        for n in range(clauses.size):
            if present[n, at]:
                words[word] = clauses[n]
                words[word + 1] = ones[n, at]
                words[word + 2] = twos[n, at]
                word += 3
        starts[numbers[at]] = start
        at += 1
    return at


@kernel
def release_own(starts, words, free):
    """Release blocks of conditions; give where the shared ones start that they were joined to."""
    shared = np.zeros(starts.size, np.int64)
    for n in range(starts.size):
        shared[n] = words[starts[n] + 1]
        release(words, free, starts[n], exponent_for(2 + 3 * words[starts[n]]))
    return shared


@kernel
def hash_numbers(numbers, kinds, high, low):
    """Hash 64-bit numbers, each with its kind, into two independent ones."""
    for n in range(numbers.size):
        number, kind = np.uint64(numbers[n]), np.uint64(kinds[n])
        high[n] = np.int64(mix(number * np.uint64(31) + kind))
        low[n] = np.int64(mix(number * np.uint64(37) + mix(kind + np.uint64(1))))
