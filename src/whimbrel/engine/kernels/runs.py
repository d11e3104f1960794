"""Runs of an automaton over events: all matches in the making at once.

Runs of one partition that will do the same from now on (same state, same beginning where that counts, same
values of what conditions read) are one. What they have taken is not copied: it hangs on *nodes*, each an
event with what was taken before it, or a union of two others. So a thousand ways to have come here cost
as much as one, and are listed, or only counted, when they are complete.

An event costs the moves of all runs of its partition; runs there are as many as first events within reach,
times the states, whatever the number of partial matches.

References
----------
.. [1] Agrawal, Diao, Gyllstrom, Immerman: "Efficient Pattern Matching over Event Streams", SIGMOD 2008: runs
   of an automaton over a shared, versioned buffer of matches. Here runs themselves are shared, too.
.. [2] Bucchi, Grez, Quintana, Riveros, Vansummeren: "CORE: a Complex Event Recognition Engine", PVLDB 15(9),
   2022: union nodes, from which matches are listed with constant delay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whimbrel.engine.kernels.machine import STACK, holds
from whimbrel.space.kernels.jit import kernel

TAKE, IGNORE = 0, 1
ON_THE_WAY, START, FINAL, STOPPED, WAITING = 0, 1, 2, 3, 4
FIRST, LAST, COUNT, SUM, MIN, MAX = 0, 1, 2, 3, 4, 5

UNUSED, FREE, NODES, MATCHES, TIMEOUTS, DUE, SERIAL, DROPPED, LIVE, MISSED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
COUNTS = 10
NO_END = 2**63 - 1
MOST = 2**62
"""Where numbers of matches stop growing."""


class Machine(NamedTuple):
    """The states and what can be done with an event in each."""

    states: np.ndarray
    """Per state its kind, where its moves begin and stop, the tests with a program that these ask for, and
    how long after the last event it may still be left (-1: for ever), and for how long something is waited
    for that need not come."""
    moves: np.ndarray
    """Per move what is done, the state it leads to, the step, the terms that open it and those under which it
    completes a match."""
    terms: np.ndarray
    """Per term the tests that must be passed and those that must not."""
    spec: np.ndarray


S_KIND, S_MOVES, S_STOP, S_USES, S_GAP, S_LAPSE = range(6)
M_ACTION, M_TARGET, M_STEP, M_OPENS, M_COMPLETES = 0, 1, 2, 3, 5
BEGIN_STATE, WITHIN, KEEPS_BEGIN, KEEPS_LAST, WANTS_TIMEOUTS, LIMIT, DROPS_OLDEST, MOST_MOVES = range(8)
SKIP, SKIP_STEP, THROWS, FINAL_STATE = 8, 9, 10, 11
SPEC = 12
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = 1, 2, 3, 4


class RunTests(NamedTuple):
    """Programs of the tests that read what was taken before, and the values that are kept for them."""

    program: np.ndarray
    """Per test where its program begins and stops, and how soon after the last event it is passed (-1: at any
    time)."""
    code: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    registers: np.ndarray
    """Per value kept: step, kind, whether a float, place; place (-1: none) of its source, whether a float."""
    totals: np.ndarray
    """Per value summed up where matches are counted: step, whether a float, place (-1: events count)."""


TOTAL_STEP, TOTAL_FLOAT, TOTAL_PLACE = 0, 1, 2


class RunEvents(NamedTuple):
    """The events of a batch, in order: see the columns below; and the values that programs read."""

    rows: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


E_KEY, E_BITS, E_CODE, E_TIME, E_START, E_IDENT, E_NULLS = range(7)
"""The partition, the tests passed, which of the different sets of tests that is, times, number, nulls."""


class Runs(NamedTuple):
    """Matches in the making, linked by partition and state; unused places are linked too."""

    rows: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


R_STATE, R_KEY, R_NODE, R_BEGAN, R_SERIES, R_LAST_AT, R_NEXT, R_NULLS = range(8)
"""State, partition, what was taken, time and number of the first event, time of the last, the next run."""


class Nodes(NamedTuple):
    """What was taken: an event and what came before it, or (step -1) the union of two nodes."""

    rows: np.ndarray
    totals: np.ndarray
    """Per value that is summed up: over all ways, the sum, the least and the greatest of their events."""
    numbers: np.ndarray
    """... and how many values there are."""


N_IDENT, N_STEP, N_LEFT, N_RIGHT, N_PATHS, N_LENGTH, N_SERIAL = range(7)
"""The event and the step, what it is made of, how many ways lead here and how many events these have in all,
the number of the event since the beginning."""

F_NODE, F_KEY, F_AT, F_BY = range(4)
"""What was found: the node, the partition, the deadline that completed it or passed (-1: an event did), the
number of the event that completed it (-1: time did)."""


class RunScratch(NamedTuple):
    """Room to work in."""

    fresh: np.ndarray
    taken: np.ndarray
    """Per step the node in which the run at hand has taken the event."""
    table: np.ndarray
    """Runs by what they will do, and the stamp under which each was put there; the first has the stamp."""
    indexed: np.ndarray
    """Per state the stamp with which its runs were put into the table."""
    heap: np.ndarray
    """Four queues, for matching in order."""
    bound: np.ndarray
    hot: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    nulls: np.ndarray
    si: np.ndarray
    sf: np.ndarray
    sn: np.ndarray


def scratch(fresh: int, steps: int, states: int, ints: int, floats: int) -> RunScratch:
    """Make room to work in."""
    size = 64
    while size < 4 * fresh:
        size *= 2
    return RunScratch(
        np.zeros(fresh, np.int64), np.full(max(steps, 1), -1, np.int64), np.zeros((size, 2), np.int64),
        np.zeros(states, np.int64), np.zeros((4, fresh), np.int64),
        np.array([0, 1], np.int64), np.zeros((2, 2), np.int64),
        np.zeros((2, max(ints, 1)), np.int64), np.zeros((2, max(floats, 1)), np.float64),
        np.zeros(2, np.uint64),
        np.zeros(STACK, np.int64), np.zeros(STACK, np.float64), np.zeros(STACK, np.uint8),
    )  # fmt: skip


# -- tests ---------------------------------------------------------------------------------------------


@kernel
def opens(m_terms, begin, stop, bits):
    """Tell whether one of the terms begin to stop holds."""
    for term in range(begin, stop):
        if bits & m_terms[term, 0] == m_terms[term, 0] and bits & m_terms[term, 1] == 0:
            return True
    return False


@kernel
def passed(
    m_states, t_program, t_code, t_ints, t_floats, ev, ev_i, ev_f, i, runs, run_i, run_f, run, state,
    w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank,
):  # fmt: skip
    """Give the tests that event `i` passes, seen from a run (-1: from the beginning) in `state`."""
    bits = ev[i, E_BITS]
    asked = bits & m_states[state, S_USES]
    if asked == 0:
        return bits
    # Values are copied for the first program only: most runs are asked nothing.
    loaded = False
    for test in range(len(t_program)):
        if (asked >> test) & 1 == 0:
            continue
        if t_program[test, 2] >= 0:
            if run >= 0 and ev[i, E_TIME] - runs[run, R_LAST_AT] >= t_program[test, 2]:
                bits = bits & ~(np.int64(1) << test)
            continue
        begin = t_program[test, 0]
        stop = t_program[test, 1]
        if begin == stop:
            continue
        if not loaded:
            load(ev, ev_i, ev_f, i, runs, run_i, run_f, run, w_hot, w_i, w_f, w_n, blank)
            loaded = True
        if not holds(
            t_code, begin, stop, t_ints, t_floats, w_bound, w_hot,
            w_i, w_f, w_n, w_si, w_sf, w_sn,
        ):  # fmt: skip
            bits = bits & ~(np.int64(1) << test)
    return bits


@kernel
def load(ev, ev_i, ev_f, i, runs, run_i, run_f, run, w_hot, w_i, w_f, w_n, blank):
    """Bring the values of the event and of the run to where programs read them.

    `blank` has the null marks of a run that has taken nothing.
    """
    w_hot[0, 0] = ev[i, E_TIME]
    w_hot[0, 1] = ev[i, E_START]
    for place in range(ev_i.shape[1]):
        w_i[0, place] = ev_i[i, place]
    for place in range(ev_f.shape[1]):
        w_f[0, place] = ev_f[i, place]
    w_n[0] = np.uint64(ev[i, E_NULLS])
    if run < 0:
        for place in range(run_i.shape[1]):
            w_i[1, place] = 0
        for place in range(run_f.shape[1]):
            w_f[1, place] = 0.0
        w_n[1] = np.uint64(blank)
        return
    for place in range(run_i.shape[1]):
        w_i[1, place] = run_i[run, place]
    for place in range(run_f.shape[1]):
        w_f[1, place] = run_f[run, place]
    w_n[1] = np.uint64(runs[run, R_NULLS])


@kernel
def remember(t_registers, ev, ev_i, ev_f, i, step, runs, run_i, run_f, run):
    """Update the values that conditions read, now that `run` has taken event `i` for `step`."""
    for register in range(len(t_registers)):
        if t_registers[register, 0] != step:
            continue
        kind = t_registers[register, 1]
        is_float = t_registers[register, 2] == 1
        place = t_registers[register, 3]
        made_from = t_registers[register, 4]
        # One word marks the nulls of both tables: whole numbers below, floats above.
        bit = np.int64(1) << np.int64(place + 32 if is_float else place)
        if kind == COUNT:
            if made_from >= 0 and _is_null(ev, i, t_registers[register, 5] == 1, made_from):
                continue
            run_i[run, place] += 1
            continue
        if made_from < 0 or _is_null(ev, i, t_registers[register, 5] == 1, made_from):
            continue
        is_first = runs[run, R_NULLS] & bit != 0
        if is_float:
            if t_registers[register, 5] == 1:
                value = ev_f[i, made_from]
            else:
                value = float(ev_i[i, made_from])
            old = run_f[run, place]
            if is_first or kind == LAST:
                run_f[run, place] = value
            elif kind == SUM:
                run_f[run, place] = old + value
            elif kind == MIN:
                run_f[run, place] = min(old, value)
            elif kind == MAX:
                run_f[run, place] = max(old, value)
        else:
            whole = ev_i[i, made_from]
            before = run_i[run, place]
            if is_first or kind == LAST:
                run_i[run, place] = whole
            elif kind == SUM:
                run_i[run, place] = before + whole
            elif kind == MIN:
                run_i[run, place] = min(before, whole)
            elif kind == MAX:
                run_i[run, place] = max(before, whole)
        runs[run, R_NULLS] = runs[run, R_NULLS] & ~bit


@kernel
def _is_null(ev, i, is_float, place):
    at = np.int64(place + 32 if is_float else place)
    return (ev[i, E_NULLS] >> at) & 1 == 1


# -- runs and nodes --------------------------------------------------------------------------------------


@kernel
def new_run(runs, run_i, run_f, count, of, state, node, key, begin, serial, last, blank):
    """Give an unused place to a run that goes on from run `of` (-1: from the beginning)."""
    # Unused places are a list of their own, so that taking one and giving it back cost the same always.
    run = count[FREE]
    count[FREE] = runs[run, R_NEXT]
    count[LIVE] += 1
    runs[run, R_STATE] = state
    runs[run, R_KEY] = key
    runs[run, R_NODE] = node
    runs[run, R_BEGAN] = begin
    runs[run, R_SERIES] = serial
    runs[run, R_LAST_AT] = last
    runs[run, R_NEXT] = -1
    if of >= 0:
        for place in range(run_i.shape[1]):
            run_i[run, place] = run_i[of, place]
        for place in range(run_f.shape[1]):
            run_f[run, place] = run_f[of, place]
        runs[run, R_NULLS] = runs[of, R_NULLS]
    else:
        for place in range(run_i.shape[1]):
            run_i[run, place] = 0
        for place in range(run_f.shape[1]):
            run_f[run, place] = 0.0
        runs[run, R_NULLS] = blank
    return run


@kernel
def drop_run(runs, count, run):
    """Let a place be used again."""
    runs[run, R_STATE] = -1
    runs[run, R_NEXT] = count[FREE]
    count[FREE] = run
    count[LIVE] -= 1


@kernel
def new_node(t_totals, ev, ev_i, ev_f, i, nodes, node_t, node_n, count, step, left):
    """Add event `i` to what was taken before (-1: nothing)."""
    node = count[NODES]
    count[NODES] += 1
    nodes[node, N_IDENT] = ev[i, E_IDENT]
    nodes[node, N_STEP] = step
    nodes[node, N_LEFT] = left
    nodes[node, N_RIGHT] = -1
    nodes[node, N_SERIAL] = count[SERIAL] + i
    if left < 0:
        nodes[node, N_PATHS] = 1
        nodes[node, N_LENGTH] = 1
    else:
        nodes[node, N_PATHS] = nodes[left, N_PATHS]
        # Every way gets one event longer. Numbers of ways double with each event of a loop: they end at
        # `MOST`.
        nodes[node, N_LENGTH] = min(MOST, nodes[left, N_LENGTH] + nodes[left, N_PATHS])
    for total in range(len(t_totals)):
        add_up(t_totals, ev, ev_i, ev_f, i, nodes, node_t, node_n, total, node, left)
    return node


@kernel
def add_up(t_totals, ev, ev_i, ev_f, i, nodes, node_t, node_n, total, node, left):
    """Sum a value up over all ways that lead to a node."""
    if left >= 0:
        node_t[node, 3 * total] = node_t[left, 3 * total]
        node_n[node, total] = node_n[left, total]
        node_t[node, 3 * total + 1] = node_t[left, 3 * total + 1]
        node_t[node, 3 * total + 2] = node_t[left, 3 * total + 2]
    else:
        node_t[node, 3 * total] = 0.0
        node_n[node, total] = 0
        node_t[node, 3 * total + 1] = np.inf
        node_t[node, 3 * total + 2] = -np.inf
    place = t_totals[total, TOTAL_PLACE]
    is_float = t_totals[total, TOTAL_FLOAT] == 1
    if nodes[node, N_STEP] != t_totals[total, TOTAL_STEP]:
        return
    value = 0.0
    if place >= 0:
        if _is_null(ev, i, is_float, place):
            return
        value = ev_f[i, place] if is_float else float(ev_i[i, place])
    # The event is part of every way that leads here, and counts once for each.
    node_t[node, 3 * total] += value * nodes[node, N_PATHS]
    node_n[node, total] = min(MOST, node_n[node, total] + nodes[node, N_PATHS])
    node_t[node, 3 * total + 1] = min(node_t[node, 3 * total + 1], value)
    node_t[node, 3 * total + 2] = max(node_t[node, 3 * total + 2], value)


@kernel
def union(nodes, node_t, node_n, count, left, right):
    """Unite two nodes."""
    node = count[NODES]
    count[NODES] += 1
    nodes[node, N_IDENT] = -1
    nodes[node, N_STEP] = -1
    nodes[node, N_LEFT] = left
    nodes[node, N_RIGHT] = right
    nodes[node, N_SERIAL] = -1
    nodes[node, N_PATHS] = min(MOST, nodes[left, N_PATHS] + nodes[right, N_PATHS])
    nodes[node, N_LENGTH] = min(MOST, nodes[left, N_LENGTH] + nodes[right, N_LENGTH])
    for total in range(node_n.shape[1]):
        node_t[node, 3 * total] = node_t[left, 3 * total] + node_t[right, 3 * total]
        node_n[node, total] = min(MOST, node_n[left, total] + node_n[right, total])
        node_t[node, 3 * total + 1] = min(node_t[left, 3 * total + 1], node_t[right, 3 * total + 1])
        node_t[node, 3 * total + 2] = max(node_t[left, 3 * total + 2], node_t[right, 3 * total + 2])
    return node


@kernel
def deadline(m_states, m_spec, runs, run):
    """Give when a run is out of time."""
    end = NO_END
    if m_spec[WITHIN] >= 0:
        end = runs[run, R_BEGAN] + m_spec[WITHIN]
    gap = m_states[runs[run, R_STATE], S_GAP]
    if gap >= 0:
        end = min(end, runs[run, R_LAST_AT] + gap)
    lapse = m_states[runs[run, R_STATE], S_LAPSE]
    if lapse >= 0:
        end = min(end, runs[run, R_LAST_AT] + lapse)
    return end


@kernel
def lapsed(m_states, runs, run, end):
    """Tell whether a run that ends waited only for what need not have come: it is no time-out then."""
    lapse = m_states[runs[run, R_STATE], S_LAPSE]
    return lapse >= 0 and runs[run, R_LAST_AT] + lapse == end


@kernel
def note(found, count, which, node, key, at, by):
    """Write a match or a timed-out run down."""
    place = count[which]
    count[which] += 1
    found[place, F_NODE] = node
    found[place, F_KEY] = key
    found[place, F_AT] = at
    found[place, F_BY] = by


@kernel
def end_run(m_states, m_spec, runs, run, count, matches, timeouts, time):
    """Note what becomes of a run whose time is over; its place is still to be given back."""
    if m_states[runs[run, R_STATE], S_KIND] == WAITING:
        note(matches, count, MATCHES, runs[run, R_NODE], runs[run, R_KEY], time, -1)
    elif m_spec[WANTS_TIMEOUTS] == 1 and not lapsed(m_states, runs, run, time):
        note(timeouts, count, TIMEOUTS, runs[run, R_NODE], runs[run, R_KEY], time, -1)


@kernel
def expect(m_states, m_spec, runs, run, count):
    """Take note of when something happens to a run even if no event comes."""
    if m_states[runs[run, R_STATE], S_KIND] == WAITING or m_spec[WANTS_TIMEOUTS] == 1:
        count[DUE] = min(count[DUE], deadline(m_states, m_spec, runs, run))
