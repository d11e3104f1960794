"""Movers in a town under a hierarchy of brokers, for migration experiments, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.mobility import box_around, recorded, street_trips
from experiments.networks import MIGCEP_AREA, hierarchy
from experiments.query_run import Move
from experiments.sumo import drive_grid
from experiments.workloads import Factors, run_workload
from whimbrel.errors import SimulationError, did_you_mean
from whimbrel.plan.areas import Areas
from whimbrel.plan.migration import Horizon, LearnedMoves, attach
from whimbrel.plan.migration.attachments import positions
from whimbrel.plan.migration.predictors import Predictors
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.network import Box, Mover, Network
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.plan.workload import Workload
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.settings import Settings

Hosts = Mapping[str, npt.NDArray[np.int64]]
TIERS = {"quad-tree": ((1, 1), (2, 2), (4, 4)), "flat": ((8, 5),)}
"""21 fog nodes in a quad-tree under a cloud, and 40 side by side under a cloud."""
BLOCK_M = 250.0


def brokers_of(kind: str, area: Box = MIGCEP_AREA, bandwidth_b_s: float = 1e6) -> Network:
    """Make the brokers of an experiment; links take 10 ms, and brokers can do anything."""
    if kind not in TIERS:
        hint = did_you_mean(kind, TIERS) or "take one of " + ", ".join(TIERS)
        raise SimulationError(f"no brokers are named {kind!r}; {hint}")
    return hierarchy(TIERS[kind], area, capacity=math.inf, bandwidth_b_s=bandwidth_b_s, name=kind)


def movers_of(mobility: str, count: int, seconds: float, seed: int) -> tuple[tuple[Mover, ...], Box]:
    """Make movers, and the area that they are in.

    Parameters
    ----------
    mobility
        `streets`: trips through a grid of streets; `sumo`: the same by SUMO, with lights and queues; else a
        file of recorded positions.
    count
        How many; of a file, at most so many.
    seconds
        How long they drive.
    seed
        What is drawn is drawn from it.
    """
    if mobility == "streets":
        random, area = np.random.default_rng(seed), MIGCEP_AREA
        # No street runs along a border of areas, where it would be chance which one a mover is in.
        town = (area[0] + BLOCK_M / 3, area[1] + BLOCK_M / 3, area[2], area[3])
        cars = street_trips(count, town, until_s=seconds, block_m=BLOCK_M, random=random)
    elif mobility == "sumo":
        area = MIGCEP_AREA
        blocks = (int(area[2] // BLOCK_M), int(area[3] // BLOCK_M))
        cars = drive_grid(count, until_s=seconds, blocks=blocks, block_m=BLOCK_M, seed=seed)
    elif Path(mobility).is_file():
        cars = recorded(Path(mobility))[:count]
        area = box_around(cars)
    else:
        raise SimulationError(
            f"mobility={mobility!r} is neither streets nor sumo, and there is no such file of positions"
        )
    return tuple(_standing_by(car, seconds) for car in cars), area


def _standing_by(car: Mover, seconds: float) -> Mover:
    """Let a mover stand where it sets out before it does, and where it arrives after that."""
    (first, *_), last = car.track, car.track[-1]
    before = ((0.0, *first[1:]),) if first[0] > 0 else ()
    after = ((seconds, *last[1:]),) if last[0] < seconds else ()
    return Mover(car.name, (*before, *car.track, *after))


class Town:
    """Movers under a hierarchy of brokers; some take part in operator graphs, from the others is learned.

    Parameters
    ----------
    brokers
        Which hierarchy.
    mobility, vehicles, seconds, seed
        How movers go (`movers_of`).
    step_s
        The time step of plans.
    bandwidth_b_s
        Of each link.
    """

    def __init__(
        self,
        *,
        brokers: str,
        mobility: str,
        vehicles: int,
        seconds: float,
        seed: int,
        step_s: float = 1.0,
        bandwidth_b_s: float = 1e6,
    ) -> None:
        self.seconds, self.seed = seconds, seed
        cars, self.area = movers_of(mobility, vehicles, seconds + 1, seed)
        self.network = replace(brokers_of(brokers, self.area, bandwidth_b_s), movers=cars)
        self.horizon = Horizon(max(1, round(seconds / step_s)), step_s)
        self.truth = attach(self.network, self.horizon)
        self.routes = Routes(self.network, by_delay)

    def groups(self, count: int, size: int = 3) -> list[tuple[str, ...]]:
        """Draw movers that take part in each of so many operator graphs."""
        names = list(self.network.mover)
        if len(names) < size:
            raise SimulationError(f"{len(names)} movers are too few for operator graphs of {size}")
        draw = np.random.default_rng([self.seed, size])
        return [tuple(draw.choice(names, size, replace=False).tolist()) for _ in range(count)]

    def go_along(self, mover: str, offsets: Iterable[tuple[float, float]]) -> tuple[str, ...]:
        """Add places that go along with a mover, so far away from it, but within the area."""
        x0, y0, x1, y1 = self.area
        made = []
        for number, (dx, dy) in enumerate(offsets):
            track = tuple(
                (t, min(max(x + dx, x0), x1 - 1.0), min(max(y + dy, y0), y1 - 1.0))
                for t, x, y in self.network.mover[mover].track
            )
            made.append(Mover(f"{mover} part {number}", track))
        self.network = replace(self.network, movers=(*self.network.movers, *made))
        names = tuple(each.name for each in made)
        self.truth |= attach(self.network, self.horizon, movers=names)
        return names

    def start(self, workload: Workload, how: str, number: int) -> dict[str, str]:
        """Tell where the tasks of a graph begin.

        `random`: at random brokers, as in the paper; `near`: at the leaf of the mover that a task reads, or
        else of the consumer; `consumer`: at the leaf of the consumer, as the thesis begins MCEP queries.
        """
        if how == "random":
            draw = np.random.default_rng([self.seed, number])
            names = [broker.name for broker in self.network.brokers]
            return {task.name: str(draw.choice(names)) for task in workload.tasks}
        if how not in ("near", "consumer"):
            raise SimulationError(f"start={how!r} is none of random, near, consumer")
        consumer = workload.deliveries[0].at
        feeds = {feed.name: feed.at for feed in workload.feeds} if how == "near" else {}
        return {
            task.name: self.first_leaf(next((feeds[i] for i in task.inputs if i in feeds), consumer))
            for task in workload.tasks
        }

    def first_leaf(self, mover: str) -> str:
        """Return the broker that a mover is attached to first."""
        return self.network.brokers[int(self.truth[mover].hosts[0])].name

    def problem(self, workload: Workload, start: Mapping[str, str]) -> MigrationProblem:
        """Return the problem of one graph, with all that really happens."""
        names = {feed.at for feed in workload.feeds} | {each.at for each in workload.deliveries}
        own = {name: self.truth[name] for name in names}
        return MigrationProblem(self.network, workload, self.horizon, own, start, routes=self.routes)

    def predictors(self, without: Iterable[str]) -> Predictors:
        """Say what can be known of movers; learned from all but some."""
        left_out = set(without)
        learned = LearnedMoves()
        learned.learn((p.hosts for name, p in self.truth.items() if name not in left_out), self.horizon)
        return Predictors(self.network, Areas(self.network), self.truth, learned)

    def run(self, problem: MigrationProblem, hosts: Hosts, factors: Factors | None = None) -> Outcome:
        """Carry hosts out in the simulator: state is sent in time for each to be where it should be."""
        workload, brokers = problem.workload, self.network.brokers
        placement: dict[str, str] = {}
        moves: list[Move] = []
        for task, plan in problem.plans(dict(hosts)).items():
            placement[task] = brokers[int(plan.hosts[0])].name
            moves += [(max(0.0, move.fixed_send_s), task, brokers[move.target].name) for move in plan.moves]
        names = {feed.at for feed in workload.feeds} | {each.at for each in workload.deliveries}
        some = tuple(car for car in self.network.movers if car.name in names)
        network = replace(self.network, movers=_until(some, self.seconds))
        return run_workload(
            workload,
            network,
            placement,
            until_s=self.seconds,
            moves=sorted(moves),
            settings=Settings(seed=self.seed, weight=by_delay, header_b=0.0),
            factors=factors,
        )


def _until(cars: Iterable[Mover], seconds: float) -> tuple[Mover, ...]:
    """Let tracks end with the run, so that nobody moves on when all is over."""
    found = []
    for car in cars:
        x, y = positions(car, np.array([seconds]))
        kept = tuple(each for each in car.track if each[0] < seconds)
        found.append(Mover(car.name, (*kept, (seconds, float(x[0]), float(y[0])))))
    return tuple(found)
