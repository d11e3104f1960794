"""The correlation steps of one partition: which selection is open, and what comes after it.

A partition is in one of three phases. *Waiting*: there is no restriction window; the event that the next
one is anchored at has not come. *Open*: a selection is open and takes in events. *Between*: a selection is
closed, and neither can a window shift yet nor is the restriction window known to be complete. Events are
taken one by one in the total order, and before each the clock goes to the last instant before its end. It
stops at every deadline on the way, so that nothing depends on how events and watermarks come in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from whimbrel.engine.operators.custom.restriction import RestrictionWindows
from whimbrel.engine.operators.custom.selection import DetectionTimes, SelectionWindows, admits_nothing
from whimbrel.engine.operators.custom.windows import WindowItem, WindowSpan
from whimbrel.errors import QueryError
from whimbrel.graph.custom import CustomOperator, Event, Output
from whimbrel.graph.operators import Custom
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


class Phase(StrEnum):
    """Where a partition stands."""

    WAITING = "waiting"
    OPEN = "open"
    BETWEEN = "between"


@dataclass(frozen=True, slots=True)
class Emitted:
    """A detection of a custom operator, with its stamp."""

    attributes: Mapping[str, Any]
    items: Sequence[WindowItem]
    start: int
    end: int
    number: int
    """What tells detections of the same events apart."""
    moment: int
    """When it was found: with an event, or when a deadline passed."""


@dataclass(frozen=True, slots=True)
class SelectionStamp:
    """What detections have from the selection that they are made of, whenever they are made."""

    items: Mapping[int, WindowItem]
    """Its events by place, in order."""
    times: DetectionTimes
    about: tuple[Any, ...]
    """Where it is: keys of the partition, restriction window, number of the selection."""
    moment: int

    def emitted(self, output: Output, number: int) -> Emitted:
        """Stamp the so many-th detection of the selection."""
        items = self.items
        if output.events is not None:
            named = {event.place for event in output.events}
            if not named <= set(items):
                raise ValueError("made a detection of events that are not in its selection")
            items = {place: item for place, item in items.items() if place in named}
        members = list(items.values())
        start, end = self.times.of(members)
        return Emitted(dict(output.attributes), members, start, end, self._number(number), self.moment)

    def _number(self, number: int) -> int:
        text = repr((*self.about, number))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What all partitions of an operator share."""

    op: Custom
    make: Callable[[], CustomOperator]
    slots: Mapping[str, int]
    """The bit of each input."""

    def restriction(self) -> RestrictionWindows:
        """Make the restriction of a new partition."""
        window = self.op.policy.restriction
        bits = -1 if window.input is None else 1 << self.slots[window.input]
        return RestrictionWindows(window, bits, every_cell=admits_nothing(self.op.policy))


