"""`whimbrel detect`: find the detections of a query in event files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.event_files import file_options
from whimbrel.cli.gathering import Inputs, gathering
from whimbrel.cli.kernels import CompilingLine
from whimbrel.cli.monitoring import form_of, refuse_bad_report, refuse_without_mobile, write_report
from whimbrel.cli.options import (
    ManyEvents,
    areas_option,
    compile_options,
    coordinates_option,
    lateness_option,
    quiet_option,
    reading_options,
    rejected_option,
)
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.spark import log_option
from whimbrel.cli.summary import summary
from whimbrel.errors import DataError

if TYPE_CHECKING:
    from whimbrel.engine.result import Detections
    from whimbrel.engine.session import Session
    from whimbrel.graph.query import Query

STDOUT = "-"


@dataclass(frozen=True)
class DetectOutput:
    """Where results go, and in which form."""

    out: str
    form: str | None
    page: str | None
    monitor: str | None
    rejected: str | None
    interest_areas: bool

    def rejected_file(self, events: tuple[str, ...]) -> Path:
        """Name the file for rejected rows."""
        return Path(self.rejected) if self.rejected else default_rejected(self.out, events)

    def write(self, outcome: Detections, query: Query, inputs: Inputs) -> None:
        """Write the detections, and the map if one is wanted."""
        from whimbrel.io.detections import format_of, write_detections
        from whimbrel.io.frames import coordinates_of, positions, show
        from whimbrel.model.schema import Coordinates

        places = None
        events, reading = list(inputs.events), inputs.reading
        if (self.form or format_of(self.out)) == "mfjson":
            # They are read again, as for a map: how the events of a detection moved is not in its hull.
            coordinates = coordinates_of(outcome.detections) or Coordinates.PLANE
            places = positions(events, coordinates, schemas=query.schemas, **reading)
        write_detections(
            outcome.detections, self.out, self.form, positions=places, interest_areas=self.interest_areas
        )
        if self.page is not None:
            show(outcome.detections, events=events, schemas=query.schemas, **reading).save(self.page)


@dataclass(frozen=True)
class Running:
    """What runs a query, and what it tells of it."""

    engine: str
    log: str | None
    quiet: bool

    @property
    def on_spark(self) -> bool:
        """Whether Spark runs the query."""
        return self.engine == "spark"


@click.command(cls=ManyEvents, short_help="Find the detections of a query in event files.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--events", multiple=True, required=True, metavar="FILE...",
    help="Event files, folders of them, or patterns such as 'day-*.csv'.",
)  # fmt: skip
@file_options
@click.option(
    "--out",
    default=STDOUT,
    metavar="FILE",
    help="Where the detections go; - is standard output, the default.",
)
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "parquet", "geojson", "mfjson"]),
    help="How they are written. By default the ending of --out tells; standard output gets jsonl.",
)  # fmt: skip
@click.option("--map", "page", metavar="FILE.html", help="Also draw them on a map with a time slider.")
@click.option(
    "--monitor", metavar="FILE",
    help="Also write what mobile queries did: FILE.json, FILE.prom (Prometheus) or FILE.txt.",
)  # fmt: skip
@areas_option
@rejected_option
@reading_options
@coordinates_option
@lateness_option
@compile_options
@click.option(
    "--engine", type=click.Choice(["embedded", "spark"]), default="embedded", show_default=True,
    help="What runs the query: this process, or Spark on all cores of this machine. Both find the same.",
)  # fmt: skip
@log_option
@quiet_option
@gathering(inputs=Inputs, output=DetectOutput, running=Running)
def detect(query: str, inputs: Inputs, output: DetectOutput, running: Running, **compiling: Any) -> None:
    """Find the detections of a query in event files.

      whimbrel detect late.wbl --events trips.csv
      whimbrel detect late.wbl --events day-*.parquet --out late.csv --map late.html

    Each detection is one line of JSON (or a row of CSV or Parquet, or a GeoJSON feature):

      {"type": "Late", "start": "2024-05-01T08:00:00.000000Z", "end": "2024-05-01T09:00:00.000000Z",
       "geometry": "POINT (3 4)", "attributes": {"load": 3.5}, "events": ["e1"], "id": "..."}

    Event files have the columns type; time, or start and end; x and y, lon and lat, or geometry; id and
    source if there are any; every other column is an attribute. Usual names of them are known (timestamp,
    Latitude, MMSI, ...), others are told with --column. A summary goes to standard error:

      277,475 events read, 4 detections, 0 late, 0 duplicate, 0 rejected
      columns: time from 'BaseDateTime', lon from 'LON', lat from 'LAT', source from 'MMSI'
    """
    if running.on_spark and inputs.lateness is not None:
        raise click.UsageError("--lateness is for events in an order; on Spark, use `whimbrel stream`")
    refused = output.rejected_file(inputs.events)
    refuse_bad_output(output.out, output.form)
    compiled = read_query(query, **compiling)
    refuse_bad_monitor(output.monitor, compiled, query, running)
    written = {
        "--out": output.out,
        "--rejected": str(refused),
        "--map": output.page,
        "--monitor": output.monitor,
    }
    refuse_overwriting(query, inputs.events, written)
    if not running.quiet:
        show_warnings(compiled, query)
    refused.unlink(missing_ok=True)  # rejected rows of an earlier run are not kept
    sessions: list[Session] = []
    if running.on_spark:
        outcome = find_on_spark(compiled, inputs, refused, running)
    else:
        outcome = find(compiled, inputs, refused, running, sessions.append)
    output.write(outcome, compiled, inputs)
    if output.monitor is not None:
        write_report(sessions[0], output.monitor, form_of(output.monitor) or "table")
    if not running.quiet:
        click.echo(summary(outcome, refused), err=True)


def default_rejected(out: str, events: tuple[str, ...]) -> Path:
    """Name the file for rejected rows: beside the output, or in the current folder."""
    if out != STDOUT:
        return Path(out).with_name(f"{_stem(out)}.rejected.jsonl")
    return Path(f"{_stem(fspath(events[0]))}.rejected.jsonl")


def _stem(path: str) -> str:
    from whimbrel.io._streams import packing_by_name

    name = Path(path).stem if packing_by_name(path) is None else Path(Path(path).stem).stem
    plain = "".join(letter for letter in name if letter not in "*?[]")
    return plain.strip("-_.") or "events"


def refuse_overwriting(
    query: str, events: tuple[str, ...], written: dict[str, str | None], network: str | None = None
) -> None:
    """Stop before a result would replace what is read, or another result."""
    from whimbrel.io.files import find_files

    taken = {file.resolve(): "a file that is read" for path in events for file in find_files(path)}
    taken[Path(query).resolve()] = "the query"
    if network is not None:
        taken[Path(network).resolve()] = "the network"
    for option, path in written.items():
        if path is None or path == STDOUT:
            continue
        if what := taken.get(Path(path).resolve()):
            raise click.UsageError(f"{option} {path} would overwrite {what}; name another file")
        taken[Path(path).resolve()] = f"that of {option}"


def refuse_bad_output(out: str, form: str | None) -> None:
    """Stop before hours of detecting end in an output that cannot be written."""
    if out == STDOUT:
        if form == "parquet" and sys.stdout.isatty():
            raise click.UsageError("Parquet is not for a terminal; name a file with --out")
        return
    if not Path(out).parent.is_dir():
        raise DataError(f"{out}: there is no folder {Path(out).parent}")
    from whimbrel.io.atomic import refuse_packed
    from whimbrel.io.detections import ENDINGS, format_of

    refuse_packed(out, form)
    if form is None and format_of(out) is None:
        known = ", ".join(ENDINGS)
        raise DataError(f"{out}: the ending does not tell a format; known: {known}; or say --format")


def refuse_bad_monitor(path: str | None, query: Query, name: str, running: Running) -> None:
    """Stop before a report on mobile queries that could not be written."""
    if path is None:
        return
    if running.on_spark:
        raise click.UsageError("--monitor is for --engine embedded: on Spark many sessions share the work")
    refuse_bad_report("--monitor", path)
    refuse_without_mobile(query, name)


def find(
    query: Query,
    inputs: Inputs,
    rejected: Path,
    running: Running,
    opened: Callable[[Session], None] | None = None,
) -> Detections:
    """Run the query in this process."""
    from whimbrel.engine.bounded import run
    from whimbrel.warming import compile_meanwhile

    with nullcontext() if running.quiet else ProgressBar() as bar:
        ready = compile_meanwhile(query, inputs.events, None if bar is None else bar.compiling)
        return run(
            query,
            inputs.events,
            rejected=rejected,
            progress=bar,
            ready=ready,
            opened=opened,
            **inputs.settings,
        )


def find_on_spark(query: Query, inputs: Inputs, rejected: Path, running: Running) -> Detections:
    """Run the query on a local Spark."""
    from whimbrel.cli.spark import spark_session
    from whimbrel.model.reading import Reading
    from whimbrel.spark.reading import read_events
    from whimbrel.spark.running import run
    from whimbrel.warming import compile_meanwhile

    compile_meanwhile(query, inputs.events, None if running.quiet else CompilingLine())
    with nullcontext() if running.quiet else ProgressBar(), spark_session(log=running.log) as spark:
        reading = Reading.of(**inputs.reading)
        frame = read_events(spark, inputs.events, schemas=query.schemas, reading=reading)
        return run(query, frame, rejected=rejected, coordinates=inputs.coordinates, **inputs.reading)
