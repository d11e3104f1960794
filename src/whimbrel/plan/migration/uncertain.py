"""Plans that are not certain: Markov chains over time steps (MigCEP, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.horizon import Horizon

_NEARLY_ALL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One sequence of hosts, and its probability."""

    hosts: Ints
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class UncertainPlan:
    """Several expected placements in one time step, and the probabilities to go from one to the next.

    Two states of a step may stand for one broker: what comes after them differs.
    """

    name: str
    horizon: Horizon
    states: tuple[Ints, ...]
    """For each step, the brokers of its states."""
    first: Floats
    """The probabilities of the states of the first step."""
    transitions: tuple[Floats, ...]
    """For each step but the first, the probabilities from each state before (row) to each state (column)."""
    bandwidth_b_s: float = 0.0

    def __post_init__(self) -> None:
        if len(self.states) != self.horizon.steps or len(self.transitions) != self.horizon.steps - 1:
            raise NetworkError(f"the uncertain plan of {self.name!r} does not tell about every step once")
        for rows in (self.first[None, :], *self.transitions):
            if np.abs(rows.sum(axis=1) - 1.0).max() > 1e-6:
                raise NetworkError(f"probabilities in the uncertain plan of {self.name!r} do not add up to 1")

    @property
    def brokers(self) -> Ints:
        """All brokers that it may come to."""
        return np.unique(np.concatenate(self.states))

    def marginals(self) -> Iterator[tuple[Ints, Floats]]:
        """Give, for each step, the brokers of its states and the probability of each state."""
        probabilities = self.first
        yield self.states[0], probabilities
        for brokers, turn in zip(self.states[1:], self.transitions, strict=True):
            probabilities = probabilities @ turn
            yield brokers, probabilities

    def courses(self, most: int) -> list[Course]:
        """Return the most probable sequences of states, at most so many."""
        return list(islice(self._by_probability(), most))

    def samples(self, count: int) -> Ints:
        """List sequences (rows) that stand for all: so many parts of equal probability, one sequence of each.

        The most probable sequences may be much alike, and together have next to no probability, where it is
        uncertain when something happens. These are what evenly spaced numbers mean as arithmetic codes, so
        that the probability of each broker in each step is met as well as so many sequences can.
        """
        left = (np.arange(count) + 0.5) / count
        state, left = _decode(np.tile(self.first, (count, 1)), left)
        columns = [self.states[0][state]]
        for brokers, turn in zip(self.states[1:], self.transitions, strict=True):
            state, left = _decode(turn[state], left)
            columns.append(brokers[state])
        return np.array(columns).T

    def likely(self, most: int) -> list[Course]:
        """Return the most probable sequences where they are nearly all there is, else samples."""
        if most * self._largest_probability() > _NEARLY_ALL:
            best = self.courses(most)
            if sum(course.probability for course in best) > _NEARLY_ALL:
                return best
        rows, often = np.unique(self.samples(most), axis=0, return_counts=True)
        order = np.argsort(-often, kind="stable")
        return [Course(rows[n], float(often[n]) / most) for n in order]

    def _largest_probability(self) -> float:
        return float((self.first * self._best_ahead()[0]).max())

    def _best_ahead(self) -> list[Floats]:
        """Give, for each step, the largest probability that a sequence has from each state to the end."""
        rest = [np.ones(len(self.states[-1]))]
        for turn in reversed(self.transitions):
            rest.append((turn * rest[-1]).max(axis=1))
        rest.reverse()
        return rest

    def _by_probability(self) -> Iterator[Course]:
        # The best chance from each state to the end guides the search, so that it goes straight to the best
        # ones.
        rest = self._best_ahead()
        waiting: list[tuple[float, int, int, tuple[int, ...], float]] = []
        count = 0
        for state, probability in enumerate(self.first):
            heappush(
                waiting, (-probability * rest[0][state], count := count + 1, 0, (state,), float(probability))
            )
        while waiting and waiting[0][0] < 0:
            _, _, step, path, probability = heappop(waiting)
            if step == self.horizon.steps - 1:
                hosts = np.array([self.states[i][state] for i, state in enumerate(path)])
                yield Course(hosts, probability)
                continue
            turn = self.transitions[step][path[-1]]
            for state in np.flatnonzero(turn).tolist():
                there = probability * float(turn[state])
                bound = -there * rest[step + 1][state]
                heappush(waiting, (bound, count := count + 1, step + 1, (*path, state), there))


