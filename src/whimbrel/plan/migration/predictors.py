"""What is expected of movers whose tracks are there, by what of them is known ahead (MigCEP, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from whimbrel.plan.areas import Areas
from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.attachments import attached, positions
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.learned_mobility import LearnedMoves
from whimbrel.plan.migration.plan import NOWHERE, MigrationPlan
from whimbrel.plan.migration.prediction import dead_reckoning, navigation, route_of
from whimbrel.plan.migration.replanning import Predict
from whimbrel.plan.migration.uncertain import UncertainPlan
from whimbrel.plan.network import Network
from whimbrel.plan.settings import Movement


@dataclass(slots=True)
class Predictors:
    """The ways of MigCEP to tell where a mover will be (section 4.2), and the truth.

    Parameters
    ----------
    network
        Brokers with areas, and the movers.
    leaves
        Their areas.
    truth
        Where movers really are; of what lies ahead of a prediction only `known`, `on_route` and
        `on_learned_route` read anything: all of it, or the route.
    learned
        What other movers did.
    spread
        How uncertain the times of a known route are.
    memory_s
        How far dead reckoning looks back.
    """

    network: Network
    leaves: Areas
    truth: Mapping[str, MigrationPlan]
    learned: LearnedMoves
    spread: float = 0.1
    memory_s: float = 5.0

    def by(self, movement: Movement) -> Predict:
        """Return the way to predict with what is known of movers."""
        ways: dict[Movement, Predict] = {
            Movement.KNOWN: self.known,
            Movement.NAVIGATION: self.on_route,
            Movement.LEARNED_TIMES: self.on_learned_route,
            Movement.LEARNED: self.as_others,
            Movement.LINEAR: self.straight_on,
        }
        return ways[movement]

    def known(self, name: str, horizon: Horizon) -> MigrationPlan:
        """Tell what will happen."""
        return attached(name, horizon, self._ahead(name, horizon))

    def on_route(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Know the route, and the times up to an error: a navigation system.

        The time until a broker is entered is off by a normal error, as large as the plan says; each change of
        brokers has its own, which stays the same from prediction to prediction.
        """
        route, enters = route_of(self._ahead(name, horizon), horizon)
        told = [horizon.start_s]
        for time in enters[1:]:
            draw = np.random.default_rng([crc32(name.encode()), round(1000 * time)])
            ahead = (time - horizon.start_s) * max(0.1, 1.0 + self.spread * float(draw.normal()))
            told.append(max(told[-1], horizon.start_s + ahead))
        return navigation(name, horizon, route, told, self.spread)

    def on_learned_route(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Know the route; times are those that others took."""
        route, _ = route_of(self._ahead(name, horizon), horizon)
        before, since = self._past(name, horizon)
        enters, errors = self.learned.times_on(route, horizon, before, since)
        return navigation(name, horizon, route, enters, errors)

    def straight_on(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Go on as in the last seconds: dead reckoning."""
        times = np.unique(np.clip([horizon.start_s - self.memory_s, horizon.start_s], 0.0, None))
        x, y = positions(self.network.mover[name], times)
        there = ~np.isnan(x)
        recent = list(zip(times[there].tolist(), x[there].tolist(), y[there].tolist(), strict=True))
        if not recent:
            return navigation(name, horizon, [NOWHERE], [horizon.start_s])
        plan = self.truth[name]
        return dead_reckoning(
            name, horizon, recent, self.leaves, at=int(plan.hosts[self._step(plan, horizon)])
        )

    def as_others(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Do what other movers did here."""
        plan = self.truth[name]
        at = int(plan.hosts[self._step(plan, horizon)])
        return self.learned.plan(name, horizon, at, *self._past(name, horizon))

    def _past(self, name: str, horizon: Horizon) -> tuple[int, float]:
        """Return the broker before the present one, and since when a mover has been at the present one."""
        plan = self.truth[name]
        route, enters = route_of(plan.hosts[: self._step(plan, horizon) + 1], plan.horizon)
        return (route[-2] if len(route) > 1 else NOWHERE), enters[-1]

    def _ahead(self, name: str, horizon: Horizon) -> Ints:
        plan = self.truth[name]
        steps = np.arange(horizon.steps) + self._step(plan, horizon)
        return plan.hosts[np.minimum(steps, plan.horizon.steps - 1)]

    @staticmethod
    def _step(plan: MigrationPlan, horizon: Horizon) -> int:
        return round((horizon.start_s - plan.horizon.start_s) / plan.horizon.step_s)
