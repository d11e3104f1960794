"""Read test files: one sentence a line, a test from `test NAME` to the next.

=============================================  ========================================================
`query late.wbl`                               the query; without it, the one beside the file, by its name
`param limit = 30`                             a value for a parameter of the query
`start 2024-05-01T08:00:00Z`                   what `+0s` is; 1970-01-01T00:00:00Z where nothing is said
`lateness 10 s`, `horizon 1 h`,                as for `whimbrel detect`
`coordinates lonlat`, `context recent`,
`emit all`
`test a truck is late`                         begins a test
`+5s Position vehicle=A at (3, 4) as e1`       an event; `source bus-4` says who reported it
`+5s..+8s Stay vehicle=A`                      an event that lasts
`events trips.csv`                             the events of a file
`advance to +1h`                               every event up to then has been seen
`end`                                          no more events come
`expect Late vehicle=A at +1h events e1`       a detection; `from` and `to` say its start and end
`expect 3 Late`, `expect nothing`              so many of them
`expect 1 late event`                          or duplicate, or rejected: events that were set aside
`not Late vehicle=B`                           no such detection
`expect Late focal=A live=true change=added`   a delivery of a query that follows something
`allow Late`, `allow others`                   detections that may be there or not
=============================================  ========================================================

Settings before the first test hold for all of them; inside a test they hold for that test.
"""

# ruff: noqa: ARG002 (what a line says is handed to every method in the same two arguments)

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lark import Token
from lark.tree import Meta

from whimbrel.errors import DataError, ScenarioError, Span, did_you_mean
from whimbrel.graph.policies import Context
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates
from whimbrel.model.time import duration, instant
from whimbrel.testing.builder import ScenarioBuilder
from whimbrel.testing.scenario import (
    Advance,
    AttributeTest,
    Description,
    End,
    Expect,
    ExpectNothing,
    ExpectSideOutput,
    Forbid,
    InputEvent,
    InputFile,
    ParamSetting,
    Point,
    Scenario,
)
from whimbrel.testing.syntax import EXAMPLES, parse
from whimbrel.testing.values import (
    content,
    format_time,
    read_param,
    read_polygon,
    read_time,
    read_times,
    read_value,
)

ENDING = ".wbt"
"""How the names of test files end."""

SIDE_OUTPUTS = ("late", "duplicate", "rejected")
"""What becomes of events that are not processed."""

_WHERE, _WHEN = "write both together: at (10, 20)", "times are written +5s, or from +5s to +8s"
_RESERVED = {
    "id": "name an event with `as`: as e1",
    "type": "the type stands first",
    "source": "write it with a blank: source bus-4",
    "geometry": "write where it is with `at`: at (10, 20)",
    **dict.fromkeys(("x", "y", "lon", "lat"), _WHERE),
    **dict.fromkeys(("time", "start", "end"), _WHEN),
}
"""What to write instead of an attribute that is a column of every event."""


