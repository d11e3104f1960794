"""How plans explain themselves: in words, in tables and as plain data, whether hosts stay or change.

Pictures are in `whimbrel.plan.picture`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from whimbrel.plan.cost import Costs, Objective, evaluate, room, violations
from whimbrel.plan.formatting import (
    aligned,
    amount,
    compared,
    counted,
    fields,
    finite,
    listed,
    moment,
    percent,
    rate,
    share_of,
)
from whimbrel.plan.migration.schedule import Action, ActionKind
from whimbrel.plan.network import Link
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.plan import ComparedPlan, Plan
from whimbrel.plan.timeline import BrokerInterval, Steps, at_time
from whimbrel.plan.units import in_bytes, in_seconds
from whimbrel.plan.workload import Task, Workload

MOST = 0.5
"""From this share of its input on, a task is said to run where its input comes from."""
TOLD = 6
"""Of a task that moves more often, so many stays are told in words."""


def words_of(plan: Plan) -> str:
    """Explain a plan: what it costs, where each task runs when and why, when deliveries arrive."""
    explainer = _Stays(plan) if plan.horizon is None else _Moves(plan)
    parts = [
        [explainer.summary()],
        explainer.reasons(),
        explainer.transfers(),
        arrivals(plan.workload, plan.costs),
        explainer.busiest(),
        [f"Note: {note}." for note in plan.notes],
    ]
    return paragraphs(parts)


def paragraphs(parts: Iterable[list[str]]) -> str:
    """Put paragraphs, or tables, of lines one after the other; empty ones are left out."""
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def table_of_links(traffic_b_s: Mapping[Link, float], heading: str = "traffic") -> list[str]:
    """Lay out what links carry as the lines of a table."""
    rows = [
        [f"{link.a} - {link.b}", f"{in_bytes(load)}/s", share_of(load, room(link))]
        for link, load in traffic_b_s.items()
    ]
    return aligned(["link", heading, "of its room"], rows)


def links_data(traffic_b_s: Mapping[Link, float]) -> list[dict[str, Any]]:
    """Return what links carry as plain data."""
    return [
        {"between": [link.a, link.b], "traffic_b_s": load, "room_b_s": finite(room(link))}
        for link, load in traffic_b_s.items()
    ]


class _Reasons:
    """What is told of plans alike, whether hosts stay or change."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.workload, self.network = plan, plan.workload, plan.network

    def read_from(self, task: Task, stay: BrokerInterval) -> dict[str, float]:
        """Return the share of what a task reads during a stay that comes from each broker."""
        bytes_from: dict[str, float] = {}
        for name in task.inputs:
            bytes_s = self.workload.stream(name).bytes_s
            for broker, share in _time_at(self.plan.line.origin(name), stay).items():
                bytes_from[broker] = bytes_from.get(broker, 0.0) + share * bytes_s
        total = sum(bytes_from.values())
        return {name: bytes_s / total for name, bytes_s in bytes_from.items()} if total else {}

    def reason(self, task: Task, stay: BrokerInterval, words: tuple[str, str]) -> str:
        """Say why a task is on a broker: its input, who wants it, who reads it, or what it lies between."""
        where, there = words
        shares, broker = self.read_from(task, stay), stay.broker
        if shares.get(broker, 0.0) >= MOST:
            return f"{where} {percent(shares[broker])} of what it reads comes from {there}"
        if any(self.is_at(self.plan.line.place(at), stay) for at in self.wanted_at(task)):
            return f"{where} what it makes is wanted {there}"
        readers = [
            reader.name
            for reader in self.workload.readers[task.name]
            if self.is_at(self.plan.steps[reader.name], stay)
        ]
        if readers:
            return f"{where} {listed(readers)} reads it {there}"
        heaviest = [name for name, _ in sorted(shares.items(), key=lambda pair: -pair[1])][:3]
        return (
            f"on the way from {listed(heaviest)}{self.onward(task)}"
            if heaviest
            else "though it reads nothing"
        )

    def wanted_at(self, task: Task) -> list[str]:
        """Name the brokers and movers that what a task makes is delivered to."""
        return [delivery.at for delivery in self.workload.deliveries if delivery.stream == task.name]

    def is_at(self, steps: Steps, stay: BrokerInterval) -> bool:
        """Tell whether something else is on the same broker for most of a stay."""
        return _time_at(steps, stay).get(stay.broker, 0.0) >= MOST

    def onward(self, task: Task) -> str:  # noqa: ARG002 (of plans whose hosts stay)
        """Say where what a task makes goes on to."""
        return ""


