"""What `Motion` means, in plain Python, straight from docs/meaning.md. Regions are polygons without holes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from whimbrel.graph.operators.motion import MOTION, Motion, Verb

from .data import Item, Point, Timestamp, Value, order
from .expressions import World
from .functions import centre
from .streams import Streams, composite, partitioned

IN, OUT, NOTHING = "in", "out", "nothing"


@dataclass(frozen=True)
class Sample:
    item: Item
    time: int
    place: Point


@dataclass(frozen=True)
class Finding:
    """What was found: the events, the time that completed it, the values of `motion`, the region."""

    items: tuple[Item, ...]
    until: int | None
    values: dict[str, Value]
    region: int = 0


def moved(op: Motion, streams: Streams, world: World) -> list[Item]:
    found: list[Item] = []
    for group, (items,) in partitioned([streams[op.input]], op.partitioning):
        for finding in _findings(op, sorted(items, key=order)):
            about = composite(finding.items, {}, group, world)
            values = {name: value for name, value in finding.values.items() if value is not None}
            parts = {op.alias: finding.items[-1], MOTION: replace(about, attributes=values)}
            made = composite(finding.items, parts, group, world, finding.until)
            mark = (f"@{finding.region}",)
            made_id = world.identify(None, 0, tuple(item.id for item in finding.items) + mark)
            found.append(replace(made, id=made_id, maker=op.name, window=finding.region))
    return sorted(found, key=order)


def _findings(op: Motion, items: list[Item]) -> Iterator[Finding]:
    if op.verb is Verb.IS_SILENT:
        yield from _silences(op, items)
        return
    samples = [Sample(item, item.end, place) for item in items if (place := centre(item)) is not None]
    for stretch in _stretches(samples, op.gap):
        match op.verb:
            case Verb.STOPS:
                yield from _rests(op, stretch)
            case Verb.APPROACHES:
                yield from _approaches(op, stretch)
            case Verb.STAYS_OUTSIDE | Verb.STAYS_BEYOND:
                yield from _stays(op, stretch, [_says_outside(op, sample) for sample in stretch], 0)
            case Verb.STAYS_IN:
                for number in range(len(op.regions)):
                    yield from _stays(op, stretch, [_says(op, s, number) for s in stretch], number)
            case _:
                for number in range(len(op.regions)):
                    yield from _changes(op, stretch, number)


def _stretches(samples: list[Sample], gap: int) -> list[list[Sample]]:
    found: list[list[Sample]] = []
    for sample in samples:
        if found and sample.time - found[-1][-1].time <= gap:
            found[-1].append(sample)
        else:
            found.append([sample])
    return found


# Sides.


def _says(op: Motion, sample: Sample, number: int) -> str:
    away = signed_distance(sample.place, corners(op.regions[number].wkt))
    wrong = inaccuracy(sample.item, op.accuracy)
    if away + wrong <= op.near_m:
        return IN
    return OUT if away - wrong > op.near_m + op.margin_m else NOTHING


def inaccuracy(item: Item, attribute: str | None) -> float:
    """By how many metres a location may be wrong."""
    value = item.attributes.get(attribute) if attribute else None
    return max(float(value), 0.0) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _says_outside(op: Motion, sample: Sample) -> str:
    said = [_says(op, sample, number) for number in range(len(op.regions))]
    return OUT if IN in said else NOTHING if NOTHING in said else IN


def _changes(op: Motion, stretch: list[Sample], number: int) -> Iterator[Finding]:  # noqa: PLR0912 - as the page says it
    border = corners(op.regions[number].wkt)
    side, since, entered = NOTHING, None, False
    change: list[Sample] = []
    before: Sample | None = None
    last: Sample | None = None
    for sample in stretch:
        said = _says(op, sample, number)
        if op.between and side == OUT and last is not None and _share(last.place, sample.place, border):
            side, since, entered = IN, None, True
            if op.verb is Verb.ENTERS:
                yield _crossing(op, last, [sample], number, None)
        if side == NOTHING:
            side = said
            since = sample.time if said == IN else None
        elif said in (NOTHING, side):
            change = []
            if said == IN and since is None:
                since = sample.time
        else:
            if not change:
                before = last
            change.append(sample)
            if _has_settled(op, change):
                assert before is not None
                if side == OUT:
                    if op.verb in (Verb.ENTERS, Verb.REACHES, Verb.COMES_WITHIN):
                        yield _crossing(op, before, change, number, None)
                    side, since, entered = IN, change[0].time, True
                else:
                    if op.verb is Verb.LEAVES or (op.verb is Verb.CROSSES and entered):
                        yield _crossing(op, before, change, number, since)
                    side, since, entered = OUT, None, False
                change = []
        last = sample


def _has_settled(op: Motion, change: list[Sample]) -> bool:
    waited = change[-1].time - change[0].time
    return len(change) >= op.settling.events and waited >= op.settling.duration


def _crossing(op: Motion, before: Sample, change: list[Sample], number: int, since: int | None) -> Finding:
    first = change[0]
    values: dict[str, Value] = {"region": op.regions[number].name}
    if op.verb is not Verb.COMES_WITHIN:
        shares = _share(before.place, first.place, corners(op.regions[number].wkt))
        inward = op.verb in (Verb.ENTERS, Verb.REACHES)
        share = (min(shares) if inward else max(shares)) if shares else 1.0
        values["at"] = Timestamp(before.time + round(share * (first.time - before.time)))
        values["x"] = before.place[0] + share * (first.place[0] - before.place[0])
        values["y"] = before.place[1] + share * (first.place[1] - before.place[1])
    if since is not None:
        values["since"] = Timestamp(since)
    samples = [before, first, *([change[-1]] if len(change) > 1 else [])]
    return Finding(tuple(sample.item for sample in samples), None, values, number)


# What waits.


def _stays(op: Motion, stretch: list[Sample], said: list[str], number: int) -> Iterator[Finding]:
    side = NOTHING
    for place in range(len(stretch)):
        began = said[place] == IN and side != IN
        side = said[place] if said[place] != NOTHING else side
        if began:
            found = _lasting(op, stretch, place, [word != OUT for word in said])
            if found is not None:
                if op.verb is Verb.STAYS_IN:
                    found.values["region"] = op.regions[number].name
                yield replace(found, region=number)


def _rests(op: Motion, stretch: list[Sample]) -> Iterator[Finding]:
    began: Sample | None = None
    for place, sample in enumerate(stretch):
        if began is not None and math.dist(sample.place, began.place) <= op.near_m:
            continue
        began = sample
        near = [math.dist(other.place, sample.place) <= op.near_m for other in stretch]
        found = _lasting(op, stretch, place, near)
        if found is not None:
            yield found


def _lasting(op: Motion, stretch: list[Sample], place: int, still: list[bool]) -> Finding | None:
    """What began with the sample at a place, if it lasts long enough and another sample has seen it.

    `still` tells of every sample whether it lets the stay or rest go on.
    """
    sample = stretch[place]
    due = sample.time + op.duration
    second = next((s for s in range(place + 1, len(stretch)) if stretch[s].time > sample.time), None)
    if second is None:
        return None
    if stretch[second].time > due:
        until, later = stretch[second].time, list(range(place + 1, second + 1))
    else:
        until, later = due, [s for s in range(place + 1, len(stretch)) if stretch[s].time <= due]
    if not all(still[s] for s in later) or until - stretch[later[-1]].time > op.gap:
        return None
    return Finding((sample.item, stretch[second].item), until, {"since": Timestamp(sample.time)})


def _silences(op: Motion, items: list[Item]) -> Iterator[Finding]:
    for place, item in enumerate(items):
        until = item.end + op.duration
        if not any(other.end <= until for other in items[place + 1 :]):
            yield Finding((item,), until, {"since": Timestamp(item.end)})


def _approaches(op: Motion, stretch: list[Sample]) -> Iterator[Finding]:
    run: list[Sample] = []
    told = False
    for place, sample in enumerate(stretch):
        away = _nearest(op, sample)
        least = min((_nearest(op, other) for other in run), default=-1.0)
        if not run or away > least + op.margin_m or (op.margin_m == 0 and away >= least):
            run, told = [sample], False
        else:
            run.append(sample)
        if not told and _nearest(op, run[0]) - away >= op.by_m:
            told = True
            values: dict[str, Value] = {
                "region": op.regions[0].name, "since": Timestamp(run[0].time), "distance": away
            }  # fmt: skip
            yield Finding((stretch[place - 1].item, sample.item), None, values)


def _nearest(op: Motion, sample: Sample) -> float:
    return min(max(0.0, signed_distance(sample.place, corners(region.wkt))) for region in op.regions)


# Geometry.


@dataclass(frozen=True)
class Round:
    """A circle."""

    centre: Point
    radius: float


Border = list[Point] | Round


def corners(wkt: str) -> Border:
    """The corners of a polygon without holes, of which the last is the first again; or a circle."""
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", wkt)]
    if wkt.startswith("CIRCLE"):
        return Round((numbers[0], numbers[1]), numbers[2])
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _sides(border: list[Point]) -> list[tuple[Point, Point]]:
    return list(pairwise(border))


def signed_distance(place: Point, border: Border) -> float:
    if isinstance(border, Round):
        return math.dist(place, border.centre) - border.radius
    away = min(_distance(place, a, b) for a, b in _sides(border))
    return -away if away == 0 or _is_inside(place, border) else away


def _distance(p: Point, a: Point, b: Point) -> float:
    dx, dy = b[0] - a[0], b[1] - a[1]
    if dx == dy == 0:
        return math.dist(p, a)
    share = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / (dx * dx + dy * dy)
    share = min(1.0, max(0.0, share))
    return math.dist(p, (a[0] + share * dx, a[1] + share * dy))


def _is_inside(p: Point, border: list[Point]) -> bool:
    """Count how often a ray to the right crosses the border."""
    crossings = 0
    for (ax, ay), (bx, by) in _sides(border):
        if (ay > p[1]) != (by > p[1]) and p[0] < ax + (p[1] - ay) / (by - ay) * (bx - ax):
            crossings += 1
    return crossings % 2 == 1


def _share(a: Point, b: Point, border: Border) -> list[float]:
    """The shares of the way from a to b at which it meets the border, and its ends if they lie inside."""
    if a == b:
        return []
    if isinstance(border, Round):
        found = _crossings_of_circle(a, b, border)
    else:
        found = [share for c, d in _sides(border) for share in _crossings(a, b, c, d)]
    found += [0.0] if signed_distance(a, border) <= 0 else []
    found += [1.0] if signed_distance(b, border) <= 0 else []
    return found


def _crossings_of_circle(a: Point, b: Point, border: Round) -> list[float]:
    """Where the distance from the centre is the radius: an equation of the second degree."""
    px, py, dx, dy = a[0] - border.centre[0], a[1] - border.centre[1], b[0] - a[0], b[1] - a[1]
    square, half = dx * dx + dy * dy, px * dx + py * dy
    under = half * half - square * (px * px + py * py - border.radius * border.radius)
    if under < 0:
        return []
    shares = [(-half - math.sqrt(under)) / square, (-half + math.sqrt(under)) / square]
    return [share for share in shares if 0 <= share <= 1]


def _crossings(a: Point, b: Point, c: Point, d: Point) -> list[float]:
    """The shares of the way from a to b at which it meets the side from c to d."""
    abx, aby, cdx, cdy = b[0] - a[0], b[1] - a[1], d[0] - c[0], d[1] - c[1]
    cross = abx * cdy - aby * cdx
    acx, acy = c[0] - a[0], c[1] - a[1]
    if cross != 0:
        share, other = (acx * cdy - acy * cdx) / cross, (acx * aby - acy * abx) / cross
        return [share] if 0 <= share <= 1 and 0 <= other <= 1 else []
    length = abx * abx + aby * aby
    if length == 0 or acx * aby - acy * abx != 0:
        return []
    # They lie on one line: both ends of the side may lie on the way.
    along = [((p[0] - a[0]) * abx + (p[1] - a[1]) * aby) / length for p in (c, d)]
    if max(along) < 0 or min(along) > 1:
        return []
    return [min(1.0, max(0.0, share)) for share in along]
