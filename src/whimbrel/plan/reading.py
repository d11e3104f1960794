"""Read a plan that `whimbrel plan --out` wrote, to carry it out or to judge it on another network."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whimbrel.errors import NetworkError
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.network import Network
from whimbrel.plan.plan import Plan
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

WANTED = "give a plan that `whimbrel plan --out FILE` wrote"


def read_plan(file: str | Path, network: Network) -> Plan:
    """Read a plan, and work out what it costs on a network.

    Raises
    ------
    NetworkError
        If the file is no plan with hosts, or does not fit the network.
    """
    content = content_of(file)
    with naming(file):
        return plan_of(content, network)


def content_of(file: str | Path) -> Any:
    """Read what is in the file of a plan."""
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise NetworkError(f"the plan {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NetworkError(f"{file} is not JSON: {error}", WANTED) from error


def previous_hosts(content: Any) -> dict[str, str]:
    """Return the hosts that tasks have at last in a plan as plain data, to plan again from there."""
    hosts = content.get("hosts") if isinstance(content, Mapping) else None
    if not isinstance(hosts, Mapping):
        raise NetworkError("there are no hosts in it, as a plan has", WANTED)
    return {str(task): str(host if isinstance(host, str) else host[-1][1]) for task, host in hosts.items()}


@contextmanager
def naming(file: str | Path) -> Iterator[None]:
    """Name the file in errors about what is in it."""
    try:
        yield
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from error


def is_deployment(content: Any) -> bool:
    """Tell whether a plan is one that pushes and pulls, which `plan.pushpull.deployment_reading` reads."""
    return isinstance(content, Mapping) and "composites" in content


def plan_of(content: Any, network: Network) -> Plan:
    """Make a plan of what `Plan.to_dict` gives."""
    if is_deployment(content):
        raise NetworkError(
            "it is a plan that pushes and pulls, and has no hosts",
            "read it with the query: whimbrel.plan.pushpull.deployment_reading",
        )
    if not isinstance(content, Mapping) or not {"hosts", "feeds", "tasks", "deliveries"} <= content.keys():
        raise NetworkError("there are no hosts, feeds, tasks and deliveries in it, as a plan has", WANTED)
    try:
        workload = Workload(
            tuple(_feed(said) for said in content["feeds"]),
            tuple(_task(task) for task in content["tasks"]),
            tuple(_delivery(delivery) for delivery in content["deliveries"]),
        )
        hosts: dict[str, str | tuple[tuple[float, str], ...]] = {
            name: host if isinstance(host, str) else tuple((float(time), str(to)) for time, to in host)
            for name, host in content["hosts"].items()
        }
        objective = Objective(content.get("objective", "bdp"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetworkError(f"something of the plan is missing or damaged: {error}", WANTED) from error
    costs = evaluate(workload, network, hosts, objective)
    return Plan(workload, network, hosts, objective, str(content.get("planner", "")), costs)


def _feed(said: Mapping[str, Any]) -> Feed:
    return Feed(name=str(said["name"]), at=str(said["at"]), **_numbers(said, "rate_hz", "size_b", "burst_b"))


def _task(said: Mapping[str, Any]) -> Task:
    numbers = _numbers(said, "rate_hz", "size_b", "work", "fixed_b", "window_b", "burst_b")
    inputs, operators = tuple(said["inputs"]), tuple(said["operators"])
    return Task(name=str(said["name"]), inputs=inputs, operators=operators, **numbers)


def _numbers(said: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return what feeds and tasks count, by name; null where nothing is known."""
    numbers = {name: None if said[name] is None else float(said[name]) for name in names}
    return {**numbers, "peaks": tuple((float(rate), float(burst)) for rate, burst in said["peaks"])}


def _delivery(said: Mapping[str, Any]) -> Delivery:
    latency = said.get("latency_s")
    return Delivery(said["stream"], said["at"], math.inf if latency is None else float(latency))
