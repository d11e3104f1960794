"""`whimbrel plan`: say where in a network each part of a query should run, what that costs, and why."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.detect import refuse_overwriting
from whimbrel.cli.event_files import file_options
from whimbrel.cli.gathering import gathering
from whimbrel.cli.kernels import compile_ahead
from whimbrel.cli.options import (
    Rate,
    compile_options,
    coordinates_option,
    quiet_option,
    reading_options,
)
from whimbrel.cli.planner_options import check_given, planner_options, settings_of
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.sections import SectionCommand
from whimbrel.cli.summary import refusals

if TYPE_CHECKING:
    from whimbrel.graph.query import Query
    from whimbrel.plan.planners import Planner
    from whimbrel.plan.statistics import Statistics


@dataclass(frozen=True)
class RecordingOptions:
    """What the recording is, and what is made of it."""

    events: tuple[str, ...]
    rates: tuple[tuple[str, float], ...]
    timed: bool
    rejected: str | None
    reading: dict[str, Any]
    coordinates: str | None


@dataclass(frozen=True)
class OutputOptions:
    """Where the plan goes, and in which form."""

    out: str | None
    picture: str | None
    table: bool
    quiet: bool


@click.command(cls=SectionCommand, short_help="Say where in a network each part of a query should run.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--network", "network_file", required=True, metavar="FILE",
    help="The network: brokers, links, sources and consumers, as YAML or JSON (docs/planning.md).",
)  # fmt: skip
@click.option(
    "--planner", "planner_name", default="greedy", show_default=True, metavar="NAME",
    help="centralised: all on one broker, the best; greedy (or static): each task where it costs the "
    "least; exact: the best there is, for small networks; flow: tabu search for the least flow; "
    "migrate: tasks move along with movers; pushpull: events are sent at once or when asked for, "
    "where links come and go.",
)  # fmt: skip
@click.option(
    "--objective", type=click.Choice(["bdp", "flow", "cost"]), default="bdp", show_default=True,
    help="What to keep small: bytes on their way (bandwidth-delay product), bytes times links, or what the"
    " links cost.",
)  # fmt: skip
@click.option(
    "--events", multiple=True, metavar="FILE...",
    help="A recording of events to count rates, sizes and what passes each condition. Without it, these are "
    "estimated from the query.",
)  # fmt: skip
@file_options
@click.option(
    "--rate", "rates", type=Rate(), multiple=True, metavar="TYPE=NUMBER",
    help="Events a second of a type, from all its sources together; goes before what the network and the "
    "recording say. May be repeated.",
)  # fmt: skip
@click.option(
    "--timed", is_flag=True,
    help="Time the operators on the recording, in seconds of one core of this machine, instead of estimating "
    "their work.",
)  # fmt: skip
@click.option(
    "--rejected", metavar="FILE",
    help="Where rows of the recording go that are no events, as JSON with the reason. The first of them, and "
    "how many there are, is told in any case.",
)  # fmt: skip
@reading_options
@coordinates_option
@click.option("--out", metavar="PLAN", help="Where the plan goes, as JSON; - is standard output.")
@click.option("--picture", metavar="FILE", help="Draw the plan: a .png or .svg file.")
@click.option("--table", is_flag=True, help="Print tables of tasks, deliveries and links instead of words.")
@quiet_option
@planner_options
@compile_options
@gathering(recording=RecordingOptions, shown=OutputOptions)
def plan(
    query: str,
    network_file: str,
    planner_name: str,
    objective: str,
    recording: RecordingOptions,
    shown: OutputOptions,
    given: dict[str, Any],
    **compiling: Any,
) -> None:
    """Say where in a network each part of a query should run, what that costs, and why.

      whimbrel plan yard.wbl --network site.yaml --events recording.csv --out plan.json
      whimbrel plan yard.wbl --network site.yaml --rate Position=40 --planner exact --objective flow
      whimbrel plan yard.wbl --network site.yaml --events recording.csv --table --picture plan.svg

    A network names its brokers, the links between them, who sends events and who wants detections:

      brokers:   [{name: gate, capacity: 1}, {name: cloud}]
      links:     [{between: [gate, cloud], bandwidth: 10 Mbit/s, latency: 20 ms}]
      sources:   [{name: camera, type: Plate, at: gate}]
      consumers: [{name: guard, at: cloud, wants: [Stranger], latency: 500 ms}]

    The query is cut into tasks: a task for each definition, and one for each condition on single events. The
    plan gives each task a broker, keeps to capacities, bandwidths and latencies, and says why:

      Stranger runs on gate, because 100 % of what it reads comes from there; on cloud, the next best, the
      plan would cost 12 times as much.

    If nothing satisfies all that is asked, it says what would be too much, and ends with status 1.

    QUERY is a .wbl or .cpsl file, or - for standard input.
    """
    if recording.timed and not recording.events:
        raise click.UsageError("--timed times the operators on a recording; give one with --events")
    chosen = _planner(planner_name)
    check_given(planner_name, given)
    compiled = read_query(query, **compiling)
    written = {"--out": shown.out, "--picture": shown.picture, "--rejected": recording.rejected}
    refuse_overwriting(query, recording.events, written, network_file)
    if not shown.quiet:
        show_warnings(compiled, query)
    from whimbrel.plan.cost import Objective
    from whimbrel.plan.demand import workload_of
    from whimbrel.plan.files import read_network

    network = read_network(network_file)
    settings, warning = settings_of(chosen, given, compiled, network)
    if warning and not shown.quiet:
        click.echo(f"warning: {warning}", err=True)
    statistics = _measured(compiled, recording, quiet=shown.quiet)
    workload = workload_of(compiled, network, statistics, dict(recording.rates))
    found = chosen(workload, network, Objective(objective), settings)
    if shown.picture is not None:
        found.draw(shown.picture)
    if shown.out is not None:
        _write(found.to_dict(), shown.out)
    if shown.out != "-":
        click.echo(found.table() if shown.table else found.words(), nl=False)


def _measured(query: Query, recording: RecordingOptions, *, quiet: bool) -> Statistics:
    """Count the events of a recording, and say which rows of it are none, also where too few are left."""
    from whimbrel.backtesting.measure import measure
    from whimbrel.io.rejected import RejectedWriter
    from whimbrel.plan.statistics import NO_STATISTICS

    if not recording.events:
        return NO_STATISTICS
    if not quiet:
        compile_ahead(query, recording.events)
    if recording.rejected is not None:
        Path(recording.rejected).unlink(missing_ok=True)
    with RejectedWriter(recording.rejected) as writer:
        try:
            clock = time.process_time if recording.timed else None
            settings = {"coordinates": recording.coordinates, **recording.reading}
            return measure(query, list(recording.events), clock=clock, rejected=writer, **settings)
        finally:
            if writer.total and not quiet:
                click.echo(refusals(writer), err=True)


def _planner(name: str) -> Planner[Any]:
    from whimbrel.errors import NetworkError
    from whimbrel.plan.planners import planner_named

    try:
        return planner_named(name)
    except NetworkError as error:
        raise click.BadParameter(str(error), param_hint="--planner") from error


def _write(content: dict[str, Any], target: str) -> None:
    from whimbrel.io.atomic import writing

    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with writing(target) as file:
        file.write(text.encode())
