"""Ways to save work that change nothing in what is told; tests compare runs with and without them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Optimisations:
    """Which ways to save work are taken."""

    lemma_2: bool = True
    """Whether a switch that changes no event keeps the run of the interest before it."""
    merge_cohorts: bool = True
    """Whether cohorts are made into one when there are many."""
    plain_once: bool = True
    """Whether what nothing can prevent is found once for all interests."""
    share_once: bool = True
    """Whether mobile queries that find the same things once find them together."""


ALL = Optimisations()
