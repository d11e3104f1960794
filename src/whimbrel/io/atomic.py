"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import sys
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from whimbrel.errors import DataError

_numbers = itertools.count()


@contextlib.contextmanager
def writing(target: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Open `target` for writing; "-" is standard output, a name that ends in .gz is packed.

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
    with raw:
        if named.suffix.lower() == ".gz":
            # Without name and time in the header, the same events give the same bytes.
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def format_by_ending(target: str | PathLike[str], known: dict[str, str], default: str | None = None) -> str:
    """Tell the format from the ending of a file's name."""
    name = fspath(target)
    if name == "-" and default:
        return default
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending not in known:
        raise DataError(
            f"{name}: the ending does not tell a format; known: {', '.join(known)}; or say format=..."
        )
    return known[ending]
