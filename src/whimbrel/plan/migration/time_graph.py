"""The time graph of one operator (MigCEP, section 4.1; algorithm 4.2 of the thesis).

A vertex is a broker in a time step; an edge is to stay for a step, or to migrate, which spans the steps that
the transfer of the state takes. While it migrates, the operator goes on where it was. A weight is the
placement cost of the steps that the edge spans, and the cost of the migration.

The thesis leaves out vertices that break a latency restriction, and puts some back where a step would have
none. Here they stay, and each broken stream counts more than all costs together: a path breaks restrictions
only where it must, and as few as it can. Vertices without resources are left out; where a step could then not
be reached, those that stay where they can be reached are put back, as in the thesis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from whimbrel.plan.arrays import Bools, Floats, Ints
from whimbrel.plan.migration.kernels.shortest import shortest_path


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """A way through a time graph."""

    hosts: Ints
    """The position of the host in each step."""
    score: float
    """The sum of its weights, broken restrictions included."""
    added: Bools
    """The steps whose vertices lack resources, and were put back so that there is a way at all."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeGraph:
    """Where an operator can be in each step, and what that costs. Columns are brokers, rows time steps."""

    task: str
    positions: Ints
    """The brokers, by their position in the problem."""
    placement: Floats
    """C_pla of each vertex."""
    broken: Floats
    """How many streams break their restriction at each vertex."""
    allowed: Bools
    """Whether there are resources for each vertex."""
    migration: Floats
    """C_Mig from each broker (row) to each (column)."""
    spans: Ints
    """The steps that a migration takes."""
    penalty: float
    start: int | None = None
    """The column of the present host; None: it may begin anywhere."""

    def shortest(self) -> Path:
        """Find the cheapest way: O(steps x brokers^2)."""
        hosts, score, added = shortest_path(*self.arrays())
        return Path(self.positions[hosts], float(score), added)

    def score_of(self, hosts: Ints) -> float:
        """Add up the weights along a way."""
        columns = np.searchsorted(self.positions, hosts)
        every = np.arange(len(hosts))
        moves = np.flatnonzero(np.diff(columns)) + 1
        prices = self.migration[columns[moves - 1], columns[moves]]
        return float(self._weights()[every, columns].sum() + prices.sum())

    def without(self, rejected: Bools) -> TimeGraph:
        """Leave out vertices, by step and position in the problem."""
        return replace(self, allowed=self.allowed & ~rejected[:, self.positions])

    def _weights(self) -> Floats:
        return self.placement + self.penalty * self.broken

    def arrays(self) -> tuple[Floats, Bools, Floats, Ints, Floats]:
        """Return what the kernels take: migrations by target, so that they read along rows."""
        migration = self.migration.copy()
        np.fill_diagonal(migration, np.inf)
        if self.start is None:
            initial = np.where(self.allowed[0] if self.allowed[0].any() else True, 0.0, np.inf)
        else:
            initial = np.full(len(self.positions), np.inf)
            initial[self.start] = 0.0
        return (
            np.ascontiguousarray(self._weights()),
            np.ascontiguousarray(self.allowed),
            np.ascontiguousarray(migration.T),
            np.ascontiguousarray(self.spans.T),
            initial,
        )
