"""`whimbrel store`: keep raw events in a folder by day and place, and detect in what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from whimbrel.cli.detect import STDOUT, default_rejected, refuse_bad_output
from whimbrel.cli.event_files import file_options
from whimbrel.cli.options import Command, areas_option, compile_options, reading_options
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.summary import summary as outcome_summary

if TYPE_CHECKING:
    from whimbrel.store import Store

Body = TypeVar("Body", bound=Callable[..., Any])


class StoreCommandGroup(Command, click.Group):
    """A group whose help keeps its examples as they are written."""


@click.group(cls=StoreCommandGroup, short_help="Keep raw events by day and place, and detect in them.")
def store() -> None:
    """Keep raw events in a folder of Parquet files, by the day they ended on and the place they lie in.

      whimbrel store create events --coordinates lonlat --cell 5000
      whimbrel store add events day-*.csv
      whimbrel store explain events late.wbl
      whimbrel store detect events late.wbl --since 2024-05-01 --out late.jsonl

    A query that says where or when reads only the files that can hold what it asks for; `explain` tells how
    many. The detections are the same as over all events.
    """


def _root(command: Body) -> Body:
    return click.argument("root", metavar="STORE")(command)


def _stretch(command: Body) -> Body:
    """Add the options that name a stretch of time."""
    until = click.option("--until", metavar="TIME", help="Only events that ended before this moment.")
    since = click.option(
        "--since", metavar="TIME",
        help="Only events that ended at or after this moment, such as 2024-05-01 or 2024-05-01T12:00:00Z.",
    )  # fmt: skip
    return since(until(command))


def _opened(root: str) -> Store:
    from whimbrel.store import Store

    return Store.open(root)


@store.command(cls=Command, short_help="Make an empty store.")
@_root
@click.option(
    "--coordinates", type=click.Choice(["plane", "lonlat"]),
    help="Metres in a plane, or degrees. By default those of the first events that have a location.",
)  # fmt: skip
@click.option(
    "--cell", "cell_m", type=float, default=50_000.0, show_default=True, metavar="METRES",
    help="How wide the cells are: about as wide as the regions that queries ask for.",
)  # fmt: skip
def create(root: str, coordinates: str | None, cell_m: float) -> None:
    """Make an empty store in a new folder.

      whimbrel store create events --coordinates lonlat --cell 5000

    Each cell and day is a folder of its own, so narrow cells make many small files.
    """
    from whimbrel.store import Store

    Store.create(root, cell_m=cell_m, coordinates=coordinates)
    click.echo(f"{root}: an empty store, with cells of {cell_m:g} m", err=True)


@store.command(cls=Command, short_help="Add event files to a store.")
@_root
@click.argument("events", metavar="FILE...", nargs=-1, required=True)
@file_options
@click.option(
    "--batch", metavar="NAME",
    help="A name for these events; adding a batch of the same name again replaces it.",
)  # fmt: skip
@reading_options
@click.option(
    "--rejected", metavar="FILE",
    help="Where rows go that are no events. By default NAME.rejected.jsonl in this folder, made if needed.",
)  # fmt: skip
def add(
    root: str,
    events: tuple[str, ...],
    batch: str | None,
    reading: dict[str, Any],
    rejected: str | None,
) -> None:
    """Add event files to a store: all of them or, if anything goes wrong, none.

      whimbrel store add events day-*.csv
      whimbrel store add events 2024-05-01.parquet --batch 2024-05-01

    Files are CSV, JSON lines, Parquet, GeoParquet or GeoJSON, as for `whimbrel detect`.
    """
    refused = Path(rejected) if rejected else default_rejected(STDOUT, events)
    refused.unlink(missing_ok=True)
    with ProgressBar() as bar:
        done = _opened(root).append(
            list(events),
            batch=batch,
            rejected=refused,
            progress=_steadily(bar),
            **reading,
        )
    where = f" ({refused})" if done.rejected else ""
    again = "; the batch was there already, nothing was changed" if done.is_repeated else ""
    click.echo(
        f"{done.events:,} events added in {done.files:,} files, {done.rejected:,} rejected{where}{again}",
        err=True,
    )
    for note in done.notes:
        click.echo(note, err=True)


def _steadily(bar: ProgressBar) -> Callable[[int, int | None], None]:
    """Keep the bar from saying, once all is read, that it detects: it sorts and writes then."""
    return lambda done, total: bar(done, None if total is None else total + 1)


@store.command(cls=Command, short_help="Count the events of each day.")
@_root
def summary(root: str) -> None:
    """Count the events of each day.

      whimbrel store summary events

    Days are those on which events ended, in UTC.
    """
    days = _opened(root).summary().to_pylist()
    click.echo(f"{'day':<10} {'events':>14} {'cells':>7} {'files':>7} {'MB':>9}")
    for each in [*days, *([_total(days)] if len(days) > 1 else [])]:
        click.echo(
            f"{each['day']!s:<10} {each['events']:>14,} {each['cells']:>7,} {each['files']:>7,} "
            f"{each['bytes'] / 1e6:>9,.1f}"
        )


def _total(days: list[dict[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(day[name] for day in days) for name in ("events", "files", "bytes")}
    return {"day": "all", "cells": max(day["cells"] for day in days), **sums}


@store.command(cls=Command, short_help="Join small files into larger ones.")
@_root
@click.option("--before", metavar="TIME", help="Only days that lie wholly before this moment.")
@click.option(
    "--rows", "target_rows", type=int, default=1_000_000, show_default=True, metavar="NUMBER",
    help="Files with fewer events than this are joined.",
)  # fmt: skip
@click.option("--drop-duplicates", is_flag=True, help="Leave out events whose id an earlier one has.")
def compact(root: str, before: str | None, target_rows: int, drop_duplicates: bool) -> None:
    """Join the small files of each day and cell. Others may read and add events meanwhile.

      whimbrel store compact events --before 2024-05-01

    Only programs that read the folder without Whimbrel have to wait until it is done.
    """
    with ProgressBar() as bar:
        done = _opened(root).compact(
            before=before, target_rows=target_rows, drop_duplicates=drop_duplicates, progress=_steadily(bar)
        )
    dropped = f", {done.duplicates:,} duplicate events left out" if drop_duplicates else ""
    click.echo(f"{done.files_before:,} files joined into {done.files_after:,}{dropped}", err=True)


@store.command(cls=Command, short_help="Delete old days.")
@_root
@click.option("--days", type=int, metavar="NUMBER", help="Keep today (UTC) and the days before it, so many.")
@click.option("--before", metavar="TIME", help="Delete the days that lie wholly before this moment.")
@click.option("--dry-run", is_flag=True, help="Tell what would be deleted, and delete nothing.")
def retain(root: str, days: int | None, before: str | None, dry_run: bool) -> None:
    """Delete whole days that are older than wanted.

      whimbrel store retain events --days 30 --dry-run
      whimbrel store retain events --before 2024-01-01

    Days are those on which events ended, in UTC.
    """
    if (days is None) == (before is None):
        raise click.UsageError("say either --days or --before")
    gone = _opened(root).retain(days=days, before=before, dry_run=dry_run)
    for day in gone.days:
        click.echo(day)
    verb = "would be deleted" if dry_run else "deleted"
    held = f"{gone.events:,} events, {gone.files:,} files, {gone.size / 1e6:,.1f} MB"
    click.echo(f"{len(gone.days):,} days {verb}: {held}", err=True)


@store.command(cls=Command, short_help="Tell how much of a store a query reads.")
@_root
@click.argument("query", metavar="QUERY")
@_stretch
@compile_options
def explain(root: str, query: str, since: str | None, until: str | None, **compiling: Any) -> None:
    """Tell how many files, events and bytes a query reads, and which types, times and places it asks for.

      whimbrel store explain events late.wbl --since 2024-05-01

    QUERY is a .wbl file, or - for standard input.
    """
    compiled = read_query(query, **compiling)
    show_warnings(compiled, query)
    click.echo(str(_opened(root).explain(compiled, since=since, until=until)))


@store.command(cls=Command, short_help="Find the detections of a query in stored events.")
@_root
@click.argument("query", metavar="QUERY")
@_stretch
@click.option(
    "--out", default=STDOUT, metavar="FILE",
    help="Where the detections go; - is standard output, the default.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "parquet", "geojson", "mfjson"]),
    help="How they are written. By default the ending of --out tells; standard output gets jsonl.",
)  # fmt: skip
@areas_option
@compile_options
def detect(
    root: str,
    query: str,
    since: str | None,
    until: str | None,
    out: str,
    form: str | None,
    interest_areas: bool,
    **compiling: Any,
) -> None:
    """Find the detections of a query in stored events, reading only what the query can use.

      whimbrel store detect events late.wbl --since 2024-05-01 --until 2024-06-01 --out late.jsonl

    QUERY is a .wbl file, or - for standard input. The output is that of `whimbrel detect`.
    """
    from whimbrel.io.detections import write_detections

    refuse_bad_output(out, form)
    compiled = read_query(query, **compiling)
    show_warnings(compiled, query)
    opened = _opened(root)
    refused = default_rejected(out, (query,))
    refused.unlink(missing_ok=True)
    with ProgressBar() as bar:
        outcome = opened.run(compiled, since=since, until=until, progress=bar, rejected=refused)
    write_detections(outcome.detections, out, form, interest_areas=interest_areas)
    click.echo(outcome_summary(outcome, refused), err=True)
    click.echo(str(opened.explain(compiled, since=since, until=until)).splitlines()[0], err=True)
