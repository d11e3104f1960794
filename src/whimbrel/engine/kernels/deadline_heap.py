"""A heap of combinations that wait for a deadline: arrays side by side, earliest first.

A binary heap (Williams, 1964): putting in and taking out cost O(log n) exchanges. Combinations of one
deadline come in the order in which they were put in, by their serial numbers, so that results do not depend
on the heap.
"""

from __future__ import annotations

from whimbrel.space.kernels.jit import kernel


@kernel
def heap_less(deadline, serial, i, j):
    """Tell whether waiting combination i fires before j."""
    return deadline[i] < deadline[j] or (deadline[i] == deadline[j] and serial[i] < serial[j])


@kernel
def heap_swap(deadline, serial, trigger, fine, bound, i, j):
    """Exchange two waiting combinations."""
    deadline[i], deadline[j] = deadline[j], deadline[i]
    serial[i], serial[j] = serial[j], serial[i]
    trigger[i], trigger[j] = trigger[j], trigger[i]
    fine[i], fine[j] = fine[j], fine[i]
    for part in range(bound.shape[1]):
        bound[i, part], bound[j, part] = bound[j, part], bound[i, part]


@kernel
def heap_up(deadline, serial, trigger, fine, bound, i):
    """Let the newest waiting combination rise to its place."""
    while i > 0:
        parent = (i - 1) // 2
        if not heap_less(deadline, serial, i, parent):
            return
        heap_swap(deadline, serial, trigger, fine, bound, i, parent)
        i = parent


@kernel
def heap_pop(deadline, serial, trigger, fine, bound, size):
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
