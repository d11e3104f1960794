"""What `Encounter` means, in plain Python, straight from docs/meaning.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from whimbrel.graph.motion import MOTION, Encounter, Meeting
from whimbrel.graph.policies import Partitioning

from .data import Item, Timestamp, Value, order
from .expressions import World
from .functions import apart, centre
from .streams import Streams, composite, group_of

Mover = tuple[Value, ...]


@dataclass(frozen=True)
class Comparison:
    """Two movers, compared: when, the last samples of both, and how far these lie apart."""

    time: int
    one: Item
    other: Item
    metres: float


def met(op: Encounter, streams: Streams, world: World) -> list[Item]:
    found: list[Item] = []
    for compared in _comparisons(op, streams, world).values():
        for stretch in _stretches(compared):
            for comparison, until, since in _findings(op, stretch, streams, world):
                found.append(_made(op, comparison, until, since, world))
    return sorted(found, key=order)


def _made(op: Encounter, found: Comparison, until: int | None, since: int | None, world: World) -> Item:
    values: dict[str, Value] = {"distance": found.metres}
    if since is not None:
        values["since"] = Timestamp(since)
    about = replace(composite((found.one, found.other), {}, {}, world), attributes=values)
    parts = {op.alias: found.one, op.other_alias: found.other, MOTION: about}
    return replace(composite((found.one, found.other), parts, {}, world, until), maker=op.name)


def _mover(op: Encounter, item: Item) -> Mover:
    group = group_of(item, Partitioning(op.keys)) or {}
    return tuple(group[key.name] for key in op.keys)


def _sorted_key(mover: Mover) -> tuple[tuple[bool, Value], ...]:
    return tuple((value is not None, value) for value in mover)


def _comparisons(
    op: Encounter, streams: Streams, world: World
) -> dict[tuple[Mover, Mover], list[Comparison | int]]:
    """Whenever a mover is seen, compare it with all others; only a time where that is not known."""
    ones, others = (
        [item for item in streams[name] if centre(item) is not None] for name in (op.input, op.other)
    )
    last: tuple[dict[Mover, Item], dict[Mover, Item]] = ({}, {})
    found: dict[tuple[Mover, Mover], list[Comparison | int]] = {}

    def compare(a: Mover, b: Mover, time: int) -> None:
        one, other = last[0].get(a), last[1].get(b)
        if a == b or one is None or other is None:
            return
        if time - min(one.end, other.end) > op.fresh:
            found.setdefault((a, b), []).append(time)
            return
        metres = apart(one, other, world.coordinates)
        assert isinstance(metres, float)
        found.setdefault((a, b), []).append(Comparison(time, one, other, metres))

    for event in sorted({item.id: item for item in (*ones, *others)}.values(), key=order):
        mover = _mover(op, event)
        roles = [role for role, stream in enumerate((ones, others)) if any(event.id == s.id for s in stream)]
        for role in roles:
            last[role][mover] = event
        if op.input == op.other:
            for other in list(last[1]):
                compare(*sorted((mover, other), key=_sorted_key), event.end)
            continue
        for role in roles:
            for other in list(last[1 - role]):
                compare(*((mover, other) if role == 0 else (other, mover)), event.end)
    return found


@dataclass(frozen=True)
class Stretch:
    """Successive comparisons of two movers, and when they became strangers, if they did."""

    compared: list[Comparison]
    ended: int | None


def _stretches(compared: list[Comparison | int]) -> Iterator[Stretch]:
    run: list[Comparison] = []
    for comparison in compared:
        if isinstance(comparison, int):
            yield Stretch(run, comparison)
            run = []
        else:
            run.append(comparison)
    yield Stretch(run, None)


def _findings(
    op: Encounter, stretch: Stretch, streams: Streams, world: World
) -> Iterator[tuple[Comparison, int | None, int | None]]:
    near, since = None, None
    for place, comparison in enumerate(stretch.compared):
        is_in, is_out = comparison.metres <= op.near_m, comparison.metres > op.near_m + op.margin_m
        if is_in and not near:
            if near is False and op.verb in (Meeting.COMES_WITHIN, Meeting.REACHES):
                yield comparison, None, None
            near, since = True, comparison.time
            if op.verb.waits and _lasts(op, Stretch(stretch.compared[place:], stretch.ended), streams, world):
                yield comparison, comparison.time + op.duration, comparison.time
        elif is_out and near is not False:
            if near and op.verb is Meeting.LEAVES:
                yield comparison, None, since
            near, since = False, None


def _lasts(op: Encounter, rest: Stretch, streams: Streams, world: World) -> bool:
    """Whether the two that are near from the first of these on are so for long enough."""
    first = rest.compared[0]
    until = first.time + op.duration
    if rest.ended is not None and rest.ended <= until:
        return False
    later = [comparison for comparison in rest.compared if comparison.time <= until]
    if any(comparison.metres > op.near_m + op.margin_m for comparison in later):
        return False
    if until - later[-1].time > op.fresh:
        return False
    if op.verb is Meeting.MEETS:
        return True
    began = ((first.one, op.input), (first.other, op.other))
    return all(_way(op, item, streams[name], until, world) > op.near_m for item, name in began)


def _way(op: Encounter, began: Item, stream: list[Item], until: int, world: World) -> float:
    """How far a mover is from where it was, at a later time."""
    mover = _mover(op, began)
    own = [i for i in stream if _mover(op, i) == mover and i.end <= until and centre(i) is not None]
    metres = apart(began, max(own, key=order), world.coordinates)
    assert isinstance(metres, float)
    return metres
