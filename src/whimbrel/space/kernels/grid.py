"""Shapes in a grid of cells of many sizes: put in, take out, and find those that a point lies in.

A cell is known by its level (cells of level n are 2**n wide), column and row, packed into one key. Its list
holds an item for each shape: number, whether the cell lies wholly inside, kind, and in 32 bits the part of
the bounding box within the cell. A marked cell is split: shapes that only touch it are held by finer cells.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.kernels.cover import (
    APART,
    EVERYWHERE,
    INSIDE,
    TOUCHING,
    as_point,
    bounds,
    clipped,
    is_in_box,
    relation,
    step,
)
from whimbrel.space.kernels.exact import (
    BOX,
    CIRCLE,
    POLYGON,
    UNSURE,
    in_rings_exactly,
    side_of_rings,
)
from whimbrel.space.kernels.jit import inlined, kernel, prefetch
from whimbrel.space.kernels.lists import (
    FREE,
    allocate,
    append,
    count_of,
    drop,
    exponent_for,
    has_slots,
    is_marked,
    look,
    marked,
    release,
    scramble,
    settle,
    start_of,
)
from whimbrel.space.kernels.sphere import half_chord

PENDING = 4
"""Place in the array of counters: how many pairs of shape and cell wait on the stack."""

LEVELS = 128
MIDDLE = 64
"""Level 0, with cells of size 1, has this number: numbers are positive."""

CROWDED = 32
"""A cell with so many shapes is split, if enough of them only touch it."""
HOPELESS = 4096
"""A cell that could not be split before it had so many shapes is not tried again."""
DEEPEST = 3
"""So many levels below its own a shape may be held: the border of a circle is then some 40 cells long."""
_FINEST = 20
"""Cells are not made smaller than 2**-20 of the coordinates, whatever the size of a shape."""

_HALF = 1 << 27
_AXIS = (1 << 28) - 1
_NUMBER, _INSIDE, _KIND = 35, 1 << 34, 32


@inlined
def key_of(level, column, row):
    """Pack level, column and row of a cell."""
    return (level << 56) | ((column + _HALF) << 28) | (row + _HALF)


@kernel
def _cell(key):
    """Unpack level, column and row."""
    return key >> 56, ((key >> 28) & _AXIS) - _HALF, (key & _AXIS) - _HALF


@kernel
def level_for(x0, y0, x1, y1):
    """Choose the level of a shape: the finest even one whose cells are wider than its bounding box.

    Fewer levels mean fewer lookups, and sorting out more shapes by their boxes costs less than these. The
    levels between serve cells that are split.
    """
    _, level = math.frexp(max(x1 - x0, y1 - y0))
    _, far = math.frexp(max(abs(x0), abs(y0), abs(x1), abs(y1)))
    level = min(max(level, far - _FINEST, 2 - MIDDLE), LEVELS - 2 - MIDDLE) + MIDDLE
    return level + level % 2


@kernel
def _push_cells(number, kinds, levels, shapes, lonlat, scales, stack, counters):
    """Put the cells of a shape's own level onto the stack."""
    kind, level = kinds[number], np.int64(levels[number])
    x0, y0, x1, y1 = bounds(kind, number, shapes, lonlat)
    scale = scales[level]
    low, high = np.int64(math.floor(y0 * scale)), np.int64(math.floor(y1 * scale))
    on_globe = lonlat and kind == CIRCLE
    left, right = (max(x0, -180.0), min(x1, 180.0)) if on_globe else (x0, x1)
    first, last = np.int64(math.floor(left * scale)), np.int64(math.floor(right * scale))
    _push_block(number, level, first, last, low, high, stack, counters)
    if on_globe and (x0 < -180 or x1 > 180):  # the rest lies beyond the date line
        left, right = (x0 + 360, 180.0) if x0 < -180 else (-180.0, x1 - 360)
        more, most = np.int64(math.floor(left * scale)), np.int64(math.floor(right * scale))
        for column in range(more, most + 1):
            if column < first or column > last:
                _push_block(number, level, column, column, low, high, stack, counters)


@kernel
def _push_block(number, level, first, last, low, high, stack, counters):
    for column in range(first, last + 1):
        for row in range(low, high + 1):
            _push(number, key_of(level, column, row), stack, counters)


@kernel
def _push(number, key, stack, counters):
    stack[counters[PENDING], 0] = number
    stack[counters[PENDING], 1] = key
    counters[PENDING] += 1


