"""The kernel behind every pattern: finds the combinations that a new event completes.

Events that may fill a part wait in a *pool*, in total order, each once. For every part, the pool
entries of one partition are chained from the newest back; an entry that fills a later part of a
sequence also remembers the newest entry of the part before it, so that a search never visits events
that came too late. A new event that can complete the pattern starts a depth-first search over these
chains, with orders, spans and conditions tested as soon as their parts are bound. State is linear in
the events inside the window; the work follows the combinations that are tried, at the worst the product of
the events of all parts in one partition.

Patterns that end in an absence put their combinations on a heap, by deadline. Time is an input: a deadline
fires before the first event that ends after it, or when the watermark passes it.

References
----------
.. [1] Wu, Diao, Rizvi: "High-Performance Complex Event Processing over Streams", SIGMOD 2006: active instance
   stacks, partitioned by key, with a pointer to the most recent instance of the part before.
.. [2] Mei, Madden: "ZStream: a Cost-based Query Processor for Adaptively Detecting Composite Events", SIGMOD
   2009: the order in which parts are bound follows how many events they have (`graph.binding` chooses it).
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.combination_checks import (
    conditions_hold,
    deadline_of,
    order_holds,
    selected,
    violated,
)
from whimbrel.engine.kernels.contexts import choose, sort_oldest_first
from whimbrel.engine.kernels.deadline_heap import heap_pop, heap_up
from whimbrel.engine.kernels.machine import STACK, holds
from whimbrel.engine.kernels.pattern import (
    ABSENT,
    CONDITIONS_LATE,
    CONSUMES,
    CONTEXT,
    CUMULATIVE,
    DISTINCT,
    END,
    ENTRIES,
    FOUND,
    KEEP_TRIGGER,
    NEXT,
    PARTS,
    PHASE,
    PREV,
    RETAIN,
    SELECTING,
    SERIAL,
    START,
    WAITING,
    WAITS,
    WITHIN,
)
from whimbrel.space.kernels.jit import kernel

# What `match_step` answers: done, or which arrays it needs longer before it can go on.
DONE, MORE_OUTPUT, MORE_SCRATCH, MORE_WAITING = 0, 1, 2, 3

# Where in the work on one event it goes on.
_DEADLINES, _KEEP, _WALK = 0, 1, 2


@kernel
def match_step(
    spec,
    count,
    plan,
    link,
    before_part,
    orders,
    order_at,
    order_list,
    condition_code,
    condition_at,
    condition_list,
    absents,
    absent_code,
    select,
    consume,
    triggers,
    code,
    int_constants,
    float_constants,
    new_start,
    new_end,
    new_key,
    new_ident,
    new_mask,
    new_ints,
    new_floats,
    new_nulls,
    hot,
    pool_key,
    pool_ident,
    pool_ints,
    pool_floats,
    pool_nulls,
    consumed,
    tail,
    wait_deadline,
    wait_serial,
    wait_trigger,
    wait_fine,
    wait_bound,
    watermark,
    entry_of,
    scratch,
    fine,
    chosen,
    out_bound,
    out_end,
    out_offset,
    out_member,
):
    """Feed new events, in total order, to a pattern; then let time pass to `watermark`.

    Goes on at row count[NEXT]. Writes the found combinations (pool entries a part) to `out_bound`, their
    ends to `out_end`, for cumulative detections all members to `out_member`. Where an array is too
    short, says so and stops where it can go on with longer ones. `entry_of` receives the pool entry of
    each new event, or -1 where it was not kept.

    What a pattern does not have is not compiled: `absents` is None where it has no absences, `consume` where
    every combination is a detection and nothing is used up (no context, `consuming`, `first` or `last`).
    """
    # No array is replaced in here, and conditions get plain arrays, not a tuple of them through a helper:
    # either makes the compiler count references at every turn of the loops (measured: twice the time).
    parts = spec[PARTS]
    slots = parts + spec[ABSENT]
    si = np.zeros(STACK, np.int64)
    sf = np.zeros(STACK, np.float64)
    sn = np.zeros(STACK, np.uint8)
    machine = (code, int_constants, float_constants, pool_ints, pool_floats, pool_nulls, si, sf, sn)
    bound = np.zeros(slots + 1, np.int64)
    candidate = np.zeros(parts + 1, np.int64)
    consumes = spec[CONSUMES] == 1
    distinct = spec[DISTINCT] == 1
    waits = spec[WAITS] == 1
    late = spec[CONDITIONS_LATE] == 1
    simple = not (consumes or waits or spec[SELECTING] == 1)
    rows = new_end.size

    for i in range(count[NEXT], rows + 1):
        count[NEXT] = i
        now = new_end[i] if i < rows else watermark + 1

        # Deadlines before the event fire before it is there: it comes too late to prevent them.
        if absents is not None:
            if count[PHASE] == _DEADLINES and waits:
                while count[WAITING] > 0 and wait_deadline[0] < now:
                    waiting = count[WAITING]
                    if fine.size < waiting:
                        return MORE_SCRATCH
                    if consume is None:
                        if count[FOUND] + waiting > out_end.size:
                            return MORE_OUTPUT
                    elif not has_room(count, waiting, parts, out_end, out_offset, out_member):
                        return MORE_OUTPUT
                    deadline = wait_deadline[0]
                    trigger = wait_trigger[0]
                    # All combinations of one trigger are decided together: a context chooses among them.
                    number = 0
                    while waiting > 0 and wait_deadline[0] == deadline and wait_trigger[0] == trigger:
                        heap_pop(wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound, waiting)
                        waiting -= 1
                        for part in range(parts):
                            bound[part] = wait_bound[waiting, part]
                            scratch[number, part] = bound[part]
                        fine[number] = wait_fine[waiting]
                        if fine[number] == 1 and violated(
                            spec,
                            absents,
                            absent_code,
                            1,
                            bound,
                            deadline,
                            pool_key[bound[0]],
                            hot,
                            tail,
                            machine,
                        ):
                            fine[number] = 0
                        number += 1
                    count[WAITING] = waiting
                    if consume is None:
                        report_fine(parts, count, scratch, fine, number, deadline, out_bound, out_end)
                    else:
                        taken = choose(
                            spec,
                            consume,
                            scratch,
                            fine,
                            number,
                            chosen,
                            consumed,
                            pool_ident,
                            hot,
                            count[ENTRIES],
                        )
                        report(
                            spec, count, scratch, chosen, taken, deadline,
                            out_bound, out_end, out_offset, out_member,
                        )  # fmt: skip
        if i == rows:
            return DONE

        key = new_key[i]
        low = now - spec[RETAIN]
        if count[PHASE] != _WALK:
            # Keep the event for the parts it can still fill.
            kept = new_mask[i]
            for part in range(parts):
                first = before_part[part]
                if first >= 0 and (kept >> np.uint64(part)) & np.uint64(1):
                    # Nothing that could stand before it is within reach, nor will be: time moves on.
                    newest = tail[key, first]
                    if newest < 0 or hot[newest, END] < low:
                        kept = kept & ~(np.uint64(1) << np.uint64(part))
            entry_of[i] = -1
            if kept == 0:
                count[PHASE] = _DEADLINES
                continue
            e = count[ENTRIES]
            hot[e, START] = new_start[i]
            hot[e, END] = now
            pool_key[e] = key
            pool_ident[e] = new_ident[i]
            pool_nulls[e] = new_nulls[i]
            consumed[e] = 0
            for c in range(new_ints.shape[1]):
                pool_ints[e, c] = new_ints[i, c]
            for c in range(new_floats.shape[1]):
                pool_floats[e, c] = new_floats[i, c]
            for part in range(parts):
                first = before_part[part]
                hot[e, PREV + slots + part] = tail[key, first] if first >= 0 else -1
            for slot in range(slots):
                if (kept >> np.uint64(slot)) & np.uint64(1):
                    hot[e, PREV + slot] = tail[key, slot]
                    tail[key, slot] = e
            entry_of[i] = e
            count[ENTRIES] = e + 1
            count[PHASE] = _WALK

        # Search back from the new event over everything it may complete.
        e = count[ENTRIES] - 1
        lowest = now - spec[WITHIN]
        number = 0
        # An event that can only stand last is of no use to later ones, and need not stay in the pool.
        store = spec[KEEP_TRIGGER] == 1
        for slot in range(slots):
            if tail[key, slot] == e and (slot >= parts or triggers[slot] == 0):
                store = True
        for t in range(parts):
            if triggers[t] == 0 or tail[key, t] != e or new_start[i] < lowest:
                continue
            bound[t] = e
            okay = True
            if not late:
                for k in range(condition_at[t, 0, 0], condition_at[t, 0, 1]):
                    c = condition_list[k]
                    if not holds(
                        code,
                        condition_code[c, 0],
                        condition_code[c, 1],
                        int_constants,
                        float_constants,
                        bound,
                        hot,
                        pool_ints,
                        pool_floats,
                        pool_nulls,
                        si,
                        sf,
                        sn,
                    ):
                        okay = False
                        break
            if not okay:
                continue
            depth = 1
            if parts > 1:
                candidate[1] = head(plan, link, hot, slots, tail, bound, t, 1, key)
            while depth > 0:
                if depth < parts:
                    c = candidate[depth]
                    if c < 0 or hot[c, END] < low:
                        depth -= 1  # the chain is in order of ends: all further ones are too old
                        continue
                    slot = plan[t, depth]
                    candidate[depth] = hot[c, PREV + slot]
                    if hot[c, START] < lowest or (consumes and consumed[c] == 1):
                        continue
                    # What is cheap is tested first, and what reads values last.
                    okay = True
                    if not distinct:
                        for d in range(depth):
                            if pool_ident[bound[plan[t, d]]] == pool_ident[c]:
                                okay = False
                    if not okay:
                        continue
                    bound[slot] = c
                    for k in range(order_at[t, depth, 0], order_at[t, depth, 1]):
                        if not order_holds(orders, order_list[k], bound, hot):
                            okay = False
                            break
                    if okay and not late:
                        for k in range(condition_at[t, depth, 0], condition_at[t, depth, 1]):
                            q = condition_list[k]
                            if not holds(
                                code,
                                condition_code[q, 0],
                                condition_code[q, 1],
                                int_constants,
                                float_constants,
                                bound,
                                hot,
                                pool_ints,
                                pool_floats,
                                pool_nulls,
                                si,
                                sf,
                                sn,
                            ):
                                okay = False
                                break
                    if not okay:
                        continue
                    if depth < parts - 1:
                        depth += 1
                        candidate[depth] = head(plan, link, hot, slots, tail, bound, t, depth, key)
                        continue
                else:
                    depth = 0  # a pattern of one part is complete at once
                good = True
                if consume is not None:
                    if late:
                        good = conditions_hold(condition_code, bound, hot, machine)
                if absents is not None:
                    if good and spec[ABSENT] > 0:
                        good = not violated(
                            spec, absents, absent_code, 0, bound, now, key, hot, tail, machine
                        )
                if not good and not late:
                    continue
                if consume is not None:
                    if (
                        good
                        and spec[SELECTING] == 1
                        and not selected(
                            pool_ident, spec, select, orders, condition_code, absents, absent_code,
                            bound, key, hot, tail, machine,
                        )
                    ):  # fmt: skip
                        continue
                if simple:
                    if count[FOUND] + number == out_end.size:
                        return MORE_OUTPUT
                    for part in range(parts):
                        out_bound[count[FOUND] + number, part] = bound[part]
                    out_end[count[FOUND] + number] = now
                else:
                    if number == fine.size:
                        return MORE_SCRATCH
                    for part in range(parts):
                        scratch[number, part] = bound[part]
                    fine[number] = 1 if good else 0
                number += 1

        if simple:
            count[FOUND] += number
        elif number > 0 and not waits:
            if consume is not None:
                if not has_room(count, number, parts, out_end, out_offset, out_member):
                    return MORE_OUTPUT
                taken = choose(
                    spec, consume, scratch, fine, number, chosen, consumed, pool_ident, hot, count[ENTRIES]
                )
                report(spec, count, scratch, chosen, taken, now, out_bound, out_end, out_offset, out_member)
        elif number > 0:
            if absents is not None:
                if count[WAITING] + number > wait_deadline.size:
                    return MORE_WAITING
                for k in range(number):
                    waiting = count[WAITING]
                    for part in range(parts):
                        bound[part] = scratch[k, part]
                        wait_bound[waiting, part] = scratch[k, part]
                    deadline = now
                    for a in range(spec[ABSENT]):
                        if absents[a, 1] < 0:
                            deadline = max(deadline, deadline_of(spec, absents, a, bound, hot))
                    wait_deadline[waiting] = deadline
                    wait_serial[waiting] = count[SERIAL]
                    wait_trigger[waiting] = e
                    wait_fine[waiting] = fine[k]
                    heap_up(wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound, waiting)
                    count[SERIAL] += 1
                    count[WAITING] = waiting + 1

        if not store and number == 0:
            # Only the end of the pattern, and nothing found: forget it again.
            for slot in range(slots):
                if tail[key, slot] == e:
                    tail[key, slot] = hot[e, PREV + slot]
            entry_of[i] = -1
            count[ENTRIES] = e
        count[PHASE] = _DEADLINES
    return DONE


@kernel
def head(plan, link, hot, slots, tail, bound, t, depth, key):
    """Give the newest pool entry to try for the part at `depth`."""
    later = link[t, depth]
    if later >= 0:
        return hot[bound[later], PREV + slots + later]
    return tail[key, plan[t, depth]]


@kernel
def has_room(count, number, parts, out_end, out_offset, out_member):
    """Tell whether `number` more combinations surely fit into the output."""
    found = count[FOUND]
    return found + number <= out_end.size and out_offset[found] + number * parts <= out_member.size


@kernel
def report_fine(parts, count, rows, fine, number, end, out_bound, out_end):
    """Append the combinations that hold to the output; there is room."""
    found = count[FOUND]
    for k in range(number):
        if fine[k] == 1:
            for part in range(parts):
                out_bound[found, part] = rows[k, part]
            out_end[found] = end
            found += 1
    count[FOUND] = found


@kernel
def report(spec, count, rows, chosen, taken, end, out_bound, out_end, out_offset, out_member):
    """Append the chosen combinations to the output, all as one where detections are cumulative."""
    if taken == 0:
        return
    parts = spec[PARTS]
    found = count[FOUND]
    if spec[CONTEXT] != CUMULATIVE:
        for k in range(taken):
            for part in range(parts):
                out_bound[found + k, part] = rows[chosen[k], part]
            out_end[found + k] = end
            out_offset[found + k + 1] = out_offset[found]
        count[FOUND] = found + taken
        return
    for part in range(parts):
        newest = rows[chosen[0], part]
        for k in range(1, taken):
            newest = max(newest, rows[chosen[k], part])
        out_bound[found, part] = newest
    members = np.empty((taken * parts, 1), np.int64)
    for k in range(taken):
        for part in range(parts):
            members[k * parts + part, 0] = rows[chosen[k], part]
    # Sorted as `choose` sorts: NumPy's sort would be one more function to compile, a large one.
    order = sort_oldest_first(members, members.size)
    used = out_offset[found]
    for k in range(members.size):
        if k == 0 or members[order[k], 0] != members[order[k - 1], 0]:
            out_member[used] = members[order[k], 0]
            used += 1
    out_offset[found + 1] = used
    out_end[found] = end
    count[FOUND] = found + 1


@kernel
def shift_pool(
    dropped,
    entries,
    links,
    hot,
    pool_key,
    pool_ident,
    pool_ints,
    pool_floats,
    pool_nulls,
    consumed,
    rows,
    roots,
    tail,
    waiting,
    wait_bound,
    wait_trigger,
):
    """Forget the oldest `dropped` pool entries and move the others to the front.

    Links are numbers of entries: those to what is forgotten end their chain. Linear in what is kept; it is
    done when at least half is to be forgotten, so that it costs a constant for each event.
    """
    for i in range(entries - dropped):
        j = i + dropped
        hot[i, START] = hot[j, START]
        hot[i, END] = hot[j, END]
        for c in range(PREV, PREV + links):
            hot[i, c] = max(hot[j, c] - dropped, -1)
        pool_key[i] = pool_key[j]
        pool_ident[i] = pool_ident[j]
        pool_nulls[i] = pool_nulls[j]
        consumed[i] = consumed[j]
        rows[i] = rows[j]
        roots[i] = roots[j]
        for c in range(pool_ints.shape[1]):
            pool_ints[i, c] = pool_ints[j, c]
        for c in range(pool_floats.shape[1]):
            pool_floats[i, c] = pool_floats[j, c]
    for key in range(tail.shape[0]):
        for slot in range(tail.shape[1]):
            tail[key, slot] = max(tail[key, slot] - dropped, -1)
    for w in range(waiting):
        wait_trigger[w] -= dropped
        for part in range(wait_bound.shape[1]):
            wait_bound[w, part] -= dropped
