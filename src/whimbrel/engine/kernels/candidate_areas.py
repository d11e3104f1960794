"""Chooses which predicted areas are worth a run (thesis, algorithm 3.12)."""

from __future__ import annotations

from whimbrel.space.kernels.jit import inlined, kernel

GREEDY, LOCATION, RESOURCE = 0, 1, 2
"""Which area is taken next: with the most events that no other has, the likeliest, the cheapest."""


@kernel
def choose_areas(groups, offsets, events, costs, precision, recall, limit, policy, covered, turn):
    """Write into `turn` as which of its group each area is chosen, from 0; -1 where it is not.

    Areas of a group lie one after the other, the likeliest first; the events of each are numbers in order.
    `covered` has room for every event number and holds zeros.
    """
    for g in range(len(groups) - 1):
        begin, end = groups[g], groups[g + 1]
        used = 0.0
        chosen = 0
        for i in range(begin, end):
            turn[i] = -2
        for _ in range(begin, end):
            i = _next(begin, end, offsets, events, costs, policy, covered, g + 1, turn)
            turn[i] = -1
            serves = False
            for other in range(begin, end):
                if turn[other] >= 0 and _stands_for(other, i, offsets, events, precision, recall):
                    serves = True
                    break
            if serves or used + costs[i] > limit:
                continue
            turn[i] = chosen
            chosen += 1
            used += costs[i]
            for e in range(offsets[i], offsets[i + 1]):
                covered[events[e]] = g + 1


@inlined
def _next(begin, end, offsets, events, costs, policy, covered, mark, turn):
    """Find the area that is taken next; of equal ones, the likeliest."""
    best = -1
    best_value = 0.0
    for i in range(begin, end):
        if turn[i] != -2:
            continue
        value = 0.0
        if policy == GREEDY:
            for e in range(offsets[i], offsets[i + 1]):
                if covered[events[e]] != mark:
                    value -= 1.0
        elif policy == RESOURCE:
            value = costs[i]
        if best < 0 or value < best_value:
            best, best_value = i, value
        if policy == LOCATION:
            break
    return best


@inlined
def _stands_for(used, wanted, offsets, events, precision, recall):
    """Tell whether the events of one area have more than the quality asked for in place of another's."""
    a, b = offsets[used], offsets[wanted]
    a_end, b_end = offsets[used + 1], offsets[wanted + 1]
    in_used, in_wanted = a_end - a, b_end - b
    common = 0
    while a < a_end and b < b_end:
        if events[a] == events[b]:
            common += 1
            a += 1
            b += 1
        elif events[a] < events[b]:
            a += 1
        else:
            b += 1
    found_precision = common / in_used if in_used > 0 else 1.0
    found_recall = common / in_wanted if in_wanted > 0 else 1.0
    return found_precision > precision and found_recall > recall
