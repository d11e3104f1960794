"""Who decides where tasks run: a name for each planner. All take a workload, a network and an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from whimbrel.errors import NetworkError, NoPlanError, did_you_mean
from whimbrel.plan.candidates import MORE, candidate_brokers
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.greedy import all_on_one, place_greedily
from whimbrel.plan.network import Network
from whimbrel.plan.placement import Placement
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.queueing_slack import with_queueing_slack
from whimbrel.plan.routes import Routes
from whimbrel.plan.workload import Workload


class Plan(Protocol):
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


WIDER = 10
"""How many times as many brokers are looked at if those nearby cannot do it, before all are."""

FEW = 20
"""How many brokers besides those on the ways planners look at that take long for each."""

Planner = Callable[..., Plan]
"""Takes a workload, a network and an objective; some take settings of their own, too."""


@with_queueing_slack
def plan_centralised(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Run everything on one broker: the one where that costs the least.

    Raises
    ------
    NoPlanError
        If no broker has room for everything; the error tells what the best one lacks.
    """
    model = PlacementModel(workload, network, objective)
    return _checked(model, all_on_one(model, 1)[0], "centralised", "no broker can run everything")


@with_queueing_slack
def plan_greedy(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Put each task where it costs the least at the time, then move tasks as long as that helps.

    Tasks are taken in order, so that the inputs of each have their places. While what comes after a task has
    none, it counts as if it ran where it is wanted. It also begins with everything on one broker, for the
    best few, and takes the best of what comes of these; see `whimbrel.plan.greedy`. In a network of more
    than 200 brokers it looks at those near the ways only (`whimbrel.plan.candidates`), and at more if these
    cannot do it.

    Raises
    ------
    NoPlanError
        If what is found asks too much. The exact planner may still find something.
    """
    routes = Routes(network, objective.weight)
    for more in (MORE, WIDER * MORE, len(network.brokers)):
        model = PlacementModel(
            workload, network, objective, candidate_brokers(workload, routes, more=more), routes
        )
        hosts = place_greedily(model)
        if not model.excess(hosts) or model.is_hopeless or model.is_whole:
            break
        if more > MORE and not model.broker_excess(hosts):
            break  # brokers farther away have room, and neither time nor bandwidth
    return _checked(model, hosts, "greedy", "no way was found to satisfy everything")


@with_queueing_slack
def plan_exact(workload: Workload, network: Network, objective: Objective = Objective.BDP) -> Placement:
    """Find hosts that no others beat, as a mixed integer program; see `whimbrel.plan.exact`.

    In a network of more than 200 brokers, no others among those near the ways (`whimbrel.plan.candidates`)
    are better; a note tells how many these are. In a tree without limits, none are.
    """
    from whimbrel.plan.exact import solve

    routes = Routes(network, objective.weight)
    candidates = candidate_brokers(workload, routes, more=FEW)
    model = PlacementModel(workload, network, objective, candidates, routes)
    hosts, notes = solve(model)
    trouble = "nothing satisfies everything"
    if candidates is not None:
        few = f"{len(candidates)} of {len(network.brokers)} brokers"
        notes, trouble = (
            (*notes, f"{few} were looked at: those nearby"),
            f"{trouble} with the nearest {few}",
        )
    return _checked(model, hosts, "exact", trouble, notes)


@with_queueing_slack
def plan_flow(
    workload: Workload, network: Network, objective: Objective = Objective.FLOW, *, radius: int | None = None
) -> Placement:
    """Search hosts for which the least flows, by tabu search; see `whimbrel.plan.flow`.

    It keeps the flow small, whatever the objective: the costs are told by flow, too.

    Parameters
    ----------
    radius
        How many hops around itself a broker knows of. With it, brokers plan by themselves and hand tasks on
        to each other, as they would without anybody who knows the whole network.

    Raises
    ------
    NoPlanError
        If everything that was found overloads a broker or a link, or is late.
    """
    from whimbrel.plan.flow.tabu import place_by_flow

    notes = (
        () if objective is Objective.FLOW else ("the planner flow keeps the flow small, and nothing else",)
    )
    routes = Routes(network, Objective.FLOW.weight)
    allowed = candidate_brokers(workload, routes, more=FEW) if radius is None else None
    model = PlacementModel(workload, network, Objective.FLOW, allowed, routes)
    if radius is None:
        return _checked(
            model, place_by_flow(workload, network, allowed=allowed), "flow", "no plan was found", notes
        )
    hosts, settled = _settled(workload, network, radius)
    return _checked(model, hosts, "flow", f"brokers that see {radius} hops found no plan", (*notes, settled))


def _settled(workload: Workload, network: Network, radius: int) -> tuple[dict[str, str], str]:
    """Let brokers agree on hosts; tell what that took."""
    from whimbrel.plan.flow.neighbourhood import plan_by_neighbourhoods

    settled = plan_by_neighbourhoods(workload, network, radius)
    hops, steps = _counted(radius, "hop"), _counted(len(settled.history), "step")
    told = _counted(settled.messages, "packet")
    return (
        settled.hosts,
        f"every broker knew those within {hops}; they agreed in {steps}, by {told} about plans",
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def plan_migrate(
    workload: Workload, network: Network, objective: Objective = Objective.BDP, **settings: float | None
) -> Plan:
    """Move tasks along with movers, where that pays; settings are those of `plan_along_tracks`."""
    from whimbrel.plan.migration.planner import plan_along_tracks

    return plan_along_tracks(workload, network, objective, **settings)


def plan_pushes_and_pulls(
    workload: Workload, network: Network, objective: Objective = Objective.COST
) -> Plan:
    """Send some events at once and others when asked for; see `whimbrel.plan.pushpull.pulling`."""
    from whimbrel.plan.pushpull.pulling import plan_pulling

    return plan_pulling(workload, network, objective)


def _checked(
    model: PlacementModel, hosts: dict[str, str], planner: str, trouble: str, notes: tuple[str, ...] = ()
) -> Placement:
    costs = evaluate(model.workload, model.network, hosts, model.objective)
    problems = violations(model.workload, model.network, costs)
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise NoPlanError(f"{trouble}; with the least trouble (planner {planner}):{lines}", costs)
    return Placement(model.workload, model.network, hosts, model.objective, planner, costs, notes)


PLANNERS: dict[str, Planner] = {
    "centralised": plan_centralised,
    "greedy": plan_greedy,
    "static": plan_greedy,
    "exact": plan_exact,
    "flow": plan_flow,
    "migrate": plan_migrate,
    "pushpull": plan_pushes_and_pulls,
}
"""`static` is another name of `greedy`: hosts that stay."""


def planner_named(name: str) -> Planner:
    """Return the planner of a name."""
    if name not in PLANNERS:
        raise NetworkError(f"no planner is named {name!r}", did_you_mean(name, PLANNERS))
    return PLANNERS[name]