@kernel
def _push_children(number, level, column, row, stack, counters):
    for right in range(2):
        for up in range(2):
            _push(number, key_of(level - 1, 2 * column + right, 2 * row + up), stack, counters)


@kernel
def _goes_deeper(own_level, level, column, row):
    """Tell whether a shape that touches a split cell is held by its children."""
    return own_level - level < DEEPEST and level > 1 and max(abs(2 * column), abs(2 * row)) < _HALF - 2


@kernel
def add_shapes(
    numbers,
    at,
    kinds,
    levels,
    shapes,
    rings,
    lonlat,
    scales,
    natives,
    slots,
    old,
    words,
    free,
    counters,
    stack,
):
    """Put shapes into their cells, from the `at`-th number on; give the first that is not done.

    It stops where it lacks room: call again with more, until all numbers are done and nothing waits on the
    stack.
    """
    corners = words.view(np.float64)
    while True:
        while counters[PENDING] > 0:
            counters[PENDING] -= 1
            number, key = stack[counters[PENDING], 0], stack[counters[PENDING], 1]
            if not _put(
                number, key, kinds, levels, shapes, rings, corners, lonlat, scales, natives,
                slots, old, words, free, counters, stack,
            ):  # fmt: skip
                counters[PENDING] += 1
                return at
        if at == numbers.size:
            return at
        number = numbers[at]
        x0, y0, x1, y1 = bounds(kinds[number], number, shapes, lonlat)
        levels[number] = level_for(x0, y0, x1, y1)
        natives[levels[number]] += 1
        _push_cells(number, kinds, levels, shapes, lonlat, scales, stack, counters)
        at += 1


@kernel
def _put(
    number, key, kinds, levels, shapes, rings, corners, lonlat, scales, natives,
    slots, old, words, free, counters, stack,
):  # fmt: skip
    """Put a shape into a cell, or onto the stack for the cell's children; False if there is no room."""
    level, column, row = _cell(key)
    scale, kind = scales[level], np.int64(kinds[number])
    size = 1 / scale
    coverage = relation(kind, number, shapes, rings, corners, lonlat, column * size, row * size, size)
    if coverage == APART:
        return True
    if not has_slots(slots, counters, 1):
        return False
    slot = settle(slots, old, counters, key, True)
    count = count_of(slots[slot + 1]) + 1
    is_full = CROWDED <= count <= HOPELESS and count & (count - 1) == 0
    if stack.shape[0] - counters[PENDING] < (4 * count if is_full else 4):
        return False
    if (
        coverage == TOUCHING
        and is_marked(slots[slot + 1])
        and _goes_deeper(levels[number], level, column, row)
    ):
        _push_children(number, level, column, row, stack, counters)
        return True
    item = (number << _NUMBER) | (kind << _KIND)
    if coverage == INSIDE:
        item |= _INSIDE | EVERYWHERE
    else:
        item |= clipped(kind, number, shapes, lonlat, scale, column, row)
    if not append(slots, words, free, counters, slot, item):
        return False
    if is_full:
        _split(level, column, row, levels, natives, slot, slots, words, free, counters, stack)
    return True


@kernel
def _split(level, column, row, levels, natives, slot, slots, words, free, counters, stack):
    """Take what only touches a crowded cell out of it and onto the stack, for the cell's children."""
    value = slots[slot + 1]
    start, count = start_of(value), count_of(value)
    deeper = 0
    for n in range(start, start + count):
        if words[n] & _INSIDE == 0 and _goes_deeper(levels[words[n] >> _NUMBER], level, column, row):
            deeper += 1
    if 2 * deeper < CROWDED:
        return
    slots[slot + 1] = marked(value)
    natives[LEVELS + level - 1] += 1
    n = 0
    while n < count_of(slots[slot + 1]):
        item = words[start + n]
        if item & _INSIDE == 0 and _goes_deeper(levels[item >> _NUMBER], level, column, row):
            _push_children(item >> _NUMBER, level, column, row, stack, counters)
            drop(slots, words, free, slot, n)
        else:
            n += 1


