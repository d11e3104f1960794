"""Plan all operators with a view of the whole: one by one, in pairs, and from several beginnings.

Each step plans one operator, or two neighbours, exactly next to the plans of the others, so that the total
never gets worse. This is the coordination of MigCEP in turns (section 5.3), and two ways out of where it gets
stuck.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.baselines import stay
from whimbrel.plan.migration.joint import plan_jointly
from whimbrel.plan.migration.problem import MigrationProblem

PAIR_STATES = 6_000_000
"""Largest dynamic program for a pair; larger pairs look at the most promising brokers only."""


def plan_migrations(
    problem: MigrationProblem, *, pairs: bool = True, restarts: int = 4, seed: int = 0
) -> dict[str, Ints]:
    """Plan all tasks of a problem; the positions of their hosts (`problem.plans` makes plans of them).

    One task costs O(steps x brokers^2), a pair of them O(steps x (brokers x steps of a migration)^2).

    Parameters
    ----------
    pairs
        Plan neighbours together, too.
    restarts
        From how many beginnings to try.
    seed
        For the order of the tasks in later beginnings.

    Raises
    ------
    NoPlanError
        If no plan with the resources of the brokers was found.
    """
    best: dict[str, Ints] | None = None
    for hosts in beginnings(problem, restarts, seed):
        improved = improve(problem, hosts, pairs=pairs)
        if fits(problem, improved) and (best is None or problem.score(improved) < problem.score(best)):
            best = improved
    if best is None:
        raise NoPlanError("no plan was found that keeps the resources of all brokers")
    return best


def beginnings(problem: MigrationProblem, count: int, seed: int) -> Iterable[dict[str, Ints]]:
    """Return plans to begin with: where all stay, then tasks put in one after the other in several orders."""
    generator = np.random.default_rng(seed)
    names = list(problem.tasks)
    if all(task in problem.start for task in names):
        yield stay(problem)
        count -= 1
    for n in range(max(count, 1 if len(problem.start) < len(names) else 0)):
        order = (names, names[::-1])[n] if n < 2 else list(generator.permutation(names))
        yield put_in(problem, order)


def put_in(problem: MigrationProblem, order: Sequence[str]) -> dict[str, Ints]:
    """Plan each task next to those before it in an order."""
    hosts: dict[str, Ints] = {}
    for task in order:
        missing = [name for name in problem.tasks if name not in hosts]
        hosts[task] = plan_one(problem, task, hosts, missing)
    return hosts


def plan_one(
    problem: MigrationProblem, task: str, hosts: dict[str, Ints], missing: Sequence[str] = ()
) -> Ints:
    """Plan one task next to the others, those aside that have no plan yet."""
    return problem.time_graph(task, hosts, missing=missing).shortest().hosts


def improve(problem: MigrationProblem, hosts: dict[str, Ints], *, pairs: bool = True) -> dict[str, Ints]:
    """Plan single tasks, then pairs of neighbours, until nothing gets better."""
    hosts = dict(hosts)
    score = problem.score(hosts)
    while True:
        score = _improve_singly(problem, hosts, score)
        if not pairs or not _improve_pair(problem, hosts, score):
            return hosts
        score = problem.score(hosts)


def _improve_singly(problem: MigrationProblem, hosts: dict[str, Ints], score: float) -> float:
    better = True
    while better:
        better = False
        for task in problem.tasks:
            path = problem.time_graph(task, hosts).shortest()
            tried = problem.score({**hosts, task: path.hosts})
            if not path.added.any() and tried < score - slack(score):
                hosts[task], score, better = path.hosts, tried, True
    return score


def _improve_pair(problem: MigrationProblem, hosts: dict[str, Ints], score: float) -> bool:
    """Plan pairs of tasks until one gets better: neighbours, and those that share a neighbour."""
    if not fits(problem, hosts):
        return False
    for pair in _pairs(problem):
        try:
            together = plan_jointly(problem, hosts, pair, _promising(problem, hosts, pair), PAIR_STATES * 10)
        except NoPlanError:
            continue
        if problem.score({**hosts, **together}) < score - slack(score):
            hosts.update(together)
            return True
    return False


def _pairs(problem: MigrationProblem) -> list[tuple[str, str]]:
    near = [(a, b) for a, b in combinations(problem.tasks, 2) if b in problem.neighbours[a]]
    limited = not (np.isinf(problem.capacity).all() and np.isinf(problem.storage_b).all())
    # Where brokers can be full, tasks that share no stream are in each other's way, too.
    rest = [pair for pair in combinations(problem.tasks, 2) if pair not in near] if limited else []
    return near + rest


def _promising(problem: MigrationProblem, hosts: dict[str, Ints], pair: Sequence[str]) -> Ints | None:
    """Choose brokers for a pair: those that its plans use, and those that cost least in some step."""
    size, steps = len(problem.numbers), problem.horizon.steps
    ages = [min(int(problem.spans(task).max()), steps) for task in pair]
    most = int((PAIR_STATES / (steps * 2 * ages[0] * ages[1])) ** 0.5)
    if size <= most:
        return None
    used = np.unique(np.concatenate([hosts[task] for task in pair]))
    cost = sum(problem.weights(task, hosts, without=pair)[0] for task in pair)
    often = np.bincount(np.asarray(cost).argmin(axis=1), minlength=size)
    by_use = np.lexsort([np.asarray(cost).sum(axis=0), -often])
    return np.union1d(used, by_use[: max(0, most - len(used))])


def fits(problem: MigrationProblem, hosts: dict[str, Ints]) -> bool:
    """Tell whether no broker is given more than it can do, or store."""
    work, stored = problem.load(hosts)
    return bool(
        (work <= problem.capacity * (1 + 1e-9)).all() and (stored <= problem.storage_b * (1 + 1e-9)).all()
    )


def slack(score: float) -> float:
    """Return what two scores must differ by to be different numbers."""
    return 1e-9 * (1.0 + abs(score))
