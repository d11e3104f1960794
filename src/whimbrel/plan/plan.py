"""A plan: where tasks run when, what that costs, and why. Hosts that stay are a schedule of one step.

All planners that give tasks hosts make one; `whimbrel plan --out` writes it, and `whimbrel.plan.reading`
reads it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from whimbrel.plan.cost import Costs, Objective, evaluate
from whimbrel.plan.network import Network
from whimbrel.plan.timeline import BrokerInterval, Hosts, Steps, Timeline, steps_of
from whimbrel.plan.workload import Workload

if TYPE_CHECKING:
    from whimbrel.plan.migration.horizon import Horizon
    from whimbrel.plan.migration.schedule import Action


@dataclass(frozen=True, slots=True)
class ComparedPlan:
    """Another way to do it, to compare with."""

    name: str
    words: str
    costs: Costs


@dataclass(frozen=True)
class Plan:
    """Where tasks run when, what that costs, and why."""

    workload: Workload
    network: Network
    hosts: Hosts
    """For every task its broker, or its brokers, each with the time from which on it is there."""
    objective: Objective
    planner: str
    costs: Costs
    notes: tuple[str, ...] = ()
    horizon: Horizon | None = None
    """The time steps at whose beginnings tasks may move; None: hosts stay."""
    actions: tuple[Action, ...] = ()
    """What has to be done to move tasks, in order of time."""
    compared_plans: tuple[ComparedPlan, ...] = ()

    @classmethod
    def by_hand(
        cls, workload: Workload, network: Network, hosts: Hosts, objective: Objective = Objective.BDP
    ) -> Plan:
        """Make a plan of hosts that somebody chose, and work out what it costs."""
        return cls(
            workload, network, hosts, objective, "by hand", evaluate(workload, network, hosts, objective)
        )

    @cached_property
    def steps(self) -> dict[str, Steps]:
        """The brokers of every task over time: one step for a host that stays."""
        return {name: steps_of(host) for name, host in self.hosts.items()}

    @cached_property
    def line(self) -> Timeline:
        """Who is where when."""
        end = None if self.horizon is None else self.horizon.end_s
        return Timeline(self.workload, self.network, self.hosts, end)

    @cached_property
    def stays(self) -> dict[str, list[BrokerInterval]]:
        """How long every task is on which broker, in order."""
        return {
            name: [
                BrokerInterval(start, end, broker)
                for (start, broker), (end, _) in pairwise([*steps, (self.line.until_s, "")])
            ]
            for name, steps in self.steps.items()
        }

    def first_hosts(self) -> dict[str, str]:
        """Return the broker at which each task begins."""
        return {name: steps[0][1] for name, steps in self.steps.items()}

    def moves(self) -> list[tuple[float, str, str]]:
        """Return (seconds, task, broker) for every change of a broker, in order of time."""
        return sorted(
            (time_s, name, broker) for name, steps in self.steps.items() for time_s, broker in steps[1:]
        )

    def words(self) -> str:
        """Explain the plan: what it costs, why each task runs where it does, when deliveries arrive."""
        from whimbrel.plan.rendering import words_of

        return words_of(self)

    def table(self) -> str:
        """Show tasks, deliveries and links as tables of text."""
        from whimbrel.plan.rendering import tables_of

        return tables_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; what has no limit is null."""
        from whimbrel.plan.rendering import plain_data

        return plain_data(self)

    def draw(self, path: str) -> None:
        """Draw the plan to a PNG or SVG file: tasks on brokers, or over time if they move."""
        from whimbrel.plan.picture import draw_plan

        draw_plan(self, path)
