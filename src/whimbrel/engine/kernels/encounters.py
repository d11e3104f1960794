"""Compares movers with each other whenever one of them is seen, and finds who comes near and who goes apart.

Movers lie in the cells of a grid, as wide as two of them may be apart and still count; so only neighbours
are compared. On the earth the grid is one of space, around the sphere: the straight line between two places
is never longer than the way. Two movers have a node while they are near each other, or nobody knows. Where it
counts that movers are far from each other, or come nearer from anywhere, every two of them have one.

A sample costs the movers in the cells around it (9 in a plane, 27 in space) and those with which its mover
has a node. Where every two have one, state and work are quadratic in the movers.

References
----------
.. [1] Teschner, Heidelberger, Mueller, Pomeranets, Gross: "Optimized Spatial Hashing for Collision Detection
   of Deformable Objects", VMV 2003: an unbounded grid whose cells are hashed; the primes are theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whimbrel.engine.kernels.shapes import signed_distance
from whimbrel.engine.kernels.stops import apart
from whimbrel.space.kernels.jit import kernel

NO_TIME = -(2**62)
NO_END = 2**62

COMING, LEAVING, CROSSING, STAYING, TRAVELLING, NEARING = range(6)
"""What is looked for."""
WHAT, FRESH, DURATION, SAME, SETTLE_EVENTS, SETTLE_TIME, BETWEEN, TURNED, SHAPED, ALL, SPEC = range(11)
"""What else is asked: whether both movers are of one stream, ways between samples count, near and far are
turned round, the location of the second mover is a shape, and every two movers are compared."""
NEAR, MARGIN, BY, CELL, EARTH, DEGREE, LENGTHS = range(7)
"""How near, by how much more to be apart, how much nearer to come, the width of a cell, the radius of the
earth and the length of a degree (0: a plane)."""

P_IDENT, P_TIME, P_EARLIER, P_SHAPE, P_NEXT, P_BEFORE, P_BUCKET, P_X, P_Y, P_Z, P_COLUMNS = range(11)
"""Of a mover in one of the two roles: its last sample, when that and the one before were, its shape (-1: a
point), its neighbours in the list of its bucket, the bucket, the cell."""
S_X, S_Y, S_WRONG, S_X0, S_Y0, S_WAY, S_COLUMNS = range(7)
"""And where it was, by how much that may be wrong, where it was before, and how far that is at most."""

OUT, IN, UNSURE = range(3)
"""What a comparison says."""
UNUSED, OUTSIDE, INSIDE, UNKNOWN = range(4)
"""Sides; a node for the outside waits for the inside to settle."""
E_A, E_B, E_NEXT_A, E_NEXT_B, E_BEFORE_A, E_BEFORE_B, E_SIDE, E_LAST, E_SINCE, E_DEADLINE = range(10)
E_IDENT_A, E_IDENT_B, E_ENTERED, E_COUNT, E_FIRST_AT, E_COLUMNS = range(10, 16)
"""Of two movers: who they are, the nodes around this one in the lists of each, whether they are near, when
they were last compared, since when they are near and until when they have to be, the samples with which that
began, and whether they were seen to come near. Of a change that has not settled: how many comparisons say so,
and when the first was; where ways count, when they went apart. Of an approach, the count is 1 when it was
told."""
N_METRES, N_LEAST, N_XA, N_YA, N_XB, N_YB, N_FLOATS = range(7)
"""How far apart they were when it began, the least since, and where both were then."""

F_A, F_B, F_IDENT_A, F_IDENT_B, F_UNTIL, F_SINCE, F_COLUMNS = range(7)
LIVE, FREE, FOUND, DUE, SERIAL, COUNTS = range(6)


class MoverTables(NamedTuple):
    """All that is known of the movers of one operator, and what is asked about them."""

    spec: np.ndarray
    lengths: np.ndarray
    place: np.ndarray
    spot: np.ndarray
    widest: np.ndarray
    """Of each role, by how much a sample may be wrong, and how far apart two successive ones may be."""
    shapes: np.ndarray
    heads: np.ndarray
    lists: np.ndarray
    nodes: np.ndarray
    node_f: np.ndarray
    counts: np.ndarray
    found: np.ndarray
    found_m: np.ndarray
    seen: np.ndarray


@kernel
def process_samples(c, key, time, ident, x, y, wrong, shape, roles, begin, movers):
    """Judge the samples from `begin` on; give the first for which there was no room."""
    for i in range(begin, len(key)):
        # At the worst, a sample meets every mover, in both roles.
        if len(c.nodes) - c.counts[LIVE] < 2 * movers or len(c.found) - c.counts[FOUND] < 4 * movers:
            return i
        p = key[i]
        t = time[i]
        for side in range(2):
            _end_stays(c, p, side, t)
        for role in range(2):
            if (roles[i] >> role) & 1 == 1:
                _move(c, role, p, t, ident[i], x[i], y[i], wrong[i], shape[i])
        for role in range(2):
            if (roles[i] >> role) & 1 == 0:
                continue
            other = role if c.spec[SAME] == 1 else 1 - role
            stamp = c.counts[SERIAL] + 2 * i + role + 1
            for side in range(2):
                if c.spec[SAME] == 1 or side == role:
                    _compare_known(c, p, side, role, other, t, stamp)
            _compare_others(c, p, role, other, t, stamp, movers)
    return len(key)


@kernel
def expire(c, watermark):
    """Give the stays that are long enough by now; tell whether there was room for all of them."""
    due = NO_END
    for node in range(len(c.nodes)):
        deadline = c.nodes[node, E_DEADLINE]
        if c.nodes[node, E_SIDE] == UNUSED or deadline == NO_END:
            continue
        if deadline > watermark:
            due = min(due, deadline)
            continue
        if c.counts[FOUND] == len(c.found):
            return False
        _end_stay(c, node)
    c.counts[DUE] = due
    return True


# -- who lies where --------------------------------------------------------------------------------------


@kernel
def _move(c, role, p, t, ident, x, y, wrong, shape):
    """Note where a mover was seen."""
    c.place[role, p, P_EARLIER] = c.place[role, p, P_TIME]
    if c.place[role, p, P_TIME] != NO_TIME:
        # It leaves its cell before its place changes: the list is found by the old one.
        _take_out(c.place, c.heads, role, p)
        c.spot[role, p, S_X0] = c.spot[role, p, S_X]
        c.spot[role, p, S_Y0] = c.spot[role, p, S_Y]
        c.spot[role, p, S_WAY] = _longest(c, role, p, x, y)
    c.place[role, p, P_IDENT] = ident
    c.place[role, p, P_TIME] = t
    c.place[role, p, P_SHAPE] = shape
    c.spot[role, p, S_X] = x
    c.spot[role, p, S_Y] = y
    c.spot[role, p, S_WRONG] = wrong
    c.widest[role, 0] = max(c.widest[role, 0], wrong)
    c.widest[role, 1] = max(c.widest[role, 1], c.spot[role, p, S_WAY])
    cx, cy, cz = _cell(c.lengths, x, y)
    c.place[role, p, P_X] = cx
    c.place[role, p, P_Y] = cy
    c.place[role, p, P_Z] = cz
    put_in(c.place, c.heads, role, p)


@kernel
def _longest(c, role, p, x, y):
    """Give a length that the way from a mover's last place is not longer than."""
    across = abs(x - c.spot[role, p, S_X])
    up = abs(y - c.spot[role, p, S_Y])
    if c.lengths[EARTH] > 0.0:
        return (min(across, abs(360.0 - across)) + up) * c.lengths[DEGREE]
    return across + up


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
    # Cells of space have no seam at the antimeridian and none at the poles.
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
def _metres(c, p, q, role, other):
    return apart(
        c.spot[role, p, S_X], c.spot[role, p, S_Y], c.spot[other, q, S_X], c.spot[other, q, S_Y],
        c.lengths[EARTH],
    )  # fmt: skip


