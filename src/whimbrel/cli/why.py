"""`whimbrel why`: say why a query detected something in event files, or did not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from whimbrel.cli.event_files import file_options
from whimbrel.cli.gathering import Inputs, gathering
from whimbrel.cli.kernels import compile_ahead
from whimbrel.cli.options import (
    Duration,
    ManyEvents,
    compile_options,
    coordinates_option,
    reading_options,
)
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.errors import DataError
from whimbrel.model.time import instant


@dataclass(frozen=True)
class Asked:
    """What is to be explained, and how much of it."""

    keys: tuple[str, ...]
    at: str | None
    around: str | None
    limit: int
    focal: str | None


@click.command(cls=ManyEvents, short_help="Say why a query detected something, or did not.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--events", multiple=True, required=True, metavar="FILE...",
    help="Event files, folders of them, or patterns such as 'day-*.csv'.",
)  # fmt: skip
@file_options
@click.option(
    "--key", "keys", multiple=True, metavar="[NAME=]VALUE",
    help="Only this group, such as vehicle=A; where the query has one key, its name may be left out. May be "
    "repeated.",
)  # fmt: skip
@click.option(
    "--focal", metavar="KEY",
    help="Of a query that follows something: only this object, by the key that tells objects apart.",
)  # fmt: skip
@click.option(
    "--at", metavar="TIME",
    help="Only around this time: ISO 8601, or a number in the time unit (since 1970 UTC).",
)  # fmt: skip
@click.option(
    "--around", type=Duration(), metavar="DURATION",
    help="How far around --at. By default as far as the query reaches back.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="text: for people; json: for programs.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(min=1), default=5, show_default=True, metavar="NUMBER",
    help="How many misses to show for each definition; the others are counted.",
)  # fmt: skip
@reading_options
@coordinates_option
@click.option(
    "--lateness", type=Duration(), metavar="DURATION",
    help="Take events in the order they stand in, as a live stream would, and say which came too late. By "
    "default everything is sorted first, and nothing is late.",
)  # fmt: skip
@compile_options
@click.option("--quiet", is_flag=True, help="Print the explanation and errors only: no warnings.")
@gathering(inputs=Inputs, asked=Asked)
def why(query: str, inputs: Inputs, asked: Asked, form: str, quiet: bool, **compiling: Any) -> None:
    """Say why a query detected something in event files, or did not.

      whimbrel why brake.wbl --events drive.csv --key vehicle=A
      whimbrel why brake.wbl --events drive.csv --key A --at 2024-05-01T12:00:03Z
      whimbrel why brake.wbl --events drive.csv --format json

    The query runs over the events as `whimbrel detect` runs it. Then the partial matches are searched: how
    far each came, and which condition stopped it, with the values it saw. The nearest miss comes first:

      Brake: no detection
        nearest misses (1):
        1. 1 of 2 parts (vehicle = A)
           a: Position p0 at 2024-05-01T12:00:00Z
           b: Position p1 at 2024-05-01T12:00:03Z
           -> b: b.speed was 25, needed < 20 (a.speed / 2)

    What was late, delivered twice or rejected is listed at the end.
    """
    compiled = read_query(query, **compiling)
    if not quiet:
        show_warnings(compiled, query)
        compile_ahead(compiled, inputs.events)
    from whimbrel.whynot import why as explain_why

    explanation = explain_why(
        compiled,
        list(inputs.events),
        key=_key(asked.keys),
        at=None if asked.at is None else _moment(asked.at, inputs.reading.get("time_unit")),
        around=asked.around,
        limit=asked.limit,
        focal=asked.focal,
        **inputs.settings,
    )
    click.echo(
        json.dumps(explanation.to_dict(), ensure_ascii=False, indent=2)
        if form == "json"
        else str(explanation)
    )


def _key(texts: tuple[str, ...]) -> dict[str, str] | str | None:
    """Read keys as they are given: NAME=VALUE, as many as there are, or one value alone."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    bare = next((text for text in texts if "=" not in text), None)
    if bare is not None:
        raise click.UsageError(f"--key {bare}: where there are several, each is NAME=VALUE")
    pairs = [text.partition("=") for text in texts]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _moment(text: str, time_unit: str | None) -> int:
    """Read a time as event files have it."""
    from whimbrel.model.times import FACTORS, unit_of

    try:
        number = float(text)
        unit = time_unit or unit_of(abs(number))
        return round(number * FACTORS[unit]) if unit in FACTORS else round(number / 1_000)
    except (ValueError, OverflowError):
        pass
    try:
        return instant(text)
    except DataError as error:
        raise click.UsageError(f"--at {error}") from error
