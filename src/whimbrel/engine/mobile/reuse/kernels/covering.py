"""Which selections are processed, and for whom: two heuristics for the least set cover."""

from __future__ import annotations

import heapq

import numpy as np

from whimbrel.space.kernels.jit import kernel

NOBODY = -1


@kernel
def cover_greedily(size, c_offsets, c_covered, d_offsets, d_covering):
    """Take again and again the selection that stands for most of those that nobody stands for yet.

    The pairs are given twice: by what covers, and by what is covered. Of several that would do the same, the
    first is taken. What was covered already and is taken later stands for itself from then on.
    """
    by = np.full(size, NOBODY, np.int64)
    gain = np.empty(size, np.int64)
    for j in range(size):
        gain[j] = 1 + c_offsets[j + 1] - c_offsets[j]
    # Gains only fall: an entry that is out of date is put back where it belongs when it comes up.
    heap = [(size + 1 - gain[j]) * size + j for j in range(size)]
    heapq.heapify(heap)
    left = size
    while left > 0:
        entry = heapq.heappop(heap)
        j = entry % size
        if entry // size != size + 1 - gain[j]:
            heapq.heappush(heap, (size + 1 - gain[j]) * size + j)
            continue
        for n in range(c_offsets[j], c_offsets[j + 1] + 1):
            i = j if n == c_offsets[j + 1] else c_covered[n]
            if by[i] != NOBODY:
                continue
            by[i] = j
            left -= 1
            gain[i] -= 1
            for m in range(d_offsets[i], d_offsets[i + 1]):
                gain[d_covering[m]] -= 1
        by[j] = j
    return by


@kernel
def drop_needless(processed, order, c_offsets, c_covered):
    """Take back in order what is processed, as long as all have somebody else who stands for them."""
    served = np.zeros(len(processed), np.int64)
    for j in range(len(processed)):
        if processed[j]:
            served[j] += 1
            for n in range(c_offsets[j], c_offsets[j + 1]):
                served[c_covered[n]] += 1
    for j in order:
        if not processed[j] or served[j] < 2:
            continue
        needed = False
        for n in range(c_offsets[j], c_offsets[j + 1]):
            if served[c_covered[n]] < 2:
                needed = True
                break
        if not needed:
            processed[j] = False
            served[j] -= 1
            for n in range(c_offsets[j], c_offsets[j + 1]):
                served[c_covered[n]] -= 1


@kernel
def comparisons_up_to(rank, began, done, serves, mine):
    """Count the selections up to a rank whose operators may stand for one: operators come one after another.

    `began` has the rank at which each of the first `done` operators began, by their order.
    """
    count = 0
    for n in range(done):
        if serves[n, mine]:
            upper = min(rank + 1, began[n + 1])
            if upper > began[n]:
                count += upper - began[n]
    return count


@kernel
def cover_in_order(order, owner, serves, d_offsets, d_covering):
    """Let each selection in turn join the first one that is processed and may stand for it, or be processed.

    `order` has the selections of one operator after those of another; `owner` numbers operators in this
    order, and `serves` goes by these numbers. Gives who stands for whom, and how many pairs were compared.
    """
    size = len(order)
    by = np.full(size, NOBODY, np.int64)
    rank_of = np.full(size, NOBODY, np.int64)
    began = np.zeros(len(serves) + 1, np.int64)
    chosen, compared = 0, 0
    done = 0
    for n in range(size):
        i = order[n]
        while done <= owner[i]:
            began[done] = chosen
            done += 1
        best = size
        for m in range(d_offsets[i], d_offsets[i + 1]):
            rank = rank_of[d_covering[m]]
            if rank != NOBODY and rank < best:
                best = rank
                by[i] = d_covering[m]
        began[done] = chosen
        compared += comparisons_up_to(best, began, done, serves, owner[i])
        if by[i] == NOBODY:
            by[i] = i
            rank_of[i] = chosen
            chosen += 1
    return by, compared


@kernel
def cover_directly(order, owner, serves, offsets, ids, events, precision, recall, exact):
    """Do as `cover_in_order` does, from the events: each selection is compared with those processed alone.

    An event knows the processed selections that have it, as a linked list. Thresholds go by the number of the
    operator in the order.
    """
    size = len(order)
    by = np.full(size, NOBODY, np.int64)
    head = np.full(events, NOBODY, np.int64)
    follow, entry_rank = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    entries = 0
    chosen_row = np.empty(size, np.int64)
    common, touched = np.zeros(size, np.int64), np.empty(size, np.int64)
    began = np.zeros(len(serves) + 1, np.int64)
    chosen, compared, done = 0, 0, 0
    for n in range(size):
        i = order[n]
        mine = owner[i]
        while done <= mine:
            began[done] = chosen
            done += 1
        many = 0
        for e in range(offsets[i], offsets[i + 1]):
            at = head[ids[e]]
            while at != NOBODY:
                rank = entry_rank[at]
                if common[rank] == 0:
                    touched[many] = rank
                    many += 1
                common[rank] += 1
                at = follow[at]
        best = size
        own = offsets[i + 1] - offsets[i]
        for t in range(many):
            rank = touched[t]
            j = chosen_row[rank]
            other = offsets[j + 1] - offsets[j]
            if rank < best and serves[owner[j], mine]:
                if common[rank] == own and common[rank] == other:
                    best = rank
                elif not exact[mine]:
                    if common[rank] / other > precision[mine] and common[rank] / own > recall[mine]:
                        best = rank
            common[rank] = 0
        began[done] = chosen
        compared += comparisons_up_to(best, began, done, serves, mine)
        if best < size:
            by[i] = chosen_row[best]
            continue
        by[i] = i
        chosen_row[chosen] = i
        for e in range(offsets[i], offsets[i + 1]):
            follow[entries], entry_rank[entries] = head[ids[e]], chosen
            head[ids[e]] = entries
            entries += 1
        chosen += 1
    return by, compared