class _Stays(_Reasons):
    """Words about hosts that stay."""

    @cached_property
    def model(self) -> PlacementModel:
        """The costs of other hosts."""
        return PlacementModel(self.workload, self.network, self.plan.objective)

    @cached_property
    def hosts(self) -> dict[str, str]:
        """The host of each task."""
        return self.plan.first_hosts()

    def summary(self) -> str:
        """Say what the plan costs, by each measure, and against running everything where it is wanted."""
        total, objective = self.plan.costs.total, self.plan.objective
        measures = {
            Objective.BDP: f"{in_bytes(total.bdp_b)} on their way at any time",
            Objective.FLOW: f"{in_bytes(total.flow_b_s)}/s, counted on every link",
            Objective.COST: f"{amount(total.cost_s)} a second for traffic",
        }
        others = "; ".join(words for measure, words in measures.items() if measure is not objective)
        return (
            f"The plan ({self.plan.planner}) keeps the {objective.words} small: {measures[objective]} "
            f"({others}). {self._against_everything()}"
        )

    def _against_everything(self) -> str:
        deliveries = self.workload.deliveries
        ends = frozenset(broker for delivery in deliveries for broker in self.model.places(delivery.at))
        if len(ends) != 1 or not self.workload.tasks:
            tasks, brokers = len(self.workload.tasks), len(set(self.hosts.values()))
            return f"{counted(tasks, 'task')} on {counted(brokers, 'broker')}."
        (end,) = ends
        central = self.model.cost(dict.fromkeys(self.workload.task, end))
        if not central:
            return f"Everything happens on {end}."
        return f"Running everything on {end} would cost {compared(central, self.model.cost(self.hosts))}."

    def reasons(self) -> list[str]:
        """Say for every task why it runs where it does; conditions that run at their sources in one line."""
        groups: dict[tuple[str, ...], list[Task]] = {}
        for number, task in enumerate(self.workload.tasks):
            groups.setdefault(task.operators or (str(number),), []).append(task)
        lines: list[str] = []
        for tasks in groups.values():
            if len(tasks) > 1 and all(self._is_at_its_source(task) for task in tasks):
                lines.append(self._at_sources(tasks))
            else:
                lines += [self.why(task) for task in tasks]
        return lines

    def _is_at_its_source(self, task: Task) -> bool:
        (stay,) = self.plan.stays[task.name]
        return self.read_from(task, stay).get(stay.broker, 0.0) > 1 - 1e-9

    def _at_sources(self, tasks: list[Task]) -> str:
        by_host: dict[str, list[str]] = {}
        for task in tasks:
            by_host.setdefault(self.hosts[task.name], []).extend(task.inputs)
        places = "; ".join(f"{listed(inputs)} on {host}" for host, inputs in by_host.items())
        return f"{tasks[0].operators[-1]} runs where its events come from: {places}."

    def why(self, task: Task) -> str:
        """Say why a task runs where it does, and what the next best broker would cost."""
        (stay,) = self.plan.stays[task.name]
        reason = self.reason(task, stay, ("because", "there"))
        return f"{task.name} runs on {stay.broker}, {reason}; {self._alternative(task)}."

    def is_at(self, steps: Steps, stay: BrokerInterval) -> bool:
        """Tell whether something else is ever on the same broker."""
        return any(broker == stay.broker for _, broker in steps)

    def onward(self, task: Task) -> str:
        """Say where what a task makes goes on to."""
        ends = {self.hosts[reader.name] for reader in self.workload.readers[task.name]}
        ends |= {broker for at in self.wanted_at(task) for broker in self.model.places(at)}
        return f" to {listed(sorted(ends))}"

    def _alternative(self, task: Task) -> str:
        """Compare with the best other broker for this task, if all others stay."""
        mine = self.model.cost(self.hosts)
        rest = mine - self.model.cost_around(task, self.hosts)
        costs = rest + self.model.costs_around((task,), self.hosts)
        for index in np.argsort(costs, kind="stable").tolist():
            cost, broker = float(costs[index]), self.model.candidates[index]
            if broker == self.hosts[task.name]:
                continue
            if not self.model.excess({**self.hosts, task.name: broker}):
                if cost <= mine * (1 + 1e-9):
                    return f"{broker} would do as well"
                return f"on {broker}, the next best, the plan would cost {compared(cost, mine)}"
            if cost < mine * (1 - 1e-9):
                return f"{broker} would be cheaper, but then {self._trouble(task, broker)}"
        return "it could run nowhere else"

    def _trouble(self, task: Task, broker: str) -> str:
        """Say what would be too much if a task ran on another broker."""
        tried = {**self.hosts, task.name: broker}
        costs = evaluate(self.workload, self.network, tried, self.plan.objective)
        return next(iter(violations(self.workload, self.network, costs)), "movers might ask too much of it")

    def transfers(self) -> list[str]:
        """Say nothing: no state is sent."""
        return []

    def busiest(self) -> list[str]:
        """Name the fullest link and the busiest broker."""
        costs, lines = self.plan.costs, []
        fullest: tuple[float, Link | None] = (0.0, None)
        for link, load in costs.traffic_b_s.items():
            if load / room(link) > fullest[0]:
                fullest = (load / room(link), link)
        share, busy = fullest
        if busy is not None:
            of_room = f"{in_bytes(costs.traffic_b_s[busy])}/s of {in_bytes(room(busy))}/s ({percent(share)})"
            lines.append(f"The fullest link is {busy.a} - {busy.b}: {of_room}.")
        loads = [
            (work / self.network[name].capacity, name)
            for name, work in costs.work.items()
            if work and self.network[name].capacity < math.inf
        ]
        if loads:
            share, name = max(loads)
            lines.append(f"The busiest broker is {name}: {percent(share)} of what it can do.")
        return lines


