"""A test while its lines are read."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    ScenarioSettings,
    Step,
)


@dataclass(slots=True)
class ScenarioBuilder:
    """A test while its lines are read."""

    name: str
    at: Span
    settings: ScenarioSettings
    steps: list[Step] = field(default_factory=list)
    expectations: list[Expect | ExpectNothing | Forbid] = field(default_factory=list)
    set_aside: list[ExpectSideOutput] = field(default_factory=list)
    allowed: list[Description] = field(default_factory=list)
    allows_others: bool = False
    passed: tuple[int, Span] | None = None
    """The time that is said to have passed, and where."""

    @property
    def has_ended(self) -> bool:
        return any(isinstance(step, End) for step in self.steps)

    def close_check(self) -> None:
        """Put the expectations that stand together into one check."""
        if self.expectations:
            self.steps.append(Check(tuple(self.expectations)))
            self.expectations = []

    def add(self, step: Step, at: Span) -> None:
        """Let something happen."""
        self.close_check()
        if self.has_ended:
            raise ScenarioError("nothing can happen behind `end`", at, "put `end` below it")
        self.steps.append(step)

    def finish(self) -> tuple[Step, ...]:
        """Let the input end: before the last expectations, or behind them if they are about a time."""
        self.close_check()
        steps = self.steps
        if not self.has_ended:
            last = len(steps) - isinstance(steps[-1], Check) if steps else 0
            is_about_a_time = last > 0 and isinstance(steps[last - 1], Advance)
            steps.insert(len(steps) if is_about_a_time else last, End())
        if not isinstance(steps[-1], Check):
            steps.append(Check())
        return tuple(steps)

    @property
    def says_something(self) -> bool:
        checks = [step for step in self.steps if isinstance(step, Check)]
        return bool(self.set_aside) or any(check.expectations for check in checks)

    @property
    def expects_something(self) -> bool:
        lines = [line for step in self.steps if isinstance(step, Check) for line in step.expectations]
        return any(isinstance(line, Expect | ExpectNothing) for line in lines)
