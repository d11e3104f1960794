"""Detections on their way to those who follow objects: what tells them apart, and where their events are."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.identity import row_hashes
from whimbrel.engine.mobile.atom_places import AtomPlaces, places_of_events
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.row_store import Lineage, different
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.total_order import are_time_points
from whimbrel.engine.values import Int64Array, UInt64Array
from whimbrel.graph.expressions import Attribute


def detection_keys(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> UInt64Array:
    """Give each detection a number that tells it apart: its id, folded."""
    high, low = row_hashes(context, stream, rows)
    return high ^ ((low << np.uint64(1)) | (low >> np.uint64(63)))


def places_of_atoms(events: SourceEvents, lineage: Lineage, keys: FocalKeys | None) -> AtomPlaces:
    """Look up where the atomic events below some detections are.

    `keys` tells whose they are, where an object's own events do not count.
    """
    store = events.stream.store
    refs, inverse = different(lineage.refs)
    x, y, shape, shapes = places_of_events(events, refs)
    types = store.column(Attribute(None, "type"), refs)
    everywhere = np.zeros(len(refs), np.bool_) if types.type is None else are_time_points(types.values)
    obj = np.full(len(refs), -1, np.int64) if keys is None else keys.of_rows(events, refs)
    return AtomPlaces(
        lineage.offsets, x[inverse], y[inverse], everywhere[inverse], obj[inverse], shape[inverse], shapes
    )
