"""`whimbrel plan`: say where in a network each part of a query should run, what that costs, and why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.detect import refuse_overwriting
from whimbrel.cli.event_files import file_options
from whimbrel.cli.kernels import compile_ahead
from whimbrel.cli.options import (
    Duration,
    ManyEvents,
    Rate,
    compile_options,
    coordinates_option,
    quiet_option,
    reading_options,
)
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.summary import refusals

if TYPE_CHECKING:
    from whimbrel.graph.query import Query
    from whimbrel.plan.planners import Planner
    from whimbrel.plan.statistics import Statistics


@click.command(cls=ManyEvents, short_help="Say where in a network each part of a query should run.")
@click.argument("query", metavar="QUERY")
@click.option(
    "--network", "network_file", required=True, metavar="FILE",
    help="The network: brokers, links, sources and consumers, as YAML or JSON (docs/planning.md).",
)  # fmt: skip
@click.option(
    "--planner", "planner_name", default="greedy", show_default=True, metavar="NAME",
    help="centralised: all on one broker, the best; greedy (or static): each task where it costs the least; "
    "exact: the best there is, for small networks; flow: tabu search for the least flow; migrate: tasks move "
    "along with movers; pushpull: events are sent at once or when asked for, where links come and go.",
)  # fmt: skip
@click.option(
    "--objective", type=click.Choice(["bdp", "flow", "cost"]), default="bdp", show_default=True,
    help="What to keep small: bytes on their way (bandwidth-delay product), bytes times links, or what the "
    "links cost.",
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
    "--step", type=Duration(), metavar="DURATION",
    help="For the planner migrate: how long a time step is, at whose beginning tasks may move, such as 5s. "
    "By default there are at most 300.",
)  # fmt: skip
@click.option(
    "--ahead", type=Duration(), metavar="DURATION",
    help="For the planner migrate: how far to look ahead. By default to the end of the last track.",
)  # fmt: skip
@click.option(
    "--radius", type=click.IntRange(1), metavar="HOPS",
    help="For the planner flow: every broker knows only those so many hops around it, and hands tasks on.",
)  # fmt: skip
@click.option("--out", metavar="PLAN", help="Where the plan goes, as JSON; - is standard output.")
@click.option("--picture", metavar="FILE", help="Draw the plan: a .png or .svg file.")
@click.option(
    "--rejected", metavar="FILE",
    help="Where rows of the recording go that are no events, as JSON with the reason. The first of them, and "
    "how many there are, is told in any case.",
)  # fmt: skip
@click.option("--table", is_flag=True, help="Print tables of tasks, deliveries and links instead of words.")
@reading_options
@coordinates_option
@compile_options
@quiet_option
def plan(
    query: str,
    network_file: str,
    planner_name: str,
    objective: str,
    events: tuple[str, ...],
    rates: tuple[tuple[str, float], ...],
    timed: bool,
    step: str | None,
    ahead: str | None,
    radius: int | None,
    out: str | None,
    picture: str | None,
    rejected: str | None,
    table: bool,
    reading: dict[str, Any],
    coordinates: str | None,
    quiet: bool,
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
    if timed and not events:
        raise click.UsageError("--timed times the operators on a recording; give one with --events")
    chosen = _planner(planner_name)
    own = _own_settings(planner_name, step, ahead, radius)
    compiled = read_query(query, **compiling)
    written = {"--out": out, "--picture": picture, "--rejected": rejected}
    refuse_overwriting(query, events, written, network_file)
    if not quiet:
        show_warnings(compiled, query)
    from whimbrel.plan.cost import Objective
    from whimbrel.plan.demand import workload_of
    from whimbrel.plan.files import read_network
    from whimbrel.plan.statistics import NO_STATISTICS

    network = read_network(network_file)
    statistics = NO_STATISTICS
    if events:
        if not quiet:
            compile_ahead(compiled, events)
        settings = {"coordinates": coordinates, **reading}
        statistics = _measured(compiled, events, rejected, timed=timed, quiet=quiet, settings=settings)
    workload = workload_of(compiled, network, statistics, dict(rates))
    found = chosen(workload, network, Objective(objective), chosen.settings(**own))
    if picture is not None:
        found.draw(picture)
    if out is not None:
        _write(found.to_dict(), out)
    if out != "-":
        click.echo(found.table() if table else found.words(), nl=False)


def _own_settings(planner: str, step: str | None, ahead: str | None, radius: int | None) -> dict[str, float]:
    """Give the settings that only one planner has; times in seconds."""
    from whimbrel.model.time import SECOND, duration

    given = {"step_s": step, "ahead_s": ahead}
    found = {name: duration(text) / SECOND for name, text in given.items() if text is not None}
    if found and planner != "migrate":
        raise click.UsageError("--step and --ahead are for --planner migrate")
    if radius is not None and planner != "flow":
        raise click.UsageError("--radius is for --planner flow")
    return found if radius is None else {"radius": radius}


def _measured(
    query: Query,
    events: tuple[str, ...],
    rejected: str | None,
    *,
    timed: bool,
    quiet: bool,
    settings: dict[str, Any],
) -> Statistics:
    """Count the events of a recording, and say which rows of it are none, also where too few are left."""
    from whimbrel.backtesting.measure import measure
    from whimbrel.io.rejected import RejectedWriter

    if rejected is not None:
        Path(rejected).unlink(missing_ok=True)
    with RejectedWriter(rejected) as writer:
        try:
            clock = time.process_time if timed else None
            return measure(query, list(events), clock=clock, rejected=writer, **settings)
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
