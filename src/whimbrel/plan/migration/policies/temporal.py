"""Temporal adjustment: plan for one course of the neighbours, then shift migrations (MigCEP, section 4.2).

It fits neighbours of which it is certain where they go, and uncertain when.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.plan import changes_of
from whimbrel.plan.migration.policies.naive import certain_problems
from whimbrel.plan.migration.problem import Hosts, MigrationProblem


def plan_with_shifts(
    problem: MigrationProblem, task: str, hosts: Hosts, before: int = 5, after: int = 5
) -> Ints:
    """Plan for the most probable course, and move each migration to where the expected cost is lowest.

    Parameters
    ----------
    before, after
        How many steps a migration may be earlier or later: [t_i - t_s, t_i + t_e].
    """
    certain, _ = next(certain_problems(problem, task, 1))
    best = certain.time_graph(task, hosts).shortest().hosts
    expected = problem.time_graph(task, hosts)
    score = expected.score_of(best)
    for n in range(len(changes_of(best))):
        for variant in shifted(problem, task, best, n, before, after):
            shifted_score = expected.score_of(variant)
            if shifted_score < score:
                best, score = variant, shifted_score
    return best


def shifted(
    problem: MigrationProblem, task: str, hosts: Ints, which: int, before: int, after: int
) -> Iterator[Ints]:
    """Yield a plan with one of its migrations earlier and later, as far as there is time for the transfer."""
    moves = changes_of(hosts)
    if which >= len(moves):
        return
    spans, at = problem.spans(task), int(moves[which])
    room = problem.has_room(task, {})
    entered = int(moves[which - 1]) if which else 0
    left = int(moves[which + 1]) if which + 1 < len(moves) else None
    here, there = int(hosts[at - 1]), int(hosts[at])
    earliest = entered + int(spans[here, there])
    latest = len(hosts) - 1 if left is None else left - int(spans[there, int(hosts[left])])
    for step in range(max(earliest, at - before), min(latest, at + after) + 1):
        if step != at:
            row = hosts.copy()
            row[min(step, at) : max(step, at)] = there if step < at else here
            if room[np.arange(len(row)), row].all():
                yield row
