"""Walks a machine of states along the events: the matches in the making (*runs*), all at once.

Runs of one partition that will do the same from now on (same state, same beginning where that counts, same
values of what conditions read) are one. What they have taken is not copied: it hangs on *nodes*, each an
event with what was taken before it, or a union of two others. So a thousand ways to have come here cost
as much as one, and are listed, or only counted, when they are complete.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whimbrel.engine.kernels.jit import kernel
from whimbrel.engine.kernels.machine import STACK, holds

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
    how long after the last event it may still be left (-1: for ever)."""
    moves: np.ndarray
    """Per move what is done, the state it leads to, the step, the terms that open it and those under which it
    completes a match."""
    terms: np.ndarray
    """Per term the tests that must be passed and those that must not."""
    spec: np.ndarray


S_KIND, S_MOVES, S_STOP, S_USES, S_GAP = range(5)
M_ACTION, M_TARGET, M_STEP, M_OPENS, M_COMPLETES = 0, 1, 2, 3, 5
BEGIN_STATE, WITHIN, KEEPS_BEGIN, KEEPS_LAST, WANTS_TIMEOUTS, LIMIT, DROPS_OLDEST, MOST_MOVES = range(8)
SKIP, SKIP_STEP, THROWS, FINAL_STATE = 8, 9, 10, 11
SPEC = 12
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = 1, 2, 3, 4


class Tests(NamedTuple):
    """Programs of the tests that read what was taken before, and the values that are kept for them."""

    program: np.ndarray
    code: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    registers: np.ndarray
    """Per value kept: step, kind, whether a float, place; place (-1: none) of its source, whether a float."""
    totals: np.ndarray
    """Per value summed up where matches are counted: step, whether a float, place (-1: events count)."""


TOTAL_STEP, TOTAL_FLOAT, TOTAL_PLACE = 0, 1, 2


class Events(NamedTuple):
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


class Scratch(NamedTuple):
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


def scratch(fresh: int, steps: int, states: int, ints: int, floats: int) -> Scratch:
    """Make room to work in."""
    size = 64
    while size < 4 * fresh:
        size *= 2
    return Scratch(
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
    m_states,
    t_program,
    t_code,
    t_ints,
    t_floats,
    ev,
    ev_i,
    ev_f,
    i,
    runs,
    run_i,
    run_f,
    run,
    state,
    w_bound,
    w_hot,
    w_i,
    w_f,
    w_n,
    w_si,
    w_sf,
    w_sn,
    blank,
):
    """Give the tests that event `i` passes, seen from a run (-1: from the beginning) in `state`."""
    bits = ev[i, E_BITS]
    asked = bits & m_states[state, S_USES]
    if asked == 0:
        return bits
    loaded = False
    for test in range(len(t_program)):
        if (asked >> test) & 1 == 0:
            continue
        begin = t_program[test, 0]
        stop = t_program[test, 1]
        if begin == stop:
            continue
        if not loaded:
            load(
                ev,
                ev_i,
                ev_f,
                i,
                runs,
                run_i,
                run_f,
                run,
                w_hot,
                w_i,
                w_f,
                w_n,
                blank,
            )
            loaded = True
        if not holds(
            t_code, begin, stop, t_ints, t_floats, w_bound, w_hot,
            w_i, w_f, w_n, w_si, w_sf, w_sn,
        ):  # fmt: skip
            bits = bits & ~(np.int64(1) << test)
    return bits


@kernel
def load(
    ev,
    ev_i,
    ev_f,
    i,
    runs,
    run_i,
    run_f,
    run,
    w_hot,
    w_i,
    w_f,
    w_n,
    blank,
):
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
        w_n[1] = np.uint64(blank)
        return
    for place in range(run_i.shape[1]):
        w_i[1, place] = run_i[run, place]
    for place in range(run_f.shape[1]):
        w_f[1, place] = run_f[run, place]
    w_n[1] = np.uint64(runs[run, R_NULLS])


@kernel
def remember(
    t_registers,
    ev,
    ev_i,
    ev_f,
    i,
    step,
    runs,
    run_i,
    run_f,
    run,
):
    """Update the values that conditions read, now that `run` has taken event `i` for `step`."""
    for register in range(len(t_registers)):
        if t_registers[register, 0] != step:
            continue
        kind = t_registers[register, 1]
        is_float = t_registers[register, 2] == 1
        place = t_registers[register, 3]
        made_from = t_registers[register, 4]
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
def new_node(
    t_totals,
    ev,
    ev_i,
    ev_f,
    i,
    nodes,
    node_t,
    node_n,
    count,
    step,
    left,
):
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
        nodes[node, N_LENGTH] = min(MOST, nodes[left, N_LENGTH] + nodes[left, N_PATHS])
    for total in range(len(t_totals)):
        add_up(
            t_totals,
            ev,
            ev_i,
            ev_f,
            i,
            nodes,
            node_t,
            node_n,
            total,
            node,
            left,
        )
    return node


