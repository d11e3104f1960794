"""`whimbrel simulate`: run a named scenario on a simulated network, or a plan of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import whimbrel as wb
from whimbrel.cli.event_files import file_options
from whimbrel.cli.options import (
    ManyEvents,
    Pair,
    compile_options,
    coordinates_option,
    quiet_option,
    reading_options,
)
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.errors import SimulationError

if TYPE_CHECKING:
    from whimbrel.graph.query import Query
    from whimbrel.plan.plan import Plan
    from whimbrel.plan.pushpull.deployment import PushPullDeployment
    from whimbrel.sim.comparison import Drawn
    from whimbrel.sim.results import Results


@click.command(cls=ManyEvents, short_help="Run a scenario, or a plan of yours, on a simulated network.")
@click.argument("name", metavar="[SCENARIO]", required=False)
@click.option(
    "--set", "given", type=Pair(), multiple=True, metavar="KEY=VALUE",
    help="Another value for a parameter, such as cars=100; lists with commas. May be repeated.",
)  # fmt: skip
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="The folder for results.json, table.txt and plots. Without it, the table is printed.",
)  # fmt: skip
@click.option("--query", metavar="QUERY", help="A query of your own, to carry out a plan for it.")
@click.option("--network", "network_file", metavar="FILE", help="The network that the plan is for.")
@click.option("--plan", "plan_file", metavar="PLAN", help="The plan, as `whimbrel plan --out PLAN` wrote it.")
@click.option(
    "--events", multiple=True, metavar="FILE...",
    help="Recorded events; each comes from the source of the network that its `source` names.",
)  # fmt: skip
@file_options
@click.option(
    "--heartbeat", type=click.FloatRange(0.001), default=1.0, show_default=True, metavar="SECONDS",
    help="How often quiet sources and tasks tell that time goes on; plans that push and pull need none.",
)  # fmt: skip
@click.option(
    "--weigh", is_flag=True,
    help="Send packets as large as Arrow makes them, headers included, instead of as the plan says.",
)  # fmt: skip
@reading_options
@coordinates_option
@compile_options
@click.option("--list", "lists", is_flag=True, help="List the scenarios and their parameters.")
@quiet_option
@click.pass_context
def simulate(
    ctx: click.Context, /, name: str | None, given: tuple[tuple[str, str], ...], out: Path | None,
    *, query: str | None, network_file: str | None, plan_file: str | None, events: tuple[str, ...],
    heartbeat: float, weigh: bool, lists: bool, quiet: bool, **settings: Any,
) -> None:  # fmt: skip
    """Run a scenario on a simulated network, or a query of your own as a plan says.

      whimbrel simulate --list
      whimbrel simulate hierarchy --set cars=100 --out results/
      whimbrel simulate --query yard.wbl --network site.yaml --plan plan.json --events recording.csv

    A plan of any planner is carried out with the real engine on recorded events. What it estimated stands
    beside what was measured: traffic, delays, work, and whether the detections are those of one process.

    The same parameters and the same seed give the same figures.
    """
    own = {"--query": query, "--network": network_file, "--plan": plan_file, "--events": events}
    if any(own.values()):
        _check_own(ctx, name, given, own, lists=lists)
        _simulate_plan(
            str(query), str(network_file), str(plan_file), events, out,
            heartbeat=heartbeat, weigh=weigh, quiet=quiet, **settings,
        )  # fmt: skip
        return
    if lists:
        known = _scenarios()
        for each in known.SCENARIOS.values() if name is None else [known.find(name)]:
            click.echo(_described(each))
        return
    if name is None:
        raise click.UsageError(
            "say which scenario (`whimbrel simulate --list` lists them), or give a plan of your own with "
            "--query, --network, --plan and --events",
            ctx,
        )
    from whimbrel.sim.report import write_report

    chosen = _scenarios().find(name)
    settings = chosen.settings(dict(given))
    bar = ProgressBar(doing=("simulating", "writing"))
    with nullcontext() if quiet else bar:
        results = chosen.run(settings, bar)
    _tell(results, out, quiet=quiet)
    if out is not None:
        _tell_files(write_report(name, settings, results, out), quiet=quiet)


def _scenarios() -> Any:
    """Find the scenarios: they are in the source repository, beside the package, and not in the wheel."""
    repository = Path(wb.__file__).parents[2]
    if (repository / "experiments" / "scenarios").is_dir() and str(repository) not in sys.path:
        sys.path.append(str(repository))
    try:
        return import_module("experiments.scenarios")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("experiments"):
            raise
        raise SimulationError(
            "scenarios make published experiments again, and are no part of the package: run this in a "
            "checkout of the source repository, with Whimbrel installed from there (pip install --editable .)"
        ) from None


def _tell(results: Results, out: Path | None, *, quiet: bool) -> None:
    from whimbrel.sim.report import table

    if out is None or not quiet:
        click.echo(table(results.rows))
        for text, value in results.notes.items():
            click.echo(f"{text}: {value}")


def _tell_files(files: list[Path], *, quiet: bool) -> None:
    if not quiet:
        click.echo(f"written: {', '.join(str(file) for file in files)}", err=True)


def _check_own(
    ctx: click.Context,
    name: str | None,
    given: tuple[tuple[str, str], ...],
    own: Mapping[str, Any],
    *,
    lists: bool,
) -> None:
    """Refuse what does not go together with a plan of the user's own."""
    if name is not None or given or lists:
        what = "--list" if lists else "--set" if given else f"the scenario {name!r}"
        raise click.UsageError(f"{what} does not go with a plan of your own ({', '.join(own)})", ctx)
    missing = [option for option, value in own.items() if not value]
    if missing:
        raise click.UsageError(f"to carry out a plan, give {' and '.join(missing)}, too", ctx)