@kernel
def _compare_known(c, p, side, role, other, t, stamp):
    """Compare a mover with those that it has a node with."""
    node = c.lists[p, side]
    while node >= 0:
        after = c.nodes[node, E_NEXT_A + side]
        q = c.nodes[node, E_B - side]
        c.seen[q] = stamp
        if t - c.place[other, q, P_TIME] > c.spec[FRESH]:
            _drop(c, node)  # nobody knows where the other one is: they are as strangers
            node = after
            continue
        metres = _metres(c, p, q, role, other)
        c.nodes[node, E_LAST] = t
        if c.spec[WHAT] == NEARING:
            _come_nearer(c, node, metres, p, q, role, other, side, t)
        else:
            says = _says(c, metres, p, q, role, other, side)
            if c.spec[BETWEEN] == 1 and c.nodes[node, E_SIDE] == OUTSIDE:
                keeps = _come_again(c, node, says, metres, p, q, role, other, side, t)
            else:
                keeps = _judge(c, node, says, metres, p, q, role, other, side, t)
            if not keeps:
                _drop(c, node)
        node = after


@kernel
def _compare_others(c, p, role, other, t, stamp, movers):
    """Compare a mover with all others that may be near it."""
    deep = 0 if c.lengths[EARTH] <= 0.0 else 1
    # Ways between samples and inaccurate places may reach farther than a cell; where that is more cells than
    # there are movers, these are looked at one by one.
    rings = np.ceil(_reach(c, p, role, other) / c.lengths[CELL])
    if c.spec[ALL] == 1 or (2.0 * rings + 1.0) ** (2 + deep) > max(movers, 27):
        for q in range(movers):
            if c.place[other, q, P_TIME] == NO_TIME:
                continue
            if c.spec[ALL] == 1 or not _surely_apart(c, p, q, role, other):
                _compare_other(c, p, q, role, other, t, stamp)
        return
    wide = max(1, int(rings))
    for dx in range(-wide, wide + 1):
        for dy in range(-wide, wide + 1):
            for dz in range(-wide * deep, wide * deep + 1):
                cx = c.place[role, p, P_X] + dx
                cy = c.place[role, p, P_Y] + dy
                cz = c.place[role, p, P_Z] + dz
                q = c.heads[other, _bucket(cx, cy, cz, c.heads.shape[1])]
                while q >= 0:
                    after = c.place[other, q, P_NEXT]
                    # Other cells may have the same bucket.
                    if (
                        c.place[other, q, P_X] == cx
                        and c.place[other, q, P_Y] == cy
                        and c.place[other, q, P_Z] == cz
                    ):
                        _compare_other(c, p, q, role, other, t, stamp)
                    q = after


