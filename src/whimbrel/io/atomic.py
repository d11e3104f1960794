"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from whimbrel.errors import DataError
from whimbrel.io._streams import known_ending, packing, packing_by_name, unpacked_name

_numbers = itertools.count()


@contextlib.contextmanager
def writing(target: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Open `target` for writing; "-" is standard output; .gz, .zst, .bz2 and .xz files are packed.

    The file appears under its name only when the block ends well, so a failed run leaves no half file and
    keeps an older one.
    """
    if fspath(target) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(fspath(target))
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file in it")
    if path.exists() and not path.is_file():
        # A pipe or a device cannot be replaced.
        with _opened(path, path, "wb") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.part")
    try:
        with _opened(part, path, "xb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _opened(actual: Path, named: Path, mode: str) -> Iterator[IO[bytes]]:
    try:
        raw = actual.open(mode)
    except OSError as error:
        raise DataError(f"{named}: cannot be written: {error.strerror or error}") from error
    with raw, packing(raw, named.name) as file:
        yield file


def format_by_ending(target: str | PathLike[str], known: dict[str, str], default: str | None = None) -> str:
    """Tell the format from the ending of a file's name."""
    name = fspath(target)
    if name == "-" and default:
        return default
    refuse_packed(name)
    ending = known_ending(name, known)
    if ending is None:
        raise DataError(
            f"{name}: the ending does not tell a format; known: {', '.join(known)}; or say format=..."
        )
    return known[ending]


def refuse_packed(target: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Stop where a format that is packed inside would be packed again."""
    name = fspath(target).lower()
    packed = packing_by_name(name)
    if packed and (format == "parquet" or unpacked_name(name).endswith((".parquet", ".geoparquet"))):
        plain = fspath(target)[: -len(Path(name).suffix)]
        raise DataError(f"{target}: Parquet is packed inside, and not with {packed}; name it {plain}")
