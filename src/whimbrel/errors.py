"""Every error Whimbrel raises on purpose, and the place in a query that an error points at.

WhimbrelError
├── QueryError            a query that cannot be compiled; knows line, column and a hint
│   ├── QuerySyntaxError  the text is not a query
│   ├── UnknownNameError  a name that nothing binds
│   ├── QueryTypeError    an expression whose types do not fit
│   ├── UnboundedError    a query that would have to remember for ever
│   └── ScenarioError     a test of a query that cannot be read or run
├── DataError             events that cannot be read
├── SparkError            Spark could not do its work
├── StateError            a snapshot that does not fit
├── NetworkError          a network or workload that makes no sense
├── SimulationError       a scenario that does not exist, or a parameter that it cannot take
├── NoPlanError           nothing satisfies what was asked of a plan
└── MissingDependency     an optional package that this feature needs
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of query text: one-based line and columns, end column excluded."""

    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"line {self.line}, col {self.column}"

    def to(self, other: Span) -> Span:
        """Cover everything from the start of this span to the end of `other`."""
        return Span(self.line, self.column, other.end_line, other.end_column)


class WhimbrelError(Exception):
    """Base of every error that Whimbrel raises on purpose."""


class QueryError(WhimbrelError, ValueError):
    """A query that cannot be compiled.

    `str(error)` is the whole report: place, message, the line with a caret, and the hint.
    """

    def __init__(self, message: str, at: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint
        self.text: str | None = None
        self.file: str | None = None

    def located_in(self, text: str, file: str | None = None) -> QueryError:
        """Remember the query text, so that the report can show the line."""
        self.text, self.file = text, file
        return self

    def __str__(self) -> str:
        place = ": ".join(str(part) for part in (self.file, self.at) if part)
        lines = [f"{place}: {self.message}" if place else self.message]
        if self.text is not None and self.at is not None:
            lines += _excerpt(self.text, self.at)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class QuerySyntaxError(QueryError):
    """The text does not follow the language's grammar."""


class UnknownNameError(QueryError):
    """A query uses a name that nothing binds."""

    def __init__(self, what: str, name: str, known: Collection[str], at: Span | None = None) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(f"no {what} is named {name!r}", at, did_you_mean(name, self.known))


class QueryTypeError(QueryError, TypeError):
    """An expression whose operand types do not fit together."""


class UnboundedError(QueryError):
    """A query that would have to remember events for ever."""


class ScenarioError(QueryError):
    """A test of a query that cannot be read or run; place and caret are those of the test file."""


class DataError(WhimbrelError, ValueError):
    """Events that cannot be read, with the place and what to do instead."""


class SparkError(WhimbrelError, RuntimeError):
    """Spark could not do its work; the message says why, and `__cause__` is what Spark raised."""


class StateError(WhimbrelError, ValueError):
    """A snapshot that is damaged, of another version, or of another query."""


class NetworkError(WhimbrelError, ValueError):
    """A network or a workload that makes no sense; the hint says what would."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class SimulationError(WhimbrelError, ValueError):
    """A scenario that does not exist, or a parameter that it cannot take."""


class NoPlanError(WhimbrelError, ValueError):
    """No plan satisfies what was asked: capacities, latencies, tolerances. The message says which one.

    `costs` are those of the plan with the least trouble (`whimbrel.plan.cost.Costs`), if there was any plan.
    """

    def __init__(self, message: str, costs: Any = None) -> None:
        super().__init__(message)
        self.costs = costs


class MissingDependency(WhimbrelError, ImportError):
    """An optional package is needed and not installed; the message says how to get it."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: pip install 'whimbrel[{extra}]'"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Suggest the nearest known name, or list the known ones if none is near."""
    names = sorted(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    near = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"did you mean {lowered[near[0]]!r}?"
    if not names:
        return None
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known names: {shown}"


def _excerpt(text: str, at: Span) -> list[str]:
    source = text.splitlines()
    if not 1 <= at.line <= len(source):
        return []
    line = source[at.line - 1].expandtabs(1)
    width = at.end_column - at.column if at.end_line == at.line else len(line) - at.column + 1
    return [f"  {line}", "  " + " " * (at.column - 1) + "^" * max(1, width)]
