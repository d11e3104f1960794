"""Spark for the commands that use it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import click

from whimbrel.errors import MissingDependency


def require_spark() -> None:
    """Stop, saying what to install, where PySpark is missing."""
    if find_spec("pyspark") is None:
        raise MissingDependency("pyspark", "running on Spark", "spark")


log_option = click.option(
    "--log", metavar="FILE",
    help="Where Spark's log and the traces of its errors go. By default ~/.local/state/whimbrel/spark.log.",
)  # fmt: skip


@contextmanager
def spark_session(packages: tuple[str, ...] = (), log: str | None = None) -> Iterator[Any]:
    """Start Spark on this machine, with more packages by their Maven coordinates, and stop it in the end.

    What Spark raises meanwhile is raised in plain words.
    """
    require_spark()
    from whimbrel.spark.errors import plain_errors
    from whimbrel.spark.session import local_session

    settings = {"spark.jars.packages": ",".join(packages)} if packages else {}
    session = local_session(settings=settings, log=log)
    with warnings.catch_warnings(), plain_errors():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show
        try:
            yield session
        except Exception:
            # Of two errors the first one tells more: a Java process that has ended cannot be stopped, either.
            with suppress(Exception):
                session.stop()
            raise
        session.stop()


def _show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show a warning as the command line shows its own."""
    if issubclass(category, UserWarning):
        click.echo(f"warning: {message}", err=True)
