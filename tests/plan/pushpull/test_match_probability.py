"""Shares of events that meet others: against events that are drawn and looked through."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.plan.pushpull.match_probability import (
    share_amid,
    share_between,
    shares_in_order,
    shares_together,
)


def drawn(expected, windows, seed=0):
    """Draw events of every part; a window is 1 long."""
    rng = np.random.default_rng(seed)
    return [sorted(rng.uniform(0, windows, rng.poisson(rate * windows)).tolist()) for rate in expected]


def near(times, low, high):
    """Give the events within an interval."""
    return times[bisect_left(times, low) : bisect_right(times, high)]


def meets(others, time):
    """Tell whether a window around a time has one of each of the others: try all that begin at one."""
    starts = [time, *(each for times in others for each in near(times, time - 1, time))]
    return any(all(near(times, start, start + 1) for times in others) for start in starts)


def follows(events, number, time):
    """Tell whether the others of a sequence lie around a time, within a window: the nearest ones are best."""
    first = last = time
    for times in reversed(events[:number]):
        before = near(times, first - 1, first)
        if not before:
            return False
        first = before[-1]
    for times in events[number + 1 :]:
        after = near(times, last, last + 1)
        if not after:
            return False
        last = after[0]
    return last - first <= 1


CASES = [(1.0, 0.5), (1.0, 1.0, 1.0), (0.3, 2.0, 1.0), (3.0, 1.5, 1.0, 0.75), (2.0,) * 6, (1.0,) * 5]


@pytest.mark.slow
@pytest.mark.parametrize("expected", CASES)
def test_shares_are_those_of_drawn_events(expected):
    events = drawn(expected, 6_000)
    together, in_order = shares_together(np.array(expected)), shares_in_order(np.array(expected))
    for number, times in enumerate(events):
        others = [each for other, each in enumerate(events) if other != number]
        # Events in one window are alike: as if there were one for each window.
        chance = 4 * 0.5 / 6_000**0.5
        assert together[number] == pytest.approx(np.mean([meets(others, t) for t in times]), abs=chance)
        assert in_order[number] == pytest.approx(
            np.mean([follows(events, number, t) for t in times]), abs=chance
        )


@pytest.mark.parametrize("expected", [(1.0, 0.5), (1.0, 1.0, 1.0), (0.5, 2.0, 0.7)])
def test_the_share_of_time_amid_others_is_that_of_drawn_events(expected):
    windows = 3_000
    events = drawn(expected, windows)
    moments = np.random.default_rng(1).uniform(1, windows - 1, windows).tolist()

    def is_amid(time):
        around = [near(times, time - 1, time + 1) for times in events]
        return any(max(some) - min(some) <= 1 and min(some) < time < max(some) for some in product(*around))

    found = np.mean([is_amid(time) for time in moments])
    assert share_amid(np.array(expected)) == pytest.approx(found, abs=4 * 0.5 / windows**0.5)
    gap = np.mean([follows([events[0], [time], *events[1:]], 1, time) for time in moments])
    assert share_between(np.array(expected)) == pytest.approx(gap, abs=4 * 0.5 / windows**0.5)


def test_two_meet_in_closed_form():
    expected = np.array([0.2, 3.0])
    assert shares_together(expected) == pytest.approx(1 - np.exp(-2 * expected[::-1]))
    assert shares_in_order(expected) == pytest.approx(1 - np.exp(-expected[::-1]))


def test_rare_ones_meet_as_the_first_term_says():
    """With n others that come rarely, each lies on either side: n + 1 ways to lay a window around all."""
    expected = np.full(5, 1e-4)
    assert shares_together(expected) == pytest.approx(5 * 1e-16, rel=1e-3)
    assert share_amid(np.full(3, 1e-4)) == pytest.approx(2e-12)
    assert share_amid(np.array([1.0])) == 0.0


rates = st.lists(st.floats(1e-3, 5.0), min_size=2, max_size=7)


@given(rates)
def test_what_has_more_to_meet_meets_it_less_often(given_rates):
    expected = np.array(given_rates)
    for shares in (shares_together, shares_in_order):
        found = shares(expected)
        assert ((found >= 0) & (found <= 1)).all()
        fewer = shares(expected[:-1])
        assert (found[:-1] <= fewer * 1.01 + 1e-6).all()
    assert (shares_in_order(expected) <= shares_together(expected) * 1.01 + 1e-6).all()
