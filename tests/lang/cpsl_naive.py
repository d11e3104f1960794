"""What CPSL means, word by word after the table of its operators, over lists in memory.

A subscription is a tuple: an operator, and what it is applied to. Nothing here knows how the real thing
works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

Sub = tuple


@dataclass(frozen=True)
class Event:
    """An event, or what a subscription has found; `parts` are the events that it puts together."""

    name: object
    ids: frozenset[str]
    start: int
    end: int
    kind: str = ""
    parts: tuple[object, ...] = ()

    def as_dict(self) -> dict:
        (name,) = self.ids
        return {"id": name, "type": self.kind, "start": self.start, "end": self.end}


def written(sub: Sub) -> str:
    """Write a subscription in CPSL."""
    match sub:
        case "event", kind:
            return f'(STRING:type = "{kind}")'
        case "between" | "after" | "absent" as name, first, second, of:
            sign = {"between": "=|", "after": "|=", "absent": "!"}[name]
            last = second if isinstance(second, int) else written(second)
            return f"({sign}({written(first)};{last}){written(of)})"
        case "between at" | "after at" as name, point, time, of:
            return f"({'=|' if name == 'between at' else '|='}({point};{time}){written(of)})"
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


def detect(sub: Sub, events: list[Event], horizon: int) -> list[Event]:
    """Give everything that a subscription finds."""

    def all_of(part: Sub) -> list[Event]:
        return detect(part, events, horizon)

    match sub:
        case "event", kind:
            return [event for event in events if event.kind == kind]
        case "between at", point, time, of:
            return [b for b in all_of(of) if point < b.start and b.end <= point + time]
        case "after at", point, time, of:
            return [b for b in all_of(of) if b.start > point + time]
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
        return [_made(sub, a, b) for a, b in product(first, of) if a.end < b.start and b.end <= a.end + time]
    return [
        Event((sub, a.name), a.ids, a.start, a.end + time)
        for a in first
        if not any(a.end < b.start and b.end <= a.end + time for b in of)
    ]


def _without_bound(sub: Sub, all_of: Callable[[Sub], list[Event]]) -> list[Event]:
    """Give what only the horizon bounds."""
    match sub:
        case "after", first, int() as time, of:
            pairs = product(all_of(first), all_of(of))
            return [_made(sub, a, b) for a, b in pairs if b.start > a.end + time]
        case "concurrent", other, of:
            pairs = product(all_of(other), all_of(of))
            return [
                _made(sub, a, b)
                for a, b in pairs
                if a.name != b.name and max(a.start, b.start) <= min(a.end, b.end)
            ]
        case "and", *parts:
            chosen = product(*map(all_of, parts))
            return [_made(sub, *each) for each in chosen if _differ(parts, each)]
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
            if a.end < b.start and not any(a.end < c.start and c.end < b.start for c in of)
        ]
    return [
        _made(sub, a, b, c)
        for a, b, c in product(first, second, of)
        if (a.end < c.start and c.end < b.start if name == "between" else a.end < b.start and c.start > b.end)
    ]


def _made(sub: Sub, *parts: Event) -> Event:
    ids = frozenset().union(*(part.ids for part in parts))
    names = tuple(part.name for part in parts)
    return Event(
        (sub, names), ids, min(part.start for part in parts), max(part.end for part in parts), parts=names
    )


def _differ(subs: list[Sub], chosen: tuple[Event, ...]) -> bool:
    """Tell whether all parts of one && are different, those of relations among them."""
    relations = ("between", "after", "concurrent", "and")
    names = [
        name
        for sub, event in zip(subs, chosen, strict=True)
        for name in (event.parts if sub[0] in relations else (event.name,))
    ]
    return len(names) == len(set(names))


def _either(sub: Sub, found: list[list[Event]]) -> list[Event]:
    """Give what either side finds; what both sides find is the same thing if it is a single event."""
    return [
        Event((sub, event.name, None if event.kind else number), event.ids, event.start, event.end)
        for number, events in enumerate(found)
        for event in events
        if not (event.kind and any(event in before for before in found[:number]))
    ]


def _alternatives(sub: Sub) -> list[Sub]:
    return [each for part in sub[1:] for each in _alternatives(part)] if sub[0] == "or" else [sub]


def _stretches(sub: Sub, events: list[Event], count: int) -> list[Event]:
    ordered = sorted(events, key=lambda event: (event.end, event.start, min(event.ids)))
    return [_made(sub, *ordered[at : at + count]) for at in range(len(ordered) - count + 1)]


# Random subscriptions and events -------------------------------------------------------------------

_KINDS = st.sampled_from("ABC")
_TIMES = st.integers(1, 5)
_leaves = st.tuples(st.just("event"), _KINDS)


def _operators(inner: st.SearchStrategy[Sub]) -> st.SearchStrategy[Sub]:
    timed = st.sampled_from(["between", "after", "absent"])
    return st.one_of(
        st.tuples(timed, inner, _TIMES, inner),
        st.tuples(timed, inner, inner, inner),
        st.tuples(st.sampled_from(["between at", "after at"]), st.integers(0, 8), _TIMES, inner),
        st.tuples(st.just("concurrent"), inner, inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("successive"), st.integers(1, 3), _leaves),
        st.tuples(st.just("recurring"), _TIMES, _leaves),
    )


subscriptions = st.one_of(_operators(_leaves), _operators(st.one_of(_leaves, _operators(_leaves))))


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    rows = draw(st.lists(st.tuples(_KINDS, st.integers(0, 9), st.integers(0, 2)), min_size=2, max_size=9))
    return [
        Event(f"e{number}", frozenset({f"e{number}"}), start, start + length, kind)
        for number, (kind, start, length) in enumerate(rows)
    ]


event_lists = event_lists()
