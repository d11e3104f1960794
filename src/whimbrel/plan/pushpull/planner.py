"""Plan which events are sent at once and which when asked for: Comet and beyond, on a user's query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.cost import Objective
from whimbrel.plan.formatting import percent
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.pushpull.baselines import plan_centralised, star
from whimbrel.plan.pushpull.comet import plan_comet
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.deployment import Alternative, PushPullDeployment
from whimbrel.plan.pushpull.multi_query import MultiQueryPlan, overloaded, plan_multi_query, priced
from whimbrel.plan.pushpull.patterns import DeliveredComposites, composites_of
from whimbrel.plan.pushpull.plan import PushPullPlan, all_pushed, make_plan
from whimbrel.plan.pushpull.settings import PushPullSettings
from whimbrel.plan.workload import Workload

FEW_PARTS = 9
"""The best plan of a centre is worked out for at most so many parts, as it takes 3 to the power of them."""


def plan_push_pull(
    workload: Workload,
    network: Network,
    objective: Objective = Objective.COST,
    settings: PushPullSettings = PushPullSettings(),  # noqa: B008 (frozen)
) -> PushPullDeployment:
    """Plan all that is wanted of a query by pushing and pulling; what events cost on links is kept small.

    Each composite event is planned by itself, in O(3^inputs) for a junction, and again with what the others
    send anyway (`multi_query`).

    Raises
    ------
    NoPlanError
        If something cannot be detected so, or not in time, or not with the room there is; the error says what
        and why.
    """
    wanted = composites_of(workload, network)
    composites = [composite for each in wanted for composite in each.composites]
    plans = plan_multi_query(composites, network, priority=_by_composite(wanted, settings.priorities))
    if plans.left_out and not (settings.priorities and plans.plans):
        lines = "".join(f"\n  - {name}: {why}" for name, why in plans.left_out.items())
        raise NoPlanError(f"not everything can be had (planner pushpull):{lines}")
    wanted = [each for each in (each.of(plans.plans) for each in wanted) if each.composites]
    ways = _other_ways([plan.composite for plan in plans.plans.values()], network)
    # Each composite event has its best plan, but what they share may make other plans cheaper together.
    for _, _, other in ways:
        if other is not None and _is_valid(other) and other.cost_s < plans.cost_s * (1 - 1e-9):
            plans = replace(plans, plans=other.plans)
    alone = "the planner pushpull keeps the cost small, and nothing else"
    notes = (alone,) if objective is Objective.FLOW else ()
    plans, kept = _keep_previous(plans, settings)
    return PushPullDeployment(
        workload,
        network,
        tuple(wanted),
        plans,
        tuple(
            Alternative(name, words, None if other is None else other.cost_s) for name, words, other in ways
        ),
        (*kept, *notes),
    )


def _by_composite(wanted: Iterable[DeliveredComposites], priorities: Mapping[str, float]) -> dict[str, float]:
    """Give the priority of a definition to the composite events that make it up."""
    streams = [each.delivery.stream for each in wanted]
    for name in priorities:
        if name not in streams:
            raise unknown("definition that is delivered", name, streams, "it is to have a priority")
    return {
        composite.name: priorities.get(each.delivery.stream, 0.0)
        for each in wanted
        for composite in each.composites
    }


def _keep_previous(
    plans: MultiQueryPlan, settings: PushPullSettings
) -> tuple[MultiQueryPlan, tuple[str, ...]]:
    """Keep the previous plans if they are still possible and quick enough, and the new ones save little."""
    if settings.previous is None:
        return plans, ()
    kept = dict(plans.plans)
    for name, plan in plans.plans.items():
        before = settings.previous.plans.get(name)
        if before is not None:
            try:
                now = priced(replace(before, composite=plan.composite), plans.network)
            except NetworkError:
                continue
            kept[name] = now if now.keeps_tolerance else plan
    stay = replace(plans, plans=kept)
    if overloaded(stay) or plans.cost_s <= (1 - settings.least_gain) * stay.cost_s:
        return plans, ()
    saved = 1 - plans.cost_s / stay.cost_s if stay.cost_s else 0.0
    return stay, (f"the previous plan stays: another would save {percent(saved)}",)


def _other_ways(
    composites: list[Composite], network: Network
) -> list[tuple[str, str, MultiQueryPlan | None]]:
    """Plan in other ways: to send everything, to let one broker decide, and as the paper does."""
    ways: list[tuple[str, str, Callable[[Composite, Network], PushPullPlan]]] = [
        ("all-push", "sending everything at once", _all_pushed),
        ("comet", "the plan of Comet", plan_comet),
    ]
    if all(len(composite.parts) <= FEW_PARTS for composite in composites):
        ways.insert(1, ("centralised", "pulling from where it is wanted only", plan_centralised))
    found: list[tuple[str, str, MultiQueryPlan | None]] = []
    for name, words, planner in ways:
        try:
            plans = MultiQueryPlan(network, {each.name: planner(each, network) for each in composites})
        except NoPlanError:
            found.append((name, words, None))
        else:
            found.append((name, words, plans))
    return found


def _is_valid(plans: MultiQueryPlan) -> bool:
    return all(plan.keeps_tolerance for plan in plans.plans.values()) and not overloaded(plans)


def _all_pushed(composite: Composite, network: Network) -> PushPullPlan:
    return make_plan(composite, all_pushed(star(network, composite)))
