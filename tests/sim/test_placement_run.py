"""A plan that is carried out finds what one process finds, wherever it puts conditions and definitions."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_fragment_session import rows
from tests.reference.strategies import event_lists, graphs
from tests.reference.tables import event_table
from tests.sim.test_query_run import HOSTS, networks

from whimbrel import detect
from whimbrel.errors import NetworkError
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.demand import workload_of
from whimbrel.plan.network import Broker, Consumer, EventSource, Link, Network
from whimbrel.plan.plan import Plan
from whimbrel.plan.planners import plan_greedy
from whimbrel.plan.reading import plan_of, read_plan
from whimbrel.sim.comparison import compare
from whimbrel.sim.placement_run import run_placement
from whimbrel.sim.recordings import sender_numbers
from whimbrel.sim.settings import Settings


def planned(query, network, hosts, objective=Objective.BDP):
    workload = workload_of(query, network)
    found = hosts if isinstance(hosts, dict) else {task: hosts(task) for task in workload.task}
    return Plan(workload, network, found, objective, "test", evaluate(workload, network, found, objective))


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data(), graphs(), event_lists(), networks(), st.booleans())
def test_every_plan_finds_what_one_process_finds(data, graph, events, network, weighs):
    if not events:
        return
    query, table = Query(graph), event_table(events)
    kinds = (
        {*query.types, *(event.type for event in events)}
        - {"*"}
        - {each.event_type for each in network.sources}
    )
    others = tuple(EventSource(kind, kind, data.draw(st.sampled_from(HOSTS))) for kind in sorted(kinds))
    network = replace(network, sources=(*network.sources, *others))
    steps = st.lists(st.tuples(st.floats(0.0, 12.0), st.sampled_from(HOSTS)), min_size=1, max_size=3)
    draw = st.one_of(st.sampled_from(HOSTS), steps.map(tuple))
    plan = planned(query, network, lambda _: data.draw(draw))
    found = run_placement(query, table, plan, settings=Settings(heartbeat_s=2.0), weighs=weighs)
    assert found.is_same
    assert found.outcome.late == 0
    together = [
        found.outcome.detections[name]
        for name in found.single_process
        if name.endswith(f" to {network.consumers[0].at}")
    ]
    assert rows(together) == rows([detect(query, table)])


YARD = compile_text("""
define Fast(v) detect Pos(speed > 20) as p assign v = p.speed group by source
define Rare(v) detect Fast(v > 22) as a then Fast(v > 23) as b within 10 s assign v = a.v group by source
""")


def site(**link):
    return Network(
        (Broker("edge"), Broker("middle"), Broker("cloud")),
        (Link("edge", "middle", **link), Link("middle", "cloud", **link)),
        (EventSource("car0", "Pos", "edge"), EventSource("car1", "Pos", "middle")),
        (Consumer("app", "cloud"),),
    )


def cars(count=40):
    return [
        {"id": f"e{n}", "type": "Pos", "time": n, "source": f"car{n % 2}", "speed": 15.0 + n % 10 + n % 3}
        for n in range(count)
    ]


def test_a_condition_is_tested_where_the_plan_puts_it():
    at_source = planned(YARD, site(), lambda task: "edge" if task.endswith("car0") else "cloud")
    elsewhere = planned(YARD, site(), lambda _: "cloud")
    sent = {}
    for name, plan in (("at source", at_source), ("elsewhere", elsewhere)):
        found = run_placement(YARD, cars(), plan)
        assert found.is_same
        parts = found.outcome.traffic.parts
        size = next(feed.size_b for feed in plan.workload.feeds)
        sent[name] = parts[("edge", "middle"), "data"].bytes / size
    # All 20 events of the car at the edge travel to a condition in the cloud, and only those that pass else.
    assert sent["elsewhere"] == pytest.approx(20)
    assert sent["at source"] == pytest.approx(
        sum(car["speed"] > 20 for car in cars() if car["source"] == "car0")
    )


def test_a_task_that_gets_an_event_by_two_streams_takes_it_once():
    plan = planned(YARD, site(), lambda task: "edge" if "[" in task else "cloud")
    assert {"Fast[v > 22]", "Fast[v > 23]"} <= set(plan.workload.task)
    found = run_placement(YARD, cars(), plan)
    assert found.is_same
    assert found.single_process["Rare to cloud"].num_rows > 0


def test_hosts_that_change_are_moves():
    plan = planned(YARD, site(latency_s=0.1), lambda _: ((0.0, "edge"), (10.0, "cloud")))
    found = run_placement(YARD, cars(), plan)
    assert found.is_same
    assert len(found.outcome.moves) == len(plan.workload.tasks)
    assert all(move.started_s is not None for move in found.outcome.moves)


def test_a_plan_reads_back_as_it_was_written(tmp_path):
    workload = workload_of(YARD, site())
    placement = plan_greedy(workload, site())
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(placement.to_dict()))
    found = read_plan(file, site())
    assert found.workload == workload
    assert (found.hosts, found.costs, found.objective) == (
        placement.hosts,
        placement.costs,
        placement.objective,
    )
    assert run_placement(YARD, cars(), found).is_same


def test_plans_that_do_not_fit_are_refused(tmp_path):
    plan = plan_greedy(workload_of(YARD, site()), site()).to_dict()
    with pytest.raises(NetworkError, match="no hosts, feeds, tasks"):
        plan_of({"hosts": {}}, site())
    with pytest.raises(NetworkError, match="missing or damaged"):
        plan_of(plan | {"feeds": [{"name": "x"}]}, site())
    (tmp_path / "plan.json").write_text("hello")
    with pytest.raises(NetworkError, match=r"plan\.json is not JSON"):
        read_plan(tmp_path / "plan.json", site())
    with pytest.raises(NetworkError, match="cannot be read"):
        read_plan(tmp_path / "none.json", site())
    other = compile_text("define Slow detect Pos(speed < 3) as p")
    with pytest.raises(NetworkError, match="for another query"):
        run_placement(other, cars(), plan_of(plan, site()))


def test_events_belong_to_the_sources_that_they_name_and_others_go_in_turn():
    import pyarrow as pa

    sources = (
        EventSource("a", "P", "x"),
        EventSource("b", "P", "y"),
        EventSource("c", "P", "z"),
        EventSource("q", "Q", "x"),
    )
    named = [("P", "a"), ("P", "y"), ("P", "other"), ("P", "more"), ("P", "other"), ("Q", "any"), ("R", "a")]
    events = pa.RecordBatch.from_pydict({"type": [t for t, _ in named], "source": [s for _, s in named]})
    # "y" is where b is; c has no events of its own, and so gets those of all other names.
    assert sender_numbers(events, sources).tolist() == [0, 1, 2, 2, 2, 3, -1]


def test_what_was_estimated_stands_beside_what_was_measured():
    network = site(latency_s=0.1)
    workload = workload_of(YARD, network, rates={"Pos": 1.0})
    plan = plan_of(plan_greedy(workload, network).to_dict(), network)
    found = run_placement(YARD, cars(400), plan)
    results = compare(found)
    figures = {(row["figure"], row["of"]): row for row in results.rows}
    assert figures["flow B/s", "all links"]["estimated"] == plan.costs.total.flow_b_s
    delay = figures["delay s", "Rare to cloud"]
    assert 0 < delay["measured"] <= delay["estimated"]
    assert figures["delay s, in an idle network", "Rare to cloud"]["estimated"] == plan.costs.delays_s[-1]
    assert math.isfinite(figures["work /s", "edge"]["measured"])
    assert results.notes["detections are those of one process"] is True


def test_more_heartbeats_make_detections_earlier_and_late_ones_are_told():
    network = replace(site(latency_s=0.01), consumers=(Consumer("app", "cloud", latency_s=0.3),))
    plan = planned(YARD, network, lambda _: "cloud")
    found = {
        beat: run_placement(YARD, cars(), plan, settings=Settings(heartbeat_s=beat)) for beat in (2.0, 0.05)
    }
    late = {beat: each.outcome.delays_s["Rare to cloud"].max() for beat, each in found.items()}
    assert late[0.05] < 0.3 < late[2.0]
    assert "Rare to cloud" in compare(found[2.0]).notes["deliveries later than they may be"]
    assert compare(found[0.05]).notes["deliveries later than they may be"] == "none"


def test_time_points_need_no_source():
    query = compile_text("define Early detect time '1970-01-01T00:00:02Z' as t then Pos as p within 5 s")
    plan = planned(query, site(), lambda _: "cloud")
    found = run_placement(query, cars(), plan)
    assert found.is_same
    assert found.single_process["Early to cloud"].num_rows > 0
