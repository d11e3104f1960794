"""Plans for delay-tolerant networks (Comet, section V): what they cost a minute, how late detections are.

The paper prints neither its window nor its rates. They are chosen so that Comet, as built here, saves nearest
to what is printed for it: 89 % of pushing everything, 66 % of the centralised heuristic and 56 % of the
centralised optimum (`comet-window` shows how that depends on the window).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np

from experiments.networks import HIGH_S, deep_tree, skewed_tree
from experiments.poisson import PushPullOutcome, poisson_events, run_plan
from experiments.published import Published, PublishedPlot
from experiments.push_pull_planners import of_sources, plan_all_push, plan_centralised_greedily
from experiments.scenarios.registry import Progress, Value, scenario
from whimbrel.errors import NoPlanError
from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.baselines import plan_centralised
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.comet import best_of, convert, plan_comet, saving
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plan import PushPullPlan
from whimbrel.plan.pushpull.tree import VirtualTrees, detection_tree
from whimbrel.sim.results import Results

Planner = Callable[[Composite, Network], PushPullPlan]
BASELINES: Mapping[str, Planner] = {
    "all-push": plan_all_push,
    "centralised heuristic": plan_centralised_greedily,
    "centralised optimal": plan_centralised,
}
PLANNERS: Mapping[str, Planner] = {**BASELINES, "comet": plan_comet, "whimbrel": plan_pushpull}
MOST_SOURCES = 9
"""The best centralised plan is searched for among all."""
FIGURE_4 = {"all-push": 89.0, "centralised heuristic": 66.0, "centralised optimal": 56.0}
FIGURE_8 = {"all-push": 89.0, "centralised heuristic": 69.0, "centralised optimal": 61.0}
LEAST_MIN = 16.5
"""Printed: below it there is no plan that is quick enough."""

_TOLERANCES = (17.0, 25.0, 40.0, 55.0, 70.0, 85.0, 100.0, 130.0, 160.0, 190.0, 220.0, 250.0)
_COMMON: dict[str, tuple[Value, str]] = {
    "minutes": (6_000.0, "how long events occur"),
    "tolerances_min": (_TOLERANCES, "how late a detection may be"),
    "most_min": (1.0, "events a minute of the most frequent source"),
    "exponent": (0.5, "how unequal sources are: the k-th sends 1 / k to this power of the first (Zipf)"),
    "window_s": (10.0, "how far apart the events of a detection may be"),
}


def _regular(parameters: Mapping[str, Any], **about: bool) -> tuple[Network, Composite]:
    """Make a tree of three levels with two children each, as in Figures 4 to 7."""
    network = deep_tree(parameters["seed"], **_rates(parameters), **about)
    return network, of_sources(network, parameters["window_s"])


def _rates(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"most_hz": parameters["most_min"] / 60, "exponent": parameters["exponent"]}


# -- runs ---------------------------------------------------------------------------------------------------


def _judge(plan: PushPullPlan, network: Network, events: Mapping[str, Any], seed: int) -> dict[str, Any]:
    found = run_plan(plan, network, events, seed=seed)
    told = plan.estimate.cost_s * 60
    return {
        "estimated cost/min": told,
        "cost/min": found.cost_a_minute,
        "estimated / measured": told / found.cost_a_minute if found.cost_a_minute else None,
        "by chance": _by_chance(found),
        "delay bound s": plan.estimate.delay_s,
        "largest delay s": float(found.delays_s.max()) if len(found.delays_s) else None,
        "mean delay s": float(found.delays_s.mean()) if len(found.delays_s) else None,
        "detections": len(found.found),
        "missed": len(found.missed),
        "requests": found.traffic.by_kind["request"].messages,
    }


def _by_chance(found: PushPullOutcome, blocks: int = 20) -> float | None:
    """Tell how far the measured cost may be off by chance: one standard error, as a share of it."""
    costs = np.array([cost for _, cost in found.traffic.series("cost")][: int(found.minutes)])
    if len(costs) < 2 * blocks or not costs.sum():
        return None
    means = np.array([block.mean() for block in np.array_split(costs, blocks)])
    return float(means.std(ddof=1) / blocks**0.5 / means.mean())


def _measured(
    parameters: Mapping[str, Any],
    progress: Progress,
    network: Network,
    composite: Composite,
    planners: Mapping[str, Planner],
) -> list[dict[str, Any]]:
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
        costs: dict[str, float] = {}
        for name, planner in planners.items():
            try:
                plan = planner(wanted, network)
            except NoPlanError:
                continue
            words = plan.words()
            if words not in known:
                known[words] = _judge(plan, network, events, parameters["seed"])
            costs[name] = known[words]["cost/min"]
            below = {f"% below {base}": _below(costs, name, base) for base in BASELINES if base in planners}
            rows.append({"tolerance min": tolerance, "planner": name, **known[words], **below})
    return rows


def _below(costs: Mapping[str, float], name: str, base: str) -> float | None:
    """Tell by how many per cent a planner is below another; None for what one compares with."""
    if name in BASELINES or not costs.get(base):
        return None
    return 100 * (1 - costs[name] / costs[base])


def _sweep(
    parameters: Mapping[str, Any],
    progress: Progress,
    network: Network,
    composite: Composite,
    planners: Mapping[str, Planner] = PLANNERS,
    *,
    figure: str = "Figure 4",
    printed: Mapping[str, float] = {},
) -> Results:
    """Compare planners over delay tolerances, beside what the paper prints of it."""
    rows = _measured(parameters, progress, network, composite, planners)
    title = "by delay tolerance"
    plots = [
        PublishedPlot(
            "cost", f"Cost a minute {title}", "tolerance min", "cost/min", "planner", logarithmic=True
        ),
    ]
    if any(row["largest delay s"] is not None for row in rows):
        plots.append(
            PublishedPlot("delay", f"Largest delay {title}", "tolerance min", "largest delay s", "planner")
        )
    for base in BASELINES:
        if base in planners:
            paper = tuple(
                Published("comet, mean", value, f"Comet, {figure}") for value in [printed.get(base)] if value
            )
            y = f"% below {base}"
            file = f"below-{base.replace(' ', '-')}"
            plots.append(
                PublishedPlot(file, f"Saved against {base}", "tolerance min", y, "planner", published=paper)
            )
    return Results(rows, tuple(plots), _notes(rows, network, composite))


def _notes(rows: list[dict[str, Any]], network: Network, composite: Composite) -> dict[str, Any]:
    """Tell the means over all tolerances, how far estimates are off, and how quick the quickest plan is."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(row["planner"] for row in rows):
        for base in BASELINES:
            shares = [
                row[f"% below {base}"] for row in rows if row["planner"] == name and f"% below {base}" in row
            ]
            if shares and None not in shares:
                found[f"{name} below {base}"] = f"{mean(shares):.0f} %, {min(shares):.0f} % at the least"
    ratios = [row["estimated / measured"] for row in rows if row["estimated / measured"]]
    if ratios:
        found["estimated / measured"] = f"{min(ratios):.3f} to {max(ratios):.3f}"
    quickest = plan_all_push(replace(composite, tolerance_s=float("inf")), network).estimate.delay_s / 60
    found["quickest plan min"] = f"{quickest:.1f}"
    if all(link.contacts.longest_wait_s == HIGH_S for link in network.links):
        found["quickest plan min"] += f" (the paper: {LEAST_MIN:g})"
    return found


