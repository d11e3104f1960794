"""A folder with a query, and a way to run a test of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whimbrel.testing import ScenarioResults, run_tests
from whimbrel.testing.running import ScenarioResult

LATE = """\
define Late
  detect Leave then not Arrive for 1 h
  group by truck
"""


class QueryFolder:
    """A folder in which queries are tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, text: str, query: str = LATE, **settings: Any) -> ScenarioResults:
        """Run tests of a query."""
        self.write("late.wbl", query)
        return run_tests(self.write("late.wbt", text), **settings)

    def one(self, text: str, query: str = LATE, **settings: Any) -> ScenarioResult:
        """Run the only test."""
        (result,) = self.run(f"test t\n{text}", query, **settings).results
        return result

    def missed(self, query: str, *tests: str) -> list[str]:
        """Name the branches that tests, events alone, do not reach, with their lines."""
        text = "\n".join(f"test {number}\n{test}\nnot Nothing" for number, test in enumerate(tests))
        results = self.run(text, query, coverage=True)
        assert results.all_passed, results
        assert results.coverage is not None
        return [
            f"{goal.at.line if goal.at else '?'}: {goal.text}"
            for covered in results.coverage.queries.values()
            for goal in covered.missed
        ]


@pytest.fixture
def queries(tmp_path: Path) -> QueryFolder:
    """A folder in which queries are tested."""
    return QueryFolder(tmp_path)
