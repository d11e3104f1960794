"""Iteration: runs of successive events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.expressions import Call, PartRef
from whimbrel.graph.links import stream
from whimbrel.graph.operators.base import EVENT_BY_EVENT, ONE_INSTANT, Operator, distinct
from whimbrel.graph.policies import (
    INFINITE,
    WHOLE,
    Kappa,
    Partitioning,
    ProcessWhen,
    RestrictionWindow,
    SelectionPolicy,
    SelectionWindow,
)
from whimbrel.model.time import END_OF_TIME, format_duration

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns


@dataclass(frozen=True, slots=True)
class Repeat(Operator):
    """Runs of successive events of `input` in one partition (iteration).

    Every run of at least `at_least` and at most `at_most` (None: any number) successive events is
    one composite, as long as it spans at most `within` and no event of `until` lies between its
    first and its last in the total order. Runs do not skip an event that fits.
    """

    word: ClassVar[str] = "repeat"
    is_composite: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    input: str = field(metadata=stream())
    alias: str | None
    at_least: int
    at_most: int | None
    within: int
    until: str | None = field(default=None, metadata=stream("until", alias=""))
    partitioning: Partitioning = WHOLE

    def request(self, columns: RequiredColumns) -> None:
        for name in self.inputs:
            columns.want_keys(name, self.partitioning)
        calls = [need for need in columns.asked_of(self.name) if isinstance(need, Call)]
        for argument in (each for call in calls for each in call.arguments):
            if not isinstance(argument, PartRef):
                columns.want_expression(self.input, self.alias, argument, self.partitioning)

    @property
    def retention(self) -> int:
        return self.within

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return below[self.input]

    @property
    def exercise(self) -> str | None:
        return "repeat"

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        return self.input in streams

    def without(self, streams: Collection[str]) -> Operator:
        return replace(self, until=None) if self.until in streams else self

    @property
    def selection_policy(self) -> SelectionPolicy:
        """Grow a window without an end up to the next closing event; count and span say what counts."""
        name, ending = distinct([self.alias or self.input, self.until or "until"])
        windows = [SelectionWindow(name, self.input, "counting", INFINITE, EVENT_BY_EVENT)]
        predicates = [ProcessWhen(name, ">=", self.at_least)]
        predicates += [ProcessWhen(name, "<=", self.at_most)] if self.at_most is not None else []
        dependencies: list[Kappa] = []
        if self.until is not None:
            windows.append(SelectionWindow(ending, self.until, "counting", 1, EVENT_BY_EVENT))
            dependencies.append(Kappa(name, "end", "<=", ending, "start"))
        restriction = RestrictionWindow(max(self.within, ONE_INSTANT.length), EVENT_BY_EVENT)
        return SelectionPolicy(tuple(windows), restriction, tuple(dependencies), tuple(predicates))

    def words(self) -> list[str]:
        bounded = self.within < END_OF_TIME
        return [f"end - start <= {format_duration(self.within)}"] if bounded else []
