"""Let pytest collect test files of queries.

It does nothing unless a `conftest.py` asks for it: `pytest_plugins = ["whimbrel.testing.pytest_plugin"]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from whimbrel.testing.parsing import ENDING, read_tests
from whimbrel.testing.running import Runner
from whimbrel.testing.scenario import Scenario


class ScenarioFailed(Exception):
    """A test of a query failed; the message is the whole report."""


class ScenarioItem(pytest.Item):
    """One test of a query."""

    def __init__(self, *, scenario: Scenario, **settings: Any) -> None:
        super().__init__(**settings)
        self.scenario = scenario

    def runtest(self) -> None:
        """Run it."""
        result = Runner().run(self.scenario)
        if result.status != "passed":
            raise ScenarioFailed(result.report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the report, without a traceback through Whimbrel."""
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where it stands."""
        return self.path, self.scenario.at.line - 1, self.name


class ScenarioModule(pytest.File):
    """A test file of queries."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Read its tests."""
        for scenario in read_tests(self.path):
            yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioModule | None:
    """Take the files that are ours."""
    return ScenarioModule.from_parent(parent, path=file_path) if file_path.suffix == ENDING else None
