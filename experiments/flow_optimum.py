"""The least volume of all, as a mixed integer program: for problems that are small enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from whimbrel.errors import MissingDependency, NoPlanError
from whimbrel.plan.flow.model import FlowModel
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Workload

Runs = dict[tuple[int, int], Any]
"""For each task and broker, the variable that is 1 if the broker runs the task."""
Sent = dict[tuple[str, int, int], Any]
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
    try:
        import highspy
    except ImportError as error:
        raise MissingDependency("highspy", "the exact optimum", "plan") from error
    flow_model = FlowModel(workload, network)
    brokers = [network.number[name] for name in (allowed or network.number)]
    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    model.setOptionValue("time_limit", limit_s)
    model.setOptionValue("mip_rel_gap", 1e-9)
    runs = {(task, broker): model.addBinary() for task in range(len(flow_model.tasks)) for broker in brokers}
    for task in range(len(flow_model.tasks)):
        model.addConstr(sum(runs[task, broker] for broker in brokers) == 1)
    sent = _sent(model, flow_model, runs, brokers)
    _keep_capacity(model, flow_model, runs, sent, brokers)
    model.minimize(
        sum(
            flow_model.bytes_s[stream] * len(flow_model.way(a, b)) * variable
            for (stream, a, b), variable in sent.items()
        )
    )
    status = model.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise NoPlanError(
            f"no assignment of {len(flow_model.tasks)} tasks to {len(brokers)} brokers was proven best: "
            f"{model.modelStatusToString(status).lower()}"
        )
    values = {key: model.val(variable) for key, variable in runs.items()}
    return {
        name: network.brokers[max(brokers, key=lambda b: values[task, b])].name
        for task, name in enumerate(flow_model.tasks)
    }


def _sent(model: Any, flow_model: FlowModel, runs: Runs, brokers: list[int]) -> Sent:
    """Make a variable for each stream and pair of brokers: 1 if the stream goes from one to the other.

    A broker gets a stream from where it is made, or makes it itself. Written so, and not pair by pair, the
    program without whole numbers is close to the one with them.
    """
    sent: Sent = {}
    for stream in flow_model.bytes_s:
        made = (
            {flow_model.origin[stream]: 1}
            if stream in flow_model.origin
            else {b: runs[flow_model.task[stream], b] for b in brokers}
        )
        needs = {b: [runs[reader, b] for reader in flow_model.readers[stream]] for b in brokers}
        for target in flow_model.targets[stream]:
            needs[target] = [*needs.get(target, ()), 1]
        for b, readers in needs.items():
            coming = []
            for a, makes in made.items():
                if a != b:
                    sent[stream, a, b] = model.addVariable(0, 1)
                    model.addConstr(sent[stream, a, b] <= makes)
                    coming.append(sent[stream, a, b])
            for reader in readers:
                model.addConstr(sum(coming) + made.get(b, 0) >= reader)
    return sent


def _keep_capacity(model: Any, flow_model: FlowModel, runs: Runs, sent: Sent, brokers: list[int]) -> None:
    for broker in brokers:
        if not math.isinf(flow_model.capacity[broker]):
            works = enumerate(task.work for task in flow_model.workload.tasks)
            model.addConstr(
                sum(work * runs[task, broker] for task, work in works) <= flow_model.capacity[broker]
            )
    for link, bandwidth in enumerate(flow_model.bandwidth):
        if not math.isinf(bandwidth):
            over = [
                flow_model.bytes_s[stream] * variable
                for (stream, a, b), variable in sent.items()
                if link in flow_model.way(a, b)
            ]
            if over:
                model.addConstr(sum(over) <= bandwidth)
