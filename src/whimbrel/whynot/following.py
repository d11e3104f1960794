"""Why somebody was told of a detection, or was not: for queries that follow something.

The plain query is explained as ever. Then the mobile query runs once more, and every interest that there was
is noted, with what it had. A detection that an object was not told of is held against its interests: where
they were, and from when to when they lasted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import event_ids
from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.following import Following
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.member_operators import known_of
from whimbrel.engine.mobile.reporting import places_of_atoms
from whimbrel.engine.mobile.telling import Telling
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array, decoded
from whimbrel.graph.expressions import format_expr
from whimbrel.graph.mobile import CircleInterest, MobileQuery
from whimbrel.graph.mobile.explaining import interest_words
from whimbrel.graph.mobile.knowing import is_behind
from whimbrel.graph.operators import Derive
from whimbrel.graph.query import Query
from whimbrel.graph.scope import selection
from whimbrel.model.schema import Coordinates, Value
from whimbrel.model.time import END_OF_TIME, format_duration
from whimbrel.model.words import many
from whimbrel.space.geometry import METRES_PER_DEGREE, distance_m
from whimbrel.whynot.asking import EngineView
from whimbrel.whynot.delivered import Delivered
from whimbrel.whynot.events import seen
from whimbrel.whynot.words import clock, listed

FOREVER = END_OF_TIME // 4
"""For how long a session remembers events that are to be explained."""


@dataclass
class NotedTelling:
    """Notes the interests of each step and what they have; tells what the way of telling behind it tells."""

    behind: Telling
    interests: dict[tuple[int, int], tuple[Interests, int]] = field(default_factory=dict)
    """By object and number: the interests of the last step that were about it, and its place among them."""
    had: list[tuple[Told, Interests]] = field(default_factory=list)

    @property
    def due(self) -> int:
        """When something is told even if nothing happens."""
        return self.behind.due

    def tell(self, had: list[Told], of: Interests, watermark: int) -> tuple[list[Told], Interests]:
        """Take note, and tell."""
        for place, which in enumerate(zip(of.obj.tolist(), of.number.tolist(), strict=True)):
            self.interests[which] = of, place
        self.had += [(each, of) for each in had if len(each)]
        return self.behind.tell(had, of, watermark)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what was told."""
        self.behind.save(blocks, name)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.behind.load(blocks, name)


class NotedRun:
    """A session that runs mobile queries, forgets no event, and notes every interest."""

    def __init__(self, query: Query, **settings: Any) -> None:
        self.session = Session(query, name="why", remember=FOREVER, **settings)
        self.batches: list[pa.RecordBatch] = []
        """All events, in the common form."""
        self.following: dict[str, Following] = {}
        self.noted: dict[str, NotedTelling] = {}
        for each in self.session.running.mobile("why").following:
            noted = NotedTelling(each.objects.telling)
            each.objects.telling = noted
            self.following[each.query.name], self.noted[each.query.name] = each, noted


@dataclass(frozen=True, slots=True)
class Found:
    """A detection of the plain query: when it is known, and where its events are."""

    definition: str
    view: EngineView
    stream: OperatorStream
    row: int
    known: int
    atoms: AtomPlaces
    """Of this detection alone; whose its events are by the numbers of `keys`."""
    keys: FocalKeys
    names: tuple[str, ...]
    """The ids of its events."""


def found_by(view: EngineView, query: MobileQuery) -> Iterator[Found]:
    """List the detections of the plain query that are asked about, the last ones of each definition."""
    graph = view.graph
    keys = FocalKeys(query.focal)
    for name in graph.outputs:
        made = graph[name]
        cases = [(case.input, case.partitioning) for case in made.cases] if isinstance(made, Derive) else []
        for stream_name, partitioning in cases:
            rows = view.rows_asked_for(stream_name, partitioning)[-view.limit :]
            stream = view.stream(stream_name)
            known = _known(view, stream, rows)
            lineage = stream.store.lineage(rows)
            places = places_of_atoms(view.watched.session.running.events, lineage, keys)
            ids = event_ids(view.context.atoms.store, lineage.refs).to_pylist()
            for number, row in enumerate(rows.tolist()):
                names = tuple(ids[lineage.offsets[number] : lineage.offsets[number + 1]])
                one = places.take(np.array([number]))
                yield Found(made.made_type or name, view, stream, row, int(known[number]), one, keys, names)


def _known(view: EngineView, stream: OperatorStream, rows: Int64Array) -> Int64Array:
    """Tell by when detections are known; of definitions over windows of other definitions, when they end."""
    maker, _ = selection(view.graph, stream.name)
    if isinstance(maker, Derive) and is_behind(view.graph, maker.name):
        return stream.store.spans(rows)[1]
    return known_of(view.graph, stream, rows)


def explain_deliveries(
    query: MobileQuery, run: NotedRun, view: EngineView, focal: Value | None
) -> tuple[Delivered, ...]:
    """Say of each detection that is asked about to whom it was told, and why not to others."""
    told = _Followed(query, run)
    objects = told.known_objects(view.limit) if focal is None else [focal]
    found = list(found_by(view, query))
    return tuple(told.explain(each, of) for of in objects for each in found)


