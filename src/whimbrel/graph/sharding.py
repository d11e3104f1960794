"""How a query's events can be dealt out to workers that know nothing of each other, read off the graph.

A way of dealing out is right if every detection can be found by one worker alone, from the events it has.
By *keys*: events with equal keys go to one worker, because every operator parts its events by them. By
*space*: nearby events go to one worker, because the parts of every pattern lie close together. By *meetings*:
first the meetings of events are found by keys or space, then each goes with its events to where all
meetings with equal keys go. Otherwise all events go to one worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from whimbrel.graph.expressions import GROUP, Attribute, Binary, Call, Expr, Literal, PartRef, conjuncts
from whimbrel.graph.operators import (
    Absent,
    Aggregate,
    Custom,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Repeat,
    Source,
    TimePoints,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.policies import Context, Key, Select
from whimbrel.graph.scope import is_composite, scope
from whimbrel.graph.wiring import reading
from whimbrel.model.time import written_time_point

SOURCE = Key("source", "source")


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
class SinglePartition:
    """All events belong together; `why` says which part of the query asks for it."""

    why: str


Sharding = AnyPartition | ByKeys | BySpace | ByMeetings | SinglePartition


def sharding_words(found: Sharding) -> str:
    """Say how events are dealt out.

    >>> sharding_words(ByKeys((SOURCE,)))
    'events are dealt out by source'
    """
    match found:
        case ByKeys(keys):
            return f"events are dealt out by {', '.join(map(str, keys))}"
        case BySpace(reach_m):
            return f"events are dealt out by place, each also to where it is within reach ({reach_m:g} m)"
        case ByMeetings(streams, keys):
            return (
                f"{', '.join(streams)} is found first, then what it finds is dealt out by {', '.join(keys)}"
            )
        case SinglePartition(why):
            return f"all events go to one, because {why}"
    return "events are dealt out anyhow"


def sharding(graph: Graph) -> Sharding:
    """Find the way of dealing out events that parts them the most."""
    keys = _Keys(graph)
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


class _Keys:
    """By which values of the atomic events each operator can be parted; None stands for any."""

    def __init__(self, graph: Graph, cut: frozenset[str] = frozenset()) -> None:
        self.graph = graph
        self.cut = cut
        """Definitions whose events are dealt out as atomic ones are."""
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
        match operator:
            case TimePoints():
                return frozenset()  # a time point is for all events, and must be found once
            case Source():
                return None
            case Filter() | Derive() | Merge():
                return self.common(operator.inputs)
            case JoinPattern() if _is_alone(operator):
                return self.of[operator.parts[0].input]
            case JoinPattern():
                names = [
                    *operator.partitioning.keys,
                    *(Key("attribute", name) for name in operator.joins),
                ]
                return self._parted(operator, names)
            case TimedOut():
                return self.of[operator.input]
            case Encounter():
                return frozenset()
            case Repeat() | Aggregate() | Custom() | StepPattern() | Motion():
                return self._parted(operator, operator.partitioning.keys)
        raise TypeError(f"unknown operator {operator!r}")

    def _parted(self, operator: Operator, keys: Iterable[Key]) -> frozenset[Key]:
        """Keep the keys that mean one and the same value of the atomic events in every input."""
        found = set()
        for key in keys:
            traced = {self._trace_key(input, key) for input in operator.inputs}
            if len(traced) == 1 and (atomic := traced.pop()) is not None:
                found.add(atomic)
        return frozenset(found)

    def _trace_key(self, stream: str, key: Key) -> Key | None:
        """Find which value of all atomic events below a row a partition key of the row stands for."""
        operator = self.graph[stream]
        if is_composite(operator):
            return self._trace_group(operator, key.name)
        if key.kind == "cell":
            return key if self._is_atomic(stream) else None
        return self._trace(stream, "source" if key.kind == "source" else key.name)

    def _trace(self, stream: str, name: str) -> Key | None:
        """Do the same for an attribute of the row itself."""
        operator = self.graph[stream]
        if stream in self.cut:
            return None if name in _NOT_KEYS or name == "source" else Key("attribute", name)
        match operator:
            case TimePoints():
                return None
            case Source():
                return _atomic_key(operator, name)
            case Filter():
                return self._trace(operator.input, name)
            case Derive():
                traced = {self._trace_case(case, name) for case in operator.cases}
            case Aggregate():
                traced = {self._trace_aggregate(operator, name)}
            case _:
                return None
        atomic = traced.pop() if len(traced) == 1 else None
        return atomic if atomic is not None and self._separates(stream, atomic) else None

    def _separates(self, stream: str, key: Key) -> bool:
        own = self.of[stream]
        return own is None or key in own

    def _trace_case(self, case: DeriveCase, name: str) -> Key | None:
        assigned = next((assign for assign in case.assign if assign.name == name), None)
        if assigned is not None and assigned.type is None and isinstance(assigned.value, Attribute):
            return self._trace_value(case, assigned.value)
        if assigned is not None:
            return None
        if name == "source":
            # The source of a derived event is the one that all its events share.
            return SOURCE if self._separates(case.input, SOURCE) else None
        if case.assign:
            return None
        operator = self.graph[case.input]
        if not is_composite(operator):
            return self._trace(case.input, name)
        parts = scope(self.graph, case.input)
        if len(parts) == 1 and not any(parts.values()):
            return self._trace_part(case.input, next(iter(parts)), name)
        return self._trace_group(operator, name)

    def _trace_value(self, case: DeriveCase, value: Attribute) -> Key | None:
        if value.part == GROUP:
            key = next((key for key in case.partitioning.keys if key.name == value.name), None)
            return None if key is None else self._trace_key(case.input, key)
        if value.part is None or value.part == case.alias:
            return self._trace(case.input, value.name)
        return self._trace_part(case.input, value.part, value.name)

    def _trace_aggregate(self, operator: Aggregate, name: str) -> Key | None:
        assigned = next((a for a in (*operator.assign, *operator.post) if a.name == name), None)
        if assigned is None or operator.post or assigned.type is not None:
            return None
        value = assigned.value
        if isinstance(value, Attribute) and value.part == GROUP:
            return self._trace_group(operator, value.name)
        return None

    def _trace_group(self, operator: Operator, name: str) -> Key | None:
        """Trace a key by which an operator parts its inputs."""
        if isinstance(operator, Merge):
            traced = {self._trace_group(self.graph[b.input], name) for b in operator.branches}
            return traced.pop() if len(traced) == 1 else None
        if isinstance(operator, TimedOut):
            return self._trace_group(self.graph[operator.input], name)
        if not isinstance(operator, JoinPattern | Repeat | Aggregate | StepPattern | Motion):
            return None
        key = next((key for key in operator.partitioning.keys if key.name == name), None)
        if key is None:
            return None
        traced = {self._trace_key(input, key) for input in operator.inputs}
        return traced.pop() if len(traced) == 1 else None

    def _trace_part(self, stream: str, part: str, name: str) -> Key | None:
        """Trace `part.name` of a composite."""
        operator = self.graph[stream]
        members: list[tuple[str, str | None]] = []
        if isinstance(operator, JoinPattern):
            members = [(each.input, each.alias) for each in operator.parts]
        elif isinstance(operator, Merge):
            return None  # null wherever another branch is
        for input, alias in members:
            if alias == part:
                return self._trace(input, name)
            if part in scope(self.graph, input):
                return self._trace_part(input, part, name)
        return None

    def _is_atomic(self, stream: str) -> bool:
        operator = self.graph[stream]
        while isinstance(operator, Filter):
            operator = self.graph[operator.input]
        return isinstance(operator, Source)

    def why(self, outputs: Iterable[str]) -> str:
        """Say which operator keeps the events from being parted by keys."""
        needed = _below(self.graph, outputs)
        for operator in self.graph.operators:
            if operator.name in needed and self.of[operator.name] == frozenset():
                return _why(operator)
        return "its patterns part their events by different keys"


def _is_alone(match: JoinPattern) -> bool:
    """Tell whether a pattern looks at one event at a time."""
    return len(match.parts) == 1 and not match.absent


_NOT_KEYS = frozenset({"start", "end", "timestamp", "duration", "x", "y", "lon", "lat", "id"})


def _atomic_key(source: Source, name: str) -> Key | None:
    if name in ("source", "srcid"):
        return SOURCE
    declared = source.schema is not None and name in source.schema.attributes
    return None if name in _NOT_KEYS and not declared else Key("attribute", name)


def _why(operator: Operator) -> str:
    shown = operator.name.partition(".")[0]
    if isinstance(operator, TimePoints):
        return f"{written_time_point(operator.event_type)} is a time for all of them"
    if isinstance(operator, Encounter):
        return f"{shown} compares movers with each other, wherever they go"
    keys = getattr(operator, "partitioning", None)
    if keys is None or not (keys.keys or getattr(operator, "joins", ())):
        return f"{shown} compares events of all objects: it has no `group by`, and no distance that bounds it"
    listed = ", ".join([*map(str, keys.keys), *getattr(operator, "joins", ())])
    return f"{shown} groups by {listed}, which is not a value that all its events share from the beginning"


def _below(graph: Graph, outputs: Iterable[str], stop: Iterable[str] = ()) -> set[str]:
    """Name what some operators need, themselves included; not what those of `stop` need."""
    needed, ends = set(outputs), set(stop)
    for operator in reversed(graph.operators):
        if operator.name in needed - ends:
            needed.update(operator.inputs)
    return needed


# -- by meetings ------------------------------------------------------------------------------------------


def _meetings(graph: Graph) -> ByMeetings | None:
    """Look for definitions that can be found first, and by whose attributes all the rest is parted."""
    cut = _last_plain(graph)
    if not cut or set(cut) & set(graph.outputs):
        return None
    above = _below(graph, graph.outputs, stop=cut)
    if any(isinstance(graph[name], Source) for name in above):
        return None  # the rest also reads events that take part in no meeting
    common = _Keys(graph, frozenset(cut)).common(graph.outputs)
    first = sharding(drop_unused(replace(graph, outputs=tuple(cut))))
    if not common or isinstance(first, ByMeetings | SinglePartition):
        return None
    return ByMeetings(tuple(cut), tuple(sorted(key.name for key in common)), first)


def _last_plain(graph: Graph) -> list[str]:
    """Name the last definitions that are plain: those that others, which are not, read."""
    plain = {operator.name for operator in graph.operators if is_plain(graph, operator.name)}
    readers = [operator for operator in graph.operators if operator.name not in plain]
    roots = {_definition(graph, input) for reader in readers for input in reader.inputs}
    return [o.name for o in graph.operators if o.name in roots & plain and isinstance(o, Derive)]


def _definition(graph: Graph, name: str) -> str:
    operator = graph[name]
    while isinstance(operator, Filter):
        operator = graph[operator.input]
    return operator.name


def is_plain(graph: Graph, name: str) -> bool:
    """Tell whether what is found among some events is found among more events too: nothing can prevent it."""
    operator = graph[name]
    match operator:
        case TimePoints():
            return False
        case Source():
            return True
        case JoinPattern():
            every = all(part.select is Select.EACH for part in operator.parts)
            free = operator.context is Context.EACH and not operator.consuming and not operator.absent
            return every and free and all(is_plain(graph, input) for input in operator.inputs)
        case Filter() | Derive() | Merge():
            return all(is_plain(graph, input) for input in operator.inputs)
    return False


def among(graph: Graph, streams: Iterable[str], test: str, keys: Iterable[str]) -> Graph:
    """Let all that is not plain see only those events of some definitions that pass a test of their keys."""
    arguments = tuple(Attribute(None, key) for key in keys)
    filtered = {name: f"{name}{test}" for name in streams}
    operators: list[Operator] = []
    for operator in graph.operators:
        reads = not is_plain(graph, operator.name)
        operators.append(reading(operator, filtered) if reads else operator)
        if operator.name in filtered:
            operators.append(Filter(filtered[operator.name], operator.name, Call(test, arguments)))
    return replace(graph, operators=tuple(operators))


# -- by space ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far apart the events below one row can lie, and how far from them what decides on it, in metres."""

    apart: float
    total: float


