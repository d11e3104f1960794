"""The kernel behind every pattern: finds the combinations that a new event completes.

Events that may fill a part wait in a *pool*, in total order, each once. For every part, the pool
entries of one partition are chained from the newest back; an entry that fills a later part of a
sequence also remembers the newest entry of the part before it, so that a walk never visits events
that came too late. A new event that can complete the pattern starts a depth-first walk over these
chains, with orders, spans and conditions tested as soon as their parts are bound. State is linear in
the events inside the window; the work follows the combinations that are tried.

Patterns that end in an absence put their combinations on a heap, by deadline. Time is an input: a deadline
fires before the first event that ends after it, or when the watermark passes it.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.grow import grow, grow_rows
from whimbrel.engine.kernels.jit import kernel
from whimbrel.engine.kernels.machine import STACK, holds

# Slots of `spec`, the numbers that describe a pattern.
PARTS, ABSENT, WITHIN, CONTEXT, CONSUMING, WAITS = 0, 1, 2, 3, 4, 5
KEEP_TRIGGER, RETAIN, SELECTING, CONDITIONS_LATE, CONSUMES, DISTINCT = 6, 7, 8, 9, 10, 11
SPEC = 12

# Slots of `count`, the numbers that change.
ENTRIES, WAITING, SERIAL = 0, 1, 2
COUNTS = 3

EACH, RECENT, CHRONICLE, FIRST_MATCHING, CONTINUOUS, CUMULATIVE = 0, 1, 2, 3, 4, 5
TAKE_EACH, TAKE_FIRST, TAKE_LAST = 0, 1, 2


@kernel
def older(rows, i, j):  # type: ignore[no-untyped-def]
    """Tell whether combination i comes before j, oldest first, part by part."""
    for part in range(rows.shape[1]):
        if rows[i, part] != rows[j, part]:
            return rows[i, part] < rows[j, part]
    return False


@kernel
def sort_oldest_first(rows, number):  # type: ignore[no-untyped-def]
    """Give the order of the first `number` combinations, oldest first (heap sort)."""
    order = np.arange(number)
    for root in range(number // 2 - 1, -1, -1):
        sift(rows, order, root, number)
    for last in range(number - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        sift(rows, order, 0, last)
    return order


@kernel
def sift(rows, order, root, size):  # type: ignore[no-untyped-def]
    """Let the entry at `root` sink to its place in the heap order[:size]."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and older(rows, order[child], order[child + 1]):
            child += 1
        if not older(rows, order[root], order[child]):
            return
        order[root], order[child] = order[child], order[root]
        root = child


@kernel
def heap_less(deadline, serial, i, j):  # type: ignore[no-untyped-def]
    """Tell whether waiting combination i fires before j."""
    return deadline[i] < deadline[j] or (deadline[i] == deadline[j] and serial[i] < serial[j])


@kernel
def heap_swap(deadline, serial, trigger, fine, bound, i, j):  # type: ignore[no-untyped-def]
    """Exchange two waiting combinations."""
    deadline[i], deadline[j] = deadline[j], deadline[i]
    serial[i], serial[j] = serial[j], serial[i]
    trigger[i], trigger[j] = trigger[j], trigger[i]
    fine[i], fine[j] = fine[j], fine[i]
    for part in range(bound.shape[1]):
        bound[i, part], bound[j, part] = bound[j, part], bound[i, part]


@kernel
def heap_up(deadline, serial, trigger, fine, bound, i):  # type: ignore[no-untyped-def]
    """Let the newest waiting combination rise to its place."""
    while i > 0:
        parent = (i - 1) // 2
        if not heap_less(deadline, serial, i, parent):
            return
        heap_swap(deadline, serial, trigger, fine, bound, i, parent)
        i = parent


@kernel
def heap_pop(deadline, serial, trigger, fine, bound, size):  # type: ignore[no-untyped-def]
    """Move the first waiting combination to place size - 1 and mend the heap before it."""
    heap_swap(deadline, serial, trigger, fine, bound, 0, size - 1)
    size -= 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and heap_less(deadline, serial, child + 1, child):
            child += 1
        if not heap_less(deadline, serial, child, i):
            return
        heap_swap(deadline, serial, trigger, fine, bound, i, child)
        i = child