@kernel
def add_up(
    t_totals,
    ev,
    ev_i,
    ev_f,
    i,
    nodes,
    node_t,
    node_n,
    total,
    node,
    left,
):
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
    return end


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
    elif m_spec[WANTS_TIMEOUTS] == 1:
        note(timeouts, count, TIMEOUTS, runs[run, R_NODE], runs[run, R_KEY], time, -1)


@kernel
def expect(m_states, m_spec, runs, run, count):
    """Take note of when something happens to a run even if no event comes."""
    if m_states[runs[run, R_STATE], S_KIND] == WAITING or m_spec[WANTS_TIMEOUTS] == 1:
        count[DUE] = min(count[DUE], deadline(m_states, m_spec, runs, run))


# -- all matches: runs that will do the same are one ---------------------------------------------------------


@kernel
def walk(
    m_states,
    m_moves,
    m_terms,
    m_spec,
    t_program,
    t_code,
    t_ints,
    t_floats,
    t_registers,
    t_totals,
    ev,
    ev_i,
    ev_f,
    begin,
    inert,
    runs,
    run_i,
    run_f,
    head,
    alive,
    nodes,
    node_t,
    node_n,
    count,
    matches,
    timeouts,
    w_fresh,
    w_taken,
    w_table,
    w_indexed,
    w_bound,
    w_hot,
    w_i,
    w_f,
    w_n,
    w_si,
    w_sf,
    w_sn,
    blank,
):
    """Walk along the events from `begin` on; give where it stopped for want of room, or their number."""
    size = len(ev)
    states = len(m_states)
    first = m_spec[BEGIN_STATE]
    for i in range(begin, size):
        code = ev[i, E_CODE]
        if inert[code, states]:
            continue
        key = ev[i, E_KEY]
        need = (alive[key] + 2) * (m_spec[MOST_MOVES] + 1)
        if (
            len(runs) - count[LIVE] < need
            or len(nodes) - count[NODES] < 2 * need
            or len(matches) - count[MATCHES] < 2 * need
            or len(timeouts) - count[TIMEOUTS] < need
            or len(w_fresh) < need
        ):
            return i
        fresh = 0
        for state in range(states):
            if inert[code, state] or state == first:
                continue
            before = -1
            run = head[key, state]
            while run >= 0:
                after = runs[run, R_NEXT]
                end = deadline(m_states, m_spec, runs, run)
                keeps = False
                if end <= ev[i, E_TIME]:
                    end_run(
                        m_states,
                        m_spec,
                        runs,
                        run,
                        count,
                        matches,
                        timeouts,
                        end,
                    )
                else:
                    keeps, fresh = step_run(
                        m_states,
                        m_moves,
                        m_terms,
                        t_program,
                        t_code,
                        t_ints,
                        t_floats,
                        t_registers,
                        t_totals,
                        ev,
                        ev_i,
                        ev_f,
                        i,
                        runs,
                        run_i,
                        run_f,
                        run,
                        state,
                        nodes,
                        node_t,
                        node_n,
                        count,
                        matches,
                        w_fresh,
                        w_taken,
                        w_bound,
                        w_hot,
                        w_i,
                        w_f,
                        w_n,
                        w_si,
                        w_sf,
                        w_sn,
                        fresh,
                        blank,
                    )
                if keeps:
                    before = run
                else:
                    if before < 0:
                        head[key, state] = after
                    else:
                        runs[before, R_NEXT] = after
                    drop_run(runs, count, run)
                    alive[key] -= 1
                run = after
        if not inert[code, first]:
            _, fresh = step_run(
                m_states,
                m_moves,
                m_terms,
                t_program,
                t_code,
                t_ints,
                t_floats,
                t_registers,
                t_totals,
                ev,
                ev_i,
                ev_f,
                i,
                runs,
                run_i,
                run_f,
                -1,
                first,
                nodes,
                node_t,
                node_n,
                count,
                matches,
                w_fresh,
                w_taken,
                w_bound,
                w_hot,
                w_i,
                w_f,
                w_n,
                w_si,
                w_sf,
                w_sn,
                fresh,
                blank,
            )
        link(
            m_states,
            m_spec,
            runs,
            run_i,
            run_f,
            head,
            alive,
            nodes,
            node_t,
            node_n,
            count,
            w_fresh,
            w_table,
            w_indexed,
            key,
            fresh,
        )
        if alive[key] > m_spec[LIMIT]:
            thin_out(m_states, m_spec, runs, head, alive, count, key)
    return size


