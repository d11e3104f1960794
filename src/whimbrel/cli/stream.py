"""`whimbrel stream`: find the detections of a query in events as they come."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.gathering import gathering
from whimbrel.cli.kernels import CompilingLine
from whimbrel.cli.options import Command, Duration, compile_options, reading_options
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.spark import log_option, require_spark, spark_session
from whimbrel.model.time import format_instant

if TYPE_CHECKING:
    from whimbrel.spark.sinks import Sink

EVERY_S = 0.2
"""How often the progress is looked at."""


@dataclass(frozen=True)
class Places:
    """Where events come from, and where detections, progress and what was set aside go."""

    source: str
    sinks: tuple[str, ...]
    checkpoint: str
    schema: str | None
    set_aside: str | None

    def routed(self) -> Sink:
        """Open the sinks."""
        from whimbrel.spark.routing import Routed, SideOutputFiles
        from whimbrel.spark.sinks import open_sink

        aside = SideOutputFiles(self.set_aside) if self.set_aside else None
        return Routed([open_sink(sink) for sink in self.sinks], aside)


@dataclass(frozen=True)
class Timing:
    """How events are ordered and partitioned: the settings of `whimbrel.spark.outcomes`."""

    lateness: str
    heartbeat: str | None
    shards: int | None
    coordinates: str | None


@dataclass(frozen=True)
class StreamRunning:
    """When micro-batches run, and with what."""

    trigger: str | None
    once: bool
    packages: tuple[str, ...]
    log: str | None
    quiet: bool


@click.command(cls=Command, short_help="Find the detections of a query in events as they come.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--source", required=True, metavar="KIND:PLACE",
    help="Where events come from: replay:FILE, folder:PATH, kafka://HOST:PORT/TOPIC or "
    "mqtt://HOST:PORT/TOPIC, with options behind a question mark.",
)  # fmt: skip
@click.option(
    "--sink", "sinks", multiple=True, default=["console:"], metavar="KIND:PLACE",
    help="Where detections go: console:, folder:PATH, table:NAME, kafka://HOST:PORT/TOPIC or webhook:URL. "
    "May be repeated; by default the console.",
)  # fmt: skip
@click.option(
    "--checkpoint", required=True, metavar="FOLDER",
    help="Where progress and state are kept. Started again with the same folder, the stream goes on where it "
    "was, and nothing is lost or written twice.",
)  # fmt: skip
@click.option(
    "--schema", metavar="COLUMNS", help="The columns of the events, where the source cannot know them."
)
@click.option(
    "--set-aside", metavar="FOLDER",
    help="Also keep the events that were late, delivered again or no events, as JSON with the reason.",
)  # fmt: skip
@click.option(
    "--lateness", type=Duration(), default="0s", show_default=True, metavar="DURATION",
    help="How long to wait for events that are out of order; later ones are set aside.",
)  # fmt: skip
@click.option(
    "--heartbeat", type=Duration(), metavar="DURATION",
    help="Let time follow the clock on the wall, this far behind, also while no events come.",
)  # fmt: skip
@click.option(
    "--shards", type=click.IntRange(1), help="How many parts the events are partitioned into, for good."
)
@click.option("--trigger", metavar="DURATION", help="How often to look for events, such as '5 seconds'.")
@click.option("--once", is_flag=True, help="Process what is there now, and end.")
@reading_options
@click.option("--coordinates", type=click.Choice(["plane", "lonlat"]), help="Metres in a plane, or degrees.")
@compile_options
@click.option(
    "--package", "packages", multiple=True, metavar="COORDINATES", help="More Spark packages to load."
)
@log_option
@click.option("--quiet", is_flag=True, help="Print errors only: no progress, no warnings.")
@gathering(places=Places, timing=Timing, running=StreamRunning)
def stream(
    query: str,
    places: Places,
    timing: Timing,
    running: StreamRunning,
    reading: dict[str, Any],
    **compiling: Any,
) -> None:
    """Find the detections of a query in events as they come, on Spark, until it is stopped (Ctrl-C).

      whimbrel stream late.wbl --source replay:trips.csv?speed=600 --checkpoint state/
      whimbrel stream late.wbl --source kafka://127.0.0.1:9092/trips --schema 'type STRING, time TIMESTAMP'
               --sink folder:found/ --lateness 30s --checkpoint state/

    Every micro-batch is told on standard error:

      #4  1,200 events, 3 detections, 0 late, 0 duplicate, 0 rejected; time 2024-05-01T09:00:00.000000Z
    """
    if running.once and running.trigger:
        raise click.UsageError("--once and --trigger exclude each other")
    compiled = read_query(query, **compiling)
    refuse_bad_places(places.source, places.sinks)
    from whimbrel.warming import compile_meanwhile

    quiet = running.quiet
    if not quiet:
        show_warnings(compiled, query)
    compile_meanwhile(compiled, None, None if quiet else CompilingLine())
    packages = packages_for((places.source, *places.sinks), running.packages)
    with spark_session(packages, running.log) as spark:
        from whimbrel.spark import outcomes
        from whimbrel.spark.frames import notes_of
        from whimbrel.spark.sinks import start
        from whimbrel.spark.sources import open_source, register

        register(spark)
        events = open_source(spark, places.source, schema=places.schema, schemas=compiled.schemas, **reading)
        rows = outcomes(compiled, events, **asdict(timing), **reading)
        if not quiet:
            for note in notes_of(compiled, events, **reading):
                click.echo(note, err=True)
        started = start(
            rows,
            places.routed(),
            checkpoint=places.checkpoint,
            trigger=running.trigger,
            available_now=running.once,
        )
        watch(started, quiet=quiet)


def refuse_bad_places(source: str, sinks: tuple[str, ...]) -> None:
    """Stop before Spark is started for a source or a sink that there is not."""
    require_spark()
    from whimbrel.spark.sinks import open_sink
    from whimbrel.spark.sources import check_source

    check_source(source)
    for sink in sinks:
        open_sink(sink)


def packages_for(specs: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Name the Spark packages that sources and sinks need."""
    if not any(spec.startswith("kafka:") for spec in specs):
        return more
    from whimbrel.spark.sources import KAFKA_PACKAGE

    return (KAFKA_PACKAGE, *more)


def watch(running: Any, *, quiet: bool) -> None:
    """Tell every micro-batch until the stream ends, which Ctrl-C asks it to do."""
    last_shown = -1
    try:
        while True:
            is_active = running.isActive
            if not quiet:
                for progress in running.recentProgress:
                    if progress["batchId"] > last_shown and progress["observedMetrics"]:
                        last_shown = progress["batchId"]
                        click.echo(line(progress), err=True)
            if not is_active:
                break
            time.sleep(EVERY_S)
        running.awaitTermination()  # raises what the stream failed with
    except KeyboardInterrupt:
        running.stop()
        raise


def line(progress: Any) -> str:
    """Tell what a micro-batch did."""
    counts = progress["observedMetrics"]["whimbrel"].asDict()
    numbers = {name: counts.get(name) or 0 for name in counts}
    watermark = counts.get("watermark")
    moment = f"; time {format_instant(watermark)}" if watermark and abs(watermark) < 2**57 else ""
    return (
        f"#{progress['batchId']}  {numbers['received']:,} events, {numbers['detections']:,} detections, "
        f"{numbers['late']:,} late, {numbers['duplicate']:,} duplicate, "
        f"{numbers['rejected']:,} rejected{moment}"
    )
