"""One world for all that is simulated: streams of feeds and tasks, tasks that move, requests for events."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Network, unknown
from whimbrel.sim.clock import Action, Clock
from whimbrel.sim.endpoints import Endpoint, Inlet, Outlet
from whimbrel.sim.links import Links
from whimbrel.sim.messages import HEADER_B, Message
from whimbrel.sim.packets import FixedState, FixedStateArrived, Key, Packet, Redirect, TaskState
from whimbrel.sim.processors import Job, Processor
from whimbrel.sim.settings import Settings
from whimbrel.sim.tasks import Migration, RunningTask
from whimbrel.sim.work import Work

PRIORITY = {"control": 0, "heartbeat": 1, "data": 1, "request": 1, "reply": 1, "state": 2, "fixed state": 3}
"""Orders go first; state that is sent ahead does not hold events up."""


@dataclass
class Arriving:
    """What has arrived for someone who is not here yet."""

    contents: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Departed:
    """Where someone went who was here."""

    broker: str


CHECKPOINT_S = 10.0
"""How often tasks save their state where brokers fail and nothing else is said."""


@dataclass
class StableStorage:
    """What brokers wrote to stable storage, and what that was good for."""

    checkpoints: int = 0
    checkpoints_b: float = 0.0
    log_b: float = 0.0
    replayed: int = 0
    """Events that were worked on again."""
    lost: int = 0
    """Without recovery: jobs that waited at brokers that failed."""


class World:
    """Endpoints at the brokers of a network."""

    def __init__(self, network: Network, settings: Settings = Settings()) -> None:  # noqa: B008 (frozen)
        self.network, self.settings = network, settings
        self.clock = Clock(settings.seed)
        self.links = Links(network, self.clock, settings)
        self.links.on_change = self._change
        self.links.on_drop = self._drop
        checkpoint_s = settings.checkpoint_s
        if checkpoint_s is None and self.links.outages.has_brokers:
            checkpoint_s = CHECKPOINT_S
        self.checkpoint_s = checkpoint_s if settings.recovers else None
        """How often tasks write their state to stable storage; None: never."""
        self.stable = StableStorage()
        for broker in network.brokers:
            self.links.receive[broker.name] = self._receive
        self.processors = {broker.name: Processor(self.clock, broker.capacity) for broker in network.brokers}
        self.heartbeat_us = round(settings.heartbeat_s * 1e6)
        self.where: dict[str, str] = {}
        """The broker at which everyone is, or is expected."""
        self.moves: list[Migration] = []
        self._stands: dict[tuple[str, str], Endpoint | Arriving | Departed] = {}
        self._inlets: dict[tuple[str, Key], Inlet] = {}
        """By (reader, stream): they go along with readers that move."""
        self._asked: dict[str, deque[str]] = defaultdict(deque)
        self._volatile: dict[str, list[Action]] = defaultdict(list)

    # -- who is where ------------------------------------------------------------------------------------

    def add(self, endpoint: Endpoint) -> None:
        """Put someone at a broker."""
        if endpoint.broker not in self.network.number:
            raise unknown("broker", endpoint.broker, self.network.number, f"the host of {endpoint.name!r}")
        if endpoint.name in self.where:
            raise NetworkError(f"two feeds, tasks or consumers are named {endpoint.name!r}")
        self._stands[endpoint.name, endpoint.broker] = endpoint
        self.where[endpoint.name] = endpoint.broker

    def connect(self, sender: str, stream: str, reader: str) -> None:
        """Let someone send a stream to someone, before anything happens."""
        one, other = self.find(sender), self.find(reader)
        one.outlets[stream, reader] = Outlet(other.broker)
        other.inlets[sender, stream] = self._inlets[reader, (sender, stream)] = Inlet(one.broker)

    def find(self, name: str) -> Endpoint:
        """Return the one of a name, who must not be on the way from one broker to another."""
        if name not in self.where:
            raise unknown("feed, task or consumer", name, self.where)
        found = self._stands[name, self.where[name]]
        assert isinstance(found, Endpoint)
        return found

    def tasks(self) -> list[RunningTask]:
        """Return the tasks that run; those on their way between brokers are left out."""
        return [each for each in self._stands.values() if isinstance(each, RunningTask)]

    # -- messages ----------------------------------------------------------------------------------------

    def post(self, origin: str, target: str, contents: Sequence[Any], size_b: float, kind: str) -> None:
        """Send something to a broker, for those there that it is addressed to."""
        header = HEADER_B if kind in ("control", "heartbeat") else self.settings.header_b
        size_b += header * len(contents)
        reliable = self.settings.reliable or kind != "data"
        self.links.send(Message(origin, target, contents, size_b, kind, PRIORITY[kind], reliable))

    def post_action(self, origin: str, target: str, action: Action, size_b: float, kind: str) -> None:
        """Run something at a broker when a message of a size has come there."""
        self.links.send(Message(origin, target, [action], size_b, kind, PRIORITY[kind]))

    def work_at(self, broker: str, action: Action) -> None:
        """Run something at a broker after all that it has to do; while it is down, when it is back."""
        self.processors[broker].submit(Job("", 0.0, action))

    def _receive(self, broker: str, content: Any, message: Message) -> None:
        if callable(content):
            self.work_at(broker, content)
            return
        stand = self._stands.get((content.to, broker))
        if isinstance(content, FixedState):
            self._stands[content.to, broker] = Arriving()
            self.post(broker, content.answer_at, [FixedStateArrived(content.to)], 0.0, "control")
        elif isinstance(content, TaskState):
            self._start(content, broker)
        elif isinstance(stand, Endpoint):
            stand.handle(content)
        elif isinstance(stand, Arriving):
            stand.contents.append(content)
        elif isinstance(stand, Departed):
            onward = Message(broker, stand.broker, [content], message.size_b, message.kind, message.priority)
            self.links.send(onward)
        else:
            raise NetworkError(f"{content.to!r} is not at {broker!r}, and never was")

    # -- moving ------------------------------------------------------------------------------------------

    def move_at(self, time_s: float, task: str, broker: str) -> None:
        """Let a task move to a broker at a time; if it is moving then, after that."""
        if broker not in self.network.number:
            raise unknown("broker", broker, self.network.number, f"{task!r} is to move there")
        self.clock.at(time_s, partial(self._ask, task, broker))

    def _ask(self, task: str, broker: str) -> None:
        self._asked[task].append(broker)
        stand = self._stands[task, self.where[task]]
        if isinstance(stand, RunningTask) and stand.move is None:
            self._begin(stand)

    def _begin(self, task: RunningTask) -> None:
        while self._asked[task.name]:
            target = self._asked[task.name].popleft()
            if target == task.broker:
                continue
            task.move = Migration(task.name, task.broker, target, self.clock.now, fixed_b=task.work.fixed_b)
            self.moves.append(task.move)
            fixed = FixedState(task.name, task.broker)
            self.post(task.broker, target, [fixed], task.work.fixed_b, "fixed state")
            return

    def leave(self, task: str, broker: str, target: str) -> None:
        """Note that a task has stopped at one broker, and goes on at another."""
        self._stands[task, broker] = Departed(target)
        self.where[task] = target

    def _start(self, state: TaskState, broker: str) -> None:
        coming = self._stands[state.to, broker]
        assert isinstance(coming, Arriving)
        work, saved, told = state.work
        restored: Work = work.moved(saved)
        task = RunningTask(self, state.to, broker, restored)
        task.inlets, task.outlets, task.told = state.inlets, state.outlets, told
        task.saved = (saved, self.clock.now)
        self._stands[state.to, broker] = task
        next(m for m in reversed(self.moves) if m.task == state.to).started_s = self.clock.now
        for content in coming.contents:
            task.handle(content)
        for key in task.inlets:
            task.pass_over(key)
        self._begin(task)

    def hand_over_at(self, time_s: float, name: str, broker: str) -> None:
        """Let a feed or a consumer connect to another broker: a device, which keeps what it knows."""
        self.clock.at(time_s, partial(self._hand_over, name, broker))

    def _hand_over(self, name: str, broker: str) -> None:
        endpoint = self.find(name)
        if endpoint.broker == broker:
            return
        self._stands[name, endpoint.broker] = Departed(broker)
        endpoint.broker = broker
        self._stands[name, broker] = endpoint
        self.where[name] = broker
        for (sender, stream), inlet in endpoint.inlets.items():
            order = Redirect(sender, stream, name, broker, None, self.clock.now)
            self.post(broker, inlet.origin, [order], 0.0, "control")

    # -- failing -----------------------------------------------------------------------------------------

    def add_volatile(self, broker: str, forget: Action) -> None:
        """Register what is lost when a broker fails without recovery."""
        self._volatile[broker].append(forget)

    def _change(self, broker: str, is_down: bool) -> None:
        """Let a broker fail, with the tasks at it, or come back."""
        processor = self.processors[broker]
        tasks = [task for task in self.tasks() if task.broker == broker]
        if is_down:
            processor.fail()
            for task in tasks:
                task.forget()
            if not self.links.recovers:
                self.stable.lost += processor.forget()
                for forget in self._volatile[broker]:
                    forget()
        else:
            again = [Job(task.name, task.replay_work(), task.recover) for task in tasks]
            processor.restart(again if self.links.recovers else [])

    def _drop(self, message: Message) -> None:
        """Let readers go on without what was dropped: after a while they take it for lost."""
        for content in message.contents:
            if isinstance(content, Packet):
                self._inlets[content.to, content.key].gone.add(content.number)
                self.clock.after(0.0, partial(self._pass_over, content.to, content.key))

    def _pass_over(self, reader: str, key: Key) -> None:
        stand = self._stands[reader, self.where[reader]]
        if isinstance(stand, Endpoint):
            stand.pass_over(key)
