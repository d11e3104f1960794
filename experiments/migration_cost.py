"""What plans cost when they are carried out: bandwidth-delay products over time (MigCEP, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.latency import place
from whimbrel.plan.migration.plan import NOWHERE, MigrationPlan
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.network import Network
from whimbrel.plan.routes import Routes
from whimbrel.plan.workload import Workload


@dataclass(frozen=True, slots=True)
class Cost:
    """What plans cost, in byte seconds on links, and how often they are late."""

    placement: float
    """C_pla: for streaming events between placements; infinite where a stream has no way."""
    migration: float
    """C_Mig: for moving state."""
    moves: int
    late: int
    """Deliveries times steps that do not keep their latency restriction from end to end."""

    @property
    def total(self) -> float:
        """C_tot."""
        return self.placement + self.migration


def cost_of(
    plans: Mapping[str, MigrationPlan],
    workload: Workload,
    network: Network,
    attachments: Mapping[str, MigrationPlan],
    routes: Routes | None = None,
) -> Cost:
    """Tell what plans of all tasks cost where movers are attached as given.

    Parameters
    ----------
    plans
        The plan of each task; all of one horizon.
    attachments
        Where movers really are.
    routes
        Ways by delay, where they have been searched before.
    """
    horizon = next(iter(plans.values())).horizon
    brokers = np.unique(np.concatenate([plan.hosts for plan in plans.values()]))
    problem = MigrationProblem(network, workload, horizon, attachments, brokers=brokers, routes=routes)
    hosts = problem.hosts_of(plans)
    value = problem.value(hosts)
    moves = sum(int(np.count_nonzero(np.diff(row))) for row in hosts.values())
    placement = np.inf if _is_cut_off(problem, hosts) else value.placement
    return Cost(placement, value.migration, moves, _late(problem, hosts))


def _is_cut_off(problem: MigrationProblem, hosts: Mapping[str, Ints]) -> bool:
    """Tell whether a stream has no way in some step."""
    at = _ends(problem, hosts)
    return any(np.isinf(_delay(problem, at[s.source], at[s.target])).any() for s in problem.streams)


def _ends(problem: MigrationProblem, hosts: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return where tasks and places are, by the names that streams have for them."""
    found = {**hosts}
    for name, plan in problem.attachments.items():
        assert isinstance(plan, MigrationPlan)
        found[place(name)] = problem.positions(plan.hosts)
    return found


def _late(problem: MigrationProblem, hosts: Mapping[str, Ints]) -> int:
    """Count the steps in which the longest way to a delivery takes too long."""
    workload = problem.workload
    bounded = [delivery for delivery in workload.deliveries if np.isfinite(delivery.latency_s)]
    if not bounded:
        return 0
    at = _ends(problem, hosts)
    ends = {feed.name: place(feed.at) for feed in workload.feeds} | {name: name for name in problem.tasks}
    taken = {feed.name: np.zeros(problem.horizon.steps) for feed in workload.feeds}
    for task in workload.tasks:
        arrivals = [taken[name] + _delay(problem, at[ends[name]], at[task.name]) for name in task.inputs]
        taken[task.name] = np.max(arrivals, axis=0)
    return sum(
        int(
            (
                taken[d.stream] + _delay(problem, at[ends[d.stream]], at[place(d.at)]) > d.latency_s + 1e-12
            ).sum()
        )
        for d in bounded
    )


def _delay(problem: MigrationProblem, a: Ints, b: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the delay in each step; 0 where one of both is nowhere, so that nothing is sent."""
    return np.where((a == NOWHERE) | (b == NOWHERE), 0.0, problem.delay_s[a, b])