class _Moves(_Reasons):
    """Words about hosts that change."""

    def summary(self) -> str:
        """Say what the plan costs, what others would, and how often tasks move."""
        plan, horizon = self.plan, self.plan.horizon
        assert horizon is not None
        total, moving = plan.costs.total.bdp_b, plan.costs.moving.bdp_b
        state = f", {in_bytes(moving)} of it the state of tasks that move" if moving else ""
        cost = f"{in_bytes(total)} on their way at any time{state}"
        sentences = [f"The plan ({plan.planner}) keeps the {Objective.BDP.words} small: {cost}."]
        sentences += [self._against(other) for other in plan.compared_plans]
        if plan.compared_plans and not any(other.name == "stay" for other in plan.compared_plans):
            sentences.append("No hosts that stay were found to satisfy everything.")
        movers, count = sum(len(steps) > 1 for steps in plan.steps.values()), len(plan.moves())
        over = f"over {in_seconds(horizon.end_s)}, in steps of {in_seconds(horizon.step_s)}"
        moves = f"{counted(count, 'move')} of {counted(movers, 'task')}" if count else "Nothing moves"
        return " ".join([*sentences, f"{moves} {over}."])

    def _against(self, other: ComparedPlan) -> str:
        """Compare with another way, and say what would be too much, if anything."""
        problems = violations(self.workload, self.network, other.costs)
        trouble = f", and {problems[0]}" if problems else ""
        costs = compared(other.costs.total.bdp_b, self.plan.costs.total.bdp_b)
        return f"{other.words[:1].upper()}{other.words[1:]} would cost {costs}{trouble}."

    def reasons(self) -> list[str]:
        """Say for every task where it is when, and why."""
        return [self.why(task) for task in self.workload.tasks]

    def why(self, task: Task) -> str:
        """Say where a task is when and why, and what each move saves."""
        stays = self.plan.stays[task.name]
        first, reasons = stays[0], [self.reason(task, stay, ("where", "then")) for stay in stays[:TOLD]]
        if len(stays) == 1:
            return f"{task.name} stays on {first.broker}, {reasons[0]}."
        parts = [f"{task.name} runs on {first.broker} until {moment(first.end_s)}, {reasons[0]}"]
        for number, stay in enumerate(stays[1:TOLD], 1):
            until = f"until {moment(stay.end_s)}" if number < len(stays) - 1 else "from then on"
            without = self._without(task, number)
            parts.append(f"on {stay.broker} {until}, {reasons[number]} ({without})")
        if len(stays) > TOLD:
            parts.append(f"and {counted(len(stays) - TOLD, 'move')} more, which --table and --out list")
        return "; ".join(parts) + "."

    def _without(self, task: Task, number: int) -> str:
        """Compare with not making a move: the task stays where it was until it moves the next time."""
        plan = self.plan
        kept = tuple(step for index, step in enumerate(plan.steps[task.name]) if index != number)
        costs = evaluate(
            self.workload, self.network, {**plan.hosts, task.name: kept}, until_s=plan.line.until_s
        )
        problems = violations(self.workload, self.network, costs)
        if problems:
            return f"without this move, {problems[0]}"
        return f"without this move the plan would cost {compared(costs.total.bdp_b, plan.costs.total.bdp_b)}"

    def transfers(self) -> list[str]:
        """Say what state is sent when, for each move."""
        lines = []
        for action in self.plan.actions:
            if action.kind is ActionKind.START:
                sent = self._sent(action)
                lines.append(
                    f"{action.task} starts on {action.target} at {moment(action.time_s)}"
                    + (f": {listed(sent)}." if sent else "; it has no state to send.")
                )
        return lines if len(lines) <= TOLD * 2 else [*lines[: TOLD * 2], f"And {len(lines) - TOLD * 2} more."]

    def _sent(self, start: Action) -> list[str]:
        """Say what leaves for the start of a task: what does not change first, then what it remembers."""
        sent = [action for action in self.plan.actions if self._start_of(action) is start]
        lines = [
            f"its fixed state ({in_bytes(action.size_b)}) leaves {action.source} at {moment(action.time_s)}"
            for action in sent
            if action.kind is ActionKind.SEND_FIXED
        ]
        windows = [action for action in sent if action.kind is ActionKind.SEND_WINDOW]
        if windows:
            size = sum(action.size_b for action in windows)
            leaves = "" if lines else f" leaves {start.source}"
            lines.append(f"what it remembers ({in_bytes(size)}){leaves} at {moment(windows[0].time_s)}")
        return lines

    def _start_of(self, action: Action) -> Action:
        """Return the start that an action is for: the first of that task to that broker after it."""
        return next(
            start
            for start in self.plan.actions
            if start.kind is ActionKind.START
            and (start.task, start.source, start.target) == (action.task, action.source, action.target)
            and start.time_s >= action.time_s - 1e-9
        )

    def busiest(self) -> list[str]:
        """Say nothing: it changes."""
        return []


