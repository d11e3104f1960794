"""What a mobile query tells: every interest recomputed from scratch, from the plain query's reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from tests.reference.data import Detection, Event, Key, Value
from tests.reference.expressions import World
from tests.reference.functions import Place

from whimbrel.graph.functions import Function
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.model.schema import Coordinates

from .additional_time import additional_time
from .areas import lies_in, meets, same
from .knowing import Found, Known, found_among, run
from .query import MobileQuery
from .timelines import Interest, is_own, timelines


@dataclass(frozen=True, eq=False)
class Delivery:
    """What one focal object's consumer is told, once."""

    query: str
    focal: Value
    interest: int
    interest_start: int
    area: Place
    live: bool
    change: OneOf["added", "kept", "removed"]
    detection: Detection
    detection_id: str
    known: int
    """By which watermark the plain query knows the detection."""

    @property
    def id(self) -> str:
        """The delivery's own id: the same detection is delivered anew in each interest."""
        return f"{self.query}/{self.focal}/{self.interest_start}/{self.change}/{self.detection_id}"

    @property
    def told(self) -> tuple[Value, int, str, bool, str]:
        """What tells deliveries apart, to compare."""
        return self.focal, self.interest, self.change, self.live, self.detection_id


def deliveries(
    query: MobileQuery,
    events: Sequence[Event],
    functions: Mapping[str, Function] | None = None,
    *,
    limit: int = 200_000,
) -> list[Delivery]:
    """Give the deliveries of a bounded, clean input, object by object in spatio-temporal order."""
    coordinates = query.graph.coordinates or Coordinates.PLANE
    world = World(functions or {}, coordinates, limit=limit)
    everyone = timelines(query, events, world)
    told: list[Delivery] = []
    for interests in everyone:
        found = [(one, found_in(query, one, events, world, everyone)) for one in interests]
        told += _delivered(query, found)
    return told


def found_in(
    query: MobileQuery,
    interest: Interest,
    events: Sequence[Event],
    world: World,
    everyone: Sequence[Sequence[Interest]] = (),
) -> list[Found]:
    """E_i: what becomes known from s_i - lifetime on, and before the next switch."""
    if query.of == "situations":
        found = [
            each
            for each in found_among(query.graph, events, world)
            if meets(each.detection, interest.area, world.coordinates)
        ]
    else:
        found = _within(query, interest, _since(query, interest, everyone), events, world)
    since = interest.start - query.lifetime
    return [
        each for each in found if each.known >= since and (interest.end is None or each.known < interest.end)
    ]


def _since(query: MobileQuery, interest: Interest, everyone: Sequence[Sequence[Interest]]) -> int:
    """From when on, less the lifetime and the additional time, the run of an interest has its events.

    Its own start; with strong completeness, that of the first interest of an unbroken chain of interests in
    the same area, whoever has them: they share one run, which is kept for as long as one may look back.
    """
    if query.completeness != "strong":
        return interest.start
    kept = query.lifetime + max(additional_time(query.graph).values(), default=0)
    together = [one for line in everyone for one in line if same(one.area, interest.area)]
    since = interest.start
    while True:
        before = [one.start for one in together if one.start < since and _lasts(one, since - kept)]
        if not before:
            return since
        since = min(before)


def _lasts(interest: Interest, time: int) -> bool:
    return interest.end is None or time <= interest.end


def atoms_of(
    query: MobileQuery, interest: Interest, since: int, events: Sequence[Event], world: World
) -> list[Event]:
    """A_i: the events in the interest, from the initialization point of their type to the next switch."""
    back = additional_time(query.graph)
    return [
        event
        for event in events
        if _counts(query, interest, event, world)
        and since - query.lifetime - back.get(event.type, back.get("*", 0)) <= event.end
        and (interest.end is None or event.end < interest.end)
    ]


def _counts(query: MobileQuery, interest: Interest, event: Event, world: World) -> bool:
    """Whether an event lies in the interest, and is not the object's own if that excludes itself."""
    if query.excluding_itself and is_own(query, event, interest.samples[-1]):
        return False
    return lies_in(event, interest.area, world.coordinates)


def _within(
    query: MobileQuery, interest: Interest, since: int, events: Sequence[Event], world: World
) -> list[Found]:
    chosen = atoms_of(query, interest, since, events, world)
    motions = _motions(query, interest, events, world)
    return found_among(query.graph, chosen, world, motions)


def _motions(
    query: MobileQuery, interest: Interest, events: Sequence[Event], world: World
) -> dict[str, Known]:
    """Motions are those of movers wherever they go; an interest has those of which every event lies in it."""
    names = [each.name for each in query.graph.operators if isinstance(each, Motion | Encounter)]
    if not names or query.motion == "within the interest":
        return {}
    streams = run(query.graph, events, world)
    return {
        name: [
            (item, known)
            for item, known in streams[name]
            if all(_counts(query, interest, atom, world) for atom in item.atoms)
        ]
        for name in names
    }


# What is told of it.


def _delivered(query: MobileQuery, found: Sequence[tuple[Interest, list[Found]]]) -> list[Delivery]:
    told: list[Delivery] = []
    seen: dict[str, Found] = {}
    shown: dict[str, Found] = {}
    for number, (interest, here) in enumerate(found):
        now = {each.id: each for each in here}
        if query.deliver == "all":
            told += _in_order(query, interest, here)
        elif query.deliver == "new":
            told += _in_order(query, interest, [each for each in here if each.id not in seen])
        else:
            told += _changes(query, interest, shown, now)
            shown = now
            following = found[number + 1][0] if number + 1 < len(found) else None
            if interest.end is not None and (following is None or following.start > interest.end):
                told += [_delivery(query, interest, each, "removed") for each in _sorted(shown.values())]
                shown = {}
        seen |= now
    return told


def _changes(
    query: MobileQuery, interest: Interest, shown: Mapping[str, Found], now: Mapping[str, Found]
) -> list[Delivery]:
    gone = [each for name, each in shown.items() if name not in now]
    kept = [each for name, each in now.items() if name in shown]
    added = [each for name, each in now.items() if name not in shown]
    removed = [_delivery(query, interest, each, "removed") for each in _sorted(gone)]
    stayed = [_delivery(query, interest, each, "kept") for each in _sorted(kept)]
    return removed + stayed + _in_order(query, interest, added)


def _in_order(query: MobileQuery, interest: Interest, found: Sequence[Found]) -> list[Delivery]:
    return [_delivery(query, interest, each, "added") for each in _sorted(found)]


def _sorted(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=place_in_time)


def place_in_time(each: Found | Delivery) -> Key:
    """The order of time among what is told: when it is known, then the order of detections."""
    return each.known, *each.detection.sort_key


def _delivery(
    query: MobileQuery, interest: Interest, each: Found, change: OneOf["added", "kept", "removed"]
) -> Delivery:
    return Delivery(
        query=query.name,
        focal=interest.focal,
        interest=interest.number,
        interest_start=interest.start,
        area=interest.area,
        live=each.known >= interest.start,
        change=change,
        detection=each.detection,
        detection_id=each.id,
        known=each.known,
    )
