"""Whether a combination of events holds: orders, conditions, absences, first and last."""

from __future__ import annotations

from whimbrel.engine.kernels.machine import holds
from whimbrel.engine.kernels.pattern import ABSENT, END, PARTS, PREV, START, TAKE_EACH, TAKE_LAST, WITHIN
from whimbrel.space.kernels.jit import kernel


@kernel
def deadline_of(spec, absents, a, bound, hot):
    """Give the time until which absent part `a` must not occur."""
    if absents[a, 2] >= 0:
        return hot[bound[absents[a, 0]], END] + absents[a, 2]
    least = hot[bound[0], START]
    for part in range(1, spec[PARTS]):
        least = min(least, hot[bound[part], START])
    return least + spec[WITHIN]


@kernel
def violated(spec, absents, absent_code, final, bound, largest, key, hot, tail, machine):
    """Tell whether an event lies where an absent part forbids it.

    `final` picks the absences to test: 1 those that wait for a deadline, 0 the others. `largest` is the
    end of the match. Follows the chain of the absent part back to where it may not lie any more.
    """
    parts = spec[PARTS]
    code, int_constants, float_constants, ints, floats, nulls, si, sf, sn = machine
    for a in range(spec[ABSENT]):
        after = absents[a, 0]
        before = absents[a, 1]
        if (before < 0) != (final == 1):
            continue
        slot = parts + a
        lower = hot[bound[after], END] if after >= 0 else largest - spec[WITHIN] - 1
        until = deadline_of(spec, absents, a, bound, hot) if before < 0 else largest
        # The chain is in order of ends, so that nothing behind the first one that is too early can count.
        n = tail[key, slot]
        while n >= 0 and hot[n, END] > lower:
            inside = hot[n, START] > lower
            if before >= 0:
                inside = inside and hot[n, END] < hot[bound[before], START]
            else:
                inside = inside and hot[n, END] <= until
            if inside:
                bound[slot] = n
                if absent_code[a, 0] == absent_code[a, 1] or holds(
                    code,
                    absent_code[a, 0],
                    absent_code[a, 1],
                    int_constants,
                    float_constants,
                    bound,
                    hot,
                    ints,
                    floats,
                    nulls,
                    si,
                    sf,
                    sn,
                ):
                    return True
            n = hot[n, PREV + slot]
    return False


@kernel
def conditions_hold(condition_code, bound, hot, machine):
    """Tell whether every condition of the pattern holds on a whole combination."""
    code, int_constants, float_constants, ints, floats, nulls, si, sf, sn = machine
    for c in range(condition_code.shape[0]):
        if not holds(
            code,
            condition_code[c, 0],
            condition_code[c, 1],
            int_constants,
            float_constants,
            bound,
            hot,
            ints,
            floats,
            nulls,
            si,
            sf,
            sn,
        ):
            return False
    return True


@kernel
def order_holds(orders, o, bound, hot):
    """Tell whether order `o` holds between the events bound to its two parts."""
    first = bound[orders[o, 0]]
    second = bound[orders[o, 1]]
    if orders[o, 2] < 0:
        return hot[first, END] < hot[second, START]
    return first < second and hot[second, END] - hot[first, END] <= orders[o, 2]


@kernel
def combination_holds(
    pool_ident, spec, orders, condition_code, absents, absent_code, bound, key, hot, tail, machine
):
    """Tell whether a whole combination holds (all but the absences that wait for a deadline)."""
    parts = spec[PARTS]
    least = hot[bound[0], START]
    largest = hot[bound[0], END]
    for i in range(1, parts):
        least = min(least, hot[bound[i], START])
        largest = max(largest, hot[bound[i], END])
        for j in range(i):
            if pool_ident[bound[i]] == pool_ident[bound[j]]:
                return False
    if largest - least > spec[WITHIN]:
        return False
    for o in range(orders.shape[0]):
        if not order_holds(orders, o, bound, hot):
            return False
    if not conditions_hold(condition_code, bound, hot, machine):
        return False
    return not violated(spec, absents, absent_code, 0, bound, largest, key, hot, tail, machine)


@kernel
def selected(
    pool_ident, spec, select, orders, condition_code, absents, absent_code, bound, key, hot, tail, machine
):
    """Tell whether the marks `first` and `last` keep this combination.

    It is kept if no other event in the place of a marked one would make a combination that holds, too: for
    each such event all tests run again.
    """
    for part in range(spec[PARTS]):
        if select[part] == TAKE_EACH:
            continue
        own = bound[part]
        rival = tail[key, part]
        while rival >= 0:
            better = rival > own if select[part] == TAKE_LAST else rival < own
            if better:
                bound[part] = rival
                beaten = combination_holds(
                    pool_ident,
                    spec,
                    orders,
                    condition_code,
                    absents,
                    absent_code,
                    bound,
                    key,
                    hot,
                    tail,
                    machine,
                )
                bound[part] = own
                if beaten:
                    return False
            if select[part] == TAKE_LAST and rival <= own:
                break  # the chain goes back: no later one is left
            rival = hot[rival, PREV + part]
    return True
