"""Turns the steps of a `StepPattern` into a machine of states that is walked event by event.

In a state, an event can be *taken* (the match grows), *ignored* (the match waits), or the machine *goes on*
to another state and tries the same event there. Which of these are open depends on the tests that the event
passes: each test is a bit, and what opens a way is a formula over these bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from whimbrel.errors import QueryError
from whimbrel.graph.operators.step_pattern import (
    Contiguity,
    Element,
    Inner,
    PatternStep,
    StepGroup,
    StepPattern,
    StepTest,
)


@dataclass(frozen=True, slots=True)
class Lookahead:
    """A test that an event passes less than `window` after the event taken before."""

    window: int
    condition: None = None
    """It reads no values, only the clock."""


Formula = frozenset[tuple[int, int]]
"""An *or* of *and*s: bits that must be set, and bits that must not."""

ALWAYS: Formula = frozenset({(0, 0)})
NEVER: Formula = frozenset()
MOST_STATES = 4_000
MOST_TESTS = 48


def all_of(*formulas: Formula) -> Formula:
    """Give the formula that holds where all of these hold."""
    found = {(0, 0)}
    for formula in formulas:
        joined = {(n1 | n2, f1 | f2) for n1, f1 in found for n2, f2 in formula}
        found = {(need, forbid) for need, forbid in joined if not need & forbid}
    return _short(found)


def any_of(*formulas: Formula) -> Formula:
    """Give the formula that holds where one of these holds."""
    return _short({term for formula in formulas for term in formula})


def none_of(formula: Formula) -> Formula:
    """Give the formula that holds where this one does not."""
    found = ALWAYS
    for need, forbid in formula:
        broken = {(0, bit) for bit in _bits(need)} | {(bit, 0) for bit in _bits(forbid)}
        found = all_of(found, frozenset(broken))
    return found


def holds(formula: Formula, bits: int) -> bool:
    """Tell whether a formula holds for the tests that were passed."""
    return any(bits & need == need and not bits & forbid for need, forbid in formula)


def _short(terms: set[tuple[int, int]]) -> Formula:
    """Leave out terms that others cover."""
    return frozenset(
        (need, forbid)
        for need, forbid in terms
        if not any((n, f) != (need, forbid) and n & need == n and f & forbid == f for n, f in terms)
    )


def _bits(number: int) -> list[int]:
    return [1 << place for place in range(number.bit_length()) if number >> place & 1]


class StateKind(IntEnum):
    """What reaching a state means."""

    ON_THE_WAY = 0
    START = 1
    FINAL = 2
    STOPPED = 3
    """An event came that must not: the match in the making is given up."""
    WAITING = 4
    """Nothing is missing but time."""


class EdgeAction(IntEnum):
    """What is done with an event."""

    TAKE = 0
    IGNORE = 1
    GO_ON = 2


@dataclass(slots=True)
class Edge:
    """A way out of a state."""

    action: EdgeAction
    target: AutomatonState
    formula: Formula


@dataclass(slots=True, eq=False)
class AutomatonState:
    """A state; `step` names what an event taken here counts for."""

    kind: StateKind
    step: str
    ways: list[Edge] = field(default_factory=list)
    within_previous: int | None = None
    lapses: int | None = None
    """How long after the last event nothing is waited for any more, although nothing is missing."""
    is_fork: bool = False
    """Whether it only leads on to the branches of a group."""

    def take(self, target: AutomatonState, formula: Formula) -> None:
        self.ways.append(Edge(EdgeAction.TAKE, target, formula))

    def ignore(self, target: AutomatonState, formula: Formula) -> None:
        self.ways.append(Edge(EdgeAction.IGNORE, target, formula))

    def go_on(self, target: AutomatonState, formula: Formula) -> None:
        self.ways.append(Edge(EdgeAction.GO_ON, target, formula))


@dataclass(slots=True)
class _Place:
    """Where in the pattern a step or group stands."""

    element: Element
    before: list[Element]
    """What stands before it in the same pattern or group."""
    following: Element | None
    group: StepGroup | None
    """The group it belongs to."""

    @property
    def is_head(self) -> bool:
        """Whether it is the first of a group, and so takes over the group's contiguity."""
        return self.group is not None and not self.before


