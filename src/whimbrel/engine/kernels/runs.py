"""Walks a machine of states along the events: the matches in the making (*runs*), all at once.

Runs of one partition that will do the same from now on (same state, same beginning where that counts, same
values of what conditions read) are one. What they have taken is not copied: it hangs on *nodes*, each an
event with what was taken before it, or a union of two others. So a thousand ways to have come here cost
as much as one, and are listed, or only counted, when they are complete.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whimbrel.engine.kernels.jit import kernel
from whimbrel.engine.kernels.machine import STACK, holds

TAKE, IGNORE = 0, 1
ON_THE_WAY, START, FINAL, STOPPED, WAITING = 0, 1, 2, 3, 4
FIRST, LAST, COUNT, SUM, MIN, MAX = 0, 1, 2, 3, 4, 5

UNUSED, FREE, NODES, MATCHES, TIMEOUTS, DUE, SERIAL, DROPPED, LIVE, MISSED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
COUNTS = 10
NO_END = 2**63 - 1
MOST = 2**62
"""Where numbers of matches stop growing."""


class Machine(NamedTuple):
    """The states and what can be done with an event in each."""

    kind: np.ndarray
    moves: np.ndarray
    """Per state where its moves begin; one more for the end."""
    action: np.ndarray
    target: np.ndarray
    step: np.ndarray
    formula: np.ndarray
    """Per move the terms that open it, and the terms under which it completes a match: four bounds."""
    need: np.ndarray
    forbid: np.ndarray
    uses: np.ndarray
    """Per state the tests that its moves ask for."""
    gap: np.ndarray
    """Per state how long after the last event it may still be left; -1: for ever."""
    spec: np.ndarray
    """See the places below."""


BEGIN_STATE, WITHIN, KEEPS_BEGIN, KEEPS_LAST, WANTS_TIMEOUTS, LIMIT, DROPS_OLDEST, MOST_MOVES = range(8)
SKIP, SKIP_STEP, THROWS, FINAL_STATE = 8, 9, 10, 11
SPEC = 12
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = 1, 2, 3, 4


class Tests(NamedTuple):
    """Programs of the tests that read what was taken before, and the values that are kept for them."""

    program: np.ndarray
    code: np.ndarray
    int_constants: np.ndarray
    float_constants: np.ndarray
    registers: np.ndarray
    """Per value kept: step, kind, whether a float, place; place (-1: none) of its source, whether a float."""
    totals: np.ndarray
    """Per value summed up where matches are counted: step, whether a float, place (-1: events count)."""


TOTAL_STEP, TOTAL_FLOAT, TOTAL_PLACE = 0, 1, 2


class Events(NamedTuple):
    """The events of a batch, in order."""

    key: np.ndarray
    bits: np.ndarray
    code: np.ndarray
    """Which of the different bit patterns it has, for the table of what concerns nobody."""
    time: np.ndarray
    start: np.ndarray
    ident: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    nulls: np.ndarray


class Runs(NamedTuple):
    """Matches in the making, linked by partition and state; unused places are linked too."""

    state: np.ndarray
    key: np.ndarray
    node: np.ndarray
    begin: np.ndarray
    serial: np.ndarray
    last: np.ndarray
    next: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    nulls: np.ndarray


class Nodes(NamedTuple):
    """What was taken: an event and what came before it, or (step -1) the union of two nodes."""

    ident: np.ndarray
    step: np.ndarray
    left: np.ndarray
    right: np.ndarray
    paths: np.ndarray
    """How many different ways lead here."""
    length: np.ndarray
    """How many events all of them have together."""
    serial: np.ndarray
    """The number of the event since the beginning."""
    sums: np.ndarray
    """Per value that is summed up: over all ways, the sum of the values of their events."""
    numbers: np.ndarray
    """... and how many values there are."""
    least: np.ndarray
    greatest: np.ndarray


class Found(NamedTuple):
    """Completed matches and runs out of time: the node and when."""

    node: np.ndarray
    key: np.ndarray
    at: np.ndarray
    """The deadline that completed it or that passed; -1 where an event completed it."""
    by: np.ndarray
    """The number of the event that completed it; -1 where time did."""


class Scratch(NamedTuple):
    """Room to work in."""

    fresh: np.ndarray
    taken: np.ndarray
    """Per step the node in which the run at hand has taken the event."""
    table: np.ndarray
    stamp: np.ndarray
    indexed: np.ndarray
    """Per state the stamp with which its runs were put into the table."""
    heap: np.ndarray
    """Four queues, for matching in order."""
    bound: np.ndarray
    hot: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    nulls: np.ndarray
    si: np.ndarray
    sf: np.ndarray
    sn: np.ndarray


def scratch(fresh: int, steps: int, states: int, ints: int, floats: int) -> Scratch:
    """Make room to work in."""
    size = 64
    while size < 4 * fresh:
        size *= 2
    return Scratch(
        np.zeros(fresh, np.int64), np.full(max(steps, 1), -1, np.int64),
        np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(states, np.int64),
        np.zeros((4, fresh), np.int64),
        np.array([0, 1], np.int64), np.zeros((2, 2), np.int64),
        np.zeros((2, max(ints, 1)), np.int64), np.zeros((2, max(floats, 1)), np.float64),
        np.zeros(2, np.uint64),
        np.zeros(STACK, np.int64), np.zeros(STACK, np.float64), np.zeros(STACK, np.uint8),
    )  # fmt: skip


# -- tests ---------------------------------------------------------------------------------------------


@kernel
def opens(machine, begin, stop, bits):
    """Tell whether one of the terms begin to stop holds."""
    for term in range(begin, stop):
        if bits & machine.need[term] == machine.need[term] and bits & machine.forbid[term] == 0:
            return True
    return False


@kernel
def passed(machine, tests, events, i, runs, run, state, work, blank):
    """Give the tests that event `i` passes, seen from a run (-1: from the beginning) in `state`."""
    bits = events.bits[i]
    asked = bits & machine.uses[state]
    if asked == 0:
        return bits
    loaded = False
    for test in range(len(tests.program)):
        if (asked >> np.uint64(test)) & np.uint64(1) == 0:
            continue
        begin = tests.program[test, 0]
        stop = tests.program[test, 1]
        if begin == stop:
            continue
        if not loaded:
            load(events, i, runs, run, work, blank)
            loaded = True
        if not holds(
            tests.code, begin, stop, tests.int_constants, tests.float_constants, work.bound, work.hot,
            work.ints, work.floats, work.nulls, work.si, work.sf, work.sn,
        ):  # fmt: skip
            bits = bits & ~(np.uint64(1) << np.uint64(test))
    return bits


@kernel
def load(events, i, runs, run, work, blank):
    """Bring the values of the event and of the run to where programs read them.

    `blank` has the null marks of a run that has taken nothing.
    """
    work.hot[0, 0] = events.time[i]
    work.hot[0, 1] = events.start[i]
    for place in range(events.ints.shape[1]):
        work.ints[0, place] = events.ints[i, place]
    for place in range(events.floats.shape[1]):
        work.floats[0, place] = events.floats[i, place]
    work.nulls[0] = events.nulls[i]
    if run < 0:
        for place in range(runs.ints.shape[1]):
            work.ints[1, place] = 0
        work.nulls[1] = blank
        return
    for place in range(runs.ints.shape[1]):
        work.ints[1, place] = runs.ints[run, place]
    for place in range(runs.floats.shape[1]):
        work.floats[1, place] = runs.floats[run, place]
    work.nulls[1] = runs.nulls[run]


@kernel
def remember(tests, events, i, step, runs, run):
    """Update the values that conditions read, now that `run` has taken event `i` for `step`."""
    for register in range(len(tests.registers)):
        if tests.registers[register, 0] != step:
            continue
        kind = tests.registers[register, 1]
        is_float = tests.registers[register, 2] == 1
        place = tests.registers[register, 3]
        made_from = tests.registers[register, 4]
        bit = np.uint64(1) << np.uint64(place + 32 if is_float else place)
        if kind == COUNT:
            if made_from >= 0 and _is_null(events, i, tests.registers[register, 5] == 1, made_from):
                continue
            runs.ints[run, place] += 1
            continue
        if made_from < 0 or _is_null(events, i, tests.registers[register, 5] == 1, made_from):
            continue
        is_first = runs.nulls[run] & bit != 0
        if is_float:
            if tests.registers[register, 5] == 1:
                value = events.floats[i, made_from]
            else:
                value = float(events.ints[i, made_from])
            old = runs.floats[run, place]
            if is_first or kind == LAST:
                runs.floats[run, place] = value
            elif kind == SUM:
                runs.floats[run, place] = old + value
            elif kind == MIN:
                runs.floats[run, place] = min(old, value)
            elif kind == MAX:
                runs.floats[run, place] = max(old, value)
        else:
            whole = events.ints[i, made_from]
            before = runs.ints[run, place]
            if is_first or kind == LAST:
                runs.ints[run, place] = whole
            elif kind == SUM:
                runs.ints[run, place] = before + whole
            elif kind == MIN:
                runs.ints[run, place] = min(before, whole)
            elif kind == MAX:
                runs.ints[run, place] = max(before, whole)
        runs.nulls[run] = runs.nulls[run] & ~bit


@kernel
def _is_null(events, i, is_float, place):
    at = np.uint64(place + 32 if is_float else place)
    return (events.nulls[i] >> at) & np.uint64(1) == 1


# -- runs and nodes --------------------------------------------------------------------------------------


@kernel
def new_run(runs, count, of, state, node, key, begin, serial, last, blank):
    """Give an unused place to a run that goes on from run `of` (-1: from the beginning)."""
    run = count[FREE]
    count[FREE] = runs.next[run]
    count[LIVE] += 1
    runs.state[run] = state
    runs.key[run] = key
    runs.node[run] = node
    runs.begin[run] = begin
    runs.serial[run] = serial
    runs.last[run] = last
    runs.next[run] = -1
    if of >= 0:
        for place in range(runs.ints.shape[1]):
            runs.ints[run, place] = runs.ints[of, place]
        for place in range(runs.floats.shape[1]):
            runs.floats[run, place] = runs.floats[of, place]
        runs.nulls[run] = runs.nulls[of]
    else:
        for place in range(runs.ints.shape[1]):
            runs.ints[run, place] = 0
        for place in range(runs.floats.shape[1]):
            runs.floats[run, place] = 0.0
        runs.nulls[run] = blank
    return run


@kernel
def drop_run(runs, count, run):
    """Let a place be used again."""
    runs.state[run] = -1
    runs.next[run] = count[FREE]
    count[FREE] = run
    count[LIVE] -= 1


@kernel
def new_node(tests, events, i, nodes, count, step, left):
    """Add event `i` to what was taken before (-1: nothing)."""
    node = count[NODES]
    count[NODES] += 1
    nodes.ident[node] = events.ident[i]
    nodes.step[node] = step
    nodes.left[node] = left
    nodes.right[node] = -1
    nodes.serial[node] = count[SERIAL] + i
    if left < 0:
        nodes.paths[node] = 1
        nodes.length[node] = 1
    else:
        nodes.paths[node] = nodes.paths[left]
        nodes.length[node] = min(MOST, nodes.length[left] + nodes.paths[left])
    for total in range(len(tests.totals)):
        add_up(tests, events, i, nodes, total, node, left)
    return node


@kernel
def add_up(tests, events, i, nodes, total, node, left):
    """Sum a value up over all ways that lead to a node."""
    if left >= 0:
        nodes.sums[node, total] = nodes.sums[left, total]
        nodes.numbers[node, total] = nodes.numbers[left, total]
        nodes.least[node, total] = nodes.least[left, total]
        nodes.greatest[node, total] = nodes.greatest[left, total]
    else:
        nodes.sums[node, total] = 0.0
        nodes.numbers[node, total] = 0
        nodes.least[node, total] = np.inf
        nodes.greatest[node, total] = -np.inf
    place = tests.totals[total, TOTAL_PLACE]
    is_float = tests.totals[total, TOTAL_FLOAT] == 1
    if nodes.step[node] != tests.totals[total, TOTAL_STEP]:
        return
    value = 0.0
    if place >= 0:
        if _is_null(events, i, is_float, place):
            return
        value = events.floats[i, place] if is_float else float(events.ints[i, place])
    nodes.sums[node, total] += value * nodes.paths[node]
    nodes.numbers[node, total] = min(MOST, nodes.numbers[node, total] + nodes.paths[node])
    nodes.least[node, total] = min(nodes.least[node, total], value)
    nodes.greatest[node, total] = max(nodes.greatest[node, total], value)


@kernel
def union(nodes, count, left, right):
    """Unite two nodes."""
    node = count[NODES]
    count[NODES] += 1
    nodes.ident[node] = -1
    nodes.step[node] = -1
    nodes.left[node] = left
    nodes.right[node] = right
    nodes.serial[node] = -1
    nodes.paths[node] = min(MOST, nodes.paths[left] + nodes.paths[right])
    nodes.length[node] = min(MOST, nodes.length[left] + nodes.length[right])
    for total in range(nodes.sums.shape[1]):
        nodes.sums[node, total] = nodes.sums[left, total] + nodes.sums[right, total]
        nodes.numbers[node, total] = min(MOST, nodes.numbers[left, total] + nodes.numbers[right, total])
        nodes.least[node, total] = min(nodes.least[left, total], nodes.least[right, total])
        nodes.greatest[node, total] = max(nodes.greatest[left, total], nodes.greatest[right, total])
    return node


@kernel
def deadline(machine, runs, run):
    """Give when a run is out of time."""
    end = NO_END
    if machine.spec[WITHIN] >= 0:
        end = runs.begin[run] + machine.spec[WITHIN]
    gap = machine.gap[runs.state[run]]
    if gap >= 0:
        end = min(end, runs.last[run] + gap)
    return end


@kernel
def note(found, count, which, node, key, at, by):
    """Write a match or a timed-out run down."""
    place = count[which]
    count[which] += 1
    found.node[place] = node
    found.key[place] = key
    found.at[place] = at
    found.by[place] = by


@kernel
def end_run(machine, runs, run, count, matches, timeouts, time):
    """Note what becomes of a run whose time is over; its place is still to be given back."""
    if machine.kind[runs.state[run]] == WAITING:
        note(matches, count, MATCHES, runs.node[run], runs.key[run], time, -1)
    elif machine.spec[WANTS_TIMEOUTS] == 1:
        note(timeouts, count, TIMEOUTS, runs.node[run], runs.key[run], time, -1)


@kernel
def expect(machine, runs, run, count):
    """Take note of when something happens to a run even if no event comes."""
    if machine.kind[runs.state[run]] == WAITING or machine.spec[WANTS_TIMEOUTS] == 1:
        count[DUE] = min(count[DUE], deadline(machine, runs, run))


# -- all matches: runs that will do the same are one ---------------------------------------------------------


@kernel
def walk(
    machine, tests, events, begin, inert, runs, head, alive, nodes, count, matches, timeouts, work, blank
):
    """Walk along the events from `begin` on; give where it stopped for want of room, or their number."""
    size = len(events.key)
    states = len(machine.kind)
    first = machine.spec[BEGIN_STATE]
    for i in range(begin, size):
        code = events.code[i]
        if inert[code, states]:
            continue
        key = events.key[i]
        need = (alive[key] + 2) * (machine.spec[MOST_MOVES] + 1)
        if (
            len(runs.state) - count[LIVE] < need
            or len(nodes.step) - count[NODES] < 2 * need
            or len(matches.node) - count[MATCHES] < 2 * need
            or len(timeouts.node) - count[TIMEOUTS] < need
            or len(work.fresh) < need
        ):
            return i
        fresh = 0
        for state in range(states):
            if inert[code, state] or state == first:
                continue
            before = -1
            run = head[key, state]
            while run >= 0:
                after = runs.next[run]
                end = deadline(machine, runs, run)
                keeps = False
                if end <= events.time[i]:
                    end_run(machine, runs, run, count, matches, timeouts, end)
                else:
                    keeps, fresh = step_run(
                        machine, tests, events, i, runs, run, state, nodes, count, matches, work, fresh, blank
                    )
                if keeps:
                    before = run
                else:
                    if before < 0:
                        head[key, state] = after
                    else:
                        runs.next[before] = after
                    drop_run(runs, count, run)
                    alive[key] -= 1
                run = after
        if not inert[code, first]:
            _, fresh = step_run(
                machine, tests, events, i, runs, -1, first, nodes, count, matches, work, fresh, blank
            )
        link(machine, runs, head, alive, nodes, count, work, key, fresh)
        if alive[key] > machine.spec[LIMIT]:
            thin_out(machine, runs, head, alive, count, key)
    return size


@kernel
def step_run(machine, tests, events, i, runs, run, state, nodes, count, matches, work, fresh, blank):
    """Do with event `i` what can be done in a run; give whether it stays, and how many runs are fresh."""
    bits = passed(machine, tests, events, i, runs, run, state, work, blank)
    old = fresh
    keeps = False
    stopped = False
    if run >= 0:
        node = runs.node[run]
        began = runs.begin[run]
        serial = runs.serial[run]
        last = runs.last[run]
        key = runs.key[run]
    else:
        node = -1
        began = events.start[i]
        serial = count[SERIAL] + i
        last = events.time[i]
        key = events.key[i]
    for move in range(machine.moves[state], machine.moves[state + 1]):
        if not opens(machine, machine.formula[move, 0], machine.formula[move, 1], bits):
            continue
        target = machine.target[move]
        if machine.action[move] == IGNORE:
            if run < 0:
                continue
            if target == state:
                keeps = True
            elif machine.kind[target] == FINAL:
                note(matches, count, MATCHES, node, key, -1, count[SERIAL] + i)
            else:
                made = new_run(runs, count, run, target, node, key, began, serial, last, blank)
                work.fresh[fresh] = made
                fresh += 1
            continue
        if machine.kind[target] == STOPPED:
            stopped = True
            continue
        step = machine.step[move]
        if work.taken[step] < 0:
            work.taken[step] = new_node(tests, events, i, nodes, count, step, node)
        taken = work.taken[step]
        if machine.kind[target] == FINAL:
            note(matches, count, MATCHES, taken, key, -1, count[SERIAL] + i)
            continue
        made = new_run(runs, count, run, target, taken, key, began, serial, events.time[i], blank)
        remember(tests, events, i, step, runs, made)
        work.fresh[fresh] = made
        fresh += 1
        if opens(machine, machine.formula[move, 2], machine.formula[move, 3], bits):
            note(matches, count, MATCHES, taken, key, -1, count[SERIAL] + i)
    for step in range(len(work.taken)):
        work.taken[step] = -1
    if stopped:
        for place in range(old, fresh):
            drop_run(runs, count, work.fresh[place])
        return False, old
    return keeps, fresh


@kernel
def link(machine, runs, head, alive, nodes, count, work, key, fresh):
    """Join fresh runs with those that will do the same, and link the others."""
    if fresh == 0:
        return
    mask = len(work.table) - 1
    # A new stamp empties the table at once; places are found again by linear probing.
    work.stamp[0] += 1
    stamp = work.stamp[0]
    if alive[key] + fresh > 8:
        for place in range(fresh):
            state = runs.state[work.fresh[place]]
            if work.indexed[state] == stamp:
                continue
            work.indexed[state] = stamp
            run = head[key, state]
            while run >= 0:
                look_up(machine, runs, work, run, mask, stamp)
                run = runs.next[run]
        for place in range(fresh):
            run = work.fresh[place]
            same = look_up(machine, runs, work, run, mask, stamp)
            settle(machine, runs, head, alive, nodes, count, key, run, same)
        return
    for place in range(fresh):
        run = work.fresh[place]
        same = head[key, runs.state[run]]
        while same >= 0 and not alike(machine, runs, same, run):
            same = runs.next[same]
        settle(machine, runs, head, alive, nodes, count, key, run, same)


@kernel
def settle(machine, runs, head, alive, nodes, count, key, run, same):
    """Link a fresh run, or unite it with one that will do the same."""
    if same >= 0 and same != run:
        if runs.node[same] != runs.node[run]:
            runs.node[same] = union(nodes, count, runs.node[same], runs.node[run])
        drop_run(runs, count, run)
        return
    state = runs.state[run]
    runs.next[run] = head[key, state]
    head[key, state] = run
    alive[key] += 1
    expect(machine, runs, run, count)


@kernel
def alike(machine, runs, one, other):
    """Tell whether two runs of a partition will do the same from now on."""
    if runs.state[one] != runs.state[other]:
        return False
    if machine.spec[KEEPS_BEGIN] == 1 and runs.begin[one] != runs.begin[other]:
        return False
    if machine.spec[KEEPS_LAST] == 1 and runs.last[one] != runs.last[other]:
        return False
    if runs.nulls[one] != runs.nulls[other]:
        return False
    for place in range(runs.ints.shape[1]):
        if runs.ints[one, place] != runs.ints[other, place]:
            return False
    for place in range(runs.floats.shape[1]):
        if runs.floats[one, place] != runs.floats[other, place]:
            return False
    return True


@kernel
def look_up(machine, runs, work, run, mask, stamp):
    """Find a run like this one in the table, or add it; give it."""
    place = np.uint64(runs.state[run]) * np.uint64(0x9E3779B97F4A7C15)
    if machine.spec[KEEPS_BEGIN] == 1:
        place = (place ^ np.uint64(runs.begin[run])) * np.uint64(0xBF58476D1CE4E5B9)
    if machine.spec[KEEPS_LAST] == 1:
        place = (place ^ np.uint64(runs.last[run])) * np.uint64(0x94D049BB133111EB)
    for column in range(runs.ints.shape[1]):
        place = (place ^ np.uint64(runs.ints[run, column])) * np.uint64(0xBF58476D1CE4E5B9)
    for column in range(runs.floats.shape[1]):
        place = (place ^ np.uint64(np.int64(runs.floats[run, column] * 1024.0))) * np.uint64(
            0x94D049BB133111EB
        )
    at = np.int64((place ^ (place >> np.uint64(29))) & np.uint64(mask))
    while True:
        at = (at + 1) & mask
        if at == 0:
            continue  # the first place holds the stamp
        if work.stamp[at] != stamp:
            work.stamp[at] = stamp
            work.table[at] = run
            return run
        if alike(machine, runs, work.table[at], run):
            return work.table[at]


@kernel
def thin_out(machine, runs, head, alive, count, key):
    """Give up runs of a partition that has too many: those that began first, or the latest ones."""
    states = len(machine.kind)
    oldest = machine.spec[DROPS_OLDEST] == 1
    while alive[key] > machine.spec[LIMIT]:
        worst = -1
        for state in range(states):
            run = head[key, state]
            while run >= 0:
                if worst < 0 or (runs.serial[run] < runs.serial[worst]) == oldest:
                    worst = run
                run = runs.next[run]
        unlink(runs, head, key, worst)
        drop_run(runs, count, worst)
        alive[key] -= 1
        count[DROPPED] += 1


@kernel
def unlink(runs, head, key, wanted):
    """Take a run out of its list."""
    state = runs.state[wanted]
    run = head[key, state]
    if run == wanted:
        head[key, state] = runs.next[run]
        return
    while runs.next[run] != wanted:
        run = runs.next[run]
    runs.next[run] = runs.next[wanted]


@kernel
def sweep(machine, runs, head, alive, count, matches, timeouts, watermark):
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
                after = runs.next[run]
                end = deadline(machine, runs, run)
                if end > watermark:
                    expect(machine, runs, run, count)
                    before = run
                else:
                    if count[MATCHES] >= len(matches.node) or count[TIMEOUTS] >= len(timeouts.node):
                        return False
                    end_run(machine, runs, run, count, matches, timeouts, end)
                    if before < 0:
                        head[key, state] = after
                    else:
                        runs.next[before] = after
                    drop_run(runs, count, run)
                    alive[key] -= 1
                run = after
    return True


# -- skipping: runs one by one, in order --------------------------------------------------------------------
#
# Where a match decides what may still match, the order counts in which matches are found. It is that of Flink
# CEP: runs wait in a queue by the event they began with, those that began with the same one in the order
# that its heap leaves them in.

PARTIAL, COMPLETE = 0, 1
OLD, NOW, DONE, READY = 0, 1, 2, 3


@kernel
def walk_skipping(
    machine, tests, events, begin, inert, runs, head, alive, nodes, count, matches, timeouts, work, blank
):
    """Walk along the events in order, each match skipping others; give where it stopped for want of room."""
    size = len(events.key)
    first = machine.spec[BEGIN_STATE]
    for i in range(begin, size):
        key = events.key[i]
        if head[key, PARTIAL] < 0 and inert[events.code[i], first]:
            continue
        need = (alive[key] + 2) * (machine.spec[MOST_MOVES] + 2)
        if (
            len(runs.state) - count[LIVE] < need
            or len(nodes.step) - count[NODES] < need
            or len(matches.node) - count[MATCHES] < need
            or len(timeouts.node) - count[TIMEOUTS] < need
            or len(work.fresh) < need
        ):
            return i
        if head[key, PARTIAL] < 0:
            head[key, PARTIAL] = new_run(runs, count, -1, first, -1, key, 0, NO_END, 0, blank)
            alive[key] += 1
        now, done = let_pass(
            machine, runs, head, alive, nodes, count, matches, timeouts, work, key, events.time[i]
        )
        for place in range(now):
            work.heap[OLD, place] = work.heap[NOW, place]
        old = now
        now = 0
        ready = 0
        for place in range(old):
            run = work.heap[OLD, place]
            now, ready = step_in_order(
                machine, tests, events, i, runs, run, alive, nodes, count, work, blank, now, ready
            )
        for place in range(ready):
            done = push(work.heap[DONE], done, work.heap[READY, place], runs)
        now, done = give(machine, runs, alive, nodes, count, matches, work, key, now, done)
        store(runs, head, work, key, now, done)
        if alive[key] > machine.spec[LIMIT]:
            thin_out_queue(machine, runs, head, alive, count, work, key)
    return size


@kernel
def let_pass(machine, runs, head, alive, nodes, count, matches, timeouts, work, key, time):
    """Bring the queues of a partition to hand, without what is out of time; give how long they are."""
    now = 0
    done = 0
    ready = 0
    run = head[key, COMPLETE]
    while run >= 0:
        work.heap[DONE, done] = run
        done += 1
        run = runs.next[run]
    passed_by = False
    run = head[key, PARTIAL]
    while run >= 0:
        after = runs.next[run]
        end = NO_END if machine.kind[runs.state[run]] == START else deadline(machine, runs, run)
        if end > time:
            now = push(work.heap[NOW], now, run, runs)
        else:
            passed_by = True
            if machine.kind[runs.state[run]] == WAITING:
                runs.last[run] = end
                ready = push(work.heap[READY], ready, run, runs)
            else:
                if machine.spec[WANTS_TIMEOUTS] == 1:
                    note(timeouts, count, TIMEOUTS, runs.node[run], key, end, -1)
                drop_run(runs, count, run)
                alive[key] -= 1
        run = after
    if passed_by:
        for place in range(ready):
            done = push(work.heap[DONE], done, work.heap[READY, place], runs)
        now, done = give(machine, runs, alive, nodes, count, matches, work, key, now, done)
    return now, done


@kernel
def step_in_order(machine, tests, events, i, runs, run, alive, nodes, count, work, blank, now, ready):
    """Do with event `i` what can be done in a run; queue what becomes of it."""
    state = runs.state[run]
    key = runs.key[run]
    is_start = machine.kind[state] == START
    bits = passed(machine, tests, events, i, runs, -1 if is_start else run, state, work, blank)
    fresh = 0
    keeps = is_start
    stopped = False
    for move in range(machine.moves[state], machine.moves[state + 1]):
        if not opens(machine, machine.formula[move, 0], machine.formula[move, 1], bits):
            continue
        target = machine.target[move]
        node = runs.node[run]
        if machine.action[move] == IGNORE:
            if is_start:
                continue
            if target == state:
                keeps = True
                work.fresh[fresh] = run
            else:
                work.fresh[fresh] = new_run(
                    runs,
                    count,
                    run,
                    target,
                    node,
                    key,
                    runs.begin[run],
                    runs.serial[run],
                    runs.last[run],
                    blank,
                )
                alive[key] += 1
            fresh += 1
            continue
        if machine.kind[target] == STOPPED:
            stopped = True
            continue
        step = machine.step[move]
        serial = count[SERIAL] + i
        if work.taken[step] < 0:
            work.taken[step] = new_node(tests, events, i, nodes, count, step, node)
        taken = work.taken[step]
        began = events.start[i] if is_start else runs.begin[run]
        origin = serial if is_start else runs.serial[run]
        of = -1 if is_start else run
        made = new_run(runs, count, of, target, taken, key, began, origin, events.time[i], blank)
        remember(tests, events, i, step, runs, made)
        work.fresh[fresh] = made
        fresh += 1
        alive[key] += 1
        if opens(machine, machine.formula[move, 2], machine.formula[move, 3], bits):
            work.fresh[fresh] = new_run(
                runs, count, of, machine.spec[FINAL_STATE], taken, key, began, origin, events.time[i], blank
            )
            fresh += 1
            alive[key] += 1
    for step in range(len(work.taken)):
        work.taken[step] = -1
    if is_start:
        work.fresh[fresh] = run
        fresh += 1
    for place in range(fresh):
        made = work.fresh[place]
        if machine.kind[runs.state[made]] == FINAL:
            runs.last[made] = -1
            ready = push(work.heap[READY], ready, made, runs)
        elif not stopped or (made == run and is_start):
            now = push(work.heap[NOW], now, made, runs)
        elif made != run:
            drop_run(runs, count, made)
            alive[key] -= 1
    if not keeps or (stopped and not is_start):
        drop_run(runs, count, run)
        alive[key] -= 1
    return now, ready


@kernel
def give(machine, runs, alive, nodes, count, matches, work, key, now, done):
    """Give the completed matches that nothing earlier can come before, each skipping what it skips."""
    while done > 0 and (now == 0 or runs.serial[work.heap[DONE, 0]] <= runs.serial[work.heap[NOW, 0]]):
        match = work.heap[DONE, 0]
        done = pop(work.heap[DONE], done, runs)
        border = skip_border(machine, runs, nodes, count, match)
        if border >= 0:
            now = prune(runs, alive, count, work.heap[NOW], now, border, key)
            done = prune(runs, alive, count, work.heap[DONE], done, border, key)
        note(matches, count, MATCHES, runs.node[match], key, runs.last[match], -1)
        drop_run(runs, count, match)
        alive[key] -= 1
    return now, done


@kernel
def skip_border(machine, runs, nodes, count, match):
    """Give the event up to which nothing may begin any more; -1: nothing is skipped."""
    how = machine.spec[SKIP]
    border = -1
    least = NO_END
    node = runs.node[match]
    while node >= 0:
        serial = nodes.serial[node]
        least = min(least, serial)
        if how == PAST_LAST:
            border = max(border, serial)
        elif nodes.step[node] == machine.spec[SKIP_STEP]:
            if how == TO_FIRST:
                border = serial
            elif how == TO_LAST:
                border = max(border, serial)
        node = nodes.left[node]
    if how == TO_NEXT:
        return least
    if how == PAST_LAST:
        return border
    if machine.spec[THROWS] == 1 and (border < 0 or border == least):
        count[MISSED] = 1
    return border - 1 if border >= 0 else -1


@kernel
def prune(runs, alive, count, heap, size, border, key):
    """Drop the runs of a queue that began at or before `border`."""
    kept = 0
    for place in range(size):
        run = heap[place]
        if runs.serial[run] <= border:
            drop_run(runs, count, run)
            alive[key] -= 1
        else:
            heap[kept] = run
            kept += 1
    if kept < size:
        for place in range(kept // 2 - 1, -1, -1):
            sift_down(heap, kept, place, heap[place], runs)
    return kept


@kernel
def push(heap, size, run, runs):
    """Add a run to a queue; give its new length."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if runs.serial[run] >= runs.serial[heap[parent]]:
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
        if child + 1 < size and runs.serial[heap[child]] > runs.serial[heap[child + 1]]:
            child += 1
        if runs.serial[run] <= runs.serial[heap[child]]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


