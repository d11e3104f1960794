"""State that is saved and loaded as its class declares it, attribute by attribute."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from whimbrel.engine.snapshot import Blocks


@runtime_checkable
class Savable(Protocol):
    """What writes its own state."""

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        ...

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        ...


class SavedState:
    """An object whose state is what the attributes named in `state` hold.

    An attribute holds an array, several of them (a named tuple or a frozen dataclass of arrays), something
    that saves itself, or what JSON can hold. It must hold a value of that kind from the beginning, by which
    `load` knows how to read it.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        for attribute in self.state:
            _save(blocks, f"{name}/{attribute}", self.in_use(attribute))

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        for attribute in self.state:
            setattr(self, attribute, _load(blocks, f"{name}/{attribute}", getattr(self, attribute)))
        self.loaded()

    def in_use(self, attribute: str) -> Any:
        """Give what is saved of an attribute: of arrays that grow ahead, the part that is in use."""
        return getattr(self, attribute)

    def loaded(self) -> None:
        """Make anew what follows from the state that was read."""


def _save(blocks: Blocks, name: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        blocks.put_array(name, value)
    elif (arrays := _arrays(value)) is not None:
        blocks.put_arrays(name, arrays)
    elif isinstance(value, Savable):
        value.save(blocks, name)
    else:
        blocks.put_json(name, value)


def _load(blocks: Blocks, name: str, known: Any) -> Any:
    if isinstance(known, np.ndarray):
        return blocks.array(name)
    if _arrays(known) is not None:
        return type(known)(**blocks.arrays(name))
    if isinstance(known, Savable):
        known.load(blocks, name)
        return known
    return blocks.json(name)


def _arrays(value: Any) -> dict[str, np.ndarray] | None:
    """Take a record of arrays apart; None for everything else."""
    if is_dataclass(value) and not isinstance(value, Savable):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    return None