def read_tests(path: str | Path) -> list[Scenario]:
    """Read the tests of a file.

    Raises
    ------
    ScenarioError
        If a line is no sentence of the format; it shows the line, a caret and a hint.
    DataError
        If the file cannot be read.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text: {error}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error
    return parse_tests(text, file)


def parse_tests(text: str, file: Path = Path("tests.wbt")) -> list[Scenario]:
    """Read tests from a text; `file` is where it comes from, for messages and for the paths it names."""
    try:
        return _Reader(text, file).read()
    except ScenarioError as error:
        raise error.located_in(text, str(file)) from None


class _Reader:
    """Carries out a file line by line; the method for a line has the name of its rule."""

    def __init__(self, text: str, file: Path) -> None:
        lines = text.splitlines()
        self.text, self.file = text, file
        self.source = "\n".join([*lines, ""])
        self.width = len(str(len(lines)))
        self.head = self.current = ScenarioBuilder()
        self.done: list[Scenario] = []

    def read(self) -> list[Scenario]:
        line: Any
        for line in parse(self.source).children:
            getattr(self, line.data)(line.meta, line.children)
        self._finish_test()
        return self.done

    def test(self, meta: Meta, items: list[Any]) -> None:
        self._finish_test()
        (name,) = items
        if any(other.name == name for other in self.done):
            raise _refused(name, f"there is a test {str(name)!r} already", "choose another name")
        self.current = self.head.test(str(name), _span(meta))

    def _finish_test(self) -> None:
        if self.current is not self.head:
            self.done.append(self.current.finish(self.file, self.text))

    def _inside(self, meta: Meta) -> tuple[ScenarioBuilder, Span]:
        """Refuse a line that stands before the first test."""
        if self.current is self.head:
            raise _refused(meta, "this belongs into a test", "begin one above it: test NAME")
        return self.current, _span(meta)

    def _text(self, meta: Meta) -> str:
        return self.source[meta.start_pos : meta.end_pos]

    @property
    def origin(self) -> int:
        """What `+0s` stands for."""
        return self.current.settings.origin

    # -- settings ----------------------------------------------------------------------------------------

    def setting(self, meta: Meta, items: list[Any]) -> None:
        word, text = items
        test = self.current
        change: dict[str, Any]
        match word:
            case "query":
                change = {"query": self._path(text)}
            case "param":
                change = {"params": {**test.settings.params, **_param(text)}}
            case "start":
                if test.steps or test.expectations:
                    raise _refused(meta, "`start` comes too late", "put it above the events of the test")
                change = {"origin": _read(instant, text, "date and time", "2024-05-01T08:00:00Z")}
            case "lateness" | "horizon":
                change = {word: _read(duration, text, "length of time", "10 s, 5 min or 1 h 30 min")}
            case "coordinates":
                change = {"coordinates": Coordinates(_one_of(text, map(str, Coordinates)))}
            case "context":
                change = {"context": Context(_one_of(text, (kind.value for kind in Context)))}
            case _:
                names = tuple(text.replace(",", " ").split())
                change = {"emit": "all" if names == ("all",) else names}
        test.settings = replace(test.settings, **change)

    def _path(self, text: Token) -> Path:
        return self.file.parent / _unquoted(text)

    # -- what happens ------------------------------------------------------------------------------------

    def event(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        times, kind, *said = items
        start, end = read_times(times, self.origin)
        event = InputEvent(at, content(kind), start, end, f"L{at.line:0{self.width}}")
        for part in said:
            event = self._with(event, part)
        if test.passed is not None and end <= test.passed[0]:
            passed = format_time(test.passed[0], self.origin)
            raise _refused(
                meta,
                f"this event is too late: line {test.passed[1].line} says that everything up to {passed} "
                "has been seen",
                "put it above that line, or let it end later",
            )
        test.add(event, at)

    def _with(self, event: InputEvent, part: Any) -> InputEvent:
        token = part.children[0]
        match part.data:
            case "attribute":
                attribute, compare = self._attribute(part), part.children[1]
                if compare != "=":
                    raise _refused(compare, "an event has values: name=value", "write '='")
                if attribute.name in event.attributes:
                    raise _refused(token, f"{attribute.name!r} is given twice", "leave one of them out")
                return replace(event, attributes={**event.attributes, attribute.name: attribute.value})
            case "point":
                return replace(event, location=_point(part))
            case "polygon":
                return replace(event, location=read_polygon(token))
            case "source":
                return replace(event, source=content(token))
        return replace(event, id=content(token))

    def _attribute(self, part: Any) -> AttributeTest:
        name, compare, value = part.children
        if not name.isidentifier():
            raise _refused(name, f"{name} is no name of an attribute", "write name=value")
        if name in RESERVED_COLUMNS:
            raise _refused(name, f"{str(name)!r} is no attribute", _RESERVED[name])
        return AttributeTest(str(name), str(compare), read_value(value, self.origin))

    def event_file(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        (path,) = items
        test.add(InputFile(_span(path), self._path(path)), at)

    def advance(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        time = read_time(items[0], self.origin)
        if test.passed is not None and time <= test.passed[0]:
            message = f"time does not go back: line {test.passed[1].line} has advanced it already"
            raise _refused(meta, message, "name a later time")
        test.add(Advance(at, time), at)
        test.passed = (time, at)

    def end(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        test.add(End(), at)

    # -- what is expected --------------------------------------------------------------------------------

    def expect(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        count, said = items
        if count is not None and int(count) == 0:
            raise _refused(meta, "none of them is expected", "write `not TYPE ...`, or `expect nothing`")
        test.expectations.append(Expect(at, self._text(meta), self._description(said), int(count or 1)))

    def expect_nothing(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        test.expectations.append(ExpectNothing(at, self._text(meta)))

    def expect_side_output(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        count, what = items
        if any(other.what == what for other in test.side_outputs):
            raise _refused(meta, f"{what} events are counted twice", "say it once for the whole test")
        test.side_outputs.append(ExpectSideOutput(at, self._text(meta), str(what), int(count or 1)))

    def forbid(self, meta: Meta, items: list[Any]) -> None:
        test, at = self._inside(meta)
        test.expectations.append(Forbid(at, self._text(meta), self._description(items[0])))

    def allow(self, meta: Meta, items: list[Any]) -> None:
        self.current.allowed.append(self._description(items[0]))

    def allow_others(self, meta: Meta, items: list[Any]) -> None:
        self.current.allows_others = True

    def _description(self, said: Any) -> Description:
        kind, *parts, constituents = said.children
        what = Description(content(kind))
        for part in parts:
            match part.data:
                case "attribute":
                    what = replace(what, tests=(*what.tests, self._attribute(part)))
                case "point":
                    what = replace(what, location=_point(part))
                case "starts":
                    what = replace(what, start=read_time(part.children[0], self.origin))
                case "ends":
                    what = replace(what, end=read_time(part.children[0], self.origin))
        if constituents is not None:
            what = replace(what, events=frozenset(map(content, constituents.children)))
        return what


def _span(where: Any) -> Span:
    """Tell where a token or a line stands."""
    return Span(where.line, where.column, where.end_line, where.end_column)


def _refused(where: Any, message: str, hint: str | None) -> ScenarioError:
    return ScenarioError(message, _span(where), hint)


def _param(text: Token) -> dict[str, ParamSetting]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or not value:
        raise _refused(text, f"{str(text)!r} is no parameter", f"write for example: {EXAMPLES['param']}")
    return {name: ParamSetting(read_param(value), _span(text))}


def _read(reader: Callable[[str], int], text: Token, what: str, example: str) -> int:
    try:
        return reader(str(text))
    except DataError:
        raise _refused(text, f"{str(text)!r} is no {what}", f"write for example: {example}") from None


def _one_of(text: Token, names: Iterable[str]) -> str:
    known = list(names)
    if text not in known:
        raise _refused(text, f"{str(text)!r} does not fit here", did_you_mean(text, known))
    return str(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else str(text)


def _point(part: Any) -> Point:
    x, y = part.children
    return float(x), float(y)
