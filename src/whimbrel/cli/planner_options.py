"""Options of `whimbrel plan` that only some planners have: one for each of their settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.options import Duration, Pair
from whimbrel.cli.sections import SectionOption
from whimbrel.errors import NetworkError
from whimbrel.model.time import SECOND, duration

if TYPE_CHECKING:
    from whimbrel.graph.query import Query
    from whimbrel.plan.network import Network
    from whimbrel.plan.planners import Planner

STAYING = ("centralised", "greedy", "static", "exact", "flow")
"""Planners whose tasks stay where they are."""
MOVEMENTS = ("known", "navigation", "learned-times", "learned", "linear")
POLICIES = ("adaptive", "weighted-sum", "naive", "temporal-adjustment")
IF_UNCERTAIN = ("policy", "replan_every", "window", "range_m", "spread")
"""Options that say nothing as long as it is known how movers go."""


class Seconds(Duration):
    """A duration such as `10s`, as seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return duration(super().convert(value, param, ctx)) / SECOND


class Priority(Pair):
    """`DEFINITION=NUMBER`."""

    name = "definition=number"
    example = "Danger=2"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, text = super().convert(value, param, ctx)
        try:
            priority = float(text)
        except ValueError:
            priority = math.nan
        if not math.isfinite(priority):
            self.fail(f"{text!r} is no number; write for example {name}=2", param, ctx)
        return name, priority


class PlannerOption(SectionOption):
    """An option that gives some planners a setting."""

    def __init__(self, *args: Any, planners: tuple[str, ...], setting: str, **about: Any) -> None:
        super().__init__(*args, **about)
        self.planners, self.setting = planners, setting


def _option(
    *names: str, planners: tuple[str, ...], setting: str, section: str, **about: Any
) -> Callable[[Any], Any]:
    about |= {"cls": PlannerOption, "planners": planners, "setting": setting, "section": section}
    return click.option(*names, **about)


_AGAIN: dict[str, Any] = {"section": "To plan again after something has changed (all but migrate)"}
_EXACT: dict[str, Any] = {"planners": ("exact",), "section": "For --planner exact"}
_FLOW: dict[str, Any] = {"planners": ("flow",), "section": "For --planner flow"}
_MIGRATE: dict[str, Any] = {"planners": ("migrate",), "section": "For --planner migrate"}
_PUSHPULL: dict[str, Any] = {"planners": ("pushpull",), "section": "For --planner pushpull"}
_OPTIONS = (
    _option(
        "--previous", metavar="PLAN", planners=(*STAYING, "pushpull"), setting="previous", **_AGAIN,
        help="The plan that runs now, as --out wrote it. It stays if it still does and another saves "
        "little.",
    ),
    _option(
        "--least-gain", type=click.FloatRange(0), metavar="SHARE", planners=(*STAYING, "pushpull"),
        setting="least_gain", **_AGAIN,
        help="What another plan has to save at least, as a share of the cost of the previous one: 0.05 by "
        "default.",
    ),
    _option(
        "--time-limit", type=Seconds(), metavar="DURATION", setting="time_limit_s", **_EXACT,
        help="How long to search: 2min by default. The best found by then is the plan, and a note tells "
        "how far it may be from the optimum.",
    ),
    _option(
        "--radius", type=click.IntRange(1), metavar="HOPS", setting="radius", **_FLOW,
        help="Every broker knows only those so many hops around it, and hands tasks on.",
    ),
    _option(
        "--grouped", is_flag=True, setting="grouped", **_FLOW,
        help="Keep tasks that are made of each other on one broker.",
    ),
    _option(
        "--step", type=Seconds(), metavar="DURATION", setting="step_s", **_MIGRATE,
        help="How long a time step is, at whose beginning tasks may move, such as 5s. By default there are"
        " at most 300.",
    ),
    _option(
        "--ahead", type=Seconds(), metavar="DURATION", setting="ahead_s", **_MIGRATE,
        help="How far the plan looks. By default to the end of the last track.",
    ),
    _option(
        "--coordinated", is_flag=True, setting="coordinated", **_MIGRATE,
        help="Tasks agree by messages alone, each with what its neighbours tell it, as brokers without a "
        "centre would; a note tells how many messages it took.",
    ),
    _option(
        "--movement", type=click.Choice(MOVEMENTS), setting="movement", **_MIGRATE,
        help="What is known ahead of movers: all (known, the default); the brokers on their way, and times"
        " up to an error (navigation) or as others took (learned-times); nothing, so that they are "
        "expected to do what others did (learned) or to go straight on (linear). Unless all is known,"
        " tasks plan again and again.",
    ),
    _option(
        "--policy", type=click.Choice(POLICIES), setting="policy", **_MIGRATE,
        help="How tasks plan where it is uncertain how movers go: adaptive by default.",
    ),
    _option(
        "--replan-every", type=Seconds(), metavar="DURATION", setting="replan_s", **_MIGRATE,
        help="Where it is uncertain: how often a new plan is made at least. 10s by default.",
    ),
    _option(
        "--window", type=Seconds(), metavar="DURATION", setting="window_s", **_MIGRATE,
        help="Where it is uncertain: how far each of these plans looks. 200s by default.",
    ),
    _option(
        "--range", "range_m", type=click.FloatRange(0), metavar="METRES", setting="range_m", **_MIGRATE,
        help="Where it is uncertain: tasks look at brokers so near to their present one, and those above "
        "it. By default at all.",
    ),
    _option(
        "--spread", type=click.FloatRange(0), metavar="SHARE", setting="spread", **_MIGRATE,
        help="With --movement navigation: the standard deviation of times, as a share of how far they lie "
        "ahead. 0.1 by default.",
    ),
    _option(
        "--priority", "priority", type=Priority(), multiple=True, metavar="DEFINITION=NUMBER",
        setting="priorities", **_PUSHPULL,
        help="How much a definition matters where links or storage are too small for all. With any, what "
        "does not fit beside what matters more is left out, and told. May be repeated.",
    ),
)  # fmt: skip