def _decode(probabilities: Floats, codes: Floats) -> tuple[Ints, Floats]:
    """Find the state that each code (a number from 0 to 1) means by its row of chances, and the code left."""
    ends = np.cumsum(probabilities, axis=1)
    ends /= ends[:, -1:]
    state = (ends <= codes[:, None]).sum(axis=1)
    every = np.arange(len(codes))
    width = probabilities[every, state] / probabilities.sum(axis=1)
    left = (codes - (ends[every, state] - width)) / width
    return state, np.clip(left, 0.0, np.nextafter(1.0, 0.0))


def from_courses(
    name: str, horizon: Horizon, courses: Sequence[Course], bandwidth_b_s: float = 0.0
) -> UncertainPlan:
    """Combine sequences of hosts to one chain; their probabilities are scaled to add up to 1.

    A state stands for all sequences that were the same up to its step, so that the chain has exactly these
    sequences.
    """
    total = sum(course.probability for course in courses)
    probabilities = np.array([course.probability / total for course in courses])
    rows = np.array([course.hosts for course in courses])
    group, width = np.zeros(len(rows), np.int64), int(rows.max()) + 2
    states, transitions = [], []
    before: Floats = np.ones(1)
    for step in range(horizon.steps):
        _, first, now = np.unique(group * width + rows[:, step], return_index=True, return_inverse=True)
        weight: Floats = np.bincount(now, probabilities, len(first)).astype(np.float64)
        turn = np.zeros((len(before), len(first)))
        turn[group[first], np.arange(len(first))] = weight
        transitions.append(turn / before[:, None])
        states.append(rows[first, step])
        group, before = now, weight
    return UncertainPlan(
        name, horizon, tuple(states), transitions[0][0], tuple(transitions[1:]), bandwidth_b_s
    )


def stay_if_possible(probabilities: Floats) -> tuple[Floats, ...]:
    """List transitions between the chances of states (columns) of each step that stay where they can."""
    before, after = probabilities[:-1], probabilities[1:]
    kept = np.minimum(before, after)
    gain = after - kept
    stays = np.divide(kept, before, out=np.ones_like(kept), where=before > 0)
    total = gain.sum(axis=1, keepdims=True)
    goes = np.divide(gain, total, out=np.zeros_like(gain), where=total > 0)
    rows = (1.0 - stays)[:, :, None] * goes[:, None, :]
    every = np.arange(probabilities.shape[1])
    rows[:, every, every] += stays
    return tuple(rows / rows.sum(axis=2, keepdims=True))


def only_forward(probabilities: Floats) -> tuple[Floats, ...]:
    """List transitions between the probabilities of ordered states (columns) in each step that never go back.

    The first part of the chance before goes to the first part after, and so on (the north-west corner rule).
    """
    ends = np.cumsum(probabilities, axis=1)
    starts = ends - probabilities
    low = np.maximum(starts[:-1, :, None], starts[1:, None, :])
    high = np.minimum(ends[:-1, :, None], ends[1:, None, :])
    moved = np.clip(high - low, 0.0, None)
    sums = moved.sum(axis=2, keepdims=True)
    stays = np.broadcast_to(np.eye(probabilities.shape[1]), moved.shape)
    return tuple(np.where(sums > 0, moved / np.where(sums > 0, sums, 1.0), stays))
