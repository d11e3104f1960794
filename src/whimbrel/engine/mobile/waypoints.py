"""What interests need of earlier location updates: the route that an object said, or all that it said."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.mobile.updates import Updates
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import Int64Array, decoded, to_arrow
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import FunctionInterest
from whimbrel.model.schema import Coordinates, Type

Texts = npt.NDArray[np.object_]

MOST_SAMPLES = 1_000
"""So many location updates of an object are remembered for a function that makes its interests."""


class LastRoutes:
    """The route that each object said last."""

    def __init__(self, attribute: str, events: SourceEvents) -> None:
        self._attribute = attribute
        self._events = events
        self._last: Texts = np.zeros(0, np.object_)
        """By object; None where it never said any."""
        self._rows, self._known = NO_ROWS, self._last
        """The updates of this step, and the route that was known at each."""

    def take_in(self, updates: Updates) -> None:
        """Take note of the routes that some updates say, in order of time."""
        said = self._said(updates.row)
        size = int(updates.obj.max()) + 1 if len(updates) else 0
        if size > len(self._last):
            self._last = np.append(self._last, np.full(size - len(self._last), None))
        order = np.argsort(updates.obj, kind="stable")
        obj = updates.obj[order]
        first = np.ones(len(obj), np.bool_)
        first[1:] = obj[1:] != obj[:-1]
        places = np.arange(len(obj))
        there = np.array([text is not None for text in said[order]], np.bool_)
        # The last place of the same object at which anything was said.
        source = np.maximum.accumulate(np.where(there | first, places, 0))
        known = np.empty(len(obj), np.object_)
        known[order] = np.where(there[source], said[order][source], self._last[obj])
        last = order[np.append(first[1:], True)] if len(order) else order
        self._last[updates.obj[last]] = known[last]
        self._rows, self._known = updates.row, known

    def at(self, rows: Int64Array) -> Texts:
        """Give the route that was known at some updates of this step."""
        return self._known[np.searchsorted(self._rows, rows)]

    def _said(self, rows: Int64Array) -> Texts:
        column = self._events.stream.store.column(Attribute(None, self._attribute), rows)
        if column.type is not Type.STRING:
            return np.full(len(rows), None)
        texts = decoded(column.values).to_numpy(zero_copy_only=False)
        return np.asarray(np.where(column.nulls, None, texts), np.object_)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the routes."""
        blocks.put_json(name, self._last.tolist())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._last = np.array(blocks.json(name), np.object_)


class SamplesSoFar:
    """The location updates of each object so far, for a function that makes interests of them."""

    def __init__(self, events: SourceEvents) -> None:
        self._events = events
        self._of: dict[int, list[dict[str, Any]]] = {}

    def take_in(self, updates: Updates) -> None:
        """Add updates."""
        for obj, sample in zip(updates.obj.tolist(), self._read(updates), strict=True):
            so_far = self._of.setdefault(obj, [])
            so_far.append(sample)
            del so_far[:-MOST_SAMPLES]

    def _read(self, updates: Updates) -> list[dict[str, Any]]:
        store = self._events.stream.store
        columns: dict[str, pa.Array] = {
            name: to_arrow(store.column(Attribute(None, name), updates.row))
            for name in store.names()
            if not name.startswith("@") and name not in ("x", "y", "shape")
        }
        columns |= {"time": pa.array(updates.time), "x": pa.array(updates.x), "y": pa.array(updates.y)}
        return pa.table(columns).to_pylist()

    def shapes(
        self, interest: FunctionInterest, obj: Int64Array, time: Int64Array, coordinates: Coordinates
    ) -> list[Any]:
        """Call the function for some objects, each with what it said up to a time."""
        on_globe = coordinates is Coordinates.LONLAT
        return [
            interest.function([_on_globe(each) if on_globe else each for each in self._until(one, until)])
            for one, until in zip(obj.tolist(), time.tolist(), strict=True)
        ]

    def _until(self, obj: int, time: int) -> list[dict[str, Any]]:
        return [each for each in self._of.get(obj, []) if each["time"] <= time]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        blocks.put_json(name, [[obj, json.dumps(each, default=str)] for obj, each in self._of.items()])

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._of = {obj: json.loads(text) for obj, text in blocks.json(name)}


def _on_globe(sample: dict[str, Any]) -> dict[str, Any]:
    return {{"x": "lon", "y": "lat"}.get(name, name): value for name, value in sample.items()}
