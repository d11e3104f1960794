"""Compile a text: parse it, lower it, format it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypedDict

from whimbrel.errors import DataError, QueryError
from whimbrel.graph.functions import Function
from whimbrel.graph.query import Query
from whimbrel.lang.wbl.format import format_tree
from whimbrel.lang.wbl.lower import lower
from whimbrel.lang.wbl.parse import TOO_DEEP, parse
from whimbrel.lang.wbl.tree import WblFile
from whimbrel.lang.wbl.values import ParamValue
from whimbrel.model.time import duration


class CompileSettings(TypedDict, total=False):
    """The settings of `compile`; each may be left out."""

    params: Mapping[str, ParamValue] | None
    functions: Iterable[Function]
    horizon: timedelta | str | int | None
    emit: Sequence[str] | str | None


def compile_text(
    text: str,
    *,
    file: str | None = None,
    params: Mapping[str, ParamValue] | None = None,
    functions: Iterable[Function] = (),
    horizon: timedelta | str | int | None = None,
    emit: Sequence[str] | str | None = None,
) -> Query:
    """Compile a query in the Whimbrel language.

    Parameters
    ----------
    file
        Where the text comes from, for error messages; files that it names are looked up beside it.
    params
        Values for the query's parameters; they replace those it declares.
    functions
        Python functions that the query calls.
    horizon
        How far events of one detection may lie apart where the query does not say it.
    emit
        Names of the definitions to report, or "all", or names of mobile queries; by default the mobile
        queries, or, if there are none, the subscriptions, or, if there are none either, the definitions that
        no other one uses.

    Raises
    ------
    QueryError
        If the query cannot be compiled; it shows the line and a hint.
    """
    try:
        tree = parse(text, file)
        laid_out = format_tree(tree, text)
        return compile_tree(
            tree,
            text=laid_out,
            params=params,
            functions=functions,
            horizon=horizon,
            emit=emit,
            folder=Path() if file is None else Path(file).parent,
        )
    except QueryError as error:
        if error.text is None:
            error.located_in(text, file)
        raise
    except RecursionError:
        raise QueryError(TOO_DEEP).located_in(text, file) from None


def compile_tree(
    tree: WblFile,
    *,
    text: str | None = None,
    params: Mapping[str, ParamValue] | None = None,
    functions: Iterable[Function] = (),
    horizon: timedelta | str | int | None = None,
    emit: Sequence[str] | str | None = None,
    forever: bool = False,
    folder: Path = Path(),
) -> Query:
    """Compile a tree, whoever made it. `text` is what the query prints as, if not the tree itself.

    `forever` lets sequences of steps remember events without a bound in time. Layers are read from `folder`.
    """
    known = {function.name.lower(): function for function in functions}
    wanted = emit if emit is None or isinstance(emit, str) else list(emit)
    lowered = lower(tree, params, known, _horizon(horizon), wanted, forever=forever, folder=folder)
    shown = format_tree(tree) if text is None else text
    return Query(
        lowered.graph,
        shown,
        lowered.schemas,
        known,
        lowered.subscriptions,
        lowered.warnings,
        mobile=lowered.mobile,
    )


def _horizon(value: timedelta | str | int | None) -> int | None:
    if value is None:
        return None
    try:
        length = duration(value)
    except DataError as error:
        raise QueryError(f"the horizon is no duration: {error}") from None
    if length <= 0:
        raise QueryError("the horizon must be more than nothing")
    return length
