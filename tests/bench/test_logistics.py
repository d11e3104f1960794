"""The benchmark of composite subscriptions: the scenario is as described, and what is missing is noticed."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def logistics(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCH)])
    for name in ("logistics", "measuring"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    loaded = __import__("logistics")
    for name in ("logistics", "measuring"):
        monkeypatch.delitem(sys.modules, name)
    return loaded


def test_the_scenario_has_as_many_subscriptions_events_and_detections_as_the_published_one(logistics):
    assert len(logistics.subscriptions(5)) == 15
    events = logistics.events(5, seed=1)
    assert events.num_rows == 60  # of 60,000 with 5,000 subscriptions of each kind
    assert sum(logistics.KINDS.values()) * 5 == 25
    assert Counter(events.column("type").to_pylist()) == {"truck": 40, "van": 20}
    assert "15 subscriptions, 60 events, 25 detections" in logistics.measure(5, seed=1)


def test_a_missing_detection_is_noticed(logistics):
    with pytest.raises(SystemExit, match=r"was detected 0 times, not [12] times"):
        logistics._check([], 1)
