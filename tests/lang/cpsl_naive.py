"""What CPSL means, word by word after the table of its operators, over lists in memory.

A subscription is a tuple: an operator, and what it is applied to. Nothing here knows how the real thing
works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from hypothesis import strategies as st

from whimbrel.model.time import SECOND, time_point

Sub = tuple


@dataclass(frozen=True)
class Event:
    """An event, or what a subscription has found; `parts` are the events that it puts together."""

    name: object
    ids: frozenset[str]
    start: int
    end: int
    kind: str = ""
    parts: tuple[tuple[str | None, object], ...] = ()
    """The parts, each with the variable that it is bound to."""
    bound: frozenset[tuple[str, object]] = frozenset()
    """The variables that are bound to an event in it."""
    variable: str | None = None

    def as_dict(self) -> dict:
        (name,) = self.ids
        return {"id": name, "type": self.kind, "start": self.start, "end": self.end}


def written(sub: Sub) -> str:
    """Write a subscription in CPSL."""
    match sub:
        case "event", kind:
            return f'(STRING:type = "{kind}")'
        case "variable", name:
            return f"${name};"
        case "between" | "after" | "absent" as name, first, second, of:
            sign = {"between": "=|", "after": "|=", "absent": "!"}[name]
            last = second if isinstance(second, int) else written(second)
            return f"({sign}({written(first)};{last}){written(of)})"
        case "between at" | "after at" | "absent at" as name, point, time, of:
            sign = {"between at": "=|", "after at": "|=", "absent at": "!"}[name]
            return f"({sign}({point};{time}){written(of)})"
        case "concurrent", other, of:
            return f"(|({written(other)}){written(of)})"
        case "and", *parts:
            return f"({' && '.join(written(part) for part in parts)})"
        case "or", *parts:
            return f"({' || '.join(written(part) for part in parts)})"
        case "successive", count, of:
            return f"(Q({count}){written(of)})"
        case "recurring", time, of:
            return f"(P({time}){written(of)})"
    raise ValueError(sub)


VARIABLES = {"x": "A", "y": "A", "z": "B"}


def line(sub: Sub) -> str:
    """Write a whole subscription, with what its variables are bound to."""
    bindings = "".join(f', ${name}; = (STRING:type = "{VARIABLES[name]}")' for name in sorted(_used(sub)))
    return f"n: {written(sub)}{bindings}"


def _used(sub: Sub) -> set[str]:
    if sub[0] == "variable":
        return {sub[1]}
    return set().union(*(_used(part) for part in sub if isinstance(part, tuple)))


def _told(sub: Sub) -> set[str]:
    """Name the variables that everything a subscription finds has bound."""
    match sub:
        case "or", *parts:
            return set.intersection(*(_told(part) for part in parts))
        case "absent", first, second, _:
            return _told(first) | (set() if isinstance(second, int) else _told(second))
        case "successive" | "recurring" | "absent at", *_:
            return set()
        case "variable", name:
            return {name}
    return set().union(*(_told(part) for part in sub if isinstance(part, tuple)))


def _agree(*events: Event) -> bool:
    """Tell whether every variable is bound to one event."""
    bound = frozenset().union(*(event.bound for event in events))
    return len(bound) == len({name for name, _ in bound})


def detect(sub: Sub, events: list[Event], horizon: int) -> list[Event]:
    """Give everything that a subscription finds."""

    def all_of(part: Sub) -> list[Event]:
        return detect(part, events, horizon)

    match sub:
        case "event", kind:
            return [event for event in events if event.kind == kind]
        case "variable", name:
            return [
                replace(event, variable=name, bound=frozenset({(name, event.name)}))
                for event in events
                if event.kind == VARIABLES[name]
            ]
        case "between at", point, time, of:
            return [b for b in all_of(of) if point < b.start and b.end <= point + time]
        case "after at", point, time, of:
            return [b for b in all_of(of) if b.start > point + time]
        case "absent at", point, time, of:
            if any(point < b.start and b.end <= point + time for b in all_of(of)):
                return []
            return [Event((sub, point), frozenset({time_point(point * SECOND)}), point, point + time)]
        case "or", *_:
            return _either(sub, [all_of(part) for part in _alternatives(sub)])
        case "recurring", time, of:
            return [each for each in _stretches(sub, all_of(of), 2) if each.end - each.start <= time]
        case _, first, int() as time, of if sub[0] in ("between", "absent"):
            return _within(sub, all_of(first), time, all_of(of))
    found = _without_bound(sub, all_of)
    return [each for each in found if each.end - each.start <= horizon]


def _within(sub: Sub, first: list[Event], time: int, of: list[Event]) -> list[Event]:
    """Give what is bounded by an amount of time after an event."""
    if sub[0] == "between":
        return [
            _made(sub, a, b)
            for a, b in product(first, of)
            if _agree(a, b) and a.end < b.start and b.end <= a.end + time
        ]
    return [
        Event((sub, a.name), a.ids, a.start, a.end + time, bound=a.bound)
        for a in first
        if not any(_agree(a, b) and a.end < b.start and b.end <= a.end + time for b in of)
    ]


def _without_bound(sub: Sub, all_of: Callable[[Sub], list[Event]]) -> list[Event]:
    """Give what only the horizon bounds."""
    match sub:
        case "after", first, int() as time, of:
            pairs = product(all_of(first), all_of(of))
            return [_made(sub, a, b) for a, b in pairs if _agree(a, b) and b.start > a.end + time]
        case "concurrent", other, of:
            pairs = product(all_of(other), all_of(of))
            return [
                _made(sub, a, b)
                for a, b in pairs
                if a.name != b.name and _agree(a, b) and max(a.start, b.start) <= min(a.end, b.end)
            ]
        case "and", *parts:
            chosen = product(*map(all_of, parts))
            return [_made(sub, *each) for each in chosen if _agree(*each) and _differ(parts, each)]
        case "successive", count, of:
            return _stretches(sub, all_of(of), count)
        case name, first, second, of:
            return _between_two(sub, name, all_of(first), all_of(second), all_of(of))
    raise ValueError(sub)


def _between_two(
    sub: Sub, name: str, first: list[Event], second: list[Event], of: list[Event]
) -> list[Event]:
    """Give what lies between two events, does not, or comes after both."""
    if name == "absent":
        return [
            _made(sub, a, b)
            for a, b in product(first, second)
            if _agree(a, b)
            and a.end < b.start
            and not any(_agree(a, b, c) and a.end < c.start and c.end < b.start for c in of)
        ]
    in_order = _lies_between if name == "between" else _follow
    return [
        _made(sub, a, b, c) for a, b, c in product(first, second, of) if _agree(a, b, c) and in_order(a, b, c)
    ]


def _lies_between(a: Event, b: Event, c: Event) -> bool:
    return a.end < c.start and c.end < b.start


def _follow(a: Event, b: Event, c: Event) -> bool:
    return a.end < b.start and c.start > b.end


def _made(sub: Sub, *parts: Event) -> Event:
    return Event(
        (sub, tuple(part.name for part in parts)),
        frozenset().union(*(part.ids for part in parts)),
        min(part.start for part in parts),
        max(part.end for part in parts),
        parts=tuple((part.variable, part.name) for part in parts),
        bound=frozenset().union(*(part.bound for part in parts)),
    )


def _differ(subs: list[Sub], chosen: tuple[Event, ...]) -> bool:
    """Tell whether all parts of one && are different, those of relations among them.

    A variable is one part, however often it is named.
    """
    relations = ("between", "after", "concurrent", "and")
    parts = [
        part
        for sub, event in zip(subs, chosen, strict=True)
        for part in (event.parts if sub[0] in relations else ((event.variable, event.name),))
    ]
    variables = {part for part in parts if part[0] is not None}
    names = [name for _, name in variables] + [name for variable, name in parts if variable is None]
    return len(names) == len(set(names))


def _either(sub: Sub, found: list[list[Event]]) -> list[Event]:
    """Give what either side finds; what both sides find is the same thing if it is a single event."""
    told = _told(sub)
    seen: set[frozenset[str]] = set()
    either = []
    for number, events in enumerate(found):
        for event in events:
            if event.kind and event.ids in seen:
                continue
            seen |= {event.ids} if event.kind else set()
            name = (sub, event.name, None if event.kind else number)
            bound = frozenset(pair for pair in event.bound if pair[0] in told)
            either.append(Event(name, event.ids, event.start, event.end, bound=bound))
    return either


def _alternatives(sub: Sub) -> list[Sub]:
    """Give the different branches; saying the same twice says nothing more."""
    if sub[0] != "or":
        return [sub]
    return list(dict.fromkeys(each for part in sub[1:] for each in _alternatives(part)))


def _stretches(sub: Sub, events: list[Event], count: int) -> list[Event]:
    ordered = sorted(events, key=lambda event: (event.end, event.start, min(event.ids)))
    return [_made(sub, *ordered[at : at + count]) for at in range(len(ordered) - count + 1)]


# Random subscriptions and events -------------------------------------------------------------------

_KINDS = st.sampled_from("ABC")
_TIMES = st.integers(1, 5)
_events = st.tuples(st.just("event"), _KINDS)
_variables = st.tuples(st.just("variable"), st.sampled_from(sorted(VARIABLES)))


def _operators(inner: st.SearchStrategy[Sub]) -> st.SearchStrategy[Sub]:
    timed = st.sampled_from(["between", "after", "absent"])
    return st.one_of(
        st.tuples(timed, inner, _TIMES, inner),
        st.tuples(timed, inner, inner, inner),
        st.tuples(st.sampled_from(["between at", "after at", "absent at"]), st.integers(0, 8), _TIMES, inner),
        st.tuples(st.just("concurrent"), inner, inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("successive"), st.integers(1, 3), _events),
        st.tuples(st.just("recurring"), _TIMES, _events),
    )


def _nested(leaves: st.SearchStrategy[Sub]) -> st.SearchStrategy[Sub]:
    return st.one_of(_operators(leaves), _operators(st.one_of(leaves, _operators(leaves))))


subscriptions = _nested(_events)
with_variables = _nested(st.one_of(_variables, _variables, _events))


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    rows = draw(st.lists(st.tuples(_KINDS, st.integers(0, 9), st.integers(0, 2)), min_size=2, max_size=9))
    return [
        Event(f"e{number}", frozenset({f"e{number}"}), start, start + length, kind)
        for number, (kind, start, length) in enumerate(rows)
    ]


event_lists = event_lists()
