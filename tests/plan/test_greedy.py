"""What the greedy planner does besides moving single tasks."""

from __future__ import annotations

import pytest

from whimbrel.plan import greedy
from whimbrel.plan.cost import Objective
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

ROW = Network(
    (Broker("west", 2), Broker("mid", 0), Broker("east", 2)), (Link("west", "mid"), Link("mid", "east"))
)


def chain(name: str, start: str, end: str) -> tuple[Feed, tuple[Task, Task], Delivery]:
    """Make a task that gives more than it reads, and one after it that gives next to nothing."""
    more = Task(f"more {name}", (f"feed {name}",), 1, 120, work=1)
    less = Task(f"less {name}", (more.name,), 1, 1, work=1)
    return Feed(f"feed {name}", 1, 100, start), (more, less), Delivery(less.name, end)


def workload(*chains: tuple[Feed, tuple[Task, Task], Delivery]) -> Workload:
    feeds, tasks, deliveries = zip(*chains, strict=True)
    return Workload(feeds, tuple(task for pair in tasks for task in pair), deliveries)


ONE = workload(chain("a", "west", "east"))
TWO = workload(chain("a", "west", "east"), chain("b", "east", "west"))


def improved(model: PlacementModel, hosts: dict[str, str]) -> dict[str, str]:
    return greedy._improved(model, dict(hosts), list(greedy._groups(model)))


def test_tasks_that_belong_together_move_together():
    model = PlacementModel(ONE, ROW, Objective.FLOW)
    both = dict.fromkeys(ONE.task, "east")
    assert greedy._one_by_one(model) == both
    assert not greedy._move_each(model, dict(both), [(task,) for task in ONE.tasks])
    assert improved(model, both) == dict.fromkeys(ONE.task, "west")


def test_full_brokers_make_room():
    model = PlacementModel(TWO, ROW, Objective.FLOW)
    wrong = {"more a": "east", "less a": "east", "more b": "west", "less b": "west"}
    groups = list(greedy._groups(model))
    assert not greedy._move_each(model, dict(wrong), groups)
    assert improved(model, wrong) == {"more a": "west", "less a": "west", "more b": "east", "less b": "east"}


@pytest.mark.parametrize("work", [TWO, ONE])
def test_the_same_problem_gets_the_same_plan(work):
    plans = [greedy.place_greedily(PlacementModel(work, ROW, Objective.FLOW)) for _ in range(2)]
    assert plans[0] == plans[1]
    assert PlacementModel(work, ROW, Objective.FLOW).cost(plans[0]) == 2.0 * len(work.deliveries)
