"""The benchmark of safe regions counts what it says, and stops where a report is missing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from whimbrel.safe_regions import SafeRegion

BENCH = Path(__file__).parents[2] / "bench"
SHAPES = {"yard": ("box", 10.0, -5.0, 20.0, 5.0)}
WALK = [[(float(x), 0.0) for x in range(30)]]


@pytest.fixture
def bench(monkeypatch) -> ModuleType:
    """The benchmark, which is a script."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "safe_regions", raising=False)
    loaded = __import__("safe_regions")
    yield loaded
    sys.modules.pop("safe_regions", None)


def test_what_is_reported_is_counted(bench):
    every = bench.count(bench.Variant("both"), SHAPES, WALK, "plane")
    # The first position, the 11 within the yard, and the first behind it.
    assert (every.positions, every.needed, every.reported, every.read) == (30, 11, 13, 30)
    changes = bench.count(bench.Variant("changes", mode="changes"), SHAPES, WALK, "plane", speed=1.0)
    # The first position, those on both borders, each of which has no region, and the first behind each.
    assert changes.reported == 5
    assert changes.read < 30


def test_a_missing_report_is_noticed(bench):
    class Careless(bench.Variant):
        def message(self, region: SafeRegion) -> bytes:
            return replace(region, rectangle=(-100.0, -100.0, 100.0, 100.0)).to_bytes()

    with pytest.raises(RuntimeError, match=r"missed \('yard',\) at \(10.0, 0.0\)"):
        bench.count(Careless("careless"), SHAPES, WALK, "plane")


def test_the_picture_shows_two_devices(bench):
    drawn = bench.picture()
    assert drawn == bench.PICTURE.read_text(encoding="utf-8")
