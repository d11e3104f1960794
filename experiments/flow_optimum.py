"""The least volume of all, as a mixed integer program: for problems that are small enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whimbrel.errors import NoPlanError
from whimbrel.plan.flow.model import FlowModel
from whimbrel.plan.milp import LinearProgram, Variable
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Workload

Runs = dict[tuple[int, int], Variable]
"""For each task and broker, the variable that is 1 if the broker runs the task."""
Sent = dict[tuple[str, int, int], Variable]
"""For each stream and pair of brokers, the variable that is 1 if the stream goes from one to the other."""


def place_exact(
    workload: Workload,
    network: Network,
    *,
    allowed: Sequence[str] | None = None,
    limit_s: float = 60.0,
) -> dict[str, str]:
    """Assign every task to a broker so that the volume of all flows is least.

    One binary variable for each task and broker, and one, at least as large as both ends allow, for each
    stream and pair of brokers: O(streams x brokers^2) variables.

    Raises
    ------
    NoPlanError
        If no assignment keeps the capacities, or none is proven best within `limit_s` seconds.
    """
    model, program = FlowModel(workload, network), LinearProgram("the exact optimum")
    brokers = [network.number[name] for name in (allowed or network.number)]
    tasks = range(len(model.tasks))
    runs = {(task, broker): program.variable(is_integer=True) for task in tasks for broker in brokers}
    for task in tasks:
        program.require([(runs[task, broker], 1.0) for broker in brokers], least=1.0, most=1.0)
    sent = _sent(program, model, runs, brokers)
    _keep_capacity(program, model, runs, sent, brokers)
    for (stream, a, b), variable in sent.items():
        program.add_cost(variable, model.bytes_s[stream] * len(model.way(a, b)))
    solution = program.solve(limit_s)
    if solution is None or solution.gap:
        raise NoPlanError(f"no assignment of {len(tasks)} tasks to {len(brokers)} brokers was proven best")
    return {
        name: network.brokers[max(brokers, key=lambda b: solution[runs[task, b]])].name
        for task, name in enumerate(model.tasks)
    }


def _sent(program: LinearProgram, model: FlowModel, runs: Runs, brokers: list[int]) -> Sent:
    """Make a variable for each stream and pair of brokers: 1 if the stream goes from one to the other.

    A broker gets a stream from where it is made, or makes it itself. Written so, and not pair by pair, the
    program without whole numbers is close to the one with them.
    """
    sent: Sent = {}
    for stream, origin in {**model.origin, **dict.fromkeys(model.tasks)}.items():
        made = {b: runs[model.task[stream], b] for b in brokers} if origin is None else {origin: None}
        needs = {b: [runs[reader, b] for reader in model.readers[stream]] for b in brokers}
        for target in model.targets[stream]:
            needs[target] = [*needs.get(target, ()), None]
        for broker, readers in needs.items():
            coming = []
            for a, makes in made.items():
                if a != broker:
                    sent[stream, a, broker] = program.variable()
                    if makes is not None:
                        program.require([(sent[stream, a, broker], 1.0), (makes, -1.0)], most=0.0)
                    coming.append((sent[stream, a, broker], 1.0))
            _serve(program, coming, broker in made, made.get(broker), readers)
    return sent


def _serve(
    program: LinearProgram,
    coming: list[tuple[Variable, float]],
    is_origin: bool,
    makes: Variable,
    readers: list[Variable],
) -> None:
    """Let a stream come to a broker if anybody reads it there; None: it always is made there, or read."""
    if is_origin and makes is None:
        return
    here = [*coming, *([(makes, 1.0)] if is_origin else [])]
    for reader in readers:
        if reader is None:
            program.require(here, least=1.0)
        else:
            program.require([*here, (reader, -1.0)], least=0.0)


def _keep_capacity(
    program: LinearProgram, model: FlowModel, runs: Runs, sent: Sent, brokers: list[int]
) -> None:
    for broker in brokers:
        if not math.isinf(model.capacity[broker]):
            works = [(runs[n, broker], task.work) for n, task in enumerate(model.workload.tasks)]
            program.require(works, most=float(model.capacity[broker]))
    for link, bandwidth in enumerate(model.bandwidth):
        if not math.isinf(bandwidth):
            over = [
                (variable, model.bytes_s[stream])
                for (stream, a, b), variable in sent.items()
                if link in model.way(a, b)
            ]
            if over:
                program.require(over, most=float(bandwidth))
