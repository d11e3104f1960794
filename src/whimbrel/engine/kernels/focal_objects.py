"""Follows the location updates of focal objects and finds at which of them another interest begins."""

from __future__ import annotations

import math

from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import sphere

ALWAYS, EVERY, MOVED = 0, 1, 2
"""Conditions under which an update begins another interest."""

NEVER = -(1 << 62)
"""The time of what has not happened."""

T_LAST, T_START = 0, 1
"""Of an object: when its last update was, and the switch before it (`NEVER`: none)."""
TIMES = 2

P_LAST_X, P_LAST_Y, P_FROM_X, P_FROM_Y, P_SWITCH_X, P_SWITCH_Y = range(6)
"""Where it was at its last update, at the last one in another place (NaN: none), and at the last switch."""
PLACES = 6


@kernel
def find_switches(
    obj, time, x, y, condition, period, distance_m, is_lonlat, silence, times, places, found, came_from
):
    """Find the updates that begin an interest; give how many there are.

    Updates are in order of time. `silence` is how long an object may be silent; below 0, for ever. Each row
    of `found` has the update, when the interest before ends, and whether there was one; `came_from` has the
    last place of the object that is another one.
    """
    count = 0
    for i in range(len(obj)):
        o, t = obj[i], time[i]
        before, start = times[o, T_LAST], times[o, T_START]
        switches = start == NEVER
        ends = t
        if not switches and silence >= 0 and t - before > silence:
            switches = True
            ends = before + silence + 1
        if not switches:
            if condition == ALWAYS:
                switches = True
            elif condition == EVERY:
                switches = start + period < t
            elif condition == MOVED:
                switches = (
                    _moved(places[o, P_SWITCH_X], places[o, P_SWITCH_Y], x[i], y[i], is_lonlat) > distance_m
                )
        move_to(o, t, x[i], y[i], times, places)
        if switches:
            found[count, 0] = i
            found[count, 1] = ends
            found[count, 2] = start != NEVER
            came_from[count, 0], came_from[count, 1] = places[o, P_FROM_X], places[o, P_FROM_Y]
            count += 1
            times[o, T_START] = t
            places[o, P_SWITCH_X], places[o, P_SWITCH_Y] = x[i], y[i]
    return count


@kernel
def note_moves(obj, time, x, y, times, places, came_from):
    """Tell for each update, in order of time, the last place of its object that is another one."""
    for i in range(len(obj)):
        o = obj[i]
        move_to(o, time[i], x[i], y[i], times, places)
        came_from[i, 0], came_from[i, 1] = places[o, P_FROM_X], places[o, P_FROM_Y]


@kernel
def move_to(o, t, x, y, times, places):
    """Take note of where an object is."""
    if times[o, T_LAST] != NEVER and (places[o, P_LAST_X] != x or places[o, P_LAST_Y] != y):
        places[o, P_FROM_X], places[o, P_FROM_Y] = places[o, P_LAST_X], places[o, P_LAST_Y]
    places[o, P_LAST_X], places[o, P_LAST_Y] = x, y
    times[o, T_LAST] = t


@kernel
def _moved(x1, y1, x2, y2, is_lonlat):
    if is_lonlat:
        return sphere(x1, y1, x2, y2)
    return math.hypot(x2 - x1, y2 - y1)
