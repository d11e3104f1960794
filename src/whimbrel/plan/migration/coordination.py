"""Operators agree on plans by messages alone (MigCEP, section 4.1; algorithms 4.1 and 4.3 of the thesis).

An operator that finds a better plan proposes it to its neighbours, waits until all have accepted, asks the
brokers that it wants to go to for resources, and then tells its neighbours what holds. Of two neighbours that
propose at once, the one with the lower id withdraws and thinks again. Brokers that have no room are left out,
in the steps that are full.

One thing differs from the paper: there, a neighbour answers with a changed plan before the proposal is
settled, and may so build on a plan that is taken back. Here it keeps its plan until then. So each plan that
comes into force was made next to plans that held, the total falls with each (section 5.3 shows it for plans
that are made in turns), and the coordination ends, in whatever order messages arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Bools, Floats, Ints
from whimbrel.plan.migration.local_search import fits, slack
from whimbrel.plan.migration.messages import (
    CoordinationMessage,
    LocalMailbox,
    Mailbox,
    PlanAccepted,
    PlanSettled,
    PlanUpdated,
    Release,
    ReservationReply,
    ReservationRequest,
    Reserve,
)
from whimbrel.plan.migration.problem import Hosts, MigrationProblem


@dataclass(slots=True)
class _Proposal:
    """A plan that is not settled yet."""

    serial: int
    hosts: Ints
    unheard: set[str]
    """Neighbours that have not answered."""
    targets: set[int] = field(default_factory=set)
    """Brokers that have not answered."""
    held: list[int] = field(default_factory=list)
    """Brokers that hold what was asked for."""
    rejected: bool = False

    @property
    def reserving(self) -> bool:
        """Whether all neighbours have accepted it."""
        return not self.unheard


class OperatorAgent:
    """Plan one operator: `stablePlan` of the paper is `hosts`, `tmpPlan` is the proposal."""

    def __init__(self, problem: MigrationProblem, task: str, hosts: Hosts, mailbox: Mailbox) -> None:
        self.task = task
        self.hosts = hosts[task]
        self.version = 0
        self._problem = problem
        self._mailbox = mailbox
        self._id = problem.tasks.index(task)
        self._ids = {name: n for n, name in enumerate(problem.tasks)}
        self._near = problem.neighbours[task]
        self._plans = {name: hosts[name] for name in self._near}
        self._versions = dict.fromkeys(self._near, 0)
        self._settled = dict.fromkeys(self._near, 0)
        self._granted: dict[str, int] = {}
        self._suppressed: dict[str, int] = {}
        self._serial = 0
        self._proposal: _Proposal | None = None
        self._stale = False
        self._rejected = np.zeros((problem.horizon.steps, len(problem.numbers)), dtype=bool)
        self._room = np.broadcast_to(problem.may_host(task), self._rejected.shape)

    def wake(self) -> None:
        """Look for a better plan, because something has changed: what was full may have room again."""
        self._rejected[:] = False
        self._stale = True
        self._generate()

    def receive(self, message: CoordinationMessage) -> None:
        """Handle one message."""
        match message:
            case PlanUpdated(sender=str(sender)):
                self._on_updated(sender, message.serial)
            case PlanAccepted(sender=str(sender)):
                self._on_accepted(sender, message)
            case PlanSettled(sender=str(sender)):
                self._on_settled(sender, message)
            case ReservationReply(sender=int(sender)):
                self._on_reply(sender, message)

    def _generate(self) -> None:
        """Plan anew, unless a proposal is under way, here or with a neighbour that was promised to wait."""
        if not self._stale or self._proposal is not None or self._granted:
            return
        self._stale = False
        graph = self._problem.time_graph(self.task, self._plans, self._room)
        path = graph.without(self._rejected).shortest()
        now = graph.score_of(self.hosts)
        if path.added.any() or path.score >= now - slack(now):
            return
        self._serial += 1
        self._proposal = _Proposal(self._serial, path.hosts, set(self._near))
        for name in self._near:
            self._mailbox.send(PlanUpdated(self.task, name, self._serial, path.hosts))
        if self._proposal.reserving:
            self._ask_targets(self._proposal)

    def _on_updated(self, sender: str, serial: int) -> None:
        if serial <= self._settled[sender]:
            return  # it is over already: messages may overtake each other
        own = self._proposal
        if own is not None and (own.reserving or self._id > self._ids[sender]):
            # Sent at the same time: the sender withdraws it when ours arrives, or gets its answer when ours
            # is over.
            self._suppressed[sender] = max(serial, self._suppressed.get(sender, 0))
            return
        if own is not None:
            self._end(own, self.hosts)
            self._stale = True
        self._granted[sender] = max(serial, self._granted.get(sender, 0))
        self._mailbox.send(PlanAccepted(self.task, sender, serial, self.version))

    def _on_accepted(self, sender: str, message: PlanAccepted) -> None:
        own = self._proposal
        if own is None or message.serial != own.serial:
            return
        if message.version != self._versions[sender]:
            # It was made next to a plan that no longer holds; the one that does is on its way here.
            self._end(own, self.hosts)
            self._generate()
            return
        own.unheard.discard(sender)
        if own.reserving:
            self._ask_targets(own)

    def _on_settled(self, sender: str, message: PlanSettled) -> None:
        if message.serial <= self._settled[sender]:
            return
        self._settled[sender] = message.serial
        if message.version > self._versions[sender]:
            self._versions[sender], self._plans[sender] = message.version, message.hosts
            self._stale = True
        if self._granted.get(sender, 0) <= message.serial:
            self._granted.pop(sender, None)
        self._generate()

    def _ask_targets(self, own: _Proposal) -> None:
        operator = self._problem.workload.task[self.task]
        own.targets = {int(target) for target in np.unique(own.hosts)}
        for target in sorted(own.targets):
            steps = own.hosts == target
            stored = self._problem.state_b(self.task)
            self._mailbox.send(
                ReservationRequest(self.task, target, own.serial, steps, operator.work, stored)
            )

    def _on_reply(self, sender: int, message: ReservationReply) -> None:
        own = self._proposal
        if own is None or message.serial != own.serial:
            return
        own.targets.discard(sender)
        if message.rejected.any():
            own.rejected = True
            self._rejected[message.rejected, sender] = True
        else:
            own.held.append(sender)
        if own.targets:
            return
        if own.rejected:
            for target in own.held:
                self._mailbox.send(Release(self.task, target, own.serial))
            self._end(own, self.hosts)
            self._stale = True
        else:
            for target in np.union1d(own.hosts, self.hosts):
                self._mailbox.send(Reserve(self.task, int(target), own.serial))
            self.version += 1
            self._end(own, own.hosts)
        self._generate()

    def _end(self, own: _Proposal, hosts: Ints) -> None:
        self._proposal, self.hosts = None, hosts
        for name in self._near:
            self._mailbox.send(PlanSettled(self.task, name, own.serial, self.version, hosts))
        suppressed, self._suppressed = self._suppressed, {}
        for sender, serial in suppressed.items():
            self._on_updated(sender, serial)


@dataclass(slots=True)
class _Booking:
    """What one operator has at one broker."""

    work: float
    stored_b: float
    steps: Bools
    serial: int = 0
    held: dict[int, Bools] = field(default_factory=dict)

    @property
    def taken(self) -> Bools:
        """The steps that are reserved, or held for a proposal."""
        taken = self.steps.copy()
        for steps in self.held.values():
            taken |= steps
        return taken


class BrokerAgent:
    """Keep the reservations of one broker, so that it never promises more than it has."""

    def __init__(self, problem: MigrationProblem, position: int, hosts: Hosts, mailbox: Mailbox) -> None:
        self.position = position
        self._capacity = float(problem.capacity[position])
        self._storage_b = float(problem.storage_b[position])
        self._mailbox = mailbox
        self._bookings = {
            task: _Booking(problem.workload.task[task].work, problem.state_b(task), hosts[task] == position)
            for task in problem.tasks
        }

    def load(self) -> tuple[Floats, Floats]:
        """Return the work and the bytes that are reserved or held in each step."""
        bookings = self._bookings.values()
        work = sum(booking.work * booking.taken for booking in bookings)
        return np.asarray(work), np.asarray(sum(booking.stored_b * booking.taken for booking in bookings))

    def receive(self, message: CoordinationMessage) -> None:
        """Handle one message."""
        task = str(message.sender)
        match message:
            case ReservationRequest():
                self._on_request(task, message)
            case Reserve():
                self._on_reserve(task, message.serial)
            case Release():
                self._bookings[task].held.pop(message.serial, None)

    def _on_request(self, task: str, message: ReservationRequest) -> None:
        others = [booking for name, booking in self._bookings.items() if name != task]
        work = sum((b.work * b.taken for b in others), np.zeros(len(message.steps)))
        stored = sum((b.stored_b * b.taken for b in others), np.zeros(len(message.steps)))
        full = work + message.work > self._capacity * (1 + 1e-12)
        full |= stored + message.stored_b > self._storage_b * (1 + 1e-12)
        rejected = full & message.steps
        if not rejected.any():
            self._bookings[task].held[message.serial] = message.steps
        self._mailbox.send(ReservationReply(self.position, task, message.serial, rejected))

    def _on_reserve(self, task: str, serial: int) -> None:
        booking = self._bookings[task]
        steps = booking.held.pop(serial, np.zeros_like(booking.steps))
        if serial > booking.serial:
            booking.steps, booking.serial = steps, serial


@dataclass(frozen=True, slots=True)
class Coordination:
    """What operators agreed on."""

    hosts: dict[str, Ints]
    messages: Counter[str]
    """How many of each kind were sent."""

    @property
    def sent(self) -> int:
        """All messages."""
        return self.messages.total()


class Agents:
    """All operators and brokers of a problem, for who carries their messages."""

    def __init__(self, problem: MigrationProblem, hosts: Hosts, mailbox: Mailbox) -> None:
        if not fits(problem, dict(hosts)):
            raise NoPlanError(
                "some broker has more to do at the beginning than it can; begin with another placement"
            )
        self.operators = {task: OperatorAgent(problem, task, hosts, mailbox) for task in problem.tasks}
        self.brokers = [BrokerAgent(problem, n, hosts, mailbox) for n in range(len(problem.numbers))]

    def wake(self) -> None:
        """Let all operators look for better plans."""
        for agent in self.operators.values():
            agent.wake()

    def deliver(self, message: CoordinationMessage) -> None:
        """Hand a message over."""
        to = message.receiver
        (self.brokers[to] if isinstance(to, int) else self.operators[to]).receive(message)

    @property
    def hosts(self) -> dict[str, Ints]:
        """The plans that hold."""
        return {task: agent.hosts for task, agent in self.operators.items()}


def coordinate(
    problem: MigrationProblem,
    hosts: Mapping[str, Ints],
    pick: Callable[[int], int] | None = None,
) -> Coordination:
    """Let operators agree on plans, in one process (algorithms 4.1 and 4.3 of the thesis).

    Each proposal costs a search of a time graph, two messages for each neighbour and three for each broker.

    Parameters
    ----------
    hosts
        The plans to begin with, for instance to stay.
    pick
        Chooses the message to deliver next, by how many wait; the oldest, if nothing is said.
    """
    mailbox = LocalMailbox() if pick is None else LocalMailbox(pick)
    agents = Agents(problem, hosts, mailbox)
    agents.wake()
    while (message := mailbox.take()) is not None:
        agents.deliver(message)
    return Coordination(agents.hosts, mailbox.sent)
