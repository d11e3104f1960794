"""A plan with hosts that change over time, and how it explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from whimbrel.plan.cost import Costs, Objective, evaluate, room, violations
from whimbrel.plan.formatting import (
    aligned,
    compared,
    counted,
    fields,
    listed,
    moment,
    percent,
    rate,
    share_of,
)
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.schedule import Action, ActionKind
from whimbrel.plan.network import Network
from whimbrel.plan.telling import arrivals, plain_data, table_of_deliveries
from whimbrel.plan.timeline import Timeline, at_time
from whimbrel.plan.units import in_bytes, in_seconds
from whimbrel.plan.workload import Task, Workload

MOST = 0.5
"""From this share of its input on, a task is said to run where its input comes from."""
TOLD = 6
"""Of a task that moves more often, so many stays are told in words."""


@dataclass(frozen=True, slots=True)
class Rival:
    """Another way to do it, to compare with."""

    name: str
    words: str
    costs: Costs


@dataclass(frozen=True, slots=True)
class Stay:
    """A task on one broker for some time."""

    task: str
    broker: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Itinerary:
    """Where tasks run when, what that costs, when state is sent, and why."""

    workload: Workload
    network: Network
    horizon: Horizon
    hosts: Mapping[str, tuple[tuple[float, str], ...]]
    """For every task its brokers, each with the time from which on it is there."""
    costs: Costs
    schedule: tuple[Action, ...]
    rivals: tuple[Rival, ...] = ()
    notes: tuple[str, ...] = ()
    planner: str = "migrate"

    @cached_property
    def line(self) -> Timeline:
        """Who is where when."""
        return Timeline(self.workload, self.network, self.hosts, self.horizon.end_s)

    @cached_property
    def stays(self) -> dict[str, list[Stay]]:
        """The stays of every task, in order."""
        return {
            name: [
                Stay(name, broker, start, end)
                for (start, broker), (end, _) in pairwise([*steps, (self.horizon.end_s, "")])
            ]
            for name, steps in self.hosts.items()
        }

    @property
    def moves(self) -> int:
        """How often tasks move."""
        return sum(len(steps) - 1 for steps in self.hosts.values())

    # -- words -----------------------------------------------------------------------------------------------

    def words(self) -> str:
        """Explain the plan: what it costs, where each task is when and why, what is sent when."""
        parts = [
            [self._summary()],
            [self._told(task) for task in self.workload.tasks],
            self._transfers(),
            arrivals(self.workload, self.costs),
            [f"Note: {note}." for note in self.notes],
        ]
        return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"

    def _summary(self) -> str:
        total, moving = self.costs.total.bdp_b, self.costs.moving.bdp_b
        state = f", {in_bytes(moving)} of it the state of tasks that move" if moving else ""
        cost = f"{in_bytes(total)} on their way at any time{state}"
        said = [f"The plan ({self.planner}) keeps the {Objective.BDP.words} small: {cost}."]
        said += [self._against(rival) for rival in self.rivals]
        if not any(rival.name == "stay" for rival in self.rivals):
            said.append("No hosts that stay were found to satisfy everything.")
        movers = sum(len(steps) > 1 for steps in self.hosts.values())
        over = f"over {in_seconds(self.horizon.end_s)}, in steps of {in_seconds(self.horizon.step_s)}"
        moves = (
            f"{counted(self.moves, 'move')} of {counted(movers, 'task')}" if self.moves else "Nothing moves"
        )
        return " ".join([*said, f"{moves} {over}."])

    def _against(self, rival: Rival) -> str:
        """Compare with another way, and say what would be too much, if anything."""
        problems = violations(self.workload, self.network, rival.costs)
        trouble = f", and {problems[0]}" if problems else ""
        costs = compared(rival.costs.total.bdp_b, self.costs.total.bdp_b)
        return f"{rival.words[:1].upper()}{rival.words[1:]} would cost {costs}{trouble}."

    def _told(self, task: Task) -> str:
        stays = self.stays[task.name]
        if len(stays) == 1:
            return f"{task.name} stays on {stays[0].broker}, {self._reason(stays[0])}."
        first = stays[0]
        said = [f"{task.name} runs on {first.broker} until {moment(first.end_s)}, {self._reason(first)}"]
        for number, stay in enumerate(stays[1:TOLD], 1):
            until = f"until {moment(stay.end_s)}" if number < len(stays) - 1 else "from then on"
            said.append(f"on {stay.broker} {until}, {self._reason(stay)} ({self._without(number, stays)})")
        if len(stays) > TOLD:
            said.append(f"and {counted(len(stays) - TOLD, 'move')} more, which --table and --out list")
        return "; ".join(said) + "."

    def _reason(self, stay: Stay) -> str:
        shares = self._read_from(stay)
        if shares.get(stay.broker, 0.0) >= MOST:
            return f"where {percent(shares[stay.broker])} of what it reads comes from then"
        wanted = [each.at for each in self.workload.deliveries if each.stream == stay.task]
        if any(self._share_at(at, stay) >= MOST for at in wanted):
            return "where what it makes is wanted then"
        readers = [
            each.name
            for each in self.workload.readers[stay.task]
            if self._overlap(self.hosts[each.name], stay) >= MOST
        ]
        if readers:
            return f"where {listed(readers)} reads it then"
        heaviest = [name for name, _ in sorted(shares.items(), key=lambda each: -each[1])][:3]
        return f"on the way from {listed(heaviest)}" if heaviest else "though it reads nothing"

    def _share_at(self, at: str, stay: Stay) -> float:
        return self._overlap(self.line.place(at), stay)

    def _overlap(self, steps: tuple[tuple[float, str], ...], stay: Stay) -> float:
        """Return the share of a stay for which something else is on the same broker."""
        return self._time_at(steps, stay).get(stay.broker, 0.0)

    def _time_at(self, steps: tuple[tuple[float, str], ...], stay: Stay) -> dict[str, float]:
        """Return the share of a stay that something spends at each broker."""
        inner = [time for time, _ in steps if stay.start_s < time < stay.end_s]
        found: dict[str, float] = {}
        for start, end in pairwise([stay.start_s, *inner, stay.end_s]):
            broker = at_time(steps, start)
            found[broker] = found.get(broker, 0.0) + (end - start) / (stay.end_s - stay.start_s)
        return found

    def _read_from(self, stay: Stay) -> dict[str, float]:
        """Return the share of what a task reads during a stay that comes from each broker."""
        found: dict[str, float] = {}
        for name in self.workload.task[stay.task].inputs:
            bytes_s = self.workload.stream(name).bytes_s
            for broker, share in self._time_at(self.line.origin(name), stay).items():
                found[broker] = found.get(broker, 0.0) + share * bytes_s
        total = sum(found.values())
        return {name: bytes_s / total for name, bytes_s in found.items()} if total else {}

    def _without(self, number: int, stays: list[Stay]) -> str:
        """Compare with not making a move: the task stays where it was until it moves the next time."""
        kept = [(stay.start_s, stay.broker) for place, stay in enumerate(stays) if place != number]
        tried = {**self.hosts, stays[0].task: tuple(kept)}
        costs = evaluate(self.workload, self.network, tried, until_s=self.horizon.end_s)
        problems = violations(self.workload, self.network, costs)
        if problems:
            return f"without this move, {problems[0]}"
        return f"without this move the plan would cost {compared(costs.total.bdp_b, self.costs.total.bdp_b)}"

    def _transfers(self) -> list[str]:
        """Say what state is sent when, for each move."""
        found = []
        for action in self.schedule:
            if action.kind is ActionKind.START:
                sent = self._sent(action)
                found.append(
                    f"{action.task} starts on {action.target} at {moment(action.time_s)}"
                    + (f": {listed(sent)}." if sent else "; it has no state to send.")
                )
        return found if len(found) <= TOLD * 2 else [*found[: TOLD * 2], f"And {len(found) - TOLD * 2} more."]

    def _sent(self, start: Action) -> list[str]:
        """Say what leaves for the start of a task: what does not change first, then what it remembers."""
        mine = [
            each
            for each in self.schedule
            if (each.task, each.source, each.target) == (start.task, start.source, start.target)
            and self._start_after(each) is start
        ]
        found = [
            f"its fixed state ({in_bytes(each.size_b)}) leaves {each.source} at {moment(each.time_s)}"
            for each in mine
            if each.kind is ActionKind.SEND_FIXED
        ]
        windows = [each for each in mine if each.kind is ActionKind.SEND_WINDOW]
        if windows:
            size = sum(each.size_b for each in windows)
            leaves = "" if found else f" leaves {start.source}"
            found.append(f"what it remembers ({in_bytes(size)}){leaves} at {moment(windows[0].time_s)}")
        return found

    def _start_after(self, action: Action) -> Action:
        """Return the start that an action is for: the first of that task to that broker after it."""
        return next(
            each
            for each in self.schedule
            if each.kind is ActionKind.START
            and (each.task, each.source, each.target) == (action.task, action.source, action.target)
            and each.time_s >= action.time_s - 1e-9
        )

    # -- table, data, picture --------------------------------------------------------------------------------

    def table(self) -> str:
        """Show stays, the schedule, deliveries and links as tables of text."""
        stays = [
            [task.name, stay.broker, moment(stay.start_s), moment(stay.end_s), rate(task.rate_hz),
             in_bytes(task.fixed_b + task.window_b)]
            for task in self.workload.tasks
            for stay in self.stays[task.name]
        ]  # fmt: skip
        actions = [
            [moment(each.time_s), each.kind.name.lower().replace("_", " "), each.task, each.source,
             each.target, each.stream or "", in_bytes(each.size_b) if each.size_b else ""]
            for each in self.schedule
        ]  # fmt: skip
        links = [
            [f"{link.a} - {link.b}", f"{in_bytes(load)}/s", share_of(load, room(link))]
            for link, load in self.costs.traffic_b_s.items()
        ]
        tables = [
            aligned(["task", "runs on", "from", "until", "makes", "state"], stays),
            aligned(["at", "do", "task", "from", "to", "stream", "bytes"], actions) if actions else [],
            table_of_deliveries(self.workload, self.costs),
            aligned(["link", "most traffic", "of its room"], links),
        ]
        return "\n\n".join("\n".join(each) for each in tables if each) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; what has no limit is null."""
        total = self.costs.total
        return {
            "planner": self.planner,
            "objective": Objective.BDP.value,
            "network": self.network.name,
            "horizon": {
                "steps": self.horizon.steps,
                "step_s": self.horizon.step_s,
                "end_s": self.horizon.end_s,
            },
            "hosts": {name: [[time, broker] for time, broker in steps] for name, steps in self.hosts.items()},
            "schedule": [
                {"time_s": each.time_s, "do": each.kind.name.lower()}
                | fields(each, "task", "source", "target", "size_b", "stream", "since_s")
                for each in self.schedule
            ],
            "costs": {"bdp_b": total.bdp_b, "flow_b_s": total.flow_b_s, "cost_s": total.cost_s}
            | {"moving_bdp_b": self.costs.moving.bdp_b},
            "compared": {rival.name: {"bdp_b": rival.costs.total.bdp_b} for rival in self.rivals},
            **plain_data(self.workload, self.costs),
            "why": {task.name: self._told(task) for task in self.workload.tasks},
            "notes": list(self.notes),
        }

    def draw(self, path: str) -> None:
        """Draw the plan to a file, PNG or SVG: brokers over time, with tasks and movers on them."""
        from whimbrel.plan.migration.timeline_picture import draw_itinerary

        draw_itinerary(self, path)