def _space(graph: Graph, name: str) -> _Reach | None:
    """Give the reach of a stream's rows in space; None if it has no bound."""
    operator = graph[name]
    match operator:
        case TimePoints():
            return None  # it lies nowhere
        case Source():
            return _Reach(0.0, 0.0)
        case Filter() | Derive() | Merge():
            return _widest(_space(graph, input) for input in operator.inputs)
        case JoinPattern():
            return _match_reach(graph, operator)
    return None


def _widest(reaches: Iterable[_Reach | None]) -> _Reach | None:
    found = list(reaches)
    known = [reach for reach in found if reach is not None]
    if len(known) < len(found):
        return None
    return _Reach(max(reach.apart for reach in known), max(reach.total for reach in known))


def _match_reach(graph: Graph, match: JoinPattern) -> _Reach | None:
    """Add up the distances that a pattern's conditions allow between its parts.

    No place in the hull of some events is farther from any of them than they are from each other, so that
    every step adds at most both spreads.
    """
    if match.context is not Context.EACH or match.consuming:
        return None  # what was used up far away and long ago would count
    members: list[PatternPart | Absent] = [*match.parts, *match.absent]
    inner = [_space(graph, member.input) for member in members]
    if any(reach is None for reach in inner):
        return None
    spreads = [reach for reach in inner if reach is not None]
    linked = _linked(match)
    if linked is None:
        return None
    positive = len(match.parts)
    apart = sum(linked[0]) + 2 * sum(reach.apart for reach in spreads[:positive])
    blocking = max(
        (link + 2 * reach.total for link, reach in zip(linked[1], spreads[positive:], strict=True)),
        default=0.0,
    )
    return _Reach(apart, apart + blocking + 2 * max(reach.total for reach in spreads))


