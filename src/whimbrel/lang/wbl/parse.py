"""From text to tree: Lark parses, the builder makes the nodes, errors name what is wrong."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, VisitError

from whimbrel.errors import QueryError, QuerySyntaxError
from whimbrel.lang.wbl.build import WblTreeBuilder, meta_span
from whimbrel.lang.wbl.syntax_errors import explain
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
    _refuse_deep(parsed)
    try:
        built: WblFile = WblTreeBuilder().transform(parsed)
    except VisitError as error:
        raise error.orig_exc from None
    return built


@cache
def _parser() -> Lark:
    grammar = files("whimbrel.lang.wbl").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


def _refuse_deep(parsed: Tree[Token]) -> None:
    level: list[Tree[Token]] = [parsed]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    raise QuerySyntaxError(f"{TOO_DEEP} here", meta_span(level[0].meta), "split it into several definitions")
