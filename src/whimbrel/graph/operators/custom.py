"""Correlation functions written in Python, as operators of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from whimbrel.graph.links import MEMBERS, stream
from whimbrel.graph.operators.base import Columns, Operator
from whimbrel.graph.policies import WHOLE, Consumption, Partitioning, SelectionPolicy
from whimbrel.model.schema import Type

if TYPE_CHECKING:
    from whimbrel.graph.columns import GraphColumns


@dataclass(frozen=True, slots=True)
class Custom(Operator):
    """A correlation function in Python, run by the execution environment with its policies.

    `function` names it in the registry; `parameters` are handed to its constructor.
    """

    word: ClassVar[str] = "custom"
    depends_on_fields: ClassVar[bool] = False

    streams: tuple[str, ...] = field(metadata=stream())
    function: str
    policy: SelectionPolicy = field(metadata=MEMBERS)
    consumption: Consumption = Consumption("none")
    partitioning: Partitioning = WHOLE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()

    def columns(self, below: GraphColumns) -> Columns:
        # What Python code gives is not known before: as text it can hold anything.
        return Columns(dict.fromkeys(self.attributes, Type.STRING))

    @property
    def retention(self) -> int:
        return 2 * self.policy.restriction.length

    @property
    def known_after(self) -> int:
        return self.policy.restriction.length

    @property
    def anchor(self) -> str | None:
        return "is written in Python, and does not say that a run may begin anywhere"

    @property
    def remembered_for(self) -> int:
        return self.policy.restriction.length

    @property
    def selection_policy(self) -> SelectionPolicy:
        return self.policy

    def remarks(self) -> Iterator[tuple[str, str]]:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        yield "calls", f"{self.function}({given})"
        yield "consumes", self.consumption.words(())

    def document(self) -> dict[str, Any]:
        return {"function": self.function}
