"""Operators written in Python, and short ways to write their policies.

The execution environment tells an operator about each correlation step: `open()` at the start of a
selection, `process(events)` when events were added to it, `close()` at its end. What `process` gives
are detections; what `close` gives is consumed. An operator keeps nothing from one step to the next.

>>> class Mean(CustomOperator):
...     def process(self, events):
...         speeds = [event["speed"] for event in self.selected["recent"]]
...         yield {"mean": sum(speeds) / len(speeds)}
>>> window("Position", 3, name="recent", shift="newest", bound="end", initial="newest").kind
'counting'
>>> print(kappa("end(a) < start(b)"), process_when("|a| >= 1"))
end(a) < start(b) |a| >= 1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, cast
from typing import Literal as OneOf

from whimbrel.errors import QueryError
from whimbrel.graph.policies import Kappa, ProcessWhen, RestrictionWindow, SelectionWindow, Shift
from whimbrel.model.time import duration

Bound = OneOf["start", "end"]
Duration = timedelta | str


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """An event as an operator sees it. Times are microseconds UTC; `event["speed"]` reads an attribute."""

    type: str
    id: str
    start: int
    end: int
    source: str | None = None
    x: float | None = None
    y: float | None = None
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Only those that are not null."""
    window: str = ""
    """The window that selected it."""
    place: int = 0
    """Its place in the total order of its partition."""

    def __getitem__(self, name: str) -> Any:
        """Give an attribute; None where it is null or missing."""
        return self.attributes.get(name)


@dataclass(frozen=True, slots=True)
class Output:
    """A detection: its attributes, and the events that it is made of (None: all of the selection)."""

    attributes: Mapping[str, object]
    events: Sequence[Event] | None = None


Consume = int | Iterable[Event]
"""What `close` gives: a time, before which everything is consumed, or the events to be consumed."""


class CustomOperator:
    """Base of operators written in Python; `process` must be written, the rest may be.

    There is one object for each partition. Before `open`, the environment sets `selected` to the
    windows of the new selection and takes `finished` and `exhausted` back.
    """

    bounded: ClassVar[bool] = False
    """Whether a run may begin anywhere, because all that it finds follows from the restriction window."""
    stateless: ClassVar[bool] = False
    """Whether what it answers follows from the selection alone: equal ones need not be processed twice."""
    selected: Mapping[str, Sequence[Event]] = MappingProxyType({})
    """The events of the current selection by window, in total order; it grows until `close`."""
    partition: Mapping[str, Any] = MappingProxyType({})
    """The values of the partition's keys."""
    finished: bool = False
    """Set it to end the selection: nothing more can be detected in it."""
    exhausted: bool = False
    """Set it to end the restriction window together with the selection."""

    def __init__(self, **parameters: object) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)

    def open(self) -> None:
        """Prepare for a new selection."""

    def process(self, events: Sequence[Event]) -> Iterable[Mapping[str, object] | Output] | None:
        """Take in the events that are new in the selection; give detections."""
        raise NotImplementedError

    def close(self) -> Consume | None:
        """Take leave of the selection; say what is consumed, where the consumption policy asks for it."""


def function_name(operator: type[CustomOperator]) -> str:
    """Give the name under which a class is registered, having checked that it is an operator."""
    given: Any = operator
    if not isinstance(given, type) or not issubclass(given, CustomOperator):
        raise QueryError(f"{operator!r} is not a subclass of CustomOperator")
    if operator.process is CustomOperator.process:
        raise QueryError(
            f"operator {operator.__name__!r} has no process()",
            hint="write `def process(self, events)`, giving a dict of attributes for each detection",
        )
    return operator.__name__


def registered(*operators: type[CustomOperator]) -> dict[str, type[CustomOperator]]:
    """Register classes for the `operators` of a `Query`, by name.

    >>> class Each(CustomOperator):
    ...     def process(self, events):
    ...         return [{} for event in events]
    >>> list(registered(Each))
    ['Each']
    """
    return {function_name(operator): operator for operator in operators}


# -- policies in short ------------------------------------------------------------------------------------


def window(
    input: str,
    length: int | Duration | None = 1,
    *,
    name: str | None = None,
    shift: int | Duration | OneOf["newest", "oldest", "none"] = 1,
    bound: Bound = "start",
    initial: OneOf["oldest", "newest"] = "oldest",
) -> SelectionWindow:
    """Make a selection window; a number counts events, a duration ("10 s") measures time.

    A `length` of None has no end. The window is named as its input is, if no other name is given.
    """
    counts = length is None or isinstance(length, int)
    amount = length if length is None or isinstance(length, int) else duration(length)
    kind: OneOf["counting", "temporal"] = "counting" if counts else "temporal"
    return SelectionWindow(name or input, input, kind, amount, _shift(shift, bound), initial)


def restriction(
    length: Duration,
    *,
    shift: int | Duration | OneOf["oldest"] = 1,
    input: str | None = None,
    bound: Bound = "start",
) -> RestrictionWindow:
    """Make a restriction window; it shifts by a number of events (of one input) or by a duration."""
    return RestrictionWindow(duration(length), _shift(shift, bound), input)


def _shift(shift: int | Duration | str, bound: Bound) -> Shift:
    if isinstance(shift, int):
        return Shift("events", shift, bound)
    if shift in ("newest", "oldest", "none"):
        return Shift(cast("Any", shift), bound=bound)
    back = isinstance(shift, str) and shift.startswith("-")
    amount = duration(shift[1:] if back and isinstance(shift, str) else shift)
    return Shift("time", -amount if back else amount, bound)


_KAPPA = re.compile(r"\s*(start|end)\((\w+)\)\s*(<=|>=|<|>)\s*(start|end)\((\w+)\)\s*")
_PREDICATE = re.compile(r"\s*\|(\w+)\|\s*(!=|<=|>=|=|<|>)\s*(\d+|all|none)\s*")


def kappa(text: str) -> Kappa:
    """Read a dependency such as `end(a) < start(b)`; the window named first gives way."""
    found = _KAPPA.fullmatch(text)
    if found is None:
        raise QueryError(f"{text!r} is not a dependency; write for example 'end(a) < start(b)'")
    bound, name, relation, other_bound, other = found.groups()
    return Kappa(name, cast("Any", bound), cast("Any", relation), other, cast("Any", other_bound))


def process_when(text: str) -> ProcessWhen:
    """Read a processing predicate such as `|a| >= 1` or `|b| = all`."""
    found = _PREDICATE.fullmatch(text)
    if found is None:
        raise QueryError(f"{text!r} is not a predicate; write for example '|a| >= 1' or '|b| = all'")
    name, relation, count = found.groups()
    number = int(count) if count.isdigit() else count
    return ProcessWhen(name, cast("Any", relation), cast("Any", number))
