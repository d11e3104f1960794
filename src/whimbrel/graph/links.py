"""Which fields of an operator name the streams it reads: declared once, from which all else follows.

>>> from whimbrel.graph.operators import Branch, Merge
>>> both = Merge("either", (Branch("A", "a"), Branch("B", "a")))
>>> [str(link) for link in links(both)]
['A as a (branch)', 'B as a (branch)']
>>> relinked(both, {"B": "B[speed > 5]"}).branches[1].input
'B[speed > 5]'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar

Linked = TypeVar("Linked")
Role = Literal["input", "part", "absent", "until", "branch", "case"]


@dataclass(frozen=True, slots=True)
class Link:
    """One stream that is read: what it is to its reader, and the part name that its events have there."""

    stream: str
    role: Role = "input"
    alias: str | None = None

    def __str__(self) -> str:
        named = f" as {self.alias}" if self.alias else ""
        return f"{self.stream}{named} ({self.role})"


def stream(role: Role = "input", alias: str = "alias") -> Mapping[str, Any]:
    """Mark a field that names a stream, several or none; the field `alias` has the part name, if any."""
    return MappingProxyType({"role": role, "alias": alias})


MEMBERS: Mapping[str, Any] = MappingProxyType({"role": None, "alias": ""})
"""Marks a field whose values have fields that name streams."""


@cache
def _marked(kind: Any) -> tuple[tuple[str, Role | None, str], ...]:
    """List the marked fields of a class: name, role (None: look inside) and the field with the part name."""
    marked = [field for field in fields(kind) if "role" in field.metadata]
    return tuple((field.name, field.metadata["role"], field.metadata["alias"]) for field in marked)


def links(value: object) -> Iterator[Link]:
    """Yield the streams that marked fields name, as often as they do, in the order of the fields."""
    kind: Any = type(value)
    for name, role, alias in _marked(kind):
        for each in _flat(getattr(value, name)):
            if role is None:
                yield from links(each)
            else:
                yield Link(each, role, getattr(value, alias, None))


def streams_named(value: object) -> list[str]:
    """List the streams of the `links`: rewrites ask for them all the time."""
    found: list[str] = []
    kind: Any = type(value)
    for name, role, _ in _marked(kind):
        for each in _flat(getattr(value, name)):
            if role is None:
                found += streams_named(each)
            else:
                found.append(each)
    return found


def relinked(value: Linked, names: Mapping[str, str]) -> Linked:
    """Let a value name other streams: for each the one that `names` has for it."""
    changed: dict[str, Any] = {}
    kind: Any = type(value)
    for name, role, _ in _marked(kind):
        named = getattr(value, name)
        if role is None:
            changed[name] = _mapped(named, lambda each: relinked(each, names))
        else:
            changed[name] = _mapped(named, lambda each: names.get(each, each))
    return replace(value, **changed) if changed else value  # type: ignore[type-var]


def _flat(value: object) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _flat(each)
    elif value is not None:
        yield value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    return None if value is None else change(value)
