"""Open event files as streams of bytes that count what was read, and turn every failure into a DataError."""

from __future__ import annotations

import codecs
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.io import _packing

Progress = Callable[[int], None]
"""Called with a number of bytes after they were read."""

_LONGEST_LINE = 256 * 2**20
_START = 1 << 16
"""Bytes that are looked at before anything is read."""


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
    except (zlib.error, *_packing.DAMAGES) as error:
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
    return _packing.unpacking(path, raw)[0]


def check_text(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is not text."""
    # Text may hold a zero byte; UTF-16 without a mark and binary files are full of them.
    if start.count(0) > len(start) // 8:
        raise DataError(
            f"{path}: the file is not text: it holds zero bytes; is its name's ending right? "
            f"(UTF-16 text needs a byte order mark, or --encoding utf-16-le)"
        )


_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def known_encoding(name: str) -> str:
    """Return the usual name of a text encoding.

    Raises
    ------
    DataError
        If there is none of this name.
    """
    try:
        found = codecs.lookup(name)
        "x".encode(found.name)
    except (LookupError, ValueError) as error:
        raise DataError(
            f"encoding {name!r} is not known; usual ones are utf-8, latin-1, cp1252 and utf-16"
        ) from error
    return found.name


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
