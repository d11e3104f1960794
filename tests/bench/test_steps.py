"""Patterns of steps against Flink: Whimbrel finds what plain Python finds, and nothing is misread."""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

PEERS = Path(__file__).parents[2] / "bench" / "peers"
TOOLS = Path(__file__).parents[2] / "tools" / "flink"
MODULES = ("cases", "steps", "matches")
IN_PLAIN_PYTHON = [
    "steps-strict",
    "steps-relaxed",
    "steps-any",
    "steps-greedy",
    "steps-combinations",
    "steps-absence",
]
NUMBER = 50_000


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


def case_of(peers, name):
    return next(case for case in peers.steps.STEPS_CASES if case.name == name)


class OneObject:
    """The events of one object, and what plain Python finds in them: the rows that each step took."""

    def __init__(self, within, rows, kinds, times, values):
        self.within, self.rows = within, rows
        self.kinds, self.times, self.values = kinds[rows], times[rows], values[rows]

    def all_of(self, kind, after=-1):
        return [n for n in range(after + 1, len(self.rows)) if self.kinds[n] == "ABC".index(kind)]

    def next_of(self, kind, after):
        return next(iter(self.all_of(kind, after)), None)

    def in_time(self, match):
        taken = [n for step in match for n in step]
        return self.times[max(taken)] - self.times[min(taken)] < self.within

    def found(self, name):
        matches = getattr(self, name.replace("-", "_"))()
        return [tuple(tuple(self.rows[list(step)]) for step in m) for m in matches if self.in_time(m)]

    def steps_strict(self):
        wanted = [0, 1, 2]
        starts = [n for n in range(len(self.rows) - 2) if self.kinds[n : n + 3].tolist() == wanted]
        return [((n,), (n + 1,), (n + 2,)) for n in starts]

    def steps_relaxed(self):
        for a in self.all_of("A"):
            if (b := self.next_of("B", a)) is not None and (c := self.next_of("C", b)) is not None:
                yield (a,), (b,), (c,)

    def steps_any(self):
        for a in self.all_of("A"):
            for b in self.all_of("B", a):
                if self.values[b] > self.values[a]:
                    yield from (((a,), (b,), (c,)) for c in self.all_of("C", b))

    def steps_greedy(self):
        end = -1
        for a in self.all_of("A"):
            first = self.next_of("B", a)
            c = None if first is None else self.next_of("C", first)
            if a > end and c is not None:
                match = (a,), tuple(b for b in self.all_of("B", a) if b < c), (c,)
                if self.in_time(match):
                    end = c
                    yield match

    def steps_combinations(self):
        for a in self.all_of("A"):
            near = [b for b in self.all_of("B", a) if self.times[b] - self.times[a] < self.within]
            for bs in (bs for size in (2, 3, 4) for bs in combinations(near, size)):
                if (c := self.next_of("C", bs[-1])) is not None:
                    yield (a,), bs, (c,)

    def steps_absence(self):
        for a in self.all_of("A"):
            b = self.next_of("B", a)
            if b is not None:
                c = self.next_of("C", b)
                if c is None or self.times[c] - self.times[a] >= self.within:
                    yield (a,), (b,)


def detected(peers, case, folder):
    """What Whimbrel finds in all events of a case, as a reader gives it."""
    made = peers.cases.files(case.stream, NUMBER, folder)
    detections = wb.detect(case.compiled(), made.parquet)
    pq.write_table(detections.select(case.kept(detections.column_names)), folder / "found.parquet")
    return peers.matches.reader_of(case, NUMBER).whimbrel(folder / "found.parquet")


def as_lines(peers, matches):
    """What a reader makes of the matches."""
    lines = [[number for step in match for number in (len(step), *step)] for match in matches]
    lengths = np.array([len(line) for line in lines])
    numbers = np.array([number for line in lines for number in line])
    return peers.matches.each_once(numbers, np.cumsum(lengths) - lengths, lengths)


@pytest.mark.parametrize("name", IN_PLAIN_PYTHON)
def test_whimbrel_finds_what_plain_python_finds(peers, name, tmp_path):
    case = case_of(peers, name)
    kinds, objects, times, values = peers.cases.make(case.stream, NUMBER)
    expected = []
    by_object = np.argsort(objects, kind="stable")
    for every in np.split(by_object, np.flatnonzero(np.diff(objects[by_object])) + 1):
        rows = every[kinds[every] < len("ABC")]
        expected += OneObject(case.document["within"]["ms"], rows, kinds, times, values).found(name)
    assert len(expected) > 0
    peers.matches.check_same(
        "Whimbrel", detected(peers, case, tmp_path), "plain Python", as_lines(peers, expected)
    )


