"""Operators next to streams whose events change in size: the k shortest ways (MigCEP, figure 10 c)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.migration_policies import plan_k_shortest
from experiments.scenarios.driving import Hosts
from experiments.scenarios.migcep import COMMON, carry_out, greedily, problems, town_of
from experiments.scenarios.registry import Progress, scenario
from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration import Horizon, MigrationProblem, attached, stay
from whimbrel.plan.migration.plan import MigrationPlan
from whimbrel.sim.results import Plot, Results

Factor = Callable[[float], float]
"""By what the size of an event is multiplied at a time."""


def changing(every_s: float, seconds: float, seed: int) -> Factor:
    """Make sizes that change in regular intervals, to between 0.1 and 1.9 of what they are on average."""
    factors = np.random.default_rng(seed).uniform(0.1, 1.9, int(seconds / every_s) + 2)

    def factor(time_s: float) -> float:
        return float(factors[min(int(time_s / every_s), len(factors) - 1)])

    return factor


def problem_ahead(
    problem: MigrationProblem, step: int, steps: int, size_b: float, at: Mapping[str, int]
) -> MigrationProblem:
    """Return the problem from a step on, with a size of the first feed's events, and where tasks are."""
    horizon = Horizon(steps, problem.horizon.step_s, problem.horizon.time_s(step))
    ahead = np.minimum(np.arange(steps) + step, problem.horizon.steps - 1)
    movers = {}
    for name, plan in problem.attachments.items():
        assert isinstance(plan, MigrationPlan)
        movers[name] = attached(name, horizon, plan.hosts[ahead])
    first, *others = problem.workload.feeds
    workload = replace(problem.workload, feeds=(replace(first, size_b=size_b), *others))
    names = {task: problem.network.brokers[problem.numbers[broker]].name for task, broker in at.items()}
    return MigrationProblem(
        problem.network, workload, horizon, movers, names, problem.numbers, routes=problem.routes
    )


def follow_sizes(
    problem: MigrationProblem, factor: Factor, k: int, every_s: float, ahead: int, *, apart: bool
) -> Hosts:
    """Plan the k cheapest ways in regular intervals, and at each step take the one that is cheapest by now.

    Plans are made by the average size; the size of the last step is all that is known of sizes later.
    """
    average, step_s = problem.workload.feeds[0].size_b, problem.horizon.step_s
    every = problem.horizon.span(every_s)
    at = dict(problem.start)
    hosts: dict[str, Ints] = {task: np.empty(problem.horizon.steps, np.int64) for task in problem.tasks}
    courses: dict[str, list[Ints]] = {}
    for step in range(problem.horizon.steps):
        if step % every == 0:
            courses = _courses(problem_ahead(problem, step, ahead, average, at), k, apart=apart)
        size = average * factor(problem.horizon.time_s(step) - step_s / 2)
        left = ahead - step % every
        now = problem_ahead(problem, step, left, size, at)
        rows = stay(now)
        for task in problem.tasks:
            graph, spans = now.time_graph(task, rows), now.spans(task)
            found = [_from_here(course[-left:], at[task], spans) for course in courses[task]]
            rows[task] = min(found, key=graph.score_of)
        for task, row in rows.items():
            hosts[task][step] = row[0]
            at[task] = int(row[min(1, left - 1)])
    return hosts


def _courses(problem: MigrationProblem, k: int, *, apart: bool) -> dict[str, list[Ints]]:
    """Plan each task next to the best plans of the others; give its k cheapest ways, or k apart."""
    best = stay(problem)
    for _ in range(2):
        for task in problem.tasks:
            best[task] = problem.time_graph(task, best).shortest().hosts
    plans = {task: plan_k_shortest(problem, task, best, k, 1.0, apart=apart) for task in problem.tasks}
    return {
        task: [problem.positions(course.hosts) for course in plan.courses(k)] for task, plan in plans.items()
    }


def _from_here(course: Ints, here: int, spans: Ints) -> Ints:
    """Go on with a course from where the task is: it stays there as long as a migration takes."""
    row = course.copy()
    wait = int(spans[here, row[0]]) if row[0] != here else 1
    row[:wait] = here
    return row


@scenario(
    "migcep-k-shortest",
    "byte seconds of operators with k ways at hand, by how often events change in size (figure 10 c)",
    **{**COMMON, "graphs": (2, COMMON["graphs"][1]), "seconds": (300.0, COMMON["seconds"][1])},
    ks=((1.0, 2.0, 4.0, 8.0, 16.0), "numbers of ways"),
    ways=(
        ("cheapest", "apart"),
        "cheapest: the k cheapest ways, as in the paper; apart: ways that lead elsewhere",
    ),
    changes_s=((20.0, 10.0, 5.0, 2.5, 1.25), "how often events change in size"),
    every_s=(20.0, "how often plans are made"),
    ahead=(48, "how many steps they look ahead"),
    step_s=(1.25, "distance between time steps"),
    event_b=(50.0, "bytes of an event on average"),
    detections_hz=(1.0, "events a second that an operator gives"),
    state_b=(0.0, "bytes of fixed state of the operator that counts friends"),
)
def run_k_shortest(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare how many ways are at hand, relative to the most of them, for each frequency of changes."""
    town = town_of(parameters, parameters["step_s"])
    graph = {"detections_hz": parameters["detections_hz"], "stateful": "friends"}
    some = problems(town, parameters, parameters["event_b"], parameters["state_b"], **graph)
    pairs = [
        (kind, every, int(k))
        for kind in parameters["ways"]
        for every in parameters["changes_s"]
        for k in parameters["ks"]
    ]
    rows: list[dict[str, Any]] = []
    for number, (kind, every, k) in enumerate(pairs):
        progress(number, len(pairs))
        factor = changing(every, parameters["seconds"], parameters["seed"])

        def way(problem: MigrationProblem, factor: Factor = factor, k: int = k, kind: str = kind) -> Hosts:
            every_s, ahead = parameters["every_s"], parameters["ahead"]
            return follow_sizes(problem, factor, k, every_s, ahead, apart=kind == "apart")

        found = carry_out(town, some, way, factors={"a": factor})
        greedy = carry_out(town, some, greedily, factors={"a": factor})
        line = f"{kind}, change every {every:g} s"
        rows.append({"k": k, "line": line, **found, "of greedy": found["B s"] / greedy["B s"]})
    for row in rows:
        last = [other for other in rows if other["line"] == row["line"]][-1]
        row["of the largest k"] = row["B s"] / last["B s"]
    return Results(
        rows,
        (
            Plot(
                "bdp", "Byte seconds, as a share of those of the largest k", "k", "of the largest k", "change"
            ),
        ),
        {"paper": "more ways help when sizes change slowly, and mislead when they change fast (section 6.3)"},
    )