@kernel
def deadline_of(spec, absents, a, bound, pool_start, pool_end):  # type: ignore[no-untyped-def]
    """Give the time until which absent part `a` must not occur."""
    if absents[a, 2] >= 0:
        return pool_end[bound[absents[a, 0]]] + absents[a, 2]
    least = pool_start[bound[0]]
    for part in range(1, spec[PARTS]):
        least = min(least, pool_start[bound[part]])
    return least + spec[WITHIN]


@kernel
def violated(spec, absents, absent_code, final, bound, largest, key, pool_start, pool_end, prev, tail, machine):  # type: ignore[no-untyped-def]
    """Tell whether an event lies where an absent part forbids it.

    `final` picks the absences to test: 1 those that wait for a deadline, 0 the others. `largest` is the
    end of the match.
    """
    parts = spec[PARTS]
    code, int_constants, float_constants, ints, floats, nulls, si, sf, sn = machine
    for a in range(spec[ABSENT]):
        after = absents[a, 0]
        before = absents[a, 1]
        if (before < 0) != (final == 1):
            continue
        slot = parts + a
        lower = pool_end[bound[after]] if after >= 0 else largest - spec[WITHIN] - 1
        until = deadline_of(spec, absents, a, bound, pool_start, pool_end) if before < 0 else largest
        n = tail[slot, key]
        while n >= 0 and pool_end[n] > lower:
            inside = pool_start[n] > lower
            if before >= 0:
                inside = inside and pool_end[n] < pool_start[bound[before]]
            else:
                inside = inside and pool_end[n] <= until
            if inside:
                bound[slot] = n
                if absent_code[a, 0] == absent_code[a, 1] or holds(
                    code, absent_code[a, 0], absent_code[a, 1], int_constants, float_constants, bound,
                    pool_start, pool_end, ints, floats, nulls, si, sf, sn,
                ):
                    return True
            n = prev[slot, n]
    return False


@kernel
def conditions_hold(condition_code, bound, pool_start, pool_end, machine):  # type: ignore[no-untyped-def]
    """Tell whether every condition of the pattern holds on a whole combination."""
    code, int_constants, float_constants, ints, floats, nulls, si, sf, sn = machine
    for c in range(condition_code.shape[0]):
        if not holds(
            code, condition_code[c, 0], condition_code[c, 1], int_constants, float_constants, bound,
            pool_start, pool_end, ints, floats, nulls, si, sf, sn,
        ):
            return False
    return True


@kernel
def order_holds(orders, o, bound, pool_start, pool_end):  # type: ignore[no-untyped-def]
    """Tell whether order `o` holds between the events bound to its two parts."""
    first = bound[orders[o, 0]]
    second = bound[orders[o, 1]]
    if orders[o, 2] < 0:
        return pool_end[first] < pool_start[second]
    return first < second and pool_end[second] - pool_end[first] <= orders[o, 2]


@kernel
def combination_holds(pool_ident, spec, orders, condition_code, absents, absent_code, bound, key, pool_start, pool_end, prev, tail, machine):  # type: ignore[no-untyped-def]
    """Tell whether a whole combination holds (all but the absences that wait for a deadline)."""
    parts = spec[PARTS]
    least = pool_start[bound[0]]
    largest = pool_end[bound[0]]
    for i in range(1, parts):
        least = min(least, pool_start[bound[i]])
        largest = max(largest, pool_end[bound[i]])
        for j in range(i):
            if pool_ident[bound[i]] == pool_ident[bound[j]]:
                return False
    if largest - least > spec[WITHIN]:
        return False
    for o in range(orders.shape[0]):
        if not order_holds(orders, o, bound, pool_start, pool_end):
            return False
    if not conditions_hold(condition_code, bound, pool_start, pool_end, machine):
        return False
    return not violated(
        spec, absents, absent_code, 0, bound, largest, key, pool_start, pool_end, prev, tail, machine
    )


@kernel
def selected(pool_ident, spec, select, orders, condition_code, absents, absent_code, bound, key, pool_start, pool_end, prev, tail, machine):  # type: ignore[no-untyped-def]
    """Tell whether the marks `first` and `last` keep this combination."""
    for part in range(spec[PARTS]):
        if select[part] == TAKE_EACH:
            continue
        own = bound[part]
        rival = tail[part, key]
        while rival >= 0:
            better = rival > own if select[part] == TAKE_LAST else rival < own
            if better:
                bound[part] = rival
                beaten = combination_holds(
                    pool_ident, spec, orders, condition_code, absents, absent_code, bound, key,
                    pool_start, pool_end, prev, tail, machine,
                )
                bound[part] = own
                if beaten:
                    return False
            if select[part] == TAKE_LAST and rival <= own:
                break
            rival = prev[part, rival]
    return True