@kernel
def _reach(c, p, role, other):
    """Give how far any other mover may be and still not be surely out, now and on the way."""
    return _far(c, c.spot[role, p, S_WRONG] + c.widest[other, 0], c.spot[role, p, S_WAY] + c.widest[other, 1])


@kernel
def _far(c, wrong, way):
    far = c.lengths[NEAR] + c.lengths[MARGIN] + wrong
    return max(far, c.lengths[NEAR] + way) if c.spec[BETWEEN] == 1 else far


@kernel
def _surely_apart(c, p, q, role, other):
    """Tell by their cells alone that two movers are out, now and on the way."""
    wrong = c.spot[role, p, S_WRONG] + c.spot[other, q, S_WRONG]
    cells = _far(c, wrong, c.spot[role, p, S_WAY] + c.spot[other, q, S_WAY]) / c.lengths[CELL] + 1.0
    return (
        abs(c.place[role, p, P_X] - c.place[other, q, P_X]) > cells
        or abs(c.place[role, p, P_Y] - c.place[other, q, P_Y]) > cells
        or abs(c.place[role, p, P_Z] - c.place[other, q, P_Z]) > cells
    )


@kernel
def _compare_other(c, p, q, role, other, t, stamp):
    """Compare two movers that have no node: they were apart, or were not compared when last seen."""
    if q == p or c.seen[q] == stamp or t - c.place[other, q, P_TIME] > c.spec[FRESH]:
        return
    metres = _metres(c, p, q, role, other)
    # Of two movers of one stream, the first is the one with the smaller number.
    side = (0 if p < q else 1) if c.spec[SAME] == 1 else role
    a, b = (p, q) if side == 0 else (q, p)
    if c.spec[WHAT] == NEARING:
        node = _add(c, a, b, INSIDE, t)
        _begin_approach(c, node, metres, t)
        return
    # When one of them was last seen, was the other known? Then they were compared, and were apart.
    before = c.place[role, p, P_EARLIER]
    known = before != NO_TIME and abs(before - c.place[other, q, P_TIME]) <= c.spec[FRESH]
    says = _says(c, metres, p, q, role, other, side)
    if known and c.spec[BETWEEN] == 1 and _come_near(c, p, q, role, other, NO_TIME):
        node = _add(c, a, b, INSIDE, t)
        _pass_in(c, node, metres, p, q, role, other, side)
        _judge(c, node, says, metres, p, q, role, other, side, t)
    elif says == IN or (says == UNSURE and not known):
        node = _add(c, a, b, OUTSIDE if known else UNKNOWN, t)
        _judge(c, node, says, metres, p, q, role, other, side, t)


