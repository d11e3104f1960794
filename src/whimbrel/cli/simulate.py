"""`whimbrel simulate`: run a named scenario on a simulated network, or a plan of the user's own."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import whimbrel as wb
from whimbrel.cli.event_files import file_options
from whimbrel.cli.failing import Outage, failures_of
from whimbrel.cli.gathering import gathering
from whimbrel.cli.options import (
    Pair,
    compile_options,
    coordinates_option,
    quiet_option,
    reading_options,
)
from whimbrel.cli.planner_options import Seconds
from whimbrel.cli.progress import ProgressBar
from whimbrel.cli.queries import read_query, show_warnings
from whimbrel.cli.sections import SectionCommand, SectionOption
from whimbrel.errors import SimulationError

if TYPE_CHECKING:
    from whimbrel.model.reading import ReadSettings
    from whimbrel.plan.network import Network
    from whimbrel.sim.placement_run import PlacementOutcome
    from whimbrel.sim.push_pull_run import PushPullOutcome
    from whimbrel.sim.results import Results
    from whimbrel.sim.settings import Settings


OWN = "For a plan of your own"
FAILING = "For a plan of your own: what fails"


@dataclass(frozen=True)
class ScenarioOptions:
    """A published experiment, with other values for its parameters."""

    name: str | None
    given: tuple[tuple[str, str], ...]
    lists: bool


@dataclass(frozen=True)
class PlanOptions:
    """A plan of the user's own, and the events to carry it out with."""

    query: str | None
    network: str | None
    plan: str | None
    events: tuple[str, ...]
    reading: ReadSettings
    coordinates: str | None

    def options(self) -> dict[str, Any]:
        """Name the options that it takes, all of them, with what was given."""
        return {f"--{name}": getattr(self, name) for name in ("query", "network", "plan", "events")}


@dataclass(frozen=True)
class RunOptions:
    """Under which conditions it is carried out."""

    heartbeat: float
    weigh: bool
    fail: tuple[tuple[str, float, float], ...]
    no_recovery: bool
    notice: float | None
    checkpoint: float | None

    def check(self, *, places: bool) -> None:
        """Refuse what says nothing of the plan, or without failures."""
        if self.weigh and not places:
            raise click.UsageError("--weigh does not go with a plan that pushes and pulls")
        if self.checkpoint is not None and not places:
            raise click.UsageError(
                "--checkpoint is for tasks, which a plan that pushes and pulls has none of"
            )
        for option in ("no_recovery", "notice", "checkpoint"):
            if getattr(self, option) and not self.fail:
                raise click.UsageError(
                    f"--{option.replace('_', '-')} says what happens when something fails; give --fail, too"
                )

    def settings(self, network: Network, *, places: bool) -> Settings:
        """Make the settings of a simulation of them."""
        from whimbrel.sim.messages import HEADER_B
        from whimbrel.sim.settings import Settings

        self.check(places=places)
        return Settings(
            heartbeat_s=self.heartbeat,
            header_b=HEADER_B if self.weigh else 0.0,
            failures=failures_of(self.fail, network),
            recovers=not self.no_recovery,
            notice_s=1.0 if self.notice is None else self.notice,
            checkpoint_s=self.checkpoint,
            interval_s=1.0 if places else 60.0,
        )