@dataclass
class Automaton:
    """The machine of one pattern."""

    op: StepPattern
    tests: list[StepTest | Lookahead] = field(default_factory=list)
    states: list[AutomatonState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stops: dict[str, AutomatonState] = {}
        self._originals: dict[int, AutomatonState] = {}
        self._is_first_round: dict[int, bool] = {}
        self.final = self._state(StateKind.FINAL, "")
        self.start = self._sequence(self.op.steps, self.final, None, None)
        self.start.kind = StateKind.START
        if len(self.tests) > MOST_TESTS or len(self.states) > MOST_STATES:
            raise QueryError(
                f"the pattern {self.op.name!r} needs {len(self.states)} states and {len(self.tests)} tests; "
                f"{MOST_STATES} and {MOST_TESTS} are the most",
                hint="repeat steps less often: {2,} needs fewer states than {2,5000}",
            )

    # -- small parts ---------------------------------------------------------------------------------------

    def _state(
        self, kind: StateKind, step: str, within_previous: int | None = None, lapses: int | None = None
    ) -> AutomatonState:
        state = AutomatonState(kind, step, within_previous=within_previous, lapses=lapses)
        self.states.append(state)
        return state

    def _passes(self, test: StepTest | Lookahead) -> Formula:
        if test not in self.tests:
            self.tests.append(test)
        return frozenset({(1 << self.tests.index(test), 0)})

    def _own_test(self, element: Element) -> Formula:
        return self._passes(element.test) if isinstance(element, PatternStep) else ALWAYS

    def _until(self, holder: Element | None) -> Formula:
        """Say what ends a loop; never, where nothing does."""
        until = None if holder is None else holder.quantifier.until
        return NEVER if until is None else self._passes(until)

    def _soon(self, element: Element) -> Formula:
        """Say when a loop takes a further event: soon enough after the one before."""
        window = element.quantifier.window
        return ALWAYS if window is None else self._passes(Lookahead(window))

    def _go_on_formula(self, place: _Place) -> Formula:
        return none_of(self._until(place.group))

    def _take_formula(self, place: _Place) -> Formula:
        return all_of(self._own_test(place.element), none_of(self._until(place.group)))

    def _ignore_formula(self, place: _Place, how: Contiguity | Inner | None) -> Formula | None:
        """When a state waits; None: never, it is strict."""
        if how in (None, Contiguity.NEXT, Inner.CONSECUTIVE):
            return None
        passed = (
            NEVER
            if how in (Contiguity.FOLLOWED_BY_ANY, Inner.COMBINATIONS)
            else self._own_test(place.element)
        )
        return all_of(none_of(passed), none_of(self._until(place.group)))

    def _contiguity(self, place: _Place) -> Contiguity | Inner | None:
        """How the step follows what comes before it; the first of a group follows as the group does."""
        if not place.is_head:
            return place.element.contiguity
        assert place.group is not None
        if self._is_first_round.get(id(place.group), True):
            return place.group.contiguity
        return place.group.quantifier.inner

    def _inner(self, place: _Place) -> Inner:
        holder = place.group if place.is_head and place.group is not None else place.element
        return holder.quantifier.inner

    # -- absences ------------------------------------------------------------------------------------------

    def _absences(self, place: _Place) -> list[PatternStep]:
        """Give the absent steps that an event of this step ends: before it, or before what may be missing."""
        found = []
        for element in reversed(place.before):
            is_absent = element.contiguity is Contiguity.NOT_FOLLOWED_BY
            if not is_absent and not element.quantifier.optional:
                break
            if is_absent and isinstance(element, PatternStep):
                found.append(element)
        return found

    def _stop(self, step: PatternStep, place: _Place) -> tuple[AutomatonState, Formula]:
        formula = all_of(self._passes(step.test), none_of(self._until(place.group)))
        if step.name not in self._stops:
            stop = self._stops[step.name] = self._state(StateKind.STOPPED, step.name)
            stop.take(stop, formula)
        return self._stops[step.name], formula

    def _add_stops(self, state: AutomatonState, place: _Place) -> None:
        for step in self._absences(place):
            state.go_on(*self._stop(step, place))

    def _add_following_stop(self, state: AutomatonState, place: _Place) -> None:
        """While a loop goes on, an absent step that follows it already counts."""
        following = place.following
        if isinstance(following, PatternStep) and following.contiguity is Contiguity.NOT_FOLLOWED_BY:
            state.go_on(*self._stop(following, place))

    def _without_absences(self, sink: AutomatonState, place: _Place) -> AutomatonState:
        """Copy what follows an optional step for when it is taken: absences before it are over then."""
        absences = self._absences(place)
        if not absences or not place.element.quantifier.optional:
            return sink
        copied = self._state(sink.kind, sink.step, sink.within_previous, sink.lapses)
        names = {step.name for step in absences}
        for way in sink.ways:
            if way.action is not EdgeAction.GO_ON:
                target = copied if way.target is sink else way.target
            elif way.target.kind is StateKind.STOPPED:
                if way.target.step in names:
                    continue
                target = way.target
            else:
                target = self._without_absences(way.target, place)
            copied.ways.append(Edge(way.action, target, way.formula))
        return copied

    # -- patterns ------------------------------------------------------------------------------------------

    def _sequence(
        self,
        elements: tuple[Element, ...],
        sink: AutomatonState,
        group: StepGroup | None,
        following: Element | None,
    ) -> AutomatonState:
        """Build the states of successive steps, from the last to the first; give the first."""
        for number in range(len(elements) - 1, -1, -1):
            after = elements[number + 1] if number + 1 < len(elements) else following
            place = _Place(elements[number], list(elements[:number]), after, group)
            match place.element.contiguity:
                case Contiguity.NOT_FOLLOWED_BY:
                    sink = self._absent_at_the_end(place, sink)
                case Contiguity.NOT_NEXT:
                    sink = self._not_next(place, sink)
                case _:
                    sink = self._convert(place, sink)
        return sink

    def _absent_at_the_end(self, place: _Place, sink: AutomatonState) -> AutomatonState:
        """Let an absence that comes last wait for time to pass; others are built into what follows them."""
        step = place.element
        assert isinstance(step, PatternStep)
        bounds = (self.op.within, self.op.gap, step.within_previous)
        if sink.kind is not StateKind.FINAL or bounds == (None, None, None):
            return sink
        waiting = self._state(StateKind.WAITING, step.name, step.within_previous)
        stop, formula = self._stop(step, place)
        waiting.go_on(stop, formula)
        waiting.ignore(waiting, none_of(formula))
        return waiting

    def _not_next(self, place: _Place, sink: AutomatonState) -> AutomatonState:
        step = place.element
        assert isinstance(step, PatternStep)
        state = self._state(StateKind.ON_THE_WAY, step.name, step.within_previous)
        stop, formula = self._stop(step, place)
        if sink.kind is StateKind.FINAL:
            # The event that is not the forbidden one completes the match without being part of it.
            state.ignore(sink, none_of(formula))
        else:
            state.go_on(sink, none_of(formula))
        state.go_on(stop, formula)
        return state

    def _convert(self, place: _Place, sink: AutomatonState) -> AutomatonState:
        quantifier = place.element.quantifier
        if quantifier.is_loop:
            self._note_round(place, is_first=False)
            loop = self._loop(place, self._without_absences(sink, place))
            self._note_round(place, is_first=True)
            first = self._times(place, loop, sink, quantifier.at_least, quantifier.at_least)
        elif quantifier.repeats:
            assert quantifier.at_most is not None
            first = self._times(place, sink, sink, quantifier.at_least, quantifier.at_most)
        else:
            first = self._single(
                place, sink, sink, self._take_formula(place),
                self._ignore_formula(place, self._contiguity(place)), quantifier.optional,
            )  # fmt: skip
        self._add_stops(first, place)
        return first

    def _note_round(self, place: _Place, *, is_first: bool) -> None:
        if isinstance(place.element, StepGroup):
            self._is_first_round[id(place.element)] = is_first

    def _begins_optional_group(self, place: _Place) -> bool:
        if not place.is_head or place.group is None:
            return False
        return self._is_first_round.get(id(place.group), True) and place.group.quantifier.optional

    def _times(
        self, place: _Place, sink: AutomatonState, beyond: AutomatonState, at_least: int, at_most: int
    ) -> AutomatonState:
        """Build a copy of a step for each time it may be taken; those that need not be lead `beyond` too."""
        quantifier = place.element.quantifier
        self._note_round(place, is_first=False)
        until = self._until(place.element)
        take = all_of(self._take_formula(place), none_of(until))
        waits = self._ignore_formula(place, self._inner(place))
        inner = None if waits is None else all_of(waits, none_of(until))
        if quantifier.greedy and at_least != at_most:
            self._remember_original(sink, until)
            _only_unless(sink, all_of(take, self._soon(place.element)))
        last = sink
        soon = self._soon(place.element) if at_most > at_least else ALWAYS
        for _ in range(at_most - at_least):
            last = self._single(place, last, beyond, all_of(take, soon), inner, True, quantifier.window)
            self._add_following_stop(last, place)
        for _ in range(at_least - 1):
            last = self._single(place, last, None, take, inner, False, quantifier.window)
            self._add_following_stop(last, place)
        self._note_round(place, is_first=True)
        first_waits = self._ignore_formula(place, self._contiguity(place))
        return self._single(place, last, beyond, take, first_waits, quantifier.optional)

    def _remember_original(self, sink: AutomatonState, until: Formula) -> None:
        if until:
            self._originals[id(sink)] = self._copy(sink)

    def _copy(self, state: AutomatonState) -> AutomatonState:
        copied = self._state(state.kind, state.step, state.within_previous, state.lapses)
        copied.is_fork = state.is_fork
        for way in state.ways:
            target = copied if way.target is state else way.target
            # The branches behind a fork are part of it: what closes the one must not close the other.
            copied.ways.append(Edge(way.action, self._copy(target) if state.is_fork else target, way.formula))
        return copied

    def _single(
        self,
        place: _Place,
        sink: AutomatonState,
        beyond: AutomatonState | None,
        take: Formula,
        waits: Formula | None,
        optional: bool,
        window: int | None = None,
    ) -> AutomatonState:
        """Build the state of a step taken once; an optional one also leads `beyond`.

        With a `window`, it is over if the event does not come that soon after the one before; where the
        event is needed, so is the match.
        """
        if isinstance(place.element, StepGroup):
            return self._group(place, sink, beyond, optional)
        step = place.element
        needed = None if optional else window
        state = self._state(StateKind.ON_THE_WAY, step.name, _gap(step) if needed is None else needed)
        taken = self._without_absences(sink, place)
        state.take(taken, take)
        if optional:
            assert beyond is not None
            self._lead_beyond(state, place, beyond)
        if waits is not None:
            waiting = state
            if optional or self._begins_optional_group(place):
                # Once an event was ignored, what lies beyond has been tried: only the step is waited for.
                waiting = self._state(StateKind.ON_THE_WAY, step.name, needed, window if optional else None)
                waiting.take(taken, take)
                waiting.ignore(waiting, waits)
                self._add_stops(waiting, place)
            state.ignore(waiting, waits)
        return state

    def _lead_beyond(self, state: AutomatonState, place: _Place, beyond: AutomatonState) -> None:
        go_on = self._go_on_formula(place)
        until = self._until(place.element)
        if place.element.quantifier.greedy and until:
            original = self._originals.get(id(beyond))
            if original is not None:
                state.go_on(original, all_of(go_on, until))
            state.go_on(beyond, all_of(go_on, none_of(until)))
        else:
            state.go_on(beyond, go_on)

    def _group(
        self, place: _Place, sink: AutomatonState, beyond: AutomatonState | None, optional: bool
    ) -> AutomatonState:
        group = place.element
        assert isinstance(group, StepGroup)
        first = self._branches(group, sink, place.following)
        if optional:
            assert beyond is not None
            first.go_on(beyond, self._go_on_formula(place))
        return first

    def _branches(self, group: StepGroup, sink: AutomatonState, following: Element | None) -> AutomatonState:
        if len(group.branches) == 1:
            return self._sequence(group.branches[0], sink, group, following)
        # Each branch has a sink of its own: what follows gives way to greedy steps of that branch alone, and
        # where the group can be left out, to one before it only then.
        firsts = [
            self._sequence(branch, self._copy(sink) if sink.ways else sink, group, following)
            for branch in group.branches
        ]
        fork = self._state(StateKind.ON_THE_WAY, "")
        fork.is_fork = True
        for first in firsts:
            fork.go_on(first, ALWAYS)
        return fork

    def _loop(self, place: _Place, sink: AutomatonState) -> AutomatonState:
        """Build a state that is taken again and again and leads on to `sink` at any time."""
        if isinstance(place.element, StepGroup):
            return self._loop_of_group(place, place.element, sink)
        step, quantifier = place.element, place.element.quantifier
        until = self._until(step)
        waits = self._ignore_formula(place, self._inner(place))
        inner = None if waits is None else all_of(waits, none_of(until))
        take = all_of(self._take_formula(place), none_of(until), self._soon(step))
        go_on = self._go_on_formula(place)
        state = self._state(StateKind.ON_THE_WAY, step.name, _gap(step))
        if quantifier.greedy:
            if until:
                original = self._originals[id(sink)] = self._copy(sink)
                state.go_on(original, all_of(go_on, until))
            state.go_on(sink, all_of(go_on, none_of(until)))
            _only_unless(sink, all_of(self._take_formula(place), self._soon(step)))
        else:
            state.go_on(sink, go_on)
        state.take(state, take)
        self._add_following_stop(state, place)
        if inner is not None:
            waiting = self._state(StateKind.ON_THE_WAY, step.name, lapses=quantifier.window)
            waiting.take(state, take)
            waiting.ignore(waiting, inner)
            state.ignore(waiting, inner)
            self._add_following_stop(waiting, place)
        return state

    def _loop_of_group(self, place: _Place, group: StepGroup, sink: AutomatonState) -> AutomatonState:
        again = self._state(StateKind.ON_THE_WAY, "")
        first = self._branches(group, again, place.following)
        go_on = self._go_on_formula(place)
        first.go_on(sink, go_on)
        again.go_on(first, go_on)
        return first


def _gap(step: PatternStep) -> int | None:
    return None if step.quantifier.repeats else step.within_previous


def _only_unless(state: AutomatonState, formula: Formula) -> None:
    """Close all ways out of a state where `formula` holds: a greedy step before it takes the event."""
    for way in state.ways:
        way.formula = all_of(way.formula, none_of(formula))
        if state.is_fork:
            _only_unless(way.target, formula)


@dataclass(frozen=True, slots=True)
class Transition:
    """What can be done with an event in a state, once all that the machine goes on to has been looked at."""

    action: EdgeAction
    target: int
    step: str
    formula: Formula
    completes: Formula
    """When taking the event completes the match at once."""


def transitions(automaton: Automaton) -> list[list[Transition]]:
    """List for every state, by number, what can be done with an event there."""
    number = {id(state): place for place, state in enumerate(automaton.states)}
    final = {id(state): _reaches_final(state) for state in automaton.states}
    return [
        [
            Transition(
                way.action,
                number[id(way.target)],
                step,
                formula,
                final[id(way.target)] if way.action is EdgeAction.TAKE else NEVER,
            )
            for step, way, formula in _ways_out(state)
            if way.action is not EdgeAction.GO_ON
        ]
        for state in automaton.states
    ]


def _reaches_final(state: AutomatonState) -> Formula:
    """Say when the machine goes on from a state to the end without another event."""
    return any_of(
        *(
            formula
            for _, way, formula in _ways_out(state)
            if way.action is EdgeAction.GO_ON and way.target.kind is StateKind.FINAL
        )
    )


def _ways_out(state: AutomatonState) -> Iterator[tuple[str, Edge, Formula]]:
    """List the ways out of a state and of all that it goes on to: the step, the way, and what opens it."""
    stack = [(state, ALWAYS, frozenset({id(state)}))]
    while stack:
        current, so_far, seen = stack.pop()
        for way in current.ways:
            formula = all_of(so_far, way.formula)
            if not formula:
                continue
            yield current.step, way, formula
            if way.action is EdgeAction.GO_ON and id(way.target) not in seen:
                stack.append((way.target, formula, seen | {id(way.target)}))
