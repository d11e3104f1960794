"""Finds matches of which each skips others: runs one by one, in order.

Where a match decides what may still match, the order counts in which matches are found. It is that of Flink
CEP (`AfterMatchSkipStrategy`, `NFA.doProcess`): runs wait in a queue by the event they began with, those that
began with the same one in the order that its heap, Java's `PriorityQueue`, leaves them in. So `push`, `pop`
and `sift_down` do what that one does, step by step: another heap would be as right, and find other matches.

An event costs O(n log n) for the n runs of its partition.
"""

from __future__ import annotations

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
    FINAL_STATE,
    IGNORE,
    LIMIT,
    LIVE,
    M_ACTION,
    M_COMPLETES,
    M_OPENS,
    M_STEP,
    M_TARGET,
    MATCHES,
    MISSED,
    MOST_MOVES,
    N_LEFT,
    N_SERIAL,
    N_STEP,
    NO_END,
    NODES,
    PAST_LAST,
    R_BEGAN,
    R_KEY,
    R_LAST_AT,
    R_NEXT,
    R_NODE,
    R_SERIES,
    R_STATE,
    S_KIND,
    S_MOVES,
    S_STOP,
    SERIAL,
    SKIP,
    SKIP_STEP,
    START,
    STOPPED,
    THROWS,
    TIMEOUTS,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    WAITING,
    WANTS_TIMEOUTS,
    deadline,
    drop_run,
    lapsed,
    new_node,
    new_run,
    note,
    opens,
    passed,
    remember,
)
from whimbrel.space.kernels.jit import kernel

PARTIAL, COMPLETE = 0, 1
OLD, NOW, DONE, READY = 0, 1, 2, 3


@kernel
def advance_runs(
    m_states, m_moves, m_terms, m_spec, t_program, t_code, t_ints, t_floats, t_registers, t_totals, ev,
    ev_i, ev_f, begin, inert, runs, run_i, run_f, head, alive, nodes, node_t, node_n, count, matches,
    timeouts, w_fresh, w_taken, w_heap, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank,
):  # fmt: skip
    """Take in the events in order, each match skipping others; give where it stopped for want of room."""
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
        now, done = expire_partition(
            m_states, m_spec, runs, head, alive, nodes, count, matches, timeouts, w_heap, key,
            ev[i, E_TIME],
        )  # fmt: skip
        # The queue is taken as it lies, not popped: so does Flink, and ties come out in the same order.
        for place in range(now):
            w_heap[OLD, place] = w_heap[NOW, place]
        old = now
        now = 0
        ready = 0
        for place in range(old):
            run = w_heap[OLD, place]
            now, ready = step_in_order(
                m_states, m_moves, m_terms, m_spec, t_program, t_code, t_ints, t_floats, t_registers,
                t_totals, ev, ev_i, ev_f, i, runs, run_i, run_f, run, alive, nodes, node_t, node_n, count,
                w_fresh, w_taken, w_heap, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank, now,
                ready,
            )  # fmt: skip
        for place in range(ready):
            done = push(w_heap[DONE], done, w_heap[READY, place], runs)
        now, done = emit_matches(m_spec, runs, alive, nodes, count, matches, w_heap, key, now, done)
        store(runs, head, w_heap, key, now, done)
        expect_queue(m_states, m_spec, runs, count, w_heap, now, done)
        if alive[key] > m_spec[LIMIT]:
            thin_out_queue(m_states, m_spec, runs, head, alive, count, w_heap, key)
    return size


@kernel
def expire_partition(m_states, m_spec, runs, head, alive, nodes, count, matches, timeouts, w_heap, key, time):
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
                if m_spec[WANTS_TIMEOUTS] == 1 and not lapsed(m_states, runs, run, end):
                    note(timeouts, count, TIMEOUTS, runs[run, R_NODE], key, end, -1)
                drop_run(runs, count, run)
                alive[key] -= 1
        run = after
    if passed_by:
        for place in range(ready):
            done = push(w_heap[DONE], done, w_heap[READY, place], runs)
        now, done = emit_matches(m_spec, runs, alive, nodes, count, matches, w_heap, key, now, done)
    return now, done


