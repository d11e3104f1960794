"""Operators agree on plans, in whatever order their messages arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migration_problems import random_problem
from whimbrel.errors import NoPlanError
from whimbrel.plan.migration import coordinate, stay
from whimbrel.plan.migration.coordination import Agents
from whimbrel.plan.migration.local_search import fits
from whimbrel.plan.migration.messages import LocalMailbox


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_it_ends_gets_never_worse_and_never_promises_too_much(seed, order, limited, late):
    problem = random_problem(seed, steps=6, tasks=5, limited=limited, late=late)
    draw = np.random.default_rng(order)
    mailbox = LocalMailbox(lambda waiting: int(draw.integers(waiting)))
    agents = Agents(problem, stay(problem), mailbox)
    agents.wake()
    score = problem.score(agents.hosts)
    while (message := mailbox.take()) is not None:
        agents.deliver(message)
        assert mailbox.sent.total() < 20_000
        now = problem.score(agents.hosts)
        assert now <= score + 1e-9 * (1 + score)
        score = now
        assert fits(problem, agents.hosts)
        for broker in agents.brokers:
            work, stored = broker.load()
            assert (work <= problem.capacity[broker.position] + 1e-9).all()
            assert (stored <= problem.storage_b[broker.position] + 1e-9).all()
    for task, agent in agents.operators.items():
        assert agent._proposal is None
        assert not agent._granted
        assert not agent._stale
        for other, hosts in agent._plans.items():
            assert np.array_equal(hosts, agents.operators[other].hosts)
        if not agent._rejected.any():
            better = problem.time_graph(task, agents.hosts, agent._room).shortest().score
            own = problem.time_graph(task, agents.hosts, agent._room).score_of(agent.hosts)
            assert own <= better + 1e-6 * (1 + abs(better))


def test_messages_are_counted_by_kind():
    problem = random_problem(4)
    done = coordinate(problem, stay(problem))
    assert done.sent == sum(done.messages.values()) > 0
    assert done.messages["PlanUpdated"] >= done.messages["PlanAccepted"] > 0
    assert done.messages["ReservationRequest"] == done.messages["ReservationReply"] > 0


def test_who_agrees_already_sends_nothing():
    problem = random_problem(4)
    done = coordinate(problem, stay(problem))
    assert coordinate(problem, done.hosts).sent == 0


def test_a_beginning_with_too_much_to_do_is_refused():
    problem = random_problem(2, tasks=4, limited=True)
    crowd = {task: np.full(8, int(problem.capacity.argmin())) for task in problem.tasks}
    with pytest.raises(NoPlanError, match="more to do at the beginning"):
        coordinate(problem, crowd)
