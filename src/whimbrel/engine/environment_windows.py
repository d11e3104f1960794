"""Where the windows of a correlation step lie, and which events they select.

Everything here is a pure function of the events that have arrived: a window is a *setting* (the classes
below) plus an *anchor* that the environment keeps, and a shift computes the next anchor. An event stands
at its `end`. A counting window is anchored at an event, by its place in the total order: its first event,
or with `bound="end"` its last. A temporal window is anchored at the instant at which it starts.
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
_place = attrgetter("place")


@dataclass(frozen=True, slots=True)
class Item:
    """An event in the buffer of a partition."""

    place: int
    start: int
    end: int
    inputs: int
    """The inputs that it fits, as bits."""
    event: Event
    refs: Int64Array
    """The atomic events below it."""


Items = Sequence[Item]


@dataclass(frozen=True, slots=True)
class Stretch:
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

    def holds(self, item: Item) -> bool:
        """Tell whether an event lies in it."""
        return self.low <= item.end <= self.high and self.first <= item.place and not self.ends_before(item)

    def ends_before(self, item: Item) -> bool:
        """Tell whether an event comes after it."""
        return item.end > self.high or (self.last is not None and item.place > self.last)

    def is_complete(self, clock: int) -> bool:
        """Tell whether no event can come any more that lies in it."""
        return self.last is not None or clock >= self.high


@dataclass(frozen=True, slots=True)
class Limit:
    """A kappa dependency whose other bound is known: `bound relation value`."""

    bound: str
    relation: str
    value: int

    @classmethod
    def of(cls, kappa: Kappa, span: tuple[int, int]) -> Limit:
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
    def least(self) -> int:
        """The least (or, if `upper`, the largest) instant that keeps it."""
        return self.value + {"<": -1, ">": 1}.get(self.relation, 0)

    def allows(self, item: Item) -> bool:
        """Tell whether the bound of one event keeps it."""
        kept: bool = _COMPARE[self.relation](item.start if self.bound == "start" else item.end, self.value)
        return kept


Limits = Sequence[Limit]


def last_instant(limits: Limits, otherwise: int) -> int:
    """Give when the last event can come that keeps all limits."""
    return min((limit.least for limit in limits if limit.upper and limit.bound == "end"), default=otherwise)


class Setting(Protocol):
    """A selection window as it was written; anchors come in and go out."""

    window: SelectionWindow

    def initial(self, items: Items, stretch: Stretch, limits: Limits) -> int | None:
        """Give the anchor after a shift of the restriction window."""
        ...

    def shifted(
        self, anchor: int | None, selected: Items, items: Items, stretch: Stretch, limits: Limits
    ) -> int | None:
        """Give the next anchor; the same if the window cannot shift."""
        ...

    def matching(self, anchor: int | None, items: Items, stretch: Stretch, limits: Limits) -> Items:
        """Give the events inside the window."""
        ...

    def deadline(self, anchor: int | None, found: Items, stretch: Stretch, limits: Limits) -> int:
        """Give the instant after which nothing more can match."""
        ...

    def span(self, anchor: int | None, found: Items, stretch: Stretch) -> tuple[int, int] | None:
        """Give the start and end that dependencies refer to; None while there is nothing."""
        ...


def setting_of(window: SelectionWindow) -> Setting:
    """Choose the kind of window."""
    return Counting(window) if window.kind == "counting" else Temporal(window)


@dataclass(frozen=True, slots=True)
class Counting:
    """A window of a number of events, or of all from its first on."""

    window: SelectionWindow

    @property
    def at_end(self) -> bool:
        """Whether the anchor is the last event."""
        return self.window.shift.bound == "end"

    def initial(self, items: Items, stretch: Stretch, limits: Limits) -> int | None:
        if not items:
            return None
        wish = 0 if self.window.initial == "oldest" else len(items) - 1
        return self._limited(wish, None, items, limits)

    def shifted(
        self, anchor: int | None, selected: Items, items: Items, stretch: Stretch, limits: Limits
    ) -> int | None:
        if anchor is None:
            return None
        now = bisect_left(items, anchor, key=_place)
        wish = self._wish(anchor, selected, items)
        if wish < 0 or (wish >= len(items) and not any(limit.upper and limit.on_all for limit in limits)):
            wish = now
        place = self._limited(wish, anchor, items, limits)
        # What was consumed under a window that does not move leaves it where it is.
        return anchor if wish == now < len(items) and place == items[now].place else place

    def _wish(self, anchor: int, selected: Items, items: Items) -> int:
        """Give the index that the shift policy asks for; outside of `items` if there is no such event."""
        shift = self.window.shift
        if shift.by == "newest":
            return len(items) - 1
        if shift.by == "oldest":
            return 0 if items else -1
        edge = (selected[-1] if self.at_end else selected[0]) if selected else None
        base = edge.place if edge else anchor
        if shift.by == "none":
            return -1
        if shift.by == "events":
            if shift.amount > 0:
                return bisect_right(items, base, key=_place) + shift.amount - 1
            return bisect_left(items, base, key=_place) + shift.amount
        return self._after(edge, items)

    def _after(self, edge: Item | None, items: Items) -> int:
        """Give the index of the nearest event at least the shift's time away."""
        if edge is None:
            return -1
        wanted = edge.end + self.window.shift.amount
        if self.window.shift.amount > 0:
            return bisect_left(items, wanted, key=attrgetter("end"))
        return bisect_right(items, wanted, key=attrgetter("end")) - 1

    def _limited(self, wish: int, anchor: int | None, items: Items, limits: Limits) -> int | None:
        """Move the window back as far as its dependencies force it to, and no further."""
        for limit in limits:
            if limit.upper and limit.on_all:
                allowed = sum(limit.allows(item) for item in items)
                if wish >= allowed:
                    if not allowed:
                        return anchor
                    wish = self._forced(allowed, anchor, items)
        if wish >= len(items):
            return anchor
        for limit in limits:
            if limit.upper and not limit.on_all:
                while wish >= 0 and not limit.allows(items[wish]):
                    wish -= 1
        return anchor if wish < 0 else items[wish].place

    def _forced(self, allowed: int, anchor: int | None, items: Items) -> int:
        """Give the index of a window that ends with the last allowed event."""
        forced = allowed - 1 if self.at_end else max(0, allowed - (self.window.length or 1))
        now = bisect_left(items, anchor, key=_place) if anchor is not None else len(items)
        return max(forced, now) if now < allowed else forced

    def matching(self, anchor: int | None, items: Items, stretch: Stretch, limits: Limits) -> Items:
        every = [limit for limit in limits if limit.on_all]
        kept = [item for item in items if all(limit.allows(item) for limit in every)] if every else items
        if self.at_end:
            return self._up_to(anchor, kept, limits)
        begin = bisect_left(kept, anchor, key=_place) if anchor is not None else 0
        first = [limit for limit in limits if limit.bound == "start" and not limit.on_all]
        while begin < len(kept) and not all(limit.allows(kept[begin]) for limit in first):
            begin += 1
        return self._long_enough(kept[begin:], limits)

    def _up_to(self, anchor: int | None, kept: Items, limits: Limits) -> Items:
        if anchor is None:
            return ()
        end = bisect_right(kept, anchor, key=_place)
        found = kept[max(0, end - (self.window.length or end)) : end]
        ends = {"start": found[0], "end": found[-1]} if found else {}
        edges = [limit for limit in limits if not limit.on_all]
        return found if not ends or all(limit.allows(ends[limit.bound]) for limit in edges) else ()

    def _long_enough(self, kept: Items, limits: Limits) -> Items:
        """Take as many events as the window has room for; its last must keep the limits on its end."""
        length = self.window.length or len(kept)
        last = [limit for limit in limits if limit.bound == "end" and not limit.on_all]
        for begin in range(max(1, len(kept) - length + 1)):
            found = kept[begin : begin + length]
            if not last or (found and all(limit.allows(found[-1]) for limit in last)):
                return found
        return ()

    def deadline(self, anchor: int | None, found: Items, stretch: Stretch, limits: Limits) -> int:
        full = len(found) == self.window.length or (self.at_end and anchor is not None)
        return BEGINNING_OF_TIME if full else min(last_instant(limits, stretch.high), stretch.high)

    def span(self, anchor: int | None, found: Items, stretch: Stretch) -> tuple[int, int] | None:
        return (min(item.start for item in found), found[-1].end) if found else None


