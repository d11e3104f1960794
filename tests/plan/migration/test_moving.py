"""Plans whose hosts change over time: valid, never dearer than staying, told in words."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.worlds import random_network, random_workload

import whimbrel as wb
from whimbrel.backtesting.measure import measure
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import read_network
from whimbrel.plan.migration.planner import plan_along_tracks
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.plan import Plan
from whimbrel.plan.planners import plan_exact, planner_named
from whimbrel.plan.settings import MigrationSettings, Movement
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLE = Path(__file__).parents[3] / "examples" / "planning"
FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))


@pytest.fixture(scope="module")
def ferry():
    query, network = wb.read(EXAMPLE / "ferry.wbl"), read_network(EXAMPLE / "strait.yaml")
    return workload_of(query, network, measure(query, EXAMPLE / "ferry.csv")), network


def bus(state_b: float = 0.0, latency_s: float = float("inf")) -> tuple[Workload, Network]:
    """A bus that goes from one area to the other in the middle of a minute."""
    brokers = (Broker("west", area=(0, 0, 5, 1)), Broker("east", area=(5, 0, 10, 1)))
    network = Network(
        brokers,
        (Link("west", "east", bandwidth_b_s=1000, latency_s=1),),
        movers=(Mover("bus", ((0, 0, 0.5), (60, 10, 0.5))),),
    )
    task = Task("Near", ("position",), 1, 1, fixed_b=state_b)
    workload = Workload((Feed("position", 1, 10, "bus"),), (task,), (Delivery("Near", "bus", latency_s),))
    return workload, network


def test_a_task_follows_its_mover_where_that_pays():
    plan = plan_along_tracks(*bus())
    assert plan.horizon is not None
    assert plan.hosts == {"Near": ((0.0, "west"), (30.0, "east"))}
    assert plan.costs.total.bdp_b == 0
    assert plan.compared_plans[0].costs.total.bdp_b == pytest.approx(11 / 2)


def test_a_task_stays_where_its_state_is_dearer_than_the_way():
    # Half a minute at 11 bytes a second, a second away, are 330 byte seconds: as much as 330 bytes of state.
    assert plan_along_tracks(*bus(329)).moves() == [(30.0, "Near", "east")]
    plan = plan_along_tracks(*bus(331))
    assert plan.moves() == []
    assert "Nothing moves over 1 min" in plan.words()


def test_state_is_on_its_way_before_the_task_starts():
    plan = plan_along_tracks(*bus(300))
    sent = [(each.kind.name, each.time_s) for each in plan.actions]
    assert sent == [
        ("SEND_FIXED", pytest.approx(30 - 1 - 0.3)),
        ("REDIRECT", pytest.approx(29)),
        ("STOP", 30),
        ("START", 30),
    ]


def test_where_no_host_that_stays_is_quick_enough_tasks_move():
    # Along ten areas a second apart, a task in the middle is five seconds away from an end, and back.
    names = [f"b{n}" for n in range(10)]
    network = Network(
        tuple(Broker(name, area=(n, 0, n + 1, 1)) for n, name in enumerate(names)),
        tuple(Link(a, b, 1000, 1) for a, b in itertools.pairwise(names)),
        movers=(Mover("bus", ((0, 0, 0.5), (600, 10, 0.5))),),
    )
    workload, _ = bus(latency_s=8)
    plan = plan_along_tracks(workload, network)
    assert [broker for _, broker in plan.hosts["Near"]] == names
    assert "No hosts that stay were found to satisfy everything." in plan.words()
    with pytest.raises(NoPlanError, match="Near would reach bus after"):
        plan_along_tracks(*bus(latency_s=1))


def test_what_lies_ahead_can_be_less_than_the_tracks():
    plan = plan_along_tracks(*bus(), settings=MigrationSettings(ahead_s=40))
    assert plan.horizon.end_s == 40
    assert plan.compared_plans[0].costs.total.bdp_b == pytest.approx(11 / 4)
    longer = plan_along_tracks(*bus(), settings=MigrationSettings(ahead_s=120))
    assert longer.compared_plans[0].costs.total.bdp_b == pytest.approx(11 / 4)


def test_where_nothing_moves_hosts_stay():
    workload, network = bus()
    plan = plan_along_tracks(workload, replace(network, movers=(Mover("bus", ((0, 1, 0.5), (60, 2, 0.5))),)))
    assert plan.horizon is None
    assert plan.hosts == {"Near": "west"}
    assert "Note: nothing that sends or receives moves, so tasks stay where they are." in plan.words()
    # Also where the bus does not get far enough.
    assert plan_along_tracks(workload, network, settings=MigrationSettings(ahead_s=20)).horizon is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"step_s": 0.00001}, r"12,000,000 choices for each task.*--step"),
        ({"step_s": 0}, "no time to plan for"),
        ({"ahead_s": 0}, "no time to plan for"),
    ],
)
def test_times_that_make_no_sense_are_told(settings, words):
    with pytest.raises(NetworkError, match=words):
        plan_along_tracks(*bus(), settings=MigrationSettings(**settings))


def test_tracks_that_begin_late_are_told():
    workload, network = bus()
    late = Mover("bus", tuple((1_700_000_000 + time, x, y) for time, x, y in network.movers[0].track))
    with pytest.raises(
        NetworkError, match="all tracks lie between 1,700,000,000 s and 1,700,000,060 s, in one"
    ):
        plan_along_tracks(workload, replace(network, movers=(late,)))


def test_other_objectives_are_told_to_be_left_aside():
    assert "and nothing else" in plan_along_tracks(*bus(), Objective.FLOW).words()


@pytest.mark.slow
@FEWER
@given(st.integers(0, 10_000), st.sampled_from([0.5, 1.0, 3.0]))
def test_plans_are_never_dearer_than_the_best_hosts_that_stay(seed, step_s):
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(2, 4), movers=2)
    workload = random_workload(rng, network, 2)
    plan = plan_along_tracks(workload, network, settings=MigrationSettings(step_s=step_s))
    brokers = [broker.name for broker in network.brokers]
    stays = [
        evaluate(workload, network, dict(zip(workload.task, hosts, strict=True))).total.bdp_b
        for hosts in itertools.product(brokers, repeat=len(workload.tasks))
    ]
    assert plan.costs.total.bdp_b <= min(stays) * (1 + 1e-9)
    assert evaluate(workload, network, plan.hosts, until_s=_end(plan)) == plan.costs


def _end(plan: Plan) -> float | None:
    return None if plan.horizon is None else plan.horizon.end_s


@pytest.mark.slow
@FEWER
@given(st.integers(0, 10_000))
def test_plans_keep_capacities_and_latencies(seed):
    rng = random.Random(seed)
    network = random_network(rng, 3, movers=2, capacity=True)
    workload = random_workload(rng, network, 2)
    workload = replace(
        workload,
        deliveries=tuple(replace(each, latency_s=rng.choice([3, 6, 12])) for each in workload.deliveries),
    )
    try:
        plan = plan_along_tracks(workload, network, settings=MigrationSettings(step_s=4))
    except NoPlanError:
        with pytest.raises(NoPlanError):
            plan_exact(workload, network)
        return
    assert violations(workload, network, evaluate(workload, network, plan.hosts, until_s=_end(plan))) == ()
    if plan.horizon is not None:
        _check_schedule(plan)


def _check_schedule(plan: Plan) -> None:
    """Every move starts once, where and when the hosts say, and all that it needs is sent before."""
    starts = [(a.task, a.time_s, a.target) for a in plan.actions if a.kind.name == "START"]
    moves = [(name, time, broker) for name, steps in plan.hosts.items() for time, broker in steps[1:]]
    assert sorted(starts) == sorted(moves)
    assert all(0 <= action.time_s <= plan.horizon.end_s for action in plan.actions)


def test_words_and_tables(ferry, update_golden):
    plan = plan_along_tracks(*ferry)
    said = f"{plan.words()}\n{plan.table()}"
    file = GOLDEN / "ferry-migrate.txt"
    if update_golden:
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_guide_shows_what_the_example_says(ferry):
    page = (EXAMPLE.parents[1] / "docs" / "planning.md").read_text(encoding="utf-8")
    words = plan_along_tracks(*ferry).words().splitlines()
    assert all(line in page for line in (words[0], words[4], words[8], words[-1]))


@pytest.mark.slow
def test_a_plan_is_plain_data(ferry):
    plan = plan_along_tracks(*ferry)
    data = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert {name: tuple(map(tuple, steps)) for name, steps in data["hosts"].items()} == plan.hosts
    assert data["schedule"][0] == {
        "time_s": pytest.approx(94.885152), "do": "send_fixed", "task": "Strain", "source": "west",
        "target": "islet", "size_b": 646.0, "stream": None, "since_s": None,
    }  # fmt: skip
    assert data["compared"]["stay"]["bdp_b"] == pytest.approx(plan_exact(*ferry).costs.total.bdp_b)


def test_the_picture_shows_who_is_where(ferry, tmp_path):
    plan = planner_named("migrate")(*ferry, Objective.BDP)
    plan.draw(str(tmp_path / "plan.svg"))
    text = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert all(word in text for word in ("strait", "ferry (mover)", "Strain", "islet", "seconds"))
    with pytest.raises(NetworkError, match=r"ends with \.png or \.svg"):
        plan.draw("plan.jpeg")


def test_tasks_that_agree_by_messages_follow_their_mover_too():
    plan = plan_along_tracks(*bus(), settings=MigrationSettings(coordinated=True))
    assert plan.hosts == {"Near": ((0.0, "west"), (30.0, "east"))}
    assert "Note: tasks agreed by 6 messages." in plan.words()


@pytest.mark.parametrize("movement", [Movement.NAVIGATION, Movement.LINEAR])
def test_tasks_follow_movers_that_are_uncertain(movement):
    plan = plan_along_tracks(*bus(), settings=MigrationSettings(movement=movement))
    brokers = [broker for _, broker in plan.hosts["Near"]]
    assert (brokers[0], brokers[-1]) == ("west", "east")
    assert f"of movers only what '{movement.value}' tells was known ahead" in plan.words()
    assert plan.costs.total.bdp_b < plan.compared_plans[0].costs.total.bdp_b


def test_what_movers_do_is_learned_from_others():
    workload, network = bus()
    uncertain = MigrationSettings(movement=Movement.LEARNED, policy="weighted sum", range_m=100)
    with pytest.raises(NetworkError, match="no other movers to learn from"):
        plan_along_tracks(workload, network, settings=uncertain)
    others = tuple(replace(network.movers[0], name=f"bus {n}") for n in range(3))
    plan = plan_along_tracks(
        workload, replace(network, movers=(*network.movers, *others)), settings=uncertain
    )
    assert plan.costs.total.bdp_b < plan.compared_plans[0].costs.total.bdp_b
    misspelt = MigrationSettings(movement=Movement.LINEAR, policy="adaptiv")
    with pytest.raises(NetworkError, match="no policy is named 'adaptiv'; did you mean 'adaptive'"):
        plan_along_tracks(workload, network, settings=misspelt)
