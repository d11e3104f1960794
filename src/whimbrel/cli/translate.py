"""`whimbrel translate`: write a query in the other language."""

from __future__ import annotations

import click

from whimbrel.cli.options import Command
from whimbrel.cli.queries import STDIN, read_text, shown
from whimbrel.errors import QueryError


@click.command(cls=Command, short_help="Write a query in the other language.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--to", "language", type=click.Choice(["wbl", "cpsl"]), required=True, help="The language to write it in."
)
def translate(query: str, language: str) -> None:
    """Write CPSL in the Whimbrel language, or a query in CPSL if it has a form there. Comments are left out.

      whimbrel translate fleet.cpsl --to wbl
      whimbrel translate late.wbl --to cpsl

    The result goes to standard output. QUERY is a .cpsl file for --to wbl and a .wbl file for --to cpsl, or -
    for standard input.
    """
    from whimbrel.lang.cpsl import from_wbl, to_wbl

    wanted = ".cpsl" if language == "wbl" else ".wbl"
    if query != STDIN and not query.endswith(wanted):
        raise QueryError(f"{query}: only {wanted} files can be translated to {language}")
    write = to_wbl if language == "wbl" else from_wbl
    text = read_text(query)
    if not text.strip():
        raise QueryError(f"{shown(query)}: there is nothing to translate", hint="write a query into it first")
    click.echo(write(text, shown(query)), nl=False)
