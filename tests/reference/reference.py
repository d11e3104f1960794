"""What a query means, in plain Python: the check on every backend.

`detect` follows docs/meaning.md sentence by sentence over lists, trying every combination. Use it for
a few dozen events; it says `TooLarge` rather than run for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whimbrel.graph.functions import Function
from whimbrel.graph.operators import (
    Aggregate,
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
from whimbrel.graph.operators.change import Change
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.model.schema import Coordinates

from .changes import changed
from .data import Detection, Event, Item, hull, order
from .encounters import met
from .expressions import Identify, World, plain_identity
from .matches import TooLarge, matched
from .motions import moved
from .streams import Streams, aggregated, derived, filtered, happening, merged, repeated, source

__all__ = ["Admitted", "Detection", "Event", "TooLarge", "admit", "detect"]


def detect(
    graph: Graph,
    events: Sequence[Event],
    functions: Mapping[str, Function] | None = None,
    *,
    coordinates: Coordinates | None = None,
    identify: Identify = plain_identity,
    limit: int = 200_000,
) -> list[Detection]:
    """Give the detections of a bounded, clean input: everything processed, the watermark at infinity.

    `identify(type, case, ids)` makes the ids of detections (and, with type None, of composites),
    which decide the order of derived events that have the same times and source. A pattern with more
    than `limit` combinations in one partition is `TooLarge`.
    """
    chosen = coordinates or graph.coordinates or Coordinates.PLANE
    world = World(functions or {}, chosen, identify, limit)
    streams: dict[str, list[Item]] = {}
    for operator in graph.operators:
        streams[operator.name] = run_operator(operator, streams, events, graph, world)
    return sorted(as_detection(item, name, chosen) for name in graph.outputs for item in streams[name])


def run_operator(
    operator: Operator, streams: Streams, events: Sequence[Event], graph: Graph, world: World
) -> list[Item]:
    match operator:
        case TimePoints():
            return source(operator, [happening(operator)])
        case Source():
            return source(operator, events)
        case Filter():
            return filtered(operator, streams, world)
        case Merge():
            return merged(operator, streams, graph)
        case Repeat():
            return repeated(operator, streams, world)
        case JoinPattern():
            return matched(operator, streams, world)
        case Aggregate():
            return aggregated(operator, streams, graph, world)
        case Motion():
            return moved(operator, streams, world)
        case Encounter():
            return met(operator, streams, world)
        case Change():
            return changed(operator, streams, world)
        case Derive():
            return derived(operator, streams, graph, world)
    raise NotImplementedError(f"{type(operator).__name__} is not part of the reference")


def as_detection(item: Item, stream: str, coordinates: Coordinates) -> Detection:
    return Detection(
        type=item.type or stream,
        start=item.start,
        end=item.end,
        events=tuple(atom.id for atom in item.atoms),
        attributes={name: value for name, value in item.attributes.items() if value is not None},
        hull=hull(item.points, coordinates),
        source=item.source,
    )


@dataclass(frozen=True)
class Admitted:
    """What became of the events that came in."""

    processed: list[Event] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    duplicate: list[Event] = field(default_factory=list)


def admit(batches: Sequence[Sequence[Event]], lateness_us: int | None) -> Admitted:
    """Say which events of the batches, in order of arrival, are processed, late and duplicate.

    Without a lateness the input is bounded: nothing is late, and of a repeated id the first event in
    the total order is kept.
    """
    in_time, late = _by_lateness(batches, lateness_us)
    admitted = Admitted(late=late)
    for event in sorted(in_time, key=order):
        known = any(_repeats(event, other, lateness_us) for other in admitted.processed)
        (admitted.duplicate if known else admitted.processed).append(event)
    return admitted


def _by_lateness(
    batches: Sequence[Sequence[Event]], lateness_us: int | None
) -> tuple[list[Event], list[Event]]:
    """Split by the watermark before each batch."""
    in_time: list[Event] = []
    late: list[Event] = []
    watermark: int | None = None
    for batch in batches:
        for event in batch:
            is_late = watermark is not None and event.end <= watermark
            (late if is_late else in_time).append(event)
        if lateness_us is not None and batch:
            risen = max(event.end for event in batch) - lateness_us - 1
            watermark = risen if watermark is None else max(watermark, risen)
    return in_time, late


def _repeats(event: Event, accepted: Event, lateness_us: int | None) -> bool:
    if event.id != accepted.id:
        return False
    return lateness_us is None or accepted.end >= event.end - lateness_us
