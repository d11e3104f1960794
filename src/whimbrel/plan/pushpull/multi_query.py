"""Plans for several composite events at once: what they share is sent once, what does not fit is left out.

Events of one part that several plans need on a link cross it once, so plans that send the same parts the same
way cost less together than apart.
Where links or storage are too small for all, those that matter most are taken in first; what does not fit
beside them is planned anew to need less, and left out if that does not help; what was left out is told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from whimbrel.errors import NetworkError, NoPlanError, WhimbrelError
from whimbrel.plan.network import Link, Network
from whimbrel.plan.pushpull.best import BALANCES, plan_pushpull
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plan import JunctionPlan, PushPullPlan, crossing, estimate, make_plan
from whimbrel.plan.pushpull.tree import Input, Junction, Leaf, delay_on, detection_tree

Hop = tuple[str, str]
Load = dict[tuple[Hop, str], float]
"""Bytes a second that cross from one broker to the next: by part, or by composite event for its requests."""
_LOG = logging.getLogger(__name__)
CHEAP = 1e-3
"""What is sent anyway counts so much of its cost when another plan could use it."""


@dataclass(frozen=True, slots=True)
class Need:
    """Why events of a part cross a hop for a plan: they may complete its composite event with some parts."""

    composite: Composite
    names: frozenset[str]
    """The part itself, and all that it has to meet."""

    def share(self, name: str, names: frozenset[str] | None = None) -> float:
        """Estimate the share of a part's events that meet all of these, or some of them."""
        some = self.names if names is None else names
        if not self.composite.part[name].is_negated:
            return self.composite.shares(some | {name})[name]
        return self.composite.negation_share if len(some) > 1 else 1.0


Needs = dict[tuple[Hop, str], list[Need]]


def _needs_of(plan: PushPullPlan) -> tuple[Needs, Load]:
    """Say why each part's events cross each hop in a plan, and what its requests need."""
    composite = plan.composite
    needs: Needs = {}
    requests: Load = {}
    for planned in plan.root.all():
        known: frozenset[str] = frozenset()
        for place, stage in enumerate(planned.stages):
            for number in stage:
                each = planned.junction.inputs[number]
                for hop in pairwise(each.path):
                    for name in each.parts:
                        needs.setdefault((hop, name), []).append(Need(composite, each.parts | known))
                    if place:
                        key, size = (
                            (hop[::-1], composite.name),
                            composite.request_b * composite.rate_hz(known),
                        )
                        requests[key] = requests.get(key, 0.0) + size
            known = known.union(*(planned.junction.inputs[number].parts for number in stage))
    return needs, requests


def load_of(plan: PushPullPlan) -> Load:
    """Say what a plan sends over each hop, by part; requests count for the composite event itself."""
    return load_together([plan])


def load_together(plans: Iterable[PushPullPlan]) -> Load:
    """Say what plans send over each hop together: an event that several of them need there goes once."""
    needs: Needs = {}
    found: Load = {}
    for plan in plans:
        its, requests = _needs_of(plan)
        for key, some in its.items():
            needs.setdefault(key, []).extend(some)
        found.update(requests)
    for (hop, name), some in needs.items():
        found[hop, name] = some[0].composite.part[name].bytes_s * _share_of_any(name, some)
    return found


def _share_of_any(name: str, needs: Sequence[Need]) -> float:
    """Estimate the share of a part's events that at least one plan needs.

    Whether it meets what one plan wants and what another wants depends on each other by what both want.
    """
    found, before = 0.0, list[Need]()
    for need in sorted(set(needs), key=lambda each: -each.share(name)):
        fresh = need.share(name)
        for other in before:
            fresh *= 1.0 - _share_of_both(name, need, other) / need.share(name) if fresh else 0.0
        found += fresh
        before.append(need)
    return min(found, 1.0)