@kernel
def step_run(
    m_states,
    m_moves,
    m_terms,
    t_program,
    t_code,
    t_ints,
    t_floats,
    t_registers,
    t_totals,
    ev,
    ev_i,
    ev_f,
    i,
    runs,
    run_i,
    run_f,
    run,
    state,
    nodes,
    node_t,
    node_n,
    count,
    matches,
    w_fresh,
    w_taken,
    w_bound,
    w_hot,
    w_i,
    w_f,
    w_n,
    w_si,
    w_sf,
    w_sn,
    fresh,
    blank,
):
    """Do with event `i` what can be done in a run; give whether it stays, and how many runs are fresh."""
    bits = passed(
        m_states,
        t_program,
        t_code,
        t_ints,
        t_floats,
        ev,
        ev_i,
        ev_f,
        i,
        runs,
        run_i,
        run_f,
        run,
        state,
        w_bound,
        w_hot,
        w_i,
        w_f,
        w_n,
        w_si,
        w_sf,
        w_sn,
        blank,
    )
    old = fresh
    keeps = False
    stopped = False
    if run >= 0:
        node = runs[run, R_NODE]
        began = runs[run, R_BEGAN]
        serial = runs[run, R_SERIES]
        last = runs[run, R_LAST_AT]
        key = runs[run, R_KEY]
    else:
        node = -1
        began = ev[i, E_START]
        serial = count[SERIAL] + i
        last = ev[i, E_TIME]
        key = ev[i, E_KEY]
    for move in range(m_states[state, S_MOVES], m_states[state, S_STOP]):
        if not opens(m_terms, m_moves[move, M_OPENS], m_moves[move, M_OPENS + 1], bits):
            continue
        target = m_moves[move, M_TARGET]
        if m_moves[move, M_ACTION] == IGNORE:
            if run < 0:
                continue
            if target == state:
                keeps = True
            elif m_states[target, S_KIND] == FINAL:
                note(matches, count, MATCHES, node, key, -1, count[SERIAL] + i)
            else:
                made = new_run(runs, run_i, run_f, count, run, target, node, key, began, serial, last, blank)
                w_fresh[fresh] = made
                fresh += 1
            continue
        if m_states[target, S_KIND] == STOPPED:
            stopped = True
            continue
        step = m_moves[move, M_STEP]
        if w_taken[step] < 0:
            w_taken[step] = new_node(
                t_totals,
                ev,
                ev_i,
                ev_f,
                i,
                nodes,
                node_t,
                node_n,
                count,
                step,
                node,
            )
        taken = w_taken[step]
        if m_states[target, S_KIND] == FINAL:
            note(matches, count, MATCHES, taken, key, -1, count[SERIAL] + i)
            continue
        made = new_run(
            runs, run_i, run_f, count, run, target, taken, key, began, serial, ev[i, E_TIME], blank
        )
        remember(
            t_registers,
            ev,
            ev_i,
            ev_f,
            i,
            step,
            runs,
            run_i,
            run_f,
            made,
        )
        w_fresh[fresh] = made
        fresh += 1
        if opens(
            m_terms,
            m_moves[move, M_COMPLETES],
            m_moves[move, M_COMPLETES + 1],
            bits,
        ):
            note(matches, count, MATCHES, taken, key, -1, count[SERIAL] + i)
    for step in range(len(w_taken)):
        w_taken[step] = -1
    if stopped:
        for place in range(old, fresh):
            drop_run(runs, count, w_fresh[place])
        return False, old
    return keeps, fresh


@kernel
def link(
    m_states,
    m_spec,
    runs,
    run_i,
    run_f,
    head,
    alive,
    nodes,
    node_t,
    node_n,
    count,
    w_fresh,
    w_table,
    w_indexed,
    key,
    fresh,
):
    """Join fresh runs with those that will do the same, and link the others."""
    if fresh == 0:
        return
    mask = len(w_table) - 1
    # A new stamp empties the table at once; places are found again by linear probing.
    w_table[0, 1] += 1
    stamp = w_table[0, 1]
    if alive[key] + fresh > 8:
        for place in range(fresh):
            state = runs[w_fresh[place], R_STATE]
            if w_indexed[state] == stamp:
                continue
            w_indexed[state] = stamp
            run = head[key, state]
            while run >= 0:
                look_up(
                    m_spec,
                    runs,
                    run_i,
                    run_f,
                    w_table,
                    run,
                    mask,
                    stamp,
                )
                run = runs[run, R_NEXT]
        for place in range(fresh):
            run = w_fresh[place]
            same = look_up(
                m_spec,
                runs,
                run_i,
                run_f,
                w_table,
                run,
                mask,
                stamp,
            )
            settle(
                m_states,
                m_spec,
                runs,
                head,
                alive,
                nodes,
                node_t,
                node_n,
                count,
                key,
                run,
                same,
            )
        return
    for place in range(fresh):
        run = w_fresh[place]
        same = head[key, runs[run, R_STATE]]
        while same >= 0 and not alike(m_spec, runs, run_i, run_f, same, run):
            same = runs[same, R_NEXT]
        settle(
            m_states,
            m_spec,
            runs,
            head,
            alive,
            nodes,
            node_t,
            node_n,
            count,
            key,
            run,
            same,
        )


