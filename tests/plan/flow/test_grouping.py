"""Groups of tasks that stay together, after the example of the paper: video, faces, bodies, labels."""

from __future__ import annotations

import pytest

from experiments.fission import elect_header, spread
from experiments.grouping import Forest
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

PAPER = Forest(
    {
        "Video": (),
        "Motion": (),
        "Face": ("Video",),
        "Body": ("Video",),
        "ActLabel": ("Body", "Motion"),
        "FaceLabel": ("Face",),
    }
)


def test_ancestors_are_what_it_is_made_of_and_their_other_children():
    assert PAPER.ancestors("ActLabel") == {"Body", "Motion", "Video", "Face"}
    assert PAPER.ancestors("FaceLabel") == {"Face", "Video", "Body"}
    assert PAPER.ancestors("Body") == {"Video", "Face"}
    assert PAPER.ancestors("Video") == set()


def test_descendants_go_with_what_else_they_need():
    assert PAPER.descendants("Body") == (frozenset({"ActLabel", "Motion"}),)
    assert PAPER.descendants("ActLabel") == ()


def test_alternatives_hold_all_that_they_need():
    alternatives = PAPER.alternatives()
    assert alternatives[0] == {"Video", "Motion"}
    assert frozenset({"FaceLabel", "Face", "Video", "Body"}) in alternatives
    assert frozenset({"FaceLabel", "Face", "Video", "Body", "Motion"}) in alternatives
    assert not any(kept < PAPER.roots for kept in alternatives)
    assert len(set(alternatives)) == len(alternatives) == 6
    for kept in alternatives:
        assert all(set(PAPER.parents[name]) <= kept for name in kept)


def test_what_is_left_over_stays_together_where_it_shares():
    kept = frozenset({"Video", "Face", "Body"})
    assert PAPER.left_over(kept) == (frozenset({"ActLabel", "Motion"}), frozenset({"FaceLabel"}))


LINE = Network(tuple(Broker(name) for name in "abc"), (Link("a", "b"), Link("b", "c")))
TEMPERATURES = (Feed("Temp.a", 3, 10, "a"), Feed("Temp.b", 1, 10, "b"))


def test_a_task_of_single_events_runs_at_every_origin():
    hot = Task("Hot", ("Temp.a", "Temp.b"), 0.4, 20, work=4)
    done = spread(Workload(TEMPERATURES, (hot,), (Delivery("Hot", "c"),)), apart=["Hot"])
    assert [(task.name, task.inputs, task.rate_hz, task.work) for task in done.tasks] == [
        ("Hot@a", ("Temp.a",), pytest.approx(0.3), 3),
        ("Hot@b", ("Temp.b",), pytest.approx(0.1), 1),
    ]
    assert [(each.stream, each.at) for each in done.deliveries] == [("Hot@a", "c"), ("Hot@b", "c")]


def test_an_aggregate_is_cut_in_two():
    average = Task("Average", ("Temp.a", "Temp.b"), 0.1, 20, work=4)
    alarm = Task("Alarm", ("Average",), 0.01, 20)
    workload = Workload(TEMPERATURES, (average, alarm), (Delivery("Alarm", "c"),))
    done = spread(workload, partial_b={"Average": 16})
    assert [(task.name, task.inputs, task.size_b) for task in done.tasks] == [
        ("Average<pre>@a", ("Temp.a",), 16),
        ("Average<pre>@b", ("Temp.b",), 16),
        ("Average", ("Average<pre>@a", "Average<pre>@b"), 20),
        ("Alarm", ("Average",), 20),
    ]


def test_a_task_that_needs_all_origins_stays_whole():
    both = Task("Both", ("Temp.a", "Temp.b"), 0.1, 20)
    assert spread(Workload(TEMPERATURES, (both,), ())).tasks == (both,)


def test_the_header_is_where_least_would_flow():
    assert elect_header(TEMPERATURES, [30, 10], LINE) == "a"
    assert elect_header((*TEMPERATURES, Delivery("Average", "c")), [5, 5, 20], LINE) == "c"
    assert elect_header(TEMPERATURES, [10, 10], LINE) == "a"
