"""Wherever tasks run and whenever they move, consumers get what one process finds: each detection, once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_fragment_session import rows
from tests.reference.strategies import event_lists, graphs
from tests.reference.tables import event_table

from experiments.figures import traffic_figures
from experiments.query_run import QuerySettings, run_query
from experiments.workloads import run_workload
from whimbrel import detect
from whimbrel.errors import DataError, NetworkError
from whimbrel.graph.fragments import cut
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.network import Broker, Consumer, EventSource, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.outages import Failure
from whimbrel.sim.settings import Settings

HOSTS = ("cloud", "left", "right", "far")
some_contacts = st.one_of(
    st.just(ALWAYS),
    st.builds(PeriodicContacts, st.sampled_from([0.5, 3.0]), st.sampled_from([0.2, 1.0]), st.just(0.1)),
)


@st.composite
def networks(draw):
    """A chain with a branch: cloud - left - far, cloud - right."""
    links = tuple(
        Link(
            a,
            b,
            bandwidth_b_s=draw(st.sampled_from([500.0, 20_000.0, float("inf")])),
            latency_s=draw(st.sampled_from([0.0, 0.05, 2.5])),
            contacts=draw(some_contacts),
            loss=draw(st.sampled_from([0.0, 0.2])),
        )
        for a, b in (("cloud", "left"), ("left", "far"), ("cloud", "right"))
    )
    sources = tuple(EventSource(kind, kind, draw(st.sampled_from(HOSTS))) for kind in "ABCD")
    consumers = tuple(Consumer(name, draw(st.sampled_from(HOSTS))) for name in ("one", "two"))
    return Network(tuple(Broker(name) for name in HOSTS), links, sources, consumers)


how = st.builds(
    QuerySettings,
    seed=st.integers(0, 3),
    step_s=st.sampled_from([0.0, 1.0]),
    heartbeat_s=st.sampled_from([0.7, 5.0]),
    filters_at_source=st.booleans(),
)


@settings(max_examples=20)
@given(st.data(), graphs(), event_lists(), networks(), how)
def test_every_placement_and_every_move_gives_the_same_detections(data, graph, events, network, how):
    if not events:
        return
    query, table = Query(graph), event_table(events)
    hosts = st.sampled_from(HOSTS)
    tasks = [piece.name for piece in cut(query)]
    placement = {task: data.draw(hosts) for task in tasks}
    times = st.floats(0.0, 12.0, allow_nan=False)
    moves = data.draw(st.lists(st.tuples(times, st.sampled_from(tasks), hosts), max_size=4))
    found = run_query(query, table, network, placement, moves=moves, settings=how)
    expected = rows([detect(query, table)])
    for consumer in ("one", "two"):
        assert rows([found.detections[consumer]]) == expected
    assert found.late == 0
    assert found.traffic.on_their_way == 0
    assert not found.traffic.drops
    assert all(move.started_s is not None for move in found.moves)


QUERY = compile_text("""
define Fast(v) detect Pos(speed > 20) as p assign v = p.speed group by source
define Pair(n) detect Fast as a then Fast as b within 10 s assign n = a.v + b.v group by source
""")


def line(**link):
    return Network(
        (Broker("edge"), Broker("cloud")),
        (Link("edge", "cloud", **link),),
        (EventSource("cars", "Pos", "edge"),),
        (Consumer("app", "cloud"),),
    )


def cars(count=20):
    return [
        {
            "id": f"e{n}", "type": "Pos", "time": n, "source": f"car{n % 3}", "x": float(n), "y": 0.0,
            "speed": 15.0 + n % 10,
        }
        for n in range(count)
    ]  # fmt: skip


def test_detecting_at_the_source_sends_less_and_delays_are_those_of_the_links():
    placed = {
        host: run_query(QUERY, cars(), line(latency_s=0.5), {"Fast": host, "Pair": host})
        for host in ("edge", "cloud")
    }
    assert placed["edge"].traffic.by_kind["data"].bytes < placed["cloud"].traffic.by_kind["data"].bytes
    assert placed["edge"].detections["app"].equals(placed["cloud"].detections["app"])
    assert placed["edge"].delays_s["app"].tolist() == pytest.approx(
        [0.5] * len(placed["edge"].delays_s["app"])
    )


def test_a_move_is_measured():
    placement = {"Fast": "edge", "Pair": "edge"}
    how = QuerySettings(fixed_b={"Pair": 960.0})
    network = line(latency_s=0.25, bandwidth_b_s=1000.0)
    found = run_query(QUERY, cars(), network, placement, moves=[(5.0, "Pair", "cloud")], settings=how)
    (move,) = found.moves
    # The fixed state and its header take 1 s to send and 0.25 s on the way; the answer 0.04 s and 0.25 s.
    assert move.ready_s == pytest.approx(6.54)
    # Everyone who sends to it is at the edge, and so is told and answers at once.
    assert move.stopped_s == pytest.approx(6.54)
    assert move.down_s == pytest.approx((move.state_b + 40) / 1000 + 0.25)
    assert found.traffic.by_kind["state"].bytes == move.state_b + 40
    assert rows([found.detections["app"]]) == rows([detect(QUERY, cars())])


def test_a_consumer_that_drives_on_takes_its_detections_along():
    brokers = (
        Broker("cloud"),
        Broker("west", parent="cloud", area=(0.0, 0.0, 10.0, 10.0)),
        Broker("east", parent="cloud", area=(10.0, 0.0, 20.0, 10.0)),
    )
    links = (Link("cloud", "west", latency_s=0.4), Link("cloud", "east", latency_s=0.4))
    network = Network(
        brokers,
        links,
        consumers=(Consumer("driver", "car"),),
        movers=(Mover("car", ((0.0, 1.0, 5.0), (19.0, 19.0, 5.0))),),
    )
    found = run_query(QUERY, cars(), network, {"Fast": "west", "Pair": "west"})
    assert rows([found.detections["driver"]]) == rows([detect(QUERY, cars())])
    assert found.traffic.by_kind["control"].messages > 0
    assert found.traffic.by_link["cloud", "east"].bytes > 0


def test_events_of_any_type_come_from_the_source_of_their_own():
    query = compile_text("define Next detect A as a then * as b within 2 s")
    network = Network(
        (Broker("edge"), Broker("cloud")),
        (Link("edge", "cloud", latency_s=0.3),),
        (EventSource("as", "A", "edge"), EventSource("bs", "B", "cloud")),
    )
    events = [{"id": f"e{n}", "type": "AB"[n % 2], "time": n} for n in range(6)]
    found = run_query(query, events, network, {"Next": "cloud"})
    assert rows([found.detections["consumer"]]) == rows([detect(query, events)])
    assert found.traffic.by_link["edge", "cloud"].bytes > 0


def test_time_points_pass_at_every_broker():
    query = compile_text("""
        define Early detect time '1970-01-01T00:00:02Z' then A as a within 5 s
        define Pair detect Early as e then B as b within 5 s
    """)
    events = [{"id": f"e{n}", "type": "AB"[n % 2], "time": n} for n in range(12)]
    sources = (EventSource("as", "A", "edge"), EventSource("bs", "B", "cloud"))
    network = Network((Broker("edge"), Broker("cloud")), (Link("edge", "cloud", latency_s=0.3),), sources)
    found = run_query(query, events, network, {"Early": "edge", "Pair": "cloud"})
    assert found.detections["consumer"].num_rows == 3
    assert rows([found.detections["consumer"]]) == rows([detect(query, events)])


def test_a_source_that_drives_on_sends_from_where_it_is():
    brokers = (
        Broker("cloud"),
        Broker("west", parent="cloud", area=(0.0, 0.0, 10.0, 10.0)),
        Broker("east", parent="cloud", area=(10.0, 0.0, 20.0, 10.0)),
    )
    network = Network(
        brokers,
        (Link("cloud", "west"), Link("cloud", "east")),
        (EventSource("cars", "Pos", "bus"),),
        (Consumer("app", "cloud"),),
        (Mover("bus", ((0.0, 1.0, 5.0), (19.0, 19.0, 5.0))),),
    )
    found = run_query(QUERY, cars(), network, {"Fast": "cloud", "Pair": "cloud"})
    assert rows([found.detections["app"]]) == rows([detect(QUERY, cars())])
    sent = {start: used.bytes for (start, _), used in found.traffic.by_link.items()}
    assert sent["west"] > 0
    assert sent["east"] > 0


def test_what_a_broker_loses_when_it_fails_is_told():
    how = QuerySettings(failures=(Failure(8.5, 16.5, broker="cloud"),), recovers=False)
    found = run_query(QUERY, cars(), line(), {"Fast": "edge", "Pair": "edge"}, settings=how)
    assert {drop.reason for drop in found.traffic.drops} == {"broker failed"}
    # Of the detections at 9, 16, 17, 18 and 19 s, those in between are lost; what comes after is not.
    expected = rows([detect(QUERY, cars())])
    found_rows = rows([found.detections["app"]])
    assert len(found_rows) == 3
    assert all(row in expected for row in found_rows)


def test_events_without_ids_give_the_same_detections_as_in_one_process():
    nameless = [{key: value for key, value in car.items() if key != "id"} for car in cars()]
    found = run_query(QUERY, nameless, line(), {"Fast": "edge", "Pair": "edge"})
    assert rows([found.detections["app"]]) == rows([detect(QUERY, nameless)])


def test_events_need_different_ids_and_tasks_brokers():
    with pytest.raises(DataError, match="ids of their own"):
        run_query(QUERY, [*cars(), *cars()], line(), {"Fast": "edge", "Pair": "edge"})
    with pytest.raises(NetworkError, match="'Pair' has no broker"):
        run_query(QUERY, cars(), line(), {"Fast": "edge"})


def test_a_workload_sends_what_it_says():
    workload = Workload(
        (Feed("sensor", 2.0, 100.0, "edge"),),
        (Task("halve", ("sensor",), 1.0, 100.0, fixed_b=500.0, window_b=300.0),),
        (Delivery("halve", "cloud"),),
    )
    network = line(latency_s=0.1)
    found = run_workload(workload, network, {"halve": "edge"}, until_s=100.0)
    headers = 40 * found.traffic.whole.messages
    assert found.traffic.whole.bytes - headers == pytest.approx(100 * 100.0)
    assert found.traffic.whole.bdp == pytest.approx(0.1 * found.traffic.whole.bytes)
    moved = run_workload(
        workload, network, {"halve": "edge"}, until_s=100.0, moves=[(50.0, "halve", "cloud")]
    )
    (move,) = moved.moves
    assert (move.fixed_b, move.state_b, move.down_s) == (500.0, 300.0, pytest.approx(0.1))
    assert len(moved.delays_s["halve to cloud (0)"]) == len(found.delays_s["halve to cloud (0)"])


def test_best_effort_does_without_what_is_lost():
    network = Network((Broker("edge"), Broker("cloud")), (Link("edge", "cloud", loss=0.3),))
    workload = Workload(
        (Feed("sensor", 10.0, 100.0, "edge"),),
        (Task("all", ("sensor",), 10.0, 100.0),),
        (Delivery("all", "cloud"),),
    )
    given = {"until_s": 20.0, "step_s": 0.0}
    kept = run_workload(workload, network, {"all": "cloud"}, **given)
    found = run_workload(workload, network, {"all": "cloud"}, settings=Settings(reliable=False), **given)
    (every,), (some,) = (each.delays_s.values() for each in (kept, found))
    lost = traffic_figures(found.traffic)["dropped"]["lost on a link"]
    assert (len(every), kept.traffic.drops) == (200, [])
    assert len(some) + lost == 200
    assert 30 < lost < 90
    assert (kept.traffic.whole.repeated > 0, found.traffic.whole.repeated) == (True, 0)


def test_streams_go_on_past_what_a_full_queue_dropped():
    network = line(contacts=PeriodicContacts(8.0, 2.0, 0.0), bandwidth_b_s=2000.0)
    how = QuerySettings(queue_b=1500.0, header_b=0.0)
    found = run_query(QUERY, cars(60), network, {"Fast": "cloud", "Pair": "cloud"}, settings=how)
    assert {drop.reason for drop in found.traffic.drops} == {"queue full"}
    expected, some = rows([detect(QUERY, cars(60))]), rows([found.detections["app"]])
    assert 0 < len(some) < len(expected)
    assert found.traffic.on_their_way == 0
    # Something is still found of what happened after the first drop.
    first = min(drop.time_s for drop in found.traffic.drops)
    assert found.detections["app"].column("end").cast("int64").to_pylist()[-1] / 1e6 > first
