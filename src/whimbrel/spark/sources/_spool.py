"""A folder that keeps received messages until they are processed: nothing in it is lost when a process dies.

Messages are numbered from 0 in the order of their arrival, for ever. They lie in segment files, each named
for the number of its first message; a record is its length and checksum, then the time of receipt, the
topic and the payload. One process writes at a time.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from whimbrel.errors import DataError

SEGMENT_BYTES = 16 * 2**20
CHUNK_BYTES = 512 * 2**10
"""How much one task of Spark carries: it warns of tasks beyond a megabyte."""

_HEADER = struct.Struct("<II")
_BODY = struct.Struct("<qH")
_ENDING = ".spool"


@dataclass(frozen=True)
class Message:
    """What came, where, and when (microseconds UTC)."""

    topic: str
    payload: bytes
    received: int


def pack(message: Message) -> bytes:
    """Write a message as a record."""
    topic = message.topic.encode()
    body = _BODY.pack(message.received, len(topic)) + topic + message.payload
    return _HEADER.pack(len(body), zlib.crc32(body)) + body


def unpack(records: bytes) -> Iterator[Message]:
    """Read records, one after another."""
    for _, body in _records(records):
        received, length = _BODY.unpack_from(body)
        text = _BODY.size + length
        yield Message(body[_BODY.size : text].decode(), body[text:], received)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where each record ends, and its body, up to the first that is not whole."""
    place = 0
    while place + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, place)
        place += _HEADER.size + length
        body = data[place - length : place]
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        yield place, body


@dataclass
class _Segment:
    path: Path
    first: int
    ends: list[int] = field(default_factory=list)
    """Where each of its messages ends, in bytes."""

    @property
    def next(self) -> int:
        return self.first + len(self.ends)

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0

    def start_of(self, number: int) -> int:
        return self.ends[number - self.first - 1] if number > self.first else 0


class Spool:
    """An opened spool; `first` and `next` are the numbers of the oldest message and of the one to come.

    Parameters
    ----------
    least
        The number that a checkpoint will ask for first; an empty spool goes on from there.
    wait
        How many seconds to wait for another process to let the spool go.
    """

    def __init__(self, folder: Path, least: int = 0, wait: float = 30) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = Lock()
        self._guard = _guard(folder / "lock", wait)
        self._segments = [_opened(path) for path in sorted(folder.glob(f"*{_ENDING}"))]
        self._check()
        if not self._segments or (self._segments[-1].next < least and not self._holds_any()):
            self._forget(len(self._segments))
            self._segments = [self._new_segment(least)]
        self._file = self._segments[-1].path.open("ab")
        self._file.truncate(self._segments[-1].size)

    def _holds_any(self) -> bool:
        return any(segment.ends for segment in self._segments)

    def _check(self) -> None:
        for before, after in zip(self._segments, self._segments[1:], strict=False):
            if before.next != after.first:
                raise DataError(
                    f"{before.path}: this spool is damaged: it ends before message {after.first}, at "
                    f"{before.next}; restore the file, or begin with an empty spool and a new checkpoint"
                )

    @property
    def first(self) -> int:
        """The number of the oldest message that is kept."""
        with self._lock:
            return self._segments[0].first

    @property
    def next(self) -> int:
        """The number that the next message will have."""
        with self._lock:
            return self._segments[-1].next

    def append(self, messages: Sequence[Message]) -> None:
        """Keep messages; when this returns they are on the disk."""
        records = [pack(message) for message in messages]
        self._file.write(b"".join(records))
        self._file.flush()
        os.fsync(self._file.fileno())
        with self._lock:
            segment = self._segments[-1]
            for record in records:
                segment.ends.append(segment.size + len(record))
            if segment.size >= SEGMENT_BYTES:
                self._segments.append(self._new_segment(segment.next))
                self._file.close()
                self._file = self._segments[-1].path.open("ab")

    def read(self, first: int, last: int) -> list[bytes]:
        """Return the records from `first` up to, and without, `last`, in chunks of a bounded size."""
        with self._lock:
            if first < self._segments[0].first or last > self._segments[-1].next:
                raise DataError(
                    f"{self._folder}: the checkpoint asks for messages {first} to {last}, but this spool "
                    f"holds {self._segments[0].first} to {self._segments[-1].next}; it belongs to another "
                    "query, or was changed; give every query its own, and keep it with the checkpoint"
                )
            spans = [span for segment in self._segments for span in _spans(segment, first, last)]
        return [_bytes_of(path, start, end) for path, start, end in spans]

    def release(self, number: int) -> None:
        """Let messages below `number` go; segments are removed whole."""
        with self._lock:
            done = sum(segment.next <= number for segment in self._segments[:-1])
            self._forget(done)

    def _forget(self, count: int) -> None:
        for segment in self._segments[:count]:
            segment.path.unlink(missing_ok=True)
        del self._segments[:count]

    def _new_segment(self, first: int) -> _Segment:
        path = self._folder / f"{first:020d}{_ENDING}"
        path.touch()
        # A file whose name was never written to its folder would be gone after a power cut.
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return _Segment(path, first)

    def close(self) -> None:
        """Let another process have the spool."""
        self._file.close()
        os.close(self._guard)


def _guard(path: Path, wait: float) -> int:
    """Hold a lock that the system frees when this process ends, however it ends."""
    guard = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    last_try = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > last_try:
                os.close(guard)
                raise DataError(
                    f"{path.parent}: another query reads into this spool; give every query its own"
                ) from None
            time.sleep(0.1)
        else:
            return guard


def _opened(path: Path) -> _Segment:
    # The last record may be cut short: then it was never acknowledged, and the broker sends it again.
    return _Segment(path, int(path.stem), [end for end, _ in _records(path.read_bytes())])


def _spans(segment: _Segment, first: int, last: int) -> Iterator[tuple[Path, int, int]]:
    low, high = max(first, segment.first), min(last, segment.next)
    while low < high:
        start = segment.start_of(low)
        until = low + 1
        while until < high and segment.start_of(until + 1) - start <= CHUNK_BYTES:
            until += 1
        yield segment.path, start, segment.start_of(until)
        low = until


def _bytes_of(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(end - start)
