"""Operators that follow movers through a hierarchy of brokers: plans carried out and measured (MigCEP, 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.plan.migration import (
    Horizon,
    LeafFinder,
    LearnedMoves,
    MigrationProblem,
    attach,
    coordinate,
    follow_greedily,
    plan_migrations,
    stay,
)
from whimbrel.plan.migration.experiment import Predictors, follow_predictions, friends_nearby, tiers
from whimbrel.plan.network import Mover, Network
from whimbrel.plan.routes import by_delay
from whimbrel.plan.workload import Workload
from whimbrel.sim.mobility import street_grid
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.running import Move, Settings, run_workload
from whimbrel.sim.scenarios.registry import Plot, Progress, Results, Value, scenario

Hosts = Mapping[str, npt.NDArray[np.int64]]
Way = Callable[[MigrationProblem], Hosts]
"""How hosts are chosen for every step."""
AREA_M = (7_700.0, 3_500.0)
SHAPES = {"quad-tree": [(1, 1), (2, 2), (4, 4)], "flat": [(8, 5)]}

_COMMON: dict[str, tuple[Value, str]] = {
    "graphs": (4, "how many operator graphs, each with movers of its own"),
    "seconds": (300.0, "how long movers drive"),
    "brokers": ("quad-tree", "quad-tree: 21 below a cloud; flat: 40 below a cloud"),
}


class Drive:
    """Movers in a town under a hierarchy of brokers, and one operator graph for every three of them."""

    def __init__(self, parameters: Mapping[str, Any], step_s: float = 1.0) -> None:
        self.seconds = parameters["seconds"]
        self.seed = parameters["seed"]
        random = np.random.default_rng(self.seed)
        count = 3 * parameters["graphs"]
        self.cars = street_grid(
            count + 30, (0.0, 0.0, *AREA_M), until_s=self.seconds + 1, block_m=250.0, random=random
        )
        bare = tiers(SHAPES[parameters["brokers"]], area_m=AREA_M)
        self.network = Network(bare.brokers, bare.links, movers=self.cars)
        self.horizon = Horizon(max(1, round(self.seconds / step_s)), step_s)
        self.truth = attach(self.network, self.horizon)
        names = [car.name for car in self.cars]
        self.groups = [(names[n], names[n + 1], names[n + 2]) for n in range(0, count, 3)]
        self.others = [car.name for car in self.cars[count:]]

    def problem(self, workload: Workload) -> MigrationProblem:
        """Give the problem of one graph; its tasks begin next to the movers that they depend on."""
        names = {feed.at for feed in workload.feeds} | {each.at for each in workload.deliveries}
        start = {
            task: self._first(mover)
            for task, mover in zip(
                ("distance a", "distance b", "friends"),
                (workload.feeds[0].at, workload.feeds[1].at, workload.deliveries[0].at),
                strict=True,
            )
        }
        attachments = {name: self.truth[name] for name in names}
        return MigrationProblem(self.network, workload, self.horizon, attachments, start)

    def _first(self, mover: str) -> str:
        return self.network.brokers[int(self.truth[mover].hosts[0])].name

    def run(self, problem: MigrationProblem, hosts: Hosts) -> Outcome:
        """Carry hosts out: begin in time for each to be where it should be."""
        workload, brokers = problem.workload, self.network.brokers
        placement: dict[str, str] = {}
        moves: list[Move] = []
        for task, plan in problem.plans(dict(hosts)).items():
            placement[task] = brokers[int(plan.hosts[0])].name
            moves += [(max(0.0, move.fixed_send_s), task, brokers[move.target].name) for move in plan.moves]
        names = {feed.at for feed in workload.feeds} | {each.at for each in workload.deliveries}
        some = tuple(car for car in self.cars if car.name in names)
        network = Network(self.network.brokers, self.network.links, movers=_until(some, self.seconds))
        settings = Settings(seed=self.seed, weight=by_delay, header_b=0.0)
        return run_workload(
            workload, network, placement, until_s=self.seconds, moves=sorted(moves), settings=settings
        )


def _until(cars: Iterable[Mover], seconds: float) -> tuple[Mover, ...]:
    """Leave out what is after the end, so that nobody moves on when all is over."""
    return tuple(
        Mover(car.name, tuple(each for each in car.track if each[0] <= seconds) or car.track[:1])
        for car in cars
    )


WAYS: dict[str, Way] = {
    "static": stay,
    "greedy": follow_greedily,
    "planned": lambda problem: coordinate(problem, stay(problem)).hosts,
    "planned as a whole": plan_migrations,
}


def _compare(drive: Drive, workloads: Iterable[Workload], ways: Mapping[str, Way]) -> list[dict[str, Any]]:
    """Carry out every way for every graph; give sums."""
    sums: dict[str, dict[str, float]] = {name: {} for name in ways}
    for workload in workloads:
        problem = drive.problem(workload)
        for name, way in ways.items():
            hosts = way(problem)
            found = drive.run(problem, hosts)
            used = found.traffic.by_kind
            for key, value in {
                "estimated B s": problem.value(dict(hosts)).cost,
                "B s": sum(used[kind].bdp for kind in ("data", "state", "fixed state")),
                "of state B s": used["state"].bdp + used["fixed state"].bdp,
                "moves": len(found.moves),
                "down s": sum(move.down_s or 0.0 for move in found.moves),
                "dropped": len(found.traffic.drops),
            }.items():
                sums[name][key] = sums[name].get(key, 0.0) + value
    first = sums[next(iter(ways))]["B s"]
    return [{"way": name, **figures, "of static": figures["B s"] / first} for name, figures in sums.items()]


@scenario(
    "migcep-state-size",
    "byte seconds of operators that follow movers, by the size of their fixed state",
    **_COMMON,
    states_b=((0.0, 10_000.0, 20_000.0, 40_000.0, 60_000.0), "sizes of the state"),
    event_b=(1_000.0, "bytes of an event"),
)
def run_state_size(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare staying, following greedily and planning."""
    drive, rows = Drive(parameters), []
    for number, state in enumerate(parameters["states_b"]):
        progress(number, len(parameters["states_b"]))
        workloads = [friends_nearby(group, parameters["event_b"], state) for group in drive.groups]
        rows += [{"state B": state, **row} for row in _compare(drive, workloads, WAYS)]
    return Results(rows, _plots("state B"))


