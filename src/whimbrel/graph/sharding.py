"""How a query's events can be partitioned among workers that know nothing of each other, read off the graph.

A way of partitioning is right if every detection can be found by one worker alone, from the events it has.
By *keys*: events with equal keys go to one worker, because every operator parts its events by them. By
*space*: nearby events go to one worker, because the parts of every pattern lie close together. By *meetings*:
first the meetings of events are found by keys or space, then each goes with its events to where all
meetings with equal keys go. Otherwise all events go to one worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from whimbrel.graph.expressions import Attribute, Call
from whimbrel.graph.operators import Derive, Filter, Graph, Operator, Source
from whimbrel.graph.operators.base import SpatialReach
from whimbrel.graph.operators.source import SOURCE, key_of
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.policies import Key
from whimbrel.graph.scope import only_part, scope, selection
from whimbrel.graph.wiring import below


@dataclass(frozen=True, slots=True)
class AnyPartition:
    """Every event is judged alone, so any worker may have it."""


@dataclass(frozen=True, slots=True)
class ByKeys:
    """Events that agree in all keys belong together."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class BySpace:
    """All that a detection depends on lies within `reach_m` of each of its events."""

    reach_m: float


@dataclass(frozen=True, slots=True)
class ByMeetings:
    """The events of `streams`, the meetings, are found first, by `first`; then they go by their `keys`."""

    streams: tuple[str, ...]
    keys: tuple[str, ...]
    first: AnyPartition | ByKeys | BySpace


@dataclass(frozen=True, slots=True)
class ByInterests:
    """Interests around moving objects reach `reach_m` at most; updates of where they are go to all.

    Whoever has the place at which an interest has its centre tells of it.
    """

    reach_m: float
    updates: tuple[str, ...]
    """The types of the location updates."""


@dataclass(frozen=True, slots=True)
class SinglePartition:
    """All events belong together; `why` says which part of the query asks for it."""

    why: str


Sharding = AnyPartition | ByKeys | BySpace | ByMeetings | ByInterests | SinglePartition


def sharding_words(found: Sharding) -> str:
    """Say how events are partitioned.

    >>> sharding_words(ByKeys((SOURCE,)))
    'events are partitioned by source'
    """
    match found:
        case ByKeys(keys):
            return f"events are partitioned by {', '.join(map(str, keys))}"
        case BySpace(reach_m):
            return f"events are partitioned by place, each also to where it is within reach ({reach_m:g} m)"
        case ByMeetings(streams, keys):
            return (
                f"{', '.join(streams)} is found first, then what it finds is partitioned by {', '.join(keys)}"
            )
        case ByInterests(reach_m, updates):
            return (
                f"events are partitioned by place, each also to where an interest may reach it "
                f"({reach_m:g} m), location updates ({', '.join(updates)}) to all"
            )
        case SinglePartition(why):
            return f"all events go to one, because {why}"
    return "events are partitioned in any way"


def sharding(graph: Graph) -> Sharding:
    """Find the way of partitioning events that parts them the most."""
    keys = KeyTracer(graph)
    common = keys.common(graph.outputs)
    if common is None:
        return AnyPartition()
    if common:
        return ByKeys(tuple(sorted(common, key=str)))
    reaches = [_space(graph, name) for name in graph.outputs]
    if all(reach is not None for reach in reaches):
        return BySpace(max(reach.total for reach in reaches if reach is not None))
    return _meetings(graph) or SinglePartition(keys.why(graph.outputs))


# -- by keys ----------------------------------------------------------------------------------------------


