"""`whimbrel check`: say whether queries are fine, and what they do."""

from __future__ import annotations

from typing import Any

import click

from whimbrel.cli.options import Command, compile_options
from whimbrel.cli.queries import read_query, show_warnings, shown
from whimbrel.errors import WhimbrelError


@click.command(cls=Command, short_help="Say whether queries are fine, and what is wrong with them.")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
@compile_options
@click.pass_context
def check(ctx: click.Context, /, queries: tuple[str, ...], **settings: Any) -> None:
    """Compile queries, and say what each detects or what is wrong with it. No events are needed.

      $ whimbrel check late.wbl
      late.wbl: fine: detects Late (from Leave, Arrive), reaches back 1 h

    An error shows the line, a caret and a hint:

      error: brake.wbl: line 3, col 9: no part is named 'brek'
          where brek.speed < 10
                ^^^^^^^^^^
      hint: did you mean 'brake'?

    QUERY is a .wbl or .cpsl file, or - for standard input. The exit status is 1 if any query is bad.
    """
    outcomes = [_check(query, settings) for query in queries]
    if not all(outcomes):
        ctx.exit(1)


def _check(path: str, settings: dict[str, Any]) -> bool:
    """Compile one query and tell the outcome; give whether it is fine."""
    from whimbrel.graph.explain import summary

    try:
        query = read_query(path, **settings)
    except WhimbrelError as error:
        click.echo(f"error: {error}", err=True)
        return False
    click.echo(f"{shown(path)}: fine: {summary(query)}")
    show_warnings(query, path)
    return True
