"""Run a workload on simulated brokers with bytes at rates, without events, to measure what plans expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.query_run import Move
from whimbrel.errors import NetworkError
from whimbrel.plan.network import Consumer, Network
from whimbrel.plan.workload import Feed, Task, Workload
from whimbrel.sim.comparison import Compared
from whimbrel.sim.endpoints import Endpoint
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.packets import Packet
from whimbrel.sim.placement_run import first_broker, measured
from whimbrel.sim.receivers import Receiver
from whimbrel.sim.settings import Settings
from whimbrel.sim.tasks import RunningTask
from whimbrel.sim.work import StreamOutput
from whimbrel.sim.world import World

Factors = Mapping[str, Callable[[float], float]]
"""By what the bytes of a feed are multiplied at a time."""


def run_workload(
    workload: Workload,
    network: Network,
    placement: Mapping[str, str],
    *,
    until_s: float,
    moves: Iterable[Move] = (),
    step_s: float = 1.0,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    factors: Factors | None = None,
) -> Outcome:
    """Run a workload on brokers: feeds send bytes at their rates, tasks pass on the share that is theirs.

    Parameters
    ----------
    until_s
        When feeds stop; what is under way then arrives.
    step_s
        What a feed has to send in this time is one packet, or a single event if there are fewer.
    factors
        By what the bytes of a feed are multiplied at a time; by 1, if nothing is said.
    """
    world = World(network, settings)
    feeds = []
    phases = world.clock.generator("phases").random(len(workload.feeds))
    for feed, phase in zip(workload.feeds, phases.tolist(), strict=True):
        broker = first_broker(world, Consumer(feed.name, feed.at))
        made = RateFeed(world, feed, broker, until_s=until_s, step_s=step_s, phase_s=phase * step_s)
        made.factor = (factors or {}).get(feed.name, made.factor)
        world.add(made)
        feeds.append(made)
    for task in workload.tasks:
        if task.name not in placement:
            raise NetworkError(f"the task {task.name!r} has no broker", "name one in the placement")
        comes = sum(workload.stream(name).bytes_s for name in task.inputs)
        share, work_b = (each / comes if comes else 0.0 for each in (task.bytes_s, task.work))
        work = RateWork(task, share, work_b)
        world.add(RunningTask(world, task.name, placement[task.name], work))
        for name in task.inputs:
            world.connect(name, name, task.name)
    receivers = []
    for number, delivery in enumerate(workload.deliveries):
        name = f"{delivery.stream} to {delivery.at} ({number})"
        receiver = Receiver(world, name, first_broker(world, Consumer(name, delivery.at)))
        world.add(receiver)
        world.connect(delivery.stream, delivery.stream, name)
        receivers.append(receiver)
    for time_s, task_name, broker in moves:
        world.move_at(time_s, task_name, broker)
    for made in feeds:
        made.start()
    world.clock.run()
    return measured(world, receivers)


class RateFeed(Endpoint):
    """Sends bytes at a rate, as a workload says."""

    def __init__(
        self,
        world: World,
        feed: Feed,
        broker: str,
        *,
        until_s: float,
        step_s: float,
        phase_s: float = 0.0,
    ) -> None:
        super().__init__(world, feed.name, broker)
        self.feed = feed
        self.until_s = until_s
        self.step_s = max(step_s, 1.0 / feed.rate_hz if feed.rate_hz > 0 else math.inf)
        self.phase_s = phase_s
        self.factor: Callable[[float], float] = lambda _: 1.0
        """By what its bytes are multiplied at a time."""
        self._numbers = 0

    def start(self) -> None:
        """Begin to send."""
        self._schedule()

    def _schedule(self) -> None:
        time_s = self.phase_s + self._numbers * self.step_s
        if time_s < self.until_s:
            self.world.clock.at(time_s, self._send)

    def _send(self) -> None:
        now = self.world.clock.now
        size = self.feed.bytes_s * self.step_s * self.factor(now)
        stream = self.feed.name
        self.send(stream, self.readers(stream), "bytes", size, complete=round(now * 1e6), born_s=now)
        self._numbers += 1
        self._schedule()


@dataclass
class RateWork:
    """Acts as a workload says: for every byte that comes, the share of a byte that the task gives."""

    task: Task
    share: float
    """Bytes out for a byte in."""
    work_b: float = 0.0
    """Work for a byte in."""

    @property
    def fixed_b(self) -> float:
        return self.task.fixed_b

    def take(self, packets: list[Packet], complete: int) -> list[StreamOutput]:
        """Pass on a share of every packet."""
        return [
            StreamOutput(self.task.name, "bytes", packet.size_b * self.share, complete, packet.born_s)
            for packet in packets
        ]

    def save(self) -> tuple[Any, float]:
        """Return nothing, of the size of the window."""
        return None, self.task.window_b

    def moved(self, state: Any) -> RateWork:  # noqa: ARG002 (as the other kind of work)
        """Go on elsewhere."""
        return self.anew()

    def cost(self, packets: list[Packet]) -> float:
        """Add up the work that packets make: the task's share of work a byte."""
        return self.work_b * sum(packet.size_b for packet in packets) if self.work_b else 0.0

    def anew(self) -> RateWork:
        """Begin again."""
        return RateWork(self.task, self.share, self.work_b)


def compared(estimated: Mapping[str, float], measured: Mapping[str, float | None]) -> tuple[Compared, ...]:
    """Put figures of the same names beside each other; what was not measured is None.

    >>> compared({"cost": 100.0}, {"cost": 110.0})[0].off_by
    0.10000000000000009
    """
    return tuple(Compared(what, value, measured.get(what)) for what, value in estimated.items())


def against_costs(
    outcome: Outcome,
    seconds: float,
    *,
    bdp_b: float | None = None,
    flow_b_s: float | None = None,
    cost_s: float | None = None,
    delays_s: Sequence[float] = (),
) -> tuple[Compared, ...]:
    """Compare the costs of a plan with a run of so many seconds.

    Parameters
    ----------
    bdp_b, flow_b_s, cost_s
        What the plan says of a second: byte seconds on their way, bytes on all links, what they cost.
    delays_s
        The longest delay of each delivery, in the order of the outcome's receivers.
    """
    whole = outcome.traffic.whole
    given = {"bdp B": bdp_b, "flow B/s": flow_b_s, "cost /s": cost_s}
    estimated = {what: value for what, value in given.items() if value is not None}
    measured: dict[str, float | None] = {
        "bdp B": whole.bdp / seconds,
        "flow B/s": whole.bytes / seconds,
        "cost /s": whole.cost / seconds,
    }
    for (name, delays), delay in zip(outcome.delays_s.items(), delays_s, strict=False):
        estimated[f"delay s: {name}"] = delay
        measured[f"delay s: {name}"] = float(delays.max()) if len(delays) else None
    return compared(estimated, measured)
