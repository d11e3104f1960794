"""What a session noticed about its input: which column was taken for what, and what looks like a mistake.

Nothing here changes a result. A warning is given only where the input makes sense in another reading, and
says the option with which it would be read that way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.errors import WhimbrelError
from whimbrel.graph.expressions import PLACE_RELATIONS, Call, Literal
from whimbrel.graph.operators import ANY, Graph
from whimbrel.graph.operators.motion import NamedRegion
from whimbrel.model._locations import SWAPPED
from whimbrel.model.batch import Normalised
from whimbrel.model.reading import NamedColumns, Reading, option
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import TIME_POINT, instant
from whimbrel.model.times import UNIT_NAMES

if TYPE_CHECKING:
    from whimbrel.engine.ingest import Counts

SHOWN_TYPES = 5
KEPT_TYPES = 1_000
_FIRST_YEAR = (instant(datetime(1970, 1, 1, tzinfo=UTC)), instant(datetime(1971, 1, 1, tzinfo=UTC)))

Box = tuple[float, float, float, float]
"""The least and largest longitude and latitude: west, south, east, north."""


class InputNotes:
    """What was noticed while events came in."""

    def __init__(self) -> None:
        self.columns: dict[str, str] = {}
        """The column that was taken for each role."""
        self.renamed: dict[str, str] = {}
        """What all names are taken from that are not those of their columns, attributes too, to be shown."""
        self.notes: list[str] = []
        self.types: set[str] = set()
        """Types of the events, some of them if there are many."""
        self.box: Box | None = None
        self.span: tuple[int, int] | None = None
        self.are_timestamps = False
        """Whether times came as timestamps, which somebody else has made."""
        self._type: str | None = None
        self._types: pa.Array | None = None
        """The types of the last batch."""
        self._has_types = False
        self._schema: pa.Schema | None = None
        """Of the last batch: what its columns were taken for is known."""

    def reading_for(self, reading: Reading, types: Collection[str]) -> Reading:
        """Add the types that queries read; a type that was taken once stays, whatever queries come later."""
        if reading.default_type is not None:
            return reading
        if self._type is not None:
            return replace(reading, default_type=self._type)
        return replace(reading, types=types_named(types))

    def see(self, raw: pa.RecordBatch, normalised: Normalised) -> None:
        """Look at a batch that came in, and at what became of it."""
        events = normalised.events
        is_new = self._schema is None or not raw.schema.equals(self._schema)
        if is_new or normalised.notes != normalised.named.notes:
            self.note(normalised)
            column = normalised.named.columns.get("time") or normalised.named.columns.get("end")
            if column is not None and column in raw.schema.names:
                self.are_timestamps |= pa.types.is_timestamp(raw.schema.field(column).type)
            self._schema = raw.schema if events.num_rows else None
        if events.num_rows:
            self._see_values(events, normalised.coordinates)

    def note(self, normalised: Normalised) -> None:
        """Take note of the names that columns were given."""
        self.take(normalised.named, normalised.notes)
        if "type" in normalised.named.columns:
            self._has_types = True
        elif normalised.events.num_rows and normalised.named.columns:
            self._type = self._type or normalised.events.column("type").dictionary[0].as_py()

    def take(self, named: NamedColumns, notes: Iterable[str]) -> None:
        """Take note of what columns were taken for, and of what else was taken on trust."""
        self.columns |= named.columns
        self.renamed |= named.shown()
        self.notes += [note for note in dict.fromkeys(notes) if note not in self.notes]

    def _see_values(self, events: pa.RecordBatch, coordinates: Coordinates | None) -> None:
        ends = events.column("end").to_numpy(zero_copy_only=False)
        least, most = (ends[0], ends[0]) if len(ends) == 1 else (ends.min(), ends.max())
        self._widen_span(int(least), int(most))
        if self._has_types and len(self.types) < KEPT_TYPES:
            types = events.column("type").dictionary.slice(0, KEPT_TYPES)
            if self._types is None or not types.equals(self._types):
                self.types.update(types.to_pylist())
                self._types = types
        if coordinates is Coordinates.LONLAT and "x" in events.schema.names:
            self._see_places(events)

    def _see_places(self, events: pa.RecordBatch) -> None:
        (west, east), (south, north) = (
            (bounds["min"], bounds["max"])
            for bounds in (pc.min_max(events.column(name)).as_py() for name in ("x", "y"))
        )
        if west is not None:
            self._widen_box(west, south, east, north)

    def _widen_span(self, least: int, most: int) -> None:
        old = self.span or (least, most)
        self.span = (min(old[0], least), max(old[1], most))

    def _widen_box(self, west: float, south: float, east: float, north: float) -> None:
        old = self.box or (west, south, east, north)
        self.box = (min(old[0], west), min(old[1], south), max(old[2], east), max(old[3], north))

    # -- between processes -------------------------------------------------------------------------------

    def seen(self) -> dict[str, Any]:
        """Collect what only the values of the events tell, as plain data: a worker sends it to the driver."""
        types = sorted(self.types)[:KEPT_TYPES]
        return {"types": types, "box": self.box, "span": self.span, "notes": self.notes}

    def take_seen(self, seen: Mapping[str, Any]) -> None:
        """Take note of what a worker has seen."""
        self.types |= set(seen["types"])
        if seen["span"] is not None:
            self._widen_span(*seen["span"])
        if seen["box"] is not None:
            self._widen_box(*seen["box"])
        self.notes += [note for note in seen["notes"] if note not in self.notes]

    # -- in words ----------------------------------------------------------------------------------------

    def lines(self) -> tuple[str, ...]:
        """Say what was taken for what."""
        named = ", ".join(f"{name} from {column}" for name, column in self.renamed.items())
        return ((f"columns: {named}",) if named else ()) + tuple(self.notes)

    def warnings(
        self, counts: Counts, graphs: Iterable[Graph], types: Collection[str], reading: Reading, found: int
    ) -> tuple[str, ...]:
        """Say what looks like a mistake, after `found` detections."""
        said = [
            *about_swapped_rows(counts.reasons),
            *about_repeated_ids(counts, self.columns.get("id")),
            *about_times_out_of_range(counts.reasons, reading),
            *self._about_time(reading),
        ]
        if not found:
            said += self._about_types(types)
        said += self._about_places(graphs)
        return tuple(said)

    def _about_time(self, reading: Reading) -> Iterator[str]:
        unit = reading.times.unit
        if self.span is None or not _FIRST_YEAR[0] <= self.span[0] <= self.span[1] < _FIRST_YEAR[1]:
            return
        if self.are_timestamps:
            yield (
                "all times lie in 1970: were numbers made into timestamps in a wrong unit? Give the numbers "
                "as they are, and say their unit with --time-unit"
            )
        elif unit not in (None, "s"):
            yield (
                f"all times lie in 1970: are the numbers no {UNIT_NAMES[unit]}? Leave --time-unit out to "
                "have the unit told by their size"
            )

    def _about_types(self, types: Collection[str]) -> Iterator[str]:
        read = types_named(types)
        if ANY in types or not self.types or not read or self.types & read:
            return
        values = sorted(self.types)
        some = ", ".join(values[:SHOWN_TYPES]) + (", ..." if len(values) > SHOWN_TYPES else "")
        one, column = min(read), self.columns.get("type", "type")
        yield (
            f"the query reads events of type {', '.join(sorted(read)[:SHOWN_TYPES])}, and column {column!r} "
            f"has none of them (it has {some}); if it says something else, give it another name and all "
            f"events one type: --column {one.lower()}_type={column} --type {one}"
        )

    def _about_places(self, graphs: Iterable[Graph]) -> Iterator[str]:
        boxes = [box for graph in graphs for box in region_boxes(graph)]
        if self.box is None or not boxes:
            return
        west, south, east, north = self.box
        swapped = (south, west, north, east)
        if not any(_meet(self.box, box) for box in boxes) and all(_meet(swapped, box) for box in boxes):
            lon, lat = self.columns.get("lon", "lon"), self.columns.get("lat", "lat")
            yield (
                "all regions of the query lie outside the data, and would lie inside if longitudes and "
                f"latitudes were swapped: --column lon={lat} --column lat={lon} swaps them"
            )


def types_named(types: Collection[str]) -> frozenset[str]:
    """Choose the types that events of an input can have: not the time points, nor the sign for all."""
    return frozenset(name for name in types if name != ANY and not name.startswith(TIME_POINT))


def about_swapped_rows(reasons: Mapping[str, int]) -> Iterator[str]:
    """Say how to swap coordinates, where rows were rejected that would fit the other way round."""
    rows = sum(count for reason, count in reasons.items() if SWAPPED in reason)
    if rows:
        were = "row was" if rows == 1 else "rows were"
        yield (
            f"{rows:,} {were} rejected whose longitude and latitude look swapped: --column lon=lat --column "
            "lat=lon swaps them (with the names of your columns)"
        )


def about_repeated_ids(counts: Counts, column: str | None) -> Iterator[str]:
    """Say what to do where the ids are those of the movers."""
    if column is not None and counts.duplicate > counts.processed and counts.duplicate > 1:
        yield (
            f"most events repeat an id: does column {column!r} name who moves, and not the event? Then say "
            f"{option('source', column)}"
        )


def about_times_out_of_range(reasons: Mapping[str, int], reading: Reading) -> Iterator[str]:
    """Say what to do where the unit makes times lie outside all years."""
    kinds = ("time is out of range", "start is out of range", "end is out of range")
    rows = sum(count for reason, count in reasons.items() if reason.startswith(kinds))
    if rows and reading.times.unit is not None:
        yield (
            f"{rows:,} rows were rejected because their time lies outside the years 1 to 9999 if it is in "
            f"{UNIT_NAMES[reading.times.unit]}; leave --time-unit out to have the unit told by their size"
        )


def _meet(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def region_boxes(graph: Graph) -> list[Box]:
    """Find the boxes around the fixed regions that a graph asks about."""
    from whimbrel.space.geometry import as_circle, circle_box, parse

    boxes = []
    for text in dict.fromkeys(text for operator in graph.operators for text in _regions(operator)):
        try:
            circle = as_circle(text)
            box = circle_box(circle, Coordinates.LONLAT) if circle is not None else parse(text).bounds
        except (WhimbrelError, ValueError):
            continue
        if np.isfinite(box).all():
            boxes.append(tuple(box))
    return boxes


def _regions(part: Any) -> Iterator[str]:
    """Find the texts of regions anywhere in an operator."""
    if isinstance(part, NamedRegion):
        yield part.wkt
    elif isinstance(part, Call) and part.function in PLACE_RELATIONS:
        for argument in part.arguments:
            if isinstance(argument, Literal) and isinstance(argument.value, str):
                yield argument.value
    elif isinstance(part, tuple):
        for inner in part:
            yield from _regions(inner)
    if is_dataclass(part) and not isinstance(part, type):
        for inner in fields(part):
            value = getattr(part, inner.name)
            if isinstance(value, tuple) or is_dataclass(value):
                yield from _regions(value)
