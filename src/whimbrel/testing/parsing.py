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
`allow Late`, `allow others`                   detections that may be there or not
=============================================  ========================================================

Settings before the first test hold for all of them; inside a test they hold for that test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from whimbrel.errors import DataError, ScenarioError, Span, did_you_mean
from whimbrel.graph.policies import Context
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates
from whimbrel.model.time import duration, instant
from whimbrel.testing.builder import ScenarioBuilder
from whimbrel.testing.lines import Line, Token
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
    ScenarioSettings,
    WrittenValue,
)
from whimbrel.testing.values import (
    format_time,
    looks_like_time,
    read_param,
    read_point,
    read_polygon,
    read_time,
    read_times,
    read_value,
)

ENDING = ".wbt"
"""How the names of test files end."""

SET_ASIDE = ("late", "duplicate", "rejected")
_EVENT_EXAMPLE = "write for example: +5s Position vehicle=A speed=50 at (10, 20)"
_EXPECT_EXAMPLE = "write for example: expect Brake vehicle=A at +5s"


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
    """Reads a file line by line; each sentence has a method, found by its first word."""

    def __init__(self, text: str, file: Path) -> None:
        self.text = text
        self.file = file
        self.head = ScenarioSettings()
        self.allowed: list[Description] = []
        self.allows_others = False
        self.draft: ScenarioBuilder | None = None
        self.done: list[Scenario] = []
        self.width = len(str(len(text.splitlines())))

    def read(self) -> list[Scenario]:
        for number, raw in enumerate(self.text.splitlines(), start=1):
            if raw.strip() and not raw.strip().startswith("#"):
                self._line(Line(raw, number))
        self._finish_test()
        return self.done

    @property
    def settings(self) -> ScenarioSettings:
        return self.head if self.draft is None else self.draft.settings

    @settings.setter
    def settings(self, settings: ScenarioSettings) -> None:
        if self.draft is None:
            self.head = settings
        else:
            self.draft.settings = settings

    def _line(self, line: Line) -> None:
        word = line.first_word
        if looks_like_time(word):
            self._event(line)
        elif word in _SENTENCES:
            _SENTENCES[word](self, line)
        else:
            at = Span(line.number, line.at.column, line.number, line.at.column + len(word))
            near = did_you_mean(word, _SENTENCES) or ""
            words = f"lines begin with one of: {', '.join(_SENTENCES)}; or with a time, and are events then"
            hint = near if near.startswith("did you mean") else words
            raise ScenarioError(f"no line begins with {word!r}", at, hint)

    # -- tests -------------------------------------------------------------------------------------------

    def test_line(self, line: Line) -> None:
        self._finish_test()
        name, at = line.behind_first_word()
        if not name:
            raise ScenarioError("a test needs a name", at, "write for example: test a truck that is late")
        if any(other.name == name for other in self.done):
            raise ScenarioError(f"there is a test {name!r} already", at, "choose another name")
        self.draft = ScenarioBuilder(
            name, line.at, self.head, allowed=list(self.allowed), allows_others=self.allows_others
        )

    def _finish_test(self) -> None:
        draft = self.draft
        if draft is None:
            return
        steps = draft.finish()
        if not draft.says_something:
            raise ScenarioError(
                f"the test {draft.name!r} expects nothing at all",
                draft.at,
                "add what it expects: `expect TYPE ...`, `expect nothing` or `not TYPE ...`",
            )
        allows_others = draft.allows_others or not draft.expects_something
        self.done.append(
            Scenario(
                draft.name,
                self.file,
                draft.at,
                self.text,
                draft.settings,
                steps,
                tuple(draft.set_aside),
                tuple(draft.allowed),
                allows_others,
            )
        )

    def _inside(self, line: Line) -> ScenarioBuilder:
        if self.draft is None:
            raise ScenarioError("this belongs into a test", line.at, "begin one above it: test NAME")
        return self.draft

    # -- settings ----------------------------------------------------------------------------------------

    def _rest(self, line: Line, example: str) -> tuple[str, Span]:
        text, at = line.behind_first_word()
        if not text:
            raise ScenarioError("something is missing here", at, f"write for example: {example}")
        return text, at

    def query_line(self, line: Line) -> None:
        text, _ = self._rest(line, "query late.wbl")
        self.settings = replace(self.settings, query=self.file.parent / _unquoted(text))

    def param_line(self, line: Line) -> None:
        text, at = self._rest(line, "param limit = 30")
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier() or not value:
            raise ScenarioError(f"{text!r} is no parameter", at, "write for example: param limit = 30")
        params = {**self.settings.params, name: ParamSetting(read_param(value), at)}
        self.settings = replace(self.settings, params=params)

    def _length(self, line: Line) -> int:
        text, at = self._rest(line, f"{line.first_word} 10 s")
        try:
            return duration(text)
        except DataError:
            raise ScenarioError(
                f"{text!r} is no length of time", at, "write for example: 10 s, 5 min or 1 h 30 min"
            ) from None

    def lateness_line(self, line: Line) -> None:
        self.settings = replace(self.settings, lateness=self._length(line))

    def horizon_line(self, line: Line) -> None:
        self.settings = replace(self.settings, horizon=self._length(line))

    def coordinates_line(self, line: Line) -> None:
        names = [str(kind) for kind in Coordinates]
        self.settings = replace(self.settings, coordinates=Coordinates(self._one_of(line, names)))

    def context_line(self, line: Line) -> None:
        names = [context.value for context in Context]
        self.settings = replace(self.settings, context=Context(self._one_of(line, names)))

    def _one_of(self, line: Line, names: list[str]) -> str:
        text, at = self._rest(line, f"{line.first_word} {names[0]}")
        if text not in names:
            raise ScenarioError(f"{text!r} does not fit here", at, did_you_mean(text, names))
        return text

    def emit_line(self, line: Line) -> None:
        text, _ = self._rest(line, "emit all")
        names = tuple(name for name in text.replace(",", " ").split())
        self.settings = replace(self.settings, emit="all" if names == ("all",) else names)

    def start_line(self, line: Line) -> None:
        text, at = self._rest(line, "start 2024-05-01T08:00:00Z")
        if self.draft is not None and (self.draft.steps or self.draft.expectations):
            raise ScenarioError("`start` comes too late", line.at, "put it above the events of the test")
        try:
            self.settings = replace(self.settings, origin=instant(text))
        except DataError:
            raise ScenarioError(
                f"{text!r} is no date and time", at, "write for example: 2024-05-01T08:00:00Z"
            ) from None

    # -- what happens ------------------------------------------------------------------------------------

    def _event(self, line: Line) -> None:
        draft = self._inside(line)
        line.split()
        start, end = read_times(line.take("a time"), self.settings.origin)
        kind = line.take("the type of the event", _EVENT_EXAMPLE)
        if kind.kind == "word" and kind.text in _UNITS:
            raise ScenarioError(
                f"{kind.text!r} stands apart from its number", kind.at, "write times without blanks: +1h30min"
            )
        event = InputEvent(line.at, kind.content, start, end, f"L{line.number:0{self.width}}")
        while line.peek() is not None:
            event = self._about_event(line, event)
        if draft.passed is not None and end <= draft.passed[0]:
            passed = format_time(draft.passed[0], self.settings.origin)
            raise ScenarioError(
                f"this event is too late: line {draft.passed[1].line} says that everything up to {passed} "
                "has been seen",
                line.at,
                "put it above that line, or let it end later",
            )
        draft.add(event, line.at)

    def _about_event(self, line: Line, event: InputEvent) -> InputEvent:
        token = line.take("an attribute")
        if _is_compared(line):
            return self._with_attribute(line, token, event)
        match token.text:
            case "at":
                place: Point | bytes
                following = line.peek()
                if following is not None and following.kind == "text":
                    place = read_polygon(line.take("a place"))
                else:
                    place = read_point(line)
                return replace(event, place=place)
            case "source":
                return replace(
                    event, source=line.take("the source", "write for example: source bus-4").content
                )
            case "as":
                return replace(
                    event, id=line.take("the name of the event", "write for example: as e1").content
                )
        raise _no_attribute(token, ("at", "source", "as"))

    def _with_attribute(self, line: Line, name: Token, event: InputEvent) -> InputEvent:
        compare = line.take("'='")
        if compare.text != "=":
            raise ScenarioError("an event has values: name=value", compare.at, "write '='")
        _refuse_reserved(name)
        if name.content in event.attributes:
            raise ScenarioError(f"{name.content!r} is given twice", name.at, "leave one of them out")
        value = self._value(line)
        return replace(event, attributes={**event.attributes, name.content: value})

    def _value(self, line: Line) -> WrittenValue:
        token = line.take("a value", "text with blanks goes in quotes; null stands for no value")
        return read_value(token, self.settings.origin)

    def events_line(self, line: Line) -> None:
        text, at = self._rest(line, "events trips.csv")
        self._inside(line).add(InputFile(at, self.file.parent / _unquoted(text)), line.at)

    def advance_line(self, line: Line) -> None:
        draft = self._inside(line)
        line.split().take("advance")
        if line.next_is("to"):
            line.take("to")
        time = read_time(line, self.settings.origin)
        line.finish()
        if draft.passed is not None and time <= draft.passed[0]:
            raise ScenarioError(
                f"time does not go back: line {draft.passed[1].line} has advanced it already",
                line.at,
                "name a later time",
            )
        draft.add(Advance(line.at, time), line.at)
        draft.passed = (time, line.at)

    def end_line(self, line: Line) -> None:
        draft = self._inside(line)
        line.split().take("end")
        line.finish()
        draft.add(End(), line.at)

    # -- what is expected --------------------------------------------------------------------------------

    def expect_line(self, line: Line) -> None:
        draft = self._inside(line)
        line.split().take("expect")
        first = line.peek()
        if first is not None and first.text == "nothing" and line.peek(1) is None:
            draft.expectations.append(ExpectNothing(line.at, line.text))
            return
        count = 1
        if first is not None and first.kind == "word" and first.text.isdigit():
            count = int(line.take("a number").text)
        kind, behind = line.peek(), line.peek(1)
        if kind is not None and kind.text in SET_ASIDE and behind is not None and behind.text in _EVENT_WORDS:
            self._set_aside(line, kind.text, count, draft)
            return
        if count == 0:
            raise ScenarioError(
                "none of them is expected", line.at, "write `not TYPE ...`, or `expect nothing`"
            )
        draft.expectations.append(Expect(line.at, line.text, self._description(line), count))

    def _set_aside(self, line: Line, what: str, count: int, draft: ScenarioBuilder) -> None:
        line.place += 2
        line.finish()
        if any(other.what == what for other in draft.set_aside):
            raise ScenarioError(f"{what} events are counted twice", line.at, "say it once for the whole test")
        draft.set_aside.append(ExpectSideOutput(line.at, line.text, what, count))

    def not_line(self, line: Line) -> None:
        draft = self._inside(line)
        line.split().take("not")
        draft.expectations.append(Forbid(line.at, line.text, self._description(line)))

    def allow_line(self, line: Line) -> None:
        line.split().take("allow")
        is_others = line.next_is("others") and line.peek(1) is None
        if self.draft is None:
            self.allows_others |= is_others
            self.allowed += [] if is_others else [self._description(line)]
        else:
            self.draft.allows_others |= is_others
            self.draft.allowed += [] if is_others else [self._description(line)]

    def _description(self, line: Line) -> Description:
        kind = line.take("the type of the detection", _EXPECT_EXAMPLE)
        found = Description(kind.content)
        while line.peek() is not None:
            found = self._about_detection(line, found)
        return found

    def _about_detection(self, line: Line, found: Description) -> Description:
        token = line.take("an attribute")
        if _is_compared(line):
            compare = line.take("a comparison").text
            _refuse_reserved(token)
            return replace(
                found, tests=(*found.tests, AttributeTest(token.content, compare, self._value(line)))
            )
        match token.text:
            case "at" if line.next_is("("):
                return replace(found, place=read_point(line))
            case "at" | "to":
                return replace(found, end=read_time(line, self.settings.origin))
            case "from":
                return replace(found, start=read_time(line, self.settings.origin))
            case "events":
                return replace(found, events=self._names(line))
        raise _no_attribute(token, ("at", "from", "to", "events"))

    def _names(self, line: Line) -> frozenset[str]:
        names = [line.take("the name of an event", "events are named with `as`: +5s Position as e1").content]
        while line.peek() is not None:
            names.append(line.take("a name").content)
        return frozenset(names)


