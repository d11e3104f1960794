"""The command `whimbrel`, and how every one of its commands ends."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from whimbrel import __version__
from whimbrel.cli.backtest import backtest
from whimbrel.cli.check import check
from whimbrel.cli.detect import detect
from whimbrel.cli.explain import explain
from whimbrel.cli.fmt import fmt
from whimbrel.cli.mobile import mobile
from whimbrel.cli.options import Command
from whimbrel.cli.plan import plan
from whimbrel.cli.simulate import simulate
from whimbrel.cli.store import store
from whimbrel.cli.stream import stream
from whimbrel.cli.test import run as test
from whimbrel.cli.translate import translate
from whimbrel.cli.warm import warm
from whimbrel.cli.why import why
from whimbrel.errors import WhimbrelError

INTERRUPTED = 130
"""What shells expect of a program that was stopped with Ctrl-C."""


class Failed(click.ClickException):
    """A bad query or bad data: the message goes to standard error, the exit status is 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"error: {self.message}", file=file, err=True)


class CommandGroup(Command, click.Group):
    """A group whose commands end without a traceback when the query or the data is at fault."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _stop_writing()
        except WhimbrelError as error:
            raise Failed("\n".join([str(error), *getattr(error, "__notes__", ())])) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise Failed(f"{where}{error.strerror or error}") from error
        except KeyboardInterrupt:
            click.echo("\nstopped", err=True)
            ctx.exit(INTERRUPTED)


def _stop_writing() -> NoReturn:
    """End quietly: whoever reads our output (`| head`) has seen enough."""
    # Python flushes standard output once more at its end, which would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise click.exceptions.Exit(0)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="whimbrel", message="%(prog)s %(version)s")
def main() -> None:
    """Detect situations around things that move.

    A query says what happened, where and when; events come from files (CSV, JSON lines, Parquet,
    GeoParquet, GeoJSON). Four steps from an idea to detections:

      1. write    late.wbl:  define Late
                               detect Leave then not Arrive for 1 h
                               group by source
      2. check    whimbrel check late.wbl
      3. explain  whimbrel explain late.wbl
      4. detect   whimbrel detect late.wbl --events trips.csv --out late.jsonl
         live     whimbrel stream late.wbl --source replay:trips.csv --checkpoint state/

    `whimbrel COMMAND --help` tells more, with examples.

    Exit status: 0 done, 1 bad query or bad data, 2 wrong usage.
    """


for _command in (
    backtest,
    check,
    detect,
    explain,
    fmt,
    mobile,
    plan,
    simulate,
    store,
    stream,
    test,
    translate,
    warm,
    why,
):
    main.add_command(_command)
