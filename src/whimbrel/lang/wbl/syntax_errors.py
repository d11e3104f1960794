"""Say in plain words why a text does not parse: what was found, what would fit, and the likely slip."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.wbl.literals import token_span
from whimbrel.model.length import LENGTHS
from whimbrel.model.schema import TYPE_NAMES
from whimbrel.model.time import UNITS

_KEYWORD = re.compile(r"^([A-Z_]+)\.\d: /([a-z<(][a-z_\\s+*()|?<>-]*?)(?:\\b)?/$", re.MULTILINE)
"""A terminal of the grammar that stands for words."""
_SHOWN_AS = {
    "_SUBSCRIPTION": ("Subscription",),
    "GROUP": ("group by",),
    "_STEPS": ("steps",),
    "_CANDIDATES": ("candidates",),
    "SKIP_NEXT": ("skip to next",),
    "FOLLOWS": ("next", "followed by", "followed by any", "not next", "not followed by"),
}
"""The words of keywords that are not shown as the grammar has them."""


@cache
def grammar() -> str:
    """Read the grammar of the language."""
    return files("whimbrel.lang.wbl").joinpath("grammar.lark").read_text(encoding="utf-8")


@cache
def keywords() -> dict[str, tuple[str, ...]]:
    """Read the words behind each keyword terminal off the grammar."""
    return {name: _words(pattern) for name, pattern in _KEYWORD.findall(grammar())} | _SHOWN_AS


def _words(pattern: str) -> tuple[str, ...]:
    text = pattern.replace(r"\s+", " ").replace(r"\s*", "").replace("( event)?", " event")
    before, _, choices = text.rstrip(")").partition("(")
    return tuple(before + choice for choice in choices.split("|"))


_KINDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "QUANTITY": "a number with a unit such as '5 min'",
    "STRING": "a text in quotes",
    "COMPARE": "a comparison such as '<'",
    "CONTEXT_NAME": "each, recent, chronicle, first-matching, continuous or cumulative",
    "UNIT": "a unit such as 's' or 'min'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "COLON": "':'",
    "EQUAL": "'='",
    "DOT": "'.'",
}
_STATEMENTS = {"_COORDINATES", "_PARAM", "_EVENT", "_REGION", "_DEFINE", "_SUBSCRIPTION", "_AROUND"}
_WALK = ("AMONG", "SKIP_PAST", "SKIP_NEXT", "SKIP_TO", "COUNTING", "LIMIT", "TIMING_OUT")
_CLAUSES = ("DETECT", "WHERE", "ASSIGN", "CONSUMING", "GROUP", "CONTEXT", *_WALK)
_MOBILE = (
    "_LISTED_IN",
    "BOX",
    "OUTLINE",
    "AHEAD",
    "ALONG",
    "SHAPED_BY",
    "REPORT",
    "LIFETIME",
    "_REFRESH",
    "QUALITY",
    "ORDER",
    "COMPLETENESS",
    "PREDICT",
    "REUSE",
    "DELIVER",
    "EXCLUDING_ITSELF",
    "MOTION_WITHIN_THE_INTEREST",
)
_VALUES = {"NUMBER", "STRING", "NAME", "LPAR", "MINUS"}
_RARE = {
    "STAR",
    "QMARK",
    "MARK",
    "BETWEEN_EVENTS",
    "MOVES",
    "COMES",
    "RESTS",
    "MEETS",
    "_RELATION",
    "RELATION",
    "TIMES",
    "PLUS",
    "MINUS",
    "SEMICOLON",
    "HAVING",
    "PRE",
    "POST",
    "TIMESTAMP",
    "TIME",
    "DOT",
}
_WORD = re.compile(r"[^\W\d]\w*")
_CLAUSE_WORD = re.compile(r"\b(detect|where|assign|having|consuming|by|context)\b")
_LAST_WORD = re.compile(r"([^\W\d]\w*|\S)\s*$")
_BARE_WKT = re.compile(r"(POLYGON|MULTIPOLYGON)\s*\([^\n]*$")
_COMMENT = re.compile(r"(#|//)[^\n]*")


def explain(error: UnexpectedInput, text: str) -> QuerySyntaxError:
    """Turn a parser's complaint into one that a person can use."""
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type == "$END":
            return _at_end(expected, text)
        return _at_token(error.token, expected, text)
    if isinstance(error, UnexpectedCharacters):
        return _at_character(error, text)
    return _at_end(set(), text)


def _at_end(expected: set[str], text: str) -> QuerySyntaxError:
    lines = text.rstrip().splitlines() or [""]
    at = Span(len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)
    return QuerySyntaxError("the query ends too early", at, f"next could be {_alternatives(expected)}")


def _at_token(token: Token, expected: set[str], text: str) -> QuerySyntaxError:
    at = token_span(token)
    shown = token.splitlines()[0] if token.splitlines() else str(token)
    return QuerySyntaxError(f"{shown!r} does not fit here", at, _hint(token, expected, text))


