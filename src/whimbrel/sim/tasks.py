"""Tasks at brokers, and how they move from one to another while events flow.

A move has the parts that MigCEP gives it (section 4.3). The fixed state is sent ahead. When it has arrived,
the old host asks everyone who sends to the task to send to the new one, and goes on working until it has all
that was sent to it before; each sender says with a marker where that ends. Then it stops, and its state
follows. The new host keeps what comes in the meantime, and goes on from there. Packets are numbered, so that
none is lost and none is taken twice, whoever else moves at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME
from whimbrel.sim.endpoints import Endpoint
from whimbrel.sim.packets import FixedStateArrived, Key, Marker, Packet, Redirect, TaskState
from whimbrel.sim.processors import Job
from whimbrel.sim.work import Work, events_in

if TYPE_CHECKING:
    from whimbrel.sim.world import World


@dataclass
class Migration:
    """A move of a task: when it was asked for, and when what happened."""

    task: str
    source: str
    target: str
    asked_s: float
    ready_s: float | None = None
    """When the fixed state had arrived."""
    stopped_s: float | None = None
    started_s: float | None = None
    fixed_b: float = 0.0
    state_b: float = 0.0

    @property
    def down_s(self) -> float | None:
        """For how long the task did not run anywhere."""
        if self.stopped_s is None or self.started_s is None:
            return None
        return self.started_s - self.stopped_s


class RunningTask(Endpoint):
    """A task at one broker."""

    def __init__(self, world: World, name: str, broker: str, work: Work) -> None:
        super().__init__(world, name, broker)
        self.work = work
        self.move: Migration | None = None
        self.markers: dict[Key, int] = {}
        self.told: dict[str, int] = {}
        """How far each stream has been told to be."""
        self.saved: tuple[Any, float] | None = None
        """On stable storage: the state of the work, and when that was saved."""
        self.log: list[tuple[list[Packet], int]] = []
        """On stable storage: what has been worked on since."""

    def handle(self, content: Any) -> None:
        """Do what a message asks for."""
        if isinstance(content, FixedStateArrived):
            self._redirect_inputs()
        elif isinstance(content, Marker):
            self.markers[content.key] = content.number
        else:
            super().handle(content)
        if self.move is not None:
            self._stop_if_done()

    def take(self, packets: list[Packet]) -> None:
        """Let the broker work on packets when it has time."""
        processor, work = self.world.processors[self.broker], self.work.cost(packets)
        if processor.is_free:  # as `submit` would, without its cost
            processor.work += work
            self._done(packets, self.complete)
        else:
            processor.submit(Job(self.name, work, partial(self._done, packets, self.complete)))

    def _done(self, packets: list[Packet], complete: int) -> None:
        """Send what comes of packets."""
        if self.world.checkpoint_s is not None:
            self._remember(packets, complete, self.world.checkpoint_s)
        for output in self.work.take(packets, complete):
            if output.content is None and not self._is_worth_telling(output.stream, output.complete):
                continue
            self.told[output.stream] = output.complete
            self.send(
                output.stream,
                self.readers(output.stream),
                output.content,
                output.size_b,
                complete=output.complete,
                born_s=output.born_s,
            )
        if self.move is not None:
            self._stop_if_done()

    # -- failing -----------------------------------------------------------------------------------------

    def _remember(self, packets: list[Packet], complete: int, checkpoint_s: float) -> None:
        """Write packets down before they are worked on; from time to time, the state instead."""
        now, stable = self.world.clock.now, self.world.stable
        if now - (self.saved[1] if self.saved else 0.0) >= checkpoint_s:
            state, size = self.work.save()
            self.saved, self.log = (state, now), []
            stable.checkpoints += 1
            stable.checkpoints_b += size
        self.log.append((packets, complete))
        stable.log_b += sum(packet.size_b for packet in packets)

    def forget(self) -> None:
        """Lose what is not on stable storage."""
        self.work = self.work.anew()

    def replay_work(self) -> float:
        """Add up the work that it takes to come to where it was."""
        return sum(self.work.cost(packets) for packets, _ in self.log)

    def recover(self) -> None:
        """Come to where it was: from the state that was saved, with what was written down since.

        What comes of that has been sent before, and is on its way or there.
        """
        if self.saved is not None:
            self.work = self.work.moved(self.saved[0])
        for packets, complete in self.log:
            self.work.take(packets, complete)
            self.world.stable.replayed += events_in(packets)
        self._stop_if_done()

    def _is_worth_telling(self, stream: str, complete: int) -> bool:
        """Tell whether time has moved on so far that readers should know, without events."""
        told = self.told.get(stream, BEGINNING_OF_TIME)
        if complete <= told:
            return False
        return complete >= END_OF_TIME or complete - told >= self.world.heartbeat_us

    # -- moving ------------------------------------------------------------------------------------------

    def _redirect_inputs(self) -> None:
        assert self.move is not None
        self.move.ready_s = self.world.clock.now
        for (sender, stream), inlet in self.inlets.items():
            order = Redirect(sender, stream, self.name, self.move.target, self.broker, self.world.clock.now)
            self.world.post(self.broker, inlet.origin, [order], 0.0, "control")

    def _stop_if_done(self) -> None:
        """Stop and send the state on, once all that was meant for this host has been taken."""
        move = self.move
        if move is None or move.ready_s is None or move.stopped_s is not None:
            return
        if any(self.markers.get(key) != inlet.number for key, inlet in self.inlets.items()):
            return
        if self.world.processors[self.broker].has_jobs_for(self.name):
            return
        saved, size = self.work.save()
        move.stopped_s, move.state_b = self.world.clock.now, size
        state = TaskState(self.name, (self.work, saved, self.told), self.inlets, self.outlets)
        self.world.leave(self.name, self.broker, move.target)
        self.world.post(self.broker, move.target, [state], size, "state")