def _simulate_plan(
    query: str,
    network_file: str,
    plan_file: str,
    events: tuple[str, ...],
    out: Path | None,
    *,
    heartbeat: float,
    weigh: bool,
    quiet: bool,
    coordinates: str | None,
    reading: dict[str, Any],
    **compiling: Any,
) -> None:
    from whimbrel.plan.files import read_network
    from whimbrel.plan.pushpull.deployment import PushPullDeployment
    from whimbrel.plan.pushpull.deployment_reading import read_any
    from whimbrel.sim.report import write_report

    compiled = read_query(query, **compiling)
    if not quiet:
        show_warnings(compiled, query)
    plan = read_any(plan_file, compiled, read_network(network_file))
    settings = {"coordinates": coordinates, **reading}
    bar = ProgressBar(doing=("simulating", "writing"))
    with nullcontext() if quiet else bar:
        if isinstance(plan, PushPullDeployment):
            if weigh:
                raise click.UsageError("--weigh does not go with a plan that pushes and pulls")
            results, plots = _pulled(compiled, events, plan, progress=bar, **settings)
        else:
            how = {"heartbeat": heartbeat, "weigh": weigh}
            results, plots = _placed(compiled, events, plan, how, progress=bar, **settings)
    _tell(results, out, quiet=quiet)
    if out is not None:
        given: dict[str, Any] = {
            "query": query,
            "network": network_file,
            "plan": plan_file,
            "events": [str(path) for path in events],
        }
        given |= {"heartbeat": heartbeat, "weigh": weigh, "planner": plan.planner}
        files = write_report("plan", given, results, out, drawn=plots)
        _tell_files(files, quiet=quiet)


def _placed(
    query: Query, events: tuple[str, ...], plan: Plan, how: dict[str, Any], **settings: Any
) -> tuple[Results, list[Drawn]]:
    """Carry out a plan that says what runs where."""
    from whimbrel.sim.comparison import compare, plots
    from whimbrel.sim.messages import HEADER_B
    from whimbrel.sim.placement_run import run_placement
    from whimbrel.sim.settings import Settings

    sending = Settings(heartbeat_s=how["heartbeat"], header_b=HEADER_B if how["weigh"] else 0.0)
    found = run_placement(query, list(events), plan, settings=sending, weighs=how["weigh"], **settings)
    return compare(found), plots(found)


def _pulled(
    query: Query, events: tuple[str, ...], plan: PushPullDeployment, **settings: Any
) -> tuple[Results, list[Drawn]]:
    """Carry out a plan that says what is sent at once, and what when asked for."""
    from whimbrel.sim.comparison import compare, plots
    from whimbrel.sim.push_pull_run import run_push_pull

    found = run_push_pull(query, list(events), plan, **settings)
    return compare(found), plots(found)


def _described(scenario: Any) -> str:
    lines = [f"{scenario.name}: {scenario.help}"]
    for name, parameter in scenario.parameters.items():
        default = parameter.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        lines.append(f"    {name}={text}  {parameter.help}")
    return "\n".join(lines)
