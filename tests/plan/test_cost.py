"""What plans cost, by hand and against walking every link of every way at every moment."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.worlds import random_network, random_workload

from whimbrel.errors import NetworkError
from whimbrel.plan.areas import Areas
from whimbrel.plan.contacts import PeriodicContacts
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.routes import Routes
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

LINE = Network(
    (
        Broker("a", area=(0, 0, 1, 1)),
        Broker("b", area=(1, 0, 2, 1), capacity=1, storage_b=100),
        Broker("c", area=(2, 0, 3, 1)),
    ),
    (
        Link("a", "b", 50, latency_s=2, cost=3),
        Link("b", "c", 1000, latency_s=5, contacts=PeriodicContacts(10, 10)),
    ),
    movers=(Mover("m", ((0, 0.5, 0.5), (10, 2.5, 0.5))),),
)
WORK = Workload(
    (Feed("in", 2, 10, "a"),),
    (Task("t", ("in",), 1, 5, work=2, fixed_b=60, window_b=60), Task("u", ("in", "t"), 1, 1)),
    (Delivery("u", "c", latency_s=20),),
)


def test_a_stream_goes_once_to_each_broker_that_reads_it():
    costs = evaluate(WORK, LINE, {"t": "b", "u": "b"})
    # 20 bytes a second from a to b, read twice there; 1 byte a second from b to c, where half of the messages
    # wait for 5 s on average.
    assert (costs.running.bdp_b, costs.running.flow_b_s, costs.running.cost_s) == (20 * 2 + 1 * 7.5, 21, 61)
    assert {(link.a, load) for link, load in costs.traffic_b_s.items()} == {("a", 20), ("b", 1)}
    # 10 bytes at 50 a second, 1 s of work on half of what comes in a second, then one byte at 1000 a second,
    # and ways of 2 and 5 s with a wait of 10 s.
    assert (costs.work, costs.delays_s) == ({"b": 2}, (pytest.approx(17 + 10 / 50 + 1 + 1 / 1000),))


def test_what_is_too_much_is_said():
    costs = evaluate(WORK, LINE, {"t": "b", "u": "b"})
    assert violations(WORK, LINE, costs) == (
        "b would have to do 2 of work a second, and can do 1",
        "b would have to remember 120 B, and has room for 100 B",
        "u would reach c after 18.2 s, or any time when links and brokers are busy, and has to after 20 s",
    )
    busy = Workload((Feed("in", 10, 100, "a"),), (), (Delivery("in", "c", latency_s=16),))
    assert violations(busy, LINE, evaluate(busy, LINE, {})) == (
        "the link a - b would have to carry 1 kB/s, and can carry 50 B/s",
        "the link b - c would have to carry 1 kB/s, and can carry 500 B/s",
        "in would reach c after 19.1 s, or any time when links and brokers are busy, and has to after 16 s",
    )


def test_movers_are_averaged_over_the_time():
    # The mover is in a until 2.5 s, in b until 7.5 s, then in c.
    work = Workload((Feed("in", 1, 8, "m"),), (), (Delivery("in", "a"),))
    costs = evaluate(work, LINE, {}, Objective.FLOW)
    assert costs.running.flow_b_s == pytest.approx(8 * (0.5 * 1 + 0.25 * 2))
    assert costs.delays_s == (pytest.approx(17 + 8 / 50 + 8 / 1000),)


def test_tasks_that_move_take_their_state_along():
    work = Workload((Feed("in", 1, 8, "a"),), (Task("t", ("in",), 0, 0, fixed_b=30, window_b=10),), ())
    costs = evaluate(work, LINE, {"t": [(0, "a"), (4, "c")]})
    assert costs.moving.flow_b_s == pytest.approx(40 * 2 / 10)
    assert costs.running.flow_b_s == pytest.approx(0.6 * 8 * 2)


def test_every_task_needs_a_host():
    with pytest.raises(NetworkError, match="no host for the task 'u'"):
        evaluate(WORK, LINE, {"t": "a"})
    with pytest.raises(NetworkError, match="no broker is named 'd'"):
        evaluate(WORK, LINE, {"t": "a", "u": "d"})
    with pytest.raises(NetworkError, match="no task is named 'v'"):
        evaluate(WORK, LINE, {"t": "a", "u": "a", "v": "a"})


class Walk:
    """Where everything is at one moment, and every link of every way."""

    def __init__(self, workload, network, hosts, objective, time):
        self.workload, self.network, self.hosts, self.time = workload, network, hosts, time
        self.routes, self.areas = Routes(network, objective.weight), Areas(network)

    def broker(self, at):
        if at in self.network.number:
            return at
        t, x, y = np.array(self.network.mover[at].track).T
        place = np.interp(self.time, t, x), np.interp(self.time, t, y)
        return self.network.brokers[self.areas.serving(*place)[0]].name

    def host(self, name):
        if name in self.workload.feed:
            return self.broker(self.workload.feed[name].at)
        return [where for since, where in self.hosts[name] if since <= self.time][-1]

    def way(self, name, a, b):
        size = self.workload.stream(name).size_b
        return sum(
            link.contacts.longest_wait_s + link.latency_s + size / link.bandwidth_b_s
            for link in self.routes.links(a, b)
        )

    def ready(self, name):
        inputs = self.workload.task[name].inputs if name in self.workload.task else ()
        return max(
            (
                self.ready(each)
                + self.way(each, self.host(each), self.host(name))
                + self.work(name, each) / self.network[self.host(name)].capacity
                for each in inputs
            ),
            default=0,
        )

    def work(self, name, each):
        comes = sum(self.workload.stream(other).bytes_s for other in self.workload.task[name].inputs)
        return self.workload.task[name].work * self.workload.stream(each).size_b / comes if comes else 0

    def delay(self, delivery):
        name = delivery.stream
        return self.ready(name) + self.way(name, self.host(name), self.broker(delivery.at))

    def crossings(self):
        for stream in (*self.workload.feeds, *self.workload.tasks):
            ends = [self.host(task.name) for task in self.workload.tasks if stream.name in task.inputs]
            ends += [self.broker(each.at) for each in self.workload.deliveries if each.stream == stream.name]
            for end in set(ends):
                for link in self.routes.links(self.host(stream.name), end):
                    yield link, stream.bytes_s


def moments_of(network, until):
    """Cut the time wherever a mover is on a border (they are at whole x), or tasks move (at 7 s)."""
    times = {0.0, 7.0, float(until)}
    for mover in network.movers:
        for (t0, x0, _), (t1, x1, _) in pairwise(mover.track):
            for border in range(len(network.brokers) + 1):
                if min(x0, x1) < border < max(x0, x1):
                    times.add(t0 + (border - x0) / (x1 - x0) * (t1 - t0))
    return [((a + b) / 2, (b - a) / until) for a, b in pairwise(sorted(times)) if b <= until]


def test_what_never_comes_would_take_no_less_time_on_busy_links_than_on_idle_ones():
    network = Network((Broker("a"), Broker("b")), (Link("a", "b", bandwidth_b_s=100),))
    workload = Workload((Feed("f", 1, 4, "a"),), (Task("t", ("f",), 0, 18),), (Delivery("t", "b"),))
    costs = evaluate(workload, network, {"t": "a"})
    assert costs.delays_s == costs.bounds_s == (pytest.approx(0.18),)


@given(st.integers(0, 10**6), st.sampled_from(Objective))
def test_costs_agree_with_walking_every_way(seed, objective):
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(1, 6), movers=rng.randrange(3), narrow=True, capacity=True)
    workload = random_workload(rng, network, rng.randrange(4))
    names = list(network.number)
    hosts = {
        task.name: [(0.0, rng.choice(names)), *([(7.0, rng.choice(names))] if rng.random() < 0.3 else [])]
        for task in workload.tasks
    }
    costs = evaluate(workload, network, hosts, objective, until_s=20)
    sums, traffic, delays = np.zeros(3), Counter(), [0.0] * len(workload.deliveries)
    for time, share in moments_of(network, 20):
        walk, load = Walk(workload, network, hosts, objective, time), Counter()
        for link, carried in walk.crossings():
            sums += share * carried * np.array([link.contacts.mean_wait_s + link.latency_s, 1, link.cost])
            load[link] += carried
        traffic |= load
        delays = [max(old, walk.delay(each)) for old, each in zip(delays, workload.deliveries, strict=True)]
    assert [costs.running.bdp_b, costs.running.flow_b_s, costs.running.cost_s] == pytest.approx(sums.tolist())
    told = {link: load for link, load in costs.traffic_b_s.items() if load > 1e-9}
    assert told == pytest.approx(dict(traffic))
    assert costs.delays_s == pytest.approx(tuple(delays))
    assert all(bound >= delay * (1 - 1e-9) for bound, delay in zip(costs.bounds_s, delays, strict=True))
