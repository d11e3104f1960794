"""How the events of queries that follow objects are partitioned."""

from __future__ import annotations

from random import Random

import pytest
from tests.spark.mobile import query_with, together

from whimbrel.graph.mobile.sharding import sharding_of
from whimbrel.graph.sharding import ByInterests, SinglePartition, sharding_words

REASONS = {
    "route": "an interest of route may reach anywhere",
    "situations": "situations looks at situations wherever their events are",
    "quality": "when interests of quality move depends on the events around them",
    "similar": "what stands for an interest of similar may be found in other places",
    "movers": "Stopped follows movers wherever they go",
}
QUERIES = {each.name: each for each in together(Random(0))}


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_is_told_why_all_events_go_to_one(name):
    found = sharding_of(query_with([QUERIES["plain"], QUERIES[name]]))
    assert found == SinglePartition(REASONS[name])


def test_the_farthest_interest_decides_how_far_events_are_copied():
    found = sharding_of(query_with([QUERIES["plain"]]))
    assert isinstance(found, ByInterests)
    assert f"({found.reach_m:g} m), location updates (Car) to all" in sharding_words(found)


def test_all_queries_above_have_a_reason_or_none():
    assert set(QUERIES) == {*REASONS, "plain"}
