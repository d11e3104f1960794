"""Scenarios that can be run by name: `whimbrel simulate SCENARIO`."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.published import write_figures
from experiments.scenarios import (
    comet,
    deployment,
    hierarchy,
    migcep,
    migcep_queries,
    migcep_rates,
    mobile,
    mobile_prediction,
    nursing_home,
    radius,
    reuse,
    reuse_estimates,
    reuse_speed,
)
from experiments.scenarios.registry import SCENARIOS, Progress, Scenario, Value, find
from whimbrel.sim.results import Results

__all__ = [
    "SCENARIOS",
    "Results",
    "Scenario",
    "comet",
    "deployment",
    "find",
    "hierarchy",
    "migcep",
    "migcep_queries",
    "migcep_rates",
    "mobile",
    "mobile_prediction",
    "nursing_home",
    "radius",
    "reuse",
    "reuse_estimates",
    "reuse_speed",
    "simulate",
    "write_figures",
]


def simulate(
    name: str, parameters: Mapping[str, str | Value] | None = None, progress: Progress | None = None
) -> Results:
    """Run a scenario by its name, with other parameters than its defaults where they are given."""
    found = find(name)
    return found.run(found.settings(parameters or {}), progress or (lambda _done, _total: None))
