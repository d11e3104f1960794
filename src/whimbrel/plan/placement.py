"""A plan with fixed hosts, and how it explains itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from whimbrel.plan.cost import Costs, Objective, evaluate, room, violations
from whimbrel.plan.formatting import (
    aligned,
    amount,
    compared,
    counted,
    listed,
    percent,
    rate,
    share_of,
)
from whimbrel.plan.network import Link, Network
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.telling import arrivals, plain_data, table_of_deliveries, task_data
from whimbrel.plan.units import in_bytes
from whimbrel.plan.workload import Feed, Task, Workload

MOST = 0.5
"""From this share of its input on, a task is said to run where its input comes from."""


@dataclass(frozen=True)
class Placement:
    """Where tasks run, what that costs, and why."""

    workload: Workload
    network: Network
    hosts: Mapping[str, str]
    objective: Objective
    planner: str
    costs: Costs
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def _model(self) -> PlacementModel:
        return PlacementModel(self.workload, self.network, self.objective)

    # -- words -----------------------------------------------------------------------------------------------

    def words(self) -> str:
        """Explain the plan: what it costs, why each task runs where it does, when deliveries arrive."""
        parts = [
            [self._summary()],
            self._reasons(),
            arrivals(self.workload, self.costs),
            self._busiest(),
            [f"Note: {note}." for note in self.notes],
        ]
        return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"

    def _summary(self) -> str:
        total = self.costs.total
        measures = {
            Objective.BDP: f"{in_bytes(total.bdp_b)} on their way at any time",
            Objective.FLOW: f"{in_bytes(total.flow_b_s)}/s, counted on every link",
            Objective.COST: f"{amount(total.cost_s)} a second for traffic",
        }
        others = "; ".join(words for each, words in measures.items() if each is not self.objective)
        return (
            f"The plan ({self.planner}) keeps the {self.objective.words} small: {measures[self.objective]} "
            f"({others}). {self._against_everything()}"
        )

    def _against_everything(self) -> str:
        """Compare with sending everything to those who want it."""
        ends = frozenset(place for each in self.workload.deliveries for place in self._model.places(each.at))
        if len(ends) != 1 or not self.workload.tasks:
            tasks, brokers = len(self.workload.tasks), len(set(self.hosts.values()))
            return f"{counted(tasks, 'task')} on {counted(brokers, 'broker')}."
        (end,) = ends
        central = self._model.cost(dict.fromkeys(self.workload.task, end))
        mine = self._model.cost(self.hosts)
        if not central:
            return f"Everything happens on {end}."
        return f"Running everything on {end} would cost {compared(central, mine)}."

    def _reasons(self) -> list[str]:
        """Say for every task why it runs where it does; conditions that run at their sources in one line."""
        groups: dict[tuple[str, ...], list[Task]] = {}
        for number, task in enumerate(self.workload.tasks):
            groups.setdefault(task.operators or (str(number),), []).append(task)
        found: list[str] = []
        for tasks in groups.values():
            if len(tasks) > 1 and all(self._is_at_its_source(task) for task in tasks):
                found.append(self._at_sources(tasks))
            else:
                found += [self._why(task) for task in tasks]
        return found

    def _is_at_its_source(self, task: Task) -> bool:
        return self._read_from(task).get(self.hosts[task.name], 0.0) > 1 - 1e-9

    def _at_sources(self, tasks: list[Task]) -> str:
        by_host: dict[str, list[str]] = {}
        for task in tasks:
            by_host.setdefault(self.hosts[task.name], []).extend(task.inputs)
        places = "; ".join(f"{listed(inputs)} on {host}" for host, inputs in by_host.items())
        return f"{tasks[0].operators[-1]} runs where its events come from: {places}."

    def _why(self, task: Task) -> str:
        host = self.hosts[task.name]
        return f"{task.name} runs on {host}, {self._reason(task, host)}; {self._alternative(task)}."

    def _reason(self, task: Task, host: str) -> str:
        shares = self._read_from(task)
        if shares.get(host, 0.0) >= MOST:
            return f"because {percent(shares[host])} of what it reads comes from there"
        places = [each for each in self.workload.deliveries if each.stream == task.name]
        if any(host in self._model.places(each.at) for each in places):
            return "because what it makes is wanted there"
        readers = [each.name for each in self.workload.readers[task.name] if self.hosts[each.name] == host]
        if readers:
            return f"because {listed(readers)} reads it there"
        heaviest = [name for name, _ in sorted(shares.items(), key=lambda each: -each[1])][:3]
        ends = {self.hosts[each.name] for each in self.workload.readers[task.name]}
        ends |= {place for each in places for place in self._model.places(each.at)}
        if heaviest:
            return f"on the way from {listed(heaviest)} to {listed(sorted(ends))}"
        return "though it reads nothing"

    def _read_from(self, task: Task) -> dict[str, float]:
        """Return the share of what a task reads that comes from each broker."""
        found: dict[str, float] = {}
        for name in task.inputs:
            stream = self._model.streams[name]
            for each in self._model.situations[name]:
                origin = each.origin if isinstance(stream, Feed) else self.hosts[name]
                assert origin is not None
                found[origin] = found.get(origin, 0.0) + each.share * stream.bytes_s
        total = sum(found.values())
        return {name: bytes_s / total for name, bytes_s in found.items()} if total else {}

    def _alternative(self, task: Task) -> str:
        """Compare with the best other broker for this task, if all others stay."""
        mine = self._model.cost(self.hosts)
        rest = mine - self._model.cost_around(task, self.hosts)
        costs = rest + self._model.costs_around((task,), self.hosts)
        for place in np.argsort(costs, kind="stable").tolist():
            cost, broker = float(costs[place]), self._model.candidates[place]
            if broker == self.hosts[task.name]:
                continue
            if not self._model.excess({**self.hosts, task.name: broker}):
                if cost <= mine * (1 + 1e-9):
                    return f"{broker} would do as well"
                return f"on {broker}, the next best, the plan would cost {compared(cost, mine)}"
            if cost < mine * (1 - 1e-9):
                return f"{broker} would be cheaper, but then {self._trouble(task, broker)}"
        return "it could run nowhere else"

    def _trouble(self, task: Task, broker: str) -> str:
        """Say what would be too much if a task ran on another broker."""
        tried = {**self.hosts, task.name: broker}
        costs = evaluate(self.workload, self.network, tried, self.objective)
        return next(iter(violations(self.workload, self.network, costs)), "movers might ask too much of it")

    def _busiest(self) -> list[str]:
        fullest: tuple[float, Link | None] = (0.0, None)
        for link, load in self.costs.traffic_b_s.items():
            share = load / room(link)
            if share > fullest[0]:
                fullest = (share, link)
        share, busy = fullest
        found = []
        if busy is not None:
            load = self.costs.traffic_b_s[busy]
            of_room = f"{in_bytes(load)}/s of {in_bytes(room(busy))}/s ({percent(share)})"
            found = [f"The fullest link is {busy.a} - {busy.b}: {of_room}."]
        loads = [
            (work / self.network[name].capacity, name)
            for name, work in self.costs.work.items()
            if work and self.network[name].capacity < math.inf
        ]
        if loads:
            share, name = max(loads)
            found.append(f"The busiest broker is {name}: {percent(share)} of what it can do.")
        return found

    # -- table, data, picture --------------------------------------------------------------------------------

    def table(self) -> str:
        """Show tasks, deliveries and links as tables of text."""
        tasks = [
            [task.name, self.hosts[task.name], rate(task.rate_hz), f"{in_bytes(task.bytes_s)}/s",
             f"{task.work:.3g}", in_bytes(task.fixed_b + task.window_b)]
            for task in self.workload.tasks
        ]  # fmt: skip
        links = [
            [f"{link.a} - {link.b}", f"{in_bytes(load)}/s", share_of(load, room(link))]
            for link, load in self.costs.traffic_b_s.items()
        ]
        return "\n".join(
            [
                *aligned(["task", "runs on", "makes", "sends", "work", "state"], tasks),
                "",
                *table_of_deliveries(self.workload, self.costs),
                "",
                *aligned(["link", "traffic", "of its room"], links),
                "",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; what has no limit is null."""
        total = self.costs.total
        return {
            "planner": self.planner,
            "objective": self.objective.value,
            "network": self.network.name,
            "hosts": dict(self.hosts),
            "costs": {"bdp_b": total.bdp_b, "flow_b_s": total.flow_b_s, "cost_s": total.cost_s},
            **plain_data(self.workload, self.costs),
            "tasks": [{**task_data(task), "host": self.hosts[task.name]} for task in self.workload.tasks],
            "why": {task.name: self._why(task) for task in self.workload.tasks},
            "notes": list(self.notes),
        }

    def draw(self, path: str) -> None:
        """Draw the plan to a file, PNG or SVG: brokers, links as wide as their traffic, tasks on brokers."""
        from whimbrel.plan.picture import draw_placement

        draw_placement(self, path)