@kernel
def choose(spec, consume, rows, fine, number, consumed, pool_ident, pool_end, entries):  # type: ignore[no-untyped-def]
    """Apply the context to the combinations of one trigger; give the chosen, in order, and how many.

    `fine` tells which hold; only a chronicle looks at the others. Marks the consumed events.
    """
    parts = spec[PARTS]
    context = spec[CONTEXT]
    chosen = np.empty(max(number, 1), np.int64)
    found = 0
    if context == EACH and spec[CONSUMING] == 0:
        for i in range(number):
            if fine[i] == 1:
                chosen[found] = i
                found += 1
        return chosen, found
    order = sort_oldest_first(rows, number)
    if context == RECENT:
        best = -1
        for k in range(number):
            i = order[k]
            if fine[i] == 0 or used_up(rows, i, consumed):
                continue
            if best < 0 or newer_from_the_end(rows, i, best):
                best = i
        if best >= 0:
            chosen[0] = best
            found = 1
        return chosen, found
    last_first = -1
    for k in range(number):
        i = order[k]
        if used_up(rows, i, consumed):
            continue
        if fine[i] == 0:
            if context == CHRONICLE:
                return chosen, found
            continue
        if context == CONTINUOUS and rows[i, 0] == last_first:
            continue
        last_first = rows[i, 0]
        chosen[found] = i
        found += 1
        if context == EACH:
            for part in range(parts):
                if consume[part] == 1:
                    use_up(rows[i, part], consumed, pool_ident, pool_end, entries)
        elif context == CHRONICLE or context == FIRST_MATCHING:
            break
    if context != EACH:
        for k in range(found):
            for part in range(parts):
                use_up(rows[chosen[k], part], consumed, pool_ident, pool_end, entries)
    return chosen, found


@kernel
def use_up(e, consumed, pool_ident, pool_end, entries):  # type: ignore[no-untyped-def]
    """Mark an event as consumed, also where it is in the pool a second time as an alternative."""
    consumed[e] = 1
    for step in (-1, 1):
        i = e + step
        while i >= 0 and i < entries and pool_end[i] == pool_end[e]:
            if pool_ident[i] == pool_ident[e]:
                consumed[i] = 1
            i += step


@kernel
def used_up(rows, i, consumed):  # type: ignore[no-untyped-def]
    """Tell whether combination i contains a consumed event."""
    for part in range(rows.shape[1]):
        if consumed[rows[i, part]] == 1:
            return True
    return False


@kernel
def newer_from_the_end(rows, i, j):  # type: ignore[no-untyped-def]
    """Tell whether combination i is newer than j, compared from the last part to the first."""
    for part in range(rows.shape[1] - 1, -1, -1):
        if rows[i, part] != rows[j, part]:
            return rows[i, part] > rows[j, part]
    return False


