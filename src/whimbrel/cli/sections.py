"""Help that lists options in sections, each under a title of its own."""

from __future__ import annotations

from typing import Any

import click

from whimbrel.cli.options import ManyEvents


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
