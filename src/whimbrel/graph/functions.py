"""The functions that expressions may call: built in, or registered from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import overload

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import AGGREGATES, PLACE_RELATIONS, RELATIONS
from whimbrel.model.schema import TYPE_NAMES, Type


@dataclass(frozen=True, slots=True)
class Function:
    """A function written in Python that queries may call by name.

    A scalar function gets one value an argument; a `vectorised` one gets NumPy arrays with all
    values at once and must return an array; an `aggregate` gets a list of the window's values.
    """

    name: str
    call: Callable[..., object]
    returns: Type
    vectorised: bool = False
    aggregate: bool = False


BUILT_IN = (
    frozenset(
        {
            "abs",
            "sqrt",
            "floor",
            "ceil",
            "round",
            "sign",
            "pow",
            "exp",
            "ln",
            "least",
            "greatest",
            "coalesce",
            "lower",
            "upper",
            "length",
            "contains",
            "startswith",
            "endswith",
            *PLACE_RELATIONS,
            "in",
            "between",
            "is_null",
        }
    )
    | AGGREGATES
    | frozenset(RELATIONS)
)
"""Names that a registered function may not take."""


@overload
def function(
    *, name: str | None = None, returns: str = "float", vectorised: bool = False, aggregate: bool = False
) -> Callable[[Callable[..., object]], Function]: ...
@overload
def function(
    call: Callable[..., object],
    *,
    name: str | None = None,
    returns: str = "float",
    vectorised: bool = False,
    aggregate: bool = False,
) -> Function: ...


def function(
    call: Callable[..., object] | None = None,
    *,
    name: str | None = None,
    returns: str = "float",
    vectorised: bool = False,
    aggregate: bool = False,
) -> Function | Callable[[Callable[..., object]], Function]:
    """Make a Python function callable from queries; use it as a decorator.

    >>> @function(returns="float")
    ... def knots(metres_per_second):
    ...     return metres_per_second * 1.944
    >>> knots.name, knots.returns.value
    ('knots', 'float')

    Hand it over when compiling: `whimbrel.compile(text, functions=[knots])`.
    """

    def register(inner: Callable[..., object]) -> Function:
        chosen = (name or inner.__name__).lower()
        if chosen in BUILT_IN:
            raise QueryError(f"{chosen!r} is a built-in function; choose another name")
        if returns.lower() not in TYPE_NAMES:
            raise QueryError(f"{returns!r} is not a type; use one of bool, int, float, string, timestamp")
        return Function(chosen, inner, TYPE_NAMES[returns.lower()], vectorised, aggregate)

    return register if call is None else register(call)


Functions = Mapping[str, Function]