class CorrelationSteps:
    """One partition of a custom operator."""

    def __init__(self, plan: PartitionPlan, key: Mapping[str, Any], emit: Callable[[Emitted], None]) -> None:
        self.plan = plan
        self.key = key
        self.emit = emit
        self.operator: CustomOperator = self._call("__init__", plan.make)
        self.operator.partition = key
        self.restriction = plan.restriction()
        self.selection = SelectionWindows(plan.op.policy, plan.slots)
        self.phase = Phase.WAITING
        self.clock = BEGINNING_OF_TIME
        self.moment = BEGINNING_OF_TIME
        """The time of what is going on: that of the event, or of the deadline."""
        self.is_over = False
        self.buffer: list[WindowItem] = []
        self.places = 0
        """How many events there were so far."""
        self.stretch: WindowSpan | None = None
        self.step = 0
        """The number of the selection in its restriction window."""
        self.emitted = 0
        self.is_touched = False
        """Whether any event lay in the cell that is the restriction window."""
        self.pending: list[Event] = []
        self.handed: list[Sequence[Event]] = []
        """What `process` was called with, call by call."""
        self.selected: dict[str, list[Event]] = {}

    # -- what drives it ------------------------------------------------------------------------------------

    def feed(self, item: WindowItem) -> None:
        """Take in the next event in the total order."""
        self.advance(item.end - 1)
        self.buffer.append(item)
        self.places = item.place + 1
        self.moment = item.end
        self._run()

    def advance(self, clock: int) -> None:
        """Say that every event up to `clock` has been fed."""
        while (due := self.due) <= clock and due < END_OF_TIME:
            self.clock = self.moment = due
            self._run()
        self.clock = max(self.clock, clock)

    def finish(self) -> None:
        """Say that the input is over."""
        self.is_over = True
        self.advance(END_OF_TIME)

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        if self.stretch is None or self.clock >= END_OF_TIME:
            return END_OF_TIME
        deadlines = self.selection.deadlines if self.phase is Phase.OPEN else []
        return max(min([self.stretch.high, *deadlines]), self.clock + 1)

    def tidy(self, clock: int) -> None:
        """Forget what is of no use any more, every event up to `clock` having been fed."""
        if self.phase is Phase.WAITING:
            self.clock = max(self.clock, clock)
        self._evict()

    @property
    def is_idle(self) -> bool:
        """Whether a new partition would do as well as this one."""
        return self.phase is Phase.WAITING and not self.buffer and self.restriction.is_as_new(self.clock)

    def _run(self) -> None:
        go_on = {Phase.WAITING: self._enter, Phase.OPEN: self._fill, Phase.BETWEEN: self._next}
        while go_on[self.phase]():
            pass
        self._evict()

    def _evict(self) -> None:
        """Forget the events that no restriction window can reach any more."""
        low, first = self.restriction.keeps(self.stretch, self.clock, self.places)
        if self.buffer and (self.buffer[0].end < low or self.buffer[0].place < first):
            self.buffer = [item for item in self.buffer if item.end >= low and item.place >= first]

    # -- the three phases ----------------------------------------------------------------------------------

    def _enter(self) -> bool:
        """Put the restriction window where it comes next, if that is known."""
        self.stretch = self.restriction.next(self.buffer, self.is_over)
        if self.stretch is None:
            return False
        self.step, self.is_touched = 0, False
        self._evict()
        self._open()
        return True

    def _fill(self) -> bool:
        """Take in what matches, hand it over, and close the selection if nothing more can come."""
        assert self.stretch is not None
        if self._is_past_the_end():
            self._leave()
            return False
        for item, window in self.selection.fill(self.buffer, self.stretch, self.clock):
            event = replace(item.event, window=window)
            self.selected[window].append(event)
            self.pending.append(event)
        is_complete = self.selection.is_complete
        is_absence = is_complete and not self.handed and self.restriction.every_cell
        if (self.pending or is_absence) and self.selection.is_worth_it():
            self._process()
        if is_complete or self.operator.finished or self.operator.exhausted:
            self._close()
            return True
        return False

    def _next(self) -> bool:
        """Shift the selection windows, or give the restriction window up if none can."""
        assert self.stretch is not None
        if not self.operator.exhausted and self.selection.shift(self.buffer, self.stretch):
            self._open()
            return True
        if self.operator.exhausted or self.stretch.is_complete(self.clock):
            self._leave()
            return True
        return False

    def _leave(self) -> None:
        assert self.stretch is not None
        self.restriction.leave(self.stretch)
        self.selection.restart()
        self.stretch = None
        self.phase = Phase.WAITING

    def _is_past_the_end(self) -> bool:
        """Tell whether the input is over and there is nothing here: such cells would have no end."""
        assert self.stretch is not None
        if self.is_touched or not self.restriction.by_time:
            return False
        self.is_touched = any(self.stretch.holds(item) for item in self.buffer)
        return self.is_over and not self.is_touched

    # -- a selection ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.phase = Phase.OPEN
        self.step += 1
        self.emitted = 0
        self.pending, self.handed = [], []
        self.selection.open()
        self.selected = {window.name: [] for window in self.plan.op.policy.windows}
        self.announce()

    def announce(self) -> None:
        """Tell the operator about a new selection."""
        self.operator.selected = self.selected
        self.operator.finished = self.operator.exhausted = False
        self._call("open", self.operator.open)

    def _process(self) -> None:
        """Hand over the events that were added since the last time."""
        events = tuple(sorted(self.pending, key=lambda event: event.place))
        self.pending = []
        self.handed.append(events)
        stamp = self.stamp()
        for found in self.hand_over(events):
            self.emitted += 1
            self.emit(self.stamped(found, stamp, self.emitted))

    def hand_over(self, events: Sequence[Event]) -> list[Any]:
        """Let the operator process events; give what it finds."""
        found: list[Any] = self._call("process", lambda: list(self.operator.process(events) or ()))
        return found

    def take_leave(self) -> Any:
        """Let the operator take leave of the selection; give what it says."""
        return self._call("close", self.operator.close)

    def _close(self) -> None:
        consumed = self._consumed(self.take_leave())
        if consumed:
            self.buffer = [item for item in self.buffer if item.place not in consumed]
        self.phase = Phase.BETWEEN

    def _consumed(self, answer: Any) -> set[int]:
        """Give the places of the events that the consumption policy takes away."""
        policy = self.plan.op.consumption
        if policy.kind == "before":
            if answer is not None and not isinstance(answer, int):
                raise self._failure("close", f"gave {answer!r}, where its consumption policy asks for a time")
            return {item.place for item in self.buffer if answer is not None and item.end < answer}
        if policy.kind == "named":
            return {event.place for event in self._call("close", lambda: _events_in(answer))}
        self._check_consumed(answer)
        places = list(self.selection.items)
        counts = {"none": slice(0), "first": slice(policy.count), "last": slice(-policy.count, None)}
        return set(places[counts.get(policy.kind, slice(None))])

    def _check_consumed(self, answer: Any) -> None:
        """Refuse an answer where the consumption policy asks for none."""
        if answer is not None:
            kind = self.plan.op.consumption.kind
            raise self._failure("close", f"gave {answer!r}, but its consumption policy is {kind!r}")

    # -- detections ----------------------------------------------------------------------------------------

    def stamp(self) -> SelectionStamp:
        """Give what detections have from the selection as it is now."""
        assert self.stretch is not None
        about = (sorted(self.key.items()), self.stretch.label, self.step)
        return SelectionStamp(self.selection.items, self.selection.times(self.stretch), about, self.moment)

    def stamped(self, found: Any, stamp: SelectionStamp, number: int) -> Emitted:
        """Make a detection of what an operator gave."""
        output = found if isinstance(found, Output) else Output(found)
        if not isinstance(output.attributes, Mapping):
            raise self._failure("process", f"gave {output.attributes!r}, not the attributes of a detection")
        try:
            return stamp.emitted(output, number)
        except ValueError as error:
            raise self._failure("process", str(error)) from error

    # -- the code of the operator --------------------------------------------------------------------------

    def _call(self, method: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except QueryError:
            raise
        except Exception as error:
            raise self._failure(method, f"failed: {type(error).__name__}: {error}") from error

    def _failure(self, method: str, what: str) -> QueryError:
        return QueryError(f"operator {self.plan.op.function!r}: {method}() {what}")


def _events_in(answer: Any) -> list[Event]:
    events = list(answer or ())
    if not all(isinstance(event, Event) for event in events):
        raise TypeError("its consumption policy asks for events")
    return events
