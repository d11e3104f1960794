"""Query files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from whimbrel.errors import DataError, did_you_mean
from whimbrel.graph.query import Query

LANGUAGES = {".wbl": "the Whimbrel language"}


def read(path: str | os.PathLike[str], **settings: Any) -> Query:
    """Read and compile a query file; the settings are those of `compile`.

    Raises
    ------
    DataError
        If the file cannot be read.
    QueryError
        If the query cannot be compiled; it shows the line and a hint.
    """
    from whimbrel.lang.wbl.compile import compile_text

    file = Path(path)
    return compile_text(read_text(file), file=str(path), **settings)


def read_text(file: Path) -> str:
    """Read the text of a query file, with clear errors where that fails."""
    if file.is_dir():
        raise DataError(f"{file} is a folder, not a query file")
    if not file.exists():
        near = [other.name for other in file.parent.glob("*.wbl")] if file.parent.is_dir() else []
        hint = did_you_mean(file.name, near)
        raise DataError(f"there is no query file {file}" + (f"; {hint}" if hint else ""))
    if file.suffix not in LANGUAGES:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in LANGUAGES.items())
        raise DataError(f"{file}: a query file ends in {known}")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text: {error}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error
