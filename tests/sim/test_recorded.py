"""Plans made from a recording and carried out on it: what they are estimated to cost is what they cost."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.backtesting.measure import measure
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import read_network
from whimbrel.plan.network import Broker, Consumer, EventSource, Link, Network
from whimbrel.plan.plan import Plan
from whimbrel.plan.planners import PLANNERS
from whimbrel.plan.reading import plan_of
from whimbrel.sim.comparison import against_plan
from whimbrel.sim.placement_run import run_placement
from whimbrel.sim.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "planning"


def check(found, *, but=None):
    """Compare what was estimated with what was measured: costs equal, delays within the bounds."""
    assert found.is_same
    for each in against_plan(found.outcome, found.costs, found.seconds, names=[*found.single_process]):
        if each.what.startswith("delay s: Busy"):
            continue  # a window is told when it is over, which is later than the last event in it
        if each.what.startswith("delay"):
            assert each.measured is None or each.measured <= each.estimated * (1 + 1e-9), each
        elif each.what != but:
            assert each.measured == pytest.approx(each.estimated, rel=1e-6, abs=1e-9), each


def check_example(planner, objective, heartbeat_s):
    query, network = wb.read(EXAMPLE / "yard.wbl"), read_network(EXAMPLE / "site.yaml")
    events = [str(EXAMPLE / "recording.csv")]
    workload = workload_of(query, network, measure(query, events))
    plan = plan_of(PLANNERS[planner](workload, network, objective).to_dict(), network)
    check(run_placement(query, events, plan, settings=Settings(header_b=0.0, heartbeat_s=heartbeat_s)))


@pytest.mark.parametrize("planner", ["centralised", "greedy"])
def test_the_example_costs_what_its_plans_say(planner):
    check_example(planner, Objective.BDP, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("planner", ["centralised", "greedy", "exact", "flow"])
@pytest.mark.parametrize("objective", Objective)
def test_the_example_costs_what_every_plan_says(planner, objective):
    check_example(planner, objective, 1.0)


QUERIES = [
    compile_text(text)
    for text in (
        """
        define Fast(v) detect Pos(speed > 20) as p assign v = p.speed group by source
        define Rare(v) detect Fast(v > 22) as a then Fast(v > 23) as b within 10 s assign v = a.v
        """,
        """
        define Near(v) detect Pos(speed > 18 and note != "") as p assign v = p.speed
        define Halt(v) detect Near as a then Stop(speed < 20) as b within 8 s assign v = a.v
        """,
        """
        define Busy(n) over 10 s every 5 s detect Pos(speed > 17) assign n = count(Pos.speed)
        define Calm(n) detect Stop as s then not Pos(speed > 22) for 3 s assign n = s.speed
        """,
    )
]
BROKERS = ("cloud", "hub", "left", "right")
SENDERS = ("p1", "p2", "p3", "left")
"""Three name themselves, and one its place."""


@st.composite
def networks(draw):
    bandwidth = st.sampled_from([800.0, 4_000.0, math.inf])
    contacts = st.sampled_from([ALWAYS, ALWAYS, PeriodicContacts(2.3, 3.1)])
    links = [
        Link(a, b, draw(bandwidth), draw(st.sampled_from([0.0, 0.3])), cost, contacts=draw(contacts))
        for a, b, cost in (("cloud", "hub", 5.0), ("hub", "left", 1.0), ("hub", "right", 2.0))
    ]
    places = st.sampled_from(BROKERS)
    # Nobody else is on the left: who of two sends what names their place is not known.
    elsewhere = st.sampled_from(("cloud", "hub", "right"))
    sources = [EventSource(name, "Pos", draw(elsewhere)) for name in ("p1", "p2", "p3")]
    sources += [EventSource("p4", "Pos", "left"), EventSource("s1", "Stop", draw(places))]
    sources.append(EventSource("s2", "Stop", draw(places), size_b=draw(st.sampled_from([None, 300.0]))))
    brokers = [Broker(name, capacity=draw(st.sampled_from([math.inf, 2e-4]))) for name in BROKERS]
    return Network(tuple(brokers), tuple(links), tuple(sources), (Consumer("desk", draw(places)),))


@st.composite
def recordings(draw):
    """Draw events that come by fits and starts, each source with its own speeds and notes."""
    rows, time = [], 0.0
    fast = {name: draw(st.sampled_from([0, 5, 10])) for name in (*SENDERS, "s1", "s2")}
    gaps = st.sampled_from([0.0, 0.01, 0.5, 2.0, 20.0])
    for gap, sender, speed in draw(
        st.lists(st.tuples(gaps, st.sampled_from([*fast]), st.integers(0, 12)), min_size=5, max_size=40)
    ):
        time += gap
        kind = "Stop" if sender.startswith("s") else "Pos"
        note = "" if sender == "p1" else "n" * (10 * fast[sender])
        rows.append({"type": kind, "time": time, "source": sender, "speed": 12.0 + fast[sender] + speed})
        rows[-1]["note"] = note
    rows.append({"type": "Stop", "time": time + 5, "source": "s1", "speed": 12.0, "note": ""})
    return rows


@settings(max_examples=15)
@given(
    st.data(),
    st.sampled_from(QUERIES),
    networks(),
    recordings(),
    st.sampled_from(Objective),
    st.sampled_from([0.3, 1.0, 4.0]),
)
def test_plans_from_recordings_cost_what_they_say_on_these(
    data, query, network, events, objective, heartbeat
):
    workload = workload_of(query, network, measure(query, events))
    hosts = {task: data.draw(st.sampled_from(BROKERS)) for task in workload.task}
    plan = Plan(workload, network, hosts, objective, "test", evaluate(workload, network, hosts, objective))
    found = run_placement(query, events, plan, settings=Settings(header_b=0.0, heartbeat_s=heartbeat))
    # What waits for a link that is down is estimated on average, and measured apart.
    check(found, but="bdp B" if any(link.contacts is not ALWAYS for link in network.links) else None)
