"""Finds all matches: runs that will do the same from now on are one.

Runs are compared by hashing where a partition has more than a few: an event costs as many steps as there are
runs and moves, whether or not they can be united.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.runs import (
    BEGIN_STATE,
    DROPPED,
    DROPS_OLDEST,
    DUE,
    E_CODE,
    E_KEY,
    E_START,
    E_TIME,
    FINAL,
    IGNORE,
    KEEPS_BEGIN,
    KEEPS_LAST,
    LIMIT,
    LIVE,
    M_ACTION,
    M_COMPLETES,
    M_OPENS,
    M_STEP,
    M_TARGET,
    MATCHES,
    MOST_MOVES,
    NO_END,
    NODES,
    R_BEGAN,
    R_KEY,
    R_LAST_AT,
    R_NEXT,
    R_NODE,
    R_NULLS,
    R_SERIES,
    R_STATE,
    S_KIND,
    S_MOVES,
    S_STOP,
    SERIAL,
    STOPPED,
    TIMEOUTS,
    deadline,
    drop_run,
    end_run,
    expect,
    new_node,
    new_run,
    note,
    opens,
    passed,
    remember,
    union,
)
from whimbrel.space.kernels.jit import kernel


@kernel
def advance_runs(
    m_states, m_moves, m_terms, m_spec, t_program, t_code, t_ints, t_floats, t_registers, t_totals, ev,
    ev_i, ev_f, begin, inert, runs, run_i, run_f, head, alive, nodes, node_t, node_n, count, matches,
    timeouts, w_fresh, w_taken, w_table, w_indexed, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank,
):  # fmt: skip
    """Take in the events from `begin` on; give where it stopped for want of room, or their number."""
    size = len(ev)
    states = len(m_states)
    first = m_spec[BEGIN_STATE]
    for i in range(begin, size):
        code = ev[i, E_CODE]
        # Nearly all events of a busy stream change nothing in any state: that is looked up, not found out.
        if inert[code, states]:
            continue
        key = ev[i, E_KEY]
        # Room is asked for before the event, for the worst that it can do: in the middle nobody could go on.
        need = (alive[key] + 2) * (m_spec[MOST_MOVES] + 1)
        if (
            len(runs) - count[LIVE] < need
            or len(nodes) - count[NODES] < 2 * need
            or len(matches) - count[MATCHES] < 2 * need
            or len(timeouts) - count[TIMEOUTS] < need
            or len(w_fresh) < need
        ):
            return i
        # What the event makes waits aside: it must not meet the same event again.
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
                    end_run(m_states, m_spec, runs, run, count, matches, timeouts, end)
                else:
                    keeps, fresh = step_run(
                        m_states, m_moves, m_terms, t_program, t_code, t_ints, t_floats, t_registers,
                        t_totals, ev, ev_i, ev_f, i, runs, run_i, run_f, run, state, nodes, node_t, node_n,
                        count, matches, w_fresh, w_taken, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn,
                        fresh, blank,
                    )  # fmt: skip
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
                m_states, m_moves, m_terms, t_program, t_code, t_ints, t_floats, t_registers, t_totals, ev,
                ev_i, ev_f, i, runs, run_i, run_f, -1, first, nodes, node_t, node_n, count, matches,
                w_fresh, w_taken, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, fresh, blank,
            )  # fmt: skip
        link(
            m_states, m_spec, runs, run_i, run_f, head, alive, nodes, node_t, node_n, count, w_fresh,
            w_table, w_indexed, key, fresh,
        )  # fmt: skip
        if alive[key] > m_spec[LIMIT]:
            thin_out(m_states, m_spec, runs, head, alive, count, key)
    return size


@kernel
def step_run(
    m_states, m_moves, m_terms, t_program, t_code, t_ints, t_floats, t_registers, t_totals, ev, ev_i, ev_f,
    i, runs, run_i, run_f, run, state, nodes, node_t, node_n, count, matches, w_fresh, w_taken, w_bound,
    w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, fresh, blank,
):  # fmt: skip
    """Do with event `i` what can be done in a run; give whether it stays, and how many runs are fresh."""
    bits = passed(
        m_states, t_program, t_code, t_ints, t_floats, ev, ev_i, ev_f, i, runs, run_i, run_f, run, state,
        w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank,
    )  # fmt: skip
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
        # Several moves may take the event for one step: they share its node.
        if w_taken[step] < 0:
            w_taken[step] = new_node(t_totals, ev, ev_i, ev_f, i, nodes, node_t, node_n, count, step, node)
        taken = w_taken[step]
        if m_states[target, S_KIND] == FINAL:
            note(matches, count, MATCHES, taken, key, -1, count[SERIAL] + i)
            continue
        made = new_run(
            runs, run_i, run_f, count, run, target, taken, key, began, serial, ev[i, E_TIME], blank
        )
        remember(t_registers, ev, ev_i, ev_f, i, step, runs, run_i, run_f, made)
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
        # What must not occur has occurred: nothing that this run became goes on.
        for place in range(old, fresh):
            drop_run(runs, count, w_fresh[place])
        return False, old
    return keeps, fresh


@kernel
def link(
    m_states, m_spec, runs, run_i, run_f, head, alive, nodes, node_t, node_n, count, w_fresh, w_table,
    w_indexed, key, fresh,
):  # fmt: skip
    """Join fresh runs with those that will do the same, and link the others."""
    if fresh == 0:
        return
    mask = len(w_table) - 1
    # A new stamp empties the table at once; places are found again by linear probing.
    w_table[0, 1] += 1
    stamp = w_table[0, 1]
    # Comparing a few one by one is faster than filling a table.
    if alive[key] + fresh > 8:
        for place in range(fresh):
            state = runs[w_fresh[place], R_STATE]
            if w_indexed[state] == stamp:
                continue
            w_indexed[state] = stamp
            run = head[key, state]
            while run >= 0:
                look_up(m_spec, runs, run_i, run_f, w_table, run, mask, stamp)
                run = runs[run, R_NEXT]
        for place in range(fresh):
            run = w_fresh[place]
            same = look_up(m_spec, runs, run_i, run_f, w_table, run, mask, stamp)
            settle(m_states, m_spec, runs, head, alive, nodes, node_t, node_n, count, key, run, same)
        return
    for place in range(fresh):
        run = w_fresh[place]
        same = head[key, runs[run, R_STATE]]
        while same >= 0 and not alike(m_spec, runs, run_i, run_f, same, run):
            same = runs[same, R_NEXT]
        settle(m_states, m_spec, runs, head, alive, nodes, node_t, node_n, count, key, run, same)


@kernel
def settle(m_states, m_spec, runs, head, alive, nodes, node_t, node_n, count, key, run, same):
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
def look_up(m_spec, runs, run_i, run_f, w_table, run, mask, stamp):
    """Find a run like this one in the table, or add it; give it."""
    # Multipliers as in SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): neighbouring times scatter.
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
    """Give up runs of a partition that has too many: those that began first, or the latest ones.

    Each one that is dropped is searched for among all: O(runs), for an event that has brought too many.
    """
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
def expire_runs(m_states, m_spec, runs, head, alive, count, matches, timeouts, watermark):
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
                    end_run(m_states, m_spec, runs, run, count, matches, timeouts, end)
                    if before < 0:
                        head[key, state] = after
                    else:
                        runs[before, R_NEXT] = after
                    drop_run(runs, count, run)
                    alive[key] -= 1
                run = after
    return True
