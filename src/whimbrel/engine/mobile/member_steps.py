"""The correlation steps of a member: a selection that was processed for another one is not processed again.

As long as all that an operator would be told of a selection is what it was told of another one, it would
answer the same, if its class says that nothing else matters (`CustomOperator.stateless`). So it is not asked.
Where its own selection goes on differently, it is told from the beginning what it has missed.

Where a similar selection may stand for another one, those that are handed over as a whole wait until it is
decided which of them are processed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whimbrel.engine.mobile.known_answers import AskedCall, KnownAnswer, KnownAnswers
from whimbrel.engine.operators.custom.steps import CorrelationSteps, Emitted, PartitionPlan, SelectionStamp
from whimbrel.engine.operators.custom.windows import WindowItem
from whimbrel.errors import QueryError
from whimbrel.graph.custom import CustomOperator, Event, Output

Identity = Callable[[WindowItem], Hashable]
"""What names an event in all interests that hold it."""
_ASKED = ("before", "named")
"""The consumption policies by which an operator says what is consumed."""


@dataclass(slots=True)
class SelectionReuse:
    """What the runs of a mobile query share: answers of operators, and counts."""

    answers: dict[str, KnownAnswers] = field(default_factory=dict)
    """Those of operators whose selections may be reused."""
    similar: frozenset[str] = frozenset()
    """The operators of which similar selections may stand for each other."""
    selections: int = 0
    """Selections that were closed, and worth processing."""
    reused: int = 0
    """Those of them that were not processed."""


@dataclass(frozen=True, slots=True)
class WaitingSelection:
    """A selection that was to be processed as a whole, and waits until it is decided whether it is."""

    steps: MemberSteps
    events: Sequence[Event]
    stamp: SelectionStamp

    @property
    def partition(self) -> Hashable:
        """The keys of its partition: nothing stands for a selection of another one."""
        return self.steps.root


class MemberSteps(CorrelationSteps):
    """One partition of an operator in Python, for one member.

    Parameters
    ----------
    reuse
        What the runs of the query share.
    identity
        Names events.
    defer
        Takes selections that wait for a decision; None if there is nothing to decide.
    """

    def __init__(
        self,
        plan: PartitionPlan,
        key: Mapping[str, Any],
        emit: Callable[[Emitted], None],
        reuse: SelectionReuse,
        identity: Identity,
        defer: Callable[[WaitingSelection], None] | None = None,
    ) -> None:
        self.reuse = reuse
        self.answers = reuse.answers.get(plan.op.name)
        self.is_shown = True
        """Whether the operator was told of the selection so far."""
        self._identity = identity
        self._last = 0
        """The last call that was made, or need not be made, for the selection."""
        self.root: Hashable = tuple(sorted((name, repr(value)) for name, value in key.items()))
        """What selections have to have in common to be compared at all."""
        self._defer = defer
        self._waits = False
        """Whether the selection waits for a decision."""
        self._other: CustomOperator | None = None
        """What processes selections that have waited, while others may be open."""
        super().__init__(plan, key, emit)

    # -- a selection ---------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Begin a new selection; the operator is told only if nobody knows what it says."""
        if self.answers is None:
            super().announce()
            return
        self.operator.finished = self.operator.exhausted = False
        self._waits = self.is_shown = False
        self._last = self.answers.after(0, self.root).number

    def _process(self) -> None:
        if self._defer is None or not self.pending or self.handed or not self.selection.is_complete:
            super()._process()
            return
        events = tuple(sorted(self.pending, key=lambda event: event.place))
        self.pending, self._waits = [], True
        self.handed.append(events)
        self._defer(WaitingSelection(self, events, self.stamp()))

    def hand_over(self, events: Sequence[Event]) -> list[Any]:
        """Give what the operator finds, or what it found when it was told the same."""
        if self.answers is None:
            return super().hand_over(events)
        items = self.selection.items
        call = self._asked(events, items)
        if call.answer is None or self.is_shown:
            self._show(self.handed[:-1], events)
            found = super().hand_over(events)
            call.answer = _answer_of(self.operator, found, items)
            if call.answer is None:
                return found
        self.operator.finished, self.operator.exhausted = call.answer.finished, call.answer.exhausted
        return _outputs(call.answer, items)

    def take_leave(self) -> Any:
        """Give what the operator says at the end of the selection."""
        if self._waits:
            return None
        if self.handed:
            self.reuse.selections += 1
            self.reuse.reused += not self.is_shown
        if self.answers is None:
            return super().take_leave()
        if self.plan.op.consumption.kind not in _ASKED:
            return super().take_leave() if self.is_shown else None
        items = self.selection.items
        call = self._asked(self.pending, items, is_last=True)
        if call.answer is None or self.is_shown:
            self._show(self.handed, self.pending)
            said = super().take_leave()
            said = list(said) if isinstance(said, Iterable) else said
            call.answer = _answer_of(self.operator, (), items, said)
            return said
        return _consumed(call.answer, items)

    def _show(self, earlier: Sequence[Sequence[Event]], now: Sequence[Event]) -> None:
        """Tell the operator what it has missed of the selection, call by call, as it would have been told."""
        if self.is_shown:
            return
        self.is_shown = True
        self.selected = {window.name: [] for window in self.plan.op.policy.windows}
        super().announce()
        for events in earlier:
            self._select(events)
            super().hand_over(events)
        self._select(now)

    def _select(self, events: Sequence[Event]) -> None:
        for event in events:
            self.selected[event.window].append(event)

    # -- selections that have waited -----------------------------------------------------------------------

    def process_now(self, waiting: WaitingSelection) -> list[Emitted]:
        """Process a selection that has waited, unless an equal one was processed; give what is found."""
        assert self.answers is not None
        begun = self.answers.after(0, self.root).number
        call = self.answers.after(begun, (self._told(waiting.events, waiting.stamp.items), False))
        self.reuse.reused += call.answer is not None
        found: list[Any]
        if call.answer is None:
            found, call.answer = self._processed(waiting)
        if call.answer is not None:
            found = _outputs(call.answer, waiting.stamp.items)
        return [self.stamped(each, waiting.stamp, number) for number, each in enumerate(found, 1)]

    def _processed(self, waiting: WaitingSelection) -> tuple[list[Any], KnownAnswer | None]:
        operator = self._other = self._other or self._call("__init__", self.plan.make)
        operator.partition, operator.finished, operator.exhausted = self.key, False, False
        selected: dict[str, list[Event]] = {window.name: [] for window in self.plan.op.policy.windows}
        for event in waiting.events:
            selected[event.window].append(event)
        operator.selected = selected
        self._call("open", operator.open)
        found = self._call("process", lambda: list(operator.process(waiting.events) or ()))
        self._check_consumed(self._call("close", operator.close))
        if operator.exhausted:
            raise QueryError(
                f"operator {self.plan.op.function!r}: process() ended a restriction window, so that what it "
                "selects next depends on what it found; similar selections cannot stand for each other then",
                hint="write 'reuse exact'",
            )
        return found, _answer_of(operator, found, waiting.stamp.items)

    # -- calls and answers ---------------------------------------------------------------------------------

    def _asked(
        self, events: Sequence[Event], items: Mapping[int, WindowItem], *, is_last: bool = False
    ) -> AskedCall:
        """Look up a call by everything that the operator was told before, and what it is told now."""
        assert self.answers is not None
        call = self.answers.after(self._last, (self._told(events, items), is_last))
        self._last = call.number
        return call

    def _told(self, events: Sequence[Event], items: Mapping[int, WindowItem]) -> Hashable:
        return tuple((event.window, self._identity(items[event.place])) for event in events)


