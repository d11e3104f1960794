"""The operators other than `JoinPattern`: each makes a list of items from lists of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor

from whimbrel.graph.operators import (
    Aggregate,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Repeat,
    Source,
    TimePoints,
)
from whimbrel.graph.operators.change import PREVIOUS, Change
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import MOTION, Motion
from whimbrel.graph.policies import Key, Partitioning, Window
from whimbrel.model.schema import EventSchema

from .arithmetic import cast, clean
from .data import Event, Item, Value, atoms_below, common_source, order
from .expressions import Bound, Env, World, assigned, holds, read
from .functions import centre

Streams = Mapping[str, list[Item]]
Group = dict[str, Value]


# Names.


def names_of(graph: Graph, stream: str) -> tuple[str, ...] | None:
    """The part names a composite stream binds; None for a stream of plain events."""
    operator = graph[stream]
    match operator:
        case Filter():
            return names_of(graph, operator.input)
        case Merge():
            return _names(graph, [(branch.input, branch.alias) for branch in operator.branches])
        case Repeat():
            return _names(graph, [(operator.input, operator.alias)])
        case Motion():
            return operator.alias, MOTION
        case Encounter():
            return operator.alias, operator.other_alias, MOTION
        case Change():
            return PREVIOUS, operator.alias
        case JoinPattern():
            return _names(graph, [(part.input, part.alias) for part in operator.parts])
    return None


def _names(graph: Graph, parts: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    found: list[str] = []
    for stream, alias in parts:
        found.extend((alias,) if alias is not None else names_of(graph, stream) or ())
    return tuple(dict.fromkeys(found))


def bind(item: Item, alias: str | None) -> dict[str, Bound]:
    """What an item says its names are, standing as a part called `alias`."""
    bound: dict[str, Bound] = dict(item.parts or {})
    if alias is not None:
        bound[alias] = item
    return bound


def gather(items: Sequence[Item], alias: str | None) -> dict[str, Bound]:
    """The same for many items in one part: every name stands for all its events."""
    found: dict[str, tuple[Item, ...]] = {}
    for item in items:
        for name, bound in bind(item, alias).items():
            more = bound if isinstance(bound, tuple) else () if bound is None else (bound,)
            found[name] = found.get(name, ()) + more
    return dict(found)


# Composites and partitions.


def composite(
    constituents: Sequence[Item],
    parts: Mapping[str, Bound],
    group: Group,
    world: World,
    end: int | None = None,
) -> Item:
    """An item made of others: least start, largest end (unless it has a deadline), all their events."""
    return Item(
        id=world.identify(None, 0, tuple(item.id for item in constituents)),
        type=None,
        source=common_source(constituents),
        start=min(item.start for item in constituents),
        end=max(item.end for item in constituents) if end is None else end,
        atoms=atoms_below(constituents),
        parts=parts,
        constituents=tuple(constituents),
        group=group,
    )


def key_values(item: Item, key: Key) -> list[Value]:
    """The partitions an item lies in: one, or several if it is a composite of events that differ."""
    if key.name in item.group:
        return [item.group[key.name]]
    if item.parts is not None and item.constituents and item.type is None:
        found: list[Value] = []
        for constituent in item.constituents:
            found.extend(value for value in key_values(constituent, key) if value not in found)
        return found
    return [_plain_key(item, key)]


def _plain_key(item: Item, key: Key) -> Value:
    if key.kind == "attribute":
        return read(item, key.name)
    if key.kind == "source":
        return item.source
    where = centre(item)
    return None if where is None else f"{floor(where[0] / key.cell_m)}:{floor(where[1] / key.cell_m)}"


def group_of(item: Item, partitioning: Partitioning) -> Group | None:
    """The partition an item lies in; None if it does not lie in one."""
    group: Group = {}
    for key in partitioning.keys:
        values = key_values(item, key)
        if len(values) != 1:
            return None
        group[key.name] = values[0]
    return group


def partitioned(
    inputs: Sequence[Sequence[Item]], partitioning: Partitioning
) -> Iterator[tuple[Group, list[list[Item]]]]:
    """For each partition, its keys and what it has of every input."""
    groups: list[Group] = []
    for stream in inputs:
        for item in stream:
            group = group_of(item, partitioning)
            if group is not None and group not in groups:
                groups.append(group)
    for group in groups:
        yield group, [[item for item in stream if group_of(item, partitioning) == group] for stream in inputs]


# The operators.


def source(operator: Source, events: Sequence[Event]) -> list[Item]:
    wanted = (event for event in events if operator.event_type in (event.type, "*"))
    fitting = sorted(wanted, key=order)
    return [_incoming(event, operator.schema) for event in fitting]


def happening(operator: TimePoints) -> Event:
    """The event that nobody sends."""
    return Event(operator.event_type, operator.event_type, operator.at, operator.at)


def _incoming(event: Event, schema: EventSchema | None) -> Item:
    attributes = {name: clean(value) for name, value in event.attributes.items()}
    for name, kind in (schema.attributes if schema else {}).items():
        attributes[name] = cast(attributes.get(name), kind.value)
    return Item(event.id, event.type, event.source, event.start, event.end, (event,), attributes)


def filtered(operator: Filter, streams: Streams, world: World) -> list[Item]:
    return [
        item
        for item in streams[operator.input]
        if holds(operator.condition, Env(world, {**bind(item, None), None: item}, item.group))
    ]


def merged(operator: Merge, streams: Streams, graph: Graph) -> list[Item]:
    nothing: dict[str, Bound] = dict.fromkeys(names_of(graph, operator.name) or ())
    found: list[Item] = []
    for branch in operator.branches:
        for item in streams[branch.input]:
            bound = bind(item, branch.alias)
            known = [index for index, other in enumerate(found) if other.identity is item.identity]
            if known:
                other = found[known[0]]
                found[known[0]] = replace(other, parts={**(other.parts or {}), **bound})
            else:
                found.append(replace(item, parts={**nothing, **bound}, origin=item.identity))
    return sorted(found, key=order)


def repeated(operator: Repeat, streams: Streams, world: World) -> list[Item]:
    inputs = [streams[operator.input], streams[operator.until] if operator.until else []]
    found: list[Item] = []
    for group, (events, enders) in partitioned(inputs, operator.partitioning):
        for first in range(len(events)):
            for last in range(first, len(events)):
                run = events[first : last + 1]
                if _counts(operator, run, enders):
                    found.append(composite(run, gather(run, operator.alias), group, world))
    return sorted((replace(item, maker=operator.name) for item in found), key=order)


def _counts(operator: Repeat, run: list[Item], enders: list[Item]) -> bool:
    if len(run) < operator.at_least or (operator.at_most is not None and len(run) > operator.at_most):
        return False
    if max(item.end for item in run) - min(item.start for item in run) > operator.within:
        return False
    return not any(order(run[0]) < order(ender) < order(run[-1]) for ender in enders)


def derived(operator: Derive, streams: Streams, graph: Graph, world: World) -> list[Item]:
    found = [
        derive_one(operator, number, case, item, graph, world)
        for number, case in enumerate(operator.cases)
        for item in streams[case.input]
    ]
    return sorted(found, key=order)


def derive_one(
    operator: Derive, number: int, case: DeriveCase, item: Item, graph: Graph, world: World
) -> Item:
    group = group_of(item, case.partitioning) or {}
    env = Env(world, {**bind(item, case.alias), None: item}, group)
    constituents = item.constituents or (item,)
    made_of = (item.identity,) if item.origin is not None or item.parts is None else constituents
    return replace(
        item,
        id=world.identify(operator.event_type, number, tuple(each.id for each in made_of)),
        type=operator.event_type,
        case=number,
        maker=operator.event_type,
        attributes=assigned(case.assign, env) if case.assign else _taken_over(case, item, group, graph),
        parts=None,
        constituents=made_of,
        group={},
        origin=None,
    )


def _taken_over(case: DeriveCase, item: Item, group: Group, graph: Graph) -> Mapping[str, Value]:
    """Without assignments: the attributes of the only part, or the group keys where there are several."""
    names = names_of(graph, case.input)
    if names is None:
        return item.attributes
    only = (item.parts or {}).get(names[0]) if len(names) == 1 else None
    return only.attributes if isinstance(only, Item) else group


# Aggregates.


@dataclass(frozen=True)
class Pane:
    """The events of one window; `mark` tells apart windows of the time grid with the same events."""

    items: list[Item]
    mark: int | None = None


def aggregated(operator: Aggregate, streams: Streams, graph: Graph, world: World) -> list[Item]:
    names = _names(graph, [(part.input, part.alias) for part in operator.parts])
    found: list[Item] = []
    for group, inputs in partitioned([streams[part.input] for part in operator.parts], operator.partitioning):
        for pane in panes(operator.window, _each_once(inputs)):
            chosen = [_those_in(pane, stream) for stream in inputs]
            required = [items for part, items in zip(operator.parts, chosen, strict=True) if not part.outer]
            if all(required):
                found.extend(_results(operator, pane, names, chosen, group, world))
    return sorted(found, key=order)


def _each_once(inputs: Sequence[Sequence[Item]]) -> list[Item]:
    found: list[Item] = []
    for stream in inputs:
        for item in stream:
            if not any(item.identity is other.identity for other in found):
                found.append(item)
    return sorted(found, key=order)


def _those_in(pane: Pane, stream: Sequence[Item]) -> list[Item]:
    return [item for item in stream if any(item.identity is other.identity for other in pane.items)]


def panes(window: Window, items: list[Item]) -> Iterator[Pane]:
    """The windows of one group that have an event."""
    if window.kind == "counting":
        yield from _counted(window, items)
    elif window.every is None:
        for number, item in enumerate(items):
            yield Pane([other for other in items[: number + 1] if item.end - other.end <= window.length])
    else:
        yield from _on_the_grid(window.length, window.every, items)


def _counted(window: Window, items: list[Item]) -> Iterator[Pane]:
    for number in range(1, len(items) + 1):
        if window.every is None or number % window.every == 0:
            recent = items[max(0, number - window.length) : number]
            yield Pane([item for item in recent if _is_recent(item, recent[-1], window.within)])


def _is_recent(item: Item, last: Item, within: int | None) -> bool:
    return within is None or last.end - item.end <= within


def _on_the_grid(length: int, every: int, items: list[Item]) -> Iterator[Pane]:
    earliest = min(item.end for item in items) // every
    latest = (max(item.end for item in items) + length) // every + 1
    for number in range(earliest, latest + 1):
        end = number * every
        inside = [item for item in items if end - length <= item.end < end]
        if inside:
            yield Pane(inside, end)


def _results(
    operator: Aggregate,
    pane: Pane,
    names: Sequence[str],
    chosen: list[list[Item]],
    group: Group,
    world: World,
) -> Iterator[Item]:
    """The result of one window, unless `having` is not true."""
    parts: dict[str | None, Bound] = {**dict.fromkeys(names, ()), None: tuple(pane.items)}
    for part, items in zip(operator.parts, chosen, strict=True):
        parts.update(gather(items, part.alias))
    result = composite(pane.items, {}, group, world)
    mark = () if pane.mark is None else (f"@{pane.mark}",)
    result = replace(
        result,
        id=world.identify(None, 0, tuple(item.id for item in pane.items) + mark),
        parts=None,
        attributes=assigned(operator.assign, Env(world, parts, group)),
        window=pane.mark or 0,
        maker=operator.name,
    )
    if operator.post:
        partial: dict[str | None, Bound] = dict.fromkeys(parts, result)
        result = replace(result, attributes=assigned(operator.post, Env(world, partial, group)))
    if operator.having is None or holds(operator.having, Env(world, {**parts, None: result}, group)):
        yield result
