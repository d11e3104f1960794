"""Reports on mobile queries: in which form, and where to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whimbrel.cli.queries import shown
from whimbrel.errors import DataError, QueryError

if TYPE_CHECKING:
    from whimbrel.engine.mobile.measures import By
    from whimbrel.engine.session import Session
    from whimbrel.graph.query import Query

FORMS = ("table", "json", "prometheus")
"""Those of `whimbrel.engine.mobile.measures`, which is loaded when a report is written."""
ENDINGS = {".txt": "table", ".json": "json", ".prom": "prometheus"}
"""How a report is written, by the ending of its file."""


def form_of(path: str) -> str | None:
    """Tell from the ending of a file's name how a report is written."""
    return ENDINGS.get(Path(path).suffix.lower())


def refuse_bad_report(option: str, path: str, *, by_ending: bool = True) -> None:
    """Stop before hours of detecting end in a report that cannot be written."""
    if by_ending and form_of(path) is None:
        raise click.UsageError(f"{option} {path}: the name must end in {', '.join(ENDINGS)}")
    if not Path(path).parent.is_dir():
        raise DataError(f"{path}: there is no folder {Path(path).parent}")


def refuse_without_mobile(query: Query, path: str) -> None:
    """Stop before a report on a query that follows nothing."""
    if not query.mobile:
        raise QueryError(
            f"{shown(path)} follows nothing, so there is nothing to report",
            hint="a mobile query says: around Position as car within 500 m report NAME",
        )


def write_report(session: Session, out: str, form: str, *, by: By = "query") -> None:
    """Write what the mobile queries of a session did."""
    from whimbrel.engine.mobile.measures import FORMS as WRITERS
    from whimbrel.io.atomic import writing

    with writing(out) as file:
        file.write(WRITERS[form](session.monitor(by=by)).encode())