@kernel
def _says(c, metres, p, q, role, other, side):
    """Tell whether two movers are near each other, by where they were seen last."""
    near, far = c.lengths[NEAR], c.lengths[NEAR] + c.lengths[MARGIN]
    wrong = c.spot[role, p, S_WRONG] + c.spot[other, q, S_WRONG]
    if c.spec[SHAPED] == 1:
        # The first of the two is compared with the location of the second.
        if side == 0:
            shape, x, y = c.place[other, q, P_SHAPE], c.spot[role, p, S_X], c.spot[role, p, S_Y]
        else:
            shape, x, y = c.place[role, p, P_SHAPE], c.spot[other, q, S_X], c.spot[other, q, S_Y]
        if shape >= 0:
            metres = signed_distance(c.shapes, shape, x, y, c.lengths[DEGREE])
    is_near, is_far = metres + wrong <= near, metres - wrong > far
    if c.spec[TURNED] == 1:
        is_near, is_far = is_far, is_near
    return IN if is_near else (OUT if is_far else UNSURE)


@kernel
def _judge(c, node, says, metres, p, q, role, other, side, t):
    """Let a node take in what a comparison says; tell whether it is still needed."""
    now = c.nodes[node, E_SIDE]
    if now == UNKNOWN:
        if says == IN:
            _go_in(c, node, metres, role, other, side, t)
        return says != OUT
    if (now == INSIDE) == (says != OUT) or (now == OUTSIDE and says == UNSURE):
        c.nodes[node, E_COUNT] = 0
        if says == IN and now == INSIDE and c.nodes[node, E_SINCE] == NO_TIME:
            c.nodes[node, E_SINCE] = t  # they came near on the way, and this is the first time that they are
        return now == INSIDE
    if c.nodes[node, E_COUNT] == 0:
        c.nodes[node, E_FIRST_AT] = t
    c.nodes[node, E_COUNT] += 1
    if c.nodes[node, E_COUNT] < c.spec[SETTLE_EVENTS] or t - c.nodes[node, E_FIRST_AT] < c.spec[SETTLE_TIME]:
        return True
    c.nodes[node, E_COUNT] = 0
    if now == OUTSIDE:
        if c.spec[WHAT] == COMING:
            _note(c, NO_TIME, metres, p, q, role, other, side)
        _go_in(c, node, metres, role, other, side, c.nodes[node, E_FIRST_AT])
        c.nodes[node, E_ENTERED] = 1
        return True
    if c.spec[WHAT] == LEAVING or (c.spec[WHAT] == CROSSING and c.nodes[node, E_ENTERED] == 1):
        _note(c, c.nodes[node, E_SINCE], metres, p, q, role, other, side)
    if c.spec[BETWEEN] == 0:
        return False
    # Their ways reach back to when they were near; that must not count again.
    c.nodes[node, E_SIDE] = OUTSIDE
    c.nodes[node, E_ENTERED] = 0
    c.nodes[node, E_FIRST_AT] = t
    return True


@kernel
def _go_in(c, node, metres, role, other, side, t):
    c.nodes[node, E_SIDE] = INSIDE
    c.nodes[node, E_SINCE] = t
    # `side` tells whether the mover that was seen is the first or the second of the two.
    of_a, of_b = (role, other) if side == 0 else (other, role)
    a, b = c.nodes[node, E_A], c.nodes[node, E_B]
    c.nodes[node, E_IDENT_A] = c.place[of_a, a, P_IDENT]
    c.nodes[node, E_IDENT_B] = c.place[of_b, b, P_IDENT]
    c.node_f[node, N_METRES] = metres
    c.node_f[node, N_XA] = c.spot[of_a, a, S_X]
    c.node_f[node, N_YA] = c.spot[of_a, a, S_Y]
    c.node_f[node, N_XB] = c.spot[of_b, b, S_X]
    c.node_f[node, N_YB] = c.spot[of_b, b, S_Y]
    if c.spec[WHAT] == STAYING or c.spec[WHAT] == TRAVELLING:
        c.nodes[node, E_DEADLINE] = t + c.spec[DURATION]
        c.counts[DUE] = min(c.counts[DUE], t + c.spec[DURATION])


# -- coming nearer, and passing by -----------------------------------------------------------------------


@kernel
def _begin_approach(c, node, metres, t):
    c.nodes[node, E_SINCE] = t
    c.nodes[node, E_COUNT] = 0
    c.node_f[node, N_METRES] = metres
    c.node_f[node, N_LEAST] = metres


