"""Plans for delay-tolerant networks (Comet, section V): what they cost a minute, how late detections are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.contacts import ByTurns
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.centralised import plan_all_push, plan_centralised, plan_centralised_greedily
from whimbrel.plan.pushpull.comet import plan_comet, saving
from whimbrel.plan.pushpull.composite import Composite, Part
from whimbrel.plan.pushpull.plans import PushPullPlan
from whimbrel.sim.pushpull.planned import from_planner
from whimbrel.sim.pushpull.running import poisson_events, run_plan
from whimbrel.sim.scenarios.registry import Plot, Progress, Results, Value, scenario

Planner = Callable[[Composite, Network], PushPullPlan]
PLANNERS: Mapping[str, Planner] = {
    "all-push": plan_all_push,
    "centralised heuristic": plan_centralised_greedily,
    "centralised optimal": plan_centralised,
    "comet": plan_comet,
    "whimbrel": plan_pushpull,
}
LOW_B_S, MEDIUM_B_S, HIGH_B_S = 16_000.0, 32_000.0, 150_000.0
"""128 and 256 kbit/s, 1.2 Mbit/s."""
PACKET_B = 1_000.0
UP_S = 60.0
"""How long a contact lasts: long enough for all that waits."""


def dtn_tree(
    depth: int,
    degree: Callable[[], int],
    down_s: tuple[float, float, float],
    *,
    uniform_cost: bool,
    random: np.random.Generator,
) -> tuple[Network, list[str]]:
    """Make a tree of nodes over `depth` levels of links; give its leaves, too.

    `down_s` is for how long links are down at the sink, in between and at the sources; each comes up at times
    of its own. A byte costs the time that it takes, or the same everywhere.
    """
    brokers, links, level = [Broker("sink")], [], ["sink"]
    for number in range(depth):
        kind = 0 if number == 0 else 2 if number == depth - 1 else 1
        bandwidth = (LOW_B_S, MEDIUM_B_S, HIGH_B_S)[kind]
        below = []
        for parent in level:
            for child in range(degree()):
                name = f"{parent}.{child}" if parent != "sink" else f"n{child}"
                brokers.append(Broker(name, parent=parent))
                turn = ByTurns(down_s[kind], UP_S, float(random.uniform(0, down_s[kind] + UP_S)))
                cost = 1.0 if uniform_cost else PACKET_B / bandwidth
                links.append(Link(parent, name, bandwidth, 0.05, cost, turn))
                below.append(name)
        level = below
    return Network(tuple(brokers), tuple(links)), level


def composite_of(leaves: list[str], most_min: float, window_s: float, operator: str = "and") -> Composite:
    """Let events occur at every leaf, with frequencies by Zipf's law."""
    parts = tuple(
        Part(f"e{number}", at, most_min / 60 / (number + 1), PACKET_B) for number, at in enumerate(leaves)
    )
    return Composite("composite", operator, parts, window_s, "sink")


