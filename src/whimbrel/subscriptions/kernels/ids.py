"""Names of subscriptions, texts or whole numbers: from a name to its number and back."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.lists import (
    allocate,
    append,
    count_of,
    drop,
    exponent_for,
    has_slots,
    look,
    release,
    scramble,
    settle,
    start_of,
)

_POSITIVE = (1 << 62) - 1


@kernel
def _key(hashed):
    return np.int64(scramble(hashed) & np.uint64(_POSITIVE)) | 1


@kernel
def _is_named(number, name, offsets, data, names, words, is_text):
    """Tell whether a subscription has the `name`-th of the given names."""
    if not is_text:
        return names[number] == data[name]
    start, size = names[number], offsets[name + 1] - offsets[name]
    if words[start] != size:
        return False
    kept = words.view(np.uint8)
    for n in range(size):
        if kept[8 * start + 8 + n] != data[offsets[name] + n]:
            return False
    return True


@kernel
def numbers_of(hashes, offsets, data, names, is_text, slots, old, words):
    """Look up the numbers of names, -1 for those that nobody has."""
    numbers = np.full(hashes.size, -1, np.int64)
    for name in range(hashes.size):
        value = look(slots, old, _key(hashes[name]))
        start = start_of(value)
        for n in range(start, start + count_of(value)):
            if _is_named(words[n], name, offsets, data, names, words, is_text):
                numbers[name] = words[n]
    return numbers


@kernel
def enter(numbers, at, hashes, offsets, data, names, is_text, slots, old, words, free, counters):
    """Store the names of numbers, from the `at`-th on; give the first for which there is no room."""
    while at < numbers.size:
        number = numbers[at]
        if not has_slots(slots, counters, 1):
            return at
        kept = np.int64(0)
        if is_text:
            size = offsets[at + 1] - offsets[at]
            exponent = exponent_for(1 + (size + 7) // 8)
            kept = allocate(words, free, counters, exponent)
            if kept < 0:
                return at
        slot = settle(slots, old, counters, _key(hashes[at]), True)
        if not append(slots, words, free, counters, slot, number):
            if is_text:
                release(words, free, kept, exponent)
            return at
        if is_text:
            words[kept] = size
            names[number] = kept
            texts = words.view(np.uint8)
            for n in range(size):
                texts[8 * kept + 8 + n] = data[offsets[at] + n]
        else:
            names[number] = data[at]
        at += 1
    return at


@kernel
def forget(numbers, hashes, names, is_text, slots, old, words, free, counters):
    """Take names away."""
    for at in range(numbers.size):
        number = numbers[at]
        slot = settle(slots, old, counters, _key(hashes[at]), False)
        value = slots[slot + 1]
        start = start_of(value)
        for n in range(count_of(value)):
            if words[start + n] == number:
                drop(slots, words, free, slot, n)
                break
        if is_text:
            kept = names[number]
            release(words, free, kept, exponent_for(1 + (words[kept] + 7) // 8))


@kernel
def lengths_of(numbers, names, words, offsets):
    """Add up the lengths of the names of numbers; give the whole."""
    total = np.int64(0)
    for n in range(numbers.size):
        offsets[n] = total
        total += words[names[numbers[n]]]
    offsets[numbers.size] = total
    return total


@kernel
def texts_of(numbers, names, words, data):
    """Write the names of numbers, one behind the other."""
    kept = words.view(np.uint8)
    at = 0
    for number in numbers:
        start = names[number]
        for n in range(8 * start + 8, 8 * start + 8 + words[start]):
            data[at] = kept[n]
            at += 1
