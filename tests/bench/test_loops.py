"""Loops in combinations: every way of finding their matches finds as many, and the table says so."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCH = Path(__file__).parents[2] / "bench"
MODULES = ("measuring", "workloads", "loops")


@pytest.fixture
def bench(monkeypatch):
    """The modules of the benchmark, which are scripts next to each other."""
    monkeypatch.syspath_prepend(str(BENCH))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    loaded = {name: __import__(name) for name in MODULES}
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name)
    return SimpleNamespace(**loaded)


@pytest.mark.parametrize("loop", [1, 2, 5, 8])
def test_all_ways_find_as_many_matches(bench, loop):
    events = bench.loops.loop_events(loop)
    assert {find(events) for find in bench.loops.WAYS.values()} == {2**loop - 1}


def test_forty_events_in_a_loop_are_counted(bench):
    assert bench.loops.counted(bench.loops.loop_events(40)) == 2**40 - 1


def test_a_process_of_its_own_measures(bench):
    cost = bench.loops.cost_of("plain", 5, 1)
    assert cost.matches == 31
    assert cost.seconds > 0


def test_loops_too_long_are_counted_only(bench, monkeypatch):
    def cost_of(how, loop, repeat):
        return bench.loops.Cost(
            2**loop - 1, {"counted": 0.001, "listed": 0.02, "plain": 0.01}[how], 5_000_000
        )

    monkeypatch.setattr(bench.loops, "cost_of", cost_of)
    lines = list(bench.loops.combinations(SimpleNamespace(repeat=1)))
    assert len(lines) == 7
    assert lines[5].startswith(
        "| (g) A, 20 x B in combinations, C: listed | 20.0 ms, 5 MB (1,048,575 matches) | 2.0 x"
    )
    assert "40 x B in combinations, C: counted (too many to list)" in lines[6]
    assert "1.0 x the time of 20 x B, for 1,048,577 x the matches" in lines[6]


def test_a_median_stops_when_it_has_taken_long_enough(bench):
    runs = []
    bench.measuring.median(lambda: runs.append(1), 5, patience_s=0)
    assert len(runs) == 1
    bench.measuring.median(lambda: runs.append(1), 5)
    assert len(runs) == 6
