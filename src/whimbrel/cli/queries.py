"""Queries as commands name them: a file, or - for standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whimbrel.errors import DataError, WhimbrelError
from whimbrel.graph.policies import Context
from whimbrel.model.time import duration

if TYPE_CHECKING:
    from whimbrel.graph.query import Query
    from whimbrel.lang.wbl.values import ParamValue

STDIN = "-"


def read_query(
    path: str,
    *,
    params: Iterable[tuple[str, str]] = (),
    horizon: str | None = None,
    emit: Sequence[str] | str | None = None,
    context: str | None = None,
) -> Query:
    """Compile the query that a command names."""
    from whimbrel.lang.reading import compile_file

    text = read_text(path)
    query = compile_file(text, shown(path), params=_typed(dict(params), text), horizon=horizon, emit=emit)
    return query if context is None else query.in_context(Context(context))


def read_text(path: str) -> str:
    """Read the text of a query."""
    if path == STDIN:
        return _standard_input()
    from whimbrel.lang import reading

    return reading.read_text(Path(path))


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"standard input is not UTF-8 text: {error}") from error


def shown(path: str) -> str:
    """Name a query in messages."""
    return "standard input" if path == STDIN else path


def show_warnings(query: Query, path: str) -> None:
    """Print the warnings of a query to standard error."""
    for warning in query.warnings:
        click.echo(f"{shown(path)}: warning: {warning}", err=True)


def _typed(texts: dict[str, str], query: str) -> dict[str, ParamValue]:
    """Leave texts to the query where it declares the parameter; else read them as what they look like."""
    if not texts:
        return {}
    from whimbrel.lang.wbl.parse import parse
    from whimbrel.lang.wbl.tree import ParamNode

    try:
        statements = parse(query).statements
    except WhimbrelError:
        return {**texts}  # compiling tells what is wrong
    declared = {statement.name for statement in statements if isinstance(statement, ParamNode)}
    return {name: text if name in declared else _guessed(text) for name, text in texts.items()}


def _guessed(text: str) -> ParamValue:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float, _timedelta):
        try:
            return read(text)
        except (ValueError, DataError):
            continue
    return text


def _timedelta(text: str) -> timedelta:
    return timedelta(microseconds=duration(text))
