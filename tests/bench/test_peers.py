"""The comparison with Flink: its events are as promised, and it notices every difference between matches."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import whimbrel as wb

PEERS = Path(__file__).parents[2] / "bench" / "peers"
MODULES = ("cases", "matches")


@pytest.fixture
def peers(monkeypatch):
    """The modules of the comparison, which are scripts next to each other."""
    monkeypatch.syspath_prepend(str(PEERS))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    loaded = {name: __import__(name) for name in MODULES}
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name)
    return SimpleNamespace(**loaded)


def short(peers, name):
    """A case over few objects' worth of time, and its events."""
    case = next(case for case in peers.cases.CASES if case.name == name)
    return case, peers.cases.make(case.stream, 20_000)


@pytest.mark.parametrize("name", ["sequence", "dense"])
def test_events_are_nearly_in_order_and_never_at_the_same_time(peers, name):
    _, (kinds, objects, times, values) = short(peers, name)
    by_object = np.argsort(objects, kind="stable")
    same_object = np.diff(objects[by_object]) == 0
    assert np.diff(times[by_object])[same_object].min() > 0
    behind = (np.maximum.accumulate(times) - times).max()
    assert 0 < behind < peers.cases.LATENESS
    assert len(kinds) == len(values) == 20_000


def test_times_of_one_object_are_moved_apart(peers):
    objects, times = np.array([0, 0, 0, 1, 1]), np.array([5, 5, 6, 5, 9])
    assert peers.cases._made_distinct(objects, times).tolist() == [5, 6, 7, 5, 9]


def in_plain_python(case, kinds, objects, times, values):
    """Find the matches of a case by trying all combinations of an object's events."""
    found = []
    for thing in np.unique(objects):
        rows = np.flatnonzero(objects == thing)
        a, b, c = (rows[kinds[rows] == kind] for kind in range(3))
        if case.pattern == "absence":
            found += [(x,) for x in a if not any(0 < times[y] - times[x] <= case.window for y in b)]
        else:
            found += [
                (x, y, z)
                for x, y, z in product(a, b, c)
                if times[x] < times[y] < times[z] <= times[x] + case.window and values[y] > values[x]
            ]
    return np.array(found)


@pytest.mark.parametrize("name", ["sequence", "dense", "absence"])
def test_whimbrel_finds_what_plain_python_finds(peers, name, tmp_path):
    import pyarrow.parquet as pq

    case, events = short(peers, name)
    made = peers.cases.files(case.stream, 20_000, tmp_path)
    detections = wb.detect(wb.compile(case.query), made.parquet)
    pq.write_table(detections.table, tmp_path / "found.parquet")
    reader = peers.matches.Reader.of(case, 20_000)
    found = reader.whimbrel(tmp_path / "found.parquet")
    expected = peers.matches.in_order(in_plain_python(case, *events))
    assert len(found) > 0
    peers.matches.check_same("Whimbrel", found, "plain Python", expected)


def test_every_form_holds_the_same_events(peers, tmp_path):
    import pyarrow.parquet as pq

    case, (_, objects, times, _) = short(peers, "sequence")
    made = peers.cases.files(case.stream, 20_000, tmp_path)
    whole, parts = pq.read_table(made.parquet), pq.read_table(made.parts)
    assert whole.equals(parts)
    assert made.binary.stat().st_size == 4 + 20_000 * (1 + 4 + 8 + 8)
    raw = made.binary.read_bytes()
    assert np.array_equal(np.frombuffer(raw, "<i4", 20_000, 4 + 20_000), objects)
    assert np.array_equal(np.frombuffer(raw, "<i8", 20_000, 4 + 5 * 20_000), times)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ([[1, 2, 3]], r"only us: 1, e.g. \[\(1, 2, 4\)\]"),
        ([[1, 2, 3], [1, 2, 4], [7, 8, 9]], r"only them: 1, e.g. \[\(7, 8, 9\)\]"),
        ([[1, 2, 3], [1, 2, 4], [1, 2, 4]], "more than once in them: 1"),
    ],
)
def test_different_matches_are_told(peers, other, said):
    ours = np.array([[1, 2, 3], [1, 2, 4]])
    with pytest.raises(peers.matches.Differ, match=said):
        peers.matches.check_same("us", ours, "them", np.array(other))


def test_the_order_of_matches_does_not_matter(peers):
    ours = peers.matches.in_order(np.array([[4, 5], [1, 9], [1, 2]]))
    peers.matches.check_same("us", ours, "them", np.array([[1, 2], [1, 9], [4, 5]]))


def test_a_stream_without_end_does_not_know_its_last_matches(peers):
    case = next(case for case in peers.cases.CASES if case.name == "absence")
    times = np.array([0, 10_000, 10_000 + case.window + peers.cases.LATENESS])
    reader = peers.matches.Reader(case, np.zeros(3), times)
    assert reader.known_at_end(np.array([[0], [1], [2]])).tolist() == [[0]]
