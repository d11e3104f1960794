"""Helpers for tests, ours and yours: events in a line instead of a page of builders, and tests of queries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from whimbrel.testing.events import detections, events, table

if TYPE_CHECKING:
    from whimbrel.testing.junit import write_junit
    from whimbrel.testing.parsing import parse_tests, read_tests
    from whimbrel.testing.running import ScenarioResult, ScenarioResults, run_tests

_MODULES = {
    "ScenarioResult": "whimbrel.testing.running",
    "ScenarioResults": "whimbrel.testing.running",
    "parse_tests": "whimbrel.testing.parsing",
    "read_tests": "whimbrel.testing.parsing",
    "run_tests": "whimbrel.testing.running",
    "write_junit": "whimbrel.testing.junit",
}

__all__ = [
    "ScenarioResult",
    "ScenarioResults",
    "detections",
    "events",
    "parse_tests",
    "read_tests",
    "run_tests",
    "table",
    "write_junit",
]


def __getattr__(name: str) -> object:
    # What runs queries loads the engine, which who only writes events down does not need.
    if name not in _MODULES:
        raise AttributeError(f"module 'whimbrel.testing' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
