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
import numpy.typing as npt

from whimbrel.plan.migration.kernels.shortest import shortest_path, shortest_paths

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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
    first_discount: float = 1.0

    def shortest(self) -> Path:
        """Find the cheapest way."""
        weights = self._arrays()
        hosts, score, added = shortest_path(*weights)
        return Path(self._positions(hosts), float(score), added)

    def k_shortest(self, k: int) -> list[Path]:
        """Find the k cheapest ways with resources, cheapest first; fewer, if there are not so many."""
        hosts, scores = shortest_paths(*self._arrays(), k)
        none = np.zeros(len(self.placement), dtype=bool)
        return [
            Path(self._positions(row), float(score), none)
            for row, score in zip(hosts, scores, strict=True)
            if np.isfinite(score)
        ]

    def score_of(self, hosts: Ints) -> float:
        """Add up the weights along a way."""
        columns = np.searchsorted(self.positions, hosts)
        every = np.arange(len(hosts))
        moves = np.flatnonzero(np.diff(columns)) + 1
        prices = self.migration[columns[moves - 1], columns[moves]]
        if len(prices) and self.start is not None:
            prices = np.concatenate([[self.first_discount * prices[0]], prices[1:]])
        return float(self._weights()[every, columns].sum() + prices.sum())

    def without(self, rejected: Bools) -> TimeGraph:
        """Leave out vertices, by step and position in the problem."""
        return replace(self, allowed=self.allowed & ~rejected[:, self.positions])

    def _weights(self) -> Floats:
        return self.placement + self.penalty * self.broken

    def _positions(self, columns: Ints) -> Ints:
        # The column after the last stands for the present host before it was left.
        own = self.positions if self.start is None else np.append(self.positions, self.positions[self.start])
        return own[columns]

    def _arrays(self) -> tuple[Floats, Bools, Floats, Ints, Floats]:
        """Return what the kernels take: migrations by target, so that they read along rows."""
        weights, allowed, migration, spans = self._weights(), self.allowed, self.migration.copy(), self.spans
        np.fill_diagonal(migration, np.inf)
        if self.start is None:
            initial = np.where(allowed[0] if allowed[0].any() else True, 0.0, np.inf)
        elif self.first_discount == 1.0:
            initial = np.full(len(self.positions), np.inf)
            initial[self.start] = 0.0
        else:
            at = self.start
            weights = np.column_stack([weights, weights[:, at]])
            allowed = np.column_stack([allowed, allowed[:, at]])
            # No way leads back to "not left yet", nor from it to where it is.
            away = np.append(self.first_discount * migration[at], np.inf)
            migration = np.column_stack([np.vstack([migration, away[:-1]]), np.full(len(away), np.inf)])
            spans = np.column_stack([np.vstack([spans, spans[at]]), np.ones(len(away), np.int64)])
            initial = np.append(np.full(len(self.positions), np.inf), 0.0)
        return (
            np.ascontiguousarray(weights),
            np.ascontiguousarray(allowed),
            np.ascontiguousarray(migration.T),
            np.ascontiguousarray(spans.T),
            initial,
        )
