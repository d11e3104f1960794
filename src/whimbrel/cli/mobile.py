"""`whimbrel mobile`: what queries that follow objects do, and what that takes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.detect import STDOUT, default_rejected, refuse_overwriting
from whimbrel.cli.event_files import file_options
from whimbrel.cli.gathering import Inputs, gathering
from whimbrel.cli.monitoring import FORMS, form_of, refuse_bad_report, refuse_without_mobile, write_report
from whimbrel.cli.options import (
    Command,
    ManyEvents,
    compile_options,
    coordinates_option,
    lateness_option,
    quiet_option,
    reading_options,
    rejected_option,
)
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.summary import summary

if TYPE_CHECKING:
    from whimbrel.engine.mobile.measures import By
    from whimbrel.engine.session import Session
    from whimbrel.graph.query import Query


class MobileCommandGroup(Command, click.Group):
    """A group whose help keeps its examples as they are written."""


@click.group(cls=MobileCommandGroup, short_help="See what queries that follow objects do.")
def mobile() -> None:
    """See what queries that follow objects do, and what that takes.

      whimbrel mobile report rescue.wbl --events day.parquet
      whimbrel mobile report rescue.wbl --events day.parquet --quality --by focal --format json

    A query follows objects if it says `around ...`. Their deliveries come from `whimbrel detect`.
    """


@dataclass(frozen=True)
class Report:
    """What is reported, in which form, and where to."""

    by: By
    form: str | None
    quality: bool
    out: str
    rejected: str | None
    quiet: bool

    @property
    def chosen(self) -> str:
        """The form: as asked for, or as the ending of the file says."""
        return self.form or form_of(self.out) or "table"


@mobile.command(cls=ManyEvents, short_help="Run a query over event files, and report what it did.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--events", multiple=True, required=True, metavar="FILE...",
    help="Event files, folders of them, or patterns such as 'day-*.csv'.",
)  # fmt: skip
@file_options
@click.option(
    "--by", type=click.Choice(["query", "focal"]), default="query", show_default=True,
    help="A report on each mobile query, or on each object that it follows.",
)  # fmt: skip
@click.option(
    "--quality", is_flag=True,
    help="Measure precision and recall at every location update, too; this takes time and memory.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(FORMS),
    help="How it is written. By default the ending of --out tells (.txt, .json, .prom), or else as a table.",
)  # fmt: skip
@click.option(
    "--out", default=STDOUT, metavar="FILE",
    help="Where the report goes; - is standard output, the default.",
)  # fmt: skip
@rejected_option
@reading_options
@coordinates_option
@lateness_option
@compile_options
@quiet_option
@gathering(inputs=Inputs, report=Report)
def report(query: str, inputs: Inputs, report: Report, **compiling: Any) -> None:
    """Run a query over event files, and report what its mobile queries did and what that took.

      whimbrel mobile report rescue.wbl --events day.parquet
      whimbrel mobile report rescue.wbl --events day.parquet --by focal --format json
      whimbrel mobile report rescue.wbl --events day.parquet --quality --out rescue.prom

    It tells, among others, how often interests began (switches), what was delivered (live, historical), how
    many events were streamed to runs of single interests, how many rows their operators took (steps), and
    the memory and processor time of all that. With --quality, precision and recall of the interests as
    well: how well they stand for what is around the objects while these move on.

    QUERY is a .wbl file with `around ...`, or - for standard input.
    """
    refused = Path(report.rejected) if report.rejected else default_rejected(report.out, inputs.events)
    compiled = read_query(query, **compiling)
    refuse_without_mobile(compiled, query)
    refuse_overwriting(query, inputs.events, {"--out": report.out, "--rejected": str(refused)})
    if report.out != STDOUT:
        refuse_bad_report("--out", report.out, by_ending=report.form is None)
    if not report.quiet:
        show_warnings(compiled, query)
    refused.unlink(missing_ok=True)  # rejected rows of an earlier run are not kept
    session = _run(compiled, inputs, refused, report)
    write_report(session, report.out, report.chosen, by=report.by)


def _run(query: Query, inputs: Inputs, rejected: Path, report: Report) -> Session:
    from whimbrel.engine.bounded import run
    from whimbrel.warming import compile_meanwhile

    opened: list[Session] = []
    with nullcontext() if report.quiet else ProgressBar() as bar:
        ready = compile_meanwhile(query, inputs.events, None if bar is None else bar.compiling)
        outcome = run(
            query,
            inputs.events,
            rejected=rejected,
            progress=bar,
            ready=ready,
            opened=lambda session: opened.append(_measuring(session, report.quality)),
            **inputs.settings,
        )
    if not report.quiet:
        click.echo(summary(outcome, rejected), err=True)
    return opened[0]


def _measuring(session: Session, quality: bool) -> Session:
    session.watch_memory()
    if quality:
        session.measure_quality()
    return session