@kernel
def _come_nearer(c, node, metres, p, q, role, other, side, t):
    began = c.node_f[node, N_METRES]
    if metres == began or metres > c.node_f[node, N_LEAST] + c.lengths[MARGIN]:
        _begin_approach(c, node, metres, t)
        return
    c.node_f[node, N_LEAST] = min(metres, c.node_f[node, N_LEAST])
    if c.nodes[node, E_COUNT] == 0 and began - metres >= c.lengths[BY]:
        c.nodes[node, E_COUNT] = 1
        _note(c, c.nodes[node, E_SINCE], metres, p, q, role, other, side)


@kernel
def _come_again(c, node, says, metres, p, q, role, other, side, t):
    """Compare two that were near each other on the way, or not long ago; tell whether that still matters."""
    left = c.nodes[node, E_FIRST_AT]
    near = _come_near(c, p, q, role, other, left)
    if near:
        _pass_in(c, node, metres, p, q, role, other, side)
    if near or says == IN:
        return _judge(c, node, says, metres, p, q, role, other, side, t)
    return max(c.place[role, p, P_EARLIER], c.place[other, q, P_EARLIER]) < left


@kernel
def _pass_in(c, node, metres, p, q, role, other, side):
    """Let two movers come near each other on the way; where they are now is judged next."""
    c.nodes[node, E_SIDE] = INSIDE
    c.nodes[node, E_ENTERED] = 1
    c.nodes[node, E_SINCE] = NO_TIME
    if c.spec[WHAT] == COMING:
        _note(c, NO_TIME, metres, p, q, role, other, side)


@kernel
def _come_near(c, p, q, role, other, left):
    """Tell whether two movers are near each other at some time on the way to where they were seen last.

    The one that is seen now went straight from its last sample to this one. The other went straight to its
    own last sample, and has been there since. What was before `left`, when they went apart, does not count.
    """
    t, t0 = c.place[role, p, P_TIME], c.place[role, p, P_EARLIER]
    u, u0 = c.place[other, q, P_TIME], c.place[other, q, P_EARLIER]
    if t - t0 > c.spec[FRESH]:
        return False
    if _nearest(c, p, q, role, other, max(t0, u, left), t, u) <= c.lengths[NEAR]:
        return True
    begin = max(t0, u0, left)
    if u0 == NO_TIME or u - u0 > c.spec[FRESH] or begin >= u:
        return False
    return _nearest(c, p, q, role, other, begin, u, u) <= c.lengths[NEAR]


@kernel
def _nearest(c, p, q, role, other, begin, end, stands):
    """Give how near two movers come between two times; the second one stands still from `stands` on.

    On the earth, the nearest time is that in a plane that touches it; the distance is the one on the earth.
    """
    earth = c.lengths[EARTH]
    px, py, qx, qy = c.spot[role, p, S_X], c.spot[role, p, S_Y], c.spot[other, q, S_X], c.spot[other, q, S_Y]
    pdx, pdy = _way(c, role, p, earth)
    qdx, qdy = _way(c, other, q, earth)
    # How much of its way each has still to go, at the begin and at the end.
    p0 = _left(c.place[role, p, P_EARLIER], c.place[role, p, P_TIME], begin)
    p1 = 0.0
    if end < c.place[role, p, P_TIME]:
        p1 = _left(c.place[role, p, P_EARLIER], c.place[role, p, P_TIME], end)
    q0 = 0.0
    if end == stands and begin < stands:
        q0 = _left(c.place[other, q, P_EARLIER], stands, begin)
    across = 1.0 if earth <= 0.0 else np.cos(np.radians(py))
    gap = qx - px
    if earth > 0.0:
        gap -= 360.0 * np.round(gap / 360.0)
    ax = (gap - q0 * qdx + p0 * pdx) * across
    ay = (qy - py) - q0 * qdy + p0 * pdy
    bx = (gap + p1 * pdx) * across
    by = (qy - py) + p1 * pdy
    dx, dy = bx - ax, by - ay
    # The closest point of approach: the gap changes on a straight line, and its square is a parabola.
    length = dx * dx + dy * dy
    share = min(1.0, max(0.0, -(ax * dx + ay * dy) / length)) if length > 0.0 else 0.0
    p_left, q_left = p0 + share * (p1 - p0), q0 - share * q0
    return apart(px - p_left * pdx, py - p_left * pdy, qx - q_left * qdx, qy - q_left * qdy, earth)