@kernel
def remove_shapes(
    numbers, kinds, levels, shapes, rings, lonlat, scales, natives, slots, old, words, free, counters, stack
):
    """Take shapes out of their cells."""
    corners = words.view(np.float64)
    for at in range(numbers.size):
        number = numbers[at]
        natives[levels[number]] -= 1
        _push_cells(number, kinds, levels, shapes, lonlat, scales, stack, counters)
        while counters[PENDING] > 0:
            counters[PENDING] -= 1
            key = stack[counters[PENDING], 1]
            level, column, row = _cell(key)
            size = 1 / scales[level]
            kind = np.int64(kinds[number])
            coverage = relation(kind, number, shapes, rings, corners, lonlat, column * size, row * size, size)
            if coverage == APART:
                continue
            slot = settle(slots, old, counters, key, False)
            if slot < 0:
                continue
            deeper = is_marked(slots[slot + 1]) and _goes_deeper(levels[number], level, column, row)
            if coverage == TOUCHING and deeper:
                _push_children(number, level, column, row, stack, counters)
            else:
                _take_out(number, slot, slots, words, free)


@kernel
def _take_out(number, slot, slots, words, free):
    value = slots[slot + 1]
    start = start_of(value)
    for n in range(count_of(value)):
        if words[start + n] >> _NUMBER == number:
            drop(slots, words, free, slot, n)
            return


BLOCK = 128
"""So many points are looked up side by side, so that waiting for memory overlaps."""


@kernel
def look_up(x, y, first, levels, natives, scales, shapes, rings, lonlat, slots, old, words, rows, numbers):
    """Find the shapes that points lie in, from the `first` point on.

    Gives the first point that is not done, for lack of room in `rows` and `numbers`, and how many pairs were
    found. `levels` are those that hold anything, coarse to fine; points without coordinates (NaN) lie
    nowhere.
    """
    near, items, room = scratch()
    count = 0
    for begin in range(first, x.size, BLOCK):
        px, py = x[begin : begin + BLOCK], y[begin : begin + BLOCK]
        waiting, near, items = candidates(
            px, py, levels, natives, scales, slots, old, words, near, items, room
        )
        kept = lie_in(px, py, near, items, waiting, shapes, rings, words, lonlat)
        if count + kept > rows.size:
            return begin, count
        write_in_order(near, items, kept, begin, rows, numbers, count, room)
        count += kept
    return x.size, count


@kernel
def scratch():
    """Allocate what a look-up works in: pairs of a point and an item, and room for each point of a block."""
    return np.empty(16 * BLOCK, np.int64), np.empty(16 * BLOCK, np.int64), np.empty((4, BLOCK + 1), np.int64)


