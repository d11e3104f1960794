"""`whimbrel explain`: show the operators that a query becomes."""

from __future__ import annotations

from typing import Any

import click

from whimbrel.cli.options import Command, Rate, compile_options
from whimbrel.cli.queries import read_query, show_warnings


@click.command(cls=Command, short_help="Show what a query becomes: its operators, windows and memory.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "json"]), default="text", show_default=True,
    help="text: a tree; mermaid: a flowchart for Markdown pages; json: for programs.",
)  # fmt: skip
@click.option(
    "--rate", "rates", type=Rate(), multiple=True, metavar="TYPE=NUMBER",
    help="Events a second of a type, for the estimate of memory; 1 where none is given. May be repeated.",
)  # fmt: skip
@click.option("--before", is_flag=True, help="Show the operators as the query says them (the default).")
@click.option(
    "--after", is_flag=True,
    help="Show the operators as they run, and what each rewrite changed. Give both to compare.",
)  # fmt: skip
@compile_options
def explain(
    query: str,
    form: str,
    rates: tuple[tuple[str, float], ...],
    before: bool,
    after: bool,
    **settings: Any,
) -> None:
    """Show the operators that a query becomes, from what it reports down to the events it reads.

    For each operator: what it selects (windows, dependencies between them, conditions), what it uses up,
    how it is parted, how far back it reaches, and about how many events it remembers.

      whimbrel explain late.wbl
      whimbrel explain late.wbl --rate Leave=0.5 --rate Arrive=20
      whimbrel explain late.wbl --format mermaid > late.mmd
      whimbrel explain late.wbl --before --after

    QUERY is a .wbl or .cpsl file, or - for standard input.
    """
    from whimbrel.graph.explain import explain as explained

    compiled = read_query(query, **settings)
    show_warnings(compiled, query)
    stage = "both" if before and after else "after" if after else "before"
    click.echo(explained(compiled, form, rates=dict(rates), stage=stage))
