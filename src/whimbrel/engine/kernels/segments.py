"""Loops over segments: which rows belong together, and one value for each segment.

A list of segments is `offsets` into `places`: segment s is places[offsets[s]:offsets[s + 1]].
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.grow import grow
from whimbrel.space.kernels.jit import kernel

SUM, MIN, MAX = 0, 1, 2


@kernel
def reduce_segments(how, values, null, offsets, places):
    """Give the sum, least or largest value of every segment, and whether it has none."""
    size = offsets.size - 1
    found = np.zeros(size, values.dtype)
    empty = np.ones(size, np.bool_)
    for s in range(size):
        for p in range(offsets[s], offsets[s + 1]):
            i = places[p]
            if null[i]:
                continue
            v = values[i]
            if empty[s]:
                found[s] = v
                empty[s] = False
            elif how == SUM:
                found[s] += v
            elif how == MIN:
                found[s] = min(found[s], v)
            else:
                found[s] = max(found[s], v)
    return found, empty


@kernel
def pick_segments(null, offsets, places, last):
    """Give the place of the first (or last) value of every segment; -1 where there is none."""
    size = offsets.size - 1
    found = np.full(size, -1, np.int64)
    for s in range(size):
        for p in range(offsets[s], offsets[s + 1]):
            if not null[places[p]]:
                found[s] = places[p]
                if not last:
                    break
    return found


@kernel
def count_segments(null, offsets, places):
    """Count the values of every segment."""
    size = offsets.size - 1
    found = np.zeros(size, np.int64)
    for s in range(size):
        for p in range(offsets[s], offsets[s + 1]):
            if not null[places[p]]:
                found[s] += 1
    return found


@kernel
def distinct_segments(codes, null, offsets, places):
    """Count the different values of every segment; values come as codes."""
    size = offsets.size - 1
    found = np.zeros(size, np.int64)
    for s in range(size):
        # Sorted, not hashed: windows are short, and codes are small numbers.
        values = np.empty(offsets[s + 1] - offsets[s], np.int64)
        n = 0
        for p in range(offsets[s], offsets[s + 1]):
            if not null[places[p]]:
                values[n] = codes[places[p]]
                n += 1
        values = values[:n]
        values.sort()
        for i in range(n):
            if i == 0 or values[i] != values[i - 1]:
                found[s] += 1
    return found


@kernel
def trailing_windows(group, end, fresh, length, count, within):
    """For rows sorted by group and then by order: how far back the window of each fresh row reaches.

    At most `length` microseconds, or, where `count` is positive, that many rows and `within`. Gives the fresh
    rows and the first row of each one's window. Both ends of a window only ever move on, so that it takes
    linear time.
    """
    size = end.size
    rows = np.empty(size, np.int64)
    first = np.empty(size, np.int64)
    n = 0
    left = 0
    begin = 0
    for i in range(size):
        if i == 0 or group[i] != group[i - 1]:
            left = i
            begin = i
        reach = length if count <= 0 else within
        while end[i] - end[left] > reach:
            left += 1
        if fresh[i]:
            rows[n] = i
            first[n] = left if count <= 0 else max(left, begin, i - count + 1)
            n += 1
    return rows[:n], first[:n]


@kernel
def list_iterations(group, item, until, start, end, fresh, least, most, within):
    """Give the runs of successive items that end in a fresh one, for rows sorted by group and order.

    A run has `least` to `most` items (`most` < 0: any number), spans at most `within`, and has no `until`
    row strictly between its first and last item. Gives segments of row places. Costs
    what it writes and, for each fresh row, at most `least` items more: runs are tried from the shortest on.
    """
    size = end.size
    chain = np.empty(size, np.int64)
    stops = np.zeros(size + 1, np.int64)
    offsets = np.zeros(65, np.int64)
    places = np.empty(64, np.int64)
    n = 0
    used = 0
    items = 0
    for i in range(size):
        if i == 0 or group[i] != group[i - 1]:
            items = 0
        # Running totals tell at once whether an `until` row lies between two others.
        stops[i + 1] = stops[i] + (1 if until[i] else 0)
        if not item[i]:
            continue
        chain[items] = i
        items += 1
        if not fresh[i]:
            continue
        earliest = start[i]
        for back in range(items - 1, -1, -1):
            j = chain[back]
            number = items - back
            earliest = min(earliest, start[j])
            if end[i] - earliest > within or (most >= 0 and number > most):
                break
            if number > 1 and stops[i] - stops[j + 1] > 0:
                break
            if number < least:
                continue
            if n + 2 > offsets.size:
                offsets = grow(offsets, 2 * offsets.size)
            while used + number > places.size:
                places = grow(places, 2 * places.size)
            for q in range(number):
                places[used + q] = chain[back + q]
            used += number
            n += 1
            offsets[n] = used
    return offsets[: n + 1], places[:used]
