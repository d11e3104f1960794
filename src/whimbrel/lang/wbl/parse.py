"""From text to tree: Lark parses, the builder makes the nodes, errors name what is wrong."""

from __future__ import annotations

from functools import cache

from lark import Lark
from lark.exceptions import UnexpectedInput

from whimbrel.errors import QueryError, QuerySyntaxError
from whimbrel.lang.plans import build, refuse_deep
from whimbrel.lang.wbl.build import RULES
from whimbrel.lang.wbl.syntax_errors import explain, grammar
from whimbrel.lang.wbl.tree import WblFile

MAX_CHARACTERS = 500_000
TOO_DEEP = "the query is nested too deeply"
MAX_DEPTH = 100
"""Levels of the parse tree. Every later step is recursive; this keeps all of them far from Python's limit."""


def parse(text: str, file: str | None = None) -> WblFile:
    """Parse a query text.

    Raises
    ------
    QueryError
        If the text is no query; it shows the line and says what would fit there.
    """
    try:
        return _parse(text)
    except QueryError as error:
        raise error.located_in(text, file) from None
    except RecursionError:
        # Only a caller that is itself deep in the stack gets here; see MAX_DEPTH.
        raise QuerySyntaxError(TOO_DEEP).located_in(text, file) from None


def _parse(text: str) -> WblFile:
    if len(text) > MAX_CHARACTERS:
        raise QuerySyntaxError(f"the query has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}")
    try:
        parsed = _parser().parse(text)
    except UnexpectedInput as error:
        raise explain(error, text) from None
    refuse_deep(parsed, MAX_DEPTH, TOO_DEEP, "split it into several definitions")
    built: WblFile = build(parsed, RULES)
    return built


@cache
def _parser() -> Lark:
    return Lark(
        grammar(), parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True
    )
