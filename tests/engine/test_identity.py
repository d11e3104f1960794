"""What an event without an id says is one number, as the reference computes it."""

from __future__ import annotations

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.identity import content, made_ids

import whimbrel as wb
from whimbrel.engine.identity import attribute_hashes
from whimbrel.engine.session import Session
from whimbrel.errors import StateError
from whimbrel.sim.recordings import normalised

ALL = wb.compile("define D detect A")
KINDS = {
    "truth": (pa.bool_(), st.booleans()),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=80)),
    "coded": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "a", "long text " * 9])),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in KINDS.items()})


def events_of(data, **settings):
    return sorted(each for [each] in wb.detect(ALL, data, **settings).column("events").to_pylist())


@given(st.lists(ROW, min_size=1, max_size=6))
def test_attributes_are_hashed_as_the_reference_hashes_them(rows):
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in KINDS.items()}
    batch = pa.RecordBatch.from_pydict(arrays)
    assert attribute_hashes(batch).tolist() == [content(row) for row in rows]
    assert attribute_hashes(batch.slice(1)).tolist() == [content(row) for row in rows[1:]]


def test_neither_missing_columns_nor_their_order_change_the_id():
    row = {"type": "A", "time": 1, "v": 1, "w": 2.5}
    ids = [events_of([row]), events_of([dict(reversed(row.items()))]), events_of([row | {"k": None}])]
    assert ids[0] == ids[1] == ids[2]
    assert events_of([row | {"k": "x"}]) != ids[0]


def test_a_place_counts_alike_however_it_is_written():
    row = {"type": "A", "time": 1}
    ways = [
        row | {"x": 1, "y": 2},
        row | {"x": "1.0", "y": "2"},
        row | {"lon": 1.0, "lat": 2.0},
        row | {"geometry": "POINT (1 2)"},
        row | {"geometry": shapely.Point(1, 2).wkb},
    ]
    assert {name for way in ways for name in events_of([way])} == set(
        made_ids([{"type": "A", "start": 10**6, "end": 10**6, "x": 1, "y": 2}])
    )
    square = "POLYGON ((0 0, 1 0, 1 1, 0 0))"
    assert events_of([row | {"geometry": square}]) == events_of(
        [row | {"geometry": shapely.from_wkt(square).wkb}]
    )


def test_the_simulator_gives_events_the_ids_that_detection_gives_them():
    rows = [{"type": "A", "time": time, "v": v} for time, v in ((1, 1), (1, 2), (1, 1), (2, None))]
    assert sorted(normalised(ALL, rows).events.column("id").to_pylist()) == events_of(rows)


def test_events_with_made_ids_can_be_taken_back():
    session = wb.Session(ALL, remember="1 h")
    session.push([{"type": "A", "time": 1, "v": v} for v in (1, 2)])
    found = session.advance("1970-01-01T00:00:05Z").column("events").to_pylist()
    assert session.invalidate(found[0]).withdrawn.column("events").to_pylist() == [found[0]]


@pytest.mark.parametrize("older", [1, 2])
def test_a_snapshot_of_an_older_form_is_refused(older):
    snapshot = bytearray(wb.Session(ALL).snapshot())
    snapshot[6:8] = (older).to_bytes(2, "little")
    with pytest.raises(
        StateError, match=rf"version {older}; this Whimbrel reads version 3.*start again from the events"
    ):
        Session(ALL).restore(bytes(snapshot))