@kernel
def settle(
    m_states,
    m_spec,
    runs,
    head,
    alive,
    nodes,
    node_t,
    node_n,
    count,
    key,
    run,
    same,
):
    """Link a fresh run, or unite it with one that will do the same."""
    if same >= 0 and same != run:
        if runs[same, R_NODE] != runs[run, R_NODE]:
            runs[same, R_NODE] = union(nodes, node_t, node_n, count, runs[same, R_NODE], runs[run, R_NODE])
        drop_run(runs, count, run)
        return
    state = runs[run, R_STATE]
    runs[run, R_NEXT] = head[key, state]
    head[key, state] = run
    alive[key] += 1
    expect(m_states, m_spec, runs, run, count)


@kernel
def alike(m_spec, runs, run_i, run_f, one, other):
    """Tell whether two runs of a partition will do the same from now on."""
    if runs[one, R_STATE] != runs[other, R_STATE]:
        return False
    if m_spec[KEEPS_BEGIN] == 1 and runs[one, R_BEGAN] != runs[other, R_BEGAN]:
        return False
    if m_spec[KEEPS_LAST] == 1 and runs[one, R_LAST_AT] != runs[other, R_LAST_AT]:
        return False
    if runs[one, R_NULLS] != runs[other, R_NULLS]:
        return False
    for place in range(run_i.shape[1]):
        if run_i[one, place] != run_i[other, place]:
            return False
    for place in range(run_f.shape[1]):
        if run_f[one, place] != run_f[other, place]:
            return False
    return True


@kernel
def look_up(
    m_spec,
    runs,
    run_i,
    run_f,
    w_table,
    run,
    mask,
    stamp,
):
    """Find a run like this one in the table, or add it; give it."""
    place = np.uint64(runs[run, R_STATE]) * np.uint64(0x9E3779B97F4A7C15)
    if m_spec[KEEPS_BEGIN] == 1:
        place = (place ^ np.uint64(runs[run, R_BEGAN])) * np.uint64(0xBF58476D1CE4E5B9)
    if m_spec[KEEPS_LAST] == 1:
        place = (place ^ np.uint64(runs[run, R_LAST_AT])) * np.uint64(0x94D049BB133111EB)
    for column in range(run_i.shape[1]):
        place = (place ^ np.uint64(run_i[run, column])) * np.uint64(0xBF58476D1CE4E5B9)
    for column in range(run_f.shape[1]):
        place = (place ^ np.uint64(np.int64(run_f[run, column] * 1024.0))) * np.uint64(0x94D049BB133111EB)
    at = np.int64((place ^ (place >> np.uint64(29))) & np.uint64(mask))
    while True:
        at = (at + 1) & mask
        if at == 0:
            continue  # the first place holds the stamp
        if w_table[at, 1] != stamp:
            w_table[at, 1] = stamp
            w_table[at, 0] = run
            return run
        if alike(m_spec, runs, run_i, run_f, w_table[at, 0], run):
            return w_table[at, 0]


@kernel
def thin_out(m_states, m_spec, runs, head, alive, count, key):
    """Give up runs of a partition that has too many: those that began first, or the latest ones."""
    states = len(m_states)
    oldest = m_spec[DROPS_OLDEST] == 1
    while alive[key] > m_spec[LIMIT]:
        worst = -1
        for state in range(states):
            run = head[key, state]
            while run >= 0:
                if worst < 0 or (runs[run, R_SERIES] < runs[worst, R_SERIES]) == oldest:
                    worst = run
                run = runs[run, R_NEXT]
        unlink(runs, head, key, worst)
        drop_run(runs, count, worst)
        alive[key] -= 1
        count[DROPPED] += 1


@kernel
def unlink(runs, head, key, wanted):
    """Take a run out of its list."""
    state = runs[wanted, R_STATE]
    run = head[key, state]
    if run == wanted:
        head[key, state] = runs[run, R_NEXT]
        return
    while runs[run, R_NEXT] != wanted:
        run = runs[run, R_NEXT]
    runs[run, R_NEXT] = runs[wanted, R_NEXT]


