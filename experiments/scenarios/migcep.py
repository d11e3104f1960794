"""Operators that follow movers through a hierarchy of brokers: the experiments of MigCEP (section 6).

Plans are carried out in the simulator. Where a figure is "planned", it is what the plans were expected to
cost; `optimum` is the best that any plans could cost where all is known, planned only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from experiments.migration_policies import POLICIES
from experiments.published import Published, PublishedPlot
from experiments.scenarios.driving import Hosts, Town
from experiments.scenarios.registry import Progress, Value, scenario
from experiments.workloads import Factors
from whimbrel.errors import NoPlanError, SimulationError, did_you_mean
from whimbrel.plan.migration import (
    MigrationProblem,
    coordinate,
    follow_greedily,
    plan_jointly,
    stay,
)
from whimbrel.plan.migration.predictors import Predictors
from whimbrel.plan.migration.replanning import Predict, replan_with_predictions
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.results import Results

Way = Callable[[MigrationProblem], Hosts]
"""How hosts are chosen for every step."""

MOST_STATES = 120_000_000
"""States times steps times operators up to which the optimum is searched: about half a gigabyte."""
GREEDY_S = 5.0
"""How often greedy looks for a better place: every few seconds in the paper."""
COMMON: dict[str, tuple[Value, str]] = {
    "graphs": (4, "how many operator graphs, each with movers of its own"),
    "seconds": (1000.0, "how long movers drive"),
    "brokers": ("quad-tree", "quad-tree: 21 below a cloud; flat: 40 below a cloud"),
    "vehicles": (1000, "how many movers there are; those in no graph are learned from"),
    "mobility": ("streets", "streets: trips in a grid of streets; sumo; or a file of positions"),
    "start": ("random", "where operators begin: random (the paper), near (their movers) or consumer"),
}
AGAINST_STATIC = Published("saved 80 % of static", 0.2, "thesis, section 4.6: more than")
AGAINST_GREEDY = (
    Published("20 %, all known", 20.0, "thesis, section 4.6: more than"),
    Published("49 %, all known", 49.0, "paper, abstract: up to"),
)


def friends_nearby(
    movers: tuple[str, ...],
    event_b: float,
    state_b: float,
    detections_hz: float = 0.1,
    stateful: str = "distance a",
) -> Workload:
    """Build the operator graph of figure 1(a): two distances, and a count of friends for a consumer.

    Parameters
    ----------
    movers
        Two friends, who report once a second, and the consumer.
    event_b
        The size of the first friend's events; the other's have 50 B.
    state_b
        The fixed state of one operator.
    detections_hz
        How often an operator gives an event, of 50 B.
    stateful
        Which operator has the state: the one that reads the first friend's events, or another.
    """
    first, second, consumer = movers
    inputs = {"distance a": ("a",), "distance b": ("b",), "friends": ("distance a", "distance b")}
    return Workload(
        (Feed("a", 1.0, event_b, first), Feed("b", 1.0, 50.0, second)),
        tuple(
            Task(name, names, detections_hz, 50.0, fixed_b=state_b if name == stateful else 0.0)
            for name, names in inputs.items()
        ),
        (Delivery("friends", consumer),),
    )


def town_of(parameters: Mapping[str, Any], step_s: float = 1.0, **more: Any) -> Town:
    """Make the town that the parameters of a scenario describe."""
    names = ("brokers", "mobility", "vehicles", "seconds", "seed")
    return Town(**{name: parameters[name] for name in names}, step_s=step_s, **more)


def problems(
    town: Town, parameters: Mapping[str, Any], event_b: float, state_b: float, **graph: Any
) -> list[MigrationProblem]:
    """Return one problem for each operator graph: the same movers and beginnings for all sizes."""
    found = []
    for number, group in enumerate(town.groups(parameters["graphs"])):
        workload = friends_nearby(group, event_b, state_b, **graph)
        found.append(town.problem(workload, town.start(workload, parameters["start"], number)))
    return found


def carry_out(
    town: Town, problems: Iterable[MigrationProblem], way: Way, factors: Factors | None = None
) -> dict[str, Any]:
    """Carry a way out for every graph in the simulator; give sums of what was planned and measured."""
    sums: dict[str, float] = {}
    for problem in problems:
        hosts = way(problem)
        found = town.run(problem, hosts, factors)
        used = found.traffic.by_kind
        delays = [delay for each in found.delays_s.values() for delay in each.tolist()]
        for key, value in {
            "planned B s": problem.value(dict(hosts)).cost,
            "B s": sum(used[kind].bdp for kind in ("data", "state", "fixed state")),
            "of state B s": used["state"].bdp + used["fixed state"].bdp,
            "moves": len(found.moves),
            "down s": sum(move.down_s or 0.0 for move in found.moves),
            "delay ms": 1000 * sum(delays) / max(1, len(delays)),
            "dropped": len(found.traffic.drops),
        }.items():
            sums[key] = sums.get(key, 0.0) + value
    return sums


def greedily(problem: MigrationProblem) -> Hosts:
    """Go every few seconds to where it is best now."""
    return follow_greedily(problem, GREEDY_S)


def _line(name: str) -> tuple[str, str]:
    if name not in LINES:
        hint = did_you_mean(name, LINES) or "there are " + ", ".join(LINES)
        raise SimulationError(f"no line is named {name!r}; {hint}")
    return LINES[name]


def _share(value: float, of: float) -> float | None:
    return value / of if of else None


def saved(value: float, of: float) -> float | None:
    """Say how many percent of a cost are saved."""
    return 100 * (1 - value / of) if of else None


def _compare(
    town: Town, some: list[MigrationProblem], *, optimum: bool
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Compare never migrating, following greedily and planning for all of the time at once."""
    agreed = {id(problem): coordinate(problem, stay(problem)) for problem in some}
    ways: dict[str, Way] = {
        "static": stay,
        "greedy": greedily,
        "planned": lambda problem: agreed[id(problem)].hosts,
    }
    rows = [{"way": name, **carry_out(town, some, way)} for name, way in ways.items()]
    if optimum:
        cost = sum(problem.value(best_of_all(problem)).cost for problem in some)
        # It is not carried out: what a plan costs is what it is expected to cost.
        rows.append({"way": "optimum", "planned B s": cost, "B s": cost})
    static, greedy = rows[0]["B s"], rows[1]["B s"]
    for row in rows:
        row["of static"] = _share(row["B s"], static)
        row["saved % of static"] = saved(row["B s"], static)
        row["saved % of greedy"] = saved(row["B s"], greedy) if row["way"] in ("planned", "optimum") else None
    # One coordination is that of one operator with its neighbours and with the brokers it is going to.
    plans = sum(len(problem.tasks) for problem in some)
    return rows, {"messages": sum(each.sent for each in agreed.values()) / plans}