@kernel
def match_step(  # type: ignore[no-untyped-def]
    spec, count, plan, link, before_part, orders, order_at, order_list, condition_code, condition_at, condition_list,
    absents, absent_code, select, consume, triggers, code, int_constants, float_constants,
    new_start, new_end, new_key, new_ident, new_mask, new_ints, new_floats, new_nulls,
    pool_start, pool_end, pool_key, pool_ident, pool_ints, pool_floats, pool_nulls, consumed, prev, back, tail,
    wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound, watermark, entry_of,
):
    """Feed new events, in total order, to a pattern; then let time pass to `watermark`.

    Gives the found combinations (pool entries a part), their ends, for cumulative detections all their
    members, and the waiting combinations, whose arrays may have been replaced by longer ones.
    `entry_of` receives the pool entry of each new event, or -1 where it was not kept.
    """
    parts = spec[PARTS]
    slots = parts + spec[ABSENT]
    si = np.zeros(STACK, np.int64)
    sf = np.zeros(STACK, np.float64)
    sn = np.zeros(STACK, np.uint8)
    machine = (code, int_constants, float_constants, pool_ints, pool_floats, pool_nulls, si, sf, sn)
    bound = np.zeros(slots + 1, np.int64)
    candidate = np.zeros(parts + 1, np.int64)

    out_bound = np.empty((64, parts), np.int64)
    out_end = np.empty(64, np.int64)
    found = 0
    out_offset = np.zeros(65, np.int64)
    out_member = np.empty(64, np.int64)
    batch = np.empty((64, parts), np.int64)
    fine = np.ones(64, np.uint8)
    simple = (
        spec[CONTEXT] == EACH and spec[CONSUMING] == 0 and spec[WAITS] == 0 and spec[SELECTING] == 0
    )

    # Every array that a walk does not touch is a cache miss less.
    consumes = spec[CONSUMES] == 1
    distinct = spec[DISTINCT] == 1
    entries = count[ENTRIES]
    waiting = count[WAITING]
    rows = new_end.size
    for i in range(rows + 1):
        now = new_end[i] if i < rows else watermark + 1
        # Deadlines that passed before this event, grouped by trigger.
        while waiting > 0 and wait_deadline[0] < now:
            deadline = wait_deadline[0]
            trigger = wait_trigger[0]
            number = 0
            while waiting > 0 and wait_deadline[0] == deadline and wait_trigger[0] == trigger:
                heap_pop(wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound, waiting)
                waiting -= 1
                if number == fine.size:
                    batch = grow_rows(batch, 2 * number)
                    fine = grow(fine, 2 * number)
                for part in range(parts):
                    bound[part] = wait_bound[waiting, part]
                    batch[number, part] = bound[part]
                fine[number] = wait_fine[waiting]
                if fine[number] == 1 and violated(
                    spec, absents, absent_code, 1, bound, deadline, pool_key[bound[0]],
                    pool_start, pool_end, prev, tail, machine,
                ):
                    fine[number] = 0
                    if spec[CONTEXT] != CHRONICLE:
                        continue
                number += 1
            chosen, taken = choose(
                spec, consume, batch, fine, number, consumed, pool_ident, pool_end, entries
            )
            if taken > 0:
                out_bound, out_end, out_offset, out_member, found = report(
                    spec, batch, chosen, taken, deadline, out_bound, out_end, out_offset, out_member, found
                )
        if i == rows:
            break

        # Keep the event for the parts it can still fill.
        key = new_key[i]
        low = now - spec[RETAIN]
        mask = new_mask[i]
        kept = mask
        for part in range(parts):
            first = before_part[part]
            if (mask >> np.uint64(part)) & np.uint64(1) and first >= 0:
                t = tail[first, key]
                if t < 0 or pool_end[t] < low:
                    kept = kept & ~(np.uint64(1) << np.uint64(part))
        entry_of[i] = -1
        if kept == 0:
            continue
        e = entries
        pool_start[e] = new_start[i]
        pool_end[e] = now
        pool_key[e] = key
        pool_ident[e] = new_ident[i]
        pool_nulls[e] = new_nulls[i]
        consumed[e] = 0
        for c in range(new_ints.shape[0]):
            pool_ints[c, e] = new_ints[c, i]
        for c in range(new_floats.shape[0]):
            pool_floats[c, e] = new_floats[c, i]
        store = spec[KEEP_TRIGGER] == 1
        for slot in range(slots):
            if (kept >> np.uint64(slot)) & np.uint64(1):
                if slot >= parts or triggers[slot] == 0 or parts == 1:
                    store = True
                if slot < parts:
                    first = before_part[slot]
                    back[slot, e] = tail[first, key] if first >= 0 else -1
        for slot in range(slots):
            if (kept >> np.uint64(slot)) & np.uint64(1):
                prev[slot, e] = tail[slot, key]
                tail[slot, key] = e
        entry_of[i] = e
        entries += 1

        # Walk back from the new event over everything it may complete.
        number = 0
        first_found = found
        lowest = now - spec[WITHIN]
        for t in range(parts):
            if triggers[t] == 0 or not ((kept >> np.uint64(t)) & np.uint64(1)):
                continue
            if new_start[i] < lowest:
                continue
            bound[t] = e
            okay = True
            if spec[CONDITIONS_LATE] == 0:
                for k in range(condition_at[t, 0, 0], condition_at[t, 0, 1]):
                    c = condition_list[k]
                    if not holds(
                        code, condition_code[c, 0], condition_code[c, 1], int_constants, float_constants, bound,
                        pool_start, pool_end, pool_ints, pool_floats, pool_nulls, si, sf, sn,
                    ):
                        okay = False
                        break
            if not okay:
                continue
            depth = 1
            if parts > 1:
                candidate[1] = head(plan, link, back, tail, bound, t, 1, key)
            while depth > 0:
                if depth < parts:
                    c = candidate[depth]
                    if c < 0 or pool_end[c] < low:
                        depth -= 1
                        continue
                    slot = plan[t, depth]
                    candidate[depth] = prev[slot, c]
                    if pool_start[c] < lowest or (consumes and consumed[c] == 1):
                        continue
                    okay = True
                    if not distinct:
                        for d in range(depth):
                            if pool_ident[bound[plan[t, d]]] == pool_ident[c]:
                                okay = False
                    if not okay:
                        continue
                    bound[slot] = c
                    for k in range(order_at[t, depth, 0], order_at[t, depth, 1]):
                        if not order_holds(orders, order_list[k], bound, pool_start, pool_end):
                            okay = False
                            break
                    if okay and spec[CONDITIONS_LATE] == 0:
                        for k in range(condition_at[t, depth, 0], condition_at[t, depth, 1]):
                            q = condition_list[k]
                            if not holds(
                                code, condition_code[q, 0], condition_code[q, 1], int_constants, float_constants,
                                bound, pool_start, pool_end, pool_ints, pool_floats, pool_nulls, si, sf, sn,
                            ):
                                okay = False
                                break
                    if not okay:
                        continue
                    if depth < parts - 1:
                        depth += 1
                        candidate[depth] = head(plan, link, back, tail, bound, t, depth, key)
                        continue
                else:
                    depth = 0  # a pattern of one part is complete at once
                good = np.uint8(1)
                if spec[CONDITIONS_LATE] == 1 and not conditions_hold(
                    condition_code, bound, pool_start, pool_end, machine
                ):
                    good = np.uint8(0)
                if good == 1 and spec[ABSENT] > 0 and violated(
                    spec, absents, absent_code, 0, bound, now, key, pool_start, pool_end, prev, tail, machine
                ):
                    good = np.uint8(0)
                if good == 0 and spec[CONDITIONS_LATE] == 0:
                    continue
                if good == 1 and spec[SELECTING] == 1 and not selected(
                    pool_ident, spec, select, orders, condition_code, absents, absent_code, bound, key,
                    pool_start, pool_end, prev, tail, machine,
                ):
                    continue
                if simple:
                    if found == out_end.size:
                        out_bound = grow_rows(out_bound, 2 * found)
                        out_end = grow(out_end, 2 * found)
                    for part in range(parts):
                        out_bound[found, part] = bound[part]
                    out_end[found] = now
                    found += 1
                    continue
                if number == fine.size:
                    batch = grow_rows(batch, 2 * number)
                    fine = grow(fine, 2 * number)
                for part in range(parts):
                    batch[number, part] = bound[part]
                fine[number] = good
                number += 1

        if number > 0 and spec[WAITS] == 0:
            chosen, taken = choose(
                spec, consume, batch, fine, number, consumed, pool_ident, pool_end, entries
            )
            if taken > 0:
                out_bound, out_end, out_offset, out_member, found = report(
                    spec, batch, chosen, taken, now, out_bound, out_end, out_offset, out_member, found
                )
        elif number > 0:
            for k in range(number):
                if waiting == wait_deadline.size:
                    size = max(64, 2 * waiting)
                    wait_deadline = grow(wait_deadline, size)
                    wait_serial = grow(wait_serial, size)
                    wait_trigger = grow(wait_trigger, size)
                    wait_fine = grow(wait_fine, size)
                    wait_bound = grow_rows(wait_bound, size)
                for part in range(parts):
                    bound[part] = batch[k, part]
                deadline = now
                for a in range(spec[ABSENT]):
                    if absents[a, 1] < 0:
                        deadline = max(deadline, deadline_of(spec, absents, a, bound, pool_start, pool_end))
                wait_deadline[waiting] = deadline
                wait_serial[waiting] = count[SERIAL]
                wait_trigger[waiting] = e
                wait_fine[waiting] = fine[k]
                for part in range(parts):
                    wait_bound[waiting, part] = batch[k, part]
                heap_up(wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound, waiting)
                count[SERIAL] += 1
                waiting += 1

        if not store and found == first_found:
            # Only the end of the pattern, and nothing found: forget it again.
            for slot in range(slots):
                if (kept >> np.uint64(slot)) & np.uint64(1):
                    tail[slot, key] = prev[slot, e]
            entry_of[i] = -1
            entries -= 1

    count[ENTRIES] = entries
    count[WAITING] = waiting
    return (
        out_bound[:found], out_end[:found], out_offset[: found + 1], out_member,
        wait_deadline, wait_serial, wait_trigger, wait_fine, wait_bound,
    )


