"""The table of planners, by name: who decides where tasks run. All take a workload, a network, an objective.

A planner is a function of these three and of settings of its own (`whimbrel.plan.settings`). What it gives
explains itself: in words, tables, a picture and plain data.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from whimbrel.errors import NetworkError, NoPlanError, did_you_mean
from whimbrel.plan.candidates import MORE, candidate_brokers
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.formatting import counted, percent
from whimbrel.plan.greedy import all_on_one, place_greedily
from whimbrel.plan.network import Network
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.plan import Plan
from whimbrel.plan.pushpull.settings import PushPullSettings
from whimbrel.plan.queueing_slack import plan_with_slack
from whimbrel.plan.routes import Routes
from whimbrel.plan.settings import ExactSettings, FlowSettings, MigrationSettings, PlacementSettings
from whimbrel.plan.workload import Workload

_LOG = logging.getLogger(__name__)
WIDER = 10
"""How many times as many brokers are looked at if those nearby cannot do it, before all are."""
FEW = 20
"""How many brokers besides those on the ways planners look at that take long for each."""
S = TypeVar("S")


class PlanReport(Protocol):
    """What comes of planning: it explains itself in words, as a table, as a picture and as JSON."""

    def words(self) -> str:
        """Explain it."""
        ...

    def table(self) -> str:
        """Show it as a table of text."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        ...

    def draw(self, path: str) -> None:
        """Draw it to a file: PNG or SVG."""
        ...


@dataclass(frozen=True, slots=True)
class Planner(Generic[S]):
    """A planner, and the settings that it takes: `planner(workload, network, objective, settings)`."""

    function: Callable[[Workload, Network, Objective, S], PlanReport]
    settings: type[S]

    def __call__(
        self, workload: Workload, network: Network, objective: Objective, settings: S | None = None
    ) -> PlanReport:
        """Plan, with the usual settings if none are given."""
        return self.function(workload, network, objective, self.settings() if settings is None else settings)


def plan_centralised(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.BDP,
    settings: PlacementSettings = PlacementSettings(),  # noqa: B008 (frozen)
) -> Plan:
    """Run everything on one broker: the one where that costs the least. O(brokers x streams).

    Raises
    ------
    NoPlanError
        If no broker has room for everything; the error tells what the best one lacks.
    """

    def place(workload: Workload) -> Plan:
        model = PlacementModel(workload, network, objective)
        return _checked(model, all_on_one(model, 1)[0], "centralised", "no broker can run everything")

    return _keep_previous(plan_with_slack(place, workload), settings)


def plan_greedy(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.BDP,
    settings: PlacementSettings = PlacementSettings(),  # noqa: B008 (frozen)
) -> Plan:
    """Put each task where it costs the least at the time, then move tasks as long as that helps.

    Tasks are taken in order, so that the inputs of each have their places. While what comes after a task has
    none, it counts as if it ran where it is wanted. It also begins with everything on one broker, for the
    best few, and takes the best of what comes of these; see `whimbrel.plan.greedy`, which states the cost. In
    a network of more than 200 brokers it looks at those near the ways only (`whimbrel.plan.candidates`), and
    at more if these cannot do it.

    Raises
    ------
    NoPlanError
        If what is found asks too much. The exact planner may still find something.
    """

    def place(workload: Workload) -> Plan:
        routes = Routes(network, objective.weight)
        for more in (MORE, WIDER * MORE, len(network.brokers)):
            candidates = candidate_brokers(workload, routes, more=more)
            model = PlacementModel(workload, network, objective, candidates, routes)
            hosts = place_greedily(model)
            if not model.excess(hosts) or model.is_hopeless or model.is_whole:
                break
            if more > MORE and not model.broker_excess(hosts):
                break  # brokers farther away have room, and neither time nor bandwidth
        return _checked(model, hosts, "greedy", "no way was found to satisfy everything")

    return _keep_previous(plan_with_slack(place, workload), settings)


def plan_exact(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.BDP,
    settings: ExactSettings = ExactSettings(),  # noqa: B008 (frozen)
) -> Plan:
    """Find hosts that no others beat, as a mixed integer program; see `whimbrel.plan.exact`.

    In a network of more than 200 brokers, no others among those near the ways (`whimbrel.plan.candidates`)
    are better; a note tells how many these are. If nothing limits the plan and the network is a tree, none
    are. A program has O(streams x candidates^2) variables.

    Raises
    ------
    NoPlanError
        If nothing satisfies everything, or nothing was found in time.
    """
    from whimbrel.plan.exact import solve

    routes = Routes(network, objective.weight)

    def place(workload: Workload) -> Plan:
        candidates = candidate_brokers(workload, routes, more=FEW)
        model = PlacementModel(workload, network, objective, candidates, routes)
        hosts, notes = solve(model, time_limit_s=settings.time_limit_s)
        trouble = "nothing satisfies everything"
        if candidates is not None:
            few = f"{len(candidates)} of {len(network.brokers)} brokers"
            notes = (*notes, f"{few} were looked at: those nearby")
            trouble = f"{trouble} with the nearest {few}"
        return _checked(model, hosts, "exact", trouble, notes)

    return _keep_previous(plan_with_slack(place, workload), settings)


