"""How a simulation is done: time, failures, queues, sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    filters_at_source: bool = True
    """Whether feeds send readers only the events and columns that these can use."""
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
    """What may wait for one direction of a link."""
    shares_links: bool = False
    """Whether a stream crosses a link once for all brokers beyond it that read it; else once for each."""
    header_b: float = HEADER_B
    """Bytes that every packet has besides its content; orders and heartbeats always have them."""
    reliable: bool = True
    """Whether data that a link loses is sent again. If not, readers go on without it, as they do without
    what a full queue dropped."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event of a type or definition; those that are not named are measured."""
    fixed_b: Mapping[str, float] = field(default_factory=dict)
    """State of each task that does not change."""
    work: Mapping[str, float] = field(default_factory=dict)
    """What each event that a task reads takes of a capacity of 1, in seconds; nothing unless it is named."""