def _share_of_both(name: str, one: Need, other: Need) -> float:
    """Estimate the share of a part's events that two plans need, independent but for what both want."""
    shares = (one.share(name), other.share(name))
    common = (one.names & other.names) | {name}
    either = max(one.share(name, common), other.share(name, common))
    return min(*shares, shares[0] * shares[1] / either) if either else 0.0


def cost_of(load: Load, network: Network) -> float:
    """Say what a load costs, a second."""
    costs = _by_hop(network)
    return sum(costs[hop].cost * rate for (hop, _), rate in load.items())


def _by_hop(network: Network) -> dict[Hop, Link]:
    found: dict[Hop, Link] = {}
    for link in network.links:
        for hop in ((link.a, link.b), (link.b, link.a)):
            if hop not in found or link.cost < found[hop].cost:
                found[hop] = link
    return found


@dataclass(frozen=True)
class MultiQueryPlan:
    """Plans for several composite events."""

    network: Network
    plans: Mapping[str, PushPullPlan]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Composite events that have no plan, with the reason."""
    waiting: Mapping[str, Composite] = field(default_factory=dict)
    """The composite events that were left out, which are tried again when something changes."""

    @property
    def load(self) -> Load:
        """What all plans send together."""
        return load_together(self.plans.values())

    @property
    def cost_s(self) -> float:
        """What all plans cost together, a second."""
        return cost_of(self.load, self.network)


def plan_multi_query(
    composites: Sequence[Composite],
    network: Network,
    *,
    priority: Mapping[str, float] | None = None,
    rounds: int = 3,
) -> MultiQueryPlan:
    """Plan several composite events: each by itself, then each again with what the others send anyway.

    Comet plans each by itself (section III). At most 1 + rounds plans for each, until no round helps.

    Parameters
    ----------
    priority
        How much each composite event matters where not all can be had; 0 where nothing is said.
    """
    alone = _each_alone(composites, network)
    return _fitted(_sharing(alone, alone.plans, rounds), priority or {})


def _each_alone(
    composites: Iterable[Composite],
    network: Network,
    leave_out: tuple[type[WhimbrelError], ...] = (NoPlanError,),
) -> MultiQueryPlan:
    plans: dict[str, PushPullPlan] = {}
    left_out: dict[str, str] = {}
    waiting: dict[str, Composite] = {}
    for composite in composites:
        try:
            plans[composite.name] = plan_pushpull(composite, network)
        except leave_out as error:
            left_out[composite.name], waiting[composite.name] = str(error), composite
    return MultiQueryPlan(network, plans, left_out, waiting)


def _sharing(plans: MultiQueryPlan, names: Iterable[str], rounds: int) -> MultiQueryPlan:
    """Plan some again with what the others send anyway, as long as that helps."""
    best = plans
    for _ in range(rounds):
        tried = best
        for name in names:
            tried = _cheaper(tried, _with_others(tried, name))
        if tried is best:
            break
        best = tried
    return best


def _with_others(plans: MultiQueryPlan, name: str) -> PushPullPlan:
    """Plan one again; links that already carry its parts for others are cheap for it."""
    others = load_together(plan for other, plan in plans.plans.items() if other != name)
    composite = plans.plans[name].composite
    names = {part.name for part in composite.parts}
    shared = {hop: sum(others.get((hop, part), 0.0) for part in names) for hop, _ in others}
    whole = sum(part.bytes_s for part in composite.parts)
    network = plans.network
    links = [
        replace(link, cost=link.cost * _price(_both_ways(shared, link), whole)) for link in network.links
    ]
    return plan_pushpull(composite, replace(network, links=tuple(links)))


def _both_ways(shared: Mapping[Hop, float], link: Link) -> float:
    return shared.get((link.a, link.b), 0.0) + shared.get((link.b, link.a), 0.0)


def _price(shared: float, whole: float) -> float:
    return max(CHEAP, 1.0 - shared / whole) if whole else 1.0


def _cheaper(plans: MultiQueryPlan, plan: PushPullPlan) -> MultiQueryPlan:
    """Take a plan if all cost less together with it, at what links really cost."""
    name = plan.composite.name
    tried = replace(plans, plans={**plans.plans, name: priced(plan, plans.network)})
    return tried if tried.cost_s < plans.cost_s * (1 - 1e-9) else plans


def priced(plan: PushPullPlan, network: Network) -> PushPullPlan:
    """Return a plan with the costs and delays of a network, such as it is now.

    Raises
    ------
    NetworkError
        If a link of it is gone.
    """
    links = _by_hop(network)

    def again(each: Input) -> Input:
        for a, b in pairwise(each.path):
            if (a, b) not in links:
                raise NetworkError(f"{plan.composite.name!r} needs the link {a}-{b}, which is gone")
        hops = [links[hop] for hop in pairwise(each.path)]
        cost, delay_s = sum(link.cost for link in hops), sum(delay_on(link, plan.composite) for link in hops)
        if isinstance(each, Leaf):
            each = replace(each, part=plan.composite.part[each.part.name])
        return replace(each, cost=cost, delay_s=delay_s)

    def rebuilt(planned: JunctionPlan) -> JunctionPlan:
        below = {number: rebuilt(under) for number, under in planned.below.items()}
        inputs = tuple(
            again(below[number].junction if number in below else each)
            for number, each in enumerate(planned.junction.inputs)
        )
        for number, under in below.items():
            below[number] = replace(under, junction=inputs[number])  # type: ignore[arg-type]
        return replace(planned, junction=replace(planned.junction, inputs=inputs), below=below)

    return make_plan(plan.composite, rebuilt(plan.root))


# -- limits ------------------------------------------------------------------------------------------------


def overloaded(plans: MultiQueryPlan) -> list[str]:
    """Say which links have more to carry than their contacts allow, and which brokers more to keep.

    A link carries as much one way as the other. A broker keeps what waits for a link, and what may be asked
    for or be joined later.
    """
    links, said = _by_hop(plans.network), []
    carried: dict[Hop, float] = {}
    kept: dict[str, float] = {}
    for (hop, _), rate in plans.load.items():
        carried[hop] = carried.get(hop, 0.0) + rate
        kept[hop[0]] = kept.get(hop[0], 0.0) + rate * links[hop].contacts.longest_wait_s
    for plan in plans.plans.values():
        for name, size in _kept_by(plan).items():
            kept[name] = kept.get(name, 0.0) + size
    for (a, b), rate in carried.items():
        room = links[a, b].bandwidth_b_s * links[a, b].contacts.share
        if rate > room:
            said.append(
                f"the link from {a} to {b} would carry {rate:.4g} bytes a second and has room for {room:.4g}"
            )
    for name, size in kept.items():
        room = plans.network[name].storage_b
        if size > room:
            said.append(f"broker {name} would keep {size:.4g} bytes and has room for {room:.4g}")
    return sorted(said)


def _kept_by(plan: PushPullPlan) -> dict[str, float]:
    """Say what each broker keeps for a plan besides what waits for links: bytes, in the mean.

    Where a part is pulled from, its events are kept until they can no longer be asked for; a junction keeps
    what has come until it can no longer be completed there.
    """
    composite = plan.composite
    found: dict[str, float] = {}
    for planned in plan.root.all():
        until = composite.window_s + estimate(composite, planned).delay_s
        known: frozenset[str] = frozenset()
        for place, stage in enumerate(planned.stages):
            for number in stage:
                each = planned.junction.inputs[number]
                came = crossing(composite, each, known, is_pulled=False)
                found[planned.junction.at] = found.get(planned.junction.at, 0.0) + came * until
                if place:
                    waits = crossing(composite, each, frozenset(), is_pulled=False)
                    found[each.path[0]] = found.get(each.path[0], 0.0) + waits * until
            known = known.union(*(planned.junction.inputs[number].parts for number in stage))
    return found


def _fitted(plans: MultiQueryPlan, priority: Mapping[str, float]) -> MultiQueryPlan:
    """Take in what matters most first, and leave out what does not fit beside it.

    So nothing is left out for what matters less. Before something is left out, plans that send less are tried
    for it and for what has been taken in.
    """
    if not overloaded(plans):
        return plans
    fitting = replace(plans, plans={})
    for name in sorted(plans.plans, key=lambda name: (-priority.get(name, 0.0), name)):
        tried = replace(fitting, plans={**fitting.plans, name: plans.plans[name]})
        reasons = overloaded(tried)
        if reasons:
            tried = next((each for each in _more_patient(tried, name) if not overloaded(each)), fitting)
        if tried is fitting:
            left_out = {**fitting.left_out, name: f"not enough room: {reasons[0]}"}
            waiting = {**fitting.waiting, name: plans.plans[name].composite}
            tried = replace(fitting, left_out=left_out, waiting=waiting)
        fitting = tried
    return fitting


def _more_patient(plans: MultiQueryPlan, name: str) -> Iterator[MultiQueryPlan]:
    """Iterate over plans that send less within the tolerances: for one, and for all taken in so far."""
    with_one = replace(plans, plans={**plans.plans, name: _least(plans.plans[name], plans.network)})
    yield with_one
    every = {each: _least(plan, plans.network) for each, plan in plans.plans.items()}
    yield replace(plans, plans=every)


def _least(plan: PushPullPlan, network: Network) -> PushPullPlan:
    """Return the plan that sends least: by bytes instead of by cost."""
    alike = replace(network, links=tuple(replace(link, cost=1.0) for link in network.links))
    return priced(plan_pushpull(plan.composite, alike), network)


# -- changes -----------------------------------------------------------------------------------------------


def replan(
    plans: MultiQueryPlan,
    network: Network,
    *,
    add: Sequence[Composite] = (),
    remove: Iterable[str] = (),
    priority: Mapping[str, float] | None = None,
) -> MultiQueryPlan:
    """Plan again after links, brokers or composite events have changed: only what is touched.

    A plan is touched if the trees that it was sought in have changed: another way is best now, or a link on
    it costs or takes something else. It is planned anew, and the old one stays if that is still cheaper. All
    others stay as they are. What had been left out is tried again.
    """
    gone = set(remove)
    kept = {name: plan for name, plan in plans.plans.items() if name not in gone}
    again = {
        name: plan
        for name, plan in kept.items()
        if _trees(plan.composite, network) != _trees(plan.composite, plans.network)
    }
    waiting = [each for name, each in plans.waiting.items() if name not in gone]
    tried = [*(plan.composite for plan in again.values()), *waiting, *add]
    fresh = _each_alone(tried, network, (NoPlanError, NetworkError))
    chosen = {name: _still_better(again.get(name), plan, network) for name, plan in fresh.plans.items()}
    steady = {name: plan for name, plan in kept.items() if name not in again}
    made = MultiQueryPlan(network, {**steady, **chosen}, fresh.left_out, fresh.waiting)
    fitted = _fitted(_sharing(made, chosen, 1), priority or {})
    _LOG.info(
        "planned again: %d of %d plans sought anew, %d as before, %d events left out",
        len(chosen), len(made.plans), len(steady), len(fitted.left_out),
    )  # fmt: skip
    return fitted


def _trees(composite: Composite, network: Network) -> list[Junction] | None:
    try:
        return [detection_tree(network, composite, balance) for balance in BALANCES]
    except NetworkError:
        return None


def _still_better(old: PushPullPlan | None, fresh: PushPullPlan, network: Network) -> PushPullPlan:
    """Keep the plan of before if it is still possible and cheaper than the new one."""
    if old is None:
        return fresh
    try:
        now = priced(old, network)
    except NetworkError:
        return fresh
    is_better = now.keeps_tolerance and now.estimate.cost_s < fresh.estimate.cost_s * (1 - 1e-9)
    return now if is_better else fresh
