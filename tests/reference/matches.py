"""`JoinPattern`: every combination that holds, then selection, then the context.

Nothing here is clever: all combinations are listed, and each rule of the contract is one function
that looks at a combination.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators import Absent, JoinPattern, TimeOrder
from whimbrel.graph.policies import Context, Select

from .data import Item, Key, order
from .expressions import Bound, Env, World, holds
from .streams import Group, Streams, bind, composite, partitioned


class TooLarge(Exception):
    """More combinations than trying each of them allows."""


@dataclass(frozen=True)
class Partition:
    """What one partition has of every part and of every absent part, and its keys."""

    match: JoinPattern
    parts: list[list[Item]]
    absent: list[list[Item]]
    group: Group
    world: World


@dataclass(frozen=True, eq=False)
class Combination:
    """One event for each part."""

    match: JoinPattern
    items: tuple[Item, ...]

    @property
    def start(self) -> int:
        return min(item.start for item in self.items)

    @property
    def end(self) -> int:
        return max(item.end for item in self.items)

    @property
    def trigger(self) -> Item:
        return max(self.items, key=order)

    @property
    def age(self) -> tuple[Key, ...]:
        """Oldest first: compared part by part as written."""
        return tuple(order(item) for item in self.items)

    @property
    def completion(self) -> int:
        """When it is complete: at its end, or at the last deadline of its absent parts."""
        return max([self.end] + [self._deadline(absent) for absent in self.match.absent if waits(absent)])

    def _deadline(self, absent: Absent) -> int:
        if absent.duration is None or absent.after is None:
            return self.start + self.match.within
        return self.items[absent.after].end + absent.duration

    def has_any(self, items: Sequence[Item]) -> bool:
        return any(mine.identity is other.identity for mine in self.items for other in items)

    def bindings(self) -> dict[str | None, Bound]:
        found: dict[str | None, Bound] = {}
        for part, item in zip(self.match.parts, self.items, strict=True):
            found.update(bind(item, part.alias))
        if len(self.items) == 1:
            found[None] = self.items[0]
        return found


@dataclass(frozen=True)
class Found:
    """A detection of the pattern: what its parts read as, all its events, and when it is complete."""

    reads: Combination
    items: tuple[Item, ...]
    completion: int


def matched(operator: JoinPattern, streams: Streams, world: World) -> list[Item]:
    inputs = [streams[part.input] for part in operator.parts]
    inputs += [streams[absent.input] for absent in operator.absent]
    found: list[Item] = []
    for group, chosen in partitioned(inputs, operator.partitioning):
        count = len(operator.parts)
        partition = Partition(operator, chosen[:count], chosen[count:], group, world)
        found.extend(_composite(partition, one) for one in detections(partition))
    return sorted((replace(item, maker=operator.name) for item in found), key=order)


def _composite(partition: Partition, found: Found) -> Item:
    parts = {name: bound for name, bound in found.reads.bindings().items() if name is not None}
    return composite(found.items, parts, partition.group, partition.world, found.completion)


# Which combinations hold.


def holding(partition: Partition) -> list[Combination]:
    """Combinations that hold, the absences aside that wait for a deadline."""
    return [
        combination for combination in in_order(partition) if is_true(combination, partition, final=False)
    ]


def in_order(partition: Partition) -> Iterator[Combination]:
    """Combinations of different events that keep the orders and `within`."""
    if math.prod(len(items) for items in partition.parts) > partition.world.limit:
        raise TooLarge
    for items in product(*partition.parts):
        if is_distinct(items) and keeps_orders(items, partition.match.orders):
            combination = Combination(partition.match, items)
            if combination.end - combination.start <= partition.match.within:
                yield combination


def is_distinct(items: Sequence[Item]) -> bool:
    return all(a.identity is not b.identity for number, a in enumerate(items) for b in items[:number])


def keeps_orders(items: Sequence[Item], orders: Sequence[TimeOrder]) -> bool:
    """Whether every order between parts that are there holds (`items` may be the first few parts)."""
    return all(
        _in_order(items[rule.first], items[rule.second], rule.gap)
        for rule in orders
        if rule.first < len(items) and rule.second < len(items)
    )


def _in_order(first: Item, second: Item, gap: int | None) -> bool:
    if gap is None:
        return first.end < second.start
    return order(first) < order(second) and second.end - first.end <= gap


def is_true(combination: Combination, partition: Partition, *, final: bool) -> bool:
    """Whether all conditions hold and no absent part is violated; `final`: also those that wait."""
    env = Env(partition.world, combination.bindings(), partition.group)
    if not all(holds(condition, env) for condition in partition.match.conditions):
        return False
    return not any(
        violates(item, absent, combination) and fits(item, absent, env)
        for absent, items in zip(partition.match.absent, partition.absent, strict=True)
        if final or not waits(absent)
        for item in items
    )


def fits(item: Item, absent: Absent, env: Env) -> bool:
    """Whether the conditions of the absent part, also those that read other parts, hold for `item`."""
    inner = Env(env.world, {**env.parts, **bind(item, absent.alias), None: item}, env.group)
    conditions: tuple[Expr, ...] = absent.conditions
    return all(holds(condition, inner) for condition in conditions)


def waits(absent: Absent) -> bool:
    """Whether the pattern completes at a deadline because of this absent part."""
    return absent.before is None


def violates(n: Item, absent: Absent, combination: Combination) -> bool:
    """The table of positions."""
    within, items = combination.match.within, combination.items
    if absent.before is not None and absent.after is not None:
        return items[absent.after].end < n.start and n.end < items[absent.before].start
    if absent.before is not None:
        return n.end < items[absent.before].start and combination.end - n.start <= within
    if absent.after is None:
        raise ValueError("an absent part stands next to a part that occurs")
    after = items[absent.after]
    if absent.duration is not None:
        return after.end < n.start and n.end <= after.end + absent.duration
    return after.end < n.start and n.end <= combination.start + within


# Selection.


def selected(combinations: list[Combination]) -> list[Combination]:
    return [
        one for one in combinations if all(_stays(one, part, combinations) for part in range(len(one.items)))
    ]


def _stays(one: Combination, part: int, combinations: list[Combination]) -> bool:
    mark = one.match.parts[part].select
    if mark is Select.EACH or len(one.items) == 1:
        return True
    rivals = [
        other for other in combinations if _agree_elsewhere(one, other, part) and _has_completed(other, one)
    ]
    best = min if mark is Select.FIRST else max
    return order(one.items[part]) == best(order(rival.items[part]) for rival in rivals)


def _agree_elsewhere(one: Combination, other: Combination, part: int) -> bool:
    return all(
        mine.identity is theirs.identity
        for number, (mine, theirs) in enumerate(zip(one.items, other.items, strict=True))
        if number != part
    )


def _has_completed(other: Combination, one: Combination) -> bool:
    return order(other.trigger) <= order(one.trigger)


# Contexts.


def detections(partition: Partition) -> list[Found]:
    if partition.match.context is Context.CHRONICLE:
        return chronicle(partition)
    survivors = [one for one in selected(holding(partition)) if is_true(one, partition, final=True)]
    consumed: list[Item] = []
    found: list[Found] = []
    for moment in moments(survivors):
        fresh = [one for one in moment if not one.has_any(consumed)]
        found.extend(_detect(partition.match, sorted(fresh, key=lambda one: one.age), consumed))
    return found


def moments(combinations: list[Combination]) -> list[list[Combination]]:
    """Combinations that complete at one time with one trigger, in the order in which they are taken."""
    found: list[list[Combination]] = []
    for one in sorted(combinations, key=lambda one: (one.completion, order(one.trigger))):
        if found and _same_moment(one, found[-1][0]):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _same_moment(one: Combination, other: Combination) -> bool:
    return one.completion == other.completion and one.trigger.identity is other.trigger.identity


def _detect(match: JoinPattern, fresh: list[Combination], consumed: list[Item]) -> list[Found]:
    """The detections of one moment; `fresh` is M, oldest first. Adds what they consume to `consumed`."""
    if not fresh:
        return []
    match match.context:
        case Context.EACH:
            return each(fresh, match.consuming, consumed)
        case Context.RECENT:
            return [_as_is(max(fresh, key=lambda one: one.age[::-1]))]
        case Context.FIRST_MATCHING:
            consumed.extend(fresh[0].items)
            return [_as_is(fresh[0])]
        case Context.CONTINUOUS:
            return continuous(fresh, consumed)
        case Context.CUMULATIVE:
            return cumulative(fresh, consumed)
    raise ValueError(match.context)


def _as_is(one: Combination) -> Found:
    return Found(one, one.items, one.completion)


def each(fresh: list[Combination], consuming: Sequence[int], consumed: list[Item]) -> list[Found]:
    found: list[Found] = []
    for one in fresh:
        if not one.has_any(consumed):
            found.append(_as_is(one))
            consumed.extend(one.items[part] for part in consuming)
    return found


def continuous(fresh: list[Combination], consumed: list[Item]) -> list[Found]:
    openers: list[Item] = []
    found: list[Found] = []
    for one in fresh:
        if not any(one.items[0].identity is opener.identity for opener in openers):
            openers.append(one.items[0])
            found.append(_as_is(one))
    for one in found:
        consumed.extend(one.items)
    return found


def cumulative(fresh: list[Combination], consumed: list[Item]) -> list[Found]:
    columns = [_each_once([one.items[part] for one in fresh]) for part in range(len(fresh[0].items))]
    latest = Combination(fresh[0].match, tuple(column[-1] for column in columns))
    everything = tuple(_each_once([item for column in columns for item in column]))
    consumed.extend(everything)
    return [Found(latest, everything, fresh[0].completion)]


def _each_once(items: list[Item]) -> list[Item]:
    found: list[Item] = []
    for item in items:
        if not any(item.identity is other.identity for other in found):
            found.append(item)
    return sorted(found, key=order)


def chronicle(partition: Partition) -> list[Found]:
    """For each trigger the oldest combination that keeps the orders, if conditions and absences hold too."""
    consumed: list[Item] = []
    found: list[Found] = []
    for moment in moments(list(in_order(partition))):
        fresh = sorted((one for one in moment if not one.has_any(consumed)), key=lambda one: one.age)
        if fresh and is_true(fresh[0], partition, final=True):
            found.append(_as_is(fresh[0]))
            consumed.extend(fresh[0].items)
    return found
