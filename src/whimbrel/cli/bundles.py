"""Options that come to a command as one object, and help that lists options in sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

import click

from whimbrel.cli.options import ManyEvents

Body = TypeVar("Body", bound=Callable[..., Any])


class SectionOption(click.Option):
    """An option that the help lists under a title of its own."""

    def __init__(self, *args: Any, section: str = "Options", **about: Any) -> None:
        super().__init__(*args, **about)
        self.section = section


class SectionCommand(ManyEvents):
    """A command whose help lists its options in sections, in the order in which they are declared."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section with its options."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def bundled(name: str, kind: type[Any], *options: Callable[[Body], Body]) -> Callable[[Body], Body]:
    """Add options whose values a command gets together, as one dataclass with a field for each.

    Further fields may be named after options that stand below on the command, such as `reading`.
    """

    def add(command: Body) -> Body:
        @wraps(command)
        def run(*args: Any, **given: Any) -> Any:
            bundle = kind(**{field.name: given.pop(field.name) for field in fields(kind) if field.init})
            return command(*args, **{name: bundle}, **given)

        made: Any = run
        for option in reversed(options):
            made = option(made)
        found: Body = made
        return found

    return add
