"""Detections with the same times and type are told in the order of their events, then of their ids."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.engine.report import Ties

names = st.sampled_from(["a", "b", "ab", "b0", "ü", "z" * 9, *(f"e{n}" for n in range(20))])
detections = st.lists(
    st.tuples(st.integers(0, 2), st.lists(names, min_size=1, max_size=40), st.sampled_from("xyz")),
    min_size=1,
    max_size=30,
)


@given(detections)
def test_ties_are_settled_by_events_then_ids(rows):
    rows.sort(key=lambda row: row[0])
    table = pa.table({"events": [row[1] for row in rows], "id": [row[2] for row in rows]})
    kinds = np.array([row[0] for row in rows])
    tied = np.concatenate([[False], kinds[1:] == kinds[:-1]])
    order = Ties(table).settled(np.arange(len(rows)), tied)
    encoded = [(kind, [name.encode() for name in events], name) for kind, events, name in rows]
    assert [encoded[place] for place in order] == sorted(encoded)
