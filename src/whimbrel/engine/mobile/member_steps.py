"""The correlation steps of a member: a selection that was processed for another one is not processed again.

As long as all that an operator would be told of a selection is what it was told of another one, it would
answer the same, if its class says that nothing else matters (`CustomOperator.stateless`). So it is not asked.
Where its own selection goes on differently, it is told from the beginning what it has missed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whimbrel.engine.mobile.known_answers import AskedCall, KnownAnswer, KnownAnswers
from whimbrel.engine.operators.custom.steps import CorrelationSteps, Emitted, PartitionPlan
from whimbrel.engine.operators.custom.windows import WindowItem
from whimbrel.graph.custom import Event, Output

Identity = Callable[[WindowItem], Hashable]
"""What names an event in all interests that hold it."""
_ASKED = ("before", "named")
"""The consumption policies by which an operator says what is consumed."""


@dataclass(slots=True)
class SelectionReuse:
    """What the runs of a mobile query share: answers of operators, and counts."""

    answers: dict[str, KnownAnswers] = field(default_factory=dict)
    """Those of operators whose selections may be reused."""
    selections: int = 0
    """Selections that were closed, and worth processing."""
    reused: int = 0
    """Those of them that were not processed."""


class MemberSteps(CorrelationSteps):
    """One partition of an operator in Python, for one member."""

    def __init__(
        self,
        plan: PartitionPlan,
        key: Mapping[str, Any],
        emit: Callable[[Emitted], None],
        reuse: SelectionReuse,
        identity: Identity,
    ) -> None:
        self.reuse = reuse
        self.answers = reuse.answers.get(plan.op.name)
        self.is_shown = True
        """Whether the operator was told of the selection so far."""
        self._identity = identity
        self._last = 0
        """The last call that was made, or need not be made, for the selection."""
        self._root: Hashable = tuple(sorted((name, repr(value)) for name, value in key.items()))
        super().__init__(plan, key, emit)

    # -- a selection ---------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Begin a new selection; the operator is told only if nobody knows what it says."""
        if self.answers is None:
            super().announce()
            return
        self.operator.finished = self.operator.exhausted = False
        self.is_shown, self._last = False, self.answers.after(0, self._root).number

    def hand_over(self, events: Sequence[Event]) -> list[Any]:
        """Give what the operator finds, or what it found when it was told the same."""
        if self.answers is None:
            return super().hand_over(events)
        call = self._asked(events)
        if call.answer is not None and not self.is_shown:
            return self._again(call.answer)
        self._show(self.handed[:-1], events)
        found = super().hand_over(events)
        call.answer = self._answer_of(found)
        return found if call.answer is None else self._again(call.answer)

    def take_leave(self) -> Any:
        """Give what the operator says at the end of the selection."""
        self._count()
        if self.answers is None:
            return super().take_leave()
        if self.plan.op.consumption.kind not in _ASKED:
            return super().take_leave() if self.is_shown else None
        call = self._asked(self.pending, is_last=True)
        if call.answer is not None and not self.is_shown:
            return self._consumed_again(call.answer)
        self._show(self.handed, self.pending)
        said = super().take_leave()
        call.answer = self._answer_of((), said)
        return said if call.answer is None else self._consumed_again(call.answer)

    def _count(self) -> None:
        if self.handed:
            self.reuse.selections += 1
            self.reuse.reused += not self.is_shown

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

    # -- calls and answers ---------------------------------------------------------------------------------

    def _asked(self, events: Sequence[Event], *, is_last: bool = False) -> AskedCall:
        """Look up a call by everything that the operator was told before, and what it is told now."""
        assert self.answers is not None
        items = self.selection.items
        told = tuple((event.window, self._identity(items[event.place])) for event in events)
        call = self.answers.after(self._last, (told, is_last))
        self._last = call.number
        return call

    def _answer_of(self, found: Sequence[Any], said: Any = None) -> KnownAnswer | None:
        """Keep an answer for selections of the same events; None if it is not what it should be."""
        places = {place: at for at, place in enumerate(self.selection.items)}
        kept = []
        try:
            for each in found:
                output = each if isinstance(each, Output) else Output(each)
                if not isinstance(output.attributes, Mapping):
                    return None
                made_of = None if output.events is None else tuple(places[e.place] for e in output.events)
                kept.append((dict(output.attributes), made_of))
            consumed = said if said is None or isinstance(said, int) else tuple(places[e.place] for e in said)
        except (TypeError, KeyError, AttributeError):
            return None  # whoever takes the answer says what is wrong with it
        return KnownAnswer(tuple(kept), self.operator.finished, self.operator.exhausted, consumed)

    def _again(self, answer: KnownAnswer) -> list[Any]:
        """Give an answer as if the operator was told of this selection."""
        self.operator.finished, self.operator.exhausted = answer.finished, answer.exhausted
        items = list(self.selection.items.values())
        return [
            Output(attributes, None if made_of is None else [items[at].event for at in made_of])
            for attributes, made_of in answer.found
        ]

    def _consumed_again(self, answer: KnownAnswer) -> Any:
        items = list(self.selection.items.values())
        said = answer.consumed
        return [items[at].event for at in said] if isinstance(said, tuple) else said
