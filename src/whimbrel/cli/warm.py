"""`whimbrel warm`: compile ahead what queries need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.kernels import CompilingLine
from whimbrel.cli.options import Command, quiet_option
from whimbrel.cli.queries import read_query

if TYPE_CHECKING:
    from whimbrel.warming import Warmed


@click.command(cls=Command, short_help="Compile ahead what queries need, for images and executors.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option(
    "--processes", type=click.IntRange(min=1), metavar="N",
    help="How many kernels are compiled at once; by default one for every core.",
)  # fmt: skip
@quiet_option
def warm(queries: tuple[str, ...], processes: int | None, quiet: bool) -> None:
    """Compile ahead what queries need; without any, what all kinds of queries need.

      whimbrel warm
      whimbrel warm late.wbl meet.wbl
      NUMBA_CACHE_DIR=/opt/kernels whimbrel warm late.wbl

    A few events are detected without compiling anything. For more, the parts of the engine that a query runs
    (kernels) are compiled to machine code when it runs for the first time, which takes some seconds up to
    half a minute, and kept on disk for all later runs. This command does it ahead: while an image is built,
    or on a machine before its Spark executors start. What is there already is not compiled again.

    The machine code is kept beside the package if that folder can be written to, else in the user's cache
    folder, or in the folder that NUMBA_CACHE_DIR names; it says where, and how much:

      compiled 10 kernels, 0 were there; 1.8 MB of machine code in /opt/kernels/...
    """
    from whimbrel.warming import warm as compile_ahead

    wanted: list[Any] = [read_query(query) for query in queries]
    what = "kernels for these queries" if queries else "kernels for all kinds of queries"
    done = compile_ahead(*wanted, report=None if quiet else CompilingLine(what=what), processes=processes)
    if not quiet:
        click.echo(told(done), err=True)


def told(done: Warmed) -> str:
    """Say what was compiled, and where it is kept."""
    kernels = f"{done.compiled} kernel{'' if done.compiled == 1 else 's'}"
    where = ", ".join(map(str, done.folders))
    return f"compiled {kernels}, {done.kept} were there; {done.bytes / 1e6:.1f} MB of machine code in {where}"