class _Followed:
    """The interests that a mobile query had, and what each of them had."""

    def __init__(self, query: MobileQuery, run: NotedRun) -> None:
        self.query, self.run = query, run
        self.following, self.noted = run.following[query.name], run.noted[query.name]
        self.values = self.following.objects.keys.values()
        self.numbers = {str(value): number for number, value in enumerate(self.values)}
        self._had = self._what_was_had()

    def _what_was_had(self) -> dict[tuple[int, str, frozenset[str]], list[tuple[int, int]]]:
        """List for each object and detection the interests that had it, and by when it was known."""
        had: dict[tuple[int, str, frozenset[str]], list[tuple[int, int]]] = {}
        for told, of in self.noted.had:
            kinds = told.table.column("type").to_pylist()
            events = [frozenset(ids) for ids in told.table.column("events").to_pylist()]
            rows = zip(told.row.tolist(), told.interest.tolist(), told.known.tolist(), strict=True)
            for row, interest, known in rows:
                which = int(of.obj[interest]), kinds[row], events[row]
                had.setdefault(which, []).append((int(of.number[interest]), known))
        return had

    def known_objects(self, most: int) -> list[Value]:
        """List objects that had an interest."""
        numbers = sorted({obj for obj, _ in self.noted.interests})
        return [self.values[number] for number in numbers[:most]]

    def explain(self, found: Found, focal: Value) -> Delivered:
        """Explain one detection to one object."""
        obj = self.numbers.get(str(focal), -1)
        interests = _of_object(self.noted.interests, obj)
        kind, text = self._verdict(found, focal, obj, interests)
        event = seen(found.view.context, found.stream, found.row)
        return Delivered(self.query.name, self.query.focal.key, focal, found.definition, event, kind, text)

    def _verdict(self, found: Found, focal: Value, obj: int, interests: Interests | None) -> tuple[str, str]:
        had = self._had.get((obj, found.definition, frozenset(found.names)))
        if had and interests is not None:
            return "told", self._told(had, interests)
        if interests is None:
            return "unfollowed", self._unfollowed(focal)
        if self.query.excluding_itself and (own := _own_events(found, focal)):
            return "own", f"{listed(own)} came from it, and the query is excluding itself"
        in_time = (interests.start - interests.lifetime <= found.known) & (found.known < interests.end)
        inside = self._inside(found, interests)
        if not inside.any():
            return "away", self._away(found, interests, in_time)
        if not (in_time & inside).any():
            return self._at_another_time(found, interests, inside)
        number = int(interests.number[np.flatnonzero(in_time & inside)[0]])
        return "other", (
            f"its events lay in interest {number}, but what an interest has is found from the events in it "
            "alone, from its history on: there they gave another result, or none"
        )

    def _told(self, had: list[tuple[int, int]], interests: Interests) -> str:
        first, known = min(had)
        start = int(interests.start[interests.number == first][0])
        when = (
            f"live, at {clock(known)}"
            if known >= start
            else f"as history at {clock(start)}; it was known at {clock(known)}"
        )
        more = f"; {many(len(had) - 1, 'later interest')} had it, too" if len(had) > 1 else ""
        return f"told in interest {first}, {when}{more}"

    def _inside(self, found: Found, interests: Interests) -> np.ndarray:
        count = len(interests)
        if self.query.of_situations:
            return self._distances(found, interests).min(axis=1) <= 0
        copies = found.atoms.take(np.zeros(count, np.int64))
        inside: np.ndarray = copies.all_in(interests.areas, np.arange(count), None)
        return inside

    def _distances(self, found: Found, interests: Interests) -> np.ndarray:
        """Tell how far each event lies outside each interest, in metres; 0 inside."""
        coordinates = self.run.session.coordinates or Coordinates.PLANE
        x, y = found.atoms.x, found.atoms.y
        rows = [_outside_m(interests.areas, n, x, y, coordinates) for n in range(len(interests))]
        away = np.stack(rows)
        away[:, found.atoms.is_everywhere] = 0.0
        return np.where(np.isnan(away), np.inf, away)

    def _away(self, found: Found, interests: Interests, in_time: np.ndarray) -> str:
        """Say how far outside the nearest interest of the time in question the farthest event lay."""
        away = self._distances(found, interests)
        each = away.min(axis=1) if self.query.of_situations else away.max(axis=1)
        asked = in_time if in_time.any() else np.ones(len(interests), np.bool_)
        place = int(np.flatnonzero(asked)[np.argmin(each[asked])])
        when = f"interest {int(interests.number[place])}, from {clock(int(interests.start[place]))}"
        if not np.isfinite(each[place]):
            return f"it has no place, or the interest had none ({when})"
        event = int(np.argmin(away[place]) if self.query.of_situations else np.argmax(away[place]))
        name = found.names[event]
        radius = interests.areas.numbers[place, 2]
        if isinstance(self.query.interest, CircleInterest):
            lay = f"{name} lay {away[place, event] + radius:.0f} m from it, the interest was {radius:.0f} m"
        else:
            words = interest_words(self.query.interest)
            lay = f"{name} lay {away[place, event]:.0f} m outside the interest ({words})"
        return f"{lay} ({when})" + ("" if in_time.any() else f"; {self._no_interest(found, interests)}")

    def _no_interest(self, found: Found, interests: Interests) -> str:
        first, last = int(interests.start.min()), int(interests.end.max())
        if found.known < first:
            return f"it was known at {clock(found.known)}, the first interest began at {clock(first)}"
        if found.known >= last:
            return f"it was known at {clock(found.known)}, the last interest ended at {clock(last)}"
        return f"there was no interest at {clock(found.known)}, when it was known"

    def _at_another_time(self, found: Found, interests: Interests, inside: np.ndarray) -> tuple[str, str]:
        """Say that it lies in interests that were over, or too young to look back at it."""
        places = np.flatnonzero(inside)
        later = places[interests.start[places] > found.known]
        known = f"it was known at {clock(found.known)}"
        if len(later):
            place = int(later[0])
            start, lifetime = int(interests.start[place]), int(interests.lifetime[place])
            gap = format_duration(start - found.known)
            limit = f"the lifetime is {format_duration(lifetime)}" if lifetime else "there is no lifetime"
            number = int(interests.number[place])
            return "old", f"{known}, {gap} before interest {number} began at {clock(start)}; {limit}"
        place = int(places[-1])
        end, number = int(interests.end[place]), int(interests.number[place])
        return "ended", f"{known}; interest {number}, which it lies in, ended at {clock(end)}"

    def _unfollowed(self, focal: Value) -> str:
        """Say why an object had no interest: it said nothing, or the query does not follow it."""
        wanted = self.query.focal
        came = _updates_of(self.run.batches, wanted.type, wanted.key, focal)
        if not came:
            near = f"; there are {listed(map(str, self.values))}" if self.values else ""
            return f"no {wanted.type} with {wanted.key} = {focal} came{near}"
        many_came = f"{many(came, wanted.type)} of it came"
        if wanted.listed is not None and str(focal) not in {str(each.key) for each in wanted.listed}:
            return f"it is not followed: it is not in the list ({many_came})"
        if wanted.only is not None and str(focal) not in {str(each) for each in wanted.only}:
            return f"it is not followed: the query follows {listed(map(str, wanted.only))} ({many_came})"
        if wanted.condition is not None:
            condition = format_expr(wanted.condition)
            return f"it is not followed: {many_came}, but none with a place that meets {condition}"
        return f"it is not followed: {many_came}, but none has a place"