@kernel
def head(plan, link, back, tail, bound, t, depth, key):  # type: ignore[no-untyped-def]
    """Give the newest pool entry to try for the part at `depth`."""
    slot = plan[t, depth]
    later = link[t, depth]
    if later >= 0:
        return np.int64(back[later, bound[later]])
    return np.int64(tail[slot, key])


@kernel
def report(spec, rows, chosen, taken, end, out_bound, out_end, out_offset, out_member, found):  # type: ignore[no-untyped-def]
    """Append the chosen combinations to the output, all as one where detections are cumulative."""
    parts = spec[PARTS]
    cumulative = spec[CONTEXT] == CUMULATIVE
    more = 1 if cumulative else taken
    while found + more > out_end.size:
        out_bound = grow_rows(out_bound, 2 * out_end.size)
        out_offset = grow(out_offset, 2 * out_end.size + 1)
        out_end = grow(out_end, 2 * out_end.size)
    if not cumulative:
        for k in range(taken):
            for part in range(parts):
                out_bound[found + k, part] = rows[chosen[k], part]
            out_end[found + k] = end
        return out_bound, out_end, out_offset, out_member, found + taken
    members = np.empty(taken * parts, np.int64)
    for k in range(taken):
        for part in range(parts):
            members[k * parts + part] = rows[chosen[k], part]
    for part in range(parts):
        newest = rows[chosen[0], part]
        for k in range(1, taken):
            newest = max(newest, rows[chosen[k], part])
        out_bound[found, part] = newest
    members.sort()
    begin = out_offset[found]
    while begin + members.size > out_member.size:
        out_member = grow(out_member, 2 * out_member.size)
    used = begin
    for i in range(members.size):
        if i == 0 or members[i] != members[i - 1]:
            out_member[used] = members[i]
            used += 1
    out_offset[found + 1] = used
    out_end[found] = end
    return out_bound, out_end, out_offset, out_member, found + 1


