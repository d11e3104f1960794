"""From one level of a subscription to a flat pattern: its parts, their orders, what must hold between them.

`|($a;)$b; && DIST($a;;<;50)$b;` is one level with two parts and two conditions. A part that is itself a
composite stays whole here; `lower.py` makes a definition of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise

from whimbrel.errors import QueryError
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.places import distance_test, point_at, polygon
from whimbrel.lang.cpsl.times import instant, later, quantity
from whimbrel.lang.wbl import tree as t

_THIS = t.Name("this")
_FUNCTIONS = {"OVLP": "intersects", "SPL": "same_place"}
_TAKEN = frozenset({"group", "this", "not", "null", "true", "false"})
"""Names that mean something in an expression."""


@dataclass(eq=False, slots=True)
class LevelPart:
    """A part of a level: whose events fill it, and what is tested of each besides."""

    name: str
    sub: c.Sub | c.CpslInstant
    conditions: list[t.Expression]
    times: int | None = None
    lasting: c.Amount | None = None


@dataclass(eq=False, slots=True)
class Level:
    """A flat pattern."""

    slots: list[LevelPart] = field(default_factory=list)
    absent: list[tuple[LevelPart, LevelPart]] = field(default_factory=list)
    """Parts that must not occur, each behind the part that it follows."""
    orders: list[tuple[LevelPart, LevelPart]] = field(default_factory=list)
    gaps: list[tuple[LevelPart, LevelPart, c.Amount]] = field(default_factory=list)
    where: list[t.Expression] = field(default_factory=list)
    within: c.Amount | None = None


def level_of(sub: c.Sub, taken: Collection[str]) -> Level:
    """Make the level of a subscription that is no alternative; `taken` are names that no part may get."""
    return _LevelMaking(taken).make(sub)


def core_of(sub: c.Sub | c.CpslInstant) -> tuple[c.Sub | c.CpslInstant, list[t.Expression]]:
    """Take off everything that only tests a single event, and give it as conditions on `this`."""
    conditions: list[t.Expression] = []
    while True:
        match sub:
            case c.Inside(region, of):
                shape = t.ShapeNode(text=polygon(region), at=region.at)
                conditions.append(t.InRegionNode(_THIS, shape, at=sub.at))
            case c.CpslRelation(relation, c.CpslRegion() as region, of):
                conditions.append(_relation(_FUNCTIONS[relation], _THIS, t.Constant(polygon(region)), sub))
            case c.Distance(c.CpslRegion() as region, _, _, of):
                conditions.append(distance_test(_THIS, t.Constant(polygon(region)), sub))
            case c.Distance(c.CpslPoint(x, y), _, _, of):
                conditions.append(distance_test(_THIS, point_at(x, y), sub))
            case c.Timed("=|", c.CpslInstant() as point, c.Amount() as time, of):
                conditions.append(t.Compare((t.Name("end"), later(point, time)), ("<=",), at=sub.at))
                conditions.append(t.Compare((t.Name("start"), instant(point)), (">",), at=sub.at))
            case c.Timed("|=", c.CpslInstant() as point, c.Amount() as time, of):
                conditions.append(t.Compare((t.Name("start"), later(point, time)), (">",), at=sub.at))
            case _:
                return sub, conditions[::-1]
        sub = of


def _relation(function: str, left: t.Expression, right: t.Expression, sub: c.Sub) -> t.Expression:
    return t.Apply(function, (left, right), at=sub.at)


def part_name(variable: str) -> str:
    """Name the part that a variable stands for."""
    name = variable.replace("-", "_")
    return f"{name}_" if name in _TAKEN else name


class _LevelMaking:
    def __init__(self, taken: Collection[str]) -> None:
        self.level = Level()
        self.letters = _letters({*taken, *_TAKEN})
        self.by_variable: dict[str, LevelPart] = {}

    def make(self, sub: c.Sub) -> Level:
        match sub:
            case c.Timed("!", first, second, of):
                self._absence(first, second, of)
            case c.Successive(times, of):
                self._slot(of).times = times
            case c.Recurring(time, of):
                self._slot(of).times = 2
                self.level.within = time
            case c.CpslGroups(times, time, 1, of):
                self._slot(of).times = times
                self.level.within = time
            case c.CpslGroups():
                self._groups(sub)
            case _:
                self._add(sub)
        return self.level

    def _absence(self, first: c.Sub | c.CpslInstant, second: c.Sub | c.Amount, of: c.Sub) -> None:
        before = self._slot(first)
        if isinstance(second, c.Amount):
            absent = self._free_slot(of)
            absent.lasting = second
        else:
            self.level.orders.append(self._two(before, self._slot(second), second))
            absent = self._free_slot(of)
        self.level.absent.append((before, absent))

    def _groups(self, sub: c.CpslGroups) -> None:
        """Let groups follow each other with no event between them."""
        one = c.CpslGroups(sub.count, sub.time, 1, sub.of, at=sub.at)
        slots = [self._slot(one) for _ in range(sub.groups)]
        for before, after in pairwise(slots):
            self.level.orders.append((before, after))
            self.level.absent.append((before, self._free_slot(sub.of)))

    def _add(self, sub: c.Sub) -> None:
        """Add a subscription: its parts, if they only stand in some relation, or else itself as one part."""
        match sub:
            case c.All(parts):
                for part in parts:
                    self._add(part)
            case c.Timed("=|" | "|=", first, second, of) if not isinstance(first, c.CpslInstant):
                self._timed(sub, first, second, of)
            case c.Concurrent(other, of):
                left, right = self._pair(other, of)
                self._where(t.Relation(t.Name(left.name), "concurrent", t.Name(right.name), at=sub.at))
            case c.CpslRelation(relation, place, of) if not isinstance(place, c.CpslRegion):
                left, right = self._pair(place, of)
                if relation == "IN":
                    inside = t.InRegionNode(t.Name(right.name), t.ShapeNode(name=left.name), at=sub.at)
                    self._where(inside)
                else:
                    names = t.Name(left.name), t.Name(right.name)
                    self._where(_relation(_FUNCTIONS[relation], *names, sub))
            case c.Distance(place, _, _, of) if not isinstance(place, c.CpslRegion | c.CpslPoint):
                left, right = self._pair(place, of)
                self._where(distance_test(t.Name(left.name), t.Name(right.name), sub))
            case _:
                self._slot(sub)

    def _timed(self, sub: c.Timed, first: c.Sub, second: c.Sub | c.Amount, of: c.Sub) -> None:
        a = self._slot(first)
        if isinstance(second, c.Amount):
            b = self._slot(of)
            self.level.orders.append(self._two(a, b, of))
            if sub.operator == "=|":
                self.level.gaps.append((a, b, second))
            elif second.number:
                end = t.Infix("+", t.Dotted(a.name, "end"), quantity(second))
                self._where(t.Compare((t.Dotted(b.name, "start"), end), (">",), at=sub.at))
            return
        b, last = self._slot(second), self._slot(of)
        chain = (a, last, b) if sub.operator == "=|" else (a, b, last)
        self.level.orders += [self._two(chain[0], chain[1], of), self._two(chain[1], chain[2], of)]

    def _pair(self, left: c.Sub, right: c.Sub) -> tuple[LevelPart, LevelPart]:
        return self._two(self._slot(left), self._slot(right), right)

    def _two(self, left: LevelPart, right: LevelPart, sub: c.Sub) -> tuple[LevelPart, LevelPart]:
        if left is right:
            raise QueryError(
                f"${left.name}; stands on both sides, and an event has no relation to itself",
                sub.at,
                "use two variables that are bound to the same subscription",
            )
        return left, right

    def _where(self, condition: t.Expression) -> None:
        self.level.where.append(condition)

    def _slot(self, sub: c.Sub | c.CpslInstant) -> LevelPart:
        core, conditions = core_of(sub)
        if isinstance(core, c.Variable) and core.name in self.by_variable:
            slot = self.by_variable[core.name]
            slot.conditions += [condition for condition in conditions if condition not in slot.conditions]
            return slot
        slot = self._free_slot(sub)
        self.level.slots.append(slot)
        if isinstance(core, c.Variable):
            self.by_variable[core.name] = slot
        return slot

    def _free_slot(self, sub: c.Sub | c.CpslInstant) -> LevelPart:
        """Make a part that is not among those that occur."""
        core, conditions = core_of(sub)
        is_new = isinstance(core, c.Variable) and core.name not in self.by_variable
        name = part_name(core.name) if isinstance(core, c.Variable) and is_new else next(self.letters)
        return LevelPart(name, core, conditions)


def _letters(taken: set[str]) -> Iterator[str]:
    for round_number in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            name = f"{letter}{round_number}" if round_number else letter
            if name not in taken:
                yield name


def chain(level: Level) -> list[LevelPart] | None:
    """List the parts in their order in time, if each follows the one before; None if they do not."""
    followers = {id(slot): [b for a, b in level.orders if a is slot] for slot in level.slots}
    ordered: list[LevelPart] = []
    left = list(level.slots)
    while left:
        first = [slot for slot in left if not any(b is slot and a in left for a, b in level.orders)]
        if len(first) != 1 or (ordered and not any(first[0] is b for b in followers[id(ordered[-1])])):
            return None
        ordered.append(first[0])
        left.remove(first[0])
    return ordered
