"""What has to be run: tasks that read streams and make one, with rates, sizes, work and state.

A workload is what every planner works on. `whimbrel.plan.demand` makes one of a compiled query and of
statistics of its events; scenarios and tests write theirs by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from whimbrel.errors import NetworkError
from whimbrel.graph.operators import Graph
from whimbrel.plan.arrival_curves import ArrivalCurve
from whimbrel.plan.network import unknown


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream of events that comes from outside: a source of the network."""

    name: str
    rate_hz: float
    size_b: float
    at: str
    """The broker or the mover that sends it."""
    burst_b: float = 0.0
    """What may come at once beyond the rate, if that is more than one event."""
    peaks: ArrivalCurve = ()
    """What may come at once beyond higher rates: (bytes a second, bytes), where that is known."""

    @property
    def bytes_s(self) -> float:
        """Bytes a second."""
        return self.rate_hz * self.size_b


@dataclass(frozen=True, slots=True)
class Task:
    """What runs on one broker at a time: one operator, or several that stay together."""

    name: str
    inputs: tuple[str, ...]
    """Names of feeds and tasks."""
    rate_hz: float
    """Events a second that it gives."""
    size_b: float
    work: float = 0.0
    """What it needs of the capacity of a broker, a second."""
    fixed_b: float = 0.0
    """State that does not change: code, maps, models."""
    window_b: float = 0.0
    """State that does: the events it remembers."""
    operators: tuple[str, ...] = ()
    """The operators of the graph that it runs."""
    burst_b: float | None = None
    """What it may give at once beyond the rate; None: as its inputs come."""
    peaks: ArrivalCurve = ()
    """What it may give at once beyond higher rates: (bytes a second, bytes), where that is known."""

    @property
    def bytes_s(self) -> float:
        """Bytes a second that it gives."""
        return self.rate_hz * self.size_b

    @property
    def state_b(self) -> float:
        """All that it has to take along when it moves."""
        return self.fixed_b + self.window_b


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stream that somebody wants."""

    stream: str
    at: str
    """The broker or the mover that it goes to."""
    latency_s: float = math.inf
    """How long the way from the feeds to here may take."""
    spare_s: float = 0.0
    """What of that planners leave for streams to wait for each other."""

    @property
    def planned_s(self) -> float:
        """How long the way may take in an idle network."""
        return max(self.latency_s - self.spare_s, 0.0)


@dataclass(frozen=True)
class Workload:
    """Feeds, tasks in an order in which each comes after its inputs, and deliveries."""

    feeds: tuple[Feed, ...]
    tasks: tuple[Task, ...]
    deliveries: tuple[Delivery, ...]
    graph: Graph | None = field(default=None, compare=False, repr=False)
    """The operators that the tasks name, if they were cut out of a query."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        streams: tuple[Feed | Task, ...] = (*self.feeds, *self.tasks)
        for item in streams:
            for name in item.inputs if isinstance(item, Task) else ():
                if name not in seen:
                    raise unknown("stream", name, seen, f"{item.name!r} reads it; tasks come after inputs")
            if item.name in seen:
                raise NetworkError(f"two streams are named {item.name!r}")
            if not (item.rate_hz >= 0 and item.size_b >= 0):
                raise NetworkError(f"the stream {item.name!r} has a rate or a size below 0, or none")
            seen.add(item.name)
        for delivery in self.deliveries:
            if delivery.stream not in seen:
                raise unknown("stream", delivery.stream, seen, f"it is to be delivered to {delivery.at!r}")

    @cached_property
    def feed(self) -> dict[str, Feed]:
        """The feeds by name."""
        return {feed.name: feed for feed in self.feeds}

    @cached_property
    def task(self) -> dict[str, Task]:
        """The tasks by name."""
        return {task.name: task for task in self.tasks}

    @cached_property
    def readers(self) -> dict[str, tuple[Task, ...]]:
        """The tasks that read each stream."""
        return {
            name: tuple(task for task in self.tasks if name in task.inputs)
            for name in (*self.feed, *self.task)
        }

    def made_from(self, stream: str) -> set[str]:
        """Return the streams that a stream is made from, in any number of steps, and itself."""
        needed = {stream}
        for task in reversed(self.tasks):
            if task.name in needed:
                needed.update(task.inputs)
        return needed

    def cone(self, task: Task) -> set[str]:
        """Return a task and the tasks below it that nobody else reads."""
        cone, waiting = {task.name}, list(task.inputs)
        while waiting:
            name = waiting.pop()
            if name in self.task and {reader.name for reader in self.readers[name]} <= cone:
                cone.add(name)
                waiting += self.task[name].inputs
        return cone

    def work_on(self, task: Task, name: str) -> float:
        """Share out the work of a task to one event of an input, if each byte that it reads is as much."""
        comes = sum(self.stream(name).bytes_s for name in task.inputs)
        return task.work * self.stream(name).size_b / comes if comes and task.work else 0.0

    def stream(self, name: str) -> Feed | Task:
        """Return what makes a stream."""
        return self.feed[name] if name in self.feed else self.task[name]