@kernel
def shift_pool(dropped, entries, keys, pool_start, pool_end, pool_key, pool_ident, pool_ints, pool_floats, pool_nulls, consumed, rows, roots, prev, back, tail, waiting, wait_bound, wait_trigger):  # type: ignore[no-untyped-def]
    """Forget the oldest `dropped` pool entries and move the others to the front."""
    live = entries - dropped
    for i in range(live):
        pool_start[i] = pool_start[i + dropped]
        pool_end[i] = pool_end[i + dropped]
        pool_key[i] = pool_key[i + dropped]
        pool_ident[i] = pool_ident[i + dropped]
        pool_nulls[i] = pool_nulls[i + dropped]
        consumed[i] = consumed[i + dropped]
        rows[i] = rows[i + dropped]
        roots[i] = roots[i + dropped]
    for c in range(pool_ints.shape[0]):
        for i in range(live):
            pool_ints[c, i] = pool_ints[c, i + dropped]
    for c in range(pool_floats.shape[0]):
        for i in range(live):
            pool_floats[c, i] = pool_floats[c, i + dropped]
    for slot in range(prev.shape[0]):
        for i in range(live):
            prev[slot, i] = max(prev[slot, i + dropped] - dropped, -1)
        for key in range(keys):
            tail[slot, key] = max(tail[slot, key] - dropped, -1)
    for slot in range(back.shape[0]):
        for i in range(live):
            back[slot, i] = max(back[slot, i + dropped] - dropped, -1)
    for w in range(waiting):
        wait_trigger[w] -= dropped
        for part in range(wait_bound.shape[1]):
            wait_bound[w, part] -= dropped
