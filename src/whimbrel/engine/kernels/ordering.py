"""Loops over times and identities: is it sorted, what number has an event among its equals, hashes."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel

UNSORTED, TIED, SORTED = 0, 1, 2


@kernel
def sortedness(end, start):
    """Tell whether rows are in order of (end, start), and whether any two have the same times."""
    found = SORTED
    for i in range(1, end.size):
        if end[i] < end[i - 1] or (end[i] == end[i - 1] and start[i] < start[i - 1]):
            return UNSORTED
        if end[i] == end[i - 1] and start[i] == start[i - 1]:
            found = TIED
    return found


@kernel
def mix(h):
    """Scramble 64 bits so that every input bit reaches every output bit (the end of MurmurHash3, Appleby)."""
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


@kernel
def hash_texts(offsets, data, high, low):
    """Give two independent 64-bit hashes of every text (FNV-1a with a final scramble)."""
    for i in range(high.size):
        a = np.uint64(0xCBF29CE484222325)
        b = np.uint64(0x9E3779B97F4A7C15)
        for p in range(offsets[i], offsets[i + 1]):
            a = (a ^ np.uint64(data[p])) * np.uint64(0x100000001B3)
            b = (b ^ np.uint64(data[p])) * np.uint64(0x00000100000001B3 + 0xA6)
        size = np.uint64(offsets[i + 1] - offsets[i])
        high[i] = mix(a ^ size)
        low[i] = mix(b + size)


@kernel
def hash_lists(seed_high, seed_low, offsets, high, low, out_high, out_low):
    """Fold the hashes of every list, in order, into one.

    The multipliers make the order count: the same events as other parts of a pattern are another detection.
    """
    for i in range(out_high.size):
        a = seed_high[i]
        b = seed_low[i]
        for p in range(offsets[i], offsets[i + 1]):
            a = mix(a * np.uint64(31) + high[p])
            b = mix(b * np.uint64(37) + low[p])
        out_high[i] = a
        out_low[i] = b


@kernel
def number_among_equals(end, start, kinds, contents, places):
    """Count the events of one kind and content with the same times: 0, 1, 2, ...; rows are sorted by time.

    The table is open addressing with `places`, a power of two that is more than events have the same times.
    It is not emptied from one time to the next: a place counts if the rows of this time have taken it.
    """
    number = np.zeros(end.size, np.int64)
    taken = np.full(places, -1, np.int64)
    row = np.zeros(places, np.int64)
    first = 0
    for i in range(end.size):
        if end[i] != end[first] or start[i] != start[first]:
            first = i
        # Linear probing; the number of the first row of a time is the stamp of that time.
        p = np.int64(mix(np.uint64(contents[i]) + np.uint64(kinds[i]))) & (places - 1)
        while taken[p] == first and (kinds[row[p]] != kinds[i] or contents[row[p]] != contents[i]):
            p = (p + 1) & (places - 1)
        if taken[p] == first:
            number[i] = number[row[p]] + 1
        taken[p] = first
        row[p] = i
    return number


@kernel
def first_of_its_kind(high, low, end, table_high, table_low, table_end, used, wait):
    """Mark the rows whose identity was seen at most `wait` before; remember the others in the table.

    The table is open addressing with a power of two of places, at most half full.
    """
    repeated = np.zeros(high.size, np.bool_)
    places = np.uint64(table_high.size - 1)
    added = 0
    for i in range(high.size):
        p = high[i] & places
        while True:
            if used[p] == 0:
                used[p] = 1
                table_high[p] = high[i]
                table_low[p] = low[i]
                table_end[p] = end[i]
                added += 1
                break
            if table_high[p] == high[i] and table_low[p] == low[i]:
                # Late enough, the same id is another event; the place is kept for whoever probed past it.
                if end[i] - table_end[p] <= wait:
                    repeated[i] = True
                else:
                    table_end[p] = end[i]
                break
            p = (p + np.uint64(1)) & places
    return repeated, added
