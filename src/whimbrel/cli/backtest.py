"""`whimbrel backtest`: what a query would have found in recorded events, and what a changed one finds."""

from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.detect import (
    STDOUT,
    default_rejected,
    refuse_bad_output,
    refuse_overwriting,
)
from whimbrel.cli.event_files import file_options
from whimbrel.cli.gathering import Inputs, gathering
from whimbrel.cli.kernels import compile_ahead
from whimbrel.cli.options import (
    ManyEvents,
    Pair,
    compile_options,
    coordinates_option,
    lateness_option,
    quiet_option,
    reading_options,
    rejected_option,
)
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import STDIN, read_query, show_warnings, shown
from whimbrel.cli.summary import summary
from whimbrel.errors import DataError

if TYPE_CHECKING:
    from whimbrel.backtesting.backtest import Backtest
    from whimbrel.graph.query import Query

REPORTS = (".html", ".json")
PLOTS = (".svg",)


@dataclass(frozen=True)
class NewQuery:
    """The new query, if there is one, and whether it may find anything else."""

    against: str | None
    new_params: tuple[tuple[str, str], ...]
    fail_on_change: bool

    def of(self, query: str) -> NewQuery:
        """Compare a query with itself if only parameters are new."""
        return replace(self, against=self.against or (query if self.new_params else None))

    def shown(self) -> str:
        """Name the new query in results, with the values that make it differ."""
        return ", ".join([shown(str(self.against)), *(f"{name}={value}" for name, value in self.new_params)])


@dataclass(frozen=True)
class BacktestOutput:
    """Where the list of detections, the reports and the picture go."""

    out: str | None
    form: str | None
    reports: tuple[str, ...]
    plot: str | None
    rejected: str | None

    def rejected_file(self, events: tuple[str, ...]) -> Path:
        """Name the file for rejected rows."""
        return Path(self.rejected) if self.rejected else default_rejected(self.out or STDOUT, events)

    def written(self, rejected: Path) -> dict[str, str | None]:
        """Name the files that are written, each by its option."""
        reports = {
            f"--report ({number})" if number else "--report": path for number, path in enumerate(self.reports)
        }
        return {"--out": self.out, "--rejected": str(rejected), "--plot": self.plot, **reports}

    def refuse_bad_endings(self) -> None:
        """Stop before a report or picture that could not be written."""
        asked: list[tuple[str, str, tuple[str, ...]]] = [("--report", path, REPORTS) for path in self.reports]
        if self.plot:
            asked.append(("--plot", self.plot, PLOTS))
        for option, path, endings in asked:
            if Path(path).suffix.lower() not in endings:
                raise click.UsageError(f"{option} {path}: the name must end in {' or '.join(endings)}")
            if not Path(path).parent.is_dir():
                raise DataError(f"{path}: there is no folder {Path(path).parent}")

    def write(self, result: Backtest) -> None:
        """Write the list, the reports and the picture that were asked for."""
        from whimbrel.io.atomic import writing
        from whimbrel.io.detections import write_detections

        if self.out is not None:
            table = result.comparison if result.is_comparison else result.detections
            write_detections(table, self.out, self.form)
        texts = {
            path: result.to_html if path.lower().endswith(".html") else result.to_json
            for path in self.reports
        }
        if self.plot is not None:
            texts[self.plot] = result.to_svg
        for path, write_text in texts.items():
            with writing(path) as file:
                file.write(write_text().encode())