@kernel
def sweep(m_states, m_spec, runs, head, alive, count, matches, timeouts, watermark):
    """Let time pass for all runs; give whether there was room for what that completes."""
    keys = head.shape[0]
    states = head.shape[1]
    count[DUE] = NO_END
    for key in range(keys):
        if alive[key] == 0:
            continue
        for state in range(states):
            before = -1
            run = head[key, state]
            while run >= 0:
                after = runs[run, R_NEXT]
                end = deadline(m_states, m_spec, runs, run)
                if end > watermark:
                    expect(m_states, m_spec, runs, run, count)
                    before = run
                else:
                    if count[MATCHES] >= len(matches) or count[TIMEOUTS] >= len(timeouts):
                        return False
                    end_run(
                        m_states,
                        m_spec,
                        runs,
                        run,
                        count,
                        matches,
                        timeouts,
                        end,
                    )
                    if before < 0:
                        head[key, state] = after
                    else:
                        runs[before, R_NEXT] = after
                    drop_run(runs, count, run)
                    alive[key] -= 1
                run = after
    return True


# -- skipping: runs one by one, in order --------------------------------------------------------------------
#
# Where a match decides what may still match, the order counts in which matches are found. It is that of Flink
# CEP: runs wait in a queue by the event they began with, those that began with the same one in the order
# that its heap leaves them in.

PARTIAL, COMPLETE = 0, 1
OLD, NOW, DONE, READY = 0, 1, 2, 3


@kernel
def walk_skipping(
    m_states,
    m_moves,
    m_terms,
    m_spec,
    t_program,
    t_code,
    t_ints,
    t_floats,
    t_registers,
    t_totals,
    ev,
    ev_i,
    ev_f,
    begin,
    inert,
    runs,
    run_i,
    run_f,
    head,
    alive,
    nodes,
    node_t,
    node_n,
    count,
    matches,
    timeouts,
    w_fresh,
    w_taken,
    w_heap,
    w_bound,
    w_hot,
    w_i,
    w_f,
    w_n,
    w_si,
    w_sf,
    w_sn,
    blank,
):
    """Walk along the events in order, each match skipping others; give where it stopped for want of room."""
    size = len(ev)
    first = m_spec[BEGIN_STATE]
    for i in range(begin, size):
        key = ev[i, E_KEY]
        if head[key, PARTIAL] < 0 and inert[ev[i, E_CODE], first]:
            continue
        need = (alive[key] + 2) * (m_spec[MOST_MOVES] + 2)
        if (
            len(runs) - count[LIVE] < need
            or len(nodes) - count[NODES] < need
            or len(matches) - count[MATCHES] < need
            or len(timeouts) - count[TIMEOUTS] < need
            or len(w_fresh) < need
        ):
            return i
        if head[key, PARTIAL] < 0:
            head[key, PARTIAL] = new_run(runs, run_i, run_f, count, -1, first, -1, key, 0, NO_END, 0, blank)
            alive[key] += 1
        now, done = let_pass(
            m_states,
            m_spec,
            runs,
            head,
            alive,
            nodes,
            count,
            matches,
            timeouts,
            w_heap,
            key,
            ev[i, E_TIME],
        )
        for place in range(now):
            w_heap[OLD, place] = w_heap[NOW, place]
        old = now
        now = 0
        ready = 0
        for place in range(old):
            run = w_heap[OLD, place]
            now, ready = step_in_order(
                m_states,
                m_moves,
                m_terms,
                m_spec,
                t_program,
                t_code,
                t_ints,
                t_floats,
                t_registers,
                t_totals,
                ev,
                ev_i,
                ev_f,
                i,
                runs,
                run_i,
                run_f,
                run,
                alive,
                nodes,
                node_t,
                node_n,
                count,
                w_fresh,
                w_taken,
                w_heap,
                w_bound,
                w_hot,
                w_i,
                w_f,
                w_n,
                w_si,
                w_sf,
                w_sn,
                blank,
                now,
                ready,
            )
        for place in range(ready):
            done = push(w_heap[DONE], done, w_heap[READY, place], runs)
        now, done = give(
            m_spec,
            runs,
            alive,
            nodes,
            count,
            matches,
            w_heap,
            key,
            now,
            done,
        )
        store(
            runs,
            head,
            w_heap,
            key,
            now,
            done,
        )
        if alive[key] > m_spec[LIMIT]:
            thin_out_queue(
                m_states,
                m_spec,
                runs,
                head,
                alive,
                count,
                w_heap,
                key,
            )
    return size


@kernel
def let_pass(
    m_states,
    m_spec,
    runs,
    head,
    alive,
    nodes,
    count,
    matches,
    timeouts,
    w_heap,
    key,
    time,
):
    """Bring the queues of a partition to hand, without what is out of time; give how long they are."""
    now = 0
    done = 0
    ready = 0
    run = head[key, COMPLETE]
    while run >= 0:
        w_heap[DONE, done] = run
        done += 1
        run = runs[run, R_NEXT]
    passed_by = False
    run = head[key, PARTIAL]
    while run >= 0:
        after = runs[run, R_NEXT]
        end = (
            NO_END if m_states[runs[run, R_STATE], S_KIND] == START else deadline(m_states, m_spec, runs, run)
        )
        if end > time:
            now = push(w_heap[NOW], now, run, runs)
        else:
            passed_by = True
            if m_states[runs[run, R_STATE], S_KIND] == WAITING:
                runs[run, R_LAST_AT] = end
                ready = push(w_heap[READY], ready, run, runs)
            else:
                if m_spec[WANTS_TIMEOUTS] == 1:
                    note(timeouts, count, TIMEOUTS, runs[run, R_NODE], key, end, -1)
                drop_run(runs, count, run)
                alive[key] -= 1
        run = after
    if passed_by:
        for place in range(ready):
            done = push(w_heap[DONE], done, w_heap[READY, place], runs)
        now, done = give(
            m_spec,
            runs,
            alive,
            nodes,
            count,
            matches,
            w_heap,
            key,
            now,
            done,
        )
    return now, done


