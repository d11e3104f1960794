"""`whimbrel simulate`: run a named scenario on a simulated network."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whimbrel.cli.options import Command, Pair, quiet_option
from whimbrel.cli.progress import ProgressBar

if TYPE_CHECKING:
    from whimbrel.sim.scenarios import Scenario


@click.command(cls=Command, short_help="Run a scenario on a simulated network.")
@click.argument("name", metavar="SCENARIO", required=False)
@click.option(
    "--set", "given", type=Pair(), multiple=True, metavar="KEY=VALUE",
    help="Another value for a parameter, such as cars=100; lists with commas. May be repeated.",
)  # fmt: skip
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="The folder for results.json, table.txt and plots. Without it, the table is printed.",
)  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="List the scenarios and their parameters.")
@quiet_option
@click.pass_context
def simulate(
    ctx: click.Context, /, name: str | None, given: tuple[tuple[str, str], ...], out: Path | None,
    *, lists: bool, quiet: bool,
) -> None:  # fmt: skip
    """Run a scenario on a simulated network: brokers, links with schedules, movers, plans.

      whimbrel simulate --list
      whimbrel simulate hierarchy --set cars=100 --out results/

    The same parameters and the same seed give the same figures.
    """
    from whimbrel.sim.report import table, write_report
    from whimbrel.sim.scenarios import SCENARIOS
    from whimbrel.sim.scenarios.registry import find

    if lists:
        for each in SCENARIOS.values() if name is None else [find(name)]:
            click.echo(_described(each))
        return
    if name is None:
        raise click.UsageError("say which scenario; `whimbrel simulate --list` lists them", ctx)
    chosen = find(name)
    settings = chosen.settings(dict(given))
    bar = ProgressBar(doing=("simulating", "writing"))
    with nullcontext() if quiet else bar:
        results = chosen.run(settings, bar)
    if out is None or not quiet:
        click.echo(table(results.rows))
        for text, value in results.notes.items():
            click.echo(f"{text}: {value}")
    if out is not None:
        files = write_report(name, settings, results, out)
        if not quiet:
            click.echo(f"written: {', '.join(str(file) for file in files)}", err=True)


def _described(scenario: Scenario) -> str:
    lines = [f"{scenario.name}: {scenario.help}"]
    for name, parameter in scenario.parameters.items():
        default = parameter.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        lines.append(f"    {name}={text}  {parameter.help}")
    return "\n".join(lines)
