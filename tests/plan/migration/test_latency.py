"""Shares of a latency restriction add up to no more than the whole, and leave nothing over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migration_problems import random_problem
from whimbrel.plan.migration import split_latency
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

CHAIN = Workload(
    (Feed("a", 1, 1, "car"), Feed("b", 1, 1, "bus")),
    (Task("d", ("a",), 1, 1), Task("f", ("d", "b"), 1, 1)),
    (Delivery("f", "user", 9.0),),
)


def test_a_short_path_has_more_for_each_stream():
    shares = split_latency(CHAIN)
    assert shares["@car", "d"] == pytest.approx(3)
    assert shares["d", "f"] == pytest.approx(3)
    assert shares["f", "@user"] == pytest.approx(3)
    assert shares["@bus", "f"] == pytest.approx(6)


def test_without_a_restriction_shares_are_endless():
    free = Workload(CHAIN.feeds, CHAIN.tasks, (Delivery("f", "user"),))
    assert set(split_latency(free).values()) == {math.inf}


@given(st.integers(0, 2**32 - 1))
def test_no_path_takes_more_than_its_restriction_and_every_stream_lies_on_a_full_one(seed):
    workload = random_problem(seed, tasks=5, late=True).workload
    shares = split_latency(workload)
    full = dict.fromkeys(shares, False)
    for delivery in workload.deliveries:
        for path in _paths(workload, delivery):
            taken = sum(shares[key] for key in path)
            assert taken <= delivery.latency_s + 1e-9
            for key in path:
                full[key] = full[key] or np.isclose(taken, delivery.latency_s, rtol=1e-6)
    if len(workload.deliveries) == 1:
        assert all(full.values())


def _paths(workload: Workload, delivery: Delivery) -> list[list[tuple[str, str]]]:
    """List all paths from feeds to a delivery, as streams."""

    def to(name: str) -> list[list[tuple[str, str]]]:
        if name in workload.feed:
            return [[]]
        return [[*path, (end(source), name)] for source in workload.task[name].inputs for path in to(source)]

    def end(name: str) -> str:
        return f"@{workload.feed[name].at}" if name in workload.feed else name

    return [[*path, (end(delivery.stream), f"@{delivery.at}")] for path in to(delivery.stream)]
