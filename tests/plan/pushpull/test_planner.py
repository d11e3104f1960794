"""Queries as composite events, and plans that push and pull them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.pushpull.drawing import draw_tree

import whimbrel as wb
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.cost import Objective
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import network_of, read_network
from whimbrel.plan.network import Consumer, EventSource, Network
from whimbrel.plan.planners import planner_named
from whimbrel.plan.pushpull.deployment import PushPullDeployment
from whimbrel.plan.pushpull.patterns import composites_of
from whimbrel.plan.pushpull.plan import JunctionPlan
from whimbrel.plan.pushpull.planner import plan_push_pull
from whimbrel.plan.pushpull.tree import Junction, is_negated
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLE = Path(__file__).parents[3] / "examples" / "planning"


def net(*sources: str, latency: str = "2 h", at: str = "top") -> Network:
    """A star of brokers, one for each source 'TYPE at PLACE'; what is found is wanted at the top."""
    pairs = [source.split(" at ") for source in sources]
    places = list(dict.fromkeys(place for _, place in pairs))
    return network_of(
        {
            "brokers": [{"name": name} for name in ("top", *places)],
            "links": [
                {"between": ["top", place], "bandwidth": "1 Mbit/s", "down": "1 min", "up": "1 min"}
                for place in places
            ],
            "sources": [
                {"name": f"{kind}-{place}", "type": kind, "at": place, "rate": "1/min", "size": "100 B"}
                for kind, place in pairs
            ],
            "consumers": [{"name": "desk", "at": at, "latency": latency}],
        }
    )


def composites(query: str, network: Network):
    (wanted,) = composites_of(workload_of(wb.compile(query), network), network)
    return wanted.composites


# -- composite events --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "operator", "parts", "window_s"),
    [
        ("A(v > 3) as a then B as b within 5 min", "seq", ["A[v > 3]", "B"], 300),
        ("A as a and B as b within 5 min", "and", ["A", "B"], 300),
        ("A as a then not C then B as b within 5 min", "seq", ["A", "not C", "B"], 300),
        ("A then not B for 1 h", "and", ["A", "not B"], 3600),
        ("A as a and B as b within 5 s from a within 9 s", "and", ["A", "B"], 9),
        ("A as a then B as b then not C for 5 s within 9 s", "and", ["A", "B", "not C"], 14),
        ("A or B as b", "or", ["A", "B"], 1),
        ("A(v > 3) as a", "or", ["A[v > 3]"], 1),
        ("A as a then A as b within 10 s", "seq", ["A", "A (2)"], 10),
        ("A as a then B as b within 5 min where a.v > b.v", "seq", ["A", "B"], 300),
    ],
)
def test_definitions_are_composite_events(pattern, operator, parts, window_s):
    network = net("A at a", "B at b", "C at c")
    (made,) = composites(f"define X detect {pattern}", network)
    assert (made.name, made.operator, made.window_s, made.at, made.tolerance_s) == (
        "X", operator, window_s, "top", 7200,
    )  # fmt: skip
    assert [("not " if part.is_negated else "") + part.name for part in made.parts] == parts
    assert all(part.at == part.name.strip("not ")[0].lower() for part in made.parts)
    assert all(part.size_b == 100 for part in made.parts)


def test_rates_are_those_behind_the_conditions_on_single_events():
    network = net("A at a", "B at b")
    query = wb.compile("define X detect A(v > 3) as a then B as b within 5 min")
    workload = workload_of(query, network)
    ((made,),) = [wanted.composites for wanted in composites_of(workload, network)]
    passed = workload.task["A[v > 3]"].rate_hz
    assert 0 < passed < 1 / 60
    assert [part.rate_hz for part in made.parts] == [passed, pytest.approx(1 / 60)]


def test_there_is_a_composite_event_for_each_choice_of_sources():
    network = net("A at a1", "A at a2", "B at b1", "B at b2", "C at c1", "C at c2")
    made = composites("define X detect A as a then not C then B as b within 5 min", network)
    absent = ["C at C-c1", "C at C-c2"]
    assert [(each.name, [part.name for part in each.parts]) for each in made] == [
        (f"X ({n})", [f"A at A-{a}", *absent, f"B at B-{b}"])
        for n, (a, b) in enumerate([("a1", "b1"), ("a1", "b2"), ("a2", "b1"), ("a2", "b2")], 1)
    ]
    (either,) = composites("define X detect A or B as b", network)
    assert len(either.parts) == 4
    first, second = composites(
        "define X detect (A or B) as a then C as c within 5 s", net("A at a", "B at b", "C at c")
    )
    assert [part.name for part in (*first.parts, *second.parts)] == ["A", "C", "B", "C"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "pattern",
    [
        "A as a then B as b within 10 s",
        "A as a and B as b within 10 s",
        "A as a then not C then B as b within 10 s",
        "A or B as b",
    ],
)
def test_what_is_detected_is_the_union_over_the_choices_of_sources(pattern, seed):
    rng = random.Random(seed)
    network = net("A at a1", "A at a2", "B at b1", "B at b2", "C at c1", "C at c2")
    query = wb.compile(f"define X detect {pattern}")
    (wanted,) = composites_of(workload_of(query, network), network)
    senders = [(source.event_type, source.at) for source in network.sources]
    events = []
    for n in range(30):
        kind, at = rng.choice(senders)
        events.append({"id": f"e{n}", "type": kind, "time": n * 2 + rng.random(), "source": at})
    found: list[tuple[str, ...]] = []
    for composite in wanted.composites:
        places = {part.at for part in composite.parts}
        found += _found(query, [event for event in events if event["source"] in places])
    assert sorted(found) == sorted(_found(query, events))


def _found(query: object, events: list[dict[str, object]]) -> list[tuple[str, ...]]:
    if not events:
        return []
    return [tuple(ids) for ids in wb.detect(query, events).column("events").to_pylist()]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("define X every 1 h\n  detect A as a\n  assign n = count(a)", "it aggregates"),
        (
            "define Y detect A(v > 3) as a\ndefine X detect Y as y then B as b within 5 s",
            "it reads Y, which is itself",
        ),
        ("define X detect A{3} as a within 5 min", "it looks for repetitions"),
        ("define X detect A as a followed by B as b within 5 min", "it goes from event to event"),
        ("define X detect A as a then B as b within 5 s context recent", "which combinations count"),
    ],
)
def test_what_is_no_composite_event_is_told(query, why):
    network = net("A at a", "B at b")
    with pytest.raises(
        NoPlanError, match=rf"X cannot be detected by pushing and pulling: {why}.*; use --planner greedy"
    ):
        composites(query, network)


def test_movers_are_told_to_want_another_planner():
    moving = network_of(
        {
            "brokers": [{"name": "top", "area": [0, 0, 1, 1]}, {"name": "b"}],
            "links": [{"between": ["top", "b"]}],
            "movers": [{"name": "car", "track": [[0, 0, 0]]}],
            "sources": [{"name": "A", "type": "A", "at": "car"}, {"name": "B", "type": "B", "at": "b"}],
            "consumers": [{"name": "desk", "at": "top"}],
        }
    )
    query = "define X detect A as a then B as b within 5 s"
    with pytest.raises(NoPlanError, match="A sends from the mover car; use --planner migrate"):
        composites(query, moving)
    at_car = replace(
        moving,
        sources=(EventSource("A", "A", "b"), EventSource("B", "B", "b")),
        consumers=(Consumer("desk", "car"),),
    )
    with pytest.raises(NoPlanError, match="it is wanted at the mover car; use --planner migrate"):
        composites(query, at_car)


def test_too_many_choices_are_told():
    network = net(*(f"A at a{n}" for n in range(6)), *(f"B at b{n}" for n in range(6)))
    with pytest.raises(
        NoPlanError, match="there are 36 ways to choose sources for it, and 32 can be planned"
    ):
        composites("define X detect A as a then B as b within 5 s", network)


def test_a_workload_that_is_no_query_is_told():
    workload = Workload((Feed("f", 1, 1, "top"),), (Task("t", ("f",), 1, 1),), (Delivery("t", "top"),))
    with pytest.raises(NetworkError, match="make it of a query"):
        plan_push_pull(workload, net("A at a"))


# -- plans -------------------------------------------------------------------------------------------------

QUERIES = (
    "define X detect A as a then B as b within 1 min",
    "define X detect A as a and B as b and C as c within 30 s",
    "define X detect A as a then not C then B as b within 2 min",
    "define X detect A as a then B as b within 1 min\ndefine Y detect A as a and C as c within 1 min",
)


@given(st.integers(0, 10_000), st.sampled_from(QUERIES))
def test_plans_are_valid_and_no_dearer_than_others(seed, text):
    rng = random.Random(seed)
    tree = draw_tree(rng, rng.randrange(3, 7))
    places = [broker.name for broker in tree.brokers]
    kinds = ["A", "B", "C", rng.choice("ABC")]
    sources = tuple(
        EventSource(f"s{n}", kind, rng.choice(places), rng.choice([0.001, 0.01, 0.1]), rng.choice([50, 400]))
        for n, kind in enumerate(kinds)
    )
    network = replace(
        tree, sources=sources, consumers=(Consumer("desk", "v0", latency_s=rng.choice([6000, 30_000])),)
    )
    workload = workload_of(wb.compile(text), network)
    plan = plan_push_pull(workload, network)
    for wanted in plan.wanted:
        assert plan.delay_s(wanted) <= wanted.delivery.latency_s
        for composite in wanted.composites:
            made = plan.plan_of(composite)
            assert made.root.junction.at == wanted.delivery.at
            assert sorted(_parts(made.root, network)) == sorted(part.name for part in composite.parts)
            assert made.estimate.delay_s == pytest.approx(_takes(made.root, network))
    for other in plan.others:
        assert other.cost_s is None or plan.plans.cost_s <= other.cost_s * (1 + 1e-9)
    assert sum(plan.traffic_b_s.values()) == pytest.approx(sum(plan.plans.load.values()))
    json.dumps(plan.to_dict(), allow_nan=False)
    assert plan.words().count("is known at") == len(plan.wanted)


def _parts(planned: JunctionPlan, network: Network) -> list[str]:
    """Walk down a tree: every way leads along links from where something is to the junction above."""
    found = []
    for number, each in enumerate(planned.junction.inputs):
        start = each.at if isinstance(each, Junction) else each.part.at
        assert (each.path[0], each.path[-1]) == (start, planned.junction.at)
        assert all(any(link.other(a) == b for link in network.neighbours[a]) for a, b in pairwise(each.path))
        found += _parts(planned.below[number], network) if isinstance(each, Junction) else [each.part.name]
    assert sorted(n for stage in planned.stages for n in stage) == list(range(len(planned.junction.inputs)))
    return found


def _takes(planned: JunctionPlan, network: Network) -> float:
    """Add up waits, stage by stage: a push takes the way up, a pull the way down first."""
    waits = {frozenset((link.a, link.b)): link.delay_s for link in network.links}
    time = wait = 0.0
    for place, stage in enumerate(planned.stages):
        ends = [time]
        for number in stage:
            way = sum(waits[frozenset(hop)] for hop in pairwise(planned.junction.inputs[number].path))
            if is_negated(planned.junction.inputs[number]):
                wait = max(wait, 2 * way if place else way)
                continue
            ready = _takes(planned.below[number], network) if number in planned.below else 0.0
            ends.append(max(ready, time + way if place else 0.0) + way)
        time = max(ends)
    return time + wait


def test_what_is_not_quick_enough_is_told():
    network = net("A at a", "B at b", latency="30 s")
    workload = workload_of(wb.compile("define X detect A as a then B as b within 5 s"), network)
    with pytest.raises(
        NoPlanError, match="- X: 'X' cannot be known within 30 s: with everything pushed it takes 60"
    ):
        plan_push_pull(workload, network)


def test_each_consumer_has_a_plan():
    network = net("A at a", "B at b")
    network = replace(network, consumers=(*network.consumers, Consumer("other", "a")))
    plan = plan_push_pull(
        workload_of(wb.compile("define X detect A as a then B as b within 5 s"), network), network
    )
    assert [each.composites[0].name for each in plan.wanted] == ["X to top", "X to a"]


@pytest.fixture(scope="module")
def river() -> PushPullDeployment:
    query, network = wb.read(EXAMPLE / "river.wbl"), read_network(EXAMPLE / "valley.yaml")
    plan = planner_named("pushpull")(workload_of(query, network), network, Objective.COST)
    assert isinstance(plan, PushPullDeployment)
    return plan


def test_words_and_tables(river, update_golden):
    said = f"{river.words()}\n{river.table()}"
    file = GOLDEN / "river-pushpull.txt"
    if update_golden:
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


def test_the_guide_shows_what_the_example_says(river):
    page = (EXAMPLE.parents[1] / "docs" / "planning.md").read_text(encoding="utf-8")
    assert river.words() in page


def test_a_plan_is_plain_data(river):
    data = json.loads(json.dumps(river.to_dict(), allow_nan=False))
    first = data["composites"][0]
    assert (first["name"], first["stream"], first["operator"], first["window_s"]) == (
        "Flood (1)",
        "Flood",
        "seq",
        1800,
    )
    ridge = first["tree"]["pushed"][0]["junction"]
    assert (first["tree"]["at"], ridge["at"]) == ("base", "ridge")
    assert ridge["pulled"] == [[{"part": "Rain[amount > 20] at gauge-1", "path": ["upper-creek", "ridge"]}]]
    assert data["deliveries"] == [
        {"stream": "Flood", "at": "base", "delay_s": pytest.approx(3601.694, abs=0.01)} | {"latency_s": 7200}
    ]


def test_the_picture_shows_what_is_pushed_and_pulled(river, tmp_path):
    river.draw(str(tmp_path / "plan.svg"))
    text = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert all(word in text for word in ("valley", "is sent what ridge finds", "asked for", "→ Flood"))