@kernel
def step_in_order(
    m_states,
    m_moves,
    m_terms,
    m_spec,
    t_program,
    t_code,
    t_ints,
    t_floats,
    t_registers,
    t_totals,
    ev,
    ev_i,
    ev_f,
    i,
    runs,
    run_i,
    run_f,
    run,
    alive,
    nodes,
    node_t,
    node_n,
    count,
    w_fresh,
    w_taken,
    w_heap,
    w_bound,
    w_hot,
    w_i,
    w_f,
    w_n,
    w_si,
    w_sf,
    w_sn,
    blank,
    now,
    ready,
):
    """Do with event `i` what can be done in a run; queue what becomes of it."""
    state = runs[run, R_STATE]
    key = runs[run, R_KEY]
    is_start = m_states[state, S_KIND] == START
    bits = passed(
        m_states,
        t_program,
        t_code,
        t_ints,
        t_floats,
        ev,
        ev_i,
        ev_f,
        i,
        runs,
        run_i,
        run_f,
        -1 if is_start else run,
        state,
        w_bound,
        w_hot,
        w_i,
        w_f,
        w_n,
        w_si,
        w_sf,
        w_sn,
        blank,
    )
    fresh = 0
    keeps = is_start
    stopped = False
    for move in range(m_states[state, S_MOVES], m_states[state, S_STOP]):
        if not opens(m_terms, m_moves[move, M_OPENS], m_moves[move, M_OPENS + 1], bits):
            continue
        target = m_moves[move, M_TARGET]
        node = runs[run, R_NODE]
        if m_moves[move, M_ACTION] == IGNORE:
            if is_start:
                continue
            if target == state:
                keeps = True
                w_fresh[fresh] = run
            else:
                w_fresh[fresh] = new_run(
                    runs,
                    run_i,
                    run_f,
                    count,
                    run,
                    target,
                    node,
                    key,
                    runs[run, R_BEGAN],
                    runs[run, R_SERIES],
                    runs[run, R_LAST_AT],
                    blank,
                )
                alive[key] += 1
            fresh += 1
            continue
        if m_states[target, S_KIND] == STOPPED:
            stopped = True
            continue
        step = m_moves[move, M_STEP]
        serial = count[SERIAL] + i
        if w_taken[step] < 0:
            w_taken[step] = new_node(
                t_totals,
                ev,
                ev_i,
                ev_f,
                i,
                nodes,
                node_t,
                node_n,
                count,
                step,
                node,
            )
        taken = w_taken[step]
        began = ev[i, E_START] if is_start else runs[run, R_BEGAN]
        origin = serial if is_start else runs[run, R_SERIES]
        of = -1 if is_start else run
        made = new_run(runs, run_i, run_f, count, of, target, taken, key, began, origin, ev[i, E_TIME], blank)
        remember(
            t_registers,
            ev,
            ev_i,
            ev_f,
            i,
            step,
            runs,
            run_i,
            run_f,
            made,
        )
        w_fresh[fresh] = made
        fresh += 1
        alive[key] += 1
        if opens(
            m_terms,
            m_moves[move, M_COMPLETES],
            m_moves[move, M_COMPLETES + 1],
            bits,
        ):
            w_fresh[fresh] = new_run(
                runs,
                run_i,
                run_f,
                count,
                of,
                m_spec[FINAL_STATE],
                taken,
                key,
                began,
                origin,
                ev[i, E_TIME],
                blank,
            )
            fresh += 1
            alive[key] += 1
    for step in range(len(w_taken)):
        w_taken[step] = -1
    if is_start:
        w_fresh[fresh] = run
        fresh += 1
    for place in range(fresh):
        made = w_fresh[place]
        if m_states[runs[made, R_STATE], S_KIND] == FINAL:
            runs[made, R_LAST_AT] = -1
            ready = push(w_heap[READY], ready, made, runs)
        elif not stopped or (made == run and is_start):
            now = push(w_heap[NOW], now, made, runs)
        elif made != run:
            drop_run(runs, count, made)
            alive[key] -= 1
    if not keeps or (stopped and not is_start):
        drop_run(runs, count, run)
        alive[key] -= 1
    return now, ready


