"""Query files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Unpack

from whimbrel.errors import DataError, QueryError, did_you_mean
from whimbrel.graph.query import Query
from whimbrel.lang.wbl.compile import CompileSettings

LANGUAGES = {".wbl": "the Whimbrel language", ".cpsl": "CPSL", ".json": "a pattern of steps as JSON"}


def read(path: str | os.PathLike[str], **settings: Unpack[CompileSettings]) -> Query:
    """Read and compile a query file; the settings are those of `compile`.

    Raises
    ------
    DataError
        If the file cannot be read.
    QueryError
        If the query cannot be compiled; it shows the line and a hint.
    """
    file = Path(path)
    return compile_file(read_text(file), str(path), **settings)


def compile_file(text: str, file: str, **settings: Unpack[CompileSettings]) -> Query:
    """Compile the text of a query file in the language that its name tells."""
    if not text.strip():
        raise QueryError(f"{file}: the file is empty", hint="write a query into it: define D detect A")
    if Path(file).suffix == ".json":
        return _compile_json(text, file, **settings)
    if Path(file).suffix == ".cpsl":
        return _compile_cpsl(text, file, **settings)
    from whimbrel.lang.wbl.compile import compile_text

    return compile_text(text, file=file, **settings)


def _compile_cpsl(text: str, file: str, **settings: Unpack[CompileSettings]) -> Query:
    """Compile subscriptions."""
    from whimbrel.lang.cpsl.compile import compile_text

    for key in (key for key, value in settings.items() if value and key not in ("horizon", "emit")):
        raise QueryError(f"{file}: {key!r} does not go with CPSL")
    return compile_text(text, file=file, horizon=settings.get("horizon"), emit=settings.get("emit"))


def _compile_json(text: str, file: str, **settings: Unpack[CompileSettings]) -> Query:
    """Compile a pattern of steps; its detections have the type that the file is named after."""
    from whimbrel.lang.steps_json import read_pattern

    name = Path(file).stem
    if not name.isidentifier():
        raise QueryError(
            f"{file}: the detections of a pattern have the name of its file, and {name!r} is no name",
            hint="rename the file; a name has letters, digits and _, and begins with no digit",
        )
    given = {key: value for key, value in settings.items() if value and key != "horizon"}
    for key in given:
        raise QueryError(f"{file}: {key!r} does not go with a pattern of steps as JSON")
    pattern = read_pattern(text, name, file)
    try:
        return pattern.compile(name, horizon=settings.get("horizon"))
    except QueryError as error:
        raise QueryError(f"{file}: {error.message}", hint=error.hint) from None


def read_text(file: Path) -> str:
    """Read the text of a query file, with clear errors where that fails."""
    if file.is_dir():
        raise DataError(f"{file} is a folder, not a query file")
    if not file.exists():
        beside = file.parent.iterdir() if file.parent.is_dir() else ()
        near = [other.name for other in beside if other.suffix in LANGUAGES]
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
