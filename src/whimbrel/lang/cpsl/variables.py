"""The variables of one subscription: what `$x;` and `&x` stand for, and which parts can tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.predicates import Use, uses

Key = str
"""What a part can tell: `$x`, the event that x is bound to, or `&x#3`, the value that the third use reads."""


@dataclass(slots=True)
class Variables:
    """What the variables of a subscription are bound to; everything that is wrong with them is refused."""

    subscription: c.CpslSubscription
    bindings: dict[str, c.Sub] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    uses: dict[Key, Use] = field(default_factory=dict)
    """The predicates with a variable, in the order in which they are written."""
    keys: dict[int, list[tuple[Key, Use]]] = field(default_factory=dict)
    """The same by the primitive subscription they stand in (by identity: equal ones are not the same)."""
    binders: dict[str, Key] = field(default_factory=dict)
    """Which use gives each variable its value."""
    known: dict[int, frozenset[Key]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read_bindings()
        self._number_uses()
        self._choose_binders()

    # Variables of subscriptions

    def _read_bindings(self) -> None:
        for binding in self.subscription.bindings:
            if binding.name in self.bindings:
                raise QueryError(
                    f"${binding.name}; is bound twice",
                    binding.at,
                    "bind it once; use another name for the other",
                )
            self.bindings[binding.name] = binding.sub
        used = {name for sub in self._subs() for name in self._references(sub)}
        for binding in self.subscription.bindings:
            self._refuse_cycle(binding)
            if binding.name not in used:
                self.warnings.append(f"{binding.at}: ${binding.name}; is bound, but not used")

    def _subs(self) -> Iterator[c.Sub]:
        yield self.subscription.body
        yield from self.bindings.values()

    def _references(self, sub: c.Sub) -> Iterator[str]:
        for each in _walk(sub):
            if isinstance(each, c.Variable):
                if each.name not in self.bindings:
                    raise self._unbound(each)
                yield each.name

    def _unbound(self, variable: c.Variable) -> QueryError:
        error = UnknownNameError("variable", variable.name, self.bindings, variable.at)
        error.message = f"the variable ${variable.name}; is bound to nothing"
        near = error.hint if error.hint and error.hint.startswith("did you") else None
        error.hint = near or f"write ', ${variable.name}; = (...)' behind the subscription"
        return error

    def _refuse_cycle(self, binding: c.Binding) -> None:
        path, seen = [binding.name], set()
        while path:
            name = path.pop()
            for other in self._references(self.bindings[name]):
                if other == binding.name:
                    raise QueryError(
                        f"the variable ${binding.name}; is bound to itself, in a circle",
                        binding.at,
                        "bind it to subscriptions that do not need it",
                    )
                if other not in seen:
                    seen.add(other)
                    path.append(other)

    # Variables of predicates

    def _number_uses(self) -> None:
        for sub in self._subs():
            for each in _walk(sub):
                if isinstance(each, c.Primitive) and id(each) not in self.keys:
                    self.keys[id(each)] = [(self._new_key(use), use) for use in uses(each)]

    def _new_key(self, use: Use) -> Key:
        key = f"&{use.variable}#{len(self.uses)}"
        self.uses[key] = use
        return key

    def _choose_binders(self) -> None:
        """Let the first `=` bind, one that others can see before one that is shut in."""
        open_keys = self._open_keys()
        for use in self.uses.values():
            if use.variable in self.binders:
                continue
            candidates = [other for other in self._uses_of(use.variable) if self.uses[other].binds]
            if not candidates:
                raise QueryError(
                    f"nothing gives &{use.variable} a value",
                    use.at,
                    f"bind it where another event is described: ARITH:v = &{use.variable}",
                )
            self.binders[use.variable] = next(
                (candidate for candidate in candidates if candidate in open_keys), candidates[0]
            )
            self._check_types(use.variable)

    def _uses_of(self, name: str) -> list[Key]:
        return [key for key, use in self.uses.items() if use.variable == name]

    def _open_keys(self) -> frozenset[Key]:
        return frozenset().union(*(self.provided(sub) for sub in self._subs()))

    def _check_types(self, name: str) -> None:
        binder = self.uses[self.binders[name]]
        for key in self._uses_of(name):
            use = self.uses[key]
            if use.is_text is not binder.is_text:
                kinds = ("text", "a number") if binder.is_text else ("a number", "text")
                raise QueryError(
                    f"&{name} is {kinds[0]}, and is compared with {kinds[1]} here",
                    use.at,
                    "use another variable, or compare values of one type",
                )

    def compared(self) -> Iterator[tuple[Key, Key]]:
        """Collect every use that compares, behind the one that binds its variable."""
        for key, use in self.uses.items():
            binder = self.binders[use.variable]
            if key != binder:
                yield binder, key

    # What parts can tell

    def provided(self, sub: c.Sub | c.CpslInstant) -> frozenset[Key]:
        """Name what the events of a subscription can tell to those who combine them with others."""
        if id(sub) not in self.known:
            self.known[id(sub)] = self._provided(sub)
        return self.known[id(sub)]

    def _provided(self, sub: c.Sub | c.CpslInstant) -> frozenset[Key]:
        match sub:
            case c.CpslInstant():
                return frozenset()
            case c.Primitive():
                return frozenset(key for key, _ in self.keys[id(sub)])
            case c.Variable(name):
                return self.provided(self.bindings[name]) | {f"${name}"}
            case c.Successive() | c.Recurring() | c.CpslGroups():
                return frozenset()  # they stand for several events
            case c.Any(parts):
                return frozenset.intersection(*(self.provided(part) for part in parts))
            case c.Timed("!", first, second, _):
                occurring = [
                    each for each in (first, second) if not isinstance(each, c.CpslInstant | c.Amount)
                ]
                return frozenset().union(*(self.provided(each) for each in occurring))
        return frozenset().union(*(self.provided(child) for child in c.children(sub)))


class VariablePlaces:
    """Where variables occur, and which of these places are known to be one event."""

    def __init__(self) -> None:
        self.noted: dict[str, list[tuple[c.Variable, int]]] = {}
        self.same: dict[tuple[str, int], tuple[str, int]] = {}

    def note(self, variable: c.Variable, place: int) -> None:
        """Note that a variable occurs at a place."""
        self.noted.setdefault(variable.name, []).append((variable, place))

    def join(self, name: str, one: int, other: int) -> None:
        """Note that a variable stands for the same event at two places."""
        first, second = self._first((name, one)), self._first((name, other))
        if first != second:
            self.same[second] = first

    def _first(self, place: tuple[str, int]) -> tuple[str, int]:
        while place in self.same:
            place = self.same[place]
        return place

    def refuse_several(self) -> None:
        """Refuse variables that would stand for one event at one place, and for another at the next."""
        for name, noted in self.noted.items():
            first = self._first((name, noted[0][1]))
            for variable, place in noted:
                if self._first((name, place)) != first:
                    raise QueryError(
                        f"${name}; stands for one event, but not everywhere for the same",
                        variable.at,
                        "use another variable in what is repeated, absent or an alternative",
                    )


def _walk(sub: c.Sub) -> Iterator[c.Sub]:
    yield sub
    for child in c.children(sub):
        yield from _walk(child)
