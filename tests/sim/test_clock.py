"""Virtual time: one order, one seed."""

from __future__ import annotations

import pytest

from whimbrel.errors import NetworkError
from whimbrel.sim.clock import Clock


def test_what_is_asked_for_first_happens_first_at_the_same_time():
    clock, seen = Clock(), []
    for name in "abc":
        clock.at(1.0, lambda name=name: seen.append(name))
    clock.at(1.0, lambda: clock.after(0.0, lambda: seen.append("d")))
    assert clock.run() == 5
    assert seen == ["a", "b", "c", "d"]


def test_a_run_stops_at_a_time_and_goes_on_from_there():
    clock, seen = Clock(), []
    for time in (1.0, 2.0, 3.0):
        clock.at(time, lambda time=time: seen.append(time))
    clock.run(until_s=2.0)
    assert (seen, clock.now, len(clock)) == ([1.0, 2.0], 2.0, 1)
    with pytest.raises(NetworkError, match="already"):
        clock.at(1.5, lambda: None)


def test_random_numbers_go_by_seed_and_purpose():
    def draw(seed, name):
        return Clock(seed).generator(name).random()

    assert draw(1, "loss") == draw(1, "loss")
    assert len({draw(1, "loss"), draw(2, "loss"), draw(1, "moves")}) == 3
