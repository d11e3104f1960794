"""Follows the samples of movers and finds those that stay where they are, come nearer, or fall silent.

Each mover has one row of state, and each sample costs a constant.

References
----------
.. [1] Li, Zheng, Xie, Chen, Liu, Ma: "Mining User Similarity Based on Location History", ACM GIS 2008: a stay
   point is where a mover stays within a distance of its first sample for some time. Here it is
   found while samples come, and told as soon as the time has passed.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.border_crossings import (
    DUE,
    DURATION,
    F_BEFORE,
    F_BEFORE_AT,
    F_FIRST,
    F_FIRST_AT,
    F_KEY,
    F_LAST,
    F_REGION,
    F_SINCE,
    F_UNTIL,
    FOUND,
    GAP,
    M_LAST,
    M_TIME,
    NO_END,
    NO_TIME,
    OVERDUE,
    SAMPLES,
)  # fmt: skip
from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import half_chord

R_BEGAN, R_SINCE, R_DEADLINE, R_SECOND = 2, 3, 4, 5
"""Of a mover, besides its last sample: the sample with which its rest or approach began, when that was, when
the rest is long enough (`NO_END`: it was told), and the first sample after the one with which it began (-1:
none)."""
R_COLUMNS = 6


@kernel
def find_stops(spec, key, time, ident, x, y, begin, radius_m, earth_radius_m, movers, mover_xy, count, found):
    """Look for rests; a radius below 0 lets every sample begin one: what is found is silence then.

    Gives the first sample for which there was no room.
    """
    for i in range(begin, len(key)):
        if count[FOUND] == len(found):
            return i
        o = key[i]
        t = time[i]
        is_new = movers[o, M_TIME] == NO_TIME
        if not is_new:
            if movers[o, R_DEADLINE] < t:
                _expire_stop(spec, movers, count, found, o)
            is_new = radius_m < 0.0 or t - movers[o, M_TIME] > spec[GAP]
        if not is_new:
            # Measured from where the rest began, not from the last sample: who creeps away does not rest.
            is_new = apart(x[i], y[i], mover_xy[o, 0], mover_xy[o, 1], earth_radius_m) > radius_m
        if is_new:
            movers[o, R_BEGAN] = ident[i]
            movers[o, R_SINCE] = t
            movers[o, R_DEADLINE] = t + spec[DURATION]
            count[DUE] = min(count[DUE], t + spec[DURATION])
            mover_xy[o, 0] = x[i]
            mover_xy[o, 1] = y[i]
            movers[o, R_SECOND] = -1
        elif movers[o, R_SECOND] < 0 and t > movers[o, R_SINCE]:
            movers[o, R_SECOND] = ident[i]
            if movers[o, R_DEADLINE] == OVERDUE:
                movers[o, R_DEADLINE] = NO_END
                _note_stop(movers, count, found, o, t)
        movers[o, M_LAST] = ident[i]
        movers[o, M_TIME] = t
    return len(key)


@kernel
def expire(spec, movers, size, count, found, watermark):
    """Give the rests that are long enough by now; tell whether there was room for all of them."""
    due = NO_END
    for o in range(size):
        deadline = movers[o, R_DEADLINE]
        if movers[o, M_TIME] == NO_TIME or deadline >= OVERDUE:
            continue
        if deadline > watermark:
            due = min(due, deadline)
            continue
        if count[FOUND] == len(found):
            return False
        _expire_stop(spec, movers, count, found, o)
    count[DUE] = due
    return True


@kernel
def find_approaches(
    spec, key, time, ident, metres, begin, by_m, margin_m, movers, mover_m, count, found, found_m
):  # fmt: skip
    """Look for movers that come nearer by at least `by_m`; give the first sample for which there was no room.

    `mover_m` has the distance where the approach began, and the least one since.
    """
    for i in range(begin, len(key)):
        if count[FOUND] == len(found):
            return i
        o = key[i]
        t = time[i]
        # Going away again by more than the margin begins anew, from where the mover is now.
        if (
            movers[o, M_TIME] == NO_TIME
            or t - movers[o, M_TIME] > spec[GAP]
            or metres[i] > mover_m[o, 1] + margin_m
            or (margin_m == 0.0 and metres[i] == mover_m[o, 1])
        ):
            movers[o, R_SINCE] = t
            movers[o, R_DEADLINE] = 0
            mover_m[o, 0] = metres[i]
            mover_m[o, 1] = metres[i]
        mover_m[o, 1] = min(mover_m[o, 1], metres[i])
        if movers[o, R_DEADLINE] == 0 and mover_m[o, 0] - metres[i] >= by_m:
            movers[o, R_DEADLINE] = NO_END
            place = count[FOUND]
            _blank(found, place, o)
            found[place, F_BEFORE] = movers[o, M_LAST]
            found[place, F_FIRST] = ident[i]
            found[place, F_SINCE] = movers[o, R_SINCE]
            found_m[place, 0] = metres[i]
            count[FOUND] += 1
        movers[o, M_LAST] = ident[i]
        movers[o, M_TIME] = t
    return len(key)


@kernel
def _expire_stop(spec, movers, count, found, o):
    deadline = movers[o, R_DEADLINE]
    if spec[SAMPLES] > 1 and movers[o, R_SECOND] < 0:
        movers[o, R_DEADLINE] = OVERDUE
        return
    movers[o, R_DEADLINE] = NO_END
    # A mover that was not seen for too long may have been anywhere.
    if deadline - movers[o, M_TIME] > spec[GAP]:
        return
    _note_stop(movers, count, found, o, deadline)


@kernel
def _note_stop(movers, count, found, o, until):
    place = count[FOUND]
    count[FOUND] += 1
    _blank(found, place, o)
    found[place, F_FIRST] = movers[o, R_BEGAN]
    found[place, F_LAST] = movers[o, R_SECOND]
    found[place, F_UNTIL] = until
    found[place, F_SINCE] = movers[o, R_SINCE]


@kernel
def _blank(found, place, o):
    found[place, F_KEY] = o
    found[place, F_REGION] = 0
    found[place, F_BEFORE] = -1
    found[place, F_FIRST] = -1
    found[place, F_LAST] = -1
    found[place, F_UNTIL] = NO_TIME
    found[place, F_SINCE] = NO_TIME
    found[place, F_BEFORE_AT] = NO_TIME
    found[place, F_FIRST_AT] = NO_TIME


@kernel
def apart(x1, y1, x2, y2, earth_radius_m):
    """Give how many metres two points lie apart: in a plane, or, with a radius above 0, on the earth."""
    if earth_radius_m <= 0.0:
        return np.hypot(x2 - x1, y2 - y1)
    half = min(1.0, max(0.0, half_chord(x1, y1, x2, y2)))
    return 2.0 * earth_radius_m * np.arcsin(np.sqrt(half))
