"""The correlation steps of one partition: which selection is open, and what comes after it.

A partition is in one of three phases. *Waiting*: there is no restriction window; the event that the next
one is anchored at has not come. *Open*: a selection is open and takes in events. *Between*: a selection is
closed, and neither can a window shift yet nor is the restriction window known to be complete. Events are
taken one by one in the total order, and before each the clock is put to the last instant before its end,
so that nothing depends on how events and watermarks come in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from whimbrel.engine.environment_windows import Item, Limit, Setting, Stretch, setting_of
from whimbrel.errors import QueryError
from whimbrel.graph.custom import CustomOperator, Event, Output
from whimbrel.graph.operators import Custom
from whimbrel.graph.policies import Kappa
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


class Phase(Enum):
    """Where a partition stands."""

    WAITING = auto()
    OPEN = auto()
    BETWEEN = auto()


@dataclass(frozen=True, slots=True)
class Emitted:
    """A detection of a custom operator, with its stamp."""

    attributes: Mapping[str, Any]
    items: Sequence[Item]
    start: int
    end: int
    number: int
    """What tells detections of the same events apart."""


@dataclass(slots=True)
class Running:
    """A selection window in the current step."""

    setting: Setting
    slot: int
    kappas: tuple[Kappa, ...]
    anchor: int | None = None
    is_placed: bool = False
    is_initial: bool = True
    """Whether its next placement is the one after a shift of the restriction window."""
    limits: list[Limit] = field(default_factory=list)
    found: list[Item] = field(default_factory=list)
    before: list[Item] = field(default_factory=list)
    """What it had in the selection before, from which it shifts."""
    is_complete: bool = False
    deadline: int = BEGINNING_OF_TIME

    @property
    def name(self) -> str:
        """The name of the window."""
        return self.setting.window.name


@dataclass(frozen=True, slots=True)
class Plan:
    """What all partitions of an operator share."""

    op: Custom
    make: Callable[[], CustomOperator]
    slots: Mapping[str, int]
    """The bit of each input."""

    @property
    def admits_nothing(self) -> bool:
        """Whether a selection without events is worth processing."""
        policy = self.op.policy
        if not policy.process_when:
            return False
        return _combined(policy.process_all, (p.holds(0, True) for p in policy.process_when))

    def windows(self) -> list[Running]:
        """Make the windows, each after those that it depends on."""
        made: dict[str, Running] = {}
        todo = list(self.op.policy.windows)
        while todo:
            window = todo.pop(0)
            kappas = tuple(kappa for kappa in self.op.policy.dependencies if kappa.window == window.name)
            if all(kappa.other in made for kappa in kappas):
                made[window.name] = Running(setting_of(window), self.slots[window.input], kappas)
            else:
                todo.append(window)
        return list(made.values())


def _combined(every: bool, truths: Iterable[bool]) -> bool:
    return all(truths) if every else any(truths)


class Steps:
    """One partition of a custom operator."""

    def __init__(self, plan: Plan, key: Mapping[str, Any], emit: Callable[[Emitted], None]) -> None:
        self.plan = plan
        self.policy = plan.op.policy
        self.key = key
        self.emit = emit
        self.operator: CustomOperator = self._call("__init__", plan.make)
        self.operator.partition = key
        self.windows = plan.windows()
        self.named = {window.name: window for window in self.windows}
        self.admits_nothing = plan.admits_nothing
        shift = self.policy.restriction.shift
        self.jump = shift.amount if shift.by == "events" else 1
        self.by_time = shift.by == "time"
        self.phase = Phase.WAITING
        self.clock = BEGINNING_OF_TIME
        self.buffer: list[Item] = []
        self.places = 0
        self.stretch: Stretch | None = None
        self.after: int | None = None
        """The place of the last event, or the number of the last cell, that a restriction window had."""
        self.to_pass = self._first_jump
        self.step = 0
        self.emitted = 0
        self.is_touched = False
        """Whether any event lay in the cell that is the restriction window."""
        self.pending: list[tuple[int, int, Event]] = []
        self.was_called = False
        self.selected: dict[str, list[Event]] = {}

    @property
    def _first_jump(self) -> int:
        return self.jump if self.policy.restriction.shift.bound == "end" else 1

    # -- what drives it ------------------------------------------------------------------------------------

    def feed(self, item: Item) -> None:
        """Take in the next event in the total order."""
        self.advance(item.end - 1)
        self.buffer.append(item)
        self.places = item.place + 1
        self._run()

    def advance(self, clock: int) -> None:
        """Say that every event up to `clock` has been fed."""
        due = self.due
        self.clock = max(self.clock, clock)
        if due <= self.clock:
            self._run()

    def tidy(self, clock: int) -> None:
        """Forget what is of no use any more, every event up to `clock` having been fed."""
        self.clock = max(self.clock, clock) if self.phase is Phase.WAITING else self.clock
        self._evict()

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        if self.stretch is None:
            return END_OF_TIME
        times = [self.stretch.high]
        if self.phase is Phase.OPEN:
            times += [each.deadline for each in self.windows if each.is_placed and not each.is_complete]
        return max(min(times), self.clock + 1) if self.clock < END_OF_TIME else END_OF_TIME

    @property
    def is_idle(self) -> bool:
        """Whether a new partition would do as well as this one."""
        if self.phase is not Phase.WAITING or self.buffer:
            return False
        if self.by_time:
            over = self.after is None or self.clock >= self._cell(self.after).high
            return not self.admits_nothing and over
        return self.to_pass == self._first_jump

    def _run(self) -> None:
        while True:
            if self.phase is Phase.WAITING:
                moved = self._enter()
            elif self.phase is Phase.OPEN:
                moved = self._fill()
            else:
                moved = self._next()
            if not moved:
                self._evict()
                return

    # -- the restriction window ----------------------------------------------------------------------------

    def _enter(self) -> bool:
        """Put the restriction window where it comes next, if that is known."""
        stretch = self._next_cell() if self.by_time else self._next_anchor()
        if stretch is None:
            return False
        self.stretch = stretch
        self.step = 0
        self.is_touched = False
        self._evict()
        for window in self.windows:
            window.anchor, window.is_initial, window.is_placed = None, True, False
        self._open()
        return True

    def _next_anchor(self) -> Stretch | None:
        """Pass over events until the one that the restriction window is to lie on."""
        restriction = self.policy.restriction
        bits = -1 if restriction.input is None else 1 << self.plan.slots[restriction.input]
        for item in self.buffer:
            if (self.after is not None and item.place <= self.after) or not item.inputs & bits:
                continue
            self.after = item.place
            self.to_pass -= 1
            if not self.to_pass:
                if restriction.shift.bound == "end":
                    return Stretch(
                        item.end - restriction.length, item.end, item.event.id, item.place, last=item.place
                    )
                return Stretch(
                    item.end, item.end + restriction.length, item.event.id, item.place, first=item.place
                )
        return None

    def _cell(self, number: int) -> Stretch:
        """Give the restriction window that ends at a multiple of its shift."""
        end = number * self.policy.restriction.shift.amount
        return Stretch(end - self.policy.restriction.length, end - 1, f"@{number}", number)

    def _next_cell(self) -> Stretch | None:
        """Give the next cell; those without events only where they matter."""
        every = self.policy.restriction.shift.amount
        least = None if self.after is None else self.after + 1
        if least is not None and self.admits_nothing:
            known = self.clock < END_OF_TIME or any(item.end >= self._cell(least).low for item in self.buffer)
            return self._cell(least) if known else None
        for item in self.buffer:
            number = item.end // every + 1
            cell = self._cell(number if least is None else max(number, least))
            if cell.holds(item):
                return cell
        return None

    def _leave(self) -> None:
        """Give the restriction window up; the next one comes when it is known."""
        assert self.stretch is not None
        self.after, self.to_pass = self.stretch.anchor, self.jump
        self.stretch = None
        self.phase = Phase.WAITING

    def _evict(self) -> None:
        """Forget the events that no restriction window can reach any more."""
        if self.stretch is not None:
            low, first = self.stretch.low, self.stretch.first
        elif self.by_time:
            low, first = END_OF_TIME, 0
        elif self.policy.restriction.shift.bound == "end":
            low, first = min(self.clock, END_OF_TIME) + 1 - self.policy.restriction.length, 0
        else:
            low, first = BEGINNING_OF_TIME, self.places
        if self.buffer and (self.buffer[0].end < low or self.buffer[0].place < first):
            self.buffer = [item for item in self.buffer if item.end >= low and item.place >= first]

    # -- a selection ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.phase = Phase.OPEN
        self.step += 1
        self.pending, self.was_called, self.emitted = [], False, 0
        self.selected = {window.name: [] for window in self.policy.windows}
        for window in self.windows:
            window.is_complete, window.deadline = False, BEGINNING_OF_TIME
            window.before, window.found = window.found, []
        self.operator.selected = self.selected
        self.operator.finished = self.operator.exhausted = False
        self._call("open", self.operator.open)

    def _candidates(self, window: Running) -> list[Item]:
        assert self.stretch is not None
        bit = 1 << window.slot
        return [item for item in self.buffer if item.inputs & bit and self.stretch.holds(item)]

    def _fill(self) -> bool:
        """Take in what matches, hand it over, and close the selection if nothing more can come."""
        assert self.stretch is not None
        if self.by_time and not self.is_touched:
            self.is_touched = any(self.stretch.holds(item) for item in self.buffer)
            if self.clock >= END_OF_TIME and not self.is_touched:
                self._leave()  # the input is over: the empty cells behind its end would have no end
                return False
        for window in self.windows:
            if window.is_placed or self._place(window):
                self._match(window)
        is_complete = all(window.is_complete for window in self.windows)
        is_nothing = is_complete and not self.was_called and self.admits_nothing
        if self._is_worth_it() and (self.pending or is_nothing):
            self._process()
        if not (is_complete or self.operator.finished or self.operator.exhausted):
            return False
        self._close()
        return True

    def _place(self, window: Running) -> bool:
        """Put a window where it belongs, once the windows that it depends on are complete."""
        others = [self.named[kappa.other] for kappa in window.kappas]
        if not all(other.is_placed and self._has_bounds(other) for other in others):
            return False
        assert self.stretch is not None
        window.limits = self._limits(window)
        if not window.is_initial:
            window.anchor = window.setting.shifted(
                window.anchor, window.before, self._candidates(window), self.stretch, window.limits
            )
        window.is_placed = True
        return True

    def _has_bounds(self, window: Running) -> bool:
        return window.is_complete or window.setting.window.kind == "temporal"

    def _limits(self, window: Running) -> list[Limit]:
        """Give the limits that other windows set; one that stays empty sets none."""
        assert self.stretch is not None
        limits = []
        for kappa in window.kappas:
            other = self.named[kappa.other]
            span = other.setting.span(other.anchor, other.found, self.stretch)
            if span is not None:
                limits.append(Limit.of(kappa, span))
        return limits

    def _match(self, window: Running) -> None:
        """Select the events that match by now."""
        if window.is_complete:
            return
        assert self.stretch is not None
        items = self._candidates(window)
        if window.anchor is None:
            window.anchor = window.setting.initial(items, self.stretch, window.limits)
        found = window.setting.matching(window.anchor, items, self.stretch, window.limits)
        for item in found[len(window.found) :]:
            event = replace(item.event, window=window.name)
            window.found.append(item)
            self.selected[window.name].append(event)
            self.pending.append((item.place, len(self.pending), event))
        window.deadline = window.setting.deadline(window.anchor, window.found, self.stretch, window.limits)
        window.is_complete = self.stretch.is_complete(self.clock) or self.clock >= window.deadline

    def _is_worth_it(self) -> bool:
        """Tell whether the processing predicates hold."""
        predicates = self.policy.process_when
        if not predicates:
            return True
        windows = (self.named[predicate.window] for predicate in predicates)
        truths = (p.holds(len(w.found), w.is_complete) for p, w in zip(predicates, windows, strict=True))
        return _combined(self.policy.process_all, truths)

    def _process(self) -> None:
        """Hand over the events that were added since the last time."""
        events = tuple(event for _, _, event in sorted(self.pending, key=lambda entry: entry[:2]))
        self.pending, self.was_called = [], True
        for found in self._call("process", lambda: list(self.operator.process(events) or ())):
            self.emit(self._stamped(found))

    # -- the end of a selection ----------------------------------------------------------------------------

    def _close(self) -> None:
        answer = self._call("close", self.operator.close)
        consumed = self._consumed(answer)
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
            return {event.place for event in self._call("close", lambda: self._events_of(answer))}
        if answer is not None:
            raise self._failure("close", f"gave {answer!r}, but its consumption policy is {policy.kind!r}")
        places = sorted({item.place for window in self.windows for item in window.found})
        if policy.kind == "first":
            places = places[: policy.count]
        elif policy.kind == "last":
            places = places[-policy.count :]
        return set(places) if policy.kind != "none" else set()

    def _events_of(self, answer: Any) -> list[Event]:
        events = list(answer or ())
        if not all(isinstance(event, Event) for event in events):
            raise TypeError("its consumption policy asks for events")
        return events

    def _next(self) -> bool:
        """Shift the selection windows, or give the restriction window up if none can."""
        assert self.stretch is not None
        if not self.operator.exhausted and self._shift():
            self._open()
            return True
        if self.operator.exhausted or self.stretch.is_complete(self.clock):
            self._leave()
            return True
        return False

    def _shift(self) -> bool:
        """Shift what can be shifted; tell whether anything can.

        Windows that depend on one that moves are placed later, when that one is complete.
        """
        assert self.stretch is not None
        moved: dict[str, int | None] = {}
        for window in self.windows:
            others = [self.named[kappa.other] for kappa in window.kappas]
            if not window.is_placed or any(other.name in moved for other in others):
                continue
            limits, items = self._limits(window), self._candidates(window)
            anchor = window.setting.shifted(window.anchor, window.found, items, self.stretch, limits)
            if anchor != window.anchor:
                moved[window.name] = anchor
        if not moved:
            return False
        for window in self.windows:
            window.is_initial = window.is_initial and not window.is_placed
            window.is_placed = not window.kappas
            if window.is_placed:
                window.anchor = moved.get(window.name, window.anchor)
        return True

    # -- detections ----------------------------------------------------------------------------------------

    def _stamped(self, found: Any) -> Emitted:
        """Give a detection its events and times."""
        output = found if isinstance(found, Output) else Output(found)
        if not isinstance(output.attributes, Mapping):
            raise self._failure("process", f"gave {output.attributes!r}, not the attributes of a detection")
        items = {item.place: item for window in self.windows for item in window.found}
        if output.events is not None:
            named = {event.place for event in output.events}
            if not named <= set(items):
                raise self._failure("process", "made a detection of events that are not in its selection")
            items = {place: items[place] for place in named}
        members = [items[place] for place in sorted(items)]
        start, end = self._times(members)
        self.emitted += 1
        return Emitted(dict(output.attributes), members, start, end, self._number())

    def _times(self, members: Sequence[Item]) -> tuple[int, int]:
        assert self.stretch is not None
        if not members:
            return self.stretch.low, self.stretch.high
        start, end = min(item.start for item in members), members[-1].end
        if any(window.goes_back for window in self.policy.windows):
            return start, self.stretch.high
        absent = {predicate.window for predicate in self.policy.process_when if predicate.wants_absence}
        # That nothing came is known when the window is over.
        ends = [self.named[name].deadline for name in absent if not self.named[name].found]
        return start, max(end, *ends) if ends else end

    def _number(self) -> int:
        assert self.stretch is not None
        text = repr((sorted(self.key.items()), self.stretch.label, self.step, self.emitted))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)

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
