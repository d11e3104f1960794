"""Uncertain plans of movers from what other movers did: learned connection patterns (MigCEP, section 4.2).

A graph holds, for each broker and the broker before it, where movers went on to, how often, and how long they
had stayed (the thesis, figure 4.6). The sources keep the mean of the stays. A plan by means alone lets a
mover leave at one time for certain, which is hardly ever right; so all stays are kept here. The chance to
leave in the next step is that of the movers that had stayed as long; later stays are drawn out over a few
phases with the mean that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.plan import NOWHERE
from whimbrel.plan.migration.prediction import route_of
from whimbrel.plan.migration.uncertain import UncertainPlan

Pair = tuple[int, int]
"""The broker before, and the broker."""


@dataclass(frozen=True, slots=True)
class NextBroker:
    """Where movers go on to."""

    broker: int
    probability: float
    stay_s: float
    """How long they stay before that, on average."""


@dataclass(slots=True)
class LearnedMoves:
    """What movers did, by the broker they were at and the one before it."""

    _stays: dict[Pair, dict[int, list[float]]] = field(default_factory=dict)

    def learn(self, ways: Iterable[Ints], horizon: Horizon) -> None:
        """Add the leaf brokers that movers were attached to in each step."""
        for hosts in ways:
            route, enters = route_of(hosts, horizon)
            before = NOWHERE
            for at, following, start, end in zip(route, route[1:], enters, enters[1:], strict=False):
                if at != NOWHERE:
                    # The pattern without a broker before serves movers whose past is not known.
                    for past in {before, NOWHERE}:
                        self._stays.setdefault((past, at), {}).setdefault(following, []).append(end - start)
                before = at

    def after(self, before: int, at: int) -> list[NextBroker]:
        """Tell where movers went on to, most often first; nothing, if none was seen here."""
        stays = self._known(before, at)
        total = sum(map(len, stays.values()))
        brokers = [
            NextBroker(b, len(lengths) / total, float(np.mean(lengths))) for b, lengths in stays.items()
        ]
        return sorted(brokers, key=lambda item: (-item.probability, item.broker))

    def stays_s(self, before: int, at: int, following: int | None = None) -> Floats:
        """Return all stays at a broker, or those of movers that went on to one; nothing, if none was seen."""
        known = self._known(before, at)
        chosen = known.values() if following is None else [known.get(following, [])]
        return np.sort(np.array([stay for stays in chosen for stay in stays], np.float64))

    def times_on(
        self, route: Sequence[int], horizon: Horizon, before: int = NOWHERE, since_s: float | None = None
    ) -> tuple[list[float], list[float]]:
        """Tell when the brokers on a known route are entered, as others took it, and how uncertain that is.

        Gives the times, and their standard deviations; the first broker is the present one.

        Parameters
        ----------
        before, since_s
            The broker before the present one, and since when the mover has been at the present one.
        """
        stayed = 0.0 if since_s is None else horizon.start_s - since_s
        times, variances, past = [horizon.start_s], [0.0], before
        for at, following in pairwise(route):
            stays = self.stays_s(past, at, following)
            stays = stays if len(stays) else self.stays_s(past, at)
            left = stays[stays > stayed] - stayed
            if len(left):
                mean, variance = float(left.mean()), float(left.var())
            else:
                # Nobody stayed so long: as if stays had no memory.
                mean = float(stays.mean()) if len(stays) else horizon.step_s
                variance = mean**2
            times.append(times[-1] + mean)
            variances.append(variances[-1] + variance)
            stayed, past = 0.0, at
        return times, np.sqrt(variances).tolist()

    def _known(self, before: int, at: int) -> dict[int, list[float]]:
        stays_by_next = self._stays.get((before, at))
        if stays_by_next is None:
            # Nobody went on from here on this way: do as those from elsewhere, but do not turn round.
            others = self._stays.get((NOWHERE, at), {})
            stays_by_next = {broker: stays for broker, stays in others.items() if broker != before}
        return stays_by_next

    def plan(
        self,
        name: str,
        horizon: Horizon,
        at: int,
        before: int = NOWHERE,
        since_s: float | None = None,
        least_probability: float = 0.02,
        most: int = 32,
        phases: int = 2,
        bytes_s: float = 0.0,
    ) -> UncertainPlan:
        """Follow the graph from the present broker.

        Parameters
        ----------
        at, before
            The broker that it is attached to, and the one before.
        since_s
            Since when it has been there; since the first step, if nothing is said.
        least_probability
            Ways that are less probable are left out.
        most
            At most so many brokers (with the one before) are followed, the most probable ones.
        phases
            In how many phases later stays are passed, one after the other: with one, a mover may leave as
            soon as it comes; with many, all stay for the mean.
        """
        stayed = max(0.0, horizon.start_s - (horizon.start_s if since_s is None else since_s))
        pairs = self._reached((before, at), horizon, least_probability, most)
        number = {pair: n for n, pair in enumerate(pairs)}
        turn = self._later_turns(pairs, number, horizon.step_s, phases)
        turns = []
        for step in range(horizon.steps - 1):
            leaves, goes = self._leaving((before, at), stayed + step * horizon.step_s, horizon.step_s)
            row = np.zeros(len(turn))
            row[0] = 1.0
            shares = {1 + phases * number[at, b]: p for b, p in goes.items() if (at, b) in number}
            if shares:
                total = sum(shares.values())
                row[0] = 1.0 - leaves
                for state, share in shares.items():
                    row[state] = leaves * share / total
            now = turn.copy()
            now[0] = row
            turns.append(now)
        states = np.array([at, *(pair[1] for pair in pairs for _ in range(phases))], np.int64)
        first = np.zeros(len(states))
        first[0] = 1.0
        return UncertainPlan(name, horizon, (states,) * horizon.steps, first, tuple(turns), bytes_s)

    def _reached(self, start: Pair, horizon: Horizon, least_probability: float, most: int) -> list[Pair]:
        """Return brokers, with the ones before them, that a mover may come to in time, likeliest first."""
        probabilities: dict[Pair, float] = {}
        waiting = [(1.0, start, 0.0)]
        while waiting:
            waiting.sort(key=lambda item: item[0])
            probability, (past, here), since = waiting.pop()
            for item in self.after(past, here):
                # Half of the mean: some are faster.
                share, time = probability * item.probability, since + item.stay_s / 2
                pair = (here, item.broker)
                if share < least_probability or time > horizon.steps * horizon.step_s:
                    continue
                if pair not in probabilities and len(probabilities) < most:
                    waiting.append((share, pair, time))
                if pair in probabilities or len(probabilities) < most:
                    probabilities[pair] = probabilities.get(pair, 0.0) + share
        return sorted(probabilities, key=lambda pair: (-probabilities[pair], pair))

    def _later_turns(self, pairs: list[Pair], number: dict[Pair, int], step_s: float, phases: int) -> Floats:
        """List chances from phase to phase of stays that have not begun yet; row 0 is the present one."""
        turn = np.eye(1 + phases * len(pairs))
        for n, (past, here) in enumerate(pairs):
            onwards = [
                (number[here, item.broker], item.probability)
                for item in self.after(past, here)
                if (here, item.broker) in number
            ]
            stays = self.stays_s(past, here)
            if not onwards:
                continue
            goes = min(1.0, phases * step_s / max(float(stays.mean()), step_s))
            total = sum(probability for _, probability in onwards)
            for phase in range(phases):
                row = turn[1 + phases * n + phase]
                row[1 + phases * n + phase] = 1.0 - goes
                if phase + 1 < phases:
                    row[1 + phases * n + phase + 1] = goes
                else:
                    for other, probability in onwards:
                        row[1 + phases * other] += goes * probability / total
        return turn

    def _leaving(self, pair: Pair, stayed_s: float, step_s: float) -> tuple[float, dict[int, float]]:
        """Return the probability to leave in the next step of one who has stayed so long, and where to.

        Few movers may have stayed so long: one more is made up, who leaves at a rate that fits the mean.
        """
        known = self._known(*pair)
        every = self.stays_s(*pair)
        if not len(every):
            return 0.0, {}
        usual = 1.0 - math.exp(-step_s / max(float(every.mean()), step_s))
        # Stays are whole steps: who left after n steps was there in n - 1 of them after the first.
        still = len(every) - int(np.searchsorted(every, stayed_s + 1e-9))
        left = int(np.searchsorted(every, stayed_s + step_s + 1e-9)) - (len(every) - still)
        goes = {b: sum(stay > stayed_s + 1e-9 for stay in stays) for b, stays in known.items()}
        shares = {b: (goes[b] + len(known[b]) / len(every)) / (still + 1) for b in known}
        return (left + usual) / (still + 1), shares