_SENTENCES: dict[str, Callable[[_Reader, Line], None]] = {
    "query": _Reader.query_line,
    "param": _Reader.param_line,
    "start": _Reader.start_line,
    "lateness": _Reader.lateness_line,
    "horizon": _Reader.horizon_line,
    "coordinates": _Reader.coordinates_line,
    "context": _Reader.context_line,
    "emit": _Reader.emit_line,
    "test": _Reader.test_line,
    "events": _Reader.events_line,
    "advance": _Reader.advance_line,
    "end": _Reader.end_line,
    "expect": _Reader.expect_line,
    "not": _Reader.not_line,
    "allow": _Reader.allow_line,
}
_EVENT_WORDS = ("event", "events")
_UNITS = frozenset({"us", "ms", "s", "sec", "min", "h", "d", "w"})


def _is_compared(line: Line) -> bool:
    token = line.peek()
    return token is not None and token.kind == "compare"


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _refuse_reserved(name: Token) -> None:
    if name.kind != "word" or not name.text.isidentifier():
        raise ScenarioError(f"{name.text} is no name of an attribute", name.at, "write name=value")
    if name.text not in RESERVED_COLUMNS:
        return
    hints = {
        "id": "name an event with `as`: as e1",
        "type": "the type stands first",
        "source": "write it with a blank: source bus-4",
        "geometry": "write where it is with `at`: at (10, 20)",
    }
    places = dict.fromkeys(("x", "y", "lon", "lat"), "write both together: at (10, 20)")
    times = dict.fromkeys(("time", "start", "end"), "times are written +5s, or from +5s to +8s")
    raise ScenarioError(f"{name.text!r} is no attribute", name.at, (hints | places | times)[name.text])


def _no_attribute(token: Token, words: tuple[str, ...]) -> ScenarioError:
    near = did_you_mean(token.text, words)
    hint = (
        near
        if near and near.startswith("did you mean")
        else f"write name=value, or one of: {', '.join(words)}"
    )
    return ScenarioError(f"{token.text!r} does not fit here", token.at, hint)
