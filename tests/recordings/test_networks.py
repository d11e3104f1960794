"""Plans on networks of real operators, and over contacts of people as they were recorded."""

from __future__ import annotations

import numpy as np
import pytest
from tests.plan.real import gathering, last_chance_s, operator_problem, people, zoo

from experiments.poisson import poisson_events, run_plan
from experiments.push_pull_planners import plan_all_push
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.cost import Objective, violations
from whimbrel.plan.files import read_network
from whimbrel.plan.planners import plan_exact, plan_flow, plan_greedy
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.comet import plan_comet

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

SAMPLE = ("Abilene", "Aarnet", "Belnet2010", "Geant2012", "Sprint", "Uninett2011")


def test_every_network_of_the_topology_zoo_is_read_or_refused(data_dir):
    files = zoo(data_dir)
    read, refused = 0, []
    for file in files:
        try:
            network = read_network(file)
        except NetworkError as error:
            refused.append(str(error))
            continue
        read += 1
        assert len(network.number) == len(network.brokers) >= 1
        assert all(0 <= link.latency_s < 0.2 for link in network.links), file
    assert (len(files), read, refused) == (276, 276, [])


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("objective", Objective)
def test_plans_on_networks_of_operators_are_valid_and_near_the_optimum(data_dir, name, objective):
    file = data_dir / "topologies_zoo" / "graphml" / f"{name}.graphml"
    workload, network = operator_problem(file, seed=len(name), tasks=3)
    best = plan_exact(workload, network, objective)
    planners = [plan_greedy, *([plan_flow] if objective is Objective.FLOW else [])]
    for plan in (best, *(planner(workload, network, objective) for planner in planners)):
        assert violations(workload, network, plan.costs) == ()
        cost, least = plan.costs.total.of(objective), best.costs.total.of(objective)
        assert least * (1 - 1e-6) <= cost <= 1.1 * least + 1e-9


@pytest.mark.parametrize("planner", [plan_all_push, plan_comet, plan_pushpull])
@pytest.mark.parametrize("tolerance_min", [40, 100])
def test_over_recorded_contacts_everything_is_found_in_time(data_dir, planner, tolerance_min):
    network = people(data_dir)
    composite = gathering(network, tolerance_min * 60.0)
    plan = planner(composite, network)
    assert plan.estimate.delay_s <= composite.tolerance_s
    until_s = last_chance_s(plan, network)
    rates = {part.name: 60 * part.rate_hz for part in composite.parts}
    events = poisson_events(rates, until_s, np.random.default_rng(1))
    found = run_plan(plan, network, events)
    assert not found.missed
    assert len(found.found) >= 40
    assert found.delays_s.max() <= plan.estimate.delay_s
    assert found.cost_a_minute == pytest.approx(60 * plan.estimate.cost_s, rel=0.1)


def test_over_recorded_contacts_pulling_costs_less_where_there_is_time(data_dir):
    network = people(data_dir)
    composite = gathering(network, 100 * 60.0)
    pushed, planned = plan_all_push(composite, network), plan_pushpull(composite, network)
    assert planned.estimate.cost_s < 0.5 * pushed.estimate.cost_s
    with pytest.raises(NoPlanError, match="cannot be known within 1200 s"):
        plan_pushpull(gathering(network, 1200.0), network)
