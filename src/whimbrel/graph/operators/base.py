"""What all operators of the graph have in common, and the graph that they make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from whimbrel.errors import QueryError
from whimbrel.model.schema import Coordinates

ANY = "*"
"""Stands for every type of atomic events."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Base of all operators."""

    word: ClassVar[str]
    """What explanations call it."""

    name: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the operators whose streams this one reads, each once."""
        return ()

    @property
    def at(self) -> int | None:
        """When it happens, for a time point; None for all others."""
        return None


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators in an order in which each comes after its inputs, and the streams that are reported."""

    operators: tuple[Operator, ...]
    outputs: tuple[str, ...]
    coordinates: Coordinates | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for operator in self.operators:
            for name in operator.inputs:
                if name not in seen:
                    raise QueryError(
                        f"operator {operator.name!r} reads {name!r}, which does not come before it"
                    )
            if operator.name in seen:
                raise QueryError(f"two operators are named {operator.name!r}")
            seen.add(operator.name)
        for name in self.outputs:
            if name not in seen:
                raise QueryError(f"the output {name!r} is no operator of the graph")

    @property
    def time_points(self) -> frozenset[int]:
        """The time points that it waits for."""
        return frozenset(op.at for op in self.operators if op.at is not None)

    def __getitem__(self, name: str) -> Operator:
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Keep the first of equal names."""
    return tuple(dict.fromkeys(names))