def _time_at(steps: Steps, stay: BrokerInterval) -> dict[str, float]:
    """Return the share of a stay that something spends at each broker."""
    if stay.end_s <= stay.start_s:
        return {at_time(steps, stay.start_s): 1.0}
    inner = [time for time, _ in steps if stay.start_s < time < stay.end_s]
    shares: dict[str, float] = {}
    for start, end in pairwise([stay.start_s, *inner, stay.end_s]):
        broker = at_time(steps, start)
        shares[broker] = shares.get(broker, 0.0) + (end - start) / (stay.end_s - stay.start_s)
    return shares


def arrivals(workload: Workload, costs: Costs) -> list[str]:
    """Say within what time each delivery arrives: on idle links, and at the most when these are busy."""
    lines = []
    for delivery, delay_s, bound_s in zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True):
        limit = "" if math.isinf(delivery.latency_s) else f", and may take {in_seconds(delivery.latency_s)}"
        within, most = in_seconds(delay_s), in_seconds(bound_s)
        busy = "" if within == most else f", at most {most} when links and brokers are busy"
        lines.append(f"{delivery.stream} reaches {delivery.at} within {within}{busy}{limit}.")
    return lines


# -- tables and plain data ----------------------------------------------------------------------------------


def tables_of(plan: Plan) -> str:
    """Lay out tasks, what is done to move them, deliveries and links as tables of text."""
    tasks = _table_of_hosts(plan) if plan.horizon is None else _table_of_stays(plan)
    most = "traffic" if plan.horizon is None else "most traffic"
    actions = [
        [moment(each.time_s), each.kind.name.lower().replace("_", " "), each.task, each.source, each.target,
         each.stream or "", in_bytes(each.size_b) if each.size_b else ""]
        for each in plan.actions
    ]  # fmt: skip
    deliveries = [
        [each.stream, each.at, in_seconds(delay), in_seconds(bound), in_seconds(each.latency_s)]
        for each, delay, bound in zip(
            plan.workload.deliveries, plan.costs.delays_s, plan.costs.bounds_s, strict=True
        )
    ]
    tables = [
        tasks,
        aligned(["at", "do", "task", "from", "to", "stream", "bytes"], actions) if actions else [],
        aligned(["delivery", "to", "within", "when busy", "may take"], deliveries),
        table_of_links(plan.costs.traffic_b_s, most),
    ]
    return paragraphs(tables)


