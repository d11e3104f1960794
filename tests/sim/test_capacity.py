"""Brokers take time for work: worked out by hand, and never to the harm of what is found."""

from __future__ import annotations

import pytest
from tests.engine.test_fragment_session import rows
from tests.sim.test_query_run import QUERY, cars, line

from experiments.query_run import QuerySettings, run_query
from experiments.workloads import run_workload
from whimbrel import detect
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.clock import Clock
from whimbrel.sim.processors import Job, Processor


def test_jobs_are_done_one_after_the_other_and_again_after_a_failure():
    clock, done = Clock(), []
    host = Processor(clock, capacity=2.0)

    def job(name, work):
        return Job(name, work, lambda: done.append((name, clock.now)))

    clock.at(0.0, lambda: host.submit(job("a", 2.0)))
    clock.at(0.5, lambda: host.submit(job("b", 4.0)))
    clock.at(0.5, lambda: host.submit(job("free", 0.0)))
    clock.at(2.0, host.fail)
    clock.at(5.0, lambda: host.restart([job("first", 1.0)]))
    clock.run()
    # b is half done when the broker fails, and done again after what comes first.
    assert done == [("a", 1.0), ("first", 5.5), ("b", 7.5), ("free", 7.5)]
    assert host.work == 7.0


def loaded(capacity, until_s=60.0):
    """Run a task that needs 2 of work a second for a feed of 4 events a second."""
    workload = Workload(
        (Feed("camera", 4.0, 100.0, "edge"),),
        (Task("faces", ("camera",), 1.0, 50.0, work=2.0),),
        (Delivery("faces", "edge"),),
    )
    network = Network((Broker("edge", capacity=capacity), Broker("cloud")), (Link("edge", "cloud"),))
    found = run_workload(workload, network, {"faces": "edge"}, until_s=until_s, step_s=0.25)
    return found, found.delays_s["faces to edge (0)"]


def test_work_takes_its_share_of_the_capacity():
    found, delays = loaded(4.0)
    # An event is 0.5 of work, and so 0.125 s of a broker that can do 4 a second.
    assert delays.tolist() == pytest.approx([0.125] * 240)
    assert found.work["edge"] == pytest.approx(120.0)
    assert found.busy(60.0)["edge"] == pytest.approx(0.5)


def test_too_much_work_shows_as_delay_that_grows():
    found, delays = loaded(1.0)
    # Half a second of work comes every quarter of a second.
    assert (delays[1:] - delays[:-1]).tolist() == pytest.approx([0.25] * 239)
    assert found.busy(60.0)["edge"] == pytest.approx(2.0)


def test_any_capacity_takes_no_time():
    _, delays = loaded(float("inf"))
    assert delays.max() == 0.0


def test_a_busy_broker_finds_the_same_later():
    network = line(latency_s=0.1)
    slow = Network(
        (Broker("edge", capacity=0.5), Broker("cloud")), network.links, network.sources, network.consumers
    )
    how = QuerySettings(work={"Fast": 0.2, "Pair": 0.1})
    placement = {"Fast": "edge", "Pair": "edge"}
    found = run_query(QUERY, cars(), slow, placement, moves=[(10.0, "Pair", "cloud")], settings=how)
    assert rows([found.detections["app"]]) == rows([detect(QUERY, cars())])
    # A car takes 0.4 s at the edge, and a fast one 0.2 s more there; in the cloud nothing takes time.
    assert found.delays_s["app"][0] == pytest.approx(0.1 + 0.4 + 0.2)
    assert found.delays_s["app"][-1] == pytest.approx(0.1 + 0.4)
