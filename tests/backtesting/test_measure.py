"""What a recording has of each source: how much, how large, and how much at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.backtesting.measure import burst_of, measure
from whimbrel.lang.wbl import compile_text
from whimbrel.plan.statistics import MULTIPLES

QUERY = compile_text("""
define Fast(v) detect Pos(speed > 20) as p assign v = p.speed
define Any(n) detect *(source = "a") as p assign n = 1
""")
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(["a", "b", "c", None]),
        st.integers(15, 30),
        st.sampled_from(["", "a long note", "a note that is longer than all"]),
        st.sampled_from(["Pos", "Pos", "Stop"]),
    ),
    min_size=2,
    max_size=30,
).filter(lambda events: len({event[0] for event in events}) > 1)


def rows_of(events):
    return [
        {"type": kind, "time": time, "source": source, "speed": float(speed), "note": note}
        for time, source, speed, note, kind in events
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=20),
    st.sampled_from([0.0, 0.1, 1.0, 7.5]),
)
def test_a_burst_is_the_most_by_which_an_interval_exceeds_the_rate(came, rate):
    came = sorted(came)
    naive = max(
        sum(amount for time, amount in came if start <= time <= end) - rate * (end - start)
        for start, _ in came
        for end, _ in came
        if start <= end
    )
    times, amounts = (np.array(each, float) for each in zip(*came, strict=True))
    assert burst_of(times, amounts, rate) == pytest.approx(naive)


@given(EVENTS)
def test_what_passes_is_counted_for_each_source(events):
    statistics = measure(QUERY, rows_of(events))
    seconds = max(event[0] for event in events) - min(event[0] for event in events)
    wanted = {
        "Pos": lambda event: event[4] == "Pos",
        "Pos[speed > 20]": lambda event: event[4] == "Pos" and event[2] > 20,
        "*[source = 'a']": lambda event: event[1] == "a",
    }
    assert wanted.keys() <= statistics.parts.keys()
    for name, is_wanted in wanted.items():
        chosen = [event for event in events if is_wanted(event)]
        parts = statistics.parts[name]
        assert parts.keys() == {(event[4], event[1]) for event in chosen}
        assert statistics.rates[name] == pytest.approx(len(chosen) / seconds)
        for (kind, source), part in parts.items():
            mine = [event for event in chosen if (event[4], event[1]) == (kind, source)]
            assert part.rate_hz == pytest.approx(len(mine) / seconds)
            # Two times, the speed and what tells events without ids apart; type, source and note with their
            # lengths.
            sizes = [32 + 4 + len(kind) + (4 + len(source) if source else 0) + 4 + len(e[3]) for e in mine]
            assert part.size_b == pytest.approx(sum(sizes) / len(mine))
            for multiple, burst in zip(MULTIPLES, part.bursts, strict=True):
                assert burst == pytest.approx(naive_burst(mine, sizes, part, multiple))


def naive_burst(mine, sizes, part, multiple):
    """Look at every interval that begins and ends with an event."""
    found = 0.0
    for start in {event[0] for event in mine}:
        for end in {event[0] for event in mine if event[0] >= start}:
            inside = [size for event, size in zip(mine, sizes, strict=True) if start <= event[0] <= end]
            most = max(len(inside), sum(inside) / part.size_b)
            found = max(found, most - multiple * part.rate_hz * (end - start))
    return found


@given(EVENTS)
def test_definitions_come_at_once_as_their_ends_say(events):
    statistics = measure(QUERY, rows_of(events))
    fast = [event for event in events if event[4] == "Pos" and event[2] > 20]
    times = sorted(event[0] for event in fast)
    if not fast:
        assert "Fast" not in statistics.bursts
        return
    rate = statistics.rates["Fast"]
    for multiple, burst in zip(MULTIPLES, statistics.bursts["Fast"], strict=True):
        naive = max(
            j - i + 1 - multiple * rate * (times[j] - times[i])
            for i in range(len(times))
            for j in range(i, len(times))
        )
        assert burst == pytest.approx(naive)