def _table_of_hosts(plan: Plan) -> list[str]:
    rows = [
        [task.name, host, rate(task.rate_hz), f"{in_bytes(task.bytes_s)}/s", f"{task.work:.3g}",
         in_bytes(task.state_b)]
        for task, host in zip(plan.workload.tasks, _hosts_in_order(plan), strict=True)
    ]  # fmt: skip
    return aligned(["task", "runs on", "makes", "sends", "work", "state"], rows)


def _hosts_in_order(plan: Plan) -> list[str]:
    hosts = plan.first_hosts()
    return [hosts[task.name] for task in plan.workload.tasks]


def _table_of_stays(plan: Plan) -> list[str]:
    rows = [
        [task.name, stay.broker, moment(stay.start_s), moment(stay.end_s), rate(task.rate_hz),
         in_bytes(task.state_b)]
        for task in plan.workload.tasks
        for stay in plan.stays[task.name]
    ]  # fmt: skip
    return aligned(["task", "runs on", "from", "until", "makes", "state"], rows)


def plain_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data, for JSON; what has no limit is null."""
    total = plan.costs.total
    head = {"planner": plan.planner, "objective": plan.objective.value, "network": plan.network.name}
    costs = {"bdp_b": total.bdp_b, "flow_b_s": total.flow_b_s, "cost_s": total.cost_s}
    shared, notes = _workload_data(plan.workload, plan.costs), {"notes": list(plan.notes)}
    if plan.horizon is None:
        stays = _Stays(plan)
        why = {task.name: stays.why(task) for task in plan.workload.tasks}
        hosts = plan.first_hosts()
        for said in shared["tasks"]:
            said["host"] = hosts[said["name"]]
        return {**head, "hosts": hosts, "costs": costs, **shared, "why": why, **notes}
    moves = _Moves(plan)
    why = {task.name: moves.why(task) for task in plan.workload.tasks}
    return {
        **head,
        "horizon": fields(plan.horizon, "steps", "step_s", "end_s"),
        "hosts": {name: [[time, broker] for time, broker in steps] for name, steps in plan.steps.items()},
        "schedule": [
            {"time_s": action.time_s, "do": action.kind.name.lower()}
            | fields(action, "task", "source", "target", "size_b", "stream", "since_s")
            for action in plan.actions
        ],
        "costs": {**costs, "moving_bdp_b": plan.costs.moving.bdp_b},
        "compared": {other.name: {"bdp_b": other.costs.total.bdp_b} for other in plan.compared_plans},
        **shared,
        "why": why,
        **notes,
    }


def _workload_data(workload: Workload, costs: Costs) -> dict[str, Any]:
    """Return the workload and what it asks of links and brokers."""
    task_fields = ("name", "rate_hz", "size_b", "burst_b", "peaks", "work", "fixed_b", "window_b")
    return {
        "feeds": [
            fields(feed, "name", "at", "rate_hz", "size_b", "burst_b", "peaks") for feed in workload.feeds
        ],
        "tasks": [
            {**fields(task, *task_fields), "inputs": list(task.inputs), "operators": list(task.operators)}
            for task in workload.tasks
        ],
        "deliveries": [
            {"stream": delivery.stream, "at": delivery.at, "delay_s": finite(delay), "bound_s": finite(bound)}
            | {"latency_s": finite(delivery.latency_s)}
            for delivery, delay, bound in zip(
                workload.deliveries, costs.delays_s, costs.bounds_s, strict=True
            )
        ],
        "links": links_data(costs.traffic_b_s),
        "brokers": [
            {"name": name, "work": work, "storage_b": costs.storage_b[name]}
            for name, work in costs.work.items()
        ],
    }
