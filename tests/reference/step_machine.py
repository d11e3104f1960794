"""The machine of a pattern of steps: states, and what can be done with an event in each.

In a state, an event may be *taken*, which adds it to the match; it may be *ignored*, and the match waits for
another; or the machine *goes on* to the next state and asks the same question there. Every such move has a
test. The rules are those of Flink CEP, also where one would not have guessed them:

- A step that waits relaxed ignores what it does not take; one that waits for any ignores everything as well
  as taking; one that is strict ignores nothing.
- An event that ends the loop of a group is neither taken nor ignored inside it, and nothing goes on there.
- What is optional can be gone past. Once it has ignored an event, it cannot any more.
- Behind a greedy step, nothing is done with an event that the greedy step would take.
- An absence stops a match wherever it waits between the steps around it: a move to `STOPPED`.
- Where a loop has a window, it takes another event only that soon after the one before. If it still needs
  one, the match is out of time when the window is over; if not, only the loop is over, and what waits for
  more goes silently.
- The first step of a group waits as the group does, the first time; each further time as the group's
  quantifier says, also where only the step itself is taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .step_conditions import Taken, fulfils

Json = Mapping[str, Any]
Test = Callable[[Json, Taken], bool]

TAKE, IGNORE, GO_ON = "take", "ignore", "go on"
NORMAL, FINAL, STOPPED, WAITING = "normal", "final", "stopped", "waiting"


@dataclass(eq=False)
class State:
    """Where a match may stand. What it takes here is for `step`."""

    step: str | None = None
    kind: str = NORMAL
    within_previous: int | None = None
    """After what time since the event before it is too late here."""
    lapses: int | None = None
    """After what time since the event before nothing is waited for here any more, and nothing was missed."""
    moves: list[Move] = field(default_factory=list)
    is_fork: bool = False
    """Whether it only leads on to the branches of a choice."""

    def add(self, action: str, target: State, test: Test) -> None:
        self.moves.append(Move(action, self, target, test))


@dataclass(eq=False)
class Move:
    """What can be done with an event that passes a test."""

    action: str
    source: State
    target: State
    test: Test


@dataclass(frozen=True)
class Place:
    """Where an element of a pattern stands."""

    before: Sequence[Json] = ()
    """The elements before it, in the same group."""
    after: Json | None = None
    """The element that follows, perhaps behind the end of the group."""
    group: Json | None = None
    again: bool = False
    """Whether the group is entered for a second time or more."""

    @property
    def is_head(self) -> bool:
        """Whether it is the first of a group."""
        return self.group is not None and not self.before

    @property
    def until(self) -> str | None:
        return None if self.group is None else quantity(self.group, "until")


def machine(pattern: Json) -> State:
    """Build the machine of a pattern; give the state in which every match begins."""
    *others, last = pattern["steps"]
    within = pattern.get("within") or {}
    if within.get("type") == "previous_to_current":
        last = {**last, "within_previous_ms": within["ms"]}
    return _sequence([*others, last], State(kind=FINAL), Place())


# -- tests -----------------------------------------------------------------------------------------------


def always(event: Json, taken: Taken) -> bool:
    return True


def no(test: Test) -> Test:
    return lambda event, taken: not test(event, taken)


def both(one: Test, other: Test) -> Test:
    return lambda event, taken: one(event, taken) and other(event, taken)


def _soon(window: int | None) -> Test:
    """Whether an event comes less than a window after the last one taken."""

    def is_soon(event: Json, taken: Taken) -> bool:
        times = [each["time"] for events in taken.values() for each in events]
        return window is None or not times or event["time"] - max(times) < window

    return is_soon


def _says(condition: str) -> Test:
    return lambda event, taken: fulfils(event, taken, condition)


def _fits(step: Json) -> Test:
    """Whether an event fits a step, whatever stands around it."""
    return lambda event, taken: fulfils(event, taken, step.get("condition"), step.get("type"))


def _unless(test: Test, *conditions: str | None) -> Test:
    for condition in conditions:
        if condition is not None:
            test = both(test, no(_says(condition)))
    return test


def _takes(step: Json, place: Place) -> Test:
    """Whether a step takes an event: it fits, and ends neither its loop nor that of the group around it."""
    return _unless(_fits(step), quantity(step, "until"), place.until)


def _ignores(step: Json, place: Place, again: bool) -> Test | None:
    """Whether an event is ignored where a step is waited for, perhaps once more; None: never."""
    how = _waits_again(step, place) if again else _waits(step, place)
    if how == "strict":
        return None
    test = always if how == "any" else no(_fits(step))
    return _unless(test, quantity(step, "until") if again else None, place.until)


CONTIGUITY = {None: "strict", "next": "strict", "followedBy": "relaxed", "followedByAny": "any"}


def _waits(step: Json, place: Place) -> str:
    """How a step waits for its first event."""
    if place.group is None or not place.is_head:
        return CONTIGUITY[step["contiguity"]]
    return _inside(place.group) if place.again else CONTIGUITY[place.group["contiguity"]]


def _waits_again(step: Json, place: Place) -> str:
    """How a step waits for a further event."""
    return _inside(step if place.group is None or not place.is_head else place.group)


def _inside(element: Json) -> str:
    if quantity(element, "consecutive"):
        return "strict"
    return "any" if quantity(element, "combinations") else "relaxed"


# -- elements --------------------------------------------------------------------------------------------


def _sequence(elements: Sequence[Json], then: State, place: Place) -> State:
    """Give the state in which a sequence begins that leads to the state `then`."""
    for number in reversed(range(len(elements))):
        after = elements[number + 1] if number + 1 < len(elements) else place.after
        here = Place(elements[:number], after, place.group, place.again)
        then = _element(elements[number], then, here)
    return then


def _element(element: Json, then: State, place: Place) -> State:
    if element["contiguity"] == "notNext":
        return _not_next(element, then, place)
    if element["contiguity"] == "notFollowedBy":
        return _not_followed_by(element, then, place)
    first = _repeated(element, then, place)
    _stop_at_absences(first, place)
    return first


def _not_next(step: Json, then: State, place: Place) -> State:
    made = _state(step)
    if then.kind == FINAL:
        made.add(IGNORE, then, no(_takes(step, place)))  # the end needs an event that shows the absence
    else:
        made.add(GO_ON, then, no(_takes(step, place)))
    made.add(GO_ON, _stop(), _takes(step, place))
    return made


def _not_followed_by(step: Json, then: State, place: Place) -> State:
    """At the end, wait until time is over; elsewhere, the states around it know the way to `STOPPED`."""
    if then.kind != FINAL:
        return then
    made = _state(step, WAITING)
    made.add(GO_ON, _stop(), _takes(step, place))
    made.add(IGNORE, made, no(_takes(step, place)))
    return made


def _repeated(element: Json, then: State, place: Place) -> State:
    """An element as often as its quantifier says."""
    least, most = limits(element)
    past = Past(then, element, place)
    if most is None:
        then = _loop(element, _forgiven(then, element, place), past, place)
        most = least
    elif quantity(element, "greedy") and least != most:
        _give_way(then, both(_takes(element, place), _soon(quantity(element, "window_ms"))))
    for number in reversed(range(1, most)):
        then = _once(element, then, past if number >= least else None, place, again=True)
        _stop_behind(then, place)
    optional = quantity(element, "optional")
    return _once(element, then, past if optional else None, place, again=False)


class Past:
    """The way past an element, for who leaves it out, or the rest of it."""

    def __init__(self, then: State, element: Json, place: Place) -> None:
        self.then = then
        self.opens = _unless(always, place.until)
        self.until = quantity(element, "until") if quantity(element, "greedy") else None
        self.as_it_was = _copy(then)

    def add_to(self, state: State) -> None:
        """Lead on; where a greedy loop has just ended, to a state that gives way no more."""
        if self.until is None:
            state.add(GO_ON, self.then, self.opens)
        else:
            state.add(GO_ON, self.as_it_was, both(self.opens, _says(self.until)))
            state.add(GO_ON, self.then, both(self.opens, no(_says(self.until))))


def _once(element: Json, then: State, past: Past | None, place: Place, *, again: bool) -> State:
    """An element taken once, or left out if there is a way past it."""
    if "name" not in element:
        made = _body(element, then, place, again)
        if past is not None:
            past.add_to(made)
        return made
    take, ignore = _takes(element, place), _ignores(element, place, again)
    made, taken = _state(element), _forgiven(then, element, place)
    window = quantity(element, "window_ms") if again else None
    if window is not None and past is None:
        made.within_previous = window
    take = both(take, _soon(window))
    made.add(TAKE, taken, take)
    if past is not None:
        past.add_to(made)
    if ignore is not None:
        waiting = made
        if past is not None or _begins_what_is_optional(place):
            waiting = State(element["name"])
            if past is None:
                waiting.within_previous = window
            else:
                waiting.lapses = window
            waiting.add(TAKE, taken, take)
            waiting.add(IGNORE, waiting, ignore)
            _stop_at_absences(waiting, place)
        made.add(IGNORE, waiting, ignore)
    return made


def _begins_what_is_optional(place: Place) -> bool:
    return place.is_head and not place.again and bool(quantity(place.group or {}, "optional"))


def _body(group: Json, then: State, place: Place, again: bool) -> State:
    """A group gone through once; with alternatives, a state that leads on to each of them."""
    inside = Place((), place.after, group, again)
    if "group" in group:
        return _sequence(group["group"], then, inside)
    made = State(is_fork=True)
    for branch in group["either"]:  # each for itself: what follows gives way to one of them alone
        own = _copy(then) if then.moves else then
        made.add(GO_ON, _sequence(branch, own, inside), always)
    return made


def _loop(element: Json, then: State, past: Past, place: Place) -> State:
    """An element that is taken again and again."""
    if "name" not in element:
        end = State()
        made = _body(element, end, place, again=True)
        made.add(GO_ON, then, past.opens)
        end.add(GO_ON, made, past.opens)
        return made
    take, ignore = _takes(element, place), _ignores(element, place, again=True)
    made = _state(element)
    if then is past.then:
        past.add_to(made)
    else:
        made.add(GO_ON, then, past.opens)
    if quantity(element, "greedy"):
        soon = _soon(quantity(element, "window_ms"))
        _give_way(then, both(_unless(_fits(element), place.until), soon))
    window = quantity(element, "window_ms")
    take = both(take, _soon(window))
    made.add(TAKE, made, take)
    _stop_behind(made, place)
    if ignore is not None:
        waiting = State(element["name"], lapses=window)
        waiting.add(TAKE, made, take)
        waiting.add(IGNORE, waiting, ignore)
        made.add(IGNORE, waiting, ignore)
        _stop_behind(waiting, place)
    return made


def _give_way(state: State, take: Test) -> None:
    """Do nothing in a state with what a greedy step before it takes; a choice gives way in each branch."""
    for move in state.moves:
        move.test = both(move.test, no(take))
        if state.is_fork:
            _give_way(move.target, take)


def _copy(state: State) -> State:
    made = State(state.step, state.kind, state.within_previous, state.lapses, is_fork=state.is_fork)
    for move in state.moves:
        target = made if move.target is state else move.target
        made.add(move.action, _copy(target) if state.is_fork else target, move.test)
    return made


# -- absences --------------------------------------------------------------------------------------------


def _stop() -> State:
    made = State(kind=STOPPED)
    made.add(TAKE, made, always)
    return made


def _absences_before(place: Place) -> list[Json]:
    """The notFollowedBy that still holds where an element is waited for, perhaps beyond optional ones."""
    found = []
    for element in reversed(place.before):
        if element["contiguity"] == "notFollowedBy":
            found.append(element)
        elif not quantity(element, "optional"):
            break
    return found


def _stop_at_absences(state: State, place: Place) -> None:
    for step in _absences_before(place):
        state.add(GO_ON, _stop_of(step), _takes(step, place))


def _stop_behind(state: State, place: Place) -> None:
    """Stop a loop that waits for more, too, if an absence follows it."""
    if place.after is not None and place.after["contiguity"] == "notFollowedBy":
        state.add(GO_ON, _stop_of(place.after), _takes(place.after, place))


def _stop_of(step: Json) -> State:
    made = _stop()
    made.step = step["name"]
    return made


def _forgiven(then: State, element: Json, place: Place) -> State:
    """Give the state behind an optional element that was taken: absences before it hold no longer."""
    names = {step["name"] for step in _absences_before(place)}
    if not names or not quantity(element, "optional"):
        return then
    made = State(then.step, then.kind, then.within_previous, then.lapses)
    for move in then.moves:
        target = move.target
        if move.action == GO_ON:
            if target.kind == STOPPED and target.step in names:
                continue
            if target.kind != STOPPED:
                target = _forgiven(target, element, place)
        made.add(move.action, made if target is then else target, move.test)
    return made


# -- the JSON form ---------------------------------------------------------------------------------------


def _state(step: Json, kind: str = NORMAL) -> State:
    repeats = limits(step) != (1, 1)
    return State(step["name"], kind, None if repeats else step.get("within_previous_ms"))


def quantity(element: Json, name: str) -> Any:
    return element.get("quantifier", {}).get(name)


def limits(element: Json) -> tuple[int, int | None]:
    """How often an element is taken, at least and at most."""
    quantifier = element.get("quantifier", {})
    least = quantifier.get("min", 1)
    return least, quantifier.get("max", least)
