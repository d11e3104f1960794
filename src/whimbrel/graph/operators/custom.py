"""Correlation functions written in Python, as operators of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from whimbrel.graph.operators.base import Operator, unique
from whimbrel.graph.policies import WHOLE, Consumption, Partitioning, SelectionPolicy


@dataclass(frozen=True, slots=True)
class Custom(Operator):
    """A correlation function in Python, run by the execution environment with its policies.

    `function` names it in the registry; `parameters` are handed to its constructor.
    """

    word: ClassVar[str] = "custom"

    streams: tuple[str, ...]
    function: str
    policy: SelectionPolicy
    consumption: Consumption = Consumption("none")
    partitioning: Partitioning = WHOLE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        return unique(self.streams)
