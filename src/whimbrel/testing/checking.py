"""Compare what was reported with what was expected: what is missing, too many, or slightly other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from whimbrel.testing.observed import Difference, ObservedDetection, compare, fits, format_detection
from whimbrel.testing.scenario import Check, Description, Expect, ExpectSideOutput, Forbid, Scenario


@dataclass(frozen=True)
class Missing:
    """Detections that were expected and not reported, `lacking` of those that a line expects."""

    line: Expect
    when: str
    lacking: int = 1

    def report(self, _origin: int) -> list[str]:
        """Say what is missing."""
        many = f"; {self.lacking} of them missing" if self.line.count > 1 else ""
        return [f"missing     line {self.line.at.line}: {self.line.text}{self.when}{many}"]


@dataclass(frozen=True)
class Unexpected:
    """A detection that was reported and that no line expects."""

    detection: ObservedDetection
    when: str

    def report(self, origin: int) -> list[str]:
        """Say what was observed."""
        return [f"unexpected  {format_detection(self.detection, origin)}{self.when}"]


@dataclass(frozen=True)
class Different:
    """A detection that is near an expected one."""

    line: Expect
    detection: ObservedDetection
    when: str

    def report(self, origin: int) -> list[str]:
        """Put what was expected and what was observed side by side, with a mark where they differ."""
        compared = compare(self.line.what, self.detection, origin)
        return [
            f"different   line {self.line.at.line}: {self.line.text}{self.when}",
            f"   nearest  {format_detection(self.detection, origin)}",
            *side_by_side(compared),
        ]


@dataclass(frozen=True)
class Forbidden:
    """A detection that must not be, and is."""

    line: Forbid
    detection: ObservedDetection

    def report(self, origin: int) -> list[str]:
        """Say what was observed."""
        return [
            f"forbidden   line {self.line.at.line}: {self.line.text}",
            f"     found  {format_detection(self.detection, origin)}",
        ]


@dataclass(frozen=True)
class Miscounted:
    """So many events were late, duplicate or rejected, and it was expected otherwise."""

    what: str
    expected: int
    counted: int
    has_line: bool
    reasons: tuple[str, ...] = ()

    def report(self, _origin: int) -> list[str]:
        """Say how many, and why."""
        hint = "" if self.has_line else f"; if that is meant, write: expect {self.counted} {self.what} "
        more = "" if not hint else ("event" if self.counted == 1 else "events")
        line = f"{self.what:<12}{self.counted} found, {self.expected} expected{hint}{more}"
        return [line, *(f"            {reason}" for reason in self.reasons)]


@dataclass(frozen=True)
class Disagreement:
    """The whole input at once and event by event gave different detections."""

    ways: tuple[str, str]
    only: tuple[tuple[ObservedDetection, ...], tuple[ObservedDetection, ...]]

    def report(self, origin: int) -> list[str]:
        """Say what each way detected alone."""
        lines = [f"disagree    {self.ways[0]} and {self.ways[1]} find different detections; please report it"]
        for way, alone in zip(self.ways, self.only, strict=True):
            lines += [f"            only {way}: {format_detection(detection, origin)}" for detection in alone]
        return lines


Problem = Missing | Unexpected | Different | Forbidden | Miscounted | Disagreement


def side_by_side(compared: Sequence[Difference]) -> list[str]:
    """Lay out what was expected and what was observed as a table."""
    names = max(len(part.name) for part in compared)
    wide = max(len("expected"), *(len(part.expected) for part in compared))
    lines = [f"            {'':{names}}   {'expected':{wide}}   found"]
    for part in compared:
        mark = "  " if part.is_met else "> "
        lines.append(f"          {mark}{part.name:{names}}   {part.expected:{wide}}   {part.observed}")
    return lines


# Expectations -----------------------------------------------------------------------------------------------


def check_expectations(scenario: Scenario, reported: Sequence[Sequence[ObservedDetection]]) -> list[Problem]:
    """Hold what was reported before each check of a test against it."""
    checks = [step for step in scenario.steps if isinstance(step, Check)]
    problems: list[Problem] = []
    so_far: list[ObservedDetection] = []
    for number, (check, new) in enumerate(zip(checks, reported, strict=True)):
        so_far += new
        when = "" if number == len(checks) - 1 else f" (up to line {_line(checks, number)})"
        problems += _check(scenario, check, new, when)
        problems += [
            Forbidden(line, detection)
            for line in check.expectations
            if isinstance(line, Forbid)
            for detection in so_far
            if fits(line.what, detection)
        ]
    return problems


def _line(checks: Sequence[Check], number: int) -> int:
    return checks[number].expectations[0].at.line


def _check(
    scenario: Scenario, check: Check, reported: Sequence[ObservedDetection], when: str
) -> list[Problem]:
    lines = [line for line in check.expectations if isinstance(line, Expect)]
    copies = [line for line in lines for _ in range(min(line.count, len(reported)))]
    fitting = {
        line: [at for at, detection in enumerate(reported) if fits(line.what, detection)] for line in lines
    }
    taken = assign([fitting[line] for line in copies], len(reported))
    served = Counter(line for line, detection in zip(copies, taken, strict=True) if detection is not None)
    lacking = {line: line.count - served[line] for line in lines if served[line] < line.count}
    forbidden = [line.what for line in check.expectations if isinstance(line, Forbid)]
    rest = [
        detection
        for number, detection in enumerate(reported)
        if number not in taken and not any(fits(what, detection) for what in (*scenario.allowed, *forbidden))
    ]
    return _paired(lacking, rest, when, scenario)


def _paired(
    lacking: dict[Expect, int], rest: list[ObservedDetection], when: str, scenario: Scenario
) -> list[Problem]:
    """Put each missing detection beside the nearest that is left over."""
    problems: list[Problem] = []
    left = list(rest)
    for line, count in lacking.items():
        near = sorted(left, key=lambda detection, what=line.what: -nearness(what, detection))[:count]  # type: ignore[misc]
        near = [detection for detection in near if nearness(line.what, detection) > 0]
        problems += [Different(line, detection, when) for detection in near]
        left = [detection for detection in left if not any(detection is other for other in near)]
        if len(near) < count:
            problems.append(Missing(line, when, count - len(near)))
    if not scenario.allows_others:
        problems += [Unexpected(detection, when) for detection in left]
    return problems


def nearness(what: Description, detection: ObservedDetection) -> float:
    """Say how near a detection is to a description: 0 for another type, 1 where nothing differs."""
    if what.type != detection.type:
        return 0.0
    compared = compare(what, detection, 0)
    return sum(part.is_met for part in compared) / len(compared)


def assign(fitting: Sequence[Sequence[int]], count: int) -> list[int | None]:
    """Assign a detection of its own, out of those that fit, to as many of the lines as possible.

    Grows a matching along augmenting paths: where none is free, a line takes the detection of another line
    that finds a free one. Lines x fits in the usual case, lines x lines x fits in the worst.

    >>> assign([[0, 1], [0]], 2)
    [1, 0]
    """
    owner: list[int | None] = [None] * count

    def match(line: int, tried: set[int]) -> bool:
        free = next((detection for detection in fitting[line] if owner[detection] is None), None)
        if free is not None:
            owner[free] = line
            return True
        for detection in fitting[line]:
            holder = owner[detection]
            if detection in tried or holder is None:
                continue
            tried.add(detection)
            if match(holder, tried):
                owner[detection] = line
                return True
        return False

    for line in range(len(fitting)):
        match(line, set())
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
            problems.append(Miscounted(what, wanted, count, line is not None, why))
    return problems


def check_agreement(
    ways: tuple[str, str], one: Sequence[ObservedDetection], other: Sequence[ObservedDetection]
) -> list[Problem]:
    """Compare what two ways of running detected."""
    only = _without(one, other), _without(other, one)
    return [Disagreement(ways, only)] if any(only) else []


def _without(
    detections: Sequence[ObservedDetection], others: Sequence[ObservedDetection]
) -> tuple[ObservedDetection, ...]:
    """Leave out the detections that have a counterpart among others; each counts once."""
    by_id: dict[str, list[ObservedDetection]] = {}
    for other in others:
        by_id.setdefault(other.id, []).append(other)
    alone: list[ObservedDetection] = []
    for detection in detections:
        alike = by_id.get(detection.id, [])
        twin = next((number for number, other in enumerate(alike) if detection.is_same(other)), None)
        if twin is None:
            alone.append(detection)
        else:
            del alike[twin]
    return tuple(alone)
