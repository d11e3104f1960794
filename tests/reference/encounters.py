"""What `Encounter` means, in plain Python, straight from docs/meaning.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.motion import MOTION
from whimbrel.graph.policies import Partitioning
from whimbrel.model.schema import Coordinates

from .data import Item, Point, Timestamp, Value, order
from .expressions import World
from .functions import apart, centre, geometry, great_circle
from .motions import IN, NOTHING, OUT, inaccuracy, signed_distance
from .streams import Streams, composite, group_of

BEGINNING = -(2**62)
Mover = tuple[Value, ...]
Finding = tuple["Comparison", int | None, int | None]
"""What was found: the samples compared, the time that completed it, since when."""


@dataclass(frozen=True)
class Comparison:
    """Two movers, compared: when, the last samples of both, how far these lie apart, what that says.

    Then all samples of the one that was seen, and of the other one, so far.
    """

    time: int
    one: Item
    other: Item
    metres: float
    says: str
    moving: tuple[Item, ...]
    standing: tuple[Item, ...]


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


# Comparing.


def _comparisons(
    op: Encounter, streams: Streams, world: World
) -> dict[tuple[Mover, Mover], list[Comparison | int]]:
    """Whenever a mover is seen, compare it with all others; only a time where that is not known."""
    ones, others = (
        [item for item in streams[name] if centre(item) is not None] for name in (op.input, op.other)
    )
    ways: tuple[dict[Mover, list[Item]], dict[Mover, list[Item]]] = ({}, {})
    found: dict[tuple[Mover, Mover], list[Comparison | int]] = {}

    def compare(a: Mover, b: Mover, time: int, seen: int) -> None:
        way, other_way = ways[0].get(a), ways[1].get(b)
        if a == b or way is None or other_way is None:
            return
        one, other = way[-1], other_way[-1]
        if time - min(one.end, other.end) > op.fresh:
            found.setdefault((a, b), []).append(time)
            return
        metres = apart(one, other, world.coordinates)
        moving, standing = (way, other_way) if seen == 0 else (other_way, way)
        says = _says(op, one, other, metres, world.coordinates)
        made = Comparison(time, one, other, metres, says, tuple(moving), tuple(standing))
        found.setdefault((a, b), []).append(made)

    for event in sorted({item.id: item for item in (*ones, *others)}.values(), key=order):
        mover = _mover(op, event)
        roles = [role for role, stream in enumerate((ones, others)) if any(event.id == s.id for s in stream)]
        for role in roles:
            ways[role].setdefault(mover, []).append(event)
        if op.is_among_one:
            for other in list(ways[1]):
                a, b = sorted((mover, other), key=_sorted_key)
                compare(a, b, event.end, 0 if a == mover else 1)
            continue
        for role in roles:
            for other in list(ways[1 - role]):
                compare(*((mover, other) if role == 0 else (other, mover)), event.end, role)
    return found


def _says(op: Encounter, one: Item, other: Item, metres: float, coordinates: Coordinates) -> str:
    wrong = inaccuracy(one, op.accuracy) + inaccuracy(other, op.accuracy)
    if op.verb.reads_shapes:
        metres = _from_location(one, other, metres, coordinates)
    near, far = (OUT, IN) if op.verb.is_outside else (IN, OUT)
    if metres + wrong <= op.near_m:
        return near
    return far if metres - wrong > op.near_m + op.margin_m else NOTHING


def _from_location(one: Item, other: Item, metres: float, coordinates: Coordinates) -> float:
    """How far the centre of one event is from the location of another, below 0 inside; in a plane."""
    where, place = geometry(other, coordinates), centre(one)
    assert where is not None
    assert place is not None
    if where.geom_type == "Point":
        return metres
    assert coordinates is Coordinates.PLANE
    border = [(x, y) for x, y in (where.exterior if where.geom_type == "Polygon" else where).coords]
    return signed_distance(place, border)


def _passed(op: Encounter, compared: Comparison, left: int, coordinates: Coordinates) -> bool:
    """Whether two movers were near each other on the way to their last samples, since they went apart."""
    moving, standing = compared.moving, compared.standing
    if len(moving) < 2 or moving[-1].end - moving[-2].end > op.fresh:
        return False
    before, now = moving[-2].end, moving[-1].end
    last = standing[-1].end
    times = [(max(before, last, left), now, True)]
    if len(standing) > 1 and last - standing[-2].end <= op.fresh:
        begin = max(before, standing[-2].end, left)
        times += [(begin, last, False)] if begin < last else []
    return any(_nearest(moving, standing, *piece, coordinates) <= op.near_m for piece in times)


def _nearest(
    moving: tuple[Item, ...],
    standing: tuple[Item, ...],
    begin: int,
    end: int,
    stands: bool,
    coordinates: Coordinates,
) -> float:
    """How near two come between two times."""
    first = _at(moving, begin, 0.0), _at(standing, begin, 1.0) if not stands else _place(standing[-1])
    last = _at(moving, end, 1.0), _at(standing, end, 1.0) if not stands else _place(standing[-1])
    scale = 1.0
    if coordinates is Coordinates.LONLAT:
        scale = math.cos(math.radians(_place(moving[-1])[1]))
    ax, ay = ((there - here) for there, here in zip(first[1], first[0], strict=True))
    bx, by = ((there - here) for there, here in zip(last[1], last[0], strict=True))
    ax, bx = ax * scale, bx * scale
    length = (bx - ax) ** 2 + (by - ay) ** 2
    share = 0.0 if length == 0 else -(ax * (bx - ax) + ay * (by - ay)) / length
    share = min(1.0, max(0.0, share))
    one, other = (_on_the_way(a, b, share) for a, b in zip(first, last, strict=True))
    return math.dist(one, other) if coordinates is Coordinates.PLANE else great_circle(*one, *other)


def _place(item: Item) -> Point:
    place = centre(item)
    assert place is not None
    return place


def _at(way: tuple[Item, ...], time: int, if_at_once: float) -> Point:
    """Where a mover was on its way between its last two samples."""
    (one, two), (begin, end) = (_place(way[-2]), _place(way[-1])), (way[-2].end, way[-1].end)
    return _on_the_way(one, two, if_at_once if begin == end else (time - begin) / (end - begin))


def _on_the_way(one: Point, two: Point, share: float) -> Point:
    return one[0] + share * (two[0] - one[0]), one[1] + share * (two[1] - one[1])


# What the comparisons say.


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


def _findings(op: Encounter, stretch: Stretch, streams: Streams, world: World) -> Iterator[Finding]:
    if op.verb is Meeting.APPROACHES:
        yield from _approaches(op, stretch)
    elif op.verb.waits:
        yield from _stays(op, stretch, streams, world)
    else:
        yield from _changes(op, stretch, world)


def _changes(op: Encounter, stretch: Stretch, world: World) -> Iterator[Finding]:
    side, since, entered, left = NOTHING, None, False, BEGINNING
    change: list[Comparison] = []
    for comparison in stretch.compared:
        said = comparison.says
        if op.between and side == OUT and _passed(op, comparison, left, world.coordinates):
            side, since, entered = IN, None, True
            if op.verb in (Meeting.COMES_WITHIN, Meeting.REACHES):
                yield comparison, None, None
        if side == NOTHING:
            side, since = said, comparison.time if said == IN else None
        elif said in (NOTHING, side):
            change = []
            since = comparison.time if said == IN and since is None else since
        else:
            change.append(comparison)
            waited = comparison.time - change[0].time
            if len(change) < op.settling.events or waited < op.settling.duration:
                continue
            if side == OUT:
                if op.verb in (Meeting.COMES_WITHIN, Meeting.REACHES):
                    yield comparison, None, None
                side, since, entered = IN, change[0].time, True
            else:
                if op.verb is Meeting.LEAVES or (op.verb is Meeting.CROSSES and entered):
                    yield comparison, None, since
                side, since, entered, left = OUT, None, False, comparison.time
            change = []


def _approaches(op: Encounter, stretch: Stretch) -> Iterator[Finding]:
    run: list[Comparison] = []
    told = False
    for comparison in stretch.compared:
        least = min((other.metres for other in run), default=-1.0)
        if not run or comparison.metres > least + op.margin_m or comparison.metres == run[0].metres:
            run, told = [comparison], False
        else:
            run.append(comparison)
        if not told and run[0].metres - comparison.metres >= op.by_m:
            told = True
            yield comparison, None, run[0].time


def _stays(op: Encounter, stretch: Stretch, streams: Streams, world: World) -> Iterator[Finding]:
    side = NOTHING
    for place, comparison in enumerate(stretch.compared):
        if comparison.says == IN and side != IN:
            rest = Stretch(stretch.compared[place:], stretch.ended)
            if _lasts(op, rest, streams, world):
                yield comparison, comparison.time + op.duration, comparison.time
        side = comparison.says if comparison.says != NOTHING else side


def _lasts(op: Encounter, rest: Stretch, streams: Streams, world: World) -> bool:
    """Whether the two that are in from the first of these on are so for long enough."""
    first = rest.compared[0]
    until = first.time + op.duration
    if rest.ended is not None and rest.ended <= until:
        return False
    later = [comparison for comparison in rest.compared if comparison.time <= until]
    if any(comparison.says == OUT for comparison in later):
        return False
    if until - later[-1].time > op.fresh:
        return False
    if op.verb is not Meeting.TRAVELS_WITH:
        return True
    began = ((first.one, op.input), (first.other, op.other))
    return all(_way(op, item, streams[name], until, world) > op.near_m for item, name in began)


def _way(op: Encounter, began: Item, stream: list[Item], until: int, world: World) -> float:
    """How far a mover is from where it was, at a later time."""
    mover = _mover(op, began)
    own = [i for i in stream if _mover(op, i) == mover and i.end <= until and centre(i) is not None]
    return apart(began, max(own, key=order), world.coordinates)