@kernel
def give(
    m_spec,
    runs,
    alive,
    nodes,
    count,
    matches,
    w_heap,
    key,
    now,
    done,
):
    """Give the completed matches that nothing earlier can come before, each skipping what it skips."""
    while done > 0 and (now == 0 or runs[w_heap[DONE, 0], R_SERIES] <= runs[w_heap[NOW, 0], R_SERIES]):
        match = w_heap[DONE, 0]
        done = pop(w_heap[DONE], done, runs)
        border = skip_border(m_spec, runs, nodes, count, match)
        if border >= 0:
            now = prune(runs, alive, count, w_heap[NOW], now, border, key)
            done = prune(runs, alive, count, w_heap[DONE], done, border, key)
        note(matches, count, MATCHES, runs[match, R_NODE], key, runs[match, R_LAST_AT], -1)
        drop_run(runs, count, match)
        alive[key] -= 1
    return now, done


@kernel
def skip_border(m_spec, runs, nodes, count, match):
    """Give the event up to which nothing may begin any more; -1: nothing is skipped."""
    how = m_spec[SKIP]
    border = -1
    least = NO_END
    node = runs[match, R_NODE]
    while node >= 0:
        serial = nodes[node, N_SERIAL]
        least = min(least, serial)
        if how == PAST_LAST:
            border = max(border, serial)
        elif nodes[node, N_STEP] == m_spec[SKIP_STEP]:
            if how == TO_FIRST:
                border = serial
            elif how == TO_LAST:
                border = max(border, serial)
        node = nodes[node, N_LEFT]
    if how == TO_NEXT:
        return least
    if how == PAST_LAST:
        return border
    if m_spec[THROWS] == 1 and (border < 0 or border == least):
        count[MISSED] = 1
    return border - 1 if border >= 0 else -1


