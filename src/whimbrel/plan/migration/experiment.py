"""Compare plans with never migrating and with following greedily, on planned costs (MigCEP, section 6).

No packets are sent: costs are those of `cost_of`, where movers really were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whimbrel.plan.migration.attachments import LeafFinder, attached, positions
from whimbrel.plan.migration.baselines import follow_greedily, stay
from whimbrel.plan.migration.coordination import coordinate
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.improve import improve, plan_migrations
from whimbrel.plan.migration.learned import LearnedMoves
from whimbrel.plan.migration.plan import NOWHERE, Ints, MigrationPlan
from whimbrel.plan.migration.predict import dead_reckoning, navigation, route_of
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.migration.uncertain import UncertainPlan
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.routes import Routes
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

AREA_M = (7_700.0, 3_500.0)
"""The area of the paper's experiments."""

Predict = Callable[[str, Horizon], MigrationPlan | UncertainPlan]
"""Where a mover is expected to be in the steps ahead, told at the first of them."""


def tiers(
    shapes: Sequence[tuple[int, int]],
    latency_s: float = 0.01,
    bandwidth_b_s: float = 1e6,
    area_m: tuple[float, float] = AREA_M,
) -> Network:
    """Build a cloud with tiers of brokers below it, each a grid over the same area.

    `[(1, 1), (2, 2), (4, 4)]` is the quad-tree of 21 nodes, `[(8, 5)]` the flat hierarchy of 40.
    """
    brokers, links = [Broker("cloud", area=(0.0, 0.0, *area_m))], []
    above = (1, 1)
    for tier, (columns, rows) in enumerate(shapes):
        for x in range(columns):
            for y in range(rows):
                name = f"{tier}-{x}-{y}"
                parent = f"{tier - 1}-{x * above[0] // columns}-{y * above[1] // rows}" if tier else "cloud"
                box = (
                    x / columns * area_m[0],
                    y / rows * area_m[1],
                    (x + 1) / columns * area_m[0],
                    (y + 1) / rows * area_m[1],
                )
                brokers.append(Broker(name, parent=parent, area=box))
                links.append(Link(parent, name, bandwidth_b_s=bandwidth_b_s, latency_s=latency_s))
        above = (columns, rows)
    return Network(tuple(brokers), tuple(links))


