"""The report of a test run, as the command line prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from whimbrel.testing.checking import Problem
from whimbrel.testing.running import ScenarioResult, ScenarioResults

MARKS = {"passed": ".", "failed": "F", "error": "E", "skipped": "s"}
"""One character a test, as long as they run."""

_WIDTH = 79


def report(results: ScenarioResults) -> str:
    """Write everything: a mark for each test, what failed and why, coverage, and the numbers."""
    marks = [
        f"{file} {''.join(MARKS[result.status] for result in of_file)}"
        for file, of_file in groupby(results.results, key=_file)
    ]
    return "\n".join([*marks, *after_marks(results)])


def after_marks(results: ScenarioResults) -> list[str]:
    """Write what follows once every test has its mark."""
    lines: list[str] = []
    for result in results.results:
        if result.status in ("failed", "error"):
            lines += ["", _headline(result), result.report]
    if results.coverage is not None:
        lines += ["", *results.coverage.report()]
    lines += ["", *short_summary(results.results), numbers(results)]
    return lines


def _file(result: ScenarioResult) -> Path:
    return result.file


def _headline(result: ScenarioResult) -> str:
    title = f" {result.file}: line {result.line}: {result.name} "
    return title.center(_WIDTH, "_")


def short_summary(results: Sequence[ScenarioResult]) -> list[str]:
    """Write one line for each test that did not pass."""
    words = {"failed": "FAILED", "error": "ERROR", "skipped": "SKIPPED"}
    return [
        f"{words[result.status]} {result.title} - {result.summary}"
        for result in results
        if result.status in words
    ]


def numbers(results: ScenarioResults) -> str:
    """Write how many tests passed, failed, could not be run or were left out."""
    names = {"failed": "failed", "passed": "passed", "error": "errors", "skipped": "skipped"}
    counted = [f"{count} {name}" for status, name in names.items() if (count := results.count(status))]
    return ", ".join(counted).replace("1 errors", "1 error") if counted else "no tests"


def in_short(problems: Iterable[Problem]) -> str:
    """Count problems by their kind.

    >>> in_short([])
    ''
    """
    kinds = Counter(type(problem).__name__.lower() for problem in problems)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