class KeyTracer:
    """By which values of the atomic events each operator can be parted; None stands for any."""

    def __init__(self, graph: Graph, cut: frozenset[str] = frozenset()) -> None:
        self.graph = graph
        self.cut = cut
        """Definitions whose events are partitioned as atomic ones are."""
        self.of: dict[str, frozenset[Key] | None] = {}
        for operator in graph.operators:
            self.of[operator.name] = self._of(operator)

    def common(self, names: Iterable[str]) -> frozenset[Key] | None:
        """Give the keys that several streams have in common."""
        found: frozenset[Key] | None = None
        for name in names:
            own = self.of[name]
            if own is not None:
                found = own if found is None else found & own
        return found

    def _of(self, operator: Operator) -> frozenset[Key] | None:
        if operator.name in self.cut:
            return None
        if operator.together is None:
            return self.common(operator.inputs)
        # Only keys that mean one and the same value of the atomic events in every input part it.
        traced = (self._in_all_inputs(operator, key) for key in operator.together)
        return frozenset(key for key in traced if key is not None)

    def _in_all_inputs(self, operator: Operator, key: Key) -> Key | None:
        return self._same(self.trace_key(name, key) for name in operator.inputs)

    def trace_key(self, stream: str, key: Key) -> Key | None:
        """Find which value of all atomic events below a row a partition key of the row stands for."""
        if self.graph[stream].is_composite:
            return self.trace_group(stream, key.name)
        if key.kind == "cell":
            return key if isinstance(selection(self.graph, stream)[0], Source) else None
        return self.trace(stream, "source" if key.kind == "source" else key.name)

    def trace(self, stream: str, name: str) -> Key | None:
        """Do the same for an attribute of the row itself."""
        if stream in self.cut:
            key = key_of(name)
            return None if key == SOURCE else key
        atomic = self._same(self.graph[stream].traced(name, self))
        return atomic if atomic is not None and self.separates(stream, atomic) else None

    def separates(self, stream: str, key: Key) -> bool:
        """Tell whether events that differ in a key never meet in a stream."""
        own = self.of[stream]
        return own is None or key in own

    def trace_only_part(self, stream: str, name: str) -> Key | None:
        """Trace an attribute that a definition takes over from what it is made from."""
        if not self.graph[stream].is_composite:
            return self.trace(stream, name)
        part = only_part(self.graph, stream)
        return self.trace_group(stream, name) if part is None else self.trace_part(stream, part, name)

    def trace_group(self, stream: str, name: str) -> Key | None:
        """Trace a key by which the operator of a stream parts its inputs."""
        operator = self.graph[stream]
        if operator.hands_on_groups:
            return self._same(self.trace_group(input, name) for input in operator.inputs)
        key = next((key for key in operator.partitioning.keys if key.name == name), None)
        return None if key is None else self._in_all_inputs(operator, key)

    def trace_part(self, stream: str, part: str, name: str) -> Key | None:
        """Trace `part.name` of a composite."""
        for member in self.graph[stream].constituents:
            if member.alias == part:
                return self.trace(member.stream, name)
            if part in scope(self.graph, member.stream):
                return self.trace_part(member.stream, part, name)
        return None

    def _same(self, keys: Iterable[Key | None]) -> Key | None:
        """Give the one key that all are; None if they differ, or there is none."""
        found = set(keys)
        return found.pop() if len(found) == 1 else None

    def why(self, outputs: Iterable[str]) -> str:
        """Say which operator keeps the events from being parted by keys."""
        needed = below(self.graph, outputs)
        for operator in self.graph.operators:
            if operator.name in needed and self.of[operator.name] == frozenset():
                return operator.why_together(operator.name.partition(".")[0])
        return "its patterns part their events by different keys"


# -- by meetings ------------------------------------------------------------------------------------------


def _meetings(graph: Graph) -> ByMeetings | None:
    """Look for definitions that can be found first, and by whose attributes all the rest is parted."""
    cut = _last_plain(graph)
    if not cut or set(cut) & set(graph.outputs):
        return None
    above = below(graph, graph.outputs, stop=cut)
    if any(isinstance(graph[name], Source) for name in above):
        return None  # the rest also reads events that take part in no meeting
    common = KeyTracer(graph, frozenset(cut)).common(graph.outputs)
    first = sharding(drop_unused(replace(graph, outputs=tuple(cut))))
    if not common or isinstance(first, ByMeetings | ByInterests | SinglePartition):
        return None
    return ByMeetings(tuple(cut), tuple(sorted(key.name for key in common)), first)


def _last_plain(graph: Graph) -> list[str]:
    """Name the last definitions that are plain: those that others, which are not, read."""
    plain = {operator.name for operator in graph.operators if is_plain(graph, operator.name)}
    readers = [operator for operator in graph.operators if operator.name not in plain]
    roots = {selection(graph, input)[0].name for reader in readers for input in reader.inputs}
    return [o.name for o in graph.operators if o.name in roots & plain and isinstance(o, Derive)]


def is_plain(graph: Graph, name: str) -> bool:
    """Tell whether what is found among some events is found among more events too: nothing can prevent it."""
    operator = graph[name]
    return operator.is_monotone and all(is_plain(graph, input) for input in operator.inputs)


def among(graph: Graph, streams: Iterable[str], test: str, keys: Iterable[str]) -> Graph:
    """Let all that is not plain see only those events of some definitions that pass a test of their keys."""
    arguments = tuple(Attribute(None, key) for key in keys)
    filtered = {name: f"{name}{test}" for name in streams}
    operators: list[Operator] = []
    for operator in graph.operators:
        reads = not is_plain(graph, operator.name)
        operators.append(operator.reading(filtered) if reads else operator)
        if operator.name in filtered:
            operators.append(Filter(filtered[operator.name], operator.name, Call(test, arguments)))
    return replace(graph, operators=tuple(operators))


# -- by space ---------------------------------------------------------------------------------------------


def _space(graph: Graph, name: str) -> SpatialReach | None:
    """Give the reach of a stream's rows in space; None if it has no bound."""
    return graph[name].spatial_reach(lambda input: _space(graph, input))