# -- the figures of the paper -------------------------------------------------------------------------------


@scenario("comet-cost", "Comet's figure 4, cost by delay tolerance: links near the sink are dear", **_COMMON)
def run_cost(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where links cost what they take."""
    return _sweep(parameters, progress, *_regular(parameters), printed=FIGURE_4)


@scenario("comet-uniform", "Comet's figure 5: a byte costs the same on every link", **_COMMON)
def run_uniform(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where all links cost the same."""
    return _sweep(parameters, progress, *_regular(parameters, is_cost_uniform=True), figure="Figure 5")


@scenario(
    "comet-latency", "Comet's figure 6, bottom: links near the sink are dear, and down for longer", **_COMMON
)
def run_latency(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where links are down for different times and cost what they take."""
    return _sweep(parameters, progress, *_regular(parameters, is_uniform=False), figure="Figure 6")


@scenario(
    "comet-latency-uniform",
    "Comet's figure 6, top: links near the sink are down for longer, all cost the same",
    **_COMMON,
)
def run_latency_uniform(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners where links are down for different times and cost the same."""
    made = _regular(parameters, is_uniform=False, is_cost_uniform=True)
    return _sweep(parameters, progress, *made, figure="Figure 6")


@scenario(
    "comet-order", "Comet's figure 7: conversions ordered by saving for the delay, or by saving", **_COMMON
)
def run_order(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the two ways to order conversions, with both kinds of costs."""

    def by_saving(composite: Composite, network: Network) -> PushPullPlan:
        return plan_comet(composite, network, gain=saving)

    planners = {"comet by saving": by_saving, "comet": plan_comet, "whimbrel": plan_pushpull}
    rows = []
    for kind, is_cost_uniform in (("dear near the sink", False), ("all cost the same", True)):
        made = _regular(parameters, is_uniform=False, is_cost_uniform=is_cost_uniform)
        rows += [
            {"links": kind, "order": f"{row['planner']}, {kind}", **row}
            for row in _measured(parameters, progress, *made, planners)
        ]
    title = "Cost a minute by delay tolerance"
    return Results(
        rows, (PublishedPlot("cost", title, "tolerance min", "cost/min", "order", logarithmic=True),)
    )


@scenario("comet-skewed", "Comet's figure 8: junctions have one to three inputs", **_COMMON)
def run_skewed(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners on a tree that is not regular."""
    seed = parameters["seed"]
    network = skewed_tree(seed, **_rates(parameters))
    while not 8 <= len(network.sources) <= MOST_SOURCES:
        seed += 1_000
        network = skewed_tree(seed, **_rates(parameters))
    composite = of_sources(network, parameters["window_s"])
    return _sweep(parameters, progress, network, composite, figure="Figure 8", printed=FIGURE_8)


def to_depth(depth: int) -> Planner:
    """Plan as Comet does, with junctions down to a depth only."""

    def plan(composite: Composite, network: Network) -> PushPullPlan:
        trees = VirtualTrees(detection_tree(network, composite))
        shorted = (trees.without(trees.from_level(level)) for level in range(depth, 0, -1))
        return best_of(convert(composite, tree) for tree in shorted)

    return plan


@scenario(
    "comet-depth",
    "Comet's figure 9: cost by how deep the tree is in which parts are put together",
    **{
        **_COMMON,
        "tolerances_min": ((100.0,), "how late a detection may be"),
        "depths": ((1.0, 2.0, 3.0), "levels that have junctions, from the sink on"),
    },
)
def run_depth(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare Comet with junctions down to different depths with the centralised optimum, on one network."""
    network, composite = _regular(parameters)
    rows: list[dict[str, Any]] = []
    depths = [int(depth) for depth in parameters["depths"]]
    others = {name: PLANNERS[name] for name in ("centralised optimal", "whimbrel")}
    for number, depth in enumerate(depths):
        progress(number, len(depths))
        planners = {"comet": to_depth(depth), **others}
        found = _measured(parameters, lambda _done, _total: None, network, composite, planners)
        rows += [{"depth": depth, **row} for row in found]
    return Results(rows, (PublishedPlot("cost", "Cost a minute by depth", "depth", "cost/min", "planner"),))


@scenario(
    "comet-phases", "Comet's figure 10: what pulling several at once, its second phase, adds", **_COMMON
)
def run_phases(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare Comet with one phase and with two."""

    def first(composite: Composite, network: Network) -> PushPullPlan:
        return plan_comet(composite, network, phases=1)

    planners = {"one phase": first, "two phases": plan_comet, "whimbrel": plan_pushpull}
    rows = _measured(parameters, progress, *_regular(parameters), planners)
    title = "Cost a minute by delay tolerance"
    return Results(
        rows, (PublishedPlot("cost", title, "tolerance min", "cost/min", "planner", logarithmic=True),)
    )


@scenario(
    "comet-window",
    "what is saved by how far apart the events of a detection may be, which the paper does not print",
    **{
        **{name: about for name, about in _COMMON.items() if name != "window_s"},
        "minutes": (1_000.0, "how long events occur"),
        "windows_s": ((2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0), "how far apart events may be"),
    },
)
def run_window(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners over windows: means over the delay tolerances."""
    rows: list[dict[str, Any]] = []
    windows = parameters["windows_s"]
    for number, window in enumerate(windows):
        progress(number, len(windows))
        network, composite = _regular({**parameters, "window_s": window})
        found = _measured(parameters, lambda _done, _total: None, network, composite, PLANNERS)
        for name in ("comet", "whimbrel"):
            its = [row for row in found if row["planner"] == name]
            row: dict[str, Any] = {"window s": window, "planner": name}
            for base in BASELINES:
                shares = [each[f"% below {base}"] for each in its if each[f"% below {base}"] is not None]
                row[f"% below {base}"] = mean(shares) if shares else None
                row[f"least % below {base}"] = min(shares, default=None)
            rows.append(row)
    plots = tuple(
        PublishedPlot(
            f"below-{base.replace(' ', '-')}",
            f"Saved against {base}, mean over delay tolerances",
            "window s",
            f"% below {base}",
            "planner",
            published=(Published("comet", printed, "Comet, Figure 4"),),
        )
        for base, printed in FIGURE_4.items()
    )
    return Results(rows, plots)
