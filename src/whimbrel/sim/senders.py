"""Where events come from: recorded events at the brokers that they reach first, or bytes at a rate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME
from whimbrel.sim.endpoints import Endpoint
from whimbrel.sim.packets import bytes_of

if TYPE_CHECKING:
    from whimbrel.sim.world import World

Int64Array = npt.NDArray[np.int64]


class EventSender(Endpoint):
    """Events of one type that come to one broker, for readers that each get what they can use.

    They are sent as they happen, or all of a step of time together; without events, heartbeats tell that time
    goes on.

    Parameters
    ----------
    events
        What readers can use, in the common form and in order of their ends: for the names of the readers that
        get the same.
    since_us
        The event time at which the run begins.
    until_us
        When the feed ends: it says then that no more events will come.
    step_us
        Events are sent together for so long; 0: each by itself, as it happens.
    """

    def __init__(
        self,
        world: World,
        name: str,
        broker: str,
        stream: str,
        events: Mapping[tuple[str, ...], pa.RecordBatch],
        *,
        since_us: int,
        until_us: int,
        step_us: int = 0,
        size_b: float | None = None,
    ) -> None:
        super().__init__(world, name, broker)
        self.stream = stream
        self.events = events
        self.since_us = since_us
        self.until_us = until_us
        self.size_b = size_b
        ends = {readers: _ends(batch) for readers, batch in events.items()}
        ticks = [_ticks(each, since_us, step_us) for each in ends.values()]
        self._ticks: Int64Array = np.unique(np.concatenate([np.zeros(0, np.int64), *ticks]))
        self._bounds = {
            readers: np.searchsorted(each, self._ticks, side="right") for readers, each in ends.items()
        }
        self._begun = dict.fromkeys(events, 0)
        self._told = BEGINNING_OF_TIME

    def start(self) -> None:
        """Begin to send."""
        self._schedule(0)

    def _schedule(self, place: int) -> None:
        """Wait for the next events, or for the next heartbeat if it comes first."""
        beat = (self.since_us if self._told == BEGINNING_OF_TIME else self._told) + self.world.heartbeat_us
        due = int(self._ticks[place]) if place < len(self._ticks) else None
        if due is not None and due <= beat:
            self.world.clock.at(self._seconds(due), partial(self._send, place, due))
        elif due is None and beat >= self.until_us:
            self.world.clock.at(self._seconds(self.until_us), partial(self._send, place, END_OF_TIME))
        else:
            self.world.clock.at(self._seconds(beat), partial(self._send, place, beat))

    def _seconds(self, time_us: int) -> float:
        return max((time_us - self.since_us) / 1e6, self.world.clock.now)

    def _send(self, place: int, complete: int) -> None:
        has_events = place < len(self._ticks) and int(self._ticks[place]) == complete
        for readers, batch in self.events.items():
            end = int(self._bounds[readers][place]) if has_events else self._begun[readers]
            self._send_to(readers, batch.slice(self._begun[readers], end - self._begun[readers]), complete)
            self._begun[readers] = end
        self._told = complete
        if complete < END_OF_TIME:
            self._schedule(place + has_events)

    def _send_to(self, readers: tuple[str, ...], part: pa.RecordBatch, complete: int) -> None:
        content, size, born = None, 0.0, self.world.clock.now
        if part.num_rows:
            content = part
            size = bytes_of(part) if self.size_b is None else self.size_b * part.num_rows
            born = (int(_ends(part)[-1]) - self.since_us) / 1e6
        self.send(self.stream, readers, content, size, complete=complete, born_s=born)


def _ends(batch: pa.RecordBatch) -> Int64Array:
    ends: Int64Array = batch.column("end").to_numpy(zero_copy_only=False)
    return ends


def _ticks(ends: Int64Array, since_us: int, step_us: int) -> Int64Array:
    """Say when events are sent: at their ends, or at the end of the step that they are in."""
    if not step_us:
        return ends
    return since_us + -((since_us - ends) // step_us) * step_us
