"""The benchmark of subscriptions: its scenarios are as described, and peers that disagree are noticed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.bench.loading import load


@pytest.fixture
def bench(monkeypatch):
    """The modules of the benchmark, which are scripts next to each other."""
    return load(monkeypatch, "subscriptions", "scenarios", "peers", "measuring", "run")


def steps_of(events, mover):
    """How far each mover goes from one of its events to the next, and in what time."""
    order = np.lexsort((events["time"].to_numpy(), mover))
    x, y, time = (events[name].to_numpy()[order] for name in ("x", "y", "time"))
    same = np.diff(mover[order]) == 0
    return np.hypot(np.diff(x), np.diff(y))[same], np.diff(time)[same]


def test_taxis_drive_on_and_half_of_their_events_concern_somebody(bench):
    subs, _, events = bench.run.taxi_subscriptions(1_000)
    met = len(set(subs.match(events)["event_row"].to_pylist())) / events.num_rows
    assert met == pytest.approx(0.5, abs=0.1)
    way, time = steps_of(events, events["id"].to_numpy())
    assert (way <= bench.scenarios.TAXI_SPEED * time + 1e-6).all()
    assert 1 / np.diff(events["time"].to_numpy()).mean() == pytest.approx(500, rel=0.05)


def test_users_walk_on_and_half_of_their_events_concern_somebody(bench):
    subs, _, events = bench.run.shop_subscriptions(1_000)
    met = len(set(subs.match(events)["event_row"].to_pylist())) / events.num_rows
    assert met == pytest.approx(0.5, abs=0.1)
    assert set(events["username"].to_pylist()) == {"a", "b", "c", "d", "e"}


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [False, True])
def test_subscriptions_find_what_the_tree_finds_before_and_after_changes(bench, skewed):
    options = SimpleNamespace(most=4_000, repeat=1)
    made = bench.scenarios.mixture(4_000, 3.0, skewed=skewed)
    assert bench.run.dense_line("all", made, options).startswith("| all | ")
    subs = bench.run.subscribed(made)
    assert len(bench.run.replace_some(subs, made, 100, 1_000)) == 4
    events = made.events(500, 9)
    before = set(map(tuple, bench.run.subscribed(made).match(events).to_pandas().to_numpy().tolist()))
    assert set(map(tuple, subs.match(events).to_pandas().to_numpy().tolist())) == before


def test_a_peer_that_finds_other_pairs_is_noticed(bench):
    subs, _, events = bench.run.taxi_subscriptions(50)
    options = SimpleNamespace(repeat=1)
    with pytest.raises(SystemExit, match="all: nobody finds other pairs"):
        bench.run.compared("all", subs, events, {"nobody": lambda: np.zeros((0, 2), int)}, options)


def test_every_measurement_gives_lines_of_the_table(bench, monkeypatch):
    monkeypatch.setattr(bench.run, "taxi_subscriptions", lambda count: bench_taxis(bench, count // 50))
    options = SimpleNamespace(most=2_000, repeat=1)
    for name in "acef":
        lines = list(bench.run.MEASUREMENTS[name](options))
        assert lines
        assert all(line.count("|") == 4 and line.startswith(f"| ({name}) ") for line in lines)


def bench_taxis(bench, count):
    scenario = bench.scenarios.taxis(count, 500)
    subs = bench.run.wb.Subscriptions()
    subs.add_circles(np.arange(count), scenario.x, scenario.y, bench.scenarios.TAXI_RADIUS_M)
    return subs, scenario, pa.table(scenario.events)
