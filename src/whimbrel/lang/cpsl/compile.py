"""Compile CPSL: parse it, put it into the Whimbrel language, and go the ordinary way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from whimbrel.errors import QueryError, UnboundedError
from whimbrel.graph.query import Query
from whimbrel.lang.cpsl.lower import LoweredCpsl, lower
from whimbrel.lang.cpsl.parse import TOO_DEEP, parse
from whimbrel.lang.cpsl.printer import print_file
from whimbrel.lang.cpsl.raising import raise_file
from whimbrel.lang.wbl.compile import compile_tree
from whimbrel.lang.wbl.format import format_tree
from whimbrel.lang.wbl.parse import parse as parse_wbl


def compile_text(
    text: str,
    *,
    file: str | None = None,
    horizon: timedelta | str | int | None = None,
    emit: Sequence[str] | str | None = None,
) -> Query:
    """Compile subscriptions in CPSL, one a line: `name: subscription`.

    Parameters
    ----------
    file
        Where the text comes from, for error messages.
    horizon
        How far the events of one detection may lie apart where a subscription does not say it.
    emit
        Names of the subscriptions to report, or "all"; by default those that no other one uses.

    Raises
    ------
    QueryError
        If a subscription cannot be compiled; it shows the line and a hint.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.cpsl("late: !(leave;3600)arrive")
    >>> print(query.text, end="")
    define late
      detect leave as a then not arrive as b for 3600 s
    """
    try:
        lowered = _lowered(text, file)
        query = compile_tree(lowered.tree, text=format_tree(lowered.tree), horizon=horizon, emit=emit)
    except UnboundedError as error:
        error.hint = "give a horizon, as CPSL has no other bound for it: --horizon 1h, or horizon='1 h'"
        raise error.located_in(text, file) from None
    except QueryError as error:
        raise error.located_in(text, file) from None
    except RecursionError:
        raise QueryError(TOO_DEEP).located_in(text, file) from None
    return replace(query, warnings=(*lowered.warnings, *query.warnings))


def to_wbl(text: str, file: str | None = None) -> str:
    """Translate CPSL into the Whimbrel language."""
    try:
        return format_tree(_lowered(text, file).tree)
    except QueryError as error:
        raise error.located_in(text, file) from None


def _lowered(text: str, file: str | None) -> LoweredCpsl:
    return lower(parse(text, file))


def from_wbl(text: str, file: str | None = None) -> str:
    """Translate a query in the Whimbrel language into CPSL, where it has a form there.

    Raises
    ------
    QueryError
        If something in the query has no CPSL form; it names it.
    """
    try:
        return print_file(raise_file(parse_wbl(text, file)))
    except QueryError as error:
        raise error.located_in(text, file) from None
