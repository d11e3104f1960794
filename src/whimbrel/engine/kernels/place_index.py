"""Looks rows up by place and time: in chunks, of which each is parted into columns and these into cells.

A chunk's columns hold about equally many rows each, and so do the cells of a column, wherever the rows lie;
in a cell rows are in order of time. What is known of a cell is the box around its rows, so that most cells
are told to lie in an area, or apart from it, without a look at rows.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.engine.kernels.areas import NOWHERE, doubt, in_area, in_circle, in_polygon
from whimbrel.space.kernels.cover import APART, INSIDE, bounds, relation_to_box
from whimbrel.space.kernels.exact import BOX, CIRCLE
from whimbrel.space.kernels.jit import inlined, kernel

FIRST_TIME, LAST_TIME, FIRST_COLUMN, COLUMNS, FIRST_CELL, CELLS_EACH = range(6)
"""What is known of a chunk. It has one start of cells more than cells: where its last one ends."""
OF_CHUNK = 6

_FEW = 64
"""So many rows are sorted by comparing neighbours."""
_SURE = 1e-9


# -- parting rows into cells -------------------------------------------------------------------------------


@kernel
def cells_of(x, y, across, up, cells):
    """Give the cell of every row: `across` parts the columns, and `up` the cells of each."""
    each = up.shape[1] + 1
    for row in range(len(x)):
        column = _part(across, x[row])
        cells[row] = column * each + _part(up[column], y[row])


@kernel
def _part(borders, value):
    """Count the borders, which rise, that are not above a value."""
    low, high = 0, len(borders)
    while low < high:
        middle = (low + high) // 2
        if borders[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def sort_into_cells(cells, begin, numbers, times, x, y, starts, order):
    """Sort rows from `begin` on by cell, and by time in each; `starts` says where each cell begins."""
    count = len(starts) - 1
    starts[:] = 0
    for row in range(len(cells)):
        starts[cells[row] + 1] += 1
    for cell in range(count):
        starts[cell + 1] += starts[cell]
    for row in range(len(cells)):
        order[starts[cells[row]]] = begin + row
        starts[cells[row]] += 1
    for cell in range(count, 0, -1):
        starts[cell] = starts[cell - 1]
    starts[0] = 0
    for cell in range(count):
        _sort_by_time(order[starts[cell] : starts[cell + 1]], times)
    end = begin + len(cells)
    numbers[begin:end] = numbers[order]
    times[begin:end] = times[order]
    x[begin:end] = x[order]
    y[begin:end] = y[order]
    starts += begin


@kernel
def _sort_by_time(rows, times):
    if len(rows) > _FEW:
        rows[:] = rows[np.argsort(times[rows], kind="mergesort")]
        return
    for sorted_so_far in range(1, len(rows)):
        place, row = sorted_so_far, rows[sorted_so_far]
        while place > 0 and times[rows[place - 1]] > times[row]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row


@kernel
def box_cells(x, y, starts, boxes):
    """Find the boxes around the rows of cells; those of empty cells touch nothing."""
    for cell in range(len(boxes)):
        x0 = y0 = math.inf
        x1 = y1 = -math.inf
        for row in range(starts[cell], starts[cell + 1]):
            x0, x1 = min(x0, x[row]), max(x1, x[row])
            y0, y1 = min(y0, y[row]), max(y1, y[row])
        boxes[cell, 0], boxes[cell, 1], boxes[cell, 2], boxes[cell, 3] = x0, y0, x1, y1


# -- looking up --------------------------------------------------------------------------------------------


@kernel
def area_bounds(kind, numbers, lonlat, area):
    """Give the bounding box of an area; what is as wide as the globe reaches round it."""
    if lonlat and kind == CIRCLE and abs(numbers[area, 1]) > 90.0:
        return -math.inf, -90.0, math.inf, 90.0
    x0, y0, x1, y1 = bounds(kind, area, numbers, lonlat)
    if lonlat and not x1 - x0 < 360.0:
        return -math.inf, y0, math.inf, y1
    return x0, y0, x1, y1


@kernel
def boxes_around(kinds, numbers, lonlat, boxes):
    """Give the boxes in which the rows are that areas may hold."""
    for area in range(len(kinds)):
        if kinds[area] != NOWHERE:
            x0, y0, x1, y1 = area_bounds(kinds[area], numbers, lonlat, area)
            boxes[area, 0], boxes[area, 1], boxes[area, 2], boxes[area, 3] = x0, y0, x1, y1


@kernel
def most_rows(kinds, numbers, lonlat, since, until, chunks, columns, starts, boxes):
    """Count the rows of all cells that areas may touch, as often as they are looked at: no more are found."""
    most = 0
    for area in range(len(kinds)):
        if kinds[area] == NOWHERE:
            continue
        x0, y0, x1, y1 = area_bounds(kinds[area], numbers, lonlat, area)
        for chunk in range(len(chunks)):
            if chunks[chunk, LAST_TIME] < since[area] or chunks[chunk, FIRST_TIME] >= until[area]:
                continue
            each = chunks[chunk, CELLS_EACH]
            for place in range(chunks[chunk, COLUMNS]):
                column = chunks[chunk, FIRST_COLUMN] + place
                cell = chunks[chunk, FIRST_CELL] + place * each
                times = _touches(x0, x1, columns[column, 0], columns[column, 1], lonlat)
                if times == 0:
                    continue
                for c in range(cell, cell + each):
                    if boxes[c, 1] <= y1 and boxes[c, 3] >= y0:
                        times = _touches(x0, x1, boxes[c, 0], boxes[c, 2], lonlat)
                        most += times * (starts[c + 1] - starts[c])
    return most


@inlined
def _touches(x0, x1, left, right, lonlat):
    """Count the turns of the globe by which an interval touches another one."""
    count = np.int64(left <= x1 and right >= x0)
    if lonlat and x0 > -math.inf:
        count += np.int64(left + 360.0 <= x1 and right + 360.0 >= x0)
        count += np.int64(left - 360.0 <= x1 and right - 360.0 >= x0)
    return count


@kernel
def rows_in_areas(
    kinds, numbers, rings, corners, lonlat, since, until,
    chunks, columns, starts, boxes, rows, times, x, y, counts, which, found,
):  # fmt: skip
    """Find the rows in areas, from one time on and before another; `counts` says how many each has.

    With room for none in `found`, they are only counted.
    """
    total = 0
    for area in range(len(kinds)):
        before = total
        if kinds[area] != NOWHERE:
            x0, y0, x1, y1 = area_bounds(kinds[area], numbers, lonlat, area)
            for chunk in range(len(chunks)):
                if chunks[chunk, LAST_TIME] < since[area] or chunks[chunk, FIRST_TIME] >= until[area]:
                    continue
                # Longitudes are shifted by turns of the globe; an area that is as wide needs none.
                for turn in (0.0, 360.0, -360.0):
                    if turn == 0.0 or (lonlat and x0 > -math.inf):
                        total = _in_chunk(
                            kinds[area], numbers, rings, corners, lonlat, area, x0, y0, x1, y1, turn,
                            since[area], until[area], chunks[chunk], columns, starts, boxes,
                            rows, times, x, y, which, found, total,
                        )  # fmt: skip
        counts[area] = total - before
    return total


@kernel
def _in_chunk(
    kind, numbers, rings, corners, lonlat, area, x0, y0, x1, y1, turn, since, until,
    chunk, columns, starts, boxes, rows, times, x, y, which, found, total,
):  # fmt: skip
    each = chunk[CELLS_EACH]
    all_in_time = since <= chunk[FIRST_TIME] and chunk[LAST_TIME] < until
    for place in range(chunk[COLUMNS]):
        column = chunk[FIRST_COLUMN] + place
        if columns[column, 0] + turn > x1 or columns[column, 1] + turn < x0:
            continue
        first = chunk[FIRST_CELL] + place * each
        for cell in range(first, first + each):
            if boxes[cell, 1] > y1 or boxes[cell, 3] < y0:
                continue
            left, right = boxes[cell, 0] + turn, boxes[cell, 2] + turn
            if left > x1 or right < x0:
                continue
            low, high = starts[cell], starts[cell + 1]
            if not all_in_time:
                low = _first_not_before(times, low, high, since)
                high = _first_not_before(times, low, high, until)
            if low >= high:
                continue
            is_whole = x0 <= left and right <= x1
            to_area = _relation(
                kind, area, numbers, rings, corners, lonlat, left, boxes[cell, 1], right, boxes[cell, 3]
            )
            if is_whole and to_area == INSIDE:
                if len(found):
                    for row in range(low, high):
                        which[total + row - low], found[total + row - low] = area, rows[row]
                total += high - low
            elif to_area != APART or not x0 > -math.inf:
                total = _test_rows(
                    kind, numbers, rings, corners, lonlat, area, x0, x1, turn,
                    low, high, rows, x, y, which, found, total,
                )  # fmt: skip
    return total


@kernel
def _first_not_before(times, low, high, time):
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _relation(kind, area, numbers, rings, corners, lonlat, x0, y0, x1, y1):
    """Tell what the box of a cell is to an area, taken a little larger: then rounding changes nothing."""
    if kind == BOX:
        return relation_to_box(kind, area, numbers, rings, corners, lonlat, x0, y0, x1, y1)
    across = (x1 - x0) * 1e-6 + _SURE * 1e-3 * max(abs(x0), abs(x1))
    up = (y1 - y0) * 1e-6 + _SURE * 1e-3 * max(abs(y0), abs(y1))
    return relation_to_box(
        kind, area, numbers, rings, corners, lonlat, x0 - across, y0 - up, x1 + across, y1 + up
    )


@kernel
def _test_rows(
    kind, numbers, rings, corners, lonlat, area, x0, x1, turn, low, high, rows, x, y, which, found, total
):
    """Look at single rows. Each is written before it is known to count: there is room for all of the cell."""
    writes = len(found) > 0
    around = doubt(numbers[area, 3], lonlat) if kind == CIRCLE else 0.0
    for row in range(low, high):
        lon = x[row] + turn
        if kind == CIRCLE:
            inside = (x0 <= lon <= x1) and in_circle(numbers, area, lonlat, around, x[row], y[row])
        elif x0 > -math.inf:
            inside = (x0 <= lon <= x1) and in_polygon(kind, numbers, rings, corners, area, lon, y[row])
        else:
            inside = in_area(kind, numbers, rings, corners, lonlat, area, lon, y[row])
        if writes:
            which[total], found[total] = area, rows[row]
        total += np.int64(inside)
    return total
