"""Several buckets at once: which of them say anything, and how far a server may be behind what comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.plan.arrival_curves import arrival_curve, bytes_within
from whimbrel.plan.servers import Flow, Server

NUMBERS = st.integers(0, 40).map(lambda n: n / 4)
BUCKETS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5)


@given(BUCKETS, NUMBERS)
def test_what_is_left_out_says_nothing(buckets, time_s):
    kept = arrival_curve(buckets)
    assert bytes_within(kept, time_s) == pytest.approx(min(burst + rate * time_s for rate, burst in buckets))
    assert list(kept) == sorted(kept)


@given(st.lists(st.tuples(BUCKETS, NUMBERS, st.integers(1, 3)), min_size=1, max_size=3), NUMBERS)
def test_a_server_is_behind_by_what_comes_beyond_what_it_serves(flows, room):
    server = Server(1.0 + room, lag_s=0.5)
    found = [
        (Flow(arrival_curve(buckets), late_s=jitter, soon_s=0.0), count) for buckets, jitter, count in flows
    ]
    server.together = [found]
    longest = server.longest_s()
    comes = sum(count * min(rate for rate, _ in buckets) for buckets, _, count in flows)
    if comes > server.rate:
        assert longest == float("inf")
        return
    # All of it is straight between the times at which two buckets of a stream say the same.
    times = {0.0}
    for buckets, jitter, _ in flows:
        for rate, burst in buckets:
            times |= {(b - burst) / (rate - r) - jitter for r, b in buckets if r != rate}
    behind = max(
        sum(
            count * min(burst + rate * (time + jitter) for rate, burst in buckets)
            for buckets, jitter, count in flows
        )
        - server.rate * time
        for time in times
        if time >= 0
    )
    assert longest == pytest.approx(0.5 + behind / server.rate)
