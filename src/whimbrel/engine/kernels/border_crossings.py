"""Follows the samples of movers and keeps, for each mover and region, on which side of it the mover is.

Outside is the rule: a mover has a node only for a region that it is in, or that is undecided.
So the work grows with the regions that are near, not with all of them.

The verbs are the motion modes of moving objects against regions (enter, leave, cross, stay), with hysteresis:
a change of sides counts once it has settled for some samples, or for some time, and a margin lies between in
and out, so that a mover on the border does not flicker. A sample costs its near regions and the mover's
nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whimbrel.space.kernels.jit import kernel

NO_TIME = -(2**62)
NO_END = 2**62
OVERDUE = NO_END - 1
"""The deadline of what was long enough, but for a second sample: it is told with that one."""

ENTERING, LEAVING, CROSSING, STAYING = range(4)
"""What is looked for."""

WHAT, GAP, SETTLE_EVENTS, SETTLE_TIME, DURATION, SAMPLES, SPEC = range(7)
"""... of which the last but one says how many samples a stay or rest needs, one or two."""

IN, UNSURE = 1, 2
"""What a sample says about a region that is near; of all others it is outside."""

UNUSED, OUTSIDE, INSIDE, UNKNOWN = range(4)
"""Sides; a node for the outside waits for the inside to settle."""

M_LAST, M_TIME, M_HEAD, M_NODES, M_COLUMNS = range(5)
"""Of a mover: its last sample, when that was, its first node, and how many it has."""

N_NEXT, N_KEY, N_REGION, N_SIDE, N_SINCE, N_ENTERED, N_BEGAN, N_DEADLINE = range(8)
"""Of a node: the next one, the mover, the region, the side and since when, whether it was seen to enter, the
sample with which a stay began, and when that is long enough."""
N_COUNT, N_FIRST, N_FIRST_AT, N_BEFORE, N_BEFORE_AT = range(8, 13)
"""Of a change that has not settled: how many samples say so, the first of them, the one before that, and when
these were."""
N_SECOND, N_COLUMNS = 13, 14
"""Of a stay: the first sample after the one with which it began (-1: none yet)."""

F_KEY, F_REGION, F_BEFORE, F_FIRST, F_LAST, F_UNTIL, F_SINCE, F_BEFORE_AT, F_FIRST_AT, F_COLUMNS = range(10)
"""What was found: the mover, the region, the samples (-1: none), the time that completed it (`NO_TIME`: a
sample did), since when the mover was on the side it left, and when it changed sides."""

LIVE, FREE, FOUND, DUE, SERIAL, COUNTS = range(6)


class Samples(NamedTuple):
    """Samples in order: movers, times, the events behind them, places."""

    key: np.ndarray
    time: np.ndarray
    ident: np.ndarray
    x: np.ndarray
    y: np.ndarray


@kernel
def process_samples(
    spec, key, time, ident, x, y, near_at, near_region, near_says, line_at, line_region, begin,
    movers, mover_xy, nodes, node_xy, count, found, found_xy, seen,
):  # fmt: skip
    """Judge the samples from `begin` on; give the first for which there was no room."""
    for i in range(begin, len(key)):
        o = key[i]
        t = time[i]
        # Every near region may need a node, and each node may tell a change and a stay.
        many = near_at[i + 1] - near_at[i] + line_at[i + 1] - line_at[i]
        if len(nodes) - count[LIVE] < many or len(found) - count[FOUND] < 2 * (many + movers[o, M_NODES]):
            return i
        known = movers[o, M_TIME] != NO_TIME
        if known:
            _end_stays(spec, movers, nodes, count, found, o, t)
            if t - movers[o, M_TIME] > spec[GAP]:
                drop_all(movers, nodes, count, o)
                known = False
        if known:
            # Regions that lie between two samples: it was in them, whether it was seen there or not.
            for place in range(line_at[i], line_at[i + 1]):
                if _find(movers, nodes, o, line_region[place]) < 0:
                    _pass_in(
                        spec, movers, mover_xy, nodes, node_xy, count, found, found_xy, o, line_region[place],
                        i, t, ident, x, y,
                    )  # fmt: skip
        # Regions with a node are judged by it, the others after; the stamp tells them apart without a search.
        stamp = count[SERIAL] + i + 1
        before = -1
        node = movers[o, M_HEAD]
        while node >= 0:
            after = nodes[node, N_NEXT]
            region = nodes[node, N_REGION]
            seen[region] = stamp
            says = _says(near_at, near_region, near_says, i, region)
            if _judge(
                spec, movers, mover_xy, nodes, node_xy, count, found, found_xy, o, node, says, i, t, ident,
                x, y,
            ):  # fmt: skip
                before = node
            else:
                _unlink(movers, nodes, count, o, before, node)
            node = after
        for place in range(near_at[i], near_at[i + 1]):
            region = near_region[place]
            if seen[region] == stamp:
                continue
            if not known:
                # Where it came from is unknown, so that it has not entered: it just is there.
                node = _add(movers, nodes, count, o, region, UNKNOWN)
            elif near_says[place] == IN:
                node = _add(movers, nodes, count, o, region, OUTSIDE)
            else:
                continue
            if near_says[place] == IN:
                _judge(
                    spec, movers, mover_xy, nodes, node_xy, count, found, found_xy, o, node, IN, i, t, ident,
                    x, y,
                )  # fmt: skip
        movers[o, M_LAST] = ident[i]
        movers[o, M_TIME] = t
        mover_xy[o, 0] = x[i]
        mover_xy[o, 1] = y[i]
    return len(key)


@kernel
def expire(spec, movers, nodes, count, found, watermark):
    """Give the stays that are long enough by now; tell whether there was room for all of them."""
    due = NO_END
    for node in range(len(nodes)):
        deadline = nodes[node, N_DEADLINE]
        if nodes[node, N_SIDE] == UNUSED or deadline >= OVERDUE:
            continue
        if deadline > watermark:
            due = min(due, deadline)
            continue
        if count[FOUND] == len(found):
            return False
        _end_stay(spec, movers, nodes, count, found, node)
    count[DUE] = due
    return True


@kernel
def drop_all(movers, nodes, count, o):
    """Forget on which sides a mover is."""
    while movers[o, M_HEAD] >= 0:
        _unlink(movers, nodes, count, o, -1, movers[o, M_HEAD])


@kernel
def _end_stays(spec, movers, nodes, count, found, o, t):
    """Give the stays of a mover that were long enough before `t`."""
    node = movers[o, M_HEAD]
    while node >= 0:
        if nodes[node, N_DEADLINE] < t:
            _end_stay(spec, movers, nodes, count, found, node)
        node = nodes[node, N_NEXT]


@kernel
def _end_stay(spec, movers, nodes, count, found, node):
    deadline = nodes[node, N_DEADLINE]
    # Seen once is not seen to stay: the next sample decides.
    if nodes[node, N_SECOND] < 0:
        nodes[node, N_DEADLINE] = OVERDUE
        return
    nodes[node, N_DEADLINE] = NO_END
    # A mover that was not seen for too long may have been anywhere.
    if deadline - movers[nodes[node, N_KEY], M_TIME] > spec[GAP]:
        return
    _note_stay(nodes, count, found, node, deadline)


@kernel
def _confirm(nodes, count, found, node, t, sample):
    """Take note of the second sample of a stay; one that was long enough before is told with it."""
    if nodes[node, N_SECOND] >= 0 or t <= nodes[node, N_SINCE]:
        return
    nodes[node, N_SECOND] = sample
    if nodes[node, N_DEADLINE] == OVERDUE:
        nodes[node, N_DEADLINE] = NO_END
        _note_stay(nodes, count, found, node, t)


@kernel
def _note_stay(nodes, count, found, node, until):
    place = count[FOUND]
    count[FOUND] += 1
    found[place, F_KEY] = nodes[node, N_KEY]
    found[place, F_REGION] = nodes[node, N_REGION]
    found[place, F_BEFORE] = -1
    found[place, F_FIRST] = nodes[node, N_BEGAN]
    found[place, F_LAST] = nodes[node, N_SECOND]
    found[place, F_UNTIL] = until
    found[place, F_SINCE] = nodes[node, N_SINCE]
    found[place, F_BEFORE_AT] = NO_TIME
    found[place, F_FIRST_AT] = NO_TIME


@kernel
def _says(near_at, near_region, near_says, i, region):
    for place in range(near_at[i], near_at[i + 1]):
        if near_region[place] == region:
            return near_says[place]
    return 0


@kernel
def _find(movers, nodes, o, region):
    node = movers[o, M_HEAD]
    while node >= 0:
        if nodes[node, N_REGION] == region:
            return node
        node = nodes[node, N_NEXT]
    return -1


@kernel
def _add(movers, nodes, count, o, region, side):
    node = count[FREE]
    count[FREE] = nodes[node, N_NEXT]
    count[LIVE] += 1
    nodes[node, N_NEXT] = movers[o, M_HEAD]
    nodes[node, N_KEY] = o
    nodes[node, N_REGION] = region
    nodes[node, N_SIDE] = side
    nodes[node, N_ENTERED] = 0
    nodes[node, N_DEADLINE] = NO_END
    nodes[node, N_COUNT] = 0
    movers[o, M_HEAD] = node
    movers[o, M_NODES] += 1
    return node


@kernel
def _unlink(movers, nodes, count, o, before, node):
    if before < 0:
        movers[o, M_HEAD] = nodes[node, N_NEXT]
    else:
        nodes[before, N_NEXT] = nodes[node, N_NEXT]
    nodes[node, N_SIDE] = UNUSED
    nodes[node, N_NEXT] = count[FREE]
    count[FREE] = node
    count[LIVE] -= 1
    movers[o, M_NODES] -= 1


@kernel
def _pass_in(
    spec, movers, mover_xy, nodes, node_xy, count, found, found_xy, o, region, i, t, ident, x, y
):  # fmt: skip
    """Let a mover go in between its last sample and this one; where it is now is judged next."""
    node = _add(movers, nodes, count, o, region, INSIDE)
    nodes[node, N_SINCE] = NO_TIME
    nodes[node, N_ENTERED] = 1
    if spec[WHAT] == ENTERING:
        _begin_change(movers, mover_xy, nodes, node_xy, o, node, i, t, ident, x, y)
        _note(nodes, node_xy, count, found, found_xy, node, -1)
        nodes[node, N_COUNT] = 0


@kernel
def _judge(
    spec, movers, mover_xy, nodes, node_xy, count, found, found_xy, o, node, says, i, t, ident, x, y
):  # fmt: skip
    """Let a node take in what a sample says; tell whether it is still needed."""
    side = nodes[node, N_SIDE]
    if side == UNKNOWN:
        if says == IN:
            _go_in(spec, nodes, count, node, t, ident[i])
        return says != 0
    if (side == INSIDE) == (says != 0) or (side == OUTSIDE and says == UNSURE):
        nodes[node, N_COUNT] = 0
        if says == IN and side == INSIDE and nodes[node, N_SINCE] == NO_TIME:
            nodes[node, N_SINCE] = t  # it went in between two samples, and this is the first that is in
        if side == INSIDE and spec[WHAT] == STAYING:
            _confirm(nodes, count, found, node, t, ident[i])
        return side == INSIDE
    if nodes[node, N_COUNT] == 0:
        _begin_change(movers, mover_xy, nodes, node_xy, o, node, i, t, ident, x, y)
    else:
        nodes[node, N_COUNT] += 1
    settled = nodes[node, N_COUNT] >= spec[SETTLE_EVENTS] and t - nodes[node, N_FIRST_AT] >= spec[SETTLE_TIME]
    if not settled:
        return True
    last = -1 if nodes[node, N_COUNT] == 1 else ident[i]
    if side == OUTSIDE:
        nodes[node, N_SINCE] = NO_TIME
        if spec[WHAT] == ENTERING:
            _note(nodes, node_xy, count, found, found_xy, node, last)
        nodes[node, N_ENTERED] = 1
        _go_in(spec, nodes, count, node, nodes[node, N_FIRST_AT], nodes[node, N_FIRST])
        nodes[node, N_COUNT] = 0
        return True
    if spec[WHAT] == LEAVING or (spec[WHAT] == CROSSING and nodes[node, N_ENTERED] == 1):
        _note(nodes, node_xy, count, found, found_xy, node, last)
    return False


@kernel
def _go_in(spec, nodes, count, node, t, began):
    nodes[node, N_SIDE] = INSIDE
    nodes[node, N_SINCE] = t
    nodes[node, N_BEGAN] = began
    nodes[node, N_SECOND] = -1
    if spec[WHAT] == STAYING:
        nodes[node, N_DEADLINE] = t + spec[DURATION]
        count[DUE] = min(count[DUE], t + spec[DURATION])


@kernel
def _begin_change(movers, mover_xy, nodes, node_xy, o, node, i, t, ident, x, y):
    nodes[node, N_COUNT] = 1
    nodes[node, N_FIRST] = ident[i]
    nodes[node, N_FIRST_AT] = t
    nodes[node, N_BEFORE] = movers[o, M_LAST]
    nodes[node, N_BEFORE_AT] = movers[o, M_TIME]
    node_xy[node, 0] = mover_xy[o, 0]
    node_xy[node, 1] = mover_xy[o, 1]
    node_xy[node, 2] = x[i]
    node_xy[node, 3] = y[i]


@kernel
def _note(nodes, node_xy, count, found, found_xy, node, last):
    """Write down that a mover changed sides."""
    place = count[FOUND]
    count[FOUND] += 1
    found[place, F_KEY] = nodes[node, N_KEY]
    found[place, F_REGION] = nodes[node, N_REGION]
    found[place, F_BEFORE] = nodes[node, N_BEFORE]
    found[place, F_FIRST] = nodes[node, N_FIRST]
    found[place, F_LAST] = last
    found[place, F_UNTIL] = NO_TIME
    found[place, F_SINCE] = nodes[node, N_SINCE]
    found[place, F_BEFORE_AT] = nodes[node, N_BEFORE_AT]
    found[place, F_FIRST_AT] = nodes[node, N_FIRST_AT]
    for axis in range(4):
        found_xy[place, axis] = node_xy[node, axis]
