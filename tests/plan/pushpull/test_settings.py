"""What the planner pushpull is told: what is kept where not all fits, and when the previous plan stays."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import whimbrel as wb
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import network_of
from whimbrel.plan.pushpull.deployment_reading import deployment_of
from whimbrel.plan.pushpull.planner import plan_push_pull
from whimbrel.plan.pushpull.settings import PushPullSettings
from whimbrel.sim.comparison import compare
from whimbrel.sim.push_pull_run import run_push_pull

QUERY = wb.compile("define X detect A as a or B as b\ndefine Y detect C as c and D as d within 60 s")


def link(bandwidth="250 B/s"):
    """Join two brokers by a link that has room for one of the two definitions."""
    sources = [
        {"name": kind.lower(), "type": kind, "at": "far", "rate": "1/s", "size": "100 B"} for kind in "ABCD"
    ]
    return network_of(
        {
            "brokers": [{"name": "top"}, {"name": "far"}],
            "links": [{"between": ["top", "far"], "bandwidth": bandwidth}],
            "sources": sources,
            "consumers": [{"name": "desk", "at": "top"}],
        }
    )


def planned(network, **settings):
    return plan_push_pull(workload_of(QUERY, network), network, settings=PushPullSettings(**settings))


@pytest.mark.parametrize(("kept", "left_out"), [("X", "Y"), ("Y", "X")])
def test_what_matters_less_is_left_out_and_told(kept, left_out):
    plan = planned(link(), priorities={kept: 2})
    assert [each.delivery.stream for each in plan.wanted] == [kept]
    assert f"{left_out} is left out: not enough room: the link from far to top" in plan.words()
    assert list(plan.to_dict()["left_out"]) == [left_out]
    again = deployment_of(plan.to_dict(), QUERY, link())
    assert again.to_dict() | {"compared": {}} == plan.to_dict() | {"compared": {}}


def test_without_priorities_all_has_to_fit():
    with pytest.raises(NoPlanError, match="not everything can be had"):
        planned(link())
    with pytest.raises(NoPlanError, match="not everything can be had"):
        planned(link("150 B/s"), priorities={"X": 1})
    assert not planned(link("500 B/s"), priorities={"X": 1}).plans.left_out


def test_what_is_left_out_is_told_when_the_rest_is_carried_out():
    plan = planned(link(), priorities={"X": 2})
    events = [{"type": kind, "time": n, "source": kind.lower()} for n in range(5) for kind in "ABCD"]
    found = run_push_pull(QUERY, events, plan)
    assert found.is_same
    notes = compare(found).notes
    assert notes["detections that arrived, of those that one process finds"] == {"X to top": "10 of 10"}
    assert list(notes["left out of the plan"]) == ["Y"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"priorities": {"Z": 1.0}}, "no definition that is delivered is named 'Z'"),
        ({"priorities": {"X": math.nan}}, "the priority of 'X' is nan; give a number"),
        ({"least_gain": -1.0}, "the setting least_gain is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(NetworkError, match=words):
        planned(link(), **settings)


def test_the_previous_plan_stays_unless_another_saves_enough():
    wide = link("500 B/s")
    first = planned(wide)
    pulled = planned(replace(wide, links=(replace(wide.links[0], cost=3.0),)), previous=first.plans)
    assert "the previous plan stays: another would save 0 %" in pulled.notes
    gone = replace(wide, links=(replace(wide.links[0], b="far"),))
    assert [plan.words() for plan in planned(gone, previous=first.plans).plans.plans.values()] == [
        plan.words() for plan in planned(gone).plans.plans.values()
    ]
