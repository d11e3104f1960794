"""Compare what was told with what was expected: which detections are missing, too many, or slightly other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from whimbrel.errors import Span
from whimbrel.testing.observed import Difference, ObservedDetection, compare, fits, format_detection
from whimbrel.testing.scenario import Check, Description, Expect, ExpectSideOutput, Forbid, Scenario


@dataclass(frozen=True)
class Missing:
    """Detections that were expected and not told, `lacking` of those that a line expects."""

    line: Expect
    when: str
    lacking: int = 1

    @property
    def at(self) -> Span:
        """The line that expects it."""
        return self.line.at

    def report(self, _origin: int) -> list[str]:
        """Say what is missing."""
        many = f"; {self.lacking} of them missing" if self.line.count > 1 else ""
        return [f"missing     line {self.at.line}: {self.line.text}{self.when}{many}"]


@dataclass(frozen=True)
class Unexpected:
    """A detection that was told and that no line expects."""

    found: ObservedDetection
    when: str
    at: Span | None = None

    def report(self, origin: int) -> list[str]:
        """Say what was found."""
        return [f"unexpected  {format_detection(self.found, origin)}{self.when}"]


@dataclass(frozen=True)
class Different:
    """A detection that is near an expected one."""

    line: Expect
    found: ObservedDetection
    when: str

    @property
    def at(self) -> Span:
        """The line that expects it."""
        return self.line.at

    def report(self, origin: int) -> list[str]:
        """Put what was expected and what was found side by side, with a mark where they differ."""
        compared = compare(self.line.what, self.found, origin)
        return [
            f"different   line {self.at.line}: {self.line.text}{self.when}",
            f"   nearest  {format_detection(self.found, origin)}",
            *side_by_side(compared),
        ]


@dataclass(frozen=True)
class Forbidden:
    """A detection that must not be, and is."""

    line: Forbid
    found: ObservedDetection

    @property
    def at(self) -> Span:
        """The line that forbids it."""
        return self.line.at

    def report(self, origin: int) -> list[str]:
        """Say what was found."""
        return [
            f"forbidden   line {self.at.line}: {self.line.text}",
            f"     found  {format_detection(self.found, origin)}",
        ]


@dataclass(frozen=True)
class Miscounted:
    """So many events were late, duplicate or rejected, and it was expected otherwise."""

    what: str
    expected: int
    found: int
    at: Span | None = None
    reasons: tuple[str, ...] = ()

    def report(self, _origin: int) -> list[str]:
        """Say how many, and why."""
        hint = "" if self.at else f"; if that is meant, write: expect {self.found} {self.what} "
        more = "" if not hint else ("event" if self.found == 1 else "events")
        line = f"{self.what:<12}{self.found} found, {self.expected} expected{hint}{more}"
        return [line, *(f"            {reason}" for reason in self.reasons)]


@dataclass(frozen=True)
class Disagreement:
    """The whole input at once and event by event gave different detections."""

    ways: tuple[str, str]
    only: tuple[tuple[ObservedDetection, ...], tuple[ObservedDetection, ...]]
    at: Span | None = None

    def report(self, origin: int) -> list[str]:
        """Say what each way found alone."""
        lines = [f"disagree    {self.ways[0]} and {self.ways[1]} find different detections; please report it"]
        for way, alone in zip(self.ways, self.only, strict=True):
            lines += [f"            only {way}: {format_detection(found, origin)}" for found in alone]
        return lines


Problem = Missing | Unexpected | Different | Forbidden | Miscounted | Disagreement


def side_by_side(compared: Sequence[Difference]) -> list[str]:
    """Lay out what was expected and what was found as a table."""
    names = max(len(each.name) for each in compared)
    wide = max(len("expected"), *(len(each.expected) for each in compared))
    lines = [f"            {'':{names}}   {'expected':{wide}}   found"]
    for each in compared:
        mark = "  " if each.is_met else "> "
        lines.append(f"          {mark}{each.name:{names}}   {each.expected:{wide}}   {each.found}")
    return lines


# Expectations -----------------------------------------------------------------------------------------------


def check_expectations(scenario: Scenario, told: Sequence[Sequence[ObservedDetection]]) -> list[Problem]:
    """Hold what was told before each check of a test against it."""
    checks = [step for step in scenario.steps if isinstance(step, Check)]
    problems: list[Problem] = []
    so_far: list[ObservedDetection] = []
    for number, (check, new) in enumerate(zip(checks, told, strict=True)):
        so_far += new
        when = "" if number == len(checks) - 1 else f" (up to line {_line(checks, number)})"
        problems += _check(scenario, check, new, when)
        problems += [
            Forbidden(line, found)
            for line in check.expectations
            if isinstance(line, Forbid)
            for found in so_far
            if fits(line.what, found)
        ]
    return problems


def _line(checks: Sequence[Check], number: int) -> int:
    return checks[number].expectations[0].at.line


def _check(scenario: Scenario, check: Check, told: Sequence[ObservedDetection], when: str) -> list[Problem]:
    lines = [line for line in check.expectations if isinstance(line, Expect)]
    copies = [line for line in lines for _ in range(min(line.count, len(told)))]
    fitting = {line: [at for at, found in enumerate(told) if fits(line.what, found)] for line in lines}
    taken = assign([fitting[line] for line in copies], len(told))
    served = Counter(line for line, detection in zip(copies, taken, strict=True) if detection is not None)
    lacking = {line: line.count - served[line] for line in lines if served[line] < line.count}
    forbidden = [line.what for line in check.expectations if isinstance(line, Forbid)]
    rest = [
        found
        for number, found in enumerate(told)
        if number not in taken and not any(fits(what, found) for what in (*scenario.allowed, *forbidden))
    ]
    return _paired(lacking, rest, when, scenario)


def _paired(
    lacking: dict[Expect, int], rest: list[ObservedDetection], when: str, scenario: Scenario
) -> list[Problem]:
    """Put each missing detection beside the nearest that is left over."""
    problems: list[Problem] = []
    left = list(rest)
    for line, count in lacking.items():
        near = sorted(left, key=lambda found, what=line.what: -nearness(what, found))[:count]  # type: ignore[misc]
        near = [found for found in near if nearness(line.what, found) > 0]
        problems += [Different(line, found, when) for found in near]
        left = [found for found in left if not any(found is other for other in near)]
        if len(near) < count:
            problems.append(Missing(line, when, count - len(near)))
    if not scenario.allows_others:
        problems += [Unexpected(found, when) for found in left]
    return problems


def nearness(what: Description, found: ObservedDetection) -> float:
    """Say how near a detection is to a description: 0 for another type, 1 where nothing differs."""
    if what.type != found.type:
        return 0.0
    compared = compare(what, found, 0)
    return sum(each.is_met for each in compared) / len(compared)


def assign(fitting: Sequence[Sequence[int]], count: int) -> list[int | None]:
    """Give as many as possible of the lines a detection of their own, out of those that fit.

    Grows a matching along augmenting paths: where none is free, a line takes the detection of another line
    that finds a free one. Lines x fits in the usual case, lines x lines x fits in the worst.

    >>> assign([[0, 1], [0]], 2)
    [1, 0]
    """
    owner: list[int | None] = [None] * count

    def place(line: int, tried: set[int]) -> bool:
        free = next((detection for detection in fitting[line] if owner[detection] is None), None)
        if free is not None:
            owner[free] = line
            return True
        for detection in fitting[line]:
            holder = owner[detection]
            if detection in tried or holder is None:
                continue
            tried.add(detection)
            if place(holder, tried):
                owner[detection] = line
                return True
        return False

    for line in range(len(fitting)):
        place(line, set())
    taken: list[int | None] = [None] * len(fitting)
    for detection, line_or_none in enumerate(owner):
        if line_or_none is not None:
            taken[line_or_none] = detection
    return taken


# What was set aside -----------------------------------------------------------------------------------------


def check_side_outputs(
    expected: Sequence[ExpectSideOutput], counts: dict[str, int], reasons: tuple[str, ...]
) -> list[Problem]:
    """Compare the numbers of events that were not processed; none is expected where nothing is said."""
    said = {line.what: line for line in expected}
    problems: list[Problem] = []
    for what, count in counts.items():
        line = said.get(what)
        wanted = 0 if line is None else line.count
        if count != wanted:
            why = reasons if what == "rejected" else ()
            problems.append(Miscounted(what, wanted, count, None if line is None else line.at, why))
    return problems


def check_agreement(
    ways: tuple[str, str], one: Sequence[ObservedDetection], other: Sequence[ObservedDetection]
) -> list[Problem]:
    """Compare what two ways of running found."""
    only = _without(one, other), _without(other, one)
    return [Disagreement(ways, only)] if any(only) else []


def _without(
    found: Sequence[ObservedDetection], others: Sequence[ObservedDetection]
) -> tuple[ObservedDetection, ...]:
    """Give the detections that have no counterpart among others; each counts once."""
    by_id: dict[str, list[ObservedDetection]] = {}
    for other in others:
        by_id.setdefault(other.id, []).append(other)
    alone: list[ObservedDetection] = []
    for each in found:
        alike = by_id.get(each.id, [])
        twin = next((number for number, other in enumerate(alike) if each.is_same(other)), None)
        if twin is None:
            alone.append(each)
        else:
            del alike[twin]
    return tuple(alone)