@kernel
def _way(c, role, p, earth):
    """Give the way from a mover's last but one sample to its last, in coordinates, the short way round."""
    dx = c.spot[role, p, S_X] - c.spot[role, p, S_X0]
    if earth > 0.0:
        dx -= 360.0 * np.round(dx / 360.0)
    return dx, c.spot[role, p, S_Y] - c.spot[role, p, S_Y0]


@kernel
def _left(begin, end, time):
    """Give which share of a way is left at a time; all of it, where it takes no time."""
    return 1.0 if begin == end else (end - time) / (end - begin)


# -- nodes -----------------------------------------------------------------------------------------------


@kernel
def _add(c, a, b, side, t):
    node = c.counts[FREE]
    c.counts[FREE] = c.nodes[node, E_NEXT_A]
    c.counts[LIVE] += 1
    c.nodes[node, E_A] = a
    c.nodes[node, E_B] = b
    c.nodes[node, E_SIDE] = side
    c.nodes[node, E_LAST] = t
    c.nodes[node, E_DEADLINE] = NO_END
    c.nodes[node, E_ENTERED] = 0
    c.nodes[node, E_COUNT] = 0
    link(c.lists, c.nodes, node)
    return node


@kernel
def link(lists, nodes, node):
    """Put a node into the lists of its movers."""
    for side in range(2):
        after = lists[nodes[node, E_A + side], side]
        nodes[node, E_NEXT_A + side] = after
        nodes[node, E_BEFORE_A + side] = -1
        if after >= 0:
            nodes[after, E_BEFORE_A + side] = node
        lists[nodes[node, E_A + side], side] = node


@kernel
def _drop(c, node):
    for side in range(2):
        before, after = c.nodes[node, E_BEFORE_A + side], c.nodes[node, E_NEXT_A + side]
        if before < 0:
            c.lists[c.nodes[node, E_A + side], side] = after
        else:
            c.nodes[before, E_NEXT_A + side] = after
        if after >= 0:
            c.nodes[after, E_BEFORE_A + side] = before
    c.nodes[node, E_SIDE] = UNUSED
    c.nodes[node, E_NEXT_A] = c.counts[FREE]
    c.counts[FREE] = node
    c.counts[LIVE] -= 1


# -- what was found --------------------------------------------------------------------------------------


@kernel
def _note(c, since, metres, p, q, role, other, side):
    at = c.counts[FOUND]
    c.counts[FOUND] += 1
    c.found[at, F_A + side] = p
    c.found[at, F_B - side] = q
    c.found[at, F_IDENT_A + side] = c.place[role, p, P_IDENT]
    c.found[at, F_IDENT_B - side] = c.place[other, q, P_IDENT]
    c.found[at, F_UNTIL] = NO_TIME
    c.found[at, F_SINCE] = since
    c.found_m[at] = metres


@kernel
def _end_stays(c, p, side, t):
    """Give the stays of a mover that were long enough before `t`."""
    node = c.lists[p, side]
    while node >= 0:
        if c.nodes[node, E_DEADLINE] < t:
            _end_stay(c, node)
        node = c.nodes[node, E_NEXT_A + side]


@kernel
def _end_stay(c, node):
    deadline = c.nodes[node, E_DEADLINE]
    c.nodes[node, E_DEADLINE] = NO_END
    if deadline - c.nodes[node, E_LAST] > c.spec[FRESH]:
        return
    a, b = c.nodes[node, E_A], c.nodes[node, E_B]
    if c.spec[WHAT] == TRAVELLING:
        # Who stays together at one place does not travel: both have to have left where it began.
        near, earth = c.lengths[NEAR], c.lengths[EARTH]
        of_b = 0 if c.spec[SAME] == 1 else 1
        begun = c.node_f[node]
        if apart(c.spot[0, a, S_X], c.spot[0, a, S_Y], begun[N_XA], begun[N_YA], earth) <= near:
            return
        if apart(c.spot[of_b, b, S_X], c.spot[of_b, b, S_Y], begun[N_XB], begun[N_YB], earth) <= near:
            return
    at = c.counts[FOUND]
    c.counts[FOUND] += 1
    c.found[at, F_A] = a
    c.found[at, F_B] = b
    c.found[at, F_IDENT_A] = c.nodes[node, E_IDENT_A]
    c.found[at, F_IDENT_B] = c.nodes[node, E_IDENT_B]
    c.found[at, F_UNTIL] = deadline
    c.found[at, F_SINCE] = c.nodes[node, E_SINCE]
    c.found_m[at] = c.node_f[node, N_METRES]