def best_of_all(problem: MigrationProblem) -> Hosts:
    """Plan all operators at once, exactly; say so where that takes too much memory."""
    try:
        return plan_jointly(problem, {}, problem.tasks, most=MOST_STATES)
    except NoPlanError as error:
        hint = "give fewer seconds (with flat brokers 500), or optimum=0"
        raise SimulationError(f"the optimum takes too much memory here: {error}; {hint}") from error


_FIGURE_9 = "sizes of events; the paper goes from 50 to 250 B"


@scenario(
    "migcep-state-size",
    "byte seconds of operators that follow movers, by the size of their state and of events (figure 9 a-d)",
    **COMMON,
    states_b=((0.0, 5_000.0, 15_000.0, 30_000.0, 60_000.0), "sizes of the state"),
    events_b=((50.0, 250.0), _FIGURE_9),
    optimum=(
        1,
        "1: find the optimum, too; it takes seconds for each row and graph on many brokers; 0: do not",
    ),
)
def run_state_size(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare staying, following greedily and planning, where it is known how movers go."""
    return _sizes(parameters, progress, "state B")


@scenario(
    "migcep-event-size",
    "byte seconds of operators that follow movers, by the size of events (figure 9 a-d, the other way)",
    **COMMON,
    events_b=((50.0, 100.0, 150.0, 200.0, 250.0), _FIGURE_9),
    states_b=((0.0, 15_000.0), "sizes of the state"),
    optimum=(0, "1: find the optimum, too; 0: do not"),
)
def run_event_size(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare staying, following greedily and planning, where it is known how movers go."""
    return _sizes(parameters, progress, "event B")


def _sizes(parameters: Mapping[str, Any], progress: Progress, x: str) -> Results:
    town, rows = town_of(parameters), []
    other = "event B" if x == "state B" else "state B"
    pairs = [(event, state) for event in parameters["events_b"] for state in parameters["states_b"]]
    for number, (event, state) in enumerate(pairs):
        progress(number, len(pairs))
        sizes = {"event B": event, "state B": state}
        some = problems(town, parameters, event, state)
        found, about = _compare(town, some, optimum=bool(parameters["optimum"]))
        for row in found:
            line = f"{row['way']}, {sizes[other]:.0f} B {other[:-2]}s"
            rows.append({**sizes, "line": line, **row, **(about if row["way"] == "planned" else {})})
    return Results(
        [{"messages": None, **row} for row in rows],
        (
            PublishedPlot(
                "bdp",
                f"Byte seconds, as a share of static ({parameters['brokers']})",
                x,
                "of static",
                "line",
                published=(AGAINST_STATIC,),
            ),
            PublishedPlot(
                "greedy",
                f"Saved against greedy ({parameters['brokers']})",
                x,
                "saved % of greedy",
                "line",
                published=AGAINST_GREEDY,
            ),
            PublishedPlot(
                "messages",
                "Messages per operator that coordinates its plan",
                x,
                "messages",
                "line",
                published=(Published("27 messages", 27.0, "paper, section 6.1: average"),),
            ),
        ),
    )


@scenario(
    "migcep-time-steps",
    "byte seconds of planned operators, by the distance between time steps (figure 9 e)",
    **COMMON,
    steps_s=((1.0, 2.0, 4.0, 8.0, 16.0), "distances between time steps"),
    event_b=(250.0, "bytes of an event"),
    states_b=((0.0, 15_000.0), "sizes of the state"),
)
def run_time_steps(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare plans of finer and coarser steps; the paper says that costs grow linearly with the distance."""
    rows = []
    for number, step in enumerate(parameters["steps_s"]):
        progress(number, len(parameters["steps_s"]))
        town = town_of(parameters, step)
        for state in parameters["states_b"]:
            some = problems(town, parameters, parameters["event_b"], state)
            for name, way in {"planned": _planned, "greedy": greedily}.items():
                found = carry_out(town, some, way)
                rows.append({"step s": step, "line": f"{name}, state {state:.0f} B", **found})
    _compare_with_largest(rows)
    return Results(
        rows,
        (
            PublishedPlot(
                "bdp",
                "Byte seconds by the distance between time steps",
                "step s",
                "of the largest",
                "line",
            ),
        ),
        {"paper": "the increase is linear in the distance (section 6.2); its points are not in our copy"},
    )


def _compare_with_largest(rows: list[dict[str, Any]]) -> None:
    """Add to each row which share of the largest it is, as the paper draws it."""
    most = max(row["B s"] for row in rows)
    for row in rows:
        row["of the largest"] = row["B s"] / most


def _planned(problem: MigrationProblem) -> Hosts:
    return coordinate(problem, stay(problem)).hosts


@scenario(
    "migcep-horizon",
    "byte seconds of operators that plan some steps ahead and look at nearby brokers only (figure 9 f)",
    **{**COMMON, "graphs": (3, COMMON["graphs"][1])},
    sizes=((10.0, 100.0, 200.0, 300.0, 400.0, 500.0), "numbers of time steps"),
    ranges_m=((0.0, 2_500.0, 5_000.0), "how far away areas of brokers may be"),
    step_s=(1.0, "distance between time steps"),
    event_b=(250.0, "bytes of an event"),
    state_b=(15_000.0, "bytes of fixed state"),
    predict=("navigation", "what is known of movers: known, navigation, linear or learned"),
)
def run_horizon(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare how far plans look ahead in time and in space."""
    town = town_of(parameters, parameters["step_s"])
    some = problems(town, parameters, parameters["event_b"], parameters["state_b"])
    predict = predictors_of(town, parameters)[parameters["predict"]]
    greedy = carry_out(town, some, greedily)["B s"]
    pairs = [(area, int(size)) for area in parameters["ranges_m"] for size in parameters["sizes"]]
    rows = []
    for number, (area, size) in enumerate(pairs):
        progress(number, len(pairs))

        def way(problem: MigrationProblem, area: float = area, size: int = size) -> Hosts:
            policy = POLICIES["weighted sum"]
            return replan_with_predictions(problem, predict, 20.0, size, policy, range_m=area).hosts

        found = carry_out(town, some, way)
        rows.append({"steps": size, "range": f"{area:.0f} m", **found, "of greedy": found["B s"] / greedy})
    _compare_with_largest(rows)
    return Results(
        rows,
        (
            PublishedPlot(
                "bdp",
                "Byte seconds by the number of time steps ahead",
                "steps",
                "of the largest",
                "range",
            ),
        ),
        {"paper": "a larger range is better; few steps limit migrations, too many go wrong (section 6.2)"},
    )


def predictors_of(town: Town, parameters: Mapping[str, Any]) -> dict[str, Predict]:
    """Return the ways to tell where movers will be, by name; learned from movers that are in no graph."""
    taken = [name for group in town.groups(parameters["graphs"]) for name in group]
    known: Predictors = town.predictors(taken)
    return {
        "known": known.known,
        "navigation": known.on_route,
        "navigation, learned times": known.on_learned_route,
        "linear": known.straight_on,
        "learned": known.as_others,
    }


LINES = {
    "known": ("known", "weighted sum"),
    "navi ws": ("navigation", "weighted sum"),
    "navi naive": ("navigation", "naive"),
    "navi adaptive": ("navigation", "adaptive"),
    "linear ws": ("linear", "weighted sum"),
    "linear naive": ("linear", "naive"),
    "linear adaptive": ("linear", "adaptive"),
    "learned ws": ("learned", "weighted sum"),
    "learned naive": ("learned", "naive"),
    "learned adaptive": ("learned", "adaptive"),
    "learned-times ws": ("navigation, learned times", "weighted sum"),
    "learned-times temporal": ("navigation, learned times", "temporal adjustment"),
    "learned-times skewed": ("navigation, learned times", "temporally skewed"),
}
"""What is known of movers, and the policy: the lines of figure 10 a and b."""


@scenario(
    "migcep-uncertainty",
    "byte seconds of operators by what is known of movers and by policy, over the state (figure 10 a, b)",
    **{**COMMON, "graphs": (2, COMMON["graphs"][1]), "seconds": (300.0, COMMON["seconds"][1])},
    states_b=((0.0, 5_000.0, 15_000.0, 60_000.0), "sizes of the state"),
    event_b=(250.0, "bytes of an event"),
    detections_hz=(0.1, "events a second that an operator gives"),
    stateful=("distance a", "which operator has the state: distance a, or friends as in the thesis"),
    step_s=(2.0, "distance between time steps"),
    ahead_s=(200.0, "how far plans look ahead"),
    every_s=(20.0, "how often there is a new plan, besides when a mover is not where it was expected"),
    lines=(tuple(LINES), "knowledge and policy"),
)
def run_uncertainty(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare ways to tell where movers will be, and policies to plan next to them, with greedy."""
    town = town_of(parameters, parameters["step_s"])
    predict = predictors_of(town, parameters)
    ahead = round(parameters["ahead_s"] / parameters["step_s"])
    graph = {name: parameters[name] for name in ("detections_hz", "stateful")}
    rows = []
    total = len(parameters["states_b"]) * len(parameters["lines"])
    for number, state in enumerate(parameters["states_b"]):
        some = problems(town, parameters, parameters["event_b"], state, **graph)
        greedy = carry_out(town, some, greedily)
        sizes = {"state": f"{state:,.0f} B", "state B": state}
        rows.append({**sizes, "line": "greedy", **greedy, "of greedy": 1.0})
        static = carry_out(town, some, stay)["B s"]
        for n, line in enumerate(parameters["lines"]):
            progress(number * len(parameters["lines"]) + n, total)
            name, policy = _line(line)

            def way(problem: MigrationProblem, name: str = name, policy: str = policy) -> Hosts:
                return replan_with_predictions(
                    problem, predict[name], parameters["every_s"], ahead, POLICIES[policy]
                ).hosts

            found = carry_out(town, some, way)
            rows.append({**sizes, "line": line, **found, "of greedy": found["B s"] / greedy["B s"]})
        for row in rows:
            if row["state B"] == state:
                row["saved % of greedy"] = saved(row["B s"], greedy["B s"])
                row["saved % of static"] = saved(row["B s"], static)
    goal = Published("27 % saved", 0.73, "paper, abstract: up to")
    return Results(
        rows,
        (
            PublishedPlot(
                "bdp",
                f"Byte seconds, as a share of greedy ({parameters['brokers']})",
                "state",
                "of greedy",
                "line",
                published=(goal,),
            ),
        ),
    )
