"""Lists what hangs on nodes: matches one by one, or the events of many.

Both go down the nodes depth first with a stack of their own: a loop may have taken thousands of events, and
recursion would not get as deep.
"""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.runs import (
    N_IDENT,
    N_LEFT,
    N_RIGHT,
    N_STEP,
)
from whimbrel.space.kernels.jit import kernel


@kernel
def list_paths(nodes, wanted, offsets, lengths, idents, steps):
    """List all ways that lead to the wanted nodes: for each its events from the first to the last.

    `offsets` gives where the ways of each wanted node begin, `lengths` receives the length of every way.
    Takes time linear in what is written: every node that is visited lies on a way that is listed.
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
                # The left one is listed first: it is older, and ways come in the order they were found in.
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
            # The way was gone from its last event back.
            for number in range(long):
                idents[written + number] = path_ident[long - 1 - number]
                steps[written + number] = path_step[long - 1 - number]
            written += long
    return written


@kernel
def list_events(nodes, wanted, owner, seen, stamp, idents, owners):
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
    """Mark everything below the nodes that are marked.

    A node's parts are older than itself, so that one pass from the youngest to the oldest is enough.
    """
    for node in range(size - 1, -1, -1):
        if live[node]:
            if nodes[node, N_LEFT] >= 0:
                live[nodes[node, N_LEFT]] = 1
            if nodes[node, N_RIGHT] >= 0:
                live[nodes[node, N_RIGHT]] = 1
