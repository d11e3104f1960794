"""`whimbrel backtest`: what a query would have found in recorded events, and what a changed one finds."""

from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext
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
def backtest(
    ctx: click.Context,
    /,
    query: str,
    events: tuple[str, ...],
    against: str | None,
    new_params: tuple[tuple[str, str], ...],
    by: tuple[str, ...],
    timezone: str,
    out: str | None,
    form: str | None,
    reports: tuple[str, ...],
    plot: str | None,
    rejected: str | None,
    reading: dict[str, Any],
    coordinates: str | None,
    lateness: str | None,
    fail_on_change: bool,
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
    against = against or (query if new_params else None)
    refuse_what_cannot_be(query, against, form=form, out=out, fail_on_change=fail_on_change)
    refuse_bad_endings(reports, plot)
    refused = Path(rejected) if rejected else default_rejected(out or STDOUT, events)
    old, new = read_both(query, against, new_params, compiling)
    written = {"--out": out, "--rejected": str(refused), "--plot": plot}
    written |= {f"--report ({number})" if number else "--report": path for number, path in enumerate(reports)}
    refuse_overwriting(query, events, written)
    if against not in (None, STDIN):
        refuse_overwriting(str(against), (), written)
    if not quiet:
        show_warnings(old, query)
        if new is not None:
            show_warnings(new, str(against))
        compile_ahead(old, events)
    result = _run(
        old,
        new,
        events,
        refused,
        quiet=quiet,
        by=[name.strip() for names in by for name in names.split(",") if name.strip()] or None,
        timezone=timezone,
        coordinates=coordinates,
        lateness=lateness,
        **reading,
    )
    result = result.called(shown(query), name_of_new(against, new_params))
    write(result, out, form, reports, plot)
    if not quiet:
        tell(result, refused, to_error=out == STDOUT)
    if fail_on_change and result.is_changed:
        ctx.exit(1)


def name_of_new(against: str | None, params: tuple[tuple[str, str], ...]) -> str:
    """Name the new query in results, with the values that make it differ."""
    return ", ".join([shown(str(against)), *(f"{name}={value}" for name, value in params)])


def refuse_what_cannot_be(
    query: str, against: str | None, *, form: str | None, out: str | None, fail_on_change: bool
) -> None:
    """Stop at options that do not go together."""
    if query == STDIN and against == STDIN:
        raise click.UsageError("only one query can come from standard input; name a file for the other")
    if fail_on_change and against is None:
        raise click.UsageError("--fail-on-change needs a query to compare with: --against OTHER")
    if out is not None:
        refuse_bad_output(out, form)
    elif form is not None:
        raise click.UsageError("--format is for the list of detections; say where it goes with --out")


def refuse_bad_endings(reports: tuple[str, ...], plot: str | None) -> None:
    """Stop before a report or picture that could not be written."""
    asked: list[tuple[str, str, tuple[str, ...]]] = [("--report", path, REPORTS) for path in reports]
    if plot:
        asked.append(("--plot", plot, PLOTS))
    for option, path, endings in asked:
        if Path(path).suffix.lower() not in endings:
            raise click.UsageError(f"{option} {path}: the name must end in {' or '.join(endings)}")
        if not Path(path).parent.is_dir():
            raise DataError(f"{path}: there is no folder {Path(path).parent}")


def read_both(
    query: str, against: str | None, new_params: tuple[tuple[str, str], ...], compiling: dict[str, Any]
) -> tuple[Query, Query | None]:
    """Compile the old query, and the new one if there is one."""
    old = read_query(query, **compiling)
    if against is None:
        return old, None
    params = dict(compiling["params"]) | dict(new_params)
    return old, read_query(against, **compiling | {"params": tuple(params.items())})


def _run(
    old: Query,
    new: Query | None,
    events: tuple[str, ...],
    rejected: Path,
    *,
    quiet: bool,
    **settings: Any,
) -> Backtest:
    """Run the queries; rejected rows of an earlier run are not kept."""
    from whimbrel.backtesting.backtest import backtest as run

    rejected.unlink(missing_ok=True)
    with nullcontext() if quiet else ProgressBar() as bar:
        return run(old, events, against=new, rejected=rejected, progress=bar, **settings)


def write(
    result: Backtest, out: str | None, form: str | None, reports: tuple[str, ...], plot: str | None
) -> None:
    """Write the list, the reports and the picture that were asked for."""
    from whimbrel.io.atomic import writing
    from whimbrel.io.detections import write_detections

    if out is not None:
        write_detections(result.comparison if result.is_comparison else result.detections, out, form)
    texts = {path: result.to_html if path.lower().endswith(".html") else result.to_json for path in reports}
    if plot is not None:
        texts[plot] = result.to_svg
    for path, write_text in texts.items():
        with writing(path) as file:
            file.write(write_text().encode())


def tell(result: Backtest, rejected: Path, *, to_error: bool) -> None:
    """Print what was found; what became of the events goes to standard error, as always."""
    from whimbrel.engine.bounded import Outcome

    width = min(shutil.get_terminal_size().columns, 100)
    text = result.summary(width)
    encoding = getattr(sys.stderr if to_error else sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding), err=to_error)
    click.echo(summary(Outcome(result.detections, result.counts), rejected), err=True)
