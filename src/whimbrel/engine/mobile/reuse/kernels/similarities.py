"""What sets of events have in common, pair by pair.

Sets are given in compressed rows: the ids of row r are `ids[offsets[r]:offsets[r + 1]]`. Where ids index
other arrays, they are dense, from 0.
"""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def transposed(offsets, ids, values, size):
    """Turn rows of ids into rows of row numbers, by id: in each, in order."""
    t_offsets = np.zeros(size + 1, np.int64)
    for e in range(len(ids)):
        t_offsets[ids[e] + 1] += 1
    for n in range(size):
        t_offsets[n + 1] += t_offsets[n]
    fill = t_offsets[:-1].copy()
    t_rows = np.empty(len(ids), np.int64)
    t_values = np.empty(len(ids), np.float64)
    for row in range(len(offsets) - 1):
        for e in range(offsets[row], offsets[row + 1]):
            at = fill[ids[e]]
            t_rows[at] = row
            t_values[at] = values[e]
            fill[ids[e]] = at + 1
    return t_offsets, t_rows, t_values


@kernel
def similar_pairs(
    offsets, ids, values, total, t_offsets, t_rows, t_values, t_total, owner, serves, precision, recall,
    exact, by_ids,
):  # fmt: skip
    """Find the pairs in which the second may stand for the first: one row of a sparse product after another.

    In common are the lesser of both values of each id. `values` and `total` are those of what is covered, the
    others of what covers; thresholds go by the owner of what is covered. Gives the rows, and both measures.
    """
    size = len(offsets) - 1
    common = np.zeros(size, np.float64)
    touched = np.empty(size, np.int64)
    room, count = 1024, 0
    covered, covering = np.empty(room, np.int64), np.empty(room, np.int64)
    found_p, found_r = np.empty(room, np.float64), np.empty(room, np.float64)
    for i in range(size):
        mine = owner[i]
        many = 0
        for e in range(offsets[i], offsets[i + 1]):
            for k in range(t_offsets[ids[e]], t_offsets[ids[e] + 1]):
                j = t_rows[k]
                shared = min(values[e], t_values[k])
                if j == i or shared <= 0.0 or not serves[owner[j], mine]:
                    continue
                if common[j] == 0.0:
                    touched[many] = j
                    many += 1
                common[j] += shared
        kept = 0
        for n in range(many):
            j = touched[n]
            if by_ids and common[j] == total[i] and common[j] == t_total[j]:
                good = True
            elif exact[mine]:
                good = False
            else:
                good = common[j] / t_total[j] > precision[mine] and common[j] / total[i] > recall[mine]
            if good:
                touched[kept] = j
                kept += 1
            else:
                common[j] = 0.0
        if count + kept > room:
            room = max(2 * room, count + kept)
            covered, covering = _longer(covered, room), _longer(covering, room)
            found_p, found_r = _longer(found_p, room), _longer(found_r, room)
        for j in np.sort(touched[:kept]):
            covered[count], covering[count] = i, j
            found_p[count] = common[j] / t_total[j]
            found_r[count] = common[j] / total[i]
            common[j] = 0.0
            count += 1
    return covered[:count], covering[:count], found_p[:count], found_r[:count]


@kernel
def _longer(array, size):
    """Copy an array into one with more room."""
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown


@kernel
def in_common(offsets, ids, i, j):
    """Count the ids of two rows that both have; ids are sorted in each."""
    a, b, end_a, end_b = offsets[i], offsets[j], offsets[i + 1], offsets[j + 1]
    count = 0
    while a < end_a and b < end_b:
        if ids[a] == ids[b]:
            count += 1
            a += 1
            b += 1
        elif ids[a] < ids[b]:
            a += 1
        else:
            b += 1
    return count


@kernel
def share(part, whole):
    """Divide; nothing of nothing is all of it."""
    if whole == 0:
        return 1.0
    return part / whole


@kernel
def similarities(offsets, ids, covered, covering):
    """Measure pairs of rows: precision and recall of the second in place of the first."""
    precision, recall = np.empty(len(covered), np.float64), np.empty(len(covered), np.float64)
    for n in range(len(covered)):
        i, j = covered[n], covering[n]
        common = in_common(offsets, ids, i, j)
        precision[n] = share(common, offsets[j + 1] - offsets[j])
        recall[n] = share(common, offsets[i + 1] - offsets[i])
    return precision, recall


@kernel
def weights_in_common(offsets, ids, one, other, covered, covering):
    """Sum up two weights that the first row of each pair gives to the ids that both have."""
    first, second = np.zeros(len(covered), np.float64), np.zeros(len(covered), np.float64)
    for n in range(len(covered)):
        a, b = offsets[covered[n]], offsets[covering[n]]
        end_a, end_b = offsets[covered[n] + 1], offsets[covering[n] + 1]
        while a < end_a and b < end_b:
            if ids[a] == ids[b]:
                first[n] += one[a]
                second[n] += other[a]
                a += 1
                b += 1
            elif ids[a] < ids[b]:
                a += 1
            else:
                b += 1
    return first, second


@kernel
def mean_similarities(batches, ends, offsets, ids, covered, covering):
    """Measure pairs of batches: mean precision and recall over the selections of the first.

    Each is stood for by the selection of the second that ended last by then, or else by its first one. Also
    tells whether both have the same selections.
    """
    size = len(covered)
    precision, recall = np.zeros(size, np.float64), np.zeros(size, np.float64)
    equal = np.empty(size, np.bool_)
    for n in range(size):
        first, last = batches[covered[n]], batches[covered[n] + 1]
        other, end = batches[covering[n]], batches[covering[n] + 1]
        same = last - first == end - other
        start = other
        for s in range(first, last):
            while other + 1 < end and ends[other + 1] <= ends[s]:
                other += 1
            common = in_common(offsets, ids, s, other)
            precision[n] += share(common, offsets[other + 1] - offsets[other])
            recall[n] += share(common, offsets[s + 1] - offsets[s])
            if same:
                twin = start + s - first
                length = offsets[s + 1] - offsets[s]
                same = offsets[twin + 1] - offsets[twin] == length
                same = same and in_common(offsets, ids, s, twin) == length
        precision[n] /= last - first
        recall[n] /= last - first
        equal[n] = same
    return precision, recall, equal


@kernel
def disparities(offsets, ids, used_offsets, used, holder_offsets, holders, interests):
    """Tell for each row which share of (event, interest that was used) has the event outside the interest.

    `used` are the interests behind each row, `holders` those that hold each event.
    """
    found = np.zeros(len(offsets) - 1, np.float64)
    mark = np.full(interests, -1, np.int64)
    for row in range(len(found)):
        for u in range(used_offsets[row], used_offsets[row + 1]):
            mark[used[u]] = row
        many = used_offsets[row + 1] - used_offsets[row]
        events = offsets[row + 1] - offsets[row]
        if many == 0 or events == 0:
            continue
        held = 0
        for e in range(offsets[row], offsets[row + 1]):
            for h in range(holder_offsets[ids[e]], holder_offsets[ids[e] + 1]):
                if mark[holders[h]] == row:
                    held += 1
        found[row] = 1.0 - held / (events * many)
    return found
