"""From the tree of CPSL to that of the Whimbrel language.

Each subscription becomes a definition, and so does each composite inside it; only what no other definition
uses is reported, as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, Span
from whimbrel.graph.operators import ANY
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.levels import Level, LevelPart, chain, core_of, level_of, part_name
from whimbrel.lang.cpsl.predicates import Reader, joined, occurrence_type, of_part, own, type_and_conditions
from whimbrel.lang.cpsl.times import instant, point_type, quantity
from whimbrel.lang.cpsl.variables import Key, VariablePlaces, Variables
from whimbrel.lang.wbl import tree as t


@dataclass(frozen=True, slots=True)
class LoweredCpsl:
    """What a file became."""

    tree: t.WblFile
    warnings: tuple[str, ...]


def lower(file: c.CpslFile) -> LoweredCpsl:
    """Turn subscriptions into definitions."""
    taken = {each.name for each in file.subscriptions} | set(_types(file))
    definitions: list[t.Definition] = []
    warnings: list[str] = []
    for subscription in file.subscriptions:
        variables = Variables(subscription)
        definitions += SubscriptionLowering(subscription, variables, taken).lower()
        warnings += variables.warnings
    return LoweredCpsl(t.WblFile(tuple(definitions), at=file.at), tuple(warnings))


def _types(file: c.CpslFile) -> Iterator[str]:
    """Name the event types that a file asks for."""
    subs = [
        sub for line in file.subscriptions for sub in (line.body, *(binding.sub for binding in line.bindings))
    ]
    while subs:
        sub = subs.pop()
        subs += c.children(sub)
        if isinstance(sub, c.CpslReference):
            yield sub.name
        elif isinstance(sub, c.Primitive):
            yield type_and_conditions(sub)[0]


@dataclass(frozen=True, slots=True)
class PartDescription:
    """The events that fill a part: their type, their conditions, and how to read what they can tell."""

    type: str
    conditions: tuple[t.Expression, ...]
    values: dict[Key, Callable[[Reader], t.Expression]]


@dataclass(slots=True)
class SubscriptionLowering:
    """Make the definitions of one subscription."""

    subscription: c.CpslSubscription
    variables: Variables
    taken: set[str]
    made: list[t.Definition] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)
    """The definitions made of composites so far."""
    levels: dict[int, Level] = field(default_factory=dict)
    needed: set[Key] = field(default_factory=set)
    """What a part of some level must tell, because another part is compared with it."""
    placed: set[Key] = field(default_factory=set)
    places: VariablePlaces = field(default_factory=VariablePlaces)
    attributes: dict[Key, str] = field(default_factory=dict)
    """The attributes under which composites tell what they can."""

    def lower(self) -> list[t.Definition]:
        """Make the definitions, the subscription itself last."""
        body = self._unbound(self.subscription.body)
        self._note_needed(body, set())
        self._define(body, self.subscription.name, self.subscription.at, ())
        self._refuse_unplaced()
        self.places.refuse_several()
        return self.made

    def _unbound(self, sub: c.Sub) -> c.Sub:
        """Look through a variable that is all there is."""
        while isinstance(sub, c.Variable):
            sub = self.variables.bindings[sub.name]
        return sub

    # Which parts are compared across levels

    def _level(self, sub: c.Sub) -> Level:
        if id(sub) not in self.levels:
            reserved = {part_name(name) for name in self.variables.bindings}
            self.levels[id(sub)] = level_of(sub, reserved)
        return self.levels[id(sub)]

    def _branches(self, sub: c.Sub) -> list[Level]:
        return [self._level(branch) for branch in _alternatives(sub)]

    def _note_needed(self, sub: c.Sub, seen: set[int]) -> None:
        if id(sub) in seen:
            return
        seen.add(id(sub))
        for level in self._branches(sub):
            slots = [*level.slots, *(slot for _, slot in level.absent)]
            provided = [self._provided(slot) for slot in slots]
            keys = [key for each in provided for key in each]
            self.needed |= {key for key in keys if key.startswith("$") and keys.count(key) > 1}
            for binder, key in self.variables.compared():
                if binder in keys and key in keys and not any({binder, key} <= each for each in provided):
                    self.needed |= {binder, key}
            for slot in slots:
                core = self._core(slot.sub)
                composite = None if isinstance(core, c.Primitive | c.CpslReference | c.CpslInstant) else core
                if not isinstance(
                    sub, c.CpslGroups
                ):  # what must not lie between groups is no place of its own
                    self._note_places(level, slot, composite)
                if composite is not None:
                    self._note_needed(composite, seen)

    def _note_places(self, level: Level, slot: LevelPart, composite: c.Sub | None) -> None:
        """Note where variables occur, and which of these places are known to be one event."""
        provided = {key[1:] for key in self._provided(slot) if key.startswith("$")}
        core: c.Sub | c.CpslInstant = slot.sub
        while isinstance(core, c.Variable):
            self.places.note(core, id(level) if core.name in provided else id(slot))
            core, _ = core_of(self.variables.bindings[core.name])
        for inner in self._branches(composite) if composite is not None else ():
            for name in provided:
                self.places.join(name, id(level), id(inner))

    def _provided(self, slot: LevelPart) -> frozenset[Key]:
        return frozenset() if slot.times is not None else self.variables.provided(slot.sub)

    def _core(self, sub: c.Sub | c.CpslInstant) -> c.Sub | c.CpslInstant:
        """Look through variables and tests of single events."""
        core, _ = core_of(sub)
        while isinstance(core, c.Variable):
            core, _ = core_of(self.variables.bindings[core.name])
        return core

    # Definitions

    def _define(self, sub: c.Sub, name: str, at: Span | None, exports: tuple[Key, ...]) -> None:
        levels = self._branches(sub)
        single = [level for level in levels if self._is_single(level) and not exports]
        ways: list[Level | list[Level]] = [level for level in levels if level not in single]
        if single:
            # One event may fit several of them, and is still one detection.
            ways.insert(levels.index(single[0]), single if len(single) > 1 else single[0])
        labels = [None] if len(ways) == 1 else [str(number) for number in range(len(ways))]
        cases = tuple(
            self._case(way, sub, exports, label) if isinstance(way, Level) else self._either(way, sub, label)
            for way, label in zip(ways, labels, strict=True)
        )
        self.made.append(t.Definition(name, cases, at=at))

    def _is_single(self, level: Level) -> bool:
        return len(level.slots) == 1 and not level.absent and level.slots[0].times is None

    def _either(self, levels: list[Level], sub: c.Sub, label: str | None) -> t.CaseNode:
        """Let one name stand for whichever came, so that it is one event and keeps its attributes."""
        parts = tuple(t.PatternPartNode(self._occurrence(level.slots[0]), at=sub.at) for level in levels)
        either = t.PatternPartNode(t.PatternNode("or", parts), alias=levels[0].slots[0].name, at=sub.at)
        return t.CaseNode(t.PatternNode(None, (either,), at=sub.at), label, at=sub.at)

    def _case(self, level: Level, sub: c.Sub, exports: tuple[Key, ...], label: str | None) -> t.CaseNode:
        descriptions = {id(slot): self._told(slot) for slot in level.slots}
        absent = {id(slot): self._told(slot) for _, slot in level.absent}
        where = [
            *level.where,
            *self._same_events(level, descriptions | absent),
            *self._compared(level, descriptions, absent),
        ]
        ordered = chain(level) if len(level.slots) > 1 or level.absent else None
        if ordered is None:
            before = [t.Relation(t.Name(a.name), "before", t.Name(b.name)) for a, b in level.orders]
            where = [*before, *where]
        pattern = self._pattern(level, ordered, descriptions | absent, sub.at)
        assign = tuple(self._export(level, descriptions, key) for key in exports)
        condition = joined("and", where) if where else None
        return t.CaseNode(pattern, label, condition, assign, at=sub.at)

    def _pattern(
        self, level: Level, ordered: list[LevelPart] | None, told: dict[int, PartDescription], at: Span | None
    ) -> t.PatternNode:
        within = None if level.within is None else quantity(level.within)
        alone = len(level.slots) == 1 and not level.absent
        parts: list[t.PatternPartNode] = []
        for slot in ordered or level.slots:
            parts.append(self._part(level, slot, told[id(slot)], named=not alone))
            parts += [
                self._part(level, absent, told[id(absent)], named=True, negated=True)
                for before, absent in level.absent
                if before is slot
            ]
        connective = None if alone else "and" if ordered is None else "then"
        return t.PatternNode(connective, tuple(parts), within, at=at)

    def _part(
        self, level: Level, slot: LevelPart, told: PartDescription, *, named: bool, negated: bool = False
    ) -> t.PatternPartNode:
        needs_name = named or told.type == ANY or slot.times is not None
        kind = t.TimePoint if isinstance(slot.sub, c.CpslInstant) else t.Occurrence
        return t.PatternPartNode(
            kind(told.type, told.conditions, at=slot.sub.at),
            negated=negated,
            times=None if slot.times is None else t.TimesNode(slot.times, slot.times),
            alias=slot.name if needs_name else None,
            gaps=tuple(t.Gap(quantity(gap), a.name) for a, b, gap in level.gaps if b is slot),
            lasting=None if slot.lasting is None else quantity(slot.lasting),
            at=slot.sub.at,
        )

    # What fills a part

    def _occurrence(self, slot: LevelPart) -> t.Occurrence:
        description = self._told(slot)
        return t.Occurrence(description.type, description.conditions, at=slot.sub.at)

    def _told(self, slot: LevelPart) -> PartDescription:
        description = self._events(slot.sub)
        values = {} if slot.times is not None else description.values
        return PartDescription(description.type, (*description.conditions, *slot.conditions), values)

    def _events(self, sub: c.Sub | c.CpslInstant, variable: str | None = None) -> PartDescription:
        """Tell which events a subscription without tests around it stands for."""
        match sub:
            case c.CpslInstant():
                return PartDescription(point_type(sub), (), {})
            case c.Primitive():
                return self._primitive(sub)
            case c.CpslReference(name):
                self._refuse_self(name, sub.at)
                kind, conditions = occurrence_type(name, sub.at)
                return PartDescription(kind, (*conditions, *self._since()), {})
            case c.Variable(name):
                return self._variable(name)
        return self._composite(sub, variable)

    def _variable(self, name: str) -> PartDescription:
        core, conditions = core_of(self.variables.bindings[name])
        description = self._events(core, name)
        values = {**description.values, f"${name}": lambda read: read("id")}
        return PartDescription(description.type, (*description.conditions, *conditions), values)

    def _primitive(self, sub: c.Primitive) -> PartDescription:
        kind, conditions = type_and_conditions(sub)
        self._refuse_self(kind, sub.at)
        uses = dict(self.variables.keys[id(sub)])
        compared = []
        for binder, key in self.variables.compared():
            if binder in uses and key in uses:
                self.placed.add(key)
                compared.append(uses[key].compared(uses[key].read(own), uses[binder].read(own)))
        values = {key: use.read for key, use in uses.items()}
        return PartDescription(kind, (*conditions, *compared, *self._since()), values)

    def _composite(self, sub: c.Sub, variable: str | None) -> PartDescription:
        keys = self.variables.provided(sub)
        # Equal composites are one definition, unless a predicate variable tells them apart.
        mark: object = id(sub) if any(key.startswith("&") for key in keys) else sub
        exports = tuple(sorted(keys & self.needed))
        if mark not in self.names:
            self.names[mark] = self._new_name(variable)
            self._define(sub, self.names[mark], sub.at, exports)
        return PartDescription(self.names[mark], (), {key: _reads(self._attribute(key)) for key in exports})

    def _refuse_self(self, name: str, at: Span | None) -> None:
        if name == self.subscription.name:
            raise QueryError(
                f"{name!r} is the name of this very subscription",
                at,
                "call the subscription something else than the events it asks for",
            )

    def _since(self) -> tuple[t.Expression, ...]:
        since = self.subscription.since
        return () if since is None else (t.Compare((t.Name("start"), instant(since)), (">=",), at=since.at),)

    def _new_name(self, variable: str | None) -> str:
        base = self.subscription.name
        if variable is not None:
            name = f"{base}_{part_name(variable)}"
            while name in self.taken:
                name += "_"
        else:
            number = 1
            while f"{base}_{number}" in self.taken:
                number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    # Variables

    def _same_events(self, level: Level, told: dict[int, PartDescription]) -> Iterator[t.Expression]:
        """Let a variable stand for one event in all parts that know it."""
        slots = [*level.slots, *(slot for _, slot in level.absent)]
        for key in sorted({key for each in told.values() for key in each.values if key.startswith("$")}):
            first, *others = [slot for slot in slots if key in told[id(slot)].values]
            for other in others:
                yield t.Compare((_value(other, told, key), _value(first, told, key)), ("=",))

    def _compared(
        self, level: Level, told: dict[int, PartDescription], absent: dict[int, PartDescription]
    ) -> Iterator[t.Expression]:
        """Compare values of different parts."""
        everyone = told | absent
        for binder, key in self.variables.compared():
            if any(binder in each.values and key in each.values for each in everyone.values()):
                continue
            first = next((slot for slot in level.slots if binder in told[id(slot)].values), None)
            slots = [*level.slots, *(slot for _, slot in level.absent)]
            other = next((slot for slot in slots if key in everyone[id(slot)].values), None)
            if first is not None and other is not None:
                self.placed.add(key)
                own_value, value = _value(other, everyone, key), _value(first, everyone, binder)
                yield self.variables.uses[key].compared(own_value, value)

    def _export(self, level: Level, told: dict[int, PartDescription], key: Key) -> t.Assignment:
        slot = next(slot for slot in level.slots if key in told[id(slot)].values)
        alone = len(level.slots) == 1 and not level.absent
        read = own if alone and told[id(slot)].type != ANY else of_part(slot.name)
        return t.Assignment(self._attribute(key), told[id(slot)].values[key](read))

    def _attribute(self, key: Key) -> str:
        if key not in self.attributes:
            plain = part_name(key[1:].partition("#")[0])
            wanted = f"{plain}_id" if key.startswith("$") else plain
            number, name = 2, wanted
            while name in self.attributes.values():
                name, number = f"{wanted}_{number}", number + 1
            self.attributes[key] = name
        return self.attributes[key]

    def _refuse_unplaced(self) -> None:
        for _, key in self.variables.compared():
            if key not in self.placed:
                use = self.variables.uses[key]
                raise QueryError(
                    f"the value of &{use.variable} is not known here",
                    use.at,
                    "bind it outside of what is repeated, absent or an alternative",
                )


def _alternatives(sub: c.Sub) -> list[c.Sub]:
    """Collect the different branches of an alternative, those of alternatives inside it among them."""
    if not isinstance(sub, c.Any):
        return [sub]
    return list(dict.fromkeys(branch for part in sub.parts for branch in _alternatives(part)))


def _reads(attribute: str) -> Callable[[Reader], t.Expression]:
    return lambda read: read(attribute)


def _value(slot: LevelPart, told: dict[int, PartDescription], key: Key) -> t.Expression:
    return told[id(slot)].values[key](of_part(slot.name))
