"""Options of a command gathered into objects, so that what belongs together goes on together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from whimbrel.model.reading import ReadSettings

Body = TypeVar("Body", bound=Callable[..., Any])


def gathering(**kinds: type) -> Callable[[Body], Body]:
    """Hand a command its options as dataclasses, which have a field for each.

    It stands below the options, whose order is that of the help.
    """

    def gather(command: Body) -> Body:
        @wraps(command)
        def gathered(*args: Any, **given: Any) -> Any:
            objects = {
                name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
                for name, kind in kinds.items()
            }
            return command(*args, **objects, **given)

        return cast("Body", gathered)

    return gather


@dataclass(frozen=True)
class Inputs:
    """The events that a command reads, and how they are taken."""

    events: tuple[str, ...]
    reading: ReadSettings
    coordinates: str | None
    lateness: str | None

    @property
    def settings(self) -> dict[str, Any]:
        """How the events are taken, as `whimbrel.run` has it."""
        return {**self.reading, "coordinates": self.coordinates, "lateness": self.lateness}
