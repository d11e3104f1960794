"""How a simulation is done: time, failures, queues, sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from whimbrel.plan.routes import Weight, by_latency
from whimbrel.sim.messages import HEADER_B
from whimbrel.sim.outages import Failure


@dataclass(frozen=True)
class Settings:
    """How a run is done; nothing of it changes what is detected."""

    seed: int = 0
    step_s: float = 0.0
    """Events of a feed are sent together for so long; 0: each as it happens."""
    heartbeat_s: float = 1.0
    """How often feeds and tasks tell that time goes on while nothing happens."""
    weight: Weight = by_latency
    """What the ways of messages are chosen by."""
    failures: tuple[Failure, ...] = ()
    recovers: bool = True
    """Whether brokers keep state and messages on stable storage, and go on from there after a failure."""
    notice_s: float = 1.0
    """How long after a link or broker begins to fail messages go round it; infinite: never."""
    checkpoint_s: float | None = None
    """How often tasks save their state; None: every 10 s if a broker is to fail, else never."""
    interval_s: float = 1.0
    """The step of series over time."""
    queue_b: float = math.inf
    """What may wait for one direction of a link; what waits at a broker is bounded by its storage."""
    header_b: float = HEADER_B
    """Bytes that every packet has besides its content; orders and heartbeats always have them."""
    reliable: bool = True
    """Whether data that a link loses is sent again. If not, readers go on without it, as they do without
    what a full queue dropped."""
