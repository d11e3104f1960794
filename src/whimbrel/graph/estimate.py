"""About how many events each operator has to remember, for given rates of events.

The graph does not tell how selective a condition is, so the estimates are for conditions that keep
everything, one detection for each event of a pattern's rarest part, and one group. `rates` can name any
stream, so that what is known about a definition's own rate is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, UnboundedError, UnknownNameError
from whimbrel.graph.costs import passing
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    Repeat,
    Source,
    TimePoints,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.graph.reach import match_retention, sequence_retention
from whimbrel.model.time import END_OF_TIME, SECOND, format_duration


@dataclass(frozen=True, slots=True)
class StateEstimate:
    """How many events an operator remembers, and how that number comes about."""

    events: float | None
    """None: without bound."""
    formula: str

    def __str__(self) -> str:
        if self.events is None:
            return self.formula
        return f"about {rounded(self.events)} {'event' if self.events == 1 else 'events'} ({self.formula})"


NOTHING = StateEstimate(0.0, "nothing to remember")


def stream_rates(graph: Graph, rates: Mapping[str, float]) -> dict[str, float]:
    """Give the events a second of every stream, from those of event types (1 where none is given).

    Raises
    ------
    QueryError
        If `rates` names something that the graph does not have, or gives no rate.
    """
    types = {operator.event_type for operator in graph.operators if isinstance(operator, Source)}
    for name, rate in rates.items():
        if name not in types and all(name != operator.name for operator in graph.operators):
            raise UnknownNameError("event type or definition", name, types)
        if not 0 <= rate < float("inf"):
            raise QueryError(f"{rate!r} is no rate of {name!r}; give events a second, 0 or more")
    found: dict[str, float] = {}
    for operator in graph.operators:
        named = rates.get(operator.name)
        found[operator.name] = _rate(operator, found, rates) if named is None else named
    return found


def _rate(operator: Operator, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
    inputs = [below[name] for name in operator.inputs]
    match operator:
        case TimePoints():
            return 0.0
        case Source():
            return rates.get(operator.event_type, 1.0)
        case Filter() | Repeat():
            return below[operator.input]
        case JoinPattern():
            return min(below[part.input] for part in operator.parts)
        case Aggregate(window=window) if window.every is not None:
            return SECOND / window.every if window.kind == "temporal" else sum(inputs) / window.every
        case Merge() | Derive() | Aggregate():
            return sum(inputs)
    return min(inputs, default=0.0)


def state_of(operator: Operator, rates: Mapping[str, float]) -> StateEstimate:
    """Estimate what an operator remembers; `rates` are those of all streams."""
    match operator:
        case JoinPattern():
            return _over(_retention(operator), operator, rates)
        case Repeat():
            return _over(operator.within, operator, rates)
        case Aggregate() if operator.window.kind == "counting":
            return StateEstimate(
                float(operator.window.length), f"the last {operator.window.length:,} of each group"
            )
        case Aggregate():
            return _over(operator.window.length, operator, rates)
        case StepPattern():
            return _over(sequence_retention(operator), operator, rates)
        case Motion() | Encounter():
            return _over(operator.retention, operator, rates)
        case Custom():
            return _over(operator.policy.restriction.length, operator, rates)
    return NOTHING


def _over(length: int, operator: Operator, rates: Mapping[str, float]) -> StateEstimate:
    if length >= END_OF_TIME:
        return StateEstimate(None, "without bound")
    if length == 0:
        return NOTHING
    rate = sum(rates[name] for name in operator.inputs)
    unit = "event/s" if rate == 1 else "events/s"
    return StateEstimate(length / SECOND * rate, f"{format_duration(length)} x {rate:,.6g} {unit}")


def _retention(op: JoinPattern) -> int:
    try:
        return match_retention(op)
    except UnboundedError:
        return END_OF_TIME


# -- how many combinations a pattern is likely to have ----------------------------------------------------

SAME_KEY = 0.01
"""The share of pairs of events with equal keys, where nobody has counted."""
MAKING = 4.0
"""What it costs to make a composite, compared with keeping an event."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of the events so far."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Events a second by type; 1 where none is given."""
    same: Mapping[str, float] = field(default_factory=dict)
    """The share of pairs of events that have the same value of a key; `SAME_KEY` where none is given."""


NOTHING_SEEN = Observed()


def worth_sharing(
    graph: Graph, beginning: JoinPattern, patterns: int, observed: Observed = NOTHING_SEEN
) -> bool:
    """Tell whether finding a beginning once costs less than finding it in each of so many patterns.

    Without sharing, every pattern keeps every event of the beginning's parts. With it, they are kept once,
    and every pattern keeps the composites instead. So it pays if there are fewer composites than events.
    """
    likely = likely_rates(graph, observed)
    events = sum(likely[part.input] for part in beginning.parts)
    made = _combinations(beginning, likely, observed)
    return events + made * (MAKING + patterns) < patterns * events


def likely_rates(graph: Graph, observed: Observed) -> dict[str, float]:
    """Estimate the events a second of every stream, with how selective its conditions are likely to be."""
    found: dict[str, float] = {}
    for operator in graph.operators:
        match operator:
            case Filter():
                found[operator.name] = found[operator.input] * passing(operator.condition)
            case JoinPattern():
                found[operator.name] = _combinations(operator, found, observed)
            case _:
                found[operator.name] = _rate(operator, found, observed.rates)
    return found


def _combinations(match: JoinPattern, rates: Mapping[str, float], observed: Observed) -> float:
    """Estimate how many combinations a second hold, if events come by chance."""
    expected = 1.0
    seconds = min(match.within, END_OF_TIME) / SECOND
    keys = [key.name for key in match.partitioning.keys] + list(match.joins)
    for number, part in enumerate(match.parts):
        expected *= rates[part.input]
        if number:
            expected *= seconds / (number if match.orders else 1.0)
            for key in keys:
                expected *= observed.same.get(key, SAME_KEY)
    for condition in match.conditions:
        expected *= passing(condition)
    return expected


def rounded(events: float) -> str:
    """Write a number of events as precisely as an estimate deserves."""
    return f"{events:,.0f}" if events >= 10 or events == int(events) else f"{events:.2g}"