@click.command(cls=ManyEvents, short_help="Tell what a query would have found, and what a changed one finds.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--events", multiple=True, required=True, metavar="FILE...",
    help="Event files, folders of them, or patterns such as 'day-*.csv'.",
)  # fmt: skip
@file_options
@click.option(
    "--against", metavar="OTHER",
    help="The new query, QUERY being the old one: tell what OTHER adds, drops and changes.",
)  # fmt: skip
@click.option(
    "--against-param", "new_params", type=Pair(), multiple=True, metavar="NAME=VALUE",
    help="A value for a parameter of OTHER, where it is not that of --param. Without --against, OTHER is "
    "QUERY itself with this value. May be repeated.",
)  # fmt: skip
@click.option(
    "--by", multiple=True, metavar="ATTRIBUTE,...",
    help="Count by these attributes of the detections. By default by what the query groups by.",
)  # fmt: skip
@click.option(
    "--timezone", default="UTC", show_default=True, metavar="NAME",
    help="Where days and hours are counted, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--out", metavar="FILE",
    help="Where the list of detections goes, byte for byte as `whimbrel detect` writes it; - is standard "
    "output, and then the summary goes to standard error. With OTHER, all that either found, with `change`.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "parquet", "geojson", "mfjson"]),
    help="How the list is written. By default the ending of --out tells; standard output gets jsonl.",
)  # fmt: skip
@click.option(
    "--report", "reports", multiple=True, metavar="FILE.html|.json",
    help="Also write a page that needs nothing else, or all counts as JSON. May be repeated.",
)  # fmt: skip
@click.option("--plot", metavar="FILE.svg", help="Also draw how often, by day and by hour of the day.")
@rejected_option
@reading_options
@coordinates_option
@lateness_option
@compile_options
@click.option("--fail-on-change", is_flag=True, help="End with exit status 1 if OTHER changes anything.")
@quiet_option
@click.pass_context
@gathering(inputs=Inputs, change=NewQuery, output=BacktestOutput)
def backtest(
    ctx: click.Context,
    /,
    query: str,
    inputs: Inputs,
    change: NewQuery,
    by: tuple[str, ...],
    timezone: str,
    output: BacktestOutput,
    quiet: bool,
    **compiling: Any,
) -> None:
    """Tell what a query would have found in recorded events: how often, when, and about what.

      whimbrel backtest late.wbl --events day-*.csv
      whimbrel backtest late.wbl --events day-*.csv --out late.jsonl --report late.html

    What a changed query would do: QUERY is the old one, OTHER the new one.

      whimbrel backtest late.wbl --against later.wbl --events day-*.csv
      whimbrel backtest late.wbl --param limit=60 --against-param limit=90 --events day-*.csv

      old (late.wbl): 38 detections
      new (later.wbl): 15 detections
      new against old: 12 same, 0 added, 23 dropped, 3 changed

    Findings are matched by type and events, so keep the names of definitions. The exit status is 0 even if
    there are differences, unless --fail-on-change is given.
    """
    change = change.of(query)
    refuse_what_cannot_be(query, change, output)
    output.refuse_bad_endings()
    refused = output.rejected_file(inputs.events)
    old, new = read_both(query, change, compiling)
    written = output.written(refused)
    refuse_overwriting(query, inputs.events, written)
    if change.against not in (None, STDIN):
        refuse_overwriting(str(change.against), (), written)
    if not quiet:
        show_warnings(old, query)
        if new is not None:
            show_warnings(new, str(change.against))
        compile_ahead(old, inputs.events)
    refused.unlink(missing_ok=True)  # rejected rows of an earlier run are not kept
    from whimbrel.backtesting.backtest import backtest as run

    with nullcontext() if quiet else ProgressBar() as bar:
        result = run(
            old,
            inputs.events,
            against=new,
            by=[name.strip() for names in by for name in names.split(",") if name.strip()] or None,
            timezone=timezone,
            rejected=refused,
            progress=bar,
            **inputs.settings,
        )
    result = result.called(shown(query), change.shown())
    output.write(result)
    if not quiet:
        tell(result, refused, to_error=output.out == STDOUT)
    if change.fail_on_change and result.is_changed:
        ctx.exit(1)


def refuse_what_cannot_be(query: str, change: NewQuery, output: BacktestOutput) -> None:
    """Stop at options that do not go together."""
    if query == STDIN and change.against == STDIN:
        raise click.UsageError("only one query can come from standard input; name a file for the other")
    if change.fail_on_change and change.against is None:
        raise click.UsageError("--fail-on-change needs a query to compare with: --against OTHER")
    if output.out is not None:
        refuse_bad_output(output.out, output.form)
    elif output.form is not None:
        raise click.UsageError("--format is for the list of detections; say where it goes with --out")


def read_both(query: str, change: NewQuery, compiling: dict[str, Any]) -> tuple[Query, Query | None]:
    """Compile the old query, and the new one if there is one."""
    old = read_query(query, **compiling)
    if change.against is None:
        return old, None
    params = dict(compiling["params"]) | dict(change.new_params)
    return old, read_query(change.against, **compiling | {"params": tuple(params.items())})


def tell(result: Backtest, rejected: Path, *, to_error: bool) -> None:
    """Print what was found; what became of the events goes to standard error, as always."""
    from whimbrel.engine.result import Detections

    width = min(shutil.get_terminal_size().columns, 100)
    text = result.summary(width)
    encoding = getattr(sys.stderr if to_error else sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding), err=to_error)
    click.echo(summary(Detections(result.detections, result.counts), rejected), err=True)
