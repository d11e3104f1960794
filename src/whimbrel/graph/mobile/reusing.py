"""Which operators of a mobile query have selections that may be reused, and why others have not.

What is plain is found once for all interests. Of the rest, operators in Python are what takes long, and
where two selections are the same, or nearly so, one of them need not be processed: if the class says that its
answers depend on nothing else (`CustomOperator.stateless`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whimbrel.graph.operators import Custom, Derive, Filter, Graph
from whimbrel.graph.wiring import readers

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery

_BY_POLICY = ("none", "first", "last", "selected")
"""The consumption policies that do not ask the operator."""


@dataclass(frozen=True, slots=True)
class ReusedOperator:
    """What is reused of an operator written in Python."""

    name: str
    not_equal: str | None
    """Why an equal selection is processed anew; None if it is not."""
    not_similar: str | None
    """Why none but an equal selection stands for another one; None if similar ones do."""

    @property
    def words(self) -> str:
        """Say it.

        >>> ReusedOperator("X.custom", None, "reuse is exact").words
        'X.custom: equal selections are processed once, no similar one stands for another: reuse is exact'
        """
        if self.not_equal is not None:
            return f"{self.name}: every selection is processed: {self.not_equal}"
        equal = f"{self.name}: equal selections are processed once"
        if self.not_similar is not None:
            return f"{equal}, no similar one stands for another: {self.not_similar}"
        return f"{equal}, and similar ones stand for each other"


def reused_operators(query: MobileQuery, each: Graph) -> tuple[ReusedOperator, ...]:
    """Say of the operators in Python of what runs for each interest whether their selections are reused."""
    return tuple(
        ReusedOperator(
            operator.name, _why_not_equal(query, operator), _why_not_similar(query, each, operator)
        )
        for operator in each.operators
        if isinstance(operator, Custom)
    )


def _why_not_equal(query: MobileQuery, operator: Custom) -> str | None:
    if query.policy.reuse == "off":
        return "reuse is off"
    found = query.detect.operators.get(operator.function)
    if found is None or not found.stateless:
        return f"{operator.function!r} does not say `stateless = True`"
    return None


def _why_not_similar(query: MobileQuery, graph: Graph, operator: Custom) -> str | None:
    """Say why no selection of an operator may stand for one that has other events."""
    policy = query.policy
    if policy.reuse != "similar":
        return f"reuse is {policy.reuse}"
    if policy.quality.is_perfect:
        return "the quality is 1"
    if policy.completeness == "strong":
        return "interests in one area share a run, which is nobody's own"
    if operator.consumption.kind not in _BY_POLICY:
        return "what it finds decides about what it selects next"
    above = _correlating_readers(graph, operator.name)
    if above:
        return f"{above[0]!r} would take what was found in different interests together"
    return None


def _correlating_readers(graph: Graph, name: str) -> list[str]:
    """Name the operators above that do more than look at single events, those nearest first."""
    above = readers(graph)
    found: list[str] = []
    waiting = [name]
    for each in waiting:
        for reader in above.get(each, ()):
            if isinstance(reader, Derive | Filter):
                waiting.append(reader.name)
            else:
                found.append(reader.name)
    return found