@kernel
def store(runs, head, work, key, now, done):
    """Link the queues of a partition in their order."""
    chain(runs, head, key, PARTIAL, work.heap[NOW], now)
    chain(runs, head, key, COMPLETE, work.heap[DONE], done)


@kernel
def chain(runs, head, key, which, heap, size):
    """Link the runs of one queue."""
    head[key, which] = -1 if size == 0 else heap[0]
    for place in range(size):
        runs.next[heap[place]] = heap[place + 1] if place + 1 < size else -1


@kernel
def thin_out_queue(machine, runs, head, alive, count, work, key):
    """Give up runs of a partition that has too many."""
    oldest = machine.spec[DROPS_OLDEST] == 1
    size = 0
    run = head[key, PARTIAL]
    while run >= 0:
        work.heap[OLD, size] = run
        size += 1
        run = runs.next[run]
    while alive[key] > machine.spec[LIMIT] and size > 1:
        worst = -1
        for place in range(size):
            run = work.heap[OLD, place]
            if machine.kind[runs.state[run]] == START:
                continue
            if worst < 0 or (runs.serial[run] < runs.serial[work.heap[OLD, worst]]) == oldest:
                worst = place
        drop_run(runs, count, work.heap[OLD, worst])
        alive[key] -= 1
        count[DROPPED] += 1
        for place in range(worst, size - 1):
            work.heap[OLD, place] = work.heap[OLD, place + 1]
        size -= 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(work.heap[OLD], size, place, work.heap[OLD, place], runs)
    chain(runs, head, key, PARTIAL, work.heap[OLD], size)


