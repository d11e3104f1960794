"""`whimbrel test`: run the tests of queries."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whimbrel.cli.gathering import gathering
from whimbrel.cli.options import Command
from whimbrel.cli.spark import log_option, spark_session
from whimbrel.errors import DataError

if TYPE_CHECKING:
    from whimbrel.testing.running import ScenarioResult, ScenarioResults


@dataclass(frozen=True)
class Reports:
    """What is measured and written besides the results."""

    junit: str | None
    coverage: bool
    fail_under: float | None


@click.command("test", cls=Command, short_help="Run the tests of queries.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-k", "select", metavar="TEXT", help="Only tests whose file or name holds this text.")
@click.option("--junit", metavar="FILE", help="Also write the results as JUnit XML, for CI systems.")
@click.option("--coverage", is_flag=True, help="Say which branches of the queries no test reaches.")
@click.option(
    "--fail-under", type=click.FloatRange(0, 100), metavar="PERCENT",
    help="Fail if fewer branches than this are reached. Turns --coverage on.",
)  # fmt: skip
@click.option(
    "--engine", type=click.Choice(["embedded", "spark"]), default="embedded", show_default=True,
    help="What runs each test as a whole: this process, or Spark. Event by event, it always runs here.",
)  # fmt: skip
@log_option
@click.option("--quiet", is_flag=True, help="Print what failed and the numbers only; no warnings.")
@click.pass_context
@gathering(reports=Reports)
def run(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    select: str | None,
    reports: Reports,
    engine: str,
    log: str | None,
    quiet: bool,
) -> None:
    """Run the tests of queries: given these events, expect these detections.

      whimbrel test late.wbt
      whimbrel test queries/ -k depot --coverage --junit results.xml

    PATH is a test file (.wbt), or a folder with such files. A test file stands beside its query:

      test a truck that does not arrive is late
        +0s     Leave   truck=T1
        +10min  Leave   truck=T2
        +50min  Arrive  truck=T2
        expect Late truck=T1 at +1h

    Every test is run over its whole input at once and event by event, and both must find the same.

    Exit status: 0 all passed, 1 some failed or too little is covered, 2 wrong usage.
    """
    from whimbrel.testing.running import find_tests, run_tests

    refuse_bad_report(reports.junit)
    try:
        find_tests(paths)
    except DataError as error:
        raise click.UsageError(str(error), ctx) from error
    marks = Marks(quiet=quiet)
    with spark_session(log=log) if engine == "spark" else nullcontext() as session:
        try:
            results = run_tests(
                paths,
                select=select,
                spark=session,
                coverage=reports.coverage or reports.fail_under is not None,
                on_result=marks,
                warn=None if quiet else lambda text: click.echo(text, err=True),
            )
        except DataError as error:
            raise click.UsageError(str(error), ctx) from error
    marks.end()
    finish(ctx, results, reports)


def refuse_bad_report(junit: str | None) -> None:
    """Stop before the tests run for a report that cannot be written."""
    if junit is not None and not Path(junit).parent.is_dir():
        raise click.UsageError(f"--junit {junit}: there is no folder {Path(junit).parent}")


class Marks:
    """A mark for each test while they run, a line for each file."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.file: Path | None = None

    def __call__(self, result: ScenarioResult) -> None:
        """Print the mark of one more test."""
        from whimbrel.testing.reporting import MARKS

        if self.quiet:
            return
        if result.file != self.file:
            self.end()
            click.echo(f"{result.file} ", nl=False)
            self.file = result.file
        click.echo(MARKS[result.status], nl=False)

    def end(self) -> None:
        """End the line."""
        if self.file is not None:
            click.echo()
        self.file = None


def finish(ctx: click.Context, results: ScenarioResults, reports: Reports) -> None:
    """Print what is to be said in the end, write the report, and set the exit status."""
    from whimbrel.testing.junit import write_junit
    from whimbrel.testing.reporting import after_marks

    click.echo("\n".join(after_marks(results)))
    if reports.junit is not None:
        write_junit(results, reports.junit)
    percent = results.coverage.percent if results.coverage is not None else 100.0
    least = reports.fail_under
    is_too_little = least is not None and percent < least
    if is_too_little:
        click.echo(f"coverage is {percent:.1f} %, less than the {least:g} % asked for", err=True)
    if is_too_little or not results.all_passed:
        ctx.exit(1)