@dataclass(frozen=True, slots=True)
class Temporal:
    """A window of a length in time. Both ends are included, but the end is not where it shifts by time."""

    window: SelectionWindow

    @property
    def reach(self) -> int | None:
        """The distance from its first to its last instant; None if it has no end."""
        length = self.window.length
        return None if length is None else length - (self.window.shift.by == "time")

    def initial(self, items: Items, stretch: Stretch, limits: Limits) -> int | None:
        newest = self.window.initial == "newest" and self.reach is not None
        return self._limited(stretch.high - (self.reach or 0) if newest else stretch.low, limits)

    def shifted(
        self, anchor: int | None, selected: Items, items: Items, stretch: Stretch, limits: Limits
    ) -> int | None:
        assert anchor is not None
        start = self._wish(anchor, items, stretch)
        if start > stretch.high or self._end(start, stretch) < stretch.low:
            start = anchor
        return self._limited(start, limits)

    def _wish(self, anchor: int, items: Items, stretch: Stretch) -> int:
        shift = self.window.shift
        if shift.by == "none":
            return anchor
        if shift.by == "time":
            return anchor + shift.amount
        at_end = shift.bound == "end" and self.reach is not None
        edge = self._end(anchor, stretch) if at_end else anchor
        back = (self.reach or 0) if at_end else 0
        found = self._event(edge, items)
        return anchor if found is None else found.end - back

    def _event(self, edge: int, items: Items) -> Item | None:
        """Give the event that a shift moves the bound at `edge` to."""
        shift = self.window.shift
        if shift.by in ("newest", "oldest"):
            return items[-1 if shift.by == "newest" else 0] if items else None
        ahead = shift.amount > 0
        others = [item for item in items if (item.end > edge if ahead else item.end < edge)]
        if len(others) < abs(shift.amount):
            return None
        return others[shift.amount - 1 if ahead else shift.amount]

    def _limited(self, start: int, limits: Limits) -> int:
        for limit in limits:
            # A bound on all events is set equal to the other bound; matching() keeps to it strictly.
            bound = limit.value if limit.on_all else limit.least
            if limit.bound == "end":
                if self.reach is None:
                    continue
                bound -= self.reach
            start = min(start, bound) if limit.upper else max(start, bound)
        return start

    def _end(self, anchor: int, stretch: Stretch) -> int:
        return stretch.high if self.reach is None else anchor + self.reach

    def matching(self, anchor: int | None, items: Items, stretch: Stretch, limits: Limits) -> Items:
        assert anchor is not None
        end = self._end(anchor, stretch)
        every = [limit for limit in limits if limit.on_all]
        return [
            item for item in items if anchor <= item.end <= end and all(limit.allows(item) for limit in every)
        ]

    def deadline(self, anchor: int | None, found: Items, stretch: Stretch, limits: Limits) -> int:
        assert anchor is not None
        end = min(self._end(anchor, stretch), stretch.high)
        return min(end, last_instant(limits, end))

    def span(self, anchor: int | None, found: Items, stretch: Stretch) -> tuple[int, int] | None:
        assert anchor is not None
        return anchor, self._end(anchor, stretch)
