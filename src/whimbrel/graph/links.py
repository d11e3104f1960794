"""Which fields of an operator name the streams it reads: declared once, from which all else follows.

>>> from whimbrel.graph.operators import Branch, Merge
>>> both = Merge("either", (Branch("A", "a"), Branch("B", "a")))
>>> [str(link) for link in links(both)]
['A as a (branch)', 'B as a (branch)']
>>> relinked(both, {"B": "B[speed > 5]"}).branches[1].input
'B[speed > 5]'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar

Linked = TypeVar("Linked")
Role = Literal["input", "part", "absent", "until", "branch", "case"]


@dataclass(frozen=True, slots=True)
class StreamLink:
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


def links(value: object) -> list[StreamLink]:
    """List the streams that marked fields name, as often as they do, in the order of the fields."""
    return [StreamLink(name, role, getattr(owner, alias, None)) for name, role, alias, owner in _named(value)]


def streams(value: object) -> dict[str, None]:
    """List the names of the streams, each once."""
    return dict.fromkeys([name for name, *_ in _named(value)])


def _named(value: object) -> list[tuple[str, Role, str, object]]:
    # Asked for all the time while graphs are rewritten: a list costs a third of a generator here.
    found: list[tuple[str, Role, str, object]] = []
    kind: Any = type(value)
    for field_name, role, alias in _marked(kind):
        inner = getattr(value, field_name)
        for each in inner if isinstance(inner, tuple) else (inner,):
            if role is not None and each is not None:
                found.append((each, role, alias, value))
            elif isinstance(each, tuple):
                found += [one for member in each for one in _named(member)]
            elif each is not None:
                found += _named(each)
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


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    return None if value is None else change(value)
