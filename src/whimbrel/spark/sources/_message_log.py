"""A log on disk that keeps received messages until they are processed, also when a process dies.

Messages are numbered from 0 in the order of their arrival, for ever. They lie in an SQLite database, whose
journal is on the disk before `append` returns; an append that a crash cuts short never was. One process uses
it at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pyarrow as pa

from whimbrel.errors import DataError

CHUNK_BYTES = 512 * 2**10
"""How much one task of Spark carries: it warns of tasks beyond a megabyte."""
SCHEMA = pa.schema(
    [("topic", pa.string()), ("received", pa.timestamp("us", "UTC")), ("payload", pa.binary())]
)
"""The columns of messages as they are given out."""

_FILE = "messages.sqlite"
# The lock comes with the first write, and stays until the process ends, however it ends.
_SETTINGS = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
"""
_TABLES = """
CREATE TABLE IF NOT EXISTS message (number INTEGER PRIMARY KEY, topic TEXT, received INTEGER, payload BLOB);
CREATE TABLE IF NOT EXISTS counter (next INTEGER NOT NULL);
INSERT INTO counter SELECT 0 WHERE NOT EXISTS (SELECT * FROM counter);
"""


@dataclass(frozen=True)
class LoggedMessage:
    """What came, where, and when (microseconds UTC)."""

    topic: str
    payload: bytes
    received: int


class MessageLog:
    """An opened log; `first` and `next` are the numbers of the oldest message and of the one to come.

    Parameters
    ----------
    least
        The number that a checkpoint will ask for first; an empty log goes on from there.
    wait
        How many seconds to wait for another process to let the log go.
    """

    def __init__(self, folder: Path, least: int = 0, wait: float = 30) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if old := next(folder.glob("*.spool"), None):
            raise DataError(
                f"{old}: an earlier version of Whimbrel wrote this spool; let that version process what is "
                "in it, then begin with an empty folder and a new checkpoint"
            )
        self._folder = folder
        self._lock = Lock()
        with self._told():
            self._open(least, wait)

    def _open(self, least: int, wait: float) -> None:
        self._database = sqlite3.connect(
            self._folder / _FILE, timeout=wait, isolation_level=None, check_same_thread=False
        )
        try:
            self._database.executescript(_SETTINGS + "BEGIN EXCLUSIVE;" + _TABLES + "COMMIT;")
            ((self.next,),) = self._database.execute("SELECT next FROM counter")
            ((oldest,),) = self._database.execute("SELECT min(number) FROM message")
        except sqlite3.Error:
            self._database.close()
            raise
        if oldest is None:
            self.next = max(self.next, least)
        self.first = self.next if oldest is None else oldest

    def append(self, messages: Sequence[LoggedMessage]) -> None:
        """Keep messages; when this returns they are on the disk."""
        rows = [
            (number, message.topic, message.received, message.payload)
            for number, message in enumerate(messages, self.next)
        ]
        with self._told(), self._lock:
            with self._transaction():
                self._database.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", rows)
                self._database.execute("UPDATE counter SET next = ?", (self.next + len(rows),))
            self.next += len(rows)

    def read(self, first: int, last: int) -> list[bytes]:
        """Return messages from `first` up to, and without, `last`: Arrow streams of a bounded size."""
        if first < self.first or last > self.next:
            raise DataError(
                f"{self._folder}: the checkpoint asks for messages {first} to {last}, but this spool "
                f"holds {self.first} to {self.next}; it belongs to another query, or was changed; give every "
                "query its own, and keep it with the checkpoint"
            )
        asked = (
            "SELECT topic, received, payload FROM message WHERE number >= ? AND number < ? ORDER BY number"
        )
        with self._told(), self._lock:
            rows = self._database.execute(asked, (first, last)).fetchall()
        if len(rows) < last - first:
            raise DataError(f"{self._damaged}: messages between {first} and {last} are missing")
        return list(map(_stream, _chunks(rows)))

    def release(self, number: int) -> None:
        """Let messages below `number` go."""
        with self._told(), self._lock:
            with self._transaction():
                self._database.execute("DELETE FROM message WHERE number < ?", (number,))
            self._database.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page
            self.first = min(max(self.first, number), self.next)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell errors of the database in words that help."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise DataError(
                    f"{self._folder}: another query reads into this spool; give every query its own"
                ) from None
            raise OSError(f"{self._folder / _FILE}: {error}") from error  # the disk is full, for one
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self._damaged}: {error}") from error

    @property
    def _damaged(self) -> str:
        return (
            f"{self._folder / _FILE}: this spool is damaged; restore the file, or begin with an empty spool "
            "and a new checkpoint"
        )

    def close(self) -> None:
        """Let another process have the log."""
        with self._lock:
            self._database.close()


Row = tuple[str, int, bytes]


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut messages where a chunk would grow beyond what a task carries."""
    begin, size = 0, 0
    for number, (topic, _, payload) in enumerate(rows):
        length = len(topic) + len(payload) + 16  # and the time, and where each text ends
        if size and size + length > CHUNK_BYTES:
            yield rows[begin:number]
            begin, size = number, 0
        size += length
    if rows:
        yield rows[begin:]


def _stream(rows: Sequence[Row]) -> bytes:
    columns = [
        pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
    return bytes(sink.getvalue())


def unpack(stream: bytes) -> pa.Table:
    """Read a chunk of messages."""
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
