"""Open event files as streams of bytes that count what was read, and turn every failure into a DataError."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from whimbrel.errors import DataError

Progress = Callable[[int], None]
"""Called with a number of bytes after they were read."""

_LONGEST_LINE = 256 * 2**20


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
        raise DataError(f"{path}: the file is not UTF-8 text ({error.reason}); save it as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the compressed file is cut off or damaged ({error})") from error
    except MemoryError as error:
        raise DataError(f"{path}: not enough memory to read the file") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: cannot be read: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    if "straddling object" in str(error):
        return "a row is longer than a block of 8 MB; is a closing quote missing?"
    return (str(error).splitlines() or [type(error).__name__])[0]


def open_bytes(path: Path, on_read: Progress) -> IO[bytes]:
    """Open a file, unpacked if its name ends in .gz."""
    raw = io.BufferedReader(CountedFile(path, on_read), 1 << 20)
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 20)
    return raw


def check_text(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is not UTF-8 text."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path}: the file is UTF-16 text; save it as UTF-8")
    # Text may hold a zero byte; UTF-16 without a mark and binary files are full of them.
    if start.count(0) > len(start) // 8:
        raise DataError(f"{path}: the file is not text: it holds zero bytes; is its name's ending right?")


class _TextStream(io.RawIOBase):
    """UTF-8 text as readers like it: no byte order mark, and a line end after the last line."""

    def __init__(self, path: Path, on_read: Progress, strict: bool, tail: bytes) -> None:
        self._tail = tail
        self._check = codecs.getincrementaldecoder("utf-8")() if strict else None
        self._source = open_bytes(path, on_read)
        start = self._source.read(4096)
        check_text(path, start)
        self._pending = start.removeprefix(b"\xef\xbb\xbf")
        self._last = self._pending[-1:]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._pending or self._source.read(len(buffer))
        data, self._pending = data[: len(buffer)], data[len(buffer) :]
        if self._check:
            self._check.decode(data, final=not data)
        if not data:
            data = (b"" if self._last in (b"", b"\n") else b"\n") + self._tail
            self._tail = b""
        self._last = data[-1:] or self._last
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


def open_text(path: Path, on_read: Progress, *, strict: bool = False, tail: bytes = b"") -> io.BufferedReader:
    """Open a text file, unpacked, without byte order mark, and with an end to its last line.

    Strict means that bytes which are not UTF-8 are an error here and not left to whoever reads on. `tail`
    follows after the end.
    """
    return io.BufferedReader(_TextStream(path, on_read, strict, tail), 1 << 20)


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
