"""Plans that push and pull, carried out with the real engine on the real query."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.pushpull.drawing import draw_tree

import whimbrel as wb
from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import network_of, read_network
from whimbrel.plan.network import Consumer, EventSource, Network
from whimbrel.plan.pushpull.baselines import star
from whimbrel.plan.pushpull.deployment import PushPullDeployment
from whimbrel.plan.pushpull.deployment_reading import deployment_of, read_any
from whimbrel.plan.pushpull.multi_query import MultiQueryPlan
from whimbrel.plan.pushpull.patterns import composites_of
from whimbrel.plan.pushpull.plan import JunctionPlan, make_plan
from whimbrel.plan.pushpull.planner import plan_push_pull
from whimbrel.plan.pushpull.tree import Junction, detection_tree, is_negated
from whimbrel.plan.reading import read_plan
from whimbrel.sim.comparison import compare
from whimbrel.sim.outages import Failure
from whimbrel.sim.push_pull_run import run_push_pull
from whimbrel.sim.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "planning"

PATTERNS = (
    "A(v > 3) as a then B as b within 20 s",
    "A as a then B as b within 20 s where a.v > b.v",
    "A as a and B as b and C(v < 7) as c within 15 s",
    "A as a and B as b within 10 s group by source",
    "A as a then not C then B as b within 20 s",
    "A as a then not C(v > 2) then B as b then A as again within 30 s",
    "A as a then B as b then not C for 12 s within 20 s",
    "A as a then not B for 9 s",
    "A as a then B as b then not C within 20 s",
    "not C then A as a then B as b within 20 s",
    "A as a then A as b within 10 s",
    "A as a and A as b within 10 s",
    "A(v > 2) or B",
    "(A or B(v > 4)) as a then C as c within 15 s",
    "A as a then B as b within 5 s from a within 10 s",
    "A as a and B as b within 5 s from a within 10 s",
)


def drawn_network(rng: random.Random) -> Network:
    """Draw a tree whose links come and go, with up to two sources of each kind."""
    tree = draw_tree(rng, rng.randrange(2, 6))
    contacts = [ALWAYS, PeriodicContacts(5.0, 2.0), PeriodicContacts(30.0, 10.0, 3.0)]
    links = tuple(
        replace(
            link,
            contacts=rng.choice(contacts),
            latency_s=rng.choice([0.0, 1.5]),
        )
        for link in tree.links
    )
    places = [broker.name for broker in tree.brokers]
    sources = tuple(
        EventSource(f"{kind.lower()}{n}", kind, rng.choice(places), 0.05, rng.choice([20.0, 50.0]))
        for kind in "ABC"
        for n in range(rng.choice([1, 1, 2]))
    )
    consumers = [Consumer("desk", "v0")]
    if rng.random() < 0.2:
        consumers.append(Consumer("other", rng.choice(places)))
    return replace(tree, links=links, sources=sources, consumers=tuple(consumers))


def drawn_events(rng: random.Random, network: Network) -> list[dict[str, object]]:
    """Draw events at whole seconds, so that some come together, or just a window apart; some last."""
    found = []
    for n in range(rng.randrange(1, 40)):
        source, start = rng.choice(network.sources), rng.randrange(100)
        found.append(
            {
                "id": f"e{n}",
                "type": source.event_type,
                "start": start,
                "end": start + rng.choice([0, 0, 0, 4]),
                "source": source.name,
                "v": rng.randrange(10),
            }
        )
    return found


def drawn_plan(query: wb.Query, network: Network, rng: random.Random) -> PushPullDeployment:
    """Let chance say what is pushed and what is pulled, in which order, where."""
    workload = workload_of(query, network)
    wanted = composites_of(workload, network)
    plans = {}
    for composite in (composite for each in wanted for composite in each.composites):
        tree = rng.choice([detection_tree, star])
        root = drawn_stages(tree(network, composite), rng, is_any=composite.operator == "or")
        plans[composite.name] = make_plan(composite, root)
    return PushPullDeployment(workload, network, tuple(wanted), MultiQueryPlan(network, plans))


def drawn_stages(
    junction: Junction, rng: random.Random, *, is_any: bool = False, pulled: bool = False
) -> JunctionPlan:
    numbers = list(range(len(junction.inputs)))
    turns = {number: 0 if is_any else rng.randrange(3) for number in numbers}
    wanted = [number for number in numbers if not is_negated(junction.inputs[number])]
    if not (pulled and rng.random() < 0.5) and all(turns[number] for number in wanted):
        turns[rng.choice(wanted)] = 0
    stages = [tuple(number for number in wanted if turns[number] == turn) for turn in range(3)]
    negated = [number for number in numbers if number not in wanted]
    stages[0] += tuple(number for number in negated if not turns[number])
    stages.append(tuple(number for number in negated if turns[number]))
    below = {
        number: drawn_stages(each, rng, is_any=is_any, pulled=turns[number] > 0)
        for number, each in enumerate(junction.inputs)
        if isinstance(each, Junction)
    }
    return JunctionPlan(junction, (stages[0], *(stage for stage in stages[1:] if stage)), below)


@given(st.integers(0, 1_000_000), st.sampled_from(PATTERNS), st.sampled_from([None, None, *PATTERNS]))
def test_whatever_is_pulled_detections_are_those_of_one_process(seed, pattern, other):
    rng = random.Random(seed)
    second = f"\ndefine Y detect {other}" if other else ""
    query = wb.compile(f"define X detect {pattern}{second}")
    network = drawn_network(rng)
    events = drawn_events(rng, network)
    made = drawn_plan(query, network, rng)
    found = run_push_pull(query, events, deployment_of(made.to_dict(), query, network))
    assert found.is_same
    assert found.outcome.traffic.on_their_way == 0
    every = wb.detect(query, events).select(["type", "id"]).to_pylist()
    for wanted, (name, table) in zip(found.plan.wanted, found.outcome.detections.items(), strict=True):
        alone = sorted(row["id"] for row in every if row["type"] == wanted.delivery.stream)
        assert sorted(table.column("id").to_pylist() if table.num_rows else []) == alone
        delays = found.outcome.delays_s[name]
        assert len(delays) == len(alone)
        # Links have room for all that comes, so no delay is above its bound, up to a moment for each wait.
        assert (delays >= 0).all()
        assert (delays <= found.plan.delay_s(wanted) + 1e-3).all()


# -- the example, from the file ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def river():
    return wb.compile((EXAMPLE / "river.wbl").read_text())


@pytest.fixture(scope="module")
def valley():
    return read_network(EXAMPLE / "valley.yaml")


@pytest.fixture(scope="module")
def plan(river, valley):
    return plan_push_pull(workload_of(river, valley), valley)


def test_a_plan_reads_back_as_it_was_written(river, valley, plan, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_dict()))
    found = read_any(file, river, valley)
    assert isinstance(found, PushPullDeployment)
    assert found.to_dict() | {"compared": {}} == plan.to_dict() | {"compared": {}}
    with pytest.raises(NetworkError, match=r"plan\.json: it is a plan that pushes and pulls"):
        read_plan(file, valley)


def test_what_is_found_in_the_example_and_what_it_costs(river, valley, plan):
    found = run_push_pull(river, [str(EXAMPLE / "river.csv")], plan)
    assert found.is_same
    (delays,) = found.outcome.delays_s.values()
    assert len(delays) == found.single_process["Flood to base"].num_rows == 208
    results = compare(found)
    figures = {(row["figure"], row["of"]): row for row in results.rows}
    assert figures["delay s", "Flood to base"]["measured"] == delays.max() <= plan.delay_s(plan.wanted[0])
    cost = figures["cost a minute", "all links"]
    assert cost["estimated"] == pytest.approx(60 * plan.plans.cost_s)
    by_link = [row["measured"] for row in results.rows if row["figure"] == "cost a minute"]
    assert cost["measured"] == pytest.approx(sum(by_link[1:]))
    # Rain weighs 300 bytes, crosses a link of cost 1 and one of cost 4, and comes only when asked for.
    traffic = found.outcome.traffic
    replies = [traffic.parts[(creek, "ridge"), "reply"] for creek in ("upper-creek", "lower-creek")]
    assert sum(each.bytes for each in replies) == 300 * _rains_before_high_water()
    assert traffic.by_link["ridge", "base"].cost == 4 * traffic.by_link["ridge", "base"].bytes
    assert results.notes["requests that crossed a link"] == traffic.of("request").messages == 6
    assert results.notes["detections that were missed"] == 0


def _rains_before_high_water() -> int:
    """Count heavy rain in the half hours before high water."""
    with (EXAMPLE / "river.csv").open() as file:
        rows = [(datetime.fromisoformat(row["time"]), row) for row in csv.DictReader(file)]
    high = [time for time, row in rows if float(row["metres"] or 0) > 3]
    rain = [time for time, row in rows if float(row["amount"] or 0) > 20]
    return sum(any(0 <= (water - time).total_seconds() <= 1800 for water in high) for time in rain)


def test_what_is_missing_is_named(river, valley, plan):
    found = run_push_pull(river, [str(EXAMPLE / "river.csv")], plan)
    table = found.outcome.detections["Flood to base"]
    lost = replace(found, outcome=replace(found.outcome, detections={"Flood to base": table.slice(12)}))
    assert not lost.is_same
    missed = compare(lost).notes["detections that were missed"]["Flood to base"]
    assert missed == [*table.column("id").to_pylist()[:10], "and 2 more"]


def test_nothing_is_concluded_before_all_that_might_spoil_it_has_come():
    """A narrow link brings what must not occur later than the plan expects."""
    network = network_of(
        {
            "brokers": [{"name": "top"}, {"name": "far"}],
            "links": [{"between": ["top", "far"], "bandwidth": "1 B/s"}],
            "sources": [
                {"name": "a", "type": "A", "at": "top", "rate": "1/h", "size": "1 B"},
                {"name": "b", "type": "B", "at": "top", "rate": "1/h", "size": "1 B"},
                {"name": "c", "type": "C", "at": "far", "rate": "1/h", "size": "100 B"},
            ],
            "consumers": [{"name": "desk", "at": "top"}],
        }
    )
    query = wb.compile("define X detect A as a then not C as c then B as b within 20 s where c.v = a.v")
    made = plan_push_pull(workload_of(query, network), network)
    events = [{"type": "A", "time": 0, "v": 1}, {"type": "B", "time": 15, "v": 1}]
    events += [{"type": "C", "time": time, "v": 0} for time in (1, 2, 3)]
    found = run_push_pull(query, events, made)
    assert found.is_same
    ((delay,),) = found.outcome.delays_s.values()
    # Three of 100 bytes, one after the other, whose v is known only when they are there: from second 1 on.
    assert delay >= 1 + 300 - 15 > made.delay_s(made.wanted[0])
    late = run_push_pull(query, [*events, {"type": "C", "time": 14, "v": 1}], made)
    assert late.is_same
    assert late.single_process["X to top"].num_rows == 0


@pytest.mark.parametrize("broken", [{"broker": "ridge"}, {"link": ("base", "ridge")}])
def test_failures_delay_detections_and_lose_none(river, valley, plan, broken):
    plain = run_push_pull(river, [str(EXAMPLE / "river.csv")], plan)
    failing = Settings(failures=(Failure(600, 20_000, **broken),))
    found = run_push_pull(river, [str(EXAMPLE / "river.csv")], plan, settings=failing)
    assert found.is_same
    (before,), (delays,) = plain.outcome.delays_s.values(), found.outcome.delays_s.values()
    assert delays.max() > before.max()
    assert delays.max() > found.plan.delay_s(found.plan.wanted[0])


@given(st.integers(0, 1_000_000), st.sampled_from(PATTERNS))
def test_whatever_fails_for_a_while_detections_are_those_of_one_process(seed, pattern):
    rng = random.Random(seed)
    query, network = wb.compile(f"define X detect {pattern}"), drawn_network(rng)
    events = drawn_events(rng, network)
    plan = deployment_of(drawn_plan(query, network, rng).to_dict(), query, network)
    ends = [
        *({"broker": each.name} for each in network.brokers),
        *({"link": (each.a, each.b)} for each in network.links),
    ]
    starts = [rng.uniform(0, 90) for _ in range(rng.randrange(1, 4))]
    failures = tuple(Failure(start, start + rng.choice([3, 20]), **rng.choice(ends)) for start in starts)
    found = run_push_pull(query, events, plan, settings=Settings(failures=failures))
    assert found.is_same
    assert found.outcome.traffic.on_their_way == 0


def line_to(far_link: dict[str, object]) -> Network:
    """A broker where B occurs, rarely, and A is pulled to, over a link to where it occurs."""
    return network_of(
        {
            "brokers": [{"name": "top"}, {"name": "far"}],
            "links": [{"between": ["top", "far"], **far_link}],
            "sources": [
                {"name": "a", "type": "A", "at": "far", "rate": "1/s", "size": "100 B"},
                {"name": "b", "type": "B", "at": "top", "rate": "1/h", "size": "1 B"},
            ],
            "consumers": [{"name": "desk", "at": "top"}],
        }
    )


def test_what_waits_for_a_broker_that_is_down_still_finds_what_came_before():
    """At one broker a plan expects no delay: all is kept for twice the window, as long as it is down."""
    network = line_to({})
    query = wb.compile("define X detect B as one then B as other within 10 s")
    events = [{"type": "B", "time": 0}, {"type": "B", "time": 5}]
    down = Settings(failures=(Failure(2, 22, broker="top"),))
    found = run_push_pull(query, events, plan_push_pull(workload_of(query, network), network), settings=down)
    assert found.is_same
    assert found.single_process["X to top"].num_rows == 1


def test_what_a_request_that_waits_for_a_link_will_ask_for_is_kept():
    network = line_to({"latency": "1 s"})
    query = wb.compile("define X detect A as a then B as b within 10 s")
    made = plan_push_pull(workload_of(query, network), network)
    # When the last A occurs, the first one is older than the plan ever expects to be asked for.
    events = [{"type": "A", "time": 0}, {"type": "B", "time": 3}, {"type": "A", "time": 90}]
    down = Settings(failures=(Failure(2, 100, link=("top", "far")),))
    found = run_push_pull(query, events, made, settings=down)
    assert found.outcome.traffic.of("reply").messages == 1
    assert found.is_same
    assert found.outcome.delays_s["X to top"] == pytest.approx([100 + 2 - 3])


def test_what_a_narrow_link_still_brings_finds_what_came_before():
    """Nothing fails: more comes at once than the plan expects, and takes longer than what is kept."""
    network = line_to({"bandwidth": "10 B/s"})
    network = replace(network, sources=tuple(replace(each, rate_hz=0.001) for each in network.sources))
    query = wb.compile("define X detect B as b then A as a within 10 s")
    made = plan_push_pull(workload_of(query, network), network)
    events = [{"type": "B", "time": 0}, {"type": "B", "time": 300}]
    events += [{"type": "A", "time": 5, "v": number} for number in range(50)]
    found = run_push_pull(query, events, made)
    assert found.is_same
    assert len(found.outcome.delays_s["X to top"]) == 50


def test_without_recovery_a_broker_that_fails_loses_what_it_keeps(river, valley, plan):
    failing = Settings(failures=(Failure(600, 20_000, broker="ridge"),), recovers=False)
    found = run_push_pull(river, [str(EXAMPLE / "river.csv")], plan, settings=failing)
    (table,), (alone,) = found.outcome.detections.values(), found.single_process.values()
    assert not found.is_same
    assert table.num_rows < alone.num_rows
    assert {drop.reason for drop in found.outcome.traffic.drops} == {"broker failed"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plan: plan["composites"].pop(), r"does not tell how 'Flood \(2\)' is detected; plan again"),
        (lambda plan: plan["composites"][0].update(name="Fire"), "no composite event .* 'Fire'"),
        (lambda plan: plan["composites"][0].update(window_s=5.0), "is 5.0, and should be 1800.0"),
        (lambda plan: plan["composites"][0]["parts"][0].update(name="Snow"), "no part is named 'Snow'"),
        (lambda plan: plan["composites"][0]["parts"].pop(), "has no part 'Level.metres > 3.' of"),
        (lambda plan: plan["composites"][0]["parts"][0].update(at="lake"), "is 'lake', and should be"),
        (lambda plan: plan["composites"][0]["tree"].update(at="bas"), "no broker is named 'bas' .*'base'"),
        (lambda plan: plan["composites"][0]["tree"].update(at="lake"), "no way leads from .* to 'lake'"),
        (lambda plan: plan["composites"][0]["tree"].update(pushed=[]), "is in the tree of .* 0 times"),
        (lambda plan: plan["composites"][0]["tree"].pop("pulled"), "missing or damaged: KeyError"),
        (lambda plan: plan.update(composites=3), "missing or damaged"),
    ],
)  # fmt: skip
def test_plans_that_do_not_fit_are_refused(river, valley, plan, change, words):
    content = json.loads(json.dumps(plan.to_dict()))
    change(content)
    with pytest.raises(NetworkError, match=words):
        deployment_of(content, river, valley)


def test_a_plan_for_another_network_is_refused(river, valley, plan):
    gone = replace(valley, links=tuple(link for link in valley.links if "lake" not in (link.a, link.b)))
    links = (*gone.links, replace(gone.links[0], a="base", b="lake"))
    with pytest.raises(NetworkError, match="needs the link lake-ridge, which is gone"):
        deployment_of(plan.to_dict(), river, replace(valley, links=links))