def plan_flow(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.FLOW,
    settings: FlowSettings = FlowSettings(),  # noqa: B008 (frozen)
) -> Plan:
    """Search hosts for which the least flows, by tabu search; see `whimbrel.plan.flow`.

    It keeps the flow small, whatever the objective: the costs are told by flow, too.

    Raises
    ------
    NoPlanError
        If everything that was found overloads a broker or a link, or is late.
    """
    alone = "the planner flow keeps the flow small, and nothing else"
    notes = () if objective is Objective.FLOW else (alone,)
    routes = Routes(network, Objective.FLOW.weight)

    def place(workload: Workload) -> Plan:
        allowed = candidate_brokers(workload, routes, more=FEW) if settings.radius is None else None
        model = PlacementModel(workload, network, Objective.FLOW, allowed, routes)
        if settings.radius is None:
            hosts = _search_flow(workload, network, allowed, settings)
            return _checked(model, hosts, "flow", "no plan was found", notes)
        hosts, note = _plan_by_neighbourhoods(workload, network, settings.radius)
        trouble = f"brokers that see {settings.radius} hops found no plan"
        return _checked(model, hosts, "flow", trouble, (*notes, note))

    return _keep_previous(plan_with_slack(place, workload), settings)


def _search_flow(
    workload: Workload, network: Network, allowed: tuple[str, ...] | None, settings: FlowSettings
) -> dict[str, str]:
    from whimbrel.plan.flow.tabu import hosts_to_begin_with, place_by_flow

    start = hosts_to_begin_with(workload, network, settings.previous) if settings.previous else None
    return place_by_flow(workload, network, start=start, allowed=allowed, grouped=settings.grouped)


def _plan_by_neighbourhoods(workload: Workload, network: Network, radius: int) -> tuple[dict[str, str], str]:
    """Let brokers agree on hosts; tell what that took."""
    from whimbrel.plan.flow.neighbourhood import plan_by_neighbourhoods

    agreed = plan_by_neighbourhoods(workload, network, radius)
    hops, steps = counted(radius, "hop"), counted(len(agreed.history), "step")
    packets = f"{agreed.messages:,} packet" + ("" if agreed.messages == 1 else "s")
    return (
        agreed.hosts,
        f"every broker knew those within {hops}; they agreed in {steps}, by {packets} about plans",
    )


def plan_migrate(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.BDP,
    settings: MigrationSettings = MigrationSettings(),  # noqa: B008 (frozen)
) -> PlanReport:
    """Move tasks along with movers, where that pays; see `whimbrel.plan.migration`."""
    from whimbrel.plan.migration.planner import plan_along_tracks

    return plan_along_tracks(workload, network, objective, settings)


def plan_pushes_and_pulls(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.COST,
    settings: PushPullSettings = PushPullSettings(),  # noqa: B008 (frozen)
) -> PlanReport:
    """Send some events at once and others when asked for; see `whimbrel.plan.pushpull.planner`."""
    from whimbrel.plan.pushpull.planner import plan_push_pull

    return plan_push_pull(workload, network, objective, settings)


def _checked(
    model: PlacementModel, hosts: Mapping[str, str], planner: str, trouble: str, notes: tuple[str, ...] = ()
) -> Plan:
    costs = evaluate(model.workload, model.network, hosts, model.objective)
    problems = violations(model.workload, model.network, costs)
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise NoPlanError(f"{trouble}; with the least trouble (planner {planner}):{lines}", costs)
    return Plan(model.workload, model.network, hosts, model.objective, planner, costs, notes)


def _keep_previous(plan: Plan, settings: PlacementSettings) -> Plan:
    """Keep the previous hosts if they still satisfy everything and the new ones save little.

    Moving costs, too. Tasks that are new, or whose broker has gone, get the hosts of the new plan.
    """
    previous, network = settings.previous, plan.network
    kept = {
        name: previous[name] if previous.get(name) in network.number else host
        for name, host in plan.first_hosts().items()
    }
    if not previous:
        return plan
    costs = evaluate(plan.workload, network, kept, plan.objective)
    stays = not violations(plan.workload, network, costs)
    before, now = costs.total.of(plan.objective), plan.costs.total.of(plan.objective)
    stays = stays and now > (1 - settings.least_gain) * before
    moved = kept if stays else plan.first_hosts()
    _LOG.info(
        "planned again: %d of %d tasks move, %.6g before and %.6g with the best hosts found",
        sum(previous.get(name) != host for name, host in moved.items()), len(moved), before, now,
    )  # fmt: skip
    if not stays:
        return plan
    note = f"the previous hosts stay: others would save {percent(1 - now / before if before else 0.0)}"
    return Plan(plan.workload, network, kept, plan.objective, plan.planner, costs, (*plan.notes, note))


PLANNERS: dict[str, Planner[Any]] = {
    "centralised": Planner(plan_centralised, PlacementSettings),
    "greedy": Planner(plan_greedy, PlacementSettings),
    "static": Planner(plan_greedy, PlacementSettings),
    "exact": Planner(plan_exact, ExactSettings),
    "flow": Planner(plan_flow, FlowSettings),
    "migrate": Planner(plan_migrate, MigrationSettings),
    "pushpull": Planner(plan_pushes_and_pulls, PushPullSettings),
}
"""`static` is another name of `greedy`: hosts that stay."""


def planner_named(name: str) -> Planner[Any]:
    """Return the planner of a name."""
    if name not in PLANNERS:
        raise NetworkError(f"no planner is named {name!r}", did_you_mean(name, PLANNERS))
    return PLANNERS[name]
