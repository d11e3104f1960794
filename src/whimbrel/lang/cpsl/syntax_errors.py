"""Say in plain words why a text does not parse: what was found, what would fit, and the likely slip."""

from __future__ import annotations

from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.wbl.literals import token_span

_SHOWN = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": 'a text in quotes such as "bus"',
    "COLON": "':'",
    "_AND": "'&&'",
    "_OR": "'||'",
    "RPAR": "')'",
    "LPAR": "'('",
    "RSQB": "']'",
    "EQUAL": "'='",
    "_SEPARATOR": "';'",
    "_COMMA": "','",
    "VARIABLE": "a variable such as $x;",
}
_SUBSCRIPTION = {"KIND", "BETWEEN", "REPEAT"}
_SIGNS = {"LESS", "MORE", "SIGN"}
_NAMED = "write 'name: ' before it; its detections are events of that type"


def explain(error: UnexpectedInput, text: str) -> QuerySyntaxError:
    """Turn what Lark reports into an error with a place and a hint."""
    if isinstance(error, UnexpectedCharacters):
        return _odd_character(error, text)
    return _odd_token(cast("UnexpectedToken", error), text)


def _odd_character(error: UnexpectedCharacters, text: str) -> QuerySyntaxError:
    line, column = error.line, error.column
    rest = text.split("\n")[line - 1][column - 1 :]
    at = Span(line, column, line, column + 1)
    if rest.startswith('"'):
        whole = Span(line, column, line, column + len(rest))
        return QuerySyntaxError("this text has no closing quote", whole, 'end it with "')
    hints = {
        "'": 'texts stand in double quotes: "bus"',
        "$": "a variable has a name that begins with a letter: $x;",
        "{": "subscriptions are grouped by ( and )",
    }
    hint = hints.get(rest[:1], "leave it out, or put it into quotes")
    return QuerySyntaxError(f"{rest[:1]!r} means nothing here", at, hint)


def _odd_token(error: UnexpectedToken, text: str) -> QuerySyntaxError:
    token, expected = cast("Token", error.token), set(error.expected)
    if token.type == "$END":
        return QuerySyntaxError("the text ends too early", _end_of(text), _fitting(expected))
    at = token_span(token)
    if token.type == "_NL":
        return _line_ends(text, at, expected)
    before = text.split("\n")[at.line - 1][: at.column - 1]
    if not before.strip():
        return QuerySyntaxError("a line begins with the name of the subscription", at, _NAMED)
    if expected == {"COLON"}:
        return QuerySyntaxError(f"'{token}' does not fit here", at, _NAMED)
    if before.rstrip().endswith(("STRING", "ARITH", "RFID")):
        return QuerySyntaxError(
            f"'{token}' does not fit here", at, f"write ':' before it: {before.split()[-1]}:{token}"
        )
    if before.count("(") <= before.count(")"):
        if token.type == "RPAR":
            return QuerySyntaxError("this ')' closes nothing", at, "leave it out, or add a '(' before")
        expected -= {"RPAR", "_SEPARATOR"}  # the parser merges states, and does not know that none is open
    return QuerySyntaxError(f"'{token}' does not fit here", at, _fitting(expected))


def _line_ends(text: str, at: Span, expected: set[str]) -> QuerySyntaxError:
    line = text.split("\n")[at.line - 1].rstrip() if at.line <= text.count("\n") + 1 else ""
    end = Span(at.line, len(line) + 1, at.line, len(line) + 2)
    if line.count("(") > line.count(")") and expected & {"RPAR", "RSQB"}:
        return QuerySyntaxError("a '(' is not closed", end, "a subscription ends with its line; add ')'")
    return QuerySyntaxError("the line ends too early", end, _fitting(expected))


def _end_of(text: str) -> Span:
    lines = text.split("\n")
    return Span(len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)


def _fitting(expected: set[str]) -> str:
    fitting = []
    if expected >= _SUBSCRIPTION:
        fitting.append('a subscription such as STRING:type = "TAXI", $x; or =|(A;5)B')
        expected = expected - {"LPAR", "VARIABLE", "NAME"}
    if "KIND" in expected and not expected >= _SUBSCRIPTION:
        fitting.append("STRING:, ARITH: or RFID:")
    if expected >= _SIGNS:
        fitting.append("an operator such as <, = or >")
    elif expected >= {"LESS", "MORE"}:
        fitting.append("<, = or >")
    fitting += [_SHOWN[name] for name in _SHOWN if name in expected and not _implied(name, expected)]
    return f"expected {' or '.join(fitting[:5])}" if fitting else "leave it out"


def _implied(name: str, expected: set[str]) -> bool:
    return name == "EQUAL" and "LESS" in expected
