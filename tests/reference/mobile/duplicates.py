"""Which correlation steps need not be done again after a switch (Algorithm 3.6, as its text says it)."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]
"""First and last time, both included."""


def is_duplicate(selection: Span, logs: Iterable[Span], outputs: Iterable[Span]) -> bool:
    """Tell whether what a selection makes was made for the interest before.

    All its events were there already: it lies in one log. And it is the very selection of which the results
    are kept: its first and last times are those of a buffered output.
    """
    first, last = selection
    return selection in set(outputs) and any(begin <= first and last <= end for begin, end in logs)
