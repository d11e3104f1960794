"""The restriction windows of a partition, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whimbrel.engine.operators.custom.windows import WindowItem, WindowSpan
from whimbrel.graph.policies import RestrictionWindow
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


@dataclass(slots=True)
class RestrictionWindows:
    """Where the restriction window of a partition comes next.

    By events, it lies on every so-many-th event; the first starts with the first event, or ends with the
    so-many-th. By time, it ends at multiples of its shift; those that hold no event are passed over at the
    end of the input, and everywhere unless `every_cell` is asked for.
    """

    window: RestrictionWindow
    bits: int
    """The inputs whose events count."""
    every_cell: bool
    after: int | None = None
    """The place of the last event passed, or the number of the last cell."""
    to_pass: int = 0
    """How many more events to pass until the next restriction window."""

    def __post_init__(self) -> None:
        self.to_pass = self.first_jump

    @property
    def by_time(self) -> bool:
        """Whether the windows lie on the time grid."""
        return self.window.shift.by == "time"

    @property
    def at_end(self) -> bool:
        """Whether the windows end with an event."""
        return self.window.shift.bound == "end" and not self.by_time

    @property
    def jump(self) -> int:
        """By how many events it shifts."""
        return self.window.shift.amount if self.window.shift.by == "events" else 1

    @property
    def first_jump(self) -> int:
        """How many events to pass until the first restriction window."""
        return self.jump if self.at_end else 1

    def next(self, buffer: Iterable[WindowItem], is_over: bool) -> WindowSpan | None:
        """Give the next restriction window, if the events so far (or all, `is_over`) say where it lies."""
        return self._next_cell(buffer, is_over) if self.by_time else self._next_anchor(buffer)

    def _next_anchor(self, buffer: Iterable[WindowItem]) -> WindowSpan | None:
        for item in buffer:
            if (self.after is not None and item.place <= self.after) or not item.inputs & self.bits:
                continue
            self.after = item.place
            self.to_pass -= 1
            if not self.to_pass:
                return self._on(item)
        return None

    def _on(self, item: WindowItem) -> WindowSpan:
        length, label = self.window.length, item.event.id
        if self.at_end:
            return WindowSpan(item.end - length, item.end, label, item.place, last=item.place)
        return WindowSpan(item.end, item.end + length, label, item.place, first=item.place)

    def _next_cell(self, buffer: Iterable[WindowItem], is_over: bool) -> WindowSpan | None:
        least = None if self.after is None else self.after + 1
        if least is not None and self.every_cell:
            is_known = not is_over or any(item.end >= self._cell(least).low for item in buffer)
            return self._cell(least) if is_known else None
        for item in buffer:
            number = item.end // self.window.shift.amount + 1
            cell = self._cell(number if least is None else max(number, least))
            if cell.holds(item):
                return cell
        return None

    def _cell(self, number: int) -> WindowSpan:
        end = number * self.window.shift.amount
        return WindowSpan(end - self.window.length, end - 1, f"@{number}", number)

    def leave(self, stretch: WindowSpan) -> None:
        """Say that a restriction window is over."""
        self.after, self.to_pass = stretch.anchor, self.jump

    def keeps(self, stretch: WindowSpan | None, clock: int, places: int) -> tuple[int, int]:
        """Give the least end and the least place that any window, this one or a later, can still reach."""
        if stretch is not None:
            return stretch.low, stretch.first
        if self.at_end:
            return clock + 1 - self.window.length, 0
        # Every event was looked at and none is in a cell to come, or they are before the next anchor.
        return (END_OF_TIME, 0) if self.by_time else (BEGINNING_OF_TIME, places)

    def is_as_new(self, clock: int) -> bool:
        """Tell whether a restriction that has seen nothing would go on in the same way."""
        if self.by_time:
            return not self.every_cell and (self.after is None or clock >= self._cell(self.after).high)
        return self.to_pass == self.first_jump
