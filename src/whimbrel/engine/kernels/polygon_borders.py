"""Points and lines against many regions: which boxes meet, how far a border is, where a line meets it.

A uniform grid over the boxes of the regions is filled in two passes, as in a counting sort: count what lies
in each cell, then write it down where the sums say. A question costs the regions in the cells that its box
meets.
"""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def border_distances(rings_of, corners_of, corners, region, x, y, metres_per_degree, found):
    """Give the distance of every point from the border of its region.

    The rings of region r are rings_of[r] to rings_of[r + 1], the corners of a ring likewise. With
    `metres_per_degree` above 0, coordinates are degrees, measured in a plane that touches the earth there.
    """
    for i in range(len(region)):
        across, up = 1.0, 1.0
        if metres_per_degree > 0.0:
            up = metres_per_degree
            across = metres_per_degree * np.cos(np.radians(y[i]))
        best = np.inf
        for ring in range(rings_of[region[i]], rings_of[region[i] + 1]):
            for corner in range(corners_of[ring], corners_of[ring + 1] - 1):
                ax = (corners[corner, 0] - x[i]) * across
                ay = (corners[corner, 1] - y[i]) * up
                dx = (corners[corner + 1, 0] - x[i]) * across - ax
                dy = (corners[corner + 1, 1] - y[i]) * up - ay
                length = dx * dx + dy * dy
                share = 0.0
                if length > 0.0:
                    share = min(1.0, max(0.0, -(ax * dx + ay * dy) / length))
                # Squares are compared, and one root is taken at the end.
                px = ax + share * dx
                py = ay + share * dy
                best = min(best, px * px + py * py)
        found[i] = np.sqrt(best)


@kernel
def line_meets(rings_of, corners_of, corners, region, x0, y0, x1, y1, first, share):
    """Give the first (or last) share of every line at which it meets the border of its region.

    `share` has what is known already, NaN for nothing.
    """
    for i in range(len(region)):
        abx = x1[i] - x0[i]
        aby = y1[i] - y0[i]
        length = abx * abx + aby * aby
        for ring in range(rings_of[region[i]], rings_of[region[i] + 1]):
            for corner in range(corners_of[ring], corners_of[ring + 1] - 1):
                acx = corners[corner, 0] - x0[i]
                acy = corners[corner, 1] - y0[i]
                cdx = corners[corner + 1, 0] - corners[corner, 0]
                cdy = corners[corner + 1, 1] - corners[corner, 1]
                cross = abx * cdy - aby * cdx
                if cross != 0.0:
                    found = (acx * cdy - acy * cdx) / cross
                    other = (acx * aby - acy * abx) / cross
                    if 0.0 <= found <= 1.0 and 0.0 <= other <= 1.0:
                        share[i] = _better(share[i], found, first)
                # Parallel lines meet only if they lie on one another: then in a whole piece.
                elif length > 0.0 and acx * aby - acy * abx == 0.0:
                    one = (acx * abx + acy * aby) / length
                    two = one + (cdx * abx + cdy * aby) / length
                    if max(one, two) >= 0.0 and min(one, two) <= 1.0:
                        share[i] = _better(share[i], min(1.0, max(0.0, one)), first)
                        share[i] = _better(share[i], min(1.0, max(0.0, two)), first)


@kernel
def _better(known, found, first):
    if known != known:
        return found
    return min(known, found) if first else max(known, found)


@kernel
def cell_counts(bounds, left, low, size_x, size_y, columns, rows, counts):
    """Count the regions whose boxes meet each cell of a grid."""
    for r in range(len(bounds)):
        for row in range(_cell(bounds[r, 1], low, size_y, rows), _cell(bounds[r, 3], low, size_y, rows) + 1):
            for column in range(
                _cell(bounds[r, 0], left, size_x, columns), _cell(bounds[r, 2], left, size_x, columns) + 1
            ):
                counts[row * columns + column] += 1


@kernel
def fill_cells(bounds, left, low, size_x, size_y, columns, rows, begins, members):
    """Write the regions of each cell down; `begins` is where each cell's begin, and is moved on."""
    for r in range(len(bounds)):
        for row in range(_cell(bounds[r, 1], low, size_y, rows), _cell(bounds[r, 3], low, size_y, rows) + 1):
            for column in range(
                _cell(bounds[r, 0], left, size_x, columns), _cell(bounds[r, 2], left, size_x, columns) + 1
            ):
                cell = row * columns + column
                members[begins[cell]] = r
                begins[cell] += 1


@kernel
def boxes_meeting(
    bounds, left, low, size_x, size_y, columns, rows, begins, members, x0, y0, x1, y1, box, region
):
    """Find the regions whose boxes meet each of some boxes; give how many pairs there are.

    Pairs are written as far as there is room.
    """
    found = 0
    for i in range(len(x0)):
        first_row = _cell(y0[i], low, size_y, rows)
        first_column = _cell(x0[i], left, size_x, columns)
        for row in range(first_row, _cell(y1[i], low, size_y, rows) + 1):
            for column in range(first_column, _cell(x1[i], left, size_x, columns) + 1):
                cell = row * columns + column
                for place in range(begins[cell], begins[cell + 1]):
                    r = members[place]
                    # Of the cells that both meet, the first one counts.
                    if row != max(first_row, _cell(bounds[r, 1], low, size_y, rows)):
                        continue
                    if column != max(first_column, _cell(bounds[r, 0], left, size_x, columns)):
                        continue
                    if (
                        x1[i] < bounds[r, 0]
                        or x0[i] > bounds[r, 2]
                        or y1[i] < bounds[r, 1]
                        or y0[i] > bounds[r, 3]
                    ):
                        continue
                    if found < len(box):
                        box[found] = i
                        region[found] = r
                    found += 1
    return found


@kernel
def _cell(value, low, size, cells):
    return min(cells - 1, max(0, int(np.floor((value - low) / size))))
