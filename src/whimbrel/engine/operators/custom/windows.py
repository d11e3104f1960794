"""Where the windows of a correlation step lie, and which events they select.

Everything here is a pure function of what a window sees. A window is a *setting*, one of the classes below,
and an *anchor* that is kept for it; a shift computes the next anchor. An event stands at its `end`. A
counting window is anchored at an event, by its place in the total order: at its first event, or with
`bound="end"` at its last. A temporal window is anchored at the instant at which it starts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, ge, gt, le, lt
from typing import Protocol

from whimbrel.engine.values import Int64Array
from whimbrel.graph.custom import Event
from whimbrel.graph.policies import Kappa, SelectionWindow
from whimbrel.model.time import BEGINNING_OF_TIME

_COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge}
_place, _end = attrgetter("place"), attrgetter("end")


@dataclass(frozen=True, slots=True)
class WindowItem:
    """An event in the buffer of a partition."""

    place: int
    start: int
    end: int
    inputs: int
    """The inputs that it fits, as bits."""
    event: Event
    refs: Int64Array
    """The atomic events below it."""
    root: int
    row: int
    """Where it comes from: the stream, by number, and its row there."""


Items = Sequence[WindowItem]


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """A restriction window in force, both ends included."""

    low: int
    high: int
    label: str
    """What it is anchored at: the same in every run over the same events."""
    anchor: int
    """The place of the event, or the number of the cell, that it is anchored at."""
    first: int = 0
    last: int | None = None
    """Where it ends with an event: the place of that event."""

    def holds(self, item: WindowItem) -> bool:
        """Tell whether an event lies in it."""
        is_after = self.last is not None and item.place > self.last
        return self.low <= item.end <= self.high and self.first <= item.place and not is_after

    def is_complete(self, clock: int) -> bool:
        """Tell whether no event can come any more that lies in it."""
        return self.last is not None or clock >= self.high


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """A kappa dependency whose other bound is known: `bound relation value`."""

    bound: str
    relation: str
    value: int

    @classmethod
    def of(cls, kappa: Kappa, span: tuple[int, int]) -> WindowLimit:
        """Make the limit that a window of the given start and end sets."""
        return cls(kappa.bound, kappa.relation, span[0] if kappa.other_bound == "start" else span[1])

    @property
    def upper(self) -> bool:
        """Whether it keeps the window from lying later."""
        return self.relation in ("<", "<=")

    @property
    def on_all(self) -> bool:
        """Whether every event has to keep it, not only the first or the last."""
        return self.upper == (self.bound == "end")

    @property
    def utmost(self) -> int:
        """The instant nearest to `value` that keeps it."""
        return self.value + {"<": -1, ">": 1}.get(self.relation, 0)

    def allows(self, item: WindowItem) -> bool:
        """Tell whether the bound of one event keeps it."""
        kept: bool = _COMPARE[self.relation](item.start if self.bound == "start" else item.end, self.value)
        return kept


@dataclass(frozen=True, slots=True)
class WindowView:
    """What a window sees."""

    anchor: int | None
    found: Items
    """What it has selected: in this selection, or when it shifts, in the one before."""
    items: Items
    """The events of its input in the restriction window, without those consumed."""
    stretch: WindowSpan
    limits: Sequence[WindowLimit]

    def kept(self) -> Items:
        """Give the events that keep the limits on all events."""
        every = [limit for limit in self.limits if limit.on_all]
        return [i for i in self.items if all(limit.allows(i) for limit in every)] if every else self.items

    def on_edge(self, bound: str) -> list[WindowLimit]:
        """Give the limits that only the first (`start`) or last (`end`) event has to keep."""
        return [limit for limit in self.limits if limit.bound == bound and not limit.on_all]

    def last_instant(self, otherwise: int) -> int:
        """Give when the last event can come that keeps all limits."""
        ends = (limit.utmost for limit in self.limits if limit.upper and limit.on_all)
        return min([otherwise, *ends])


class WindowPlacement(Protocol):
    """A selection window as it was written."""

    @property
    def window(self) -> SelectionWindow:
        """The window."""
        ...

    def initial(self, view: WindowView) -> int | None:
        """Give the anchor after a shift of the restriction window; None until there is an event for it."""
        ...

    def shifted(self, view: WindowView) -> int | None:
        """Give the next anchor; the same if the window cannot shift."""
        ...

    def matching(self, view: WindowView) -> Items:
        """Give the events inside the window. More may come, behind them."""
        ...

    def deadline(self, view: WindowView) -> int:
        """Give the instant after which nothing more can match."""
        ...

    def span(self, view: WindowView) -> tuple[int, int] | None:
        """Give the start and end that dependencies refer to; None while there is nothing."""
        ...


def placement_of(window: SelectionWindow) -> WindowPlacement:
    """Choose the kind of window."""
    return CountWindow(window) if window.kind == "counting" else TimeWindow(window)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """A window of a number of events, or of all from its first on."""

    window: SelectionWindow

    @property
    def at_end(self) -> bool:
        """Whether the anchor is the last event."""
        return self.window.shift.bound == "end"

    def initial(self, view: WindowView) -> int | None:
        if not view.items:
            return None
        return self._limited(0 if self.window.initial == "oldest" else len(view.items) - 1, view)

    def shifted(self, view: WindowView) -> int | None:
        if view.anchor is None:
            return None
        now = bisect_left(view.items, view.anchor, key=_place)
        wish = self._wish(view.anchor, view)
        held_back = any(limit.upper and limit.on_all for limit in view.limits)
        stays = wish < 0 or (wish >= len(view.items) and not held_back)
        place = self._limited(now if stays else wish, view)
        # What was consumed under a window that does not move leaves it where it is.
        return view.anchor if stays and now < len(view.items) and place == view.items[now].place else place

    def _wish(self, anchor: int, view: WindowView) -> int:
        """Give the index that the shift policy asks for; outside of the items if there is no such event."""
        shift, items = self.window.shift, view.items
        if shift.by == "newest":
            return len(items) - 1
        if shift.by == "oldest":
            return 0 if items else -1
        if shift.by == "none":
            return -1
        edge = (view.found[-1] if self.at_end else view.found[0]) if view.found else None
        if shift.by == "time":
            return self._at_a_distance(edge, items)
        base = edge.place if edge is not None else anchor
        if shift.amount > 0:
            return bisect_right(items, base, key=_place) + shift.amount - 1
        return bisect_left(items, base, key=_place) + shift.amount

    def _at_a_distance(self, edge: WindowItem | None, items: Items) -> int:
        """Give the index of the nearest event at least the shift's time away."""
        if edge is None:
            return -1
        wanted = edge.end + self.window.shift.amount
        if self.window.shift.amount > 0:
            return bisect_left(items, wanted, key=_end)
        return bisect_right(items, wanted, key=_end) - 1

    def _limited(self, wish: int, view: WindowView) -> int | None:
        """Move the window back as far as its dependencies force it to, and no further."""
        for limit in view.limits:
            if limit.upper and limit.on_all:
                allowed = sum(limit.allows(item) for item in view.items)
                if not allowed:
                    return view.anchor
                if wish >= allowed:
                    wish = self._forced(allowed, view)
        if wish >= len(view.items):
            return view.anchor
        for limit in view.on_edge("start"):
            while wish >= 0 and not limit.allows(view.items[wish]):
                wish -= 1
        return view.anchor if wish < 0 else view.items[wish].place

    def _forced(self, allowed: int, view: WindowView) -> int:
        """Give the index of a window that ends with the last allowed event, not before where it is now."""
        forced = allowed - 1 if self.at_end else max(0, allowed - (self.window.length or 1))
        if view.anchor is None:
            return forced
        now = bisect_left(view.items, view.anchor, key=_place)
        return max(forced, now) if now < allowed else forced

    def matching(self, view: WindowView) -> Items:
        if self.at_end:
            return self._up_to_anchor(view)
        kept = view.kept()
        begin = 0 if view.anchor is None else bisect_left(kept, view.anchor, key=_place)
        first = view.on_edge("start")
        while begin < len(kept) and not all(limit.allows(kept[begin]) for limit in first):
            begin += 1
        return self._from_first(kept[begin:], view)

    def _up_to_anchor(self, view: WindowView) -> Items:
        if view.anchor is None:
            return ()
        kept = view.kept()
        end = bisect_right(kept, view.anchor, key=_place)
        found = kept[max(0, end - (self.window.length or end)) : end]
        edges = [(limit, 0) for limit in view.on_edge("start")] + [
            (limit, -1) for limit in view.on_edge("end")
        ]
        return found if found and all(limit.allows(found[at]) for limit, at in edges) else ()

    def _from_first(self, kept: Items, view: WindowView) -> Items:
        """Take as many events as the window has room for; its last must keep the limits on its end."""
        length = self.window.length or len(kept)
        last = view.on_edge("end")
        for begin in range(max(1, len(kept) - length + 1)):
            found = kept[begin : begin + length]
            if not last or (found and all(limit.allows(found[-1]) for limit in last)):
                return found
        return ()

    def deadline(self, view: WindowView) -> int:
        is_full = len(view.found) == self.window.length or (self.at_end and view.anchor is not None)
        return BEGINNING_OF_TIME if is_full else view.last_instant(view.stretch.high)

    def span(self, view: WindowView) -> tuple[int, int] | None:
        return (min(item.start for item in view.found), view.found[-1].end) if view.found else None


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A window of a length in time. Both ends are included, but not the end of one that shifts by time."""

    window: SelectionWindow

    @property
    def reach(self) -> int | None:
        """The distance from its first to its last instant; None if it has no end."""
        length = self.window.length
        return None if length is None else length - (self.window.shift.by == "time")

    def initial(self, view: WindowView) -> int | None:
        newest = self.window.initial == "newest" and self.reach is not None
        start = view.stretch.high - (self.reach or 0) if newest else view.stretch.low
        return self._limited(start, view)

    def shifted(self, view: WindowView) -> int | None:
        if view.anchor is None:
            return None
        start = self._wish(view.anchor, view)
        if start > view.stretch.high or self._end(start, view) < view.stretch.low:
            start = view.anchor
        return self._limited(start, view)

    def _wish(self, anchor: int, view: WindowView) -> int:
        """Give the start that the shift policy asks for."""
        shift = self.window.shift
        if shift.by == "none":
            return anchor
        if shift.by == "time":
            return anchor + shift.amount
        by_end = shift.bound == "end" and self.reach is not None
        event = self._event(self._end(anchor, view) if by_end else anchor, view.items)
        if event is None:
            return anchor
        return event.end - (self.reach or 0) if by_end else event.end

    def _event(self, edge: int, items: Items) -> WindowItem | None:
        """Give the event that a shift moves the bound at `edge` to."""
        shift = self.window.shift
        if shift.by in ("newest", "oldest"):
            return items[-1 if shift.by == "newest" else 0] if items else None
        ahead = shift.amount > 0
        others = [item for item in items if (item.end > edge if ahead else item.end < edge)]
        if len(others) < abs(shift.amount):
            return None
        return others[shift.amount - 1 if ahead else shift.amount]

    def _limited(self, start: int, view: WindowView) -> int:
        for limit in view.limits:
            if limit.bound == "end" and self.reach is None:
                continue
            # A bound on all events is set equal to the other bound; matching() keeps to it strictly.
            bound = limit.value if limit.on_all else limit.utmost
            if limit.bound == "end":
                bound -= self.reach or 0
            start = min(start, bound) if limit.upper else max(start, bound)
        return start

    def _end(self, anchor: int, view: WindowView) -> int:
        return view.stretch.high if self.reach is None else anchor + self.reach

    def matching(self, view: WindowView) -> Items:
        span = self.span(view)
        return [item for item in view.kept() if span is not None and span[0] <= item.end <= span[1]]

    def deadline(self, view: WindowView) -> int:
        span = self.span(view)
        return view.last_instant(view.stretch.high if span is None else min(span[1], view.stretch.high))

    def span(self, view: WindowView) -> tuple[int, int] | None:
        return None if view.anchor is None else (view.anchor, self._end(view.anchor, view))