@click.command(cls=SectionCommand, short_help="Run a scenario, or a plan of yours, on a simulated network.")
@click.argument("name", metavar="[SCENARIO]", required=False)
@click.option(
    "--set", "given", type=Pair(), multiple=True, metavar="KEY=VALUE",
    help="Another value for a parameter, such as cars=100; lists with commas. May be repeated.",
)  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="List the scenarios and their parameters.")
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="The folder for results.json, table.txt and plots. Without it, the table is printed.",
)  # fmt: skip
@quiet_option
@click.option(
    "--query", metavar="QUERY", help="A query of your own, to carry out a plan for it.",
    cls=SectionOption, section=OWN,
)  # fmt: skip
@click.option(
    "--network", metavar="FILE", help="The network that the plan is for.", cls=SectionOption, section=OWN
)
@click.option(
    "--plan", metavar="PLAN", help="The plan, as `whimbrel plan --out PLAN` wrote it.",
    cls=SectionOption, section=OWN,
)  # fmt: skip
@click.option(
    "--events", multiple=True, metavar="FILE...", cls=SectionOption, section=OWN,
    help="Recorded events; each comes from the source of the network that its `source` names.",
)  # fmt: skip
@click.option(
    "--heartbeat", type=click.FloatRange(0.001), default=1.0, show_default=True, metavar="SECONDS",
    help="How often quiet sources and tasks tell that time goes on; plans that push and pull need none.",
    cls=SectionOption, section=OWN,
)  # fmt: skip
@click.option(
    "--weigh", is_flag=True, cls=SectionOption, section=OWN,
    help="Send packets as large as Arrow makes them, headers included, instead of as the plan says.",
)  # fmt: skip
@click.option(
    "--fail", type=Outage(), multiple=True, metavar="NAME=FROM..TO", cls=SectionOption, section=FAILING,
    help="A broker, or a link, that does not work for a while, counted from the first event: gate=10s..25s, "
    "'gate - cloud=1min..2min'; without TO, for good. May be repeated.",
)  # fmt: skip
@click.option(
    "--no-recovery", is_flag=True, cls=SectionOption, section=FAILING,
    help="Brokers that fail lose what they know and what waits at them. By default they go on from what they "
    "wrote down.",
)  # fmt: skip
@click.option(
    "--notice", type=Seconds(), metavar="DURATION", cls=SectionOption, section=FAILING,
    help="How long after something began to fail messages go round it: 1s by default.",
)  # fmt: skip
@click.option(
    "--checkpoint", type=Seconds(), metavar="DURATION", cls=SectionOption, section=FAILING,
    help="How often tasks write down what they know: every 10s by default, if a broker is to fail.",
)  # fmt: skip
@file_options
@reading_options
@coordinates_option
@compile_options
@click.pass_context
@gathering(scenario=ScenarioOptions, own=PlanOptions, conditions=RunOptions)
def simulate(
    ctx: click.Context,
    /,
    *,
    scenario: ScenarioOptions,
    own: PlanOptions,
    conditions: RunOptions,
    out: Path | None,
    quiet: bool,
    **compiling: Any,
) -> None:
    """Run a scenario on a simulated network, or a query of your own as a plan says.

      whimbrel simulate --list
      whimbrel simulate hierarchy --set cars=100 --out results/
      whimbrel simulate --query yard.wbl --network site.yaml --plan plan.json --events recording.csv
      whimbrel simulate ... --fail quay=1min..2min --fail "office - cloud=30s..40s"

    A plan of any planner is carried out with the real engine on recorded events. What it estimated stands
    beside what was measured: traffic, delays, work, and whether the detections are those of one process.
    Brokers and links may fail meanwhile; what that delays and loses is told.

    The same parameters and the same seed give the same figures.
    """
    if any(own.options().values()):
        _check_own(ctx, scenario, own)
        _simulate_plan(own, conditions, out, quiet=quiet, **compiling)
    elif scenario.lists:
        known = _scenarios()
        for each in known.SCENARIOS.values() if scenario.name is None else [known.find(scenario.name)]:
            click.echo(_described(each))
    elif scenario.name is None:
        raise click.UsageError(
            "say which scenario (`whimbrel simulate --list` lists them), or give a plan of your own with "
            "--query, --network, --plan and --events",
            ctx,
        )
    else:
        if conditions.fail:
            raise click.UsageError("--fail is for a plan of your own; scenarios have failures of theirs", ctx)
        _simulate_scenario(scenario.name, dict(scenario.given), out, quiet=quiet)


def _simulate_scenario(name: str, given: dict[str, str], out: Path | None, *, quiet: bool) -> None:
    scenarios = _scenarios()
    chosen = scenarios.find(name)
    settings = chosen.settings(given)
    bar = ProgressBar(doing=("simulating", "writing"))
    with nullcontext() if quiet else bar:
        results = chosen.run(settings, bar)
    _tell(results, out, quiet=quiet)
    if out is not None:
        _tell_files(scenarios.write_figures(name, settings, results, out), quiet=quiet)


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


def _check_own(ctx: click.Context, scenario: ScenarioOptions, own: PlanOptions) -> None:
    """Refuse what does not go together with a plan of the user's own."""
    options = own.options()
    if scenario.name is not None or scenario.given or scenario.lists:
        what = (
            "--list" if scenario.lists else "--set" if scenario.given else f"the scenario {scenario.name!r}"
        )
        raise click.UsageError(f"{what} does not go with a plan of your own ({', '.join(options)})", ctx)
    missing = [option for option, value in options.items() if not value]
    if missing:
        raise click.UsageError(f"to carry out a plan, give {' and '.join(missing)}, too", ctx)


def _simulate_plan(
    own: PlanOptions, conditions: RunOptions, out: Path | None, *, quiet: bool, **compiling: Any
) -> None:
    """Carry out a plan of either kind, and put what it estimated beside what was measured."""
    from whimbrel.plan.files import read_network
    from whimbrel.plan.pushpull.deployment import PushPullDeployment
    from whimbrel.plan.pushpull.deployment_reading import read_any
    from whimbrel.sim.comparison import compare, plots
    from whimbrel.sim.placement_run import run_placement
    from whimbrel.sim.push_pull_run import run_push_pull
    from whimbrel.sim.report import write_report

    query, events = read_query(str(own.query), **compiling), list(own.events)
    if not quiet:
        show_warnings(query, str(own.query))
    plan = read_any(str(own.plan), query, read_network(str(own.network)))
    settings = conditions.settings(plan.network, places=not isinstance(plan, PushPullDeployment))
    bar = ProgressBar(doing=("simulating", "writing"))
    found: PlacementOutcome | PushPullOutcome
    with nullcontext() if quiet else bar:
        if isinstance(plan, PushPullDeployment):
            found = run_push_pull(
                query,
                events,
                plan,
                settings=settings,
                progress=bar,
                coordinates=own.coordinates,
                **own.reading,
            )
        else:
            found = run_placement(
                query,
                events,
                plan,
                settings=settings,
                weighs=conditions.weigh,
                progress=bar,
                coordinates=own.coordinates,
                **own.reading,
            )
        results = compare(found)
    _tell(results, out, quiet=quiet)
    if out is not None:
        given = {name.removeprefix("--"): value for name, value in own.options().items()}
        given |= {"events": events, "planner": plan.planner, **asdict(conditions)}
        _tell_files(write_report("plan", given, results, out, drawn=plots(found)), quiet=quiet)


def _described(scenario: Any) -> str:
    lines = [f"{scenario.name}: {scenario.help}"]
    for name, parameter in scenario.parameters.items():
        default = parameter.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        lines.append(f"    {name}={text}  {parameter.help}")
    return "\n".join(lines)
