"""The experiments of MigCEP: plans carried out in the simulator, as they were expected to be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import sumo
from experiments.scenarios import simulate
from experiments.scenarios.driving import Town, movers_of
from experiments.scenarios.migcep import carry_out, friends_nearby, problems
from experiments.scenarios.migcep_rates import changing
from whimbrel.errors import MissingDependency, SimulationError
from whimbrel.plan.migration import coordinate, follow_greedily, stay

SMALL = {"graphs": 1, "seconds": 120.0, "vehicles": 60}


def town(seed=0, seconds=120.0, **more):
    given = {"brokers": "quad-tree", "mobility": "streets", "vehicles": 40}
    return Town(**{**given, **more}, seconds=seconds, seed=seed)


def test_planned_migrations_cost_less_than_none_and_what_was_estimated():
    results = simulate("migcep-state-size", {**SMALL, "states_b": (5_000.0,), "events_b": (250.0,)})
    measured = {row["way"]: row for row in results.rows}
    assert measured["planned"]["B s"] < measured["static"]["B s"] / 2
    assert measured["optimum"]["planned B s"] <= measured["planned"]["planned B s"] * (1 + 1e-9)
    for row in results.rows:
        # Movers change brokers between steps; plans know steps only.
        assert abs(row["B s"] - row["planned B s"]) < 0.02 * measured["static"]["B s"]


@given(st.integers(0, 2**16), st.sampled_from(["quad-tree", "flat"]), st.floats(0, 60_000))
@settings(max_examples=5)
def test_carrying_out_loses_and_duplicates_nothing(seed, brokers, state_b):
    made = town(seed, 60.0, brokers=brokers)
    (problem,) = problems(made, {"graphs": 1, "start": "random"}, 250.0, state_b)
    ways = (stay(problem), follow_greedily(problem), coordinate(problem, stay(problem)).hosts)
    arrived = []
    for hosts in ways:
        found = made.run(problem, hosts)
        assert not found.traffic.drops
        assert found.traffic.on_their_way == 0
        assert all(move.started_s is not None for move in found.moves)
        (delays,) = found.delays_s.values()
        arrived.append(len(delays))
    # Every event of both friends goes through two operators to the consumer, whoever migrates meanwhile.
    assert arrived == [120] * 3


def test_operators_begin_where_they_are_said_to():
    made = town()
    (group,) = made.groups(1)
    workload = friends_nearby(group, 50.0, 0.0)
    leaves = [made.first_leaf(name) for name in group]
    assert list(made.start(workload, "near", 0).values()) == leaves
    assert set(made.start(workload, "consumer", 0).values()) == {leaves[2]}
    drawn = [made.start(workload, "random", number) for number in range(20)]
    assert len({broker for start in drawn for broker in start.values()}) > 10
    with pytest.raises(SimulationError, match="none of random, near, consumer"):
        made.start(workload, "cloud", 0)


def test_movers_stand_before_and_after_their_way(tmp_path):
    file = tmp_path / "positions.csv"
    file.write_text("object_id,t,x,y\nbus,10,0,0\nbus,20,100,50\ntram,0,5,5\n")
    (bus, tram), area = movers_of(str(file), 9, 30.0, 0)
    assert bus.track == ((0.0, 0.0, 0.0), (10.0, 0.0, 0.0), (20.0, 100.0, 50.0), (30.0, 100.0, 50.0))
    assert tram.track[-1] == (30.0, 5.0, 5.0)
    assert area == (-1.0, -1.0, 101.0, 51.0)
    with pytest.raises(SimulationError, match="neither streets nor sumo"):
        movers_of("street", 9, 30.0, 0)
    with pytest.raises(SimulationError, match="did you mean 'quad-tree'"):
        town(brokers="quadtree")
    with pytest.raises(SimulationError, match="did you mean 'learned ws'"):
        simulate("migcep-uncertainty", {**SMALL, "lines": ("learned w",)})
    with pytest.raises(SimulationError, match="too few for operator graphs of 3"):
        town(mobility=str(file)).groups(1)


def test_who_lacks_sumo_is_told(monkeypatch):
    monkeypatch.setattr(
        sumo, "_run", lambda *_: (_ for _ in ()).throw(MissingDependency("eclipse-sumo", "x", "sumo"))
    )
    with pytest.raises(MissingDependency, match="eclipse-sumo"):
        simulate("migcep-state-size", {**SMALL, "mobility": "sumo"})


def test_places_go_along_within_the_area():
    made = town()
    (name,) = made.groups(1, 1)[0]
    parts = made.go_along(name, [(-1e6, 0.0), (10.0, 0.0)])
    tracks = [made.network.mover[part].track for part in parts]
    own = made.network.mover[name].track
    assert {x for _, x, _ in tracks[0]} == {made.area[0]}
    assert all(b[1] == min(a[1] + 10, made.area[2] - 1) for a, b in zip(own, tracks[1], strict=True))
    assert set(parts) <= set(made.truth)


def test_sizes_that_change_are_sent_and_counted():
    made = town()
    (problem,) = problems(made, {"graphs": 1, "start": "random"}, 100.0, 0.0)
    plain = carry_out(made, [problem], stay)["B s"]
    double = carry_out(made, [problem], stay, factors={"a": lambda _: 2.0, "b": lambda _: 2.0})["B s"]
    assert double == pytest.approx(2 * plain)
    factor = changing(5.0, 60.0, 1)
    assert factor(0.0) == factor(4.9) != factor(5.1)
    assert all(0.1 <= factor(time) <= 1.9 for time in range(60))


def test_knowing_more_costs_less():
    rows = simulate(
        "migcep-uncertainty",
        {**SMALL, "states_b": (0.0,), "ahead_s": 60.0, "lines": ("known", "learned ws")},
    ).rows
    cost = {row["line"]: row["planned B s"] for row in rows}
    assert cost["known"] < cost["learned ws"] < 2 * cost["greedy"]
