"""`whimbrel fmt`: lay queries out in the one standard form."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from whimbrel.cli.options import Command
from whimbrel.cli.queries import STDIN, read_text, shown
from whimbrel.errors import QueryError, WhimbrelError


@click.command(cls=Command, short_help="Lay query files out in the standard form.")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
@click.option("--check", "mode", flag_value="check", help="Change nothing; say which files would change.")
@click.option("--diff", "mode", flag_value="diff", help="Change nothing; print what would change.")
@click.pass_context
def fmt(ctx: click.Context, /, queries: tuple[str, ...], mode: str | None) -> None:
    """Lay query files out in the one standard form. Comments stay.

    Files are rewritten in place; - reads standard input and writes standard output.

      whimbrel fmt late.wbl
      whimbrel fmt --check queries/*.wbl
      echo 'define Warm detect Temp(val>25)' | whimbrel fmt -

    With --check or --diff, the exit status is 1 if a file is not in that form.
    """
    outcomes = [_format(query, mode) for query in queries]
    if not all(outcomes):
        ctx.exit(1)


def _format(path: str, mode: str | None) -> bool:
    """Lay one query out, or tell how it would change; give whether all is well."""
    from whimbrel.lang.wbl.format import format_text

    try:
        if path.endswith((".json", ".cpsl")):
            raise QueryError(
                f"{path}: only the Whimbrel language has a standard form", hint="give .wbl files"
            )
        before = read_text(path)
        after = format_text(before, shown(path))
    except WhimbrelError as error:
        click.echo(f"error: {error}", err=True)
        return False
    if mode == "check":
        if before != after:
            click.echo(f"{shown(path)} would change")
    elif mode == "diff":
        click.echo(_difference(before, after, shown(path)), nl=False)
    elif path == STDIN:
        click.echo(after, nl=False)
    elif before != after:
        Path(path).write_text(after, encoding="utf-8", newline="\n")
        click.echo(f"{path} changed", err=True)
    return mode is None or before == after


def _difference(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, f"{name} (standard form)", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)
