"""From text to tree: Lark parses, the builder makes the nodes, errors name what is wrong."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from whimbrel.errors import QueryError, QuerySyntaxError
from whimbrel.lang.cpsl.build import RULES
from whimbrel.lang.cpsl.separators import Separators
from whimbrel.lang.cpsl.syntax_errors import explain
from whimbrel.lang.cpsl.tree import CpslFile
from whimbrel.lang.plans import TokenPlan, refuse_deep
from whimbrel.lang.wbl.parse import MAX_CHARACTERS

TOO_DEEP = "the subscription is nested too deeply"
MAX_DEPTH = 60
"""Levels of the parse tree. Every later step is recursive; this keeps all of them far from Python's limit."""

MAX_PLANS = 1024
"""Trees that are kept for texts with the same tokens."""


def parse(text: str, file: str | None = None) -> CpslFile:
    """Parse a text of subscriptions, one a line.

    Raises
    ------
    QueryError
        If a line is no subscription; it shows the line and says what would fit there.
    """
    try:
        return _parse(text)
    except QueryError as error:
        raise error.located_in(text, file) from None
    except RecursionError:
        raise QuerySyntaxError(TOO_DEEP).located_in(text, file) from None


def _parse(text: str) -> CpslFile:
    if len(text) > MAX_CHARACTERS:
        raise QuerySyntaxError(f"the text has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}")
    tokens = _tokens(text + "\n")
    built: CpslFile = _planned(text + "\n", tokens).carry_out(tokens)
    return built


def _tokens(text: str) -> list[Token]:
    try:
        return list(_lexer().lex(text))
    except UnexpectedInput:
        # The parser knows better what was to be expected.
        _parsed(text)
        raise


def _planned(text: str, tokens: list[Token]) -> TokenPlan:
    """Parse a text, or find what a text with the same tokens was parsed to."""
    key = tuple(token.type for token in tokens)
    plans = _plans()
    if key not in plans:
        if len(plans) >= MAX_PLANS:
            plans.clear()
        plans[key] = TokenPlan.of(_parsed(text), tokens, RULES)
    return plans[key]


def _parsed(text: str) -> Tree[Token]:
    try:
        parsed = _parser().parse(text)
    except UnexpectedInput as error:
        raise explain(error, text.removesuffix("\n")) from None
    refuse_deep(parsed, MAX_DEPTH, TOO_DEEP, "bind a part of it to a variable: $x; = (...)")
    return parsed


@cache
def _plans() -> dict[tuple[str, ...], TokenPlan]:
    return {}


@cache
def _lexer() -> Lark:
    return Lark(_grammar(), parser=None, lexer="basic", postlex=Separators())


@cache
def _parser() -> Lark:
    return Lark(
        _grammar(),
        parser="lalr",
        lexer="basic",
        postlex=Separators(),
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _grammar() -> str:
    return files("whimbrel.lang.cpsl").joinpath("grammar.lark").read_text(encoding="utf-8")