def friends_nearby(
    movers: tuple[str, str, str],
    event_b: float,
    state_b: float,
    window_b: float = 0.0,
    detections_hz: float = 0.1,
) -> Workload:
    """Build the operator graph of figure 1(a): two distances, and a count of friends for a consumer.

    Parameters
    ----------
    movers
        Two friends, who report once a second, and the consumer.
    event_b
        The size of the first friend's events; the other's have 50 B.
    state_b
        The fixed state of the operator that reads the first friend's events.
    window_b
        Its window.
    detections_hz
        How often an operator gives an event, of 50 B.
    """
    first, second, consumer = movers
    return Workload(
        (Feed("a", 1.0, event_b, first), Feed("b", 1.0, 50.0, second)),
        (
            Task("distance a", ("a",), detections_hz, 50.0, fixed_b=state_b, window_b=window_b),
            Task("distance b", ("b",), detections_hz, 50.0),
            Task("friends", ("distance a", "distance b"), detections_hz, 50.0),
        ),
        (Delivery("friends", consumer),),
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """What one operator graph costs in each way, in byte seconds."""

    static: float
    greedy: float
    planned: float
    improved: float | None
    """Planned with a view of the whole."""
    messages: int
    """Sent to coordinate the plan."""


def compare_certain(
    network: Network,
    workload: Workload,
    attachments: Mapping[str, MigrationPlan],
    start: Mapping[str, str],
    every_s: float = 5.0,
    routes: Routes | None = None,
    *,
    whole: bool = False,
) -> Compared:
    """Compare where it is known how movers go: all of the time is planned at once.

    Parameters
    ----------
    network, workload, attachments
        What runs, where, and how movers go.
    start
        Where the tasks are at the beginning.
    every_s
        How often the greedy one looks for a better place.
    routes
        Ways by delay.
    whole
        Plan with a view of the whole, too.
    """
    horizon = next(iter(attachments.values())).horizon
    problem = MigrationProblem(network, workload, horizon, attachments, start, routes=routes)
    static = stay(problem)
    agreed = coordinate(problem, static)
    return Compared(
        problem.value(static).cost,
        problem.value(follow_greedily(problem, every_s)).cost,
        problem.value(agreed.hosts).cost,
        problem.value(plan_migrations(problem)).cost if whole else None,
        agreed.sent,
    )


def follow_predictions(
    problem: MigrationProblem, predict: Predict, every_s: float = 5.0, ahead: int = 200
) -> dict[str, Ints]:
    """Plan again and again with what is predicted of movers, and carry out the first part of each plan.

    Parameters
    ----------
    problem
        What really happens: only its brokers, tasks and beginning are used to plan.
    predict
        What is expected of a mover.
    every_s
        How often a new plan is made.
    ahead
        How many steps it looks ahead.
    """
    whole = problem.horizon
    names = {task: problem.network.brokers[problem.numbers[at]].name for task, at in problem.start.items()}
    hosts: dict[str, list[Ints]] = {task: [] for task in problem.tasks}
    places = [name for name in problem.attachments if name not in problem.network.number]
    every = whole.span(every_s)
    for step in range(0, whole.steps, every):
        horizon = Horizon(ahead, whole.step_s, whole.time_s(step))
        expected = {name: predict(name, horizon) for name in places}
        now = MigrationProblem(
            problem.network,
            problem.workload,
            horizon,
            expected,
            names,
            problem.numbers,
            routes=problem.routes,
        )
        plans = now.plans(improve(now, stay(now), pairs=False))
        done = min(every, whole.steps - step)
        for task, plan in plans.items():
            hosts[task].append(plan.hosts[:done])
            names[task] = problem.network.brokers[plan.hosts[min(done, ahead - 1)]].name
    return {task: problem.positions(np.concatenate(rows)) for task, rows in hosts.items()}


@dataclass(slots=True)
class Predictors:
    """The three ways of the paper to tell where a mover will be (section 4.2), and the truth.

    Parameters
    ----------
    network
        Brokers with areas, and the movers.
    leaves
        Their areas.
    truth
        Where movers really are; what lies ahead of the time of a prediction is read by `known` and `on_route`
        only.
    learned
        What other movers did.
    spread
        How uncertain the times of a known route are.
    """

    network: Network
    leaves: LeafFinder
    truth: Mapping[str, MigrationPlan]
    learned: LearnedMoves
    spread: float = 0.1
    memory_s: float = 5.0

    def known(self, name: str, horizon: Horizon) -> MigrationPlan:
        """Tell what will happen."""
        return attached(name, horizon, self._ahead(name, horizon))

    def on_route(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Know the route, but not the times: a navigation system."""
        return navigation(name, horizon, *route_of(self._ahead(name, horizon), horizon), self.spread)

    def straight_on(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Go on as in the last seconds: dead reckoning."""
        times = np.unique(np.clip([horizon.start_s - self.memory_s, horizon.start_s], 0.0, None))
        x, y = positions(self.network.mover[name], times)
        recent = list(zip(times.tolist(), x.tolist(), y.tolist(), strict=True))
        return dead_reckoning(name, horizon, recent, self.leaves)

    def as_others(self, name: str, horizon: Horizon) -> UncertainPlan:
        """Do what other movers did here."""
        plan = self.truth[name]
        step = self._step(plan, horizon)
        route, enters = route_of(plan.hosts[: step + 1], plan.horizon)
        before = route[-2] if len(route) > 1 else NOWHERE
        return self.learned.plan(name, horizon, route[-1], before, enters[-1])

    def _ahead(self, name: str, horizon: Horizon) -> Ints:
        plan = self.truth[name]
        steps = np.arange(horizon.steps) + self._step(plan, horizon)
        return plan.hosts[np.minimum(steps, plan.horizon.steps - 1)]

    @staticmethod
    def _step(plan: MigrationPlan, horizon: Horizon) -> int:
        return round((horizon.start_s - plan.horizon.start_s) / plan.horizon.step_s)