def _judge(
    name: str, plan: PushPullPlan, network: Network, events: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    found = run_plan(from_planner(plan), network, events, seed=seed)
    return {
        "planner": name,
        "estimated cost/min": plan.estimate.cost_s * 60,
        "cost/min": found.cost_a_minute,
        "delay bound s": plan.estimate.delay_s,
        "largest delay s": float(found.delays_s.max()) if len(found.delays_s) else None,
        "mean delay s": float(found.delays_s.mean()) if len(found.delays_s) else None,
        "detections": len(found.found),
        "missed": len(found.missed),
        "requests": found.traffic.by_kind["request"].messages,
    }


def _sweep(
    parameters: Mapping[str, Any],
    progress: Progress,
    network: Network,
    composite: Composite,
    planners: Mapping[str, Planner],
) -> Results:
    """Carry out the plan of every planner for every tolerance; equal plans are carried out once."""
    random = np.random.default_rng(parameters["seed"] + 1)
    rates = {part.name: part.rate_hz * 60 for part in composite.parts}
    events = poisson_events(rates, parameters["minutes"] * 60, random)
    rows: list[dict[str, Any]] = []
    known: dict[str, dict[str, Any]] = {}
    tolerances = parameters["tolerances_min"]
    for number, tolerance in enumerate(tolerances):
        progress(number, len(tolerances))
        wanted = replace(composite, tolerance_s=tolerance * 60)
        for name, planner in planners.items():
            try:
                plan = planner(wanted, network)
            except NoPlanError:
                continue
            words = plan.words()
            if words not in known:
                known[words] = _judge(name, plan, network, events, parameters["seed"])
            rows.append({"tolerance min": tolerance, **known[words], "planner": name})
    plots = (
        Plot("cost", "Cost a minute by delay tolerance", "tolerance min", "cost/min", "planner"),
        Plot("delay", "Largest delay by delay tolerance", "tolerance min", "largest delay s", "planner"),
    )
    return Results(rows, plots, _savings(rows))


def _savings(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Tell by how much the last planner is cheaper than the others, as a mean over all tolerances."""
    names = list(dict.fromkeys(row["planner"] for row in rows))
    found = {}
    best = {row["tolerance min"]: row["cost/min"] for row in rows if row["planner"] == names[-1]}
    for name in names[:-1]:
        shares = [
            1 - best[row["tolerance min"]] / row["cost/min"]
            for row in rows
            if row["planner"] == name and row["tolerance min"] in best and row["cost/min"]
        ]
        if shares:
            found[f"{names[-1]} below {name}"] = f"{100 * sum(shares) / len(shares):.0f} %"
    return found


_TOLERANCES = (10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 250.0)
_COMMON: dict[str, tuple[Value, str]] = {
    "minutes": (600.0, "how long events occur"),
    "tolerances_min": (_TOLERANCES, "how late a detection may be"),
    "most_min": (1.0, "events a minute of the most frequent source"),
    "window_s": (180.0, "how far apart the events of a detection may be"),
}
_HIGH = (300.0, 300.0, 300.0)
_MIXED = (300.0, 150.0, 30.0)


def _regular(
    parameters: Mapping[str, Any], down_s: tuple[float, float, float], *, uniform_cost: bool, depth: int = 3
) -> tuple[Network, Composite]:
    random = np.random.default_rng(parameters["seed"])
    network, leaves = dtn_tree(depth, lambda: 2, down_s, uniform_cost=uniform_cost, random=random)
    return network, composite_of(leaves, parameters["most_min"], parameters["window_s"])


@scenario("comet-cost", "cost by delay tolerance: links near the sink are slow and dear", **_COMMON)
def run_cost(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where links cost what they take."""
    return _sweep(parameters, progress, *_regular(parameters, _HIGH, uniform_cost=False), PLANNERS)


@scenario("comet-uniform", "cost by delay tolerance: a byte costs the same on every link", **_COMMON)
def run_uniform(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where all links cost the same."""
    return _sweep(parameters, progress, *_regular(parameters, _HIGH, uniform_cost=True), PLANNERS)


@scenario("comet-latency", "cost by delay tolerance: links near the sink are down for longer", **_COMMON)
def run_latency(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners, and two ways to order conversions, where links are down for different times."""

    def by_saving(composite: Composite, network: Network) -> PushPullPlan:
        return plan_comet(composite, network, gain=saving)

    planners = {"comet by saving": by_saving, **PLANNERS}
    return _sweep(parameters, progress, *_regular(parameters, _MIXED, uniform_cost=False), planners)


@scenario("comet-skewed", "cost by delay tolerance: junctions have one to three inputs", **_COMMON)
def run_skewed(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners on a tree that is not regular."""
    random = np.random.default_rng(parameters["seed"])
    degrees = np.random.default_rng(parameters["seed"] + 2)
    leaves: list[str] = []
    while not 4 <= len(leaves) <= 9:  # the best centralised plan is searched for among all
        network, leaves = dtn_tree(
            3, lambda: int(degrees.integers(1, 4)), _HIGH, uniform_cost=False, random=random
        )
    composite = composite_of(leaves, parameters["most_min"], parameters["window_s"])
    return _sweep(parameters, progress, network, composite, PLANNERS)


@scenario(
    "comet-depth",
    "cost by depth of the tree, at one delay tolerance",
    **{
        **_COMMON,
        "tolerances_min": ((120.0,), "how late a detection may be"),
        "depths": ((1.0, 2.0, 3.0), "links from the sink to the sources"),
        "sources": (8, "how many sources"),
    },
)
def run_depth(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners on trees of different depths with as many sources."""
    rows: list[dict[str, Any]] = []
    depths = [int(depth) for depth in parameters["depths"]]
    for number, depth in enumerate(depths):
        progress(number, len(depths))
        random = np.random.default_rng(parameters["seed"])
        degree = max(2, math.ceil(parameters["sources"] ** (1 / depth) - 1e-9))
        network, leaves = dtn_tree(depth, partial(int, degree), _HIGH, uniform_cost=False, random=random)
        composite = composite_of(
            leaves[: parameters["sources"]], parameters["most_min"], parameters["window_s"]
        )
        found = _sweep(parameters, lambda _done, _total: None, network, composite, PLANNERS)
        rows += [{"depth": depth, **row} for row in found.rows]
    return Results(rows, (Plot("cost", "Cost a minute by depth", "depth", "cost/min", "planner"),))


@scenario("comet-phases", "what the second phase of Comet, pulling several at once, adds", **_COMMON)
def run_phases(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare Comet with one phase and with two."""

    def first(composite: Composite, network: Network) -> PushPullPlan:
        return plan_comet(composite, network, phases=1)

    network, composite = _regular(parameters, _HIGH, uniform_cost=False)
    return _sweep(parameters, progress, network, composite, {"one phase": first, "two phases": plan_comet})