@kernel
def prune(runs, alive, count, heap, size, border, key):
    """Drop the runs of a queue that began at or before `border`."""
    kept = 0
    for place in range(size):
        run = heap[place]
        if runs[run, R_SERIES] <= border:
            drop_run(runs, count, run)
            alive[key] -= 1
        else:
            heap[kept] = run
            kept += 1
    if kept < size:
        for place in range(kept // 2 - 1, -1, -1):
            sift_down(heap, kept, place, heap[place], runs)
    return kept


@kernel
def push(heap, size, run, runs):
    """Add a run to a queue; give its new length."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if runs[run, R_SERIES] >= runs[heap[parent], R_SERIES]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = run
    return size + 1


@kernel
def pop(heap, size, runs):
    """Take the first run out of a queue; give its new length."""
    size -= 1
    if size > 0:
        sift_down(heap, size, 0, heap[size], runs)
    return size


@kernel
def sift_down(heap, size, place, run, runs):
    """Put a run where it belongs at or below `place`."""
    while place < size // 2:
        child = 2 * place + 1
        if child + 1 < size and runs[heap[child], R_SERIES] > runs[heap[child + 1], R_SERIES]:
            child += 1
        if runs[run, R_SERIES] <= runs[heap[child], R_SERIES]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


@kernel
def store(
    runs,
    head,
    w_heap,
    key,
    now,
    done,
):
    """Link the queues of a partition in their order."""
    chain(runs, head, key, PARTIAL, w_heap[NOW], now)
    chain(runs, head, key, COMPLETE, w_heap[DONE], done)


@kernel
def chain(runs, head, key, which, heap, size):
    """Link the runs of one queue."""
    head[key, which] = -1 if size == 0 else heap[0]
    for place in range(size):
        runs[heap[place], R_NEXT] = heap[place + 1] if place + 1 < size else -1


@kernel
def thin_out_queue(
    m_states,
    m_spec,
    runs,
    head,
    alive,
    count,
    w_heap,
    key,
):
    """Give up runs of a partition that has too many."""
    oldest = m_spec[DROPS_OLDEST] == 1
    size = 0
    run = head[key, PARTIAL]
    while run >= 0:
        w_heap[OLD, size] = run
        size += 1
        run = runs[run, R_NEXT]
    while alive[key] > m_spec[LIMIT] and size > 1:
        worst = -1
        for place in range(size):
            run = w_heap[OLD, place]
            if m_states[runs[run, R_STATE], S_KIND] == START:
                continue
            if worst < 0 or (runs[run, R_SERIES] < runs[w_heap[OLD, worst], R_SERIES]) == oldest:
                worst = place
        drop_run(runs, count, w_heap[OLD, worst])
        alive[key] -= 1
        count[DROPPED] += 1
        for place in range(worst, size - 1):
            w_heap[OLD, place] = w_heap[OLD, place + 1]
        size -= 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(w_heap[OLD], size, place, w_heap[OLD, place], runs)
    chain(runs, head, key, PARTIAL, w_heap[OLD], size)


@kernel
def sweep_skipping(
    m_states,
    m_spec,
    runs,
    head,
    alive,
    nodes,
    count,
    matches,
    timeouts,
    w_heap,
    watermark,
):
    """Let time pass for all partitions; give whether there was room for what that completes."""
    count[DUE] = NO_END
    for key in range(head.shape[0]):
        if alive[key] < 2:
            continue
        if (
            len(matches) - count[MATCHES] < alive[key]
            or len(timeouts) - count[TIMEOUTS] < alive[key]
            or w_heap.shape[1] < alive[key] + 1
        ):
            return False
        now, done = let_pass(
            m_states,
            m_spec,
            runs,
            head,
            alive,
            nodes,
            count,
            matches,
            timeouts,
            w_heap,
            key,
            watermark,
        )
        store(
            runs,
            head,
            w_heap,
            key,
            now,
            done,
        )
        for place in range(now):
            run = w_heap[NOW, place]
            if m_states[runs[run, R_STATE], S_KIND] != START and (
                done > 0 or m_states[runs[run, R_STATE], S_KIND] == WAITING or m_spec[WANTS_TIMEOUTS] == 1
            ):
                count[DUE] = min(count[DUE], deadline(m_states, m_spec, runs, run))
    return True


# -- listing ----------------------------------------------------------------------------------------------


@kernel
def list_paths(nodes, wanted, offsets, lengths, idents, steps):
    """List all ways that lead to the wanted nodes: for each its events from the first to the last.

    `offsets` gives where the ways of each wanted node begin, `lengths` receives the length of every way.
    """
    stack = np.zeros(1024, np.int64)
    depth = np.zeros(1024, np.int64)
    path_ident = np.zeros(1024, np.int64)
    path_step = np.zeros(1024, np.int64)
    written = 0
    for place in range(len(wanted)):
        way = offsets[place]
        top = 0
        stack[0] = wanted[place]
        depth[0] = 0
        while top >= 0:
            node = stack[top]
            long = depth[top]
            top -= 1
            if top + 3 > len(stack):
                stack = np.concatenate((stack, np.zeros(len(stack), np.int64)))
                depth = np.concatenate((depth, np.zeros(len(depth), np.int64)))
            if nodes[node, N_STEP] < 0:
                stack[top + 1] = nodes[node, N_RIGHT]
                depth[top + 1] = long
                stack[top + 2] = nodes[node, N_LEFT]
                depth[top + 2] = long
                top += 2
                continue
            if long >= len(path_ident):
                path_ident = np.concatenate((path_ident, np.zeros(len(path_ident), np.int64)))
                path_step = np.concatenate((path_step, np.zeros(len(path_step), np.int64)))
            path_ident[long] = nodes[node, N_IDENT]
            path_step[long] = nodes[node, N_STEP]
            long += 1
            if nodes[node, N_LEFT] >= 0:
                top += 1
                stack[top] = nodes[node, N_LEFT]
                depth[top] = long
                continue
            lengths[way] = long
            way += 1
            for number in range(long):
                idents[written + number] = path_ident[long - 1 - number]
                steps[written + number] = path_step[long - 1 - number]
            written += long
    return written


@kernel
def members(nodes, wanted, owner, seen, stamp, idents, owners):
    """List the events of all ways to the wanted nodes, each once for an owner; give how many there are.

    Wanted nodes of one owner stand together; `seen` remembers for every node the last owner that had it.
    """
    stack = np.zeros(1024, np.int64)
    written = 0
    for place in range(len(wanted)):
        top = 0
        stack[0] = wanted[place]
        mark = stamp + owner[place] + 1
        while top >= 0:
            node = stack[top]
            top -= 1
            if seen[node] == mark:
                continue
            seen[node] = mark
            if top + 3 > len(stack):
                stack = np.concatenate((stack, np.zeros(len(stack), np.int64)))
            if nodes[node, N_STEP] >= 0:
                if written < len(idents):
                    idents[written] = nodes[node, N_IDENT]
                    owners[written] = owner[place]
                written += 1
            if nodes[node, N_LEFT] >= 0:
                top += 1
                stack[top] = nodes[node, N_LEFT]
            if nodes[node, N_RIGHT] >= 0:
                top += 1
                stack[top] = nodes[node, N_RIGHT]
    return written


@kernel
def mark_nodes(nodes, size, live):
    """Mark everything below the nodes that are marked. A node's parts are older than itself."""
    for node in range(size - 1, -1, -1):
        if live[node]:
            if nodes[node, N_LEFT] >= 0:
                live[nodes[node, N_LEFT]] = 1
            if nodes[node, N_RIGHT] >= 0:
                live[nodes[node, N_RIGHT]] = 1
