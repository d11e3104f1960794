"""From text to tree: Lark parses, `Builder` makes the nodes, and what is malformed is refused by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, VisitError

from whimbrel.errors import QueryError, QuerySyntaxError
from whimbrel.lang.cpsl.build import Builder
from whimbrel.lang.cpsl.separators import Separators
from whimbrel.lang.cpsl.syntax_errors import explain
from whimbrel.lang.cpsl.tree import File
from whimbrel.lang.wbl.build import meta_span
from whimbrel.lang.wbl.parse import MAX_CHARACTERS

TOO_DEEP = "the subscription is nested too deeply"
MAX_DEPTH = 60
"""Levels of the parse tree. Every later step is recursive; this keeps all of them far from Python's limit."""


def parse(text: str, file: str | None = None) -> File:
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


def _parse(text: str) -> File:
    if len(text) > MAX_CHARACTERS:
        raise QuerySyntaxError(f"the text has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}")
    try:
        parsed = _parser().parse(text + "\n")
    except UnexpectedInput as error:
        raise explain(error, text) from None
    _refuse_deep(parsed)
    try:
        built: File = Builder().transform(parsed)
    except VisitError as error:
        raise error.orig_exc from None
    return built


@cache
def _parser() -> Lark:
    grammar = files("whimbrel.lang.cpsl").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        postlex=Separators(),
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _refuse_deep(parsed: Tree[Token]) -> None:
    level: list[Tree[Token]] = [parsed]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    raise QuerySyntaxError(
        f"{TOO_DEEP} here", meta_span(level[0].meta), "bind a part of it to a variable: $x; = (...)"
    )
