"""The selection windows of a partition: what they have, what they wait for, where they go next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from whimbrel.engine.operators.custom.windows import (
    WindowItem,
    WindowLimit,
    WindowPlacement,
    WindowSpan,
    WindowView,
    placement_of,
)
from whimbrel.graph.policies import Kappa, SelectionPolicy
from whimbrel.model.time import BEGINNING_OF_TIME


@dataclass(slots=True)
class OpenWindow:
    """A selection window in the current step."""

    setting: WindowPlacement
    bit: int
    """Its input."""
    kappas: tuple[Kappa, ...]
    anchor: int | None = None
    is_placed: bool = False
    is_initial: bool = True
    """Whether its next placement is the one after a shift of the restriction window."""
    limits: list[WindowLimit] = field(default_factory=list)
    found: list[WindowItem] = field(default_factory=list)
    before: list[WindowItem] = field(default_factory=list)
    """What it had in the selection before, from which it shifts."""
    is_complete: bool = False
    deadline: int = BEGINNING_OF_TIME

    @property
    def name(self) -> str:
        """The name of the window."""
        return self.setting.window.name


@dataclass(frozen=True, slots=True)
class DetectionTimes:
    """When detections of a selection start and end."""

    low: int
    high: int
    """The bounds of the restriction window."""
    absent: tuple[int, ...]
    """When windows are over that are wanted empty: that nothing came is known then."""
    goes_back: bool

    def of(self, members: Sequence[WindowItem]) -> tuple[int, int]:
        """Give the start and end of a detection made of `members`."""
        if not members:
            return self.low, self.high
        start, end = min(item.start for item in members), members[-1].end
        return start, self.high if self.goes_back else max([end, *self.absent])


class SelectionWindows:
    """The current selection of a partition."""

    def __init__(self, policy: SelectionPolicy, slots: Mapping[str, int]) -> None:
        self.policy = policy
        self.windows = _in_order(policy, slots)
        self.named = {window.name: window for window in self.windows}
        self.absent = {predicate.window for predicate in policy.process_when if predicate.wants_absence}
        self.goes_back = any(window.goes_back for window in policy.windows)

    def restart(self) -> None:
        """Forget where the windows were, the restriction window being over."""
        for window in self.windows:
            window.anchor, window.is_initial, window.is_placed = None, True, False
            window.found, window.before = [], []

    def open(self) -> None:
        """Begin an empty selection."""
        for window in self.windows:
            window.before, window.found = window.found, []
            window.is_complete, window.deadline = False, BEGINNING_OF_TIME

    @property
    def is_complete(self) -> bool:
        """Whether no more events can come."""
        return all(window.is_complete for window in self.windows)

    @property
    def deadlines(self) -> list[int]:
        """When windows become complete even if no event comes."""
        return [window.deadline for window in self.windows if window.is_placed and not window.is_complete]

    @property
    def items(self) -> dict[int, WindowItem]:
        """All events of the selection, by place."""
        found = {item.place: item for window in self.windows for item in window.found}
        return {place: found[place] for place in sorted(found)}

    def is_worth_it(self) -> bool:
        """Tell whether the processing predicates hold."""
        windows = [self.named[predicate.window] for predicate in self.policy.process_when]
        counts = [(len(window.found), window.is_complete) for window in windows]
        return _combined(self.policy, counts)

    # -- events in -----------------------------------------------------------------------------------------

    def fill(
        self, buffer: Sequence[WindowItem], stretch: WindowSpan, clock: int
    ) -> list[tuple[WindowItem, str]]:
        """Take in the events that match by now; give those that are new, each with its window."""
        added: list[tuple[WindowItem, str]] = []
        for window in self.windows:
            if not window.is_placed:
                self._place(window, buffer, stretch)
            if window.is_placed and not window.is_complete:
                added += [(item, window.name) for item in self._match(window, buffer, stretch, clock)]
        return sorted(added, key=lambda entry: entry[0].place)

    def _place(self, window: OpenWindow, buffer: Sequence[WindowItem], stretch: WindowSpan) -> None:
        """Put a window where it belongs, once the windows that it depends on have their bounds."""
        others = (self.named[kappa.other] for kappa in window.kappas)
        if not all(o.is_placed and (o.is_complete or o.setting.window.kind == "temporal") for o in others):
            return
        window.limits = self._limits(window, stretch)
        if not window.is_initial:
            view = WindowView(
                window.anchor, window.before, _seen(window, buffer, stretch), stretch, window.limits
            )
            window.anchor = window.setting.shifted(view)
        window.is_placed = True

    def _match(
        self, window: OpenWindow, buffer: Sequence[WindowItem], stretch: WindowSpan, clock: int
    ) -> Sequence[WindowItem]:
        items = _seen(window, buffer, stretch)
        if window.anchor is None:
            window.anchor = window.setting.initial(WindowView(None, (), items, stretch, window.limits))
        view = WindowView(window.anchor, window.found, items, stretch, window.limits)
        added = window.setting.matching(view)[len(window.found) :]
        window.found += added
        window.deadline = window.setting.deadline(view)
        window.is_complete = stretch.is_complete(clock) or clock >= window.deadline
        return added

    def _limits(self, window: OpenWindow, stretch: WindowSpan) -> list[WindowLimit]:
        """Give the limits that other windows set; one that stays empty sets none."""
        limits = []
        for kappa in window.kappas:
            other = self.named[kappa.other]
            span = other.setting.span(WindowView(other.anchor, other.found, (), stretch, other.limits))
            if span is not None:
                limits.append(WindowLimit.of(kappa, span))
        return limits

    # -- the next selection --------------------------------------------------------------------------------

    def shift(self, buffer: Sequence[WindowItem], stretch: WindowSpan) -> bool:
        """Shift what can be shifted; tell whether anything can.

        Windows that depend on others follow when those are complete again.
        """
        moved: dict[str, int | None] = {}
        for window in self.windows:
            if window.is_placed and not any(kappa.other in moved for kappa in window.kappas):
                anchor = self._next_anchor(window, buffer, stretch)
                if anchor != window.anchor:
                    moved[window.name] = anchor
        if moved:
            for window in self.windows:
                window.is_initial = window.is_initial and not window.is_placed
                window.is_placed = not window.kappas and not window.is_initial
                if window.is_placed:
                    window.anchor = moved.get(window.name, window.anchor)
        return bool(moved)

    def _next_anchor(
        self, window: OpenWindow, buffer: Sequence[WindowItem], stretch: WindowSpan
    ) -> int | None:
        """Give where a window can shift to by itself: where no dependency cuts its shift short."""
        items = _seen(window, buffer, stretch)
        limits = self._limits(window, stretch)
        held = window.setting.shifted(WindowView(window.anchor, window.found, items, stretch, limits))
        if not limits:
            return held
        free = window.setting.shifted(WindowView(window.anchor, window.found, items, stretch, ()))
        return held if held == free else window.anchor

    # -- times ---------------------------------------------------------------------------------------------

    def times(self, stretch: WindowSpan) -> DetectionTimes:
        """Tell, as things stand, when detections of this selection are."""
        ends = tuple(self.named[name].deadline for name in self.absent if not self.named[name].found)
        return DetectionTimes(stretch.low, stretch.high, ends, self.goes_back)


def admits_nothing(policy: SelectionPolicy) -> bool:
    """Tell whether a selection without events is worth processing: only if predicates say so."""
    return bool(policy.process_when) and _combined(policy, [(0, True)] * len(policy.process_when))


def _combined(policy: SelectionPolicy, counts: Iterable[tuple[int, bool]]) -> bool:
    truths = [p.holds(*count) for p, count in zip(policy.process_when, counts, strict=True)]
    return all(truths) if policy.process_all else any(truths) or not truths


def _seen(window: OpenWindow, buffer: Sequence[WindowItem], stretch: WindowSpan) -> list[WindowItem]:
    """Give the events of a window's input in the restriction window."""
    return [item for item in buffer if item.inputs & window.bit and stretch.holds(item)]


def _in_order(policy: SelectionPolicy, slots: Mapping[str, int]) -> list[OpenWindow]:
    """Make the windows, each after those that it depends on."""
    made: dict[str, OpenWindow] = {}
    todo = list(policy.windows)
    while todo:
        window = todo.pop(0)
        kappas = tuple(kappa for kappa in policy.dependencies if kappa.window == window.name)
        if all(kappa.other in made for kappa in kappas):
            made[window.name] = OpenWindow(placement_of(window), 1 << slots[window.input], kappas)
        else:
            todo.append(window)
    return list(made.values())
