"""Plan hosts that change over time, where sources or consumers move: MigCEP on a user's network.

The tracks of the movers say where they are when, so the plan looks ahead over all of them. Its time is cut
into steps; `whimbrel.plan.migration` finds the hosts of each. What is found is judged by
`whimbrel.plan.cost.evaluate`, which looks at the very moments at which movers cross borders, against the best
hosts that stay: whichever costs less and asks too much of nobody is the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.areas import Areas
from whimbrel.plan.arrays import Ints
from whimbrel.plan.cost import Costs, Objective, evaluate, violations
from whimbrel.plan.formatting import counted
from whimbrel.plan.migration.attachments import attached
from whimbrel.plan.migration.baselines import follow_greedily
from whimbrel.plan.migration.coordination import coordinate
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.learned_mobility import LearnedMoves
from whimbrel.plan.migration.local_search import improve, plan_migrations
from whimbrel.plan.migration.plan import MigrationPlan, changes_of
from whimbrel.plan.migration.policies import policy_named
from whimbrel.plan.migration.predictors import Predictors
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.migration.replanning import replan_with_predictions
from whimbrel.plan.migration.schedule import schedule
from whimbrel.plan.network import Network
from whimbrel.plan.plan import ComparedPlan, Plan
from whimbrel.plan.planners import plan_exact, plan_greedy
from whimbrel.plan.settings import MigrationSettings, Movement
from whimbrel.plan.timeline import Timeline, at_time
from whimbrel.plan.tracks import Track
from whimbrel.plan.units import in_seconds
from whimbrel.plan.workload import Delivery, Feed, Workload

Steps = dict[str, tuple[tuple[float, str], ...]]
"""For every task its brokers, each with the time from which on it is there."""

FEW_STEPS = 300
"""Unless the step is given, time is cut into at most so many steps."""
NICE_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
MOST_CELLS = 1_000_000
"""Steps times brokers that a plan may have."""
FEW_CELLS = 60_000
"""Steps times brokers times tasks up to which tasks are planned in pairs, too."""
MOST_BROKERS = 1_500
FEW_CHOICES = 150
"""Up to so many tasks times brokers, the hosts that stay are the best there are."""
FOLLOW_S = 5.0
"""How often those that follow greedily look where it is best."""


def plan_along_tracks(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.BDP,
    settings: MigrationSettings = MigrationSettings(),  # noqa: B008 (frozen)
) -> Plan:
    """Plan where each task is when, along the tracks of the movers; hosts that stay, if nothing moves.

    It keeps the bandwidth-delay product small, whatever the objective. One task is planned in O(steps x
    brokers^2); all tasks are, again and again, until nothing gets better.

    Raises
    ------
    NoPlanError
        If all that was found asks too much; the error tells what.
    NetworkError
        If there are too many steps and brokers to plan with.
    """
    alone = "the planner migrate keeps the bandwidth-delay product small, and nothing else"
    notes = () if objective is Objective.BDP else (alone,)
    if settings.ahead_s is not None:
        _check_time(settings.ahead_s, settings.ahead_s)
        network = _until(network, settings.ahead_s)
    if not _moving(workload, network):
        staying, _ = _staying(workload, network)
        if isinstance(staying, NoPlanError):
            raise staying
        nothing = "nothing that sends or receives moves, so tasks stay where they are"
        return Plan(
            workload, network, staying.hosts, Objective.BDP, "migrate", staying.costs, (nothing, *notes)
        )
    horizon = _horizon(workload, network, settings.step_s)
    return _Mover(workload, network, horizon, settings).plan(notes)


def _moving(workload: Workload, network: Network) -> list[str]:
    """Name the movers that send or receive, and go anywhere."""
    line = Timeline(workload, network, {})
    return [at for at in _ends(workload) if at in network.mover and len(line.place(at)) > 1]


def _ends(workload: Workload) -> list[str]:
    """Name where feeds come from and deliveries go to."""
    ends: tuple[Feed | Delivery, ...] = (*workload.feeds, *workload.deliveries)
    return list(dict.fromkeys(end.at for end in ends))


def _placed(staying: Plan | NoPlanError) -> Plan:
    if isinstance(staying, NoPlanError):
        raise staying
    return staying


def _check_time(until_s: float, step_s: float) -> None:
    if not (0 < step_s < math.inf and 0 < until_s < math.inf):
        raise NetworkError(
            f"{in_seconds(until_s)} in steps of {in_seconds(step_s)} is no time to plan for",
            "give a step above 0 and a time to look ahead above 0",
        )


def _horizon(workload: Workload, network: Network, step_s: float | None) -> Horizon:
    until = Timeline(workload, network, {}).until_s
    nice = (length for length in NICE_S if until / length <= FEW_STEPS)
    step = next(nice, until / FEW_STEPS) if step_s is None else step_s
    _check_time(until, step)
    first = min((mover.track[0][0] for mover in network.movers if mover.track), default=0.0)
    if step > until - first:
        raise NetworkError(
            f"all tracks lie between {first:,.0f} s and {until:,.0f} s, in one step of {in_seconds(step)}",
            "give times since the start, so that the tracks begin near 0, or a shorter step (--step)",
        )
    steps, brokers = max(1, math.ceil(until / step - 1e-9)), len(network.brokers)
    if steps * brokers > MOST_CELLS:
        raise NetworkError(
            f"{in_seconds(until)} in steps of {in_seconds(step)} on {brokers} brokers are "
            f"{steps * brokers:,} choices for each task, and {MOST_CELLS:,} can be planned",
            "take longer steps (--step), look less far ahead (--ahead), or plan for a part of the network",
        )
    if brokers > MOST_BROKERS:
        raise NetworkError(
            f"migrations can be planned on {MOST_BROKERS:,} brokers, and there are {brokers:,}",
            "plan for the part of the network in which the movers are, or for hosts that stay: greedy",
        )
    return Horizon(steps, until / steps)


def _until(network: Network, end_s: float) -> Network:
    """Return the network with tracks that end at a time: cut off there, or standing still until then."""
    return replace(
        network, movers=tuple(replace(mover, track=_cut(mover.track, end_s)) for mover in network.movers)
    )


def _cut(track: Track, end_s: float) -> Track:
    if not track:
        return track
    times, xs, ys = np.array(track, float).T
    if end_s <= times[0]:
        return track[:1]
    last = (end_s, float(np.interp(end_s, times, xs)), float(np.interp(end_s, times, ys)))
    return (*(point for point in track if point[0] < end_s), last)


def _staying(workload: Workload, network: Network) -> tuple[Plan | NoPlanError, str]:
    """Find the best hosts that stay, and name who found them; an error if there are none."""
    is_small = len(workload.tasks) * len(network.brokers) <= FEW_CHOICES
    planner, name = (plan_exact, "exact") if is_small else (plan_greedy, "greedy")
    try:
        return planner(workload, network, Objective.BDP), name
    except NoPlanError as error:
        return error, name


class _Mover:
    """One workload on one network, over one horizon."""

    def __init__(
        self, workload: Workload, network: Network, horizon: Horizon, settings: MigrationSettings
    ) -> None:
        self.workload, self.network, self.horizon, self.settings = workload, network, horizon, settings
        self.attachments = self._attachments(_ends(workload))
        self.problem = MigrationProblem(network, workload, horizon, self.attachments)

    def plan(self, notes: tuple[str, ...]) -> Plan:
        """Take the cheapest hosts that ask too much of nobody."""
        staying, stayer = _staying(self.workload, self.network)
        candidates, how = self._candidates(staying)
        judged = [(self._costs(hosts), hosts) for hosts in candidates]
        fitting = [
            (costs, hosts) for costs, hosts in judged if not violations(self.workload, self.network, costs)
        ]
        if not fitting:
            self._give_up(judged[0][0])
        costs, hosts = min(fitting, key=lambda pair: pair[0].total.bdp_b)
        notes = (*how, *notes)
        compared_plans = tuple(self._compared_plans(staying, stayer, hosts))
        steps = self._steps(hosts)
        actions = schedule(self.problem.plans(hosts).values(), self.workload, self.network)
        return Plan(
            self.workload,
            self.network,
            steps,
            Objective.BDP,
            "migrate",
            costs,
            notes,
            self.horizon,
            tuple(actions),
            compared_plans,
        )

    def _attachments(self, names: Iterable[str]) -> dict[str, MigrationPlan]:
        """Say to which broker each mover is connected in each step: as the cost model does."""
        line = Timeline(self.workload, self.network, {})
        number, plans = self.network.number, {}
        for name in names:
            if name in self.network.mover:
                steps = line.place(name)
                # Where a mover is for most of a step counts, which the middle tells.
                middles = self.horizon.times_s + self.horizon.step_s / 2
                hosts = np.array([number[at_time(steps, float(time))] for time in middles], np.int64)
                plans[name] = attached(name, self.horizon, hosts)
        return plans

    def _candidates(self, staying: Plan | NoPlanError) -> tuple[list[dict[str, Ints]], tuple[str, ...]]:
        """Return the plans to choose from, and notes about how they came about."""
        if self.settings.movement is not Movement.KNOWN:
            return self._replanned(_placed(staying))
        if self.settings.coordinated:
            return self._agreed(_placed(staying))
        plans: list[dict[str, Ints]] = []
        try:
            plans.append(plan_migrations(self.problem, pairs=self._is_small))
        except NoPlanError:
            if isinstance(staying, NoPlanError):
                raise
        if isinstance(staying, Plan):
            fixed = self._fixed(staying.first_hosts())
            plans += [improve(self.problem, fixed, pairs=self._is_small), fixed]
        return plans, ()

    def _agreed(self, staying: Plan) -> tuple[list[dict[str, Ints]], tuple[str, ...]]:
        """Let tasks agree by messages, from the best hosts that stay."""
        fixed = self._fixed(staying.first_hosts())
        agreed = coordinate(self.problem, fixed)
        return [agreed.hosts, fixed], (f"tasks agreed by {counted(agreed.sent, 'message')}",)

    def _replanned(self, staying: Plan) -> tuple[list[dict[str, Ints]], tuple[str, ...]]:
        """Plan again and again with what is expected of movers, from the best hosts that stay."""
        chosen, network = self.settings, self.network
        others = [name for name in network.mover if name not in self.attachments]
        if not others and chosen.movement in (Movement.LEARNED, Movement.LEARNED_TIMES):
            raise NetworkError(
                "there are no other movers to learn from",
                "add tracks of movers that neither send nor receive",
            )
        learned = LearnedMoves()
        learned.learn((plan.hosts for plan in self._attachments(others).values()), self.horizon)
        known = Predictors(network, Areas(network), self.attachments, learned, chosen.spread)
        problem = MigrationProblem(
            network,
            self.workload,
            self.horizon,
            self.attachments,
            staying.first_hosts(),
            routes=self.problem.routes,
        )
        run = replan_with_predictions(
            problem,
            known.by(chosen.movement),
            chosen.replan_s,
            self.horizon.span(chosen.window_s),
            policy_named(chosen.policy),
            range_m=chosen.range_m,
        )
        known_ahead = f"of movers only what {chosen.movement.value!r} tells was known ahead"
        plans = f"{counted(run.plans, 'plan')} came one after the other, by the policy {chosen.policy!r}"
        return [run.hosts], (f"{known_ahead}; {plans}",)

    @property
    def _is_small(self) -> bool:
        """Tell whether there is time to plan tasks in pairs, too."""
        return self.horizon.steps * len(self.network.brokers) * len(self.workload.tasks) <= FEW_CELLS

    def _fixed(self, hosts: Mapping[str, str]) -> dict[str, Ints]:
        number = self.network.number
        return {
            name: np.full(self.horizon.steps, self.problem.position(number[host]))
            for name, host in hosts.items()
        }

    def _steps(self, hosts: Mapping[str, Ints]) -> Steps:
        schedule = {}
        for name, row in hosts.items():
            starts = [0, *changes_of(row).tolist()]
            brokers = [self.network.brokers[int(self.problem.numbers[row[step]])].name for step in starts]
            times = [self.horizon.time_s(step) for step in starts]
            schedule[name] = tuple(zip(times, brokers, strict=True))
        return schedule

    def _costs(self, hosts: Mapping[str, Ints]) -> Costs:
        return evaluate(self.workload, self.network, self._steps(hosts), until_s=self.horizon.end_s)

    def _compared_plans(
        self, staying: Plan | NoPlanError, stayer: str, hosts: Mapping[str, Ints]
    ) -> list[ComparedPlan]:
        """Tell what it costs to stay, and to go where it is best now."""
        compared_plans = []
        start = {name: steps[0][1] for name, steps in self._steps(hosts).items()}
        if isinstance(staying, Plan):
            start = staying.first_hosts()
            costs = self._costs(self._fixed(start))
            compared_plans.append(ComparedPlan("stay", f"the best hosts that stay ({stayer})", costs))
        begun = self._begun(start)
        every = max(FOLLOW_S, self.horizon.step_s)
        words = f"going to the best broker every {in_seconds(every)}"
        return [*compared_plans, ComparedPlan("follow", words, self._costs(follow_greedily(begun, every)))]

    def _begun(self, start: Mapping[str, str]) -> MigrationProblem:
        """Return the problem for tasks that begin on given brokers."""
        return MigrationProblem(
            self.network, self.workload, self.horizon, self.attachments, start, routes=self.problem.routes
        )

    def _give_up(self, costs: Costs) -> None:
        problems = violations(self.workload, self.network, costs)
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise NoPlanError(f"no way was found to satisfy everything; with moves (planner migrate):{lines}")
