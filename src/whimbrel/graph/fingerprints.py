"""Names for what operators do: the same for equal ones, whatever they and their queries are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256

from whimbrel.graph.operators import Graph, Operator, Source


def fingerprints(graph: Graph, is_own: Callable[[Operator], bool]) -> dict[str, str | None]:
    """Give every operator a name of what it does to which events; None if it is the query's own affair.

    Two operators with one fingerprint make the same stream from the same events, part names included.

    Parameters
    ----------
    is_own
        Tells whether an operator does what only its own query knows, such as calling a function of it.
    """
    found: dict[str, str | None] = {}
    for operator in graph.operators:
        found[operator.name] = None if is_own(operator) else fingerprint(graph, operator, found)
    return found


def fingerprint(graph: Graph, operator: Operator, below: Mapping[str, str | None]) -> str | None:
    """Give the fingerprint of one operator from those of its inputs."""
    inputs = {name: below[name] for name in operator.inputs}
    known = {name: each for name, each in inputs.items() if each is not None}
    if not operator.depends_on_fields or len(known) < len(inputs):
        return None
    place = graph.coordinates.value if graph.coordinates else ""
    text = f"{place} {replace(operator.reading(known), name='')!r} {_tie_breaks(graph, operator)}"
    return sha256(text.encode()).hexdigest()[:32]


def _tie_breaks(graph: Graph, operator: Operator) -> list[int]:
    """Tell the order of the names of an operator's inputs: it decides between events made of the same."""
    derived = [name for name in operator.inputs if not isinstance(graph[name], Source)]
    return [sorted(derived).index(name) for name in derived] if len(derived) > 1 else []
