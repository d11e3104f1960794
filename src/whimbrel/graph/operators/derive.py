"""Definitions: events of a named type made from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.operators.base import Operator, unique
from whimbrel.graph.policies import WHOLE, Assign, Partitioning


@dataclass(frozen=True, slots=True)
class Derive(Operator):
    """Events of type `event_type` made from the events of `inputs`: the cases of one definition.

    Each case has its own input stream and assignments. Without assignments, the new event has the
    attributes of its only part, or none. Without any case, the events come from another session, which runs
    the part of the query that makes them (`whimbrel.graph.fragments`).
    """

    word: ClassVar[str] = "derive"

    event_type: str
    cases: tuple[DeriveCase, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return unique(case.input for case in self.cases)


@dataclass(frozen=True, slots=True)
class DeriveCase:
    """One way of detecting a definition. `alias` is the part name where `input` carries plain events."""

    input: str
    alias: str | None
    assign: tuple[Assign, ...] = ()
    partitioning: Partitioning = WHOLE
    label: str = ""