def test_whimbrel_finds_what_flink_finds_for_a_group_that_repeats(peers, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    oracle = pytest.importorskip("oracle", reason="tools/flink is not here")
    if lacking := oracle.missing():
        pytest.skip(lacking)
    case = case_of(peers, "steps-group")
    kinds, objects, times, _ = peers.cases.make(case.stream, NUMBER)
    rows = np.flatnonzero(objects < 500)
    events = [
        {
            "id": str(row),
            "type": "ABC"[kinds[row]],
            "time": int(times[row]),
            "attributes": {"source": int(objects[row])},
        }
        for row in rows
    ]
    with oracle.Oracle(patience_s=120) as flink:
        answer = flink.answer(case.document, events)
    assert answer["error"] is None
    expected = [tuple(tuple(map(int, match["steps"][name])) for name in "abc") for match in answer["matches"]]
    found = detected(peers, case, tmp_path)
    assert len(expected) > 0
    of_these = found[np.isin(found[:, 1], rows)]  # the first row that step a took
    peers.matches.check_same("Whimbrel", of_these, "Flink", as_lines(peers, expected))


def test_every_case_is_tested(peers):
    assert [case.name for case in peers.steps.STEPS_CASES] == [*IN_PLAIN_PYTHON, "steps-group"]


def test_both_forms_of_a_match_are_read_as_the_same(peers, tmp_path):
    case = case_of(peers, "steps-greedy")
    reader = peers.matches.reader_of(case, 100)
    columns = {"a": [["7"], ["1"]], "b": [["8", "9"], ["2"]], "c": [["11"], ["3"]]}
    pq.write_table(pa.table(columns), tmp_path / "ours.parquet")
    told_twice = [7, 1, 7, 2, 8, 9, 1, 11, 6, 1, 1, 1, 2, 1, 3, 6, 1, 1, 1, 2, 1, 3]
    np.array(told_twice, ">i4").tofile(tmp_path / "theirs")
    expected = [[1, 1, 1, 2, 1, 3, -1], [1, 7, 2, 8, 9, 1, 11]]
    assert reader.whimbrel(tmp_path / "ours.parquet").tolist() == expected
    assert reader.flink(tmp_path / "theirs").tolist() == expected


def test_an_event_of_another_step_is_another_match(peers):
    ours, theirs = as_lines(peers, [((1,), (2, 3))]), as_lines(peers, [((1, 2), (3,))])
    with pytest.raises(peers.matches.Differ, match="only us: 1"):
        peers.matches.check_same("us", ours, "them", theirs)


def test_a_longer_match_does_not_make_the_others_differ(peers):
    ours, theirs = as_lines(peers, [((1,), (2,)), ((1,), (2, 3))]), as_lines(peers, [((1,), (2,))])
    with pytest.raises(peers.matches.Differ, match=r"only us: 1, e.g. \[\(1, 1, 2, 2, 3\)\]"):
        peers.matches.check_same("us", ours, "them", theirs)


def test_no_matches_are_read_as_none(peers, tmp_path):
    case = case_of(peers, "steps-strict")
    np.array([], ">i4").tofile(tmp_path / "theirs")
    none = pa.table({name: pa.array([], pa.list_(pa.string())) for name in "abc"})
    pq.write_table(none, tmp_path / "ours.parquet")
    reader = peers.matches.reader_of(case, 100)
    assert len(reader.flink(tmp_path / "theirs")) == len(reader.whimbrel(tmp_path / "ours.parquet")) == 0
    peers.matches.check_same(
        "us", reader.whimbrel(tmp_path / "ours.parquet"), "them", reader.flink(tmp_path / "theirs")
    )


@pytest.mark.skipif(not TOOLS.exists(), reason="tools/flink is not here")
def test_flink_is_given_the_same_pattern_with_trees_for_conditions(peers, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    case = case_of(peers, "steps-any")
    words = case.asked_of_flink(tmp_path).split()
    asked = json.loads(Path(words[0]).read_text())
    tree = asked["pattern"]["steps"][1].pop("condition")
    assert tree == {"op": ">", "args": [{"attr": "value"}, {"agg": "first", "step": "a", "attr": "value"}]}
    said = json.loads(json.dumps(case.document))
    assert said["steps"][1].pop("condition") == "value > first(a.value)"
    assert asked["pattern"] == said
    assert asked["steps"] == ["a", "b", "c"]


def test_a_step_that_must_not_come_takes_nothing(peers):
    assert case_of(peers, "steps-absence").steps == ["a", "b"]
    assert case_of(peers, "steps-group").steps == ["a", "b", "c"]


def test_a_case_takes_no_more_events_than_flink_does_in_time(peers):
    case = case_of(peers, "steps-group")
    assert case.number_of(1_000) == 1_000
    assert case.number_of(10**9) == case.most_events