def planner_options(command: Any) -> Any:
    """Add the options that only some planners have; the command gets what was given as `given`."""

    @wraps(command)
    def run(*args: Any, **values: Any) -> Any:
        own = {str(each.name): values.pop(str(each.name)) for each in _parameters()}
        given = {name: value for name, value in own.items() if value not in (None, False, ())}
        return command(*args, given=given, **values)

    made: Any = run
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def _parameters() -> list[PlannerOption]:
    ctx = click.get_current_context()
    return [each for each in ctx.command.params if isinstance(each, PlannerOption)]


def check_given(planner: str, given: Mapping[str, Any]) -> None:
    """Refuse options that are for other planners, or that would say nothing."""
    for option in _parameters():
        if option.name in given and planner not in option.planners:
            *others, last = (name for name in option.planners if name != "static")
            names = f"{', '.join(others)} or {last}" if others else last
            raise click.UsageError(f"{option.opts[0]} is for --planner {names}")
        is_certain = given.get("movement", "known") == "known"
        if option.name in given and option.name in IF_UNCERTAIN and is_certain:
            raise click.UsageError(
                f"{option.opts[0]} is for tasks that plan where it is uncertain how movers go; "
                "give --movement, too"
            )


def settings_of(
    planner: Planner[Any], given: Mapping[str, Any], query: Query, network: Network
) -> tuple[Any, str | None]:
    """Make the settings of a planner; with what is to be told of a previous plan that does no longer."""
    options = {option.name: option.setting for option in _parameters()}
    values = {str(options[name]): value for name, value in given.items()}
    warning = None
    if "policy" in values:
        values["policy"] = values["policy"].replace("-", " ")
    if "movement" in values:
        from whimbrel.plan.settings import Movement

        values["movement"] = Movement(values["movement"])
    if "priorities" in values:
        values["priorities"] = dict(values["priorities"])
    if "previous" in values:
        values["previous"], warning = _previous(planner, values.pop("previous"), query, network)
    try:
        return planner.settings(
            **{name: value for name, value in values.items() if value is not None}
        ), warning
    except NetworkError as error:
        raise click.UsageError(str(error)) from error


def _previous(planner: Planner[Any], file: str, query: Query, network: Network) -> tuple[Any, str | None]:
    """Read the previous plan: of hosts what is still there, of pushing and pulling all or nothing."""
    from whimbrel.plan.pushpull.deployment_reading import deployment_of
    from whimbrel.plan.pushpull.settings import PushPullSettings
    from whimbrel.plan.reading import content_of, is_deployment, previous_hosts

    content = content_of(file)
    wants_deployment = issubclass(planner.settings, PushPullSettings)
    if is_deployment(content) != wants_deployment:
        kind = "pushes and pulls" if is_deployment(content) else "says where tasks run"
        raise click.UsageError(f"--previous {file} is a plan that {kind}, and this planner makes others")
    if not wants_deployment:
        return previous_hosts(content), None
    try:
        return deployment_of(content, query, network).plans, None
    except NetworkError as error:
        return None, f"the previous plan cannot stay: {error}"