def _linked(match: JoinPattern) -> tuple[list[float], list[float]] | None:
    """Give the distances that link all parts with each other, and each absent part with one of them."""
    aliases = [part.alias for part in match.parts]
    if len(aliases) > 1 and (None in aliases or len(set(aliases)) < len(aliases)):
        return None
    bounds = [bound for condition in match.conditions if (bound := _bound(condition)) is not None]
    reached, steps = {aliases[0]}, list[float]()
    while len(reached) < len(aliases):
        fitting = [(m, {a, b} - reached) for a, b, m in bounds if (a in reached) != (b in reached)]
        fitting = [(metres, new) for metres, new in fitting if new <= set(aliases)]
        if not fitting:
            return None
        metres, new = min(fitting, key=lambda step: step[0])
        reached |= new
        steps.append(metres)
    blocking = []
    for absent in match.absent:
        own = [bound for condition in absent.conditions if (bound := _bound(condition)) is not None]
        near = [m for a, b, m in own if {a, b} & set(aliases) and absent.alias in (a, b)]
        if not near:
            return None
        blocking.append(min(near))
    return steps, blocking


def _bound(condition: Expr) -> tuple[str, str, float] | None:
    """Read `distance(a, b) < metres` and what is like it as the two parts and the metres."""
    for part in conjuncts(condition):
        match part:
            case Binary(
                "<" | "<=" | "=", Call("distance", (PartRef(str() as a), PartRef(str() as b))), Literal(v)
            ):
                pass
            case Binary(
                ">" | ">=" | "=", Literal(v), Call("distance", (PartRef(str() as a), PartRef(str() as b)))
            ):
                pass
            case Call(
                "between", (Call("distance", (PartRef(str() as a), PartRef(str() as b))), _, Literal(v))
            ):
                pass
            case Call("intersects" | "lies_in", (PartRef(str() as a), PartRef(str() as b))):
                v = 0
            case Call("same_place", (PartRef(str() as a), PartRef(str() as b), Literal(v))):
                pass
            case _:
                continue
        if isinstance(v, int | float) and not isinstance(v, bool) and a != b:
            return a, b, max(float(v), 0.0)
    return None
