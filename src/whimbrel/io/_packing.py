"""Compressed files: which kinds there are, how they are told apart, and how they are read and written.

A packed file is known by its first bytes, whatever its name; the ending of a name decides how one is written.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from whimbrel.errors import DataError

ENDINGS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
"""Endings of packed files, and what packed them."""

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
_BLOCK = 1 << 20
DAMAGES = (EOFError, lzma.LZMAError, gzip.BadGzipFile)
"""What unpackers raise, besides `zlib.error` and `OSError`."""


def unpacked_name(name: str) -> str:
    """Return a file's name, in lower case, without the ending that says how it is packed.

    >>> unpacked_name("Day.CSV.gz")
    'day.csv'
    """
    lowered = name.lower()
    for ending in ENDINGS:
        if lowered.endswith(ending):
            return lowered.removesuffix(ending)
    return lowered


def known_ending(name: str, known: Iterable[str]) -> str | None:
    """Return the longest of the known endings that a name has, the packing left out; None if it has none.

    >>> known_ending("a.mf.json.gz", [".json", ".mf.json"])
    '.mf.json'
    """
    plain = unpacked_name(name)
    return max((ending for ending in known if plain.endswith(ending)), key=len, default=None)


def packing_by_name(name: str) -> str | None:
    """Tell from the ending of a name how the file is packed; None if it is not."""
    return ENDINGS.get(Path(name.lower()).suffix)


def unpacking(path: Path, raw: Any) -> tuple[IO[bytes], str | None]:
    """Return what a file holds, unpacked, and how it was packed.

    Raises
    ------
    DataError
        If the name says that the file is packed, and its content is not.
    """
    start = raw.peek(8)
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    named = packing_by_name(path.name)
    if named and kind is None:
        raise DataError(
            f"{path}: the compressed file is cut off or damaged (it does not begin as {named} files do)"
        )
    if kind is None:
        return raw, None
    return io.BufferedReader(_unpackers(kind, raw), _BLOCK), kind


def _unpackers(kind: str, raw: Any) -> io.RawIOBase:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if kind == "bzip2":
        return bz2.BZ2File(raw)  # type: ignore[return-value]
    if kind == "xz":
        return lzma.LZMAFile(raw)  # type: ignore[return-value]
    return _Zstd(raw)


class _Zstd(io.RawIOBase):
    """Arrow's zstd as a plain stream, which the standard library lacks."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            raise EOFError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextmanager
def packing(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Open a stream that packs as the ending of `name` says, and leaves `raw` open."""
    kind = packing_by_name(name)
    if kind == "gzip":
        # Without name and time in the header, the same events give the same bytes.
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
            yield packed  # type: ignore[misc]
    elif kind == "bzip2":
        with bz2.BZ2File(raw, "wb") as packed_bz2:
            yield packed_bz2
    elif kind == "xz":
        with lzma.LZMAFile(raw, "wb") as packed_xz:
            yield packed_xz
    elif kind == "zstd":
        with pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(raw), mode="w"), "zstd") as packed_zstd:
            yield packed_zstd
    else:
        yield raw


class _KeptOpen(io.RawIOBase):
    """A stream whose end is not the end of the one below."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self._raw.write(data)
