"""From the text of a test file to a tree, and in plain words why a line is no sentence."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whimbrel.errors import ScenarioError, Span, did_you_mean

TIME_EXAMPLE = "write for example +5s, +1h30min or 2024-05-01T12:00:00Z"
_POINT_EXAMPLE = "write for example (2.5, -1)"

EXAMPLES = {
    "query": "query late.wbl",
    "param": "param limit = 30",
    "start": "start 2024-05-01T08:00:00Z",
    "lateness": "lateness 10 s",
    "horizon": "horizon 10 s",
    "coordinates": "coordinates lonlat",
    "context": "context recent",
    "emit": "emit all",
    "test": "test a truck that is late",
    "events": "events trips.csv",
    "advance": "advance to +1h",
    "end": "end",
    "expect": "expect Brake vehicle=A at +5s",
    "not": "not Brake vehicle=B",
    "allow": "allow Brake",
}
"""A sentence for each word that one may begin with."""

_MEANINGS = {
    "EVENT_TYPE": ("the type of the event", "write for example: +5s Position vehicle=A speed=50 at (10, 20)"),
    "DETECTION_TYPE": ("the type of the detection", f"write for example: {EXAMPLES['expect']}"),
    "TIME": ("a time", TIME_EXAMPLE),
    "NUMBER": ("a number", _POINT_EXAMPLE),
    "COMMA": ("a comma", _POINT_EXAMPLE),
    "RPAR": ("')'", _POINT_EXAMPLE),
    "LPAR": ("a place", _POINT_EXAMPLE),
    "VALUE": ("a value", "text with blanks goes in quotes; null stands for no value"),
    "SOURCE": ("the source", "write for example: source bus-4"),
    "NAME": ("the name of the event", "write for example: as e1"),
    "EVENT_NAME": ("the name of an event", "events are named with `as`: +5s Position as e1"),
}
"""What each terminal stands for, and a hint; of several that are expected, the first is spoken of."""
_VERDICTS = {
    "TIME": "is not a time",
    "NUMBER": "is no number",
    "LPAR": "is not a place",
    "VALUE": "is no value",
}
_IN_QUOTES = "put texts with such characters in quotes"
_WORDS = ("at", "source", "as", "from", "to", "events")
"""What may be said of an event or a detection, besides its attributes."""

_SHOWN = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[<>!]=|[^\s'"(),=<>!]+|.""")


def parse(text: str) -> Tree[Token]:
    """Parse a test file whose lines all end in a line feed.

    Raises
    ------
    ScenarioError
        If a line is no sentence; it says what is missing or does not fit, and what would.
    """
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _explained(error, text) from None


@cache
def _parser() -> Lark:
    grammar = files("whimbrel.testing").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="file", parser="lalr", lexer="contextual", propagate_positions=True)


def _explained(error: UnexpectedInput, text: str) -> ScenarioError:
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    position = cast("int", error.pos_in_stream)
    if "_EXPECT" in expected:
        return _no_sentence(text, position)
    if text[position] in "#\n":
        return _missing(expected, text, len(text[:position].rstrip()))
    return _misfit(expected, text, position)


def _no_sentence(text: str, position: int) -> ScenarioError:
    word = text[position:].split(maxsplit=1)[0]
    near = _near(word, tuple(EXAMPLES))
    words = f"lines begin with one of: {', '.join(EXAMPLES)}; or with a time, and are events then"
    return ScenarioError(f"no line begins with {word!r}", _span(text, position, len(word)), near or words)


def _missing(expected: set[str], text: str, position: int) -> ScenarioError:
    at, name = _span(text, position, 1), _first_of(expected)
    if name is not None:
        wanted, hint = _MEANINGS[name]
        return ScenarioError(f"{wanted} is missing here", at, hint)
    word = text[:position].rpartition("\n")[2].split(maxsplit=1)[0]
    message = "a test needs a name" if word == "test" else "something is missing here"
    return ScenarioError(message, at, f"write for example: {EXAMPLES[word]}")


def _misfit(expected: set[str], text: str, position: int) -> ScenarioError:
    rest = [*_SHOWN.finditer(text, position, text.index("\n", position))]
    for token in takewhile(lambda token: not token[0].startswith("#"), rest):
        if token[0] in ("'", '"'):  # the likely slip, even if something before it is what does not fit
            at, hint = _span(text, token.start(), 1), f"end it with {token[0]} on the same line"
            return ScenarioError("this text has no closing quote", at, hint)
    shown = rest[0][0]
    at, name = _span(text, position, len(shown)), _first_of(expected)
    if name == "EVENT_TYPE" and shown.isidentifier():
        hint = "write times without blanks: +1h30min"
        return ScenarioError(f"{shown!r} stands apart from its number", at, hint)
    verdict, hint = "does not fit here", "the line could end here"
    if shown == "!":
        hint = _IN_QUOTES
    elif "ATTRIBUTE" in expected:
        words = tuple(word for word in _WORDS if f"_{word.upper()}" in expected)
        hint = _near(shown, words) or f"write name=value, or one of: {', '.join(words)}"
    elif name is not None:
        verdict, hint = _VERDICTS.get(name, verdict), _IN_QUOTES if name == "VALUE" else _MEANINGS[name][1]
    return ScenarioError(f"{shown!r} {verdict}", at, hint)


def _first_of(expected: set[str]) -> str | None:
    return next((name for name in _MEANINGS if name in expected), None)


def _near(word: str, known: tuple[str, ...]) -> str | None:
    near = did_you_mean(word, known)
    return near if near and near.startswith("did you mean") else None


def _span(text: str, position: int, length: int) -> Span:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return Span(line, column, line, column + length)