def _answer_of(
    operator: CustomOperator, found: Sequence[Any], items: Mapping[int, WindowItem], said: Any = None
) -> KnownAnswer | None:
    """Keep an answer for selections of the same events; None if it is not what it should be."""
    places = {place: at for at, place in enumerate(items)}
    kept: list[tuple[Mapping[str, Any], tuple[int, ...] | None]] = []
    try:
        for each in found:
            output = each if isinstance(each, Output) else Output(each)
            if not isinstance(output.attributes, Mapping):
                return None
            made_of = None if output.events is None else tuple(places[event.place] for event in output.events)
            kept.append((dict(output.attributes), made_of))
        is_time = said is None or isinstance(said, int)
        consumed = said if is_time else tuple(places[event.place] for event in said)
    except (TypeError, KeyError, AttributeError):
        return None  # whoever takes the answer says what is wrong with it
    return KnownAnswer(tuple(kept), operator.finished, operator.exhausted, consumed)


def _outputs(answer: KnownAnswer, items: Mapping[int, WindowItem]) -> list[Any]:
    """Give the detections of an answer as if the operator was told of the selection of these events."""
    events = [item.event for item in items.values()]
    return [
        Output(attributes, None if made_of is None else [events[at] for at in made_of])
        for attributes, made_of in answer.found
    ]


def _consumed(answer: KnownAnswer, items: Mapping[int, WindowItem]) -> Any:
    said = answer.consumed
    events = [item.event for item in items.values()]
    return [events[at] for at in said] if isinstance(said, tuple) else said