@kernel
def sweep_skipping(machine, runs, head, alive, nodes, count, matches, timeouts, work, watermark):
    """Let time pass for all partitions; give whether there was room for what that completes."""
    count[DUE] = NO_END
    for key in range(head.shape[0]):
        if alive[key] < 2:
            continue
        if (
            len(matches.node) - count[MATCHES] < alive[key]
            or len(timeouts.node) - count[TIMEOUTS] < alive[key]
            or work.heap.shape[1] < alive[key] + 1
        ):
            return False
        now, done = let_pass(
            machine, runs, head, alive, nodes, count, matches, timeouts, work, key, watermark
        )
        store(runs, head, work, key, now, done)
        for place in range(now):
            run = work.heap[NOW, place]
            if machine.kind[runs.state[run]] != START and (
                done > 0 or machine.kind[runs.state[run]] == WAITING or machine.spec[WANTS_TIMEOUTS] == 1
            ):
                count[DUE] = min(count[DUE], deadline(machine, runs, run))
    return True


# -- listing ----------------------------------------------------------------------------------------------


@kernel
def list_paths(nodes, wanted, offsets, lengths, idents, steps):
    """List all ways that lead to the wanted nodes: for each its events from the first to the last.

    `offsets` gives where the ways of each wanted node begin, `lengths` receives the length of every way.
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
            if nodes.step[node] < 0:
                stack[top + 1] = nodes.right[node]
                depth[top + 1] = long
                stack[top + 2] = nodes.left[node]
                depth[top + 2] = long
                top += 2
                continue
            if long >= len(path_ident):
                path_ident = np.concatenate((path_ident, np.zeros(len(path_ident), np.int64)))
                path_step = np.concatenate((path_step, np.zeros(len(path_step), np.int64)))
            path_ident[long] = nodes.ident[node]
            path_step[long] = nodes.step[node]
            long += 1
            if nodes.left[node] >= 0:
                top += 1
                stack[top] = nodes.left[node]
                depth[top] = long
                continue
            lengths[way] = long
            way += 1
            for number in range(long):
                idents[written + number] = path_ident[long - 1 - number]
                steps[written + number] = path_step[long - 1 - number]
            written += long
    return written


@kernel
def members(nodes, wanted, owner, seen, stamp, idents, owners):
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
            if nodes.step[node] >= 0:
                if written < len(idents):
                    idents[written] = nodes.ident[node]
                    owners[written] = owner[place]
                written += 1
            if nodes.left[node] >= 0:
                top += 1
                stack[top] = nodes.left[node]
            if nodes.right[node] >= 0:
                top += 1
                stack[top] = nodes.right[node]
    return written


@kernel
def mark_nodes(nodes, size, live):
    """Mark everything below the nodes that are marked. A node's parts are older than itself."""
    for node in range(size - 1, -1, -1):
        if live[node]:
            if nodes.left[node] >= 0:
                live[nodes.left[node]] = 1
            if nodes.right[node] >= 0:
                live[nodes.right[node]] = 1
