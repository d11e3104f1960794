"""A test while its lines are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from whimbrel.errors import ScenarioError, Span
from whimbrel.testing.scenario import (
    Advance,
    Check,
    Description,
    End,
    Expect,
    ExpectNothing,
    ExpectSideOutput,
    Forbid,
    Scenario,
    ScenarioSettings,
    Step,
)


@dataclass(slots=True)
class ScenarioBuilder:
    """A test while its lines are read, or what is said before the first one and holds for all."""

    name: str = ""
    at: Span | None = None
    settings: ScenarioSettings = ScenarioSettings()
    steps: list[Step] = field(default_factory=list)
    expectations: list[Expect | ExpectNothing | Forbid] = field(default_factory=list)
    side_outputs: list[ExpectSideOutput] = field(default_factory=list)
    allowed: list[Description] = field(default_factory=list)
    allows_others: bool = False
    has_ended: bool = False
    passed: tuple[int, Span] | None = None
    """The time that is said to have passed, and where."""

    def test(self, name: str, at: Span) -> ScenarioBuilder:
        """Begin a test that has these settings and allowances."""
        return ScenarioBuilder(
            name, at, self.settings, allowed=list(self.allowed), allows_others=self.allows_others
        )

    def add(self, step: Step, at: Span) -> None:
        """Let something happen."""
        self._close_check()
        if self.has_ended:
            raise ScenarioError("nothing can happen behind `end`", at, "put `end` below it")
        self.steps.append(step)
        self.has_ended = isinstance(step, End)

    def finish(self, file: Path, text: str) -> Scenario:
        """Let the input end: before the last expectations, or behind them if they are about a time."""
        assert self.at is not None
        self._close_check()
        steps = self.steps
        said = [line for step in steps if isinstance(step, Check) for line in step.expectations]
        if not said and not self.side_outputs:
            raise ScenarioError(
                f"the test {self.name!r} expects nothing at all",
                self.at,
                "add what it expects: `expect TYPE ...`, `expect nothing` or `not TYPE ...`",
            )
        if not self.has_ended:
            last = len(steps) - isinstance(steps[-1], Check) if steps else 0
            is_about_a_time = last > 0 and isinstance(steps[last - 1], Advance)
            steps.insert(len(steps) if is_about_a_time else last, End())
        if not isinstance(steps[-1], Check):
            steps.append(Check())
        return Scenario(
            self.name,
            file,
            self.at,
            text,
            self.settings,
            tuple(steps),
            tuple(self.side_outputs),
            tuple(self.allowed),
            self.allows_others or all(isinstance(line, Forbid) for line in said),
        )

    def _close_check(self) -> None:
        """Put the expectations that stand together into one check."""
        if self.expectations:
            self.steps.append(Check(tuple(self.expectations)))
            self.expectations = []