@kernel
def step_in_order(
    m_states, m_moves, m_terms, m_spec, t_program, t_code, t_ints, t_floats, t_registers, t_totals, ev,
    ev_i, ev_f, i, runs, run_i, run_f, run, alive, nodes, node_t, node_n, count, w_fresh, w_taken, w_heap,
    w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank, now, ready,
):  # fmt: skip
    """Do with event `i` what can be done in a run; queue what becomes of it."""
    state = runs[run, R_STATE]
    key = runs[run, R_KEY]
    is_start = m_states[state, S_KIND] == START
    bits = passed(
        m_states, t_program, t_code, t_ints, t_floats, ev, ev_i, ev_f, i, runs, run_i, run_f, -1 if is_start
        else run, state, w_bound, w_hot, w_i, w_f, w_n, w_si, w_sf, w_sn, blank,
    )  # fmt: skip
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
                    runs, run_i, run_f, count, run, target, node, key, runs[run, R_BEGAN], runs[run,
                    R_SERIES], runs[run, R_LAST_AT], blank,
                )  # fmt: skip
                alive[key] += 1
            fresh += 1
            continue
        if m_states[target, S_KIND] == STOPPED:
            stopped = True
            continue
        step = m_moves[move, M_STEP]
        serial = count[SERIAL] + i
        if w_taken[step] < 0:
            w_taken[step] = new_node(t_totals, ev, ev_i, ev_f, i, nodes, node_t, node_n, count, step, node)
        taken = w_taken[step]
        began = ev[i, E_START] if is_start else runs[run, R_BEGAN]
        origin = serial if is_start else runs[run, R_SERIES]
        of = -1 if is_start else run
        made = new_run(runs, run_i, run_f, count, of, target, taken, key, began, origin, ev[i, E_TIME], blank)
        remember(t_registers, ev, ev_i, ev_f, i, step, runs, run_i, run_f, made)
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
                runs, run_i, run_f, count, of, m_spec[FINAL_STATE], taken, key, began, origin, ev[i,
                E_TIME], blank,
            )  # fmt: skip
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
def emit_matches(m_spec, runs, alive, nodes, count, matches, w_heap, key, now, done):
    """Give the completed matches that nothing earlier can come before, each skipping what it skips."""
    # A run that began earlier may still complete, and skip this match: it has to wait for that one.
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
    # Runs are not united here, so that a match has one way only, by the left nodes.
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
        # Mended from the bottom up (Floyd, 1964), which takes linear time.
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
def store(runs, head, w_heap, key, now, done):
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
def thin_out_queue(m_states, m_spec, runs, head, alive, count, w_heap, key):
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
def expire_runs(m_states, m_spec, runs, head, alive, nodes, count, matches, timeouts, w_heap, watermark):
    """Let time pass for all partitions; give whether there was room for what that completes."""
    count[DUE] = NO_END
    for key in range(head.shape[0]):
        # One run alone is the beginning, which has no time to run out of.
        if alive[key] < 2:
            continue
        if (
            len(matches) - count[MATCHES] < alive[key]
            or len(timeouts) - count[TIMEOUTS] < alive[key]
            or w_heap.shape[1] < alive[key] + 1
        ):
            return False
        now, done = expire_partition(
            m_states, m_spec, runs, head, alive, nodes, count, matches, timeouts, w_heap, key, watermark,
        )  # fmt: skip
        store(runs, head, w_heap, key, now, done)
        expect_queue(m_states, m_spec, runs, count, w_heap, now, done)
    return True


@kernel
def expect_queue(m_states, m_spec, runs, count, w_heap, now, done):
    """Take note of when something happens to a partition even if no event comes.

    A completed match may only wait for an earlier run to run out of time.
    """
    for place in range(now):
        run = w_heap[NOW, place]
        kind = m_states[runs[run, R_STATE], S_KIND]
        if kind != START and (done > 0 or kind == WAITING or m_spec[WANTS_TIMEOUTS] == 1):
            count[DUE] = min(count[DUE], deadline(m_states, m_spec, runs, run))
