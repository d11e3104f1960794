"""Many subscriptions to single events, matched at a cost that follows the matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.condition_index import ConditionIndex
from whimbrel.engine.packed_conditions import ClauseRows
from whimbrel.errors import DataError
from whimbrel.model.frames import EventTable, batches
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import Floats
from whimbrel.space.grid import Pairs
from whimbrel.space.places import Boxes, Circles, Place, PlaceSet, Polygons, one_place, polygons_of
from whimbrel.subscriptions.clauses import SubscriptionClauses, of_condition, of_text, of_type, of_values
from whimbrel.subscriptions.columns import read_batch, read_points
from whimbrel.subscriptions.names import GivenNames, Names, SubscriptionNames
from whimbrel.subscriptions.tables import read_rows

Where = str | Mapping[str, object]
"""Conditions in the Whimbrel language, or the values that attributes must have."""

_ROWS = 1 << 17
"""So many events are matched at once: their columns then stay in the processor's cache."""


class Subscriptions:
    """Live subscriptions, each a conjunction of conditions on one event, matched against batches of events.

    A subscription asks for a type, for attributes, for a place, or for any of them together. There may be
    millions; adding and removing them goes on between batches and never rebuilds anything.

    Parameters
    ----------
    coordinates
        "plane" (metres) or "lonlat" (degrees), for the places of subscriptions and of events alike.

    Examples
    --------
    >>> import whimbrel as wb
    >>> subs = wb.Subscriptions()
    >>> subs.add("near me", type="Taxi", where="state = 'free'", place=wb.circle(3, 4, 2000))
    >>> subs.add("fast", "Taxi(speed > 30)")
    >>> found = subs.match([{"type": "Taxi", "state": "free", "speed": 40, "x": 100, "y": 0}])
    >>> sorted(found["subscription"].to_pylist())
    ['fast', 'near me']
    """

    def __init__(self, coordinates: Coordinates | str = Coordinates.PLANE) -> None:
        try:
            self.coordinates = Coordinates(coordinates)
        except ValueError:
            raise DataError(f"{coordinates!r} are no coordinates; use 'plane' or 'lonlat'") from None
        self._names = SubscriptionNames()
        self._index = ConditionIndex(self.coordinates)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, subscription: object) -> bool:
        if not isinstance(subscription, str | int):
            return False
        return bool(self._names.find(GivenNames([subscription]))[0] >= 0)

    def __repr__(self) -> str:
        return f"<{len(self):,} subscriptions, coordinates {self.coordinates.value}>"

    @property
    def nbytes(self) -> int:
        """The memory that all subscriptions take."""
        return self._names.nbytes + self._index.nbytes

    def add(
        self,
        subscription: str | int,
        pattern: str | None = None,
        *,
        where: Where | None = None,
        type: str | None = None,
        place: Place | None = None,
    ) -> None:
        """Add a subscription.

        Parameters
        ----------
        subscription
            Its id: a text or a whole number; all ids are of one kind.
        pattern
            One event as the Whimbrel language writes it: `Taxi(state = 'free', this in box(0, 0, 9, 9))`.
        where
            Conditions in that language (`state = 'free' and speed > 30`), or a mapping of attributes to the
            values that they must have.
        type
            The type of the events; by default any.
        place
            `wb.circle(...)`, `wb.box(...)`, a Shapely polygon, WKT or WKB; borders count.

        Raises
        ------
        DataError
            If the id is taken, or the place is none.
        QueryError
            If the text cannot be read, or asks for more than a subscription can.
        """
        asked = self._asked(where, type)
        if pattern is not None:
            asked = of_text(pattern, self.coordinates).and_also(asked)
        if place is not None and asked.region is not None:
            raise DataError("a subscription has one place; leave out 'place', or the region in the text")
        place = asked.region if place is None else place
        self._add(GivenNames([subscription]), asked, None if place is None else one_place(place))

    def add_circles(
        self,
        ids: Names,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        radius_m: npt.ArrayLike,
        *,
        where: Where | None = None,
        type: str | None = None,
    ) -> None:
        """Add many subscriptions to circles at once: a centre and a radius each, or one radius for all."""
        given = GivenNames(ids)
        columns = (("x", x), ("y", y), ("radius_m", radius_m))
        places = Circles(*(_floats(what, values, len(given)) for what, values in columns))
        self._add(given, self._asked_of_all(where, type), places)

    def add_boxes(
        self, ids: Names, boxes: npt.ArrayLike, *, where: Where | None = None, type: str | None = None
    ) -> None:
        """Add many subscriptions to boxes: rows of least x, least y, largest x and largest y."""
        given = GivenNames(ids)
        rows = np.asarray(boxes, np.float64)
        if rows.shape != (len(given), 4):
            raise DataError(
                f"{len(given)} ids do not go with boxes of the shape {rows.shape}; give 4 numbers each"
            )
        self._add(given, self._asked_of_all(where, type), Boxes(rows))

    def add_polygons(
        self, ids: Names, polygons: Sequence[Place], *, where: Where | None = None,
        type: str | None = None,
    ) -> None:  # fmt: skip
        """Add many subscriptions to polygons: Shapely polygons, WKT or WKB."""
        given = GivenNames(ids)
        if len(polygons) != len(given):
            raise DataError(f"{len(given)} ids do not go with {len(polygons)} polygons; give one each")
        self._add(given, self._asked_of_all(where, type), Polygons(polygons_of(polygons)))

    def add_many(self, table: EventTable, *, where: Where | None = None, type: str | None = None) -> None:
        """Add the subscriptions of a table, one a row.

        The column `id` names them. Their places, if any, are in `geometry` (WKT or WKB), or in `x`, `y` (or
        `lon`, `lat`) and `radius_m`. Every other column, `type` among them, is an attribute that must be
        equal; where it is null, the subscription does not ask for it. `where` and `type` hold for all rows.

        Nothing is added if any row is wrong.
        """
        asked = self._asked_of_all(where, type)
        parts = [batch for batch in batches(table) if batch.num_rows]
        read = [read_rows(batch, self.coordinates) for batch in parts]
        given = [GivenNames(batch.column("id")) for batch in parts]
        if parts:
            self._names.check_new(GivenNames(pa.chunked_array([each.array for each in given])))
        for names, rows in zip(given, read, strict=True):
            if rows.places is not None:
                rows.places.check(self.coordinates, names.shown)
        for names, rows in zip(given, read, strict=True):
            self._add(names, asked, rows.places, rows.clauses)

    def remove(self, ids: Names) -> None:
        """Remove subscriptions, one or many.

        Raises
        ------
        DataError
            If there is no such subscription; then none is removed.
        """
        given = GivenNames(ids)
        numbers = self._names.find(given)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            raise DataError(f"there is no {given.shown(int(unknown[0]))}; nothing was removed")
        if len(given) > 1 and len(np.unique(numbers)) < len(numbers):
            raise DataError("a subscription is named twice; nothing was removed")
        self._index.remove(numbers)
        self._names.forget(numbers, given)

    def match(self, events: EventTable) -> pa.Table:
        """Find which events meet which subscriptions.

        Gives a table with the columns `event_row` (the row in `events`, from 0) and `subscription` (its id),
        in order of the rows; the subscriptions of one row come in no particular order.

        Parameters
        ----------
        events
            Any kind of table: Arrow, pandas, polars, a list of dicts. Of its columns `type`, the attributes
            and the location (`x` and `y`, `lon` and `lat`, or `geometry`) are read. An event without a
            location, or with one that is not finite or out of range, lies in no place; a polygon counts by
            its centre. A value of another type than the one asked for is not equal to it.
        """
        tables: list[pa.Table] = []
        first = 0
        for batch in batches(events, rows=_ROWS):
            rows, numbers = self._match(batch)
            event_rows = pa.array(rows.astype(np.int64) + first)
            tables.append(pa.table({"event_row": event_rows, "subscription": self._names.of(numbers)}))
            first += batch.num_rows
        if not tables:
            kind = pa.string() if self._names.is_text is not False else pa.int64()
            return pa.table({"event_row": pa.array([], pa.int64()), "subscription": pa.array([], kind)})
        return pa.concat_tables(tables)

    def _match(self, batch: pa.RecordBatch) -> Pairs:
        x, y = read_points(batch, self.coordinates)
        return self._index.match(read_batch(batch, self._index.wanted, x, y), x, y)

    def _asked(self, where: Where | None, event_type: str | None) -> SubscriptionClauses:
        asked = SubscriptionClauses() if event_type is None else of_type(event_type)
        if isinstance(where, str):
            return asked.and_also(of_condition(where, self.coordinates))
        return asked if where is None else asked.and_also(of_values(where))

    def _asked_of_all(self, where: Where | None, event_type: str | None) -> SubscriptionClauses:
        asked = self._asked(where, event_type)
        if asked.region is not None:
            raise DataError("each of these subscriptions has a place; leave the region out of 'where'")
        return asked

    def _add(
        self,
        given: GivenNames,
        asked: SubscriptionClauses,
        places: PlaceSet | None,
        own: ClauseRows | None = None,
    ) -> None:
        """Check everything, then add."""
        self._names.check_new(given)
        if places is not None:
            places.check(self.coordinates, given.shown)
        self._names.enter(self._index.add(len(given), asked.clauses, own, places), given)


def _floats(what: str, values: npt.ArrayLike, count: int) -> Floats:
    """Make a column of numbers, one for each subscription."""
    try:
        numbers = np.asarray(values, np.float64)
        return np.ascontiguousarray(np.broadcast_to(numbers, (count,)))
    except (ValueError, TypeError) as error:
        raise DataError(f"{what!r} must be {count} numbers, one for each id: {error}") from error
