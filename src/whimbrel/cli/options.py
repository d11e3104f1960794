"""Options that several commands share, and the values that options may have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from whimbrel.errors import DataError
from whimbrel.graph.policies import Context
from whimbrel.logs import LEVELS, listen
from whimbrel.model.time import duration

if TYPE_CHECKING:
    Value = click.ParamType[Any]
else:
    Value = click.ParamType  # in older versions of click it has no type argument

QUERY_ENDINGS = (".wbl", ".cpsl")

Body = TypeVar("Body", bound=Callable[..., Any])


class Duration(Value):
    """A duration such as `10s` or `1h 30min`, kept as text."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            duration(value)
        except DataError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Pair(Value):
    """`NAME=VALUE`, as a pair of texts."""

    name = "name=value"
    example = "limit=60"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not {self.name.upper()}; write for example {self.example}", param, ctx)
        return name.strip(), text.strip()


class ColumnOption(Pair):
    """`NAME=COLUMN`: what events call a column, and what an input calls it."""

    name = "name=column"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, column = str(value).partition("=")
        if not equals or not name.strip() or not column:
            self.fail(f"{value!r} is not NAME=COLUMN; write for example time=timestamp", param, ctx)
        return name.strip(), column


class Rate(Pair):
    """`TYPE=EVENTS_PER_SECOND`."""

    name = "type=number"
    example = "Position=40"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, text = super().convert(value, param, ctx)
        try:
            rate = float(text)
        except ValueError:
            rate = -1.0
        if not 0 <= rate < float("inf"):
            self.fail(f"{text!r} is no number of events a second; write for example {name}=10", param, ctx)
        return name, rate


class Command(click.Command):
    """A command that can tell what it does, in whose help indented paragraphs stay as they are written."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings["help"] = keep_indented(settings.get("help") or "")
        super().__init__(*args, **settings)
        self.params += log_options()


def log_options() -> list[click.Parameter]:
    """Make the options that say how much a command tells of its work, for every command."""
    return [
        click.Option(
            ["-v", "--verbose"], count=True, expose_value=False, callback=_verbose,
            help="Tell on standard error what happens; twice (-vv): every detail.",
        ),
        click.Option(
            ["--log-level"], type=click.Choice(LEVELS, case_sensitive=False), expose_value=False,
            callback=_log_level, help="The same by name: which messages to show.",
        ),
    ]  # fmt: skip


def _verbose(_ctx: click.Context, _param: click.Parameter, times: int) -> None:
    if times:
        listen("info" if times == 1 else "debug")


def _log_level(_ctx: click.Context, _param: click.Parameter, level: str | None) -> None:
    if level is not None:
        listen(level)


def keep_indented(text: str) -> str:
    """Mark the indented paragraphs of a help text, so that click does not wrap them."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"\b\n{paragraph}" if paragraph.startswith(" ") else paragraph for paragraph in paragraphs
    )


class ManyEvents(Command):
    """A command whose option --events takes all the paths behind it: `--events a.csv b.csv --out c.csv`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spread_events(args))


def spread_events(args: Sequence[str]) -> list[str]:
    """Write `--events` before each of the paths that follow it; a query file among them stays the query.

    >>> spread_events(["late.wbl", "--events", "a.csv", "b.csv", "--quiet"])
    ['late.wbl', '--events', 'a.csv', '--events', 'b.csv', '--quiet']
    """
    spread: list[str] = []
    is_behind_events = needs_value = False
    for position, arg in enumerate(args):
        if arg == "--":
            return spread + list(args[position:])
        if needs_value or not is_behind_events or (arg.startswith("-") and arg != "-"):
            spread.append(arg)
            is_behind_events = needs_value or arg == "--events" or arg.startswith("--events=")
            needs_value = arg == "--events" and not needs_value
        elif arg.endswith(QUERY_ENDINGS):
            spread.append(arg)
        else:
            spread += ["--events", arg]
    return spread


def compile_options(command: Body) -> Body:
    """Add what every command that compiles a query takes."""
    for option in reversed(_COMPILING):
        command = option(command)
    return command


def _names(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> list[str] | str | None:
    names = [name.strip() for item in given for name in item.split(",") if name.strip()]
    return "all" if names == ["all"] else names or None


_COMPILING = (
    click.option(
        "--param", "params", type=Pair(), multiple=True, metavar="NAME=VALUE",
        help="A value for a parameter of the query, such as limit=60 or gap='5 min'. May be repeated.",
    ),
    click.option(
        "--horizon", type=Duration(), metavar="DURATION",
        help="How far apart the events of one detection may lie where the query does not say it, such as 1h.",
    ),
    click.option(
        "--emit", multiple=True, callback=_names, metavar="NAME,...",
        help="The definitions to report, or all, or mobile queries. By default these, or what no other "
        "definition uses.",
    ),
    click.option(
        "--context", type=click.Choice([context.value for context in Context]),
        help="Which combinations are detections, and what they use up, for all patterns of the query.",
    ),
)  # fmt: skip


_READING = (
    click.option(
        "--type", "default_type", metavar="NAME",
        help="The type of all events, if they have no column `type`. By default that which the query reads.",
    ),
    click.option(
        "--column", "columns", type=ColumnOption(), multiple=True, metavar="NAME=COLUMN",
        help="Which column is what: time=BaseDateTime, lon=X, source=MMSI, or an attribute's name. Usual "
        "names are known; the summary tells what was taken. May be repeated.",
    ),
    click.option(
        "--time-unit", type=click.Choice(["s", "ms", "us", "ns"]),
        help="The unit of times that are plain numbers (since 1970 UTC). By default their size tells it.",
    ),
    click.option(
        "--time-format", metavar="FORMAT",
        help="How times are written, as for strptime: '%d.%m.%Y %H:%M:%S'. By default ISO 8601 and the like.",
    ),
    click.option(
        "--day-first/--month-first", "day_first", default=None, help="What 03/01/2022 begins with."
    ),
    click.option(
        "--time-zone", metavar="NAME",
        help="Of times that do not say theirs, such as Europe/Berlin. By default UTC.",
    ),
)  # fmt: skip


def reading_options(command: Body) -> Body:
    """Add what every command that reads events takes; the command gets all of it as `reading`."""

    @wraps(command)
    def reads(*args: Any, **given: Any) -> Any:
        from whimbrel.model.reading import Reading, ReadSettings

        reading = {name: given.pop(name) for name in ReadSettings.__annotations__}
        reading["columns"] = dict(reading["columns"])
        try:
            Reading.of(**reading)
        except DataError as error:
            raise click.UsageError(str(error)) from error
        return command(*args, reading=reading, **given)

    with_options: Any = reads
    for option in reversed(_READING):
        with_options = option(with_options)
    return cast("Body", with_options)


coordinates_option = click.option(
    "--coordinates",
    type=click.Choice(["plane", "lonlat"]),
    help="Metres in a plane, or degrees. By default what the query or the events say.",
)
lateness_option = click.option(
    "--lateness", type=Duration(), metavar="DURATION",
    help="Take events in the order they stand in, as a live stream would, and wait this long for those out "
    "of order; later ones are left out. By default everything is sorted first, and nothing is late.",
)  # fmt: skip
rejected_option = click.option(
    "--rejected",
    metavar="FILE",
    help="Where rows go that are no events. By default NAME.rejected.jsonl beside --out, made if needed.",
)
areas_option = click.option(
    "--interest-areas", is_flag=True,
    help="Of a query that follows something, also write where each interest is, as WKT.",
)  # fmt: skip
quiet_option = click.option(
    "--quiet", is_flag=True, help="Print errors only: no summary, no progress, no warnings."
)
