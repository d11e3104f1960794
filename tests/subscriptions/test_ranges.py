"""Subscriptions to ranges are found as if each were tried, whatever is added and removed."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb

SPECIAL = [
    -math.inf,
    -1.7e308,
    -3.0,
    -1.0,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    1.0,
    1.5,
    3.0,
    64.0,
    1.7e308,
    math.inf,
]
finite = [value for value in SPECIAL if math.isfinite(value)]
bounds = st.one_of(st.sampled_from(finite), st.integers(-40, 40).map(lambda n: n / 4))
seen = st.one_of(st.sampled_from(SPECIAL), st.integers(-44, 44).map(lambda n: n / 4), st.none())
ranges = st.one_of(
    st.tuples(st.just("between"), bounds, bounds),
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), bounds),
)
asks = st.tuples(
    st.sampled_from([None, "A", "B"]),
    st.lists(st.tuples(st.sampled_from(["v", "w"]), ranges), min_size=1, max_size=3),
)


def literal(value):
    return format(value, ".400f").rstrip("0") + "0"


def text_of(asked):
    name, (how, *ends) = asked
    if how == "between":
        return f"{name} between {literal(ends[0])} and {literal(ends[1])}"
    return f"{name} {how} {literal(ends[0])}"


def holds(value, asked):
    how, *ends = asked
    if value is None:
        return False
    if how == "between":
        return ends[0] <= value <= ends[1]
    return {"<": value < ends[0], "<=": value <= ends[0], ">": value > ends[0], ">=": value >= ends[0]}[how]


def meets(event, ask):
    kind, conditions = ask
    return kind in (None, event["type"]) and all(holds(event[name], asked) for name, asked in conditions)


def found(subs, events):
    table = subs.match(events)
    rows = table["event_row"].to_pylist()
    assert rows == sorted(rows)
    pairs = list(zip(rows, table["subscription"].to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


@given(data=st.data())
def test_ranges_are_found_as_if_each_were_tried(data):
    subs, there = wb.Subscriptions(), {}
    for turn in range(data.draw(st.integers(1, 3))):
        for place, ask in enumerate(data.draw(st.lists(asks, max_size=12))):
            number = 100 * turn + place
            subs.add(number, type=ask[0], where=" and ".join(text_of(each) for each in ask[1]))
            there[number] = ask
        gone = data.draw(st.sets(st.sampled_from(sorted(there)))) if there else set()
        subs.remove(sorted(gone))
        there = {number: ask for number, ask in there.items() if number not in gone}
        rows = st.fixed_dictionaries({"type": st.sampled_from(["A", "B"]), "v": seen, "w": seen})
        batch = data.draw(st.lists(rows, max_size=6))
        expected = {
            (row, name) for row, e in enumerate(batch) for name, ask in there.items() if meets(e, ask)
        }
        events = pa.table(
            {
                "type": pa.array([e["type"] for e in batch], pa.string()),
                "v": pa.array([e["v"] for e in batch], pa.float64()),
                "w": pa.array([e["w"] for e in batch], pa.float64()),
            }
        )
        assert found(subs, events) == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["half lines", "few bounds", "narrow", "around zero"])
def test_chains_that_grow_and_shrink_lose_nothing(kind):
    random = np.random.default_rng(5)
    count = 2_500
    low = random.integers(-200, 200, count) / 2  # few different texts: reading them takes most of the time
    high = {
        "half lines": np.full(count, math.inf),
        "few bounds": np.full(count, 50.0),
        "narrow": low + 0.25,
        "around zero": np.abs(low) + 1,
    }[kind]
    if kind == "around zero":
        low = -high
    if kind == "few bounds":
        low = np.round(low / 50) * 50
    subs, there = wb.Subscriptions(), np.zeros(count, bool)
    for turn in range(3):
        for n in np.flatnonzero(~there)[: (2_000, 300, 1_000)[turn]].tolist():
            bounded = f"v >= {low[n]}" + ("" if math.isinf(high[n]) else f" and v <= {high[n]}")
            subs.add(n, type="A", where=bounded)
            there[n] = True
        gone = random.choice(np.flatnonzero(there), (500, 1_700, 100)[turn], replace=False)
        subs.remove(gone)
        there[gone] = False
        v = np.append(random.uniform(-120, 120, 40), [-50.0, 0.0, 50.0])
        rows, numbers = np.nonzero((low <= v[:, None]) & (v[:, None] <= high) & there)
        expected = set(zip(rows.tolist(), numbers.tolist(), strict=True))
        assert found(subs, pa.table({"type": ["A"] * len(v), "v": v})) == expected
    assert (subs._index._keys[:count] & 1 == 0).sum() > 500, "no range led to anybody"
    subs.remove(np.flatnonzero(there))
    assert subs._index._ranges.sum() == subs._index._listed == 0


def test_the_range_that_selects_most_leads_to_a_subscription():
    subs = wb.Subscriptions()
    events = pa.table({"v": np.linspace(0, 1, 500), "w": np.linspace(0, 1_000, 500)})
    subs.add(0, where="v > 5 and w > 5")
    subs.match(events)
    subs.add(1, where="v > 0.9 and w > 0.9")
    subs.add(2, where="v > 0.1 and w > 900")
    by_column = dict(zip(subs._index._packed.wanted.names, subs._index._ranges.sum(axis=1), strict=True))
    assert by_column == {"v": 2, "w": 1}
    table = subs.match(events).group_by("subscription").aggregate([([], "count_all")]).sort_by("subscription")
    assert table["subscription"].to_pylist() == [1, 2]
    assert table["count_all"].to_pylist() == [50, 50]
