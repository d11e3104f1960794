"""What the kernels of a pattern agree on: the slots of its number arrays, and its contexts."""

from __future__ import annotations

# Slots of `spec`, the numbers that describe a pattern.
PARTS, ABSENT, WITHIN, CONTEXT, CONSUMING, WAITS = 0, 1, 2, 3, 4, 5
KEEP_TRIGGER, RETAIN, SELECTING, CONDITIONS_LATE, CONSUMES, DISTINCT = 6, 7, 8, 9, 10, 11
SPEC = 12

# Columns of `hot`, the table of what a walk over the pool touches, one row an entry: its times, then for each
# slot the entry before it in the chain, then for each part the newest entry of the part before it.
END, START, PREV = 0, 1, 2

# Slots of `count`, the numbers that change.
ENTRIES, WAITING, SERIAL, NEXT, PHASE, FOUND = 0, 1, 2, 3, 4, 5
COUNTS = 6

EACH, RECENT, CHRONICLE, FIRST_MATCHING, CONTINUOUS, CUMULATIVE = 0, 1, 2, 3, 4, 5
TAKE_EACH, TAKE_FIRST, TAKE_LAST = 0, 1, 2