@kernel
def candidates(px, py, levels, natives, scales, slots, old, words, near, items, room):
    """Collect the items of the cells that points lie in and in whose boxes they lie: point and item."""
    waiting = 0
    keys, probes, values, is_split = room[0], room[1], room[2], room[3]
    is_split[:] = 0
    last = np.uint64(slots.size // 2 - 1)
    for level in levels:
        is_native, scale = natives[level] > 0, scales[level]
        # Each loop asks for memory that the next one reads, for all points, before any has to wait for it.
        for n in range(px.size):
            keys[n] = FREE
            across, upward = px[n] * scale, py[n] * scale
            if (is_native or is_split[n]) and abs(across) < _HALF - 2 and abs(upward) < _HALF - 2:
                keys[n] = key_of(level, np.int64(math.floor(across)), np.int64(math.floor(upward)))
                probes[n] = 2 * np.int64(scramble(keys[n]) & last)
                prefetch(slots, probes[n])
        most = waiting
        for n in range(px.size):
            values[n] = 0
            if keys[n] != FREE:
                is_there = slots[probes[n]] == keys[n]
                values[n] = slots[probes[n] + 1] if is_there else look(slots, old, keys[n])
                prefetch(words, start_of(values[n]))
                most += count_of(values[n])
            is_split[n] = is_marked(values[n])
        if most > near.size:
            near, items = longer(near, most), longer(items, most)
        for n in range(px.size):
            if values[n] == 0:
                continue
            across, upward = px[n] * scale, py[n] * scale
            point = as_point(step(across, math.floor(across)), step(upward, math.floor(upward)))
            start = start_of(values[n])
            for at in range(start, start + count_of(values[n])):
                near[waiting] = n
                items[waiting] = words[at]
                # Counting instead of branching: whether a box holds a point cannot be predicted.
                waiting += np.int64(is_in_box(point, words[at]))
    return waiting, near, items


@kernel
def longer(array, size):
    """Make an array with the same items at its front that is longer than `size`."""
    copy = np.empty(2 * size, array.dtype)
    copy[: array.size] = array
    return copy


@kernel
def lie_in(px, py, near, items, waiting, shapes, rings, words, lonlat):
    """Keep the pairs of point and item that pass the exact test, at the front; give how many."""
    corners = words.view(np.float64)
    _ask_for(items, waiting, shapes, rings, words)
    kept = 0
    # All in one loop: for functions of several arrays, Numba counts references at each call.
    for n in range(waiting):
        item, point = items[n], near[n]
        near[kept] = point
        items[kept] = item
        number, kind, x, y = item >> _NUMBER, (item >> _KIND) & 3, px[point], py[point]
        if item & _INSIDE:
            kept += 1
        elif kind == POLYGON:
            side = side_of_rings(corners, rings[number], x, y)
            if side == UNSURE:
                side = np.int64(in_rings_exactly(corners, rings[number], x, y))
            kept += side
        elif kind == BOX:
            across = (shapes[number, 0] <= x) & (x <= shapes[number, 2])
            kept += np.int64(across & (shapes[number, 1] <= y) & (y <= shapes[number, 3]))
        elif lonlat:
            kept += np.int64(half_chord(shapes[number, 0], shapes[number, 1], x, y) <= shapes[number, 3])
        else:
            dx, dy = x - shapes[number, 0], y - shapes[number, 1]
            kept += np.int64(dx * dx + dy * dy <= shapes[number, 3])
    return kept


@kernel
def _ask_for(items, waiting, shapes, rings, words):
    """Ask for the memory of shapes, so that it is near when they are tested."""
    for n in range(waiting):
        number = items[n] >> _NUMBER
        if (items[n] >> _KIND) & 3 == POLYGON:
            prefetch(rings, number)
        else:
            prefetch(shapes, 4 * number)
    for n in range(waiting):
        if (items[n] >> _KIND) & 3 == POLYGON:
            start = rings[items[n] >> _NUMBER]
            prefetch(words, start)
            prefetch(words, start + 8)


@kernel
def write_in_order(near, items, kept, begin, rows, numbers, count, room):
    """Write pairs of row and number behind the first `count`, in the order of the points."""
    ends = room[0]
    ends[:] = 0
    for n in range(kept):
        ends[near[n] + 1] += 1
    for n in range(BLOCK):
        ends[n + 1] += ends[n]
    for n in range(kept):
        at = count + ends[near[n]]
        ends[near[n]] += 1
        rows[at] = begin + near[n]
        numbers[at] = items[n] >> _NUMBER


@inlined
def item_of(number):
    """Make an item that is about a shape and nothing else."""
    return number << _NUMBER


@inlined
def number_of(item):
    """Tell which shape an item is about."""
    return item >> _NUMBER


@kernel
def hold(x, y, numbers, kinds, shapes, rings, lonlat, words):
    """Tell for pairs of a point and a shape whether it lies in it."""
    near, items = np.arange(numbers.size), np.empty(numbers.size, np.int64)
    for n in range(numbers.size):
        items[n] = (np.int64(numbers[n]) << _NUMBER) | (np.int64(kinds[numbers[n]]) << _KIND)
    kept = lie_in(x, y, near, items, numbers.size, shapes, rings, words, lonlat)
    holds = np.zeros(numbers.size, np.bool_)
    for n in range(kept):
        holds[near[n]] = True
    return holds


@kernel
def store_rings(numbers, at, rings, offsets, xy, words, free, counters):
    """Keep the corners of polygons, from the `at`-th on; give the first for which there is no room.

    The corners of the n-th one are those from `offsets[n]` to `offsets[n + 1]`, rings parted by NaN.
    """
    corners = words.view(np.float64)
    while at < numbers.size:
        count = offsets[at + 1] - offsets[at]
        start = allocate(words, free, counters, exponent_for(2 * count + 1))
        if start < 0:
            return at
        rings[numbers[at]] = start
        corners[start] = count
        for n in range(count):
            corners[start + 1 + 2 * n] = xy[offsets[at] + n, 0]
            corners[start + 2 + 2 * n] = xy[offsets[at] + n, 1]
        at += 1
    return at


@kernel
def release_rings(numbers, kinds, rings, words, free):
    """Forget the corners of those shapes that are polygons."""
    corners = words.view(np.float64)
    for number in numbers:
        if kinds[number] == POLYGON:
            start = rings[number]
            release(words, free, start, exponent_for(2 * np.int64(corners[start]) + 1))
