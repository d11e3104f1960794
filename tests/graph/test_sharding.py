"""By what a query's events can be partitioned, for queries of every kind."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.graph.passes import rewrite
from whimbrel.graph.sharding import (
    AnyPartition,
    ByKeys,
    ByMeetings,
    BySpace,
    Sharding,
    SinglePartition,
    sharding,
)


def sharding_of(text: str) -> Sharding:
    return sharding(rewrite(wb.compile(text).graph))


def keys(text: str) -> list[str]:
    found = sharding_of(text)
    assert isinstance(found, ByKeys), found
    return [str(key) for key in found.keys]


VISIT = """
region R = box(0, 0, 1, 1)
define In detect A enters R group by car
define Out detect A leaves R group by car
define D detect In as i then Out as o within 1 h group by car
"""


CHANGED = """
define C detect A as a changes v within 1 h assign car = a.car group by car
define D detect C as a then C as b within 1 h group by car
"""


def test_single_events_can_go_anywhere():
    assert sharding_of("define D detect A(v > 3)") == AnyPartition()
    assert sharding_of("define D detect A(v > 3) or B") == AnyPartition()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("define D detect A as a then B as b within 1 s group by source", ["source"]),
        ("define D detect A as a then B as b within 1 s group by car, road", ["car", "road"]),
        ("define D detect A as a then B as b within 1 s where a.car = b.car", ["car"]),
        ("define D detect A as a then not B for 1 s group by source", ["source"]),
        ("define D(n) over 1 min detect A assign n = count(A) group by road", ["road"]),
        ("define D detect A{2,3} within 1 s group by source", ["source"]),
        ("define D detect A as a then B as b within 1 s group by cell(100 m)", ["cell(100 m)"]),
        ("region R = box(0, 0, 1, 1) define D detect A enters R", ["source"]),
        ("define D detect A as a stops for 1 min within 5 m where a.v > 3 group by car", ["car"]),
        ("define D detect A changes v within 1 h", ["source"]),
        ("define D detect A changes v within 1 h group by car, road", ["car", "road"]),
        (CHANGED, ["car"]),
        (VISIT, ["car"]),
    ],
)
def test_a_pattern_parts_its_events_by_its_group(text, expected):
    assert keys(text) == expected


@pytest.mark.parametrize(
    "inner",
    [
        "define E(car) detect A as a then B as b within 1 s assign car = group.car group by car",
        "define E(car) detect A as a then B as b within 1 s assign car = b.car group by car",
        "define E detect A as a then B as b within 1 s group by car",
        "define E(car) detect A(v > 1) as a assign car = a.car",
    ],
)
def test_a_key_is_traced_through_definitions(inner):
    assert keys(f"{inner}\ndefine D detect E as e then C as c within 1 s group by car") == ["car"]


def test_the_source_of_a_derived_event_is_that_of_its_events():
    inner = "define E detect A as a then B as b within 1 s group by source"
    assert keys(f"{inner}\ndefine D detect E as e then not C for 1 s group by source") == ["source"]


@pytest.mark.parametrize(
    "inner",
    [
        "define E(car) detect A as a then B as b within 1 s assign car = a.car group by road",
        "define E(car) detect A as a then B as b within 1 s assign car = a.other group by car",
        "define E(car) detect A as a assign car = a.car + 1",
        "define E(car: int) detect A as a assign car = a.car",
    ],
)
def test_a_value_that_not_all_events_share_is_no_key(inner):
    found = sharding_of(f"{inner}\ndefine D detect E as e then C as c within 1 s group by car")
    assert isinstance(found, SinglePartition)


def test_definitions_that_group_differently_have_the_keys_they_share():
    one = "define E detect A as a then B as b within 1 s group by car, road"
    assert keys(f"{one}\ndefine F detect A as a then C as c within 1 s group by car") == ["car"]


def test_without_a_common_key_all_events_belong_together_and_it_says_why():
    found = sharding_of("define Crash detect A as a then B as b within 1 s")
    assert isinstance(found, SinglePartition)
    assert "Crash" in found.why
    assert "group by" in found.why


def test_distances_bound_how_far_a_pattern_reaches():
    near = "define D detect A as a and B as b within 1 s where distance(a, b) < 50 m"
    assert sharding_of(near) == BySpace(50.0)
    chain = (
        "define D detect A as a and B as b and C as c within 1 s "
        "where distance(a, b) <= 50 m and 20 m > distance(b, c) and distance(a, c) < 500 m"
    )
    assert sharding_of(chain) == BySpace(70.0)


@pytest.mark.parametrize(
    "text",
    [
        "define D detect A as a and B as b within 1 s where distance(a, b) > 50 m",
        "define D detect A as a and B as b and C as c within 1 s where distance(a, b) < 50 m",
        "define D detect A as a and B as b within 1 s where distance(a, b) < a.r",
        "define D detect A as a then not C then B as b within 1 s where distance(a, b) < 50 m",
        "define D detect A as a and B as b within 1 s where distance(a, b) < 50 m consuming a",
    ],
)
def test_patterns_without_a_bound_are_not_partitioned_by_space(text):
    assert isinstance(sharding_of(text), SinglePartition)


def test_what_must_not_happen_nearby_adds_to_the_reach():
    text = (
        "define D detect A as a then not C as c then B as b within 1 s "
        "where distance(a, b) < 50 m and distance(a, c) < 30 m"
    )
    assert sharding_of(text) == BySpace(80.0)


NEAR = """
define Near(one, other)
  detect P as a and P as b within 5 s
  where distance(a, b) < 50 m and a.source < b.source
  assign one = a.source, other = b.source
"""


def test_meetings_are_found_first_and_then_followed_by_pair():
    found = sharding_of(
        f"{NEAR}\ndefine Pair(n) over 60 s detect Near assign n = count(Near) group by one, other"
    )
    assert found == ByMeetings(("Near",), ("one", "other"), BySpace(50.0))


def test_meetings_that_something_can_prevent_are_not_found_first():
    prevented = NEAR.replace("detect P as a and P as b", "detect P as a then not Q then P as b")
    text = f"{prevented}\ndefine Pair(n) over 60 s detect Near assign n = count(Near) group by one, other"
    assert isinstance(sharding_of(text), SinglePartition)


def test_what_follows_meetings_must_not_need_other_events():
    text = f"{NEAR}\ndefine Pair detect Near as n then Q as q within 60 s group by one"
    assert isinstance(sharding_of(text), SinglePartition)


def test_movers_that_are_compared_with_each_other_stay_together():
    found = sharding_of("define D detect A as a meets A as b within 5 m for 1 min")
    assert found == SinglePartition("D compares movers with each other, wherever they go")
