"""Open event files as streams of bytes, unpacked and counted, and turn every failure into a DataError.

A packed file is known by its first bytes, whatever its name; the ending of a name decides how one is written.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from whimbrel.errors import DataError

Progress = Callable[[int], None]
"""Called with a number of bytes after they were read."""

_LONGEST_LINE = 256 * 2**20
_START = 1 << 16
"""Bytes that are looked at before anything is read."""


_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
PACKED_ENDINGS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
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


class CountedFile(io.RawIOBase):
    """A file that reports each read, so that a progress bar can follow readers that hide their position."""

    def __init__(self, path: Path, on_read: Progress) -> None:
        self._file = path.open("rb")
        self._on_read = on_read

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._on_read(count)
        return count

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report whatever goes wrong while reading `path` as a DataError that names the file."""
    try:
        yield
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {_wrong_encoding(error)}") from error
    except (zlib.error, *DAMAGES) as error:
        raise DataError(f"{path}: the compressed file is cut off or damaged ({error})") from error
    except MemoryError as error:
        raise DataError(f"{path}: not enough memory to read the file") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: cannot be read: {_first_line(error)}") from error


def _wrong_encoding(error: UnicodeDecodeError) -> str:
    if error.encoding.lower().replace("-", "") == "utf8":
        return (
            f"the file is not UTF-8 text ({error.reason}); save it as UTF-8, or say which encoding it has: "
            f"--encoding latin-1, in Python encoding='latin-1'"
        )
    return f"the file is not {error.encoding} text ({error.reason}); is the encoding right?"


def _first_line(error: BaseException) -> str:
    if "straddling object" in str(error):
        return "a row is longer than a block of 8 MB; is a closing quote missing?"
    return (str(error).splitlines() or [type(error).__name__])[0]


def open_bytes(path: Path, on_read: Progress) -> IO[bytes]:
    """Open a file, unpacked if its first bytes say that it is packed."""
    raw = io.BufferedReader(CountedFile(path, on_read), 1 << 20)
    return unpacking(path, raw)[0]


def check_text(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is not text."""
    # Text may hold a zero byte; UTF-16 without a mark and binary files are full of them.
    if start.count(0) > len(start) // 8:
        raise DataError(
            f"{path}: the file is not text: it holds zero bytes; is its name's ending right? "
            f"(UTF-16 text needs a byte order mark, or --encoding utf-16-le)"
        )


def known_encoding(name: str) -> str:
    """Return the usual name of a text encoding.

    Raises
    ------
    DataError
        If there is none of this name.
    """
    try:
        codec = codecs.lookup(name)
        "x".encode(codec.name)
    except (LookupError, ValueError) as error:
        raise DataError(
            f"encoding {name!r} is not known; usual ones are utf-8, latin-1, cp1252 and utf-16"
        ) from error
    return codec.name


class _TextStream(io.RawIOBase):
    """UTF-8 text as readers like it: no byte order mark, and a line end after the last line.

    Text in another encoding is turned into UTF-8 on the way.
    """

    def __init__(
        self, path: Path, on_read: Progress, strict: bool, tail: bytes, encoding: str | None
    ) -> None:
        self._tail = tail
        self._source = open_bytes(path, on_read)
        start = self._source.read(_START)
        marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        encoding = marked or encoding or "utf-8"
        is_utf8 = encoding in ("utf-8", "utf-8-sig")
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding)()
        self._check = codecs.getincrementaldecoder("utf-8")() if strict and is_utf8 else None
        if is_utf8:
            check_text(path, start)
            start = start.removeprefix(codecs.BOM_UTF8)
        self._at_end = False
        self._last = b""
        self._pending = self._decoded(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # A block may hold nothing but half a character.
        while not self._pending and not self._at_end:
            self._pending = self._decoded(self._source.read(len(buffer)))
        data, self._pending = self._pending[: len(buffer)], self._pending[len(buffer) :]
        self._last = data[-1:] or self._last
        buffer[: len(data)] = data
        return len(data)

    def _decoded(self, data: bytes) -> bytes:
        """Return a block in UTF-8; behind the last one, what belongs behind the text."""
        self._at_end = not data
        if self._check:
            self._check.decode(data, final=self._at_end)
        if self._decoder:
            data = self._decoder.decode(data, final=self._at_end).encode()
        if self._at_end:
            last = data[-1:] or self._last
            data += (b"" if last in (b"", b"\n") else b"\n") + self._tail
        return data

    def close(self) -> None:
        self._source.close()
        super().close()


def open_text(
    path: Path, on_read: Progress, *, strict: bool = False, tail: bytes = b"", encoding: str | None = None
) -> io.BufferedReader:
    """Open a text file, unpacked, as UTF-8 without byte order mark, and with an end to its last line.

    Strict means that bytes which are not UTF-8 are an error here and not left to whoever reads on. `tail`
    follows after the end. `encoding` is that of a file without a byte order mark, by default UTF-8.
    """
    return io.BufferedReader(_TextStream(path, on_read, strict, tail, encoding), 1 << 20)


def is_blank(stream: io.BufferedReader) -> bool:
    """Tell whether a stream that was just opened has nothing to offer."""
    return not stream.peek(4096).strip()


def line_blocks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines of about `size` bytes."""
    pieces: list[bytes] = []
    held = 0
    while data := stream.read(size):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, data[:cut]])
            pieces, held = ([data[cut:]] if cut < len(data) else []), len(data) - cut
        else:
            pieces.append(data)
            held += len(data)
            if held > _LONGEST_LINE:
                raise DataError(f"a line is longer than {_LONGEST_LINE >> 20} MB; is this a text file?")
    if pieces:
        yield b"".join(pieces)


def unpacked_name(name: str) -> str:
    """Return a file's name, in lower case, without the ending that says how it is packed.

    >>> unpacked_name("Day.CSV.gz")
    'day.csv'
    """
    lowered = name.lower()
    for ending in PACKED_ENDINGS:
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
    return PACKED_ENDINGS.get(Path(name.lower()).suffix)


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