def _of_object(noted: Mapping[tuple[int, int], tuple[Interests, int]], obj: int) -> Interests | None:
    """Put the interests of an object together, in their order."""
    numbers = sorted(number for owner, number in noted if owner == obj)
    parts = [of.take(np.array([place])) for of, place in (noted[obj, number] for number in numbers)]
    return Interests.concat(parts) if parts else None


def _own_events(found: Found, focal: Value) -> Sequence[str]:
    values = [str(value) for value in found.keys.values()]
    if str(focal) not in values:
        return []
    own = np.flatnonzero(found.atoms.obj == values.index(str(focal)))
    return [found.names[place] for place in own.tolist()]


def _updates_of(batches: Sequence[pa.RecordBatch], event_type: str, key: str, focal: Value) -> int:
    """Count the events of the type of location updates that an object has sent."""
    count = 0
    for batch in batches:
        if key in batch.schema.names:
            kinds, keys = (decoded(batch.column(name)).cast(pa.string()) for name in ("type", key))
            same = pc.and_(pc.equal(kinds, event_type), pc.equal(keys, str(focal)))
            count += int(pc.sum(same).as_py() or 0)
    return count


def _outside_m(
    areas: AreaSet, place: int, x: np.ndarray, y: np.ndarray, coordinates: Coordinates
) -> np.ndarray:
    """Tell how many metres outside an area points lie; those of polygons are measured in its own plane."""
    import shapely

    one = areas.take(np.array([place]))
    shape = one.shapes()[0]
    if shape is None:
        centre_x, centre_y, radius, _ = one.numbers[0].tolist()
        away = distance_m(np.full(len(x), centre_x), np.full(len(x), centre_y), x, y, coordinates) - radius
        return np.maximum(away, 0.0)
    if coordinates is Coordinates.LONLAT:
        middle = shape.centroid
        scale = np.array([METRES_PER_DEGREE * np.cos(np.radians(middle.y)), METRES_PER_DEGREE])
        shape = shapely.transform(shape, lambda corners: (corners - [middle.x, middle.y]) * scale)
        x, y = ((x - middle.x + 180.0) % 360.0 - 180.0) * scale[0], (y - middle.y) * scale[1]
    distances: np.ndarray = shapely.distance(shape, shapely.points(x, y))
    return distances