@scenario(
    "migcep-event-size",
    "byte seconds of operators that follow movers, by the size of events",
    **_COMMON,
    events_b=((50.0, 250.0, 500.0, 1_000.0, 2_000.0), "sizes of an event"),
    state_b=(20_000.0, "bytes of fixed state"),
)
def run_event_size(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare staying, following greedily and planning."""
    drive, rows = Drive(parameters), []
    for number, event in enumerate(parameters["events_b"]):
        progress(number, len(parameters["events_b"]))
        workloads = [friends_nearby(group, event, parameters["state_b"]) for group in drive.groups]
        rows += [{"event B": event, **row} for row in _compare(drive, workloads, WAYS)]
    return Results(rows, _plots("event B"))


@scenario(
    "migcep-time-steps",
    "byte seconds of planned operators, by the length of the time steps of plans",
    **_COMMON,
    steps_s=((1.0, 2.0, 5.0, 10.0, 20.0), "lengths of a step"),
    event_b=(1_000.0, "bytes of an event"),
    state_b=(20_000.0, "bytes of fixed state"),
)
def run_time_steps(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare plans of finer and coarser steps."""
    rows = []
    for number, step in enumerate(parameters["steps_s"]):
        progress(number, len(parameters["steps_s"]))
        drive = Drive(parameters, step)
        workloads = [
            friends_nearby(group, parameters["event_b"], parameters["state_b"]) for group in drive.groups
        ]
        ways = {name: WAYS[name] for name in ("static", "planned")}
        rows += [{"step s": step, **row} for row in _compare(drive, workloads, ways)]
    return Results(rows, _plots("step s"))


@scenario(
    "migcep-uncertainty",
    "byte seconds of operators that are planned by what is known of movers: all, the route, the past, others",
    **_COMMON,
    event_b=(1_000.0, "bytes of an event"),
    state_b=(20_000.0, "bytes of fixed state"),
)
def run_uncertainty(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare ways to tell where movers will be."""
    drive = Drive(parameters)
    learned = LearnedMoves()
    learned.learn([drive.truth[name].hosts for name in drive.others], drive.horizon)
    known = Predictors(drive.network, LeafFinder(drive.network), drive.truth, learned)

    def ahead(predict: Any) -> Way:
        return lambda problem: follow_predictions(problem, predict, ahead=60)

    ways = {
        "static": stay,
        "greedy": follow_greedily,
        "known": ahead(known.known),
        "navigation": ahead(known.on_route),
        "dead reckoning": ahead(known.straight_on),
        "learned": ahead(known.as_others),
    }
    rows = []
    for number, group in enumerate(drive.groups):
        progress(number, len(drive.groups))
        workload = friends_nearby(group, parameters["event_b"], parameters["state_b"])
        rows += _compare(drive, [workload], ways)
    return Results(
        _summed(rows), (Plot("bdp", "Byte seconds by what is known of movers", "way", "B s", kind="bar"),)
    )


def _summed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(row["way"] for row in rows))
    found = [
        {
            "way": name,
            **{
                key: sum(row[key] for row in rows if row["way"] == name)
                for key in rows[0]
                if key not in ("way", "of static")
            },
        }
        for name in names
    ]
    for row in found:
        row["of static"] = row["B s"] / found[0]["B s"]
    return found


def _plots(x: str) -> tuple[Plot, ...]:
    return (
        Plot("bdp", "Byte seconds, as a share of never migrating", x, "of static", "way"),
        Plot("moves", "Migrations", x, "moves", "way"),
    )
