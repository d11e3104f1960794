"""What plans estimate against what the simulator measures, over random workloads, networks and placements."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.plan.worlds import random_network, random_workload

from experiments.workloads import run_workload
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.comparison import against_plan
from whimbrel.sim.settings import Settings

SECONDS = 60.0


@given(st.integers(0, 10_000), st.sampled_from(Objective), st.booleans())
def test_costs_are_within_a_tenth_and_delays_never_above_the_estimate(seed, objective, in_steps):
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(1, 7))
    workload = random_workload(rng, network, rng.randrange(5))
    # Nothing comes of nothing, whatever a workload that is drawn may say.
    assume(all(any(workload.stream(name).bytes_s for name in task.inputs) for task in workload.tasks))
    hosts = {task: rng.choice([*network.number]) for task in workload.task}
    costs = evaluate(workload, network, hosts, objective)
    how = Settings(header_b=0.0, weight=objective.weight, seed=seed)
    step_s = 1.0 if in_steps else 0.25
    found = run_workload(workload, network, hosts, until_s=SECONDS, step_s=step_s, settings=how)
    compared = against_plan(found, costs, SECONDS)
    assert [each.what for each in compared[:3]] == ["flow B/s", "bdp B", "cost /s"]
    for each in compared:
        if each.what.startswith("delay"):
            assert each.measured is None or each.measured <= each.estimated + 1e-9
        else:
            assert each.measured == pytest.approx(each.estimated, rel=0.1, abs=1e-9), each.what


def test_all_figures_of_a_plan_stand_beside_what_was_measured():
    network = Network((Broker("edge"), Broker("cloud")), (Link("edge", "cloud", latency_s=0.5, cost=3.0),))
    workload = Workload(
        (Feed("camera", 2.0, 100.0, "edge"),),
        (Task("faces", ("camera",), 1.0, 50.0, work=2.0),),
        (Delivery("faces", "cloud"),),
    )
    found = run_workload(workload, network, {"faces": "edge"}, until_s=60.0, settings=Settings(header_b=0.0))
    costs = evaluate(workload, network, {"faces": "edge"})
    figures = {each.what: (each.estimated, each.measured) for each in against_plan(found, costs, 60.0)}
    assert figures == {
        "flow B/s": (50.0, pytest.approx(50.0)),
        "bdp B": (25.0, pytest.approx(25.0)),
        "cost /s": (150.0, pytest.approx(150.0)),
        "delay s: faces to cloud (0)": (0.5, pytest.approx(0.5)),
        "traffic B/s: edge - cloud": (50.0, pytest.approx(50.0)),
        "work /s: edge": (2.0, pytest.approx(2.0)),
    }
