"""What operators and brokers tell each other to agree on plans (MigCEP, section 4.1, Coordination)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from whimbrel.plan.arrays import Bools, Ints

Address = str | int
"""A task by name, a broker by its position in the problem."""


@dataclass(frozen=True, slots=True, eq=False)
class CoordinationMessage:
    """What one sends to another. The serial is that of the proposal that it belongs to."""

    sender: Address
    receiver: Address
    serial: int


@dataclass(frozen=True, slots=True, eq=False)
class PlanUpdated(CoordinationMessage):
    """An operator proposes a changed plan to a neighbour, which keeps its own until it is settled."""

    hosts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class PlanAccepted(CoordinationMessage):
    """A neighbour answers that its own plan stays, and which one that is."""

    version: int


@dataclass(frozen=True, slots=True, eq=False)
class PlanSettled(CoordinationMessage):
    """A proposal is over: this plan holds now, the proposed one or, if it was withdrawn, the one before."""

    version: int
    hosts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class ReservationRequest(CoordinationMessage):
    """An operator asks a target for resources in some steps."""

    steps: Bools
    work: float
    stored_b: float


@dataclass(frozen=True, slots=True, eq=False)
class ReservationReply(CoordinationMessage):
    """A target answers: the steps that it has no room for. Without any, it holds the rest until told more."""

    rejected: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Reserve(CoordinationMessage):
    """An operator makes what a target holds its only reservation there: nothing, if it holds nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Release(CoordinationMessage):
    """An operator gives back what a target holds for a proposal that came to nothing."""


class Mailbox(Protocol):
    """What carries messages, in any order and with any delay, but loses and repeats none."""

    def send(self, message: CoordinationMessage) -> None:
        """Take a message; it is handed over later."""


@dataclass(slots=True)
class LocalMailbox:
    """A mailbox in one process: messages wait here until one is picked.

    `pick` chooses the next one by the number of those that wait: the oldest, if nothing is said.
    """

    pick: Callable[[int], int] = lambda waiting: 0
    waiting: list[CoordinationMessage] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)

    def send(self, message: CoordinationMessage) -> None:
        """Take a message."""
        self.sent[type(message).__name__] += 1
        self.waiting.append(message)

    def take(self) -> CoordinationMessage | None:
        """Return the next message; None, if there is none."""
        return self.waiting.pop(self.pick(len(self.waiting))) if self.waiting else None
