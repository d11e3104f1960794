"""What a class declares as its state comes back from a snapshot as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import whimbrel as wb
from whimbrel.engine.interner import Interner
from whimbrel.engine.operators.registry import KINDS
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import StateError


class Table(NamedTuple):
    ints: np.ndarray
    floats: np.ndarray


@dataclass(frozen=True, slots=True)
class Times:
    start: np.ndarray
    end: np.ndarray


class Counting(SavedState):
    state = ("many", "table", "times", "codes", "number")

    def __init__(self) -> None:
        self.many = np.zeros(8, np.int64)
        self.table = Table(np.zeros((0, 2), np.int64), np.zeros((0, 1)))
        self.times = Times(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self.codes = Interner()
        self.number = 0
        self.used = 0

    def in_use(self, attribute):
        return self.many[: self.used] if attribute == "many" else super().in_use(attribute)

    def loaded(self):
        self.used = len(self.many)


def test_declared_state_comes_back():
    one, other = Counting(), Counting()
    one.many[:3], one.used = [5, 6, 7], 3
    one.table = Table(np.arange(4).reshape(2, 2), np.ones((2, 1)))
    one.times = Times(np.array([1]), np.array([2]))
    one.codes.restore(["a", ["b", 1]])
    one.number = 41
    blocks = Blocks()
    one.save(blocks, "it")
    other.load(Blocks.from_bytes(blocks.to_bytes()), "it")
    assert other.many.tolist() == [5, 6, 7]
    assert other.used == 3
    assert other.table.ints.tolist() == [[0, 1], [2, 3]]
    assert other.times.end.tolist() == [2]
    assert other.codes.values() == ["a", ("b", 1)]
    assert other.number == 41


def test_every_kind_of_operator_declares_state_that_it_has():
    for running in KINDS.values():
        assert len(set(running.state)) == len(running.state), running


def test_every_nth_event_is_counted_across_a_snapshot():
    query = wb.compile(
        "define D over 2 events every 3 events within 1 h detect A assign n = count(A) group by source"
    )
    events = [{"type": "A", "time": n, "source": "ab"[n % 2]} for n in range(24)]
    whole, half = wb.Session(query), wb.Session(query)
    expected = whole.push(events).num_rows + whole.close().num_rows
    found = half.push(events[:9]).num_rows
    other = wb.Session(query)
    other.restore(half.snapshot())
    found += other.push(events[9:]).num_rows + other.close().num_rows
    assert found == expected == 8


def test_large_blocks_are_kept_apart_and_named_by_what_they_hold():
    blocks = Blocks()
    blocks.put_array("large", np.arange(1000))
    blocks.put_array("again", np.arange(1000))
    blocks.put_json("small", [1, 2])
    head, apart = blocks.parted(least=4096)
    assert [len(content) for content in apart.values()] == [8000]
    assert len(head) < 1000
    read = Blocks.from_bytes(head, apart.__getitem__)
    assert (read.array("large") == np.arange(1000)).all()
    assert (read.array("again") == np.arange(1000)).all()
    assert read.json("small") == [1, 2]
    with pytest.raises(StateError, match="is elsewhere"):
        Blocks.from_bytes(head)


def test_old_history_is_written_in_the_same_blocks_as_before():
    query = wb.compile(
        "define Many(n) over 9 s every 3 s detect Car assign n = count(Car) "
        "around Bus within 100 m report Many lifetime 1 h"
    )
    session = wb.Session(query)
    rows = [
        {"type": "Car", "time": n // 100, "source": f"car{n % 50}", "x": n * 7 % 1000, "y": n * 3 % 500}
        for n in range(42_000)
    ]
    for first in range(0, 40_000, 1000):
        session.push(rows[first : first + 1000])
    before = session.state().parted(1 << 14)[1]
    session.push(rows[40_000:41_000])
    head, apart = session.state().parted(1 << 14)
    whole = len(head) + sum(map(len, apart.values()))
    written = len(head) + sum(len(apart[name]) for name in apart.keys() - before.keys())
    assert whole > 2_000_000
    assert written < whole / 4
    other = wb.Session(query)
    other.take_up(Blocks.from_bytes(head, apart.__getitem__))
    bus = {"type": "Bus", "time": 410, "source": "bus", "x": 500, "y": 250}
    rest = [*rows[41_000:], bus]
    found = [
        pa.concat_tables([each.push(rest), each.close()], promote_options="permissive")
        for each in (session, other)
    ]
    assert found[0].num_rows > 100
    assert found[0].equals(found[1])