def _at_character(error: UnexpectedCharacters, text: str) -> QuerySyntaxError:
    at = Span(error.line, error.column, error.line, error.column + 1)
    position = cast("int", error.pos_in_stream)
    character = text[position] if position < len(text) else ""
    if character in "'\"":
        return QuerySyntaxError(
            "this text has no closing quote", at, f"end it with {character} on the same line"
        )
    word = _WORD.match(text, position)
    if word:
        at = Span(error.line, error.column, error.line, error.column + len(word[0]))
        token = Token("NAME", word[0], position, error.line, error.column)
        return QuerySyntaxError(
            f"{word[0]!r} does not fit here", at, _hint(token, set(error.allowed or ()), text)
        )
    if character in "&|!":
        return QuerySyntaxError(f"{character!r} does not fit here", at, "write 'and', 'or' and 'not'")
    if character in "[]":
        return QuerySyntaxError(
            f"{character!r} does not fit here", at, "lists have round brackets: in (1, 2)"
        )
    if character in "‘’“”":
        return QuerySyntaxError(f"{character!r} is no quotation mark here", at, "use ' or \"")
    return QuerySyntaxError(
        f"{character!r} does not fit here", at, f"next could be {_alternatives(set(error.allowed or ()))}"
    )


def _hint(token: Token, expected: set[str], text: str) -> str:
    before = _COMMENT.sub("", text[: token.start_pos or 0])
    # The last word cannot be far; a search through a long text could take long.
    previous = _LAST_WORD.search(before[-100:])
    word = previous[1] if previous else ""
    clauses = _CLAUSE_WORD.findall(before)
    return (
        _misspelt(str(token), expected)
        or _bad_unit(str(token), word)
        or _misspelt_before(token, word)
        or _keyword_before(token, word)
        or _known_slip(token, before, clauses[-1] if clauses else "")
        or f"next could be {_alternatives(expected)}"
    )


def _misspelt(word: str, expected: set[str]) -> str | None:
    fitting = {option.lower(): option for name in expected for option in keywords().get(name, ())}
    # The second word of `group by` is not misspelt when the first one is.
    fitting.update({"group": "group by"} if "GROUP" in expected else {})
    near = get_close_matches(word.lower(), fitting, n=1, cutoff=0.65)
    if not near or len(word) < 2 or fitting[near[0]] == word:
        return None
    return f"did you mean {fitting[near[0]]!r}?"


def _bad_unit(word: str, previous: str) -> str | None:
    if not previous.isdigit() or not _WORD.fullmatch(word) or word in _all_words():
        return None
    near = get_close_matches(word.lower(), [*UNITS, *LENGTHS], n=1, cutoff=0.6)
    return f"{word!r} is no unit; did you mean {near[0]!r}?" if near and len(word) > 1 else None


def _misspelt_before(token: Token, previous: str) -> str | None:
    """Look for the slip one word earlier: in `lst Position`, the parser stumbles at `Position`."""
    starts = _WORD.fullmatch(token) or token.type in ("NUMBER", "QUANTITY", "LPAR")
    if not starts or not _WORD.fullmatch(previous):
        return None
    words = [word for options in keywords().values() for word in options]
    if previous in words or previous == "group" or token in words or previous.lower() in TYPE_NAMES:
        return None
    near = get_close_matches(previous.lower(), words, n=1, cutoff=0.7)
    return f"did you mean {near[0]!r} instead of {previous!r}?" if near else None


def _keyword_before(token: Token, previous: str) -> str | None:
    """Notice a keyword that was read as a name, because a name stands missing before it."""
    if not _WORD.fullmatch(token) or previous not in _all_words():
        return None
    return f"{previous!r} is read as a name here; is something missing before it?"


def _known_slip(token: Token, before: str, clause: str) -> str | None:
    if token.type == "COMMA" and clause in ("where", "having"):
        return "join conditions with 'and'"
    if _WORD.fullmatch(token) and clause == "assign":
        return "put a comma between assignments"
    if token.type == "RPAR" and before.count("(") <= before.count(")"):
        return "there is no '(' that it could close"
    if _BARE_WKT.search(before[-100:]):
        return "put WKT in quotes: 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"
    if token.lower() != token and token.lower() in _all_words():
        return f"keywords are lower case: {token.lower()!r}"
    return None


def _all_words() -> set[str]:
    return {word for options in keywords().values() for word in options} | {"group", "by"}


def _alternatives(expected: set[str]) -> str:
    shown: list[str] = []
    rest = set(expected)
    if rest >= _VALUES:
        shown.append("a value")
        rest -= {*_VALUES, "QUANTITY", "TRUE", "FALSE", "NULL", "NOT", "TIMESTAMP"}
    if "PREFIX" in rest and "NAME" in rest:
        shown.append("an event type")
        rest -= {"PREFIX", "NAME", "LPAR", "TIME"}
    statement = rest >= _STATEMENTS
    rest -= _STATEMENTS if statement else set()
    clauses = [name for name in _CLAUSES if name in rest]
    if len(clauses) > 2:
        rest -= set(clauses) | {"CASE"}
    mobile = rest >= set(_MOBILE)
    rest -= {*_MOBILE, "GROUP", "WITHIN", "_UNTIL"} if mobile else set()
    named = sorted(name for name in rest if name not in _RARE and name != "$END")
    for name in named:
        options = [f"'{word}'" for word in keywords().get(name, ())] or [_KINDS.get(name, name.lower())]
        shown.extend(options)
    if len(clauses) > 2 and "_FROM" in expected and "THEN" not in expected:
        shown.append("'detect'")
    elif len(clauses) > 2:
        shown.append("another clause (where, assign, ...)")
    if mobile:
        shown.append("a clause (within, report, ...)")
    if statement:
        shown.append("a new statement (event, define, ...)")
    unique = list(dict.fromkeys(shown))
    if not unique:
        return "nothing more"
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} or {unique[-1]}"
