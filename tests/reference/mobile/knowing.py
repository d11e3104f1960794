"""When a detection is known: by which watermark a run that sees nothing later says it, whatever comes.

What an operator reads in total order waits until all its inputs are complete up to there; a window of the
time grid also until it has passed. So what is known by a watermark depends on events up to it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.reference.data import Detection, Event, Item, order
from tests.reference.expressions import World
from tests.reference.reference import as_detection, run_operator
from tests.reference.streams import derive_one

from whimbrel.graph.operators import Aggregate, Derive, Filter, Graph, Merge, Operator, Source

Known = list[tuple[Item, int]]
"""The events of a stream, each with the watermark by which it is known."""


@dataclass(frozen=True)
class Found:
    """A detection, its id, the events it is made of, and the watermark by which it is known."""

    id: str
    detection: Detection
    atoms: tuple[Event, ...]
    known: int


def found_among(
    graph: Graph, events: Sequence[Event], world: World, given: Mapping[str, Known] | None = None
) -> list[Found]:
    """Find what the plain query finds among some events; streams that are `given` are not computed."""
    streams = run(graph, events, world, given)
    return [
        Found(item.id, as_detection(item, name, world.coordinates), item.atoms, known)
        for name in graph.outputs
        for item, known in streams[name]
    ]


def run(
    graph: Graph, events: Sequence[Event], world: World, given: Mapping[str, Known] | None = None
) -> dict[str, Known]:
    """Compute every stream, and when its events are known."""
    streams: dict[str, Known] = {}
    for operator in graph.operators:
        name = operator.name
        streams[name] = (
            given[name] if given and name in given else _known(operator, streams, events, graph, world)
        )
    return streams


def _known(
    operator: Operator, streams: Mapping[str, Known], events: Sequence[Event], graph: Graph, world: World
) -> Known:
    if isinstance(operator, Derive):
        return _derived(operator, streams, graph, world)
    items = run_operator(
        operator, {name: [item for item, _ in known] for name, known in streams.items()}, events, graph, world
    )
    if isinstance(operator, Source):
        return [(item, item.end) for item in items]
    if isinstance(operator, Filter):
        when = {id(item): known for item, known in streams[operator.input]}
        return [(item, when[id(item)]) for item in items]
    return [(item, _when(operator, item, graph)) for item in items]


def _derived(operator: Derive, streams: Mapping[str, Known], graph: Graph, world: World) -> Known:
    """A definition gives a name to what its cases found, when they find it."""
    found = [
        (derive_one(operator, number, case, item, graph, world), known)
        for number, case in enumerate(operator.cases)
        for item, known in streams[case.input]
    ]
    return sorted(found, key=lambda each: order(each[0]))


def _when(operator: Operator, item: Item, graph: Graph) -> int:
    needed = item.window - 1 if on_the_grid(operator) else item.end
    return max(complete_when(graph, name, needed) for name in operator.inputs)


def on_the_grid(operator: Operator) -> bool:
    """Tell whether an operator computes windows of the time grid."""
    if not isinstance(operator, Aggregate):
        return False
    return operator.window.kind == "temporal" and operator.window.every is not None


def complete_when(graph: Graph, stream: str, time: int) -> int:
    """Give the least watermark by which a stream has all that ends at `time` or before."""
    operator = graph[stream]
    if isinstance(operator, Source):
        return time
    if isinstance(operator, Aggregate) and on_the_grid(operator):
        # A window that is open ends after the watermark; its events may end as early as it begins.
        length, every = operator.window.length, operator.window.every or 1
        first_open = -(-(time + length + 1) // every)
        time = (first_open - 1) * every - 1
    return max(complete_when(graph, name, time) for name in operator.inputs)


def completes_in_order(operator: Operator) -> bool:
    """Tell whether an operator takes what it reads in total order, and so waits for all its inputs."""
    return not isinstance(operator, Source | Filter | Derive) or isinstance(operator, Merge)
