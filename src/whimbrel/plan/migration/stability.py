"""Keep plans stable: when not to make a new one, and how far to look ahead (MigCEP, sections 4.1 and 5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from whimbrel.plan.migration.time_graph import TimeGraph


def weight_threshold(graph: TimeGraph) -> float:
    """Return how far the weight of each step may change before another way can be the shortest.

    Section 5.2 bounds the change of each edge by half the difference between the weights of two ways. Summed
    up, that keeps the order of the ways only where all differences have one sign; half the difference of the
    sums, dealt out evenly over the steps, always does. No change is too large where there is only one way.
    """
    best = graph.k_shortest(2)
    if len(best) < 2:
        return math.inf
    return (best[1].score - best[0].score) / (2 * len(graph.placement))


def keep_small_changes(old: TimeGraph, new: TimeGraph, threshold: float) -> TimeGraph:
    """Take over only those placement costs that changed by more than a threshold.

    Where the graphs have other brokers or steps, the new one is taken as it is.
    """
    if old.placement.shape != new.placement.shape or not np.array_equal(old.positions, new.positions):
        return new
    changed = np.abs(new.placement - old.placement) > threshold
    return replace(new, placement=np.where(changed, new.placement, old.placement))


def initial_discount(stayed_s: float, patience_s: float) -> float:
    """Return what to count of the first migration: less, the longer an operator stayed, down to nothing.

    With few steps ahead a migration hardly ever pays; this way it happens in the end.
    """
    return max(0.0, 1.0 - stayed_s / patience_s) if patience_s > 0 else 0.0


@dataclass(slots=True)
class StepsAhead:
    """How many steps to plan: more, the longer predictions hold; half as many when one fails."""

    least: int = 10
    most: int = 500
    steps: int = 10

    def held(self) -> int:
        """Note that a mover was where it was expected to be."""
        self.steps = min(self.most, self.steps + self.least)
        return self.steps

    def failed(self) -> int:
        """Note that a mover was elsewhere."""
        self.steps = max(self.least, self.steps // 2)
        return self.steps
