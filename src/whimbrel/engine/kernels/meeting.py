"""Compares movers with each other whenever one of them is seen, and finds who comes near and who goes apart.

Movers lie in the cells of a grid, as wide as two of them may be apart and still count; so only neighbours
are compared. On the earth the grid is one of space, around the sphere: the straight line between two places
is never longer than the way. Two movers have a node while they are near each other, or nobody knows.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.resting import apart
from whimbrel.space.kernels.jit import kernel

NO_TIME = -(2**62)
NO_END = 2**62

COMING, LEAVING, STAYING, TRAVELLING = range(4)
"""What is looked for."""
WHAT, FRESH, DURATION, SAME, SPEC = range(5)
NEAR, MARGIN, CELL, EARTH, LENGTHS = range(5)
"""How near, by how much more to be apart, the width of a cell, the radius of the earth (0: a plane)."""

P_IDENT, P_TIME, P_NEXT, P_BEFORE, P_BUCKET, P_X, P_Y, P_Z, P_COLUMNS = range(9)
"""Of a mover in one of the two roles: its last sample and when that was, its neighbours in the list of its
bucket, the bucket, the cell."""

INSIDE, UNKNOWN = 1, 2
E_A, E_B, E_NEXT_A, E_NEXT_B, E_SIDE, E_LAST, E_SINCE, E_DEADLINE = range(8)
E_IDENT_A, E_IDENT_B, E_COLUMNS = range(8, 11)
"""Of two movers: who they are, the next nodes in the lists of each, whether they are near, when they were
last compared, since when they are near and until when they have to be, and the samples with which that began.
A node that is not used has no side."""

F_A, F_B, F_IDENT_A, F_IDENT_B, F_UNTIL, F_SINCE, F_COLUMNS = range(7)
LIVE, FREE, FOUND, DUE, SERIAL, COUNTS = range(6)


@kernel
def walk(
    spec, lengths, key, time, ident, x, y, roles, begin, movers, place, xy, heads, lists, nodes, node_f,
    count, found, found_m, seen,
):  # fmt: skip
    """Judge the samples from `begin` on; give the first for which there was no room."""
    for i in range(begin, len(key)):
        if len(nodes) - count[LIVE] < 2 * movers or len(found) - count[FOUND] < 4 * movers:
            return i
        p = key[i]
        t = time[i]
        before_0 = place[0, p, P_TIME]
        before_1 = place[1, p, P_TIME]
        for side in range(2):
            _end_stays(spec, lengths, xy, lists, nodes, node_f, count, found, found_m, p, side, t)
        for role in range(2):
            if (roles[i] >> role) & 1 == 1:
                move(lengths, place, xy, heads, role, p, t, ident[i], x[i], y[i])
        for role in range(2):
            if (roles[i] >> role) & 1 == 0:
                continue
            other = role if spec[SAME] == 1 else 1 - role
            stamp = count[SERIAL] + 2 * i + role + 1
            for side in range(2):
                if spec[SAME] == 1 or side == role:
                    _compare_known(
                        spec, lengths, place, xy, lists, nodes, node_f, count, found, found_m, seen, p, side,
                        role, other, t, stamp,
                    )  # fmt: skip
            _compare_near(
                spec, lengths, place, xy, heads, lists, nodes, node_f, count, found, found_m, seen, p, role,
                other, t, before_0 if role == 0 else before_1, stamp,
            )  # fmt: skip
    return len(key)


@kernel
def sweep(spec, lengths, xy, nodes, node_f, count, found, found_m, watermark):
    """Give the stays that are long enough by now; tell whether there was room for all of them."""
    due = NO_END
    for node in range(len(nodes)):
        deadline = nodes[node, E_DEADLINE]
        if nodes[node, E_SIDE] == 0 or deadline == NO_END:
            continue
        if deadline > watermark:
            due = min(due, deadline)
            continue
        if count[FOUND] == len(found):
            return False
        _end_stay(spec, lengths, xy, nodes, node_f, count, found, found_m, node)
    count[DUE] = due
    return True


# -- who lies where --------------------------------------------------------------------------------------


@kernel
def move(lengths, place, xy, heads, role, p, t, ident, x, y):
    """Note where a mover was seen."""
    cx, cy, cz = _cell(lengths, x, y)
    if place[role, p, P_TIME] != NO_TIME:
        _take_out(place, heads, role, p)
    place[role, p, P_IDENT] = ident
    place[role, p, P_TIME] = t
    xy[role, p, 0] = x
    xy[role, p, 1] = y
    place[role, p, P_X] = cx
    place[role, p, P_Y] = cy
    place[role, p, P_Z] = cz
    put_in(place, heads, role, p)


@kernel
def put_in(place, heads, role, p):
    """Put a mover into the list of its bucket."""
    bucket = _bucket(place[role, p, P_X], place[role, p, P_Y], place[role, p, P_Z], heads.shape[1])
    after = heads[role, bucket]
    place[role, p, P_BUCKET] = bucket
    place[role, p, P_NEXT] = after
    place[role, p, P_BEFORE] = -1
    if after >= 0:
        place[role, after, P_BEFORE] = p
    heads[role, bucket] = p


@kernel
def _take_out(place, heads, role, p):
    before = place[role, p, P_BEFORE]
    after = place[role, p, P_NEXT]
    if before >= 0:
        place[role, before, P_NEXT] = after
    else:
        heads[role, place[role, p, P_BUCKET]] = after
    if after >= 0:
        place[role, after, P_BEFORE] = before


@kernel
def _cell(lengths, x, y):
    size = lengths[CELL]
    if lengths[EARTH] <= 0.0:
        return int(np.floor(x / size)), int(np.floor(y / size)), 0
    lon, lat = np.radians(x), np.radians(y)
    return (
        int(np.floor(lengths[EARTH] * np.cos(lat) * np.cos(lon) / size)),
        int(np.floor(lengths[EARTH] * np.cos(lat) * np.sin(lon) / size)),
        int(np.floor(lengths[EARTH] * np.sin(lat) / size)),
    )


@kernel
def _bucket(x, y, z, size):
    mixed = x * np.int64(73856093) ^ y * np.int64(19349663) ^ z * np.int64(83492791)
    return mixed & np.int64(size - 1)


# -- comparing -------------------------------------------------------------------------------------------


@kernel
def _compare_known(
    spec, lengths, place, xy, lists, nodes, node_f, count, found, found_m, seen, p, side, role, other, t,
    stamp,
):  # fmt: skip
    """Compare a mover with those that it has a node with."""
    node = lists[p, side]
    while node >= 0:
        after = nodes[node, E_NEXT_A + side]
        q = nodes[node, E_B - side]
        seen[q] = stamp
        if t - place[other, q, P_TIME] > spec[FRESH]:
            _drop(lists, nodes, count, node)  # nobody knows where the other one is: they are as strangers
            node = after
            continue
        metres = apart(xy[role, p, 0], xy[role, p, 1], xy[other, q, 0], xy[other, q, 1], lengths[EARTH])
        nodes[node, E_LAST] = t
        if metres > lengths[NEAR] + lengths[MARGIN]:
            if spec[WHAT] == LEAVING and nodes[node, E_SIDE] == INSIDE:
                since = nodes[node, E_SINCE]
                _note(place, count, found, found_m, since, metres, p, q, role, other, side)
            _drop(lists, nodes, count, node)
        elif metres <= lengths[NEAR] and nodes[node, E_SIDE] == UNKNOWN:
            _go_in(spec, place, xy, nodes, node_f, count, node, metres, role, other, side, t)
        node = after


@kernel
def _compare_near(
    spec, lengths, place, xy, heads, lists, nodes, node_f, count, found, found_m, seen, p, role, other, t,
    before, stamp,
):  # fmt: skip
    """Compare a mover with all others in its cell and those around it."""
    deep = 0 if lengths[EARTH] <= 0.0 else 1
    for dx in range(-1, 2):
        for dy in range(-1, 2):
            for dz in range(-deep, deep + 1):
                cx = place[role, p, P_X] + dx
                cy = place[role, p, P_Y] + dy
                cz = place[role, p, P_Z] + dz
                q = heads[other, _bucket(cx, cy, cz, heads.shape[1])]
                while q >= 0:
                    after = place[other, q, P_NEXT]
                    here = (
                        place[other, q, P_X] == cx
                        and place[other, q, P_Y] == cy
                        and place[other, q, P_Z] == cz
                    )
                    if here and q != p and seen[q] != stamp and t - place[other, q, P_TIME] <= spec[FRESH]:
                        _meet(
                            spec, lengths, place, xy, lists, nodes, node_f, count, found, found_m, p, q, role,
                            other, t, before,
                        )  # fmt: skip
                    q = after


@kernel
def _meet(
    spec, lengths, place, xy, lists, nodes, node_f, count, found, found_m, p, q, role, other, t, before
):  # fmt: skip
    """Compare two movers that have no node: they were apart, or were not compared when last seen."""
    metres = apart(xy[role, p, 0], xy[role, p, 1], xy[other, q, 0], xy[other, q, 1], lengths[EARTH])
    if metres > lengths[NEAR] + lengths[MARGIN]:
        return
    # When one of them was last seen, was the other known? Then they were compared, and were apart.
    known = before != NO_TIME and abs(before - place[other, q, P_TIME]) <= spec[FRESH]
    is_in = metres <= lengths[NEAR]
    if known and not is_in:
        return
    # Of two movers of one stream, the first is the one with the smaller number.
    side = (0 if p < q else 1) if spec[SAME] == 1 else role
    node = _add(lists, nodes, count, p if side == 0 else q, q if side == 0 else p, t)
    if is_in:
        if known and spec[WHAT] == COMING:
            _note(place, count, found, found_m, NO_TIME, metres, p, q, role, other, side)
        _go_in(spec, place, xy, nodes, node_f, count, node, metres, role, other, side, t)


@kernel
def _add(lists, nodes, count, a, b, t):
    node = count[FREE]
    count[FREE] = nodes[node, E_NEXT_A]
    count[LIVE] += 1
    nodes[node, E_A] = a
    nodes[node, E_B] = b
    nodes[node, E_SIDE] = UNKNOWN
    nodes[node, E_LAST] = t
    nodes[node, E_DEADLINE] = NO_END
    link(lists, nodes, node)
    return node


@kernel
def link(lists, nodes, node):
    """Put a node into the lists of its movers."""
    for side in range(2):
        nodes[node, E_NEXT_A + side] = lists[nodes[node, E_A + side], side]
        lists[nodes[node, E_A + side], side] = node


@kernel
def _drop(lists, nodes, count, node):
    for side in range(2):
        owner = nodes[node, E_A + side]
        if lists[owner, side] == node:
            lists[owner, side] = nodes[node, E_NEXT_A + side]
            continue
        before = lists[owner, side]
        while nodes[before, E_NEXT_A + side] != node:
            before = nodes[before, E_NEXT_A + side]
        nodes[before, E_NEXT_A + side] = nodes[node, E_NEXT_A + side]
    nodes[node, E_SIDE] = 0
    nodes[node, E_NEXT_A] = count[FREE]
    count[FREE] = node
    count[LIVE] -= 1


@kernel
def _go_in(spec, place, xy, nodes, node_f, count, node, metres, role, other, side, t):
    nodes[node, E_SIDE] = INSIDE
    nodes[node, E_SINCE] = t
    # `side` tells whether the mover that was seen is the first or the second of the two.
    of_a, of_b = (role, other) if side == 0 else (other, role)
    a, b = nodes[node, E_A], nodes[node, E_B]
    nodes[node, E_IDENT_A] = place[of_a, a, P_IDENT]
    nodes[node, E_IDENT_B] = place[of_b, b, P_IDENT]
    node_f[node, 0] = metres
    node_f[node, 1] = xy[of_a, a, 0]
    node_f[node, 2] = xy[of_a, a, 1]
    node_f[node, 3] = xy[of_b, b, 0]
    node_f[node, 4] = xy[of_b, b, 1]
    if spec[WHAT] == STAYING or spec[WHAT] == TRAVELLING:
        nodes[node, E_DEADLINE] = t + spec[DURATION]
        count[DUE] = min(count[DUE], t + spec[DURATION])


# -- what was found --------------------------------------------------------------------------------------


@kernel
def _note(place, count, found, found_m, since, metres, p, q, role, other, side):
    at = count[FOUND]
    count[FOUND] += 1
    found[at, F_A + side] = p
    found[at, F_B - side] = q
    found[at, F_IDENT_A + side] = place[role, p, P_IDENT]
    found[at, F_IDENT_B - side] = place[other, q, P_IDENT]
    found[at, F_UNTIL] = NO_TIME
    found[at, F_SINCE] = since
    found_m[at] = metres


@kernel
def _end_stays(spec, lengths, xy, lists, nodes, node_f, count, found, found_m, p, side, t):
    node = lists[p, side]
    while node >= 0:
        if nodes[node, E_DEADLINE] < t:
            _end_stay(spec, lengths, xy, nodes, node_f, count, found, found_m, node)
        node = nodes[node, E_NEXT_A + side]


@kernel
def _end_stay(spec, lengths, xy, nodes, node_f, count, found, found_m, node):
    deadline = nodes[node, E_DEADLINE]
    nodes[node, E_DEADLINE] = NO_END
    if deadline - nodes[node, E_LAST] > spec[FRESH]:
        return
    a, b = nodes[node, E_A], nodes[node, E_B]
    if spec[WHAT] == TRAVELLING:
        of_b = 0 if spec[SAME] == 1 else 1
        way_a = apart(xy[0, a, 0], xy[0, a, 1], node_f[node, 1], node_f[node, 2], lengths[EARTH])
        way_b = apart(xy[of_b, b, 0], xy[of_b, b, 1], node_f[node, 3], node_f[node, 4], lengths[EARTH])
        if way_a <= lengths[NEAR] or way_b <= lengths[NEAR]:
            return
    at = count[FOUND]
    count[FOUND] += 1
    found[at, F_A] = a
    found[at, F_B] = b
    found[at, F_IDENT_A] = nodes[node, E_IDENT_A]
    found[at, F_IDENT_B] = nodes[node, E_IDENT_B]
    found[at, F_UNTIL] = deadline
    found[at, F_SINCE] = nodes[node, E_SINCE]
    found_m[at] = node_f[node, 0]
