"""What is in a message log stays there through crashes, until it is released."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from whimbrel.errors import DataError
from whimbrel.spark.sources import _message_log
from whimbrel.spark.sources._message_log import LoggedMessage, MessageLog, unpack

APPENDING = """
import sys
from pathlib import Path
from whimbrel.spark.sources._message_log import LoggedMessage, MessageLog
log = MessageLog(Path(sys.argv[1]))
for number in range(log.next, 10**9):
    log.append([LoggedMessage("t", b"x" * 1000, number)])
    print(number, flush=True)
"""


@pytest.fixture
def opened(tmp_path):
    """Open the log of this test; what is open at the end is closed."""
    logs = []

    def open_log(**settings) -> MessageLog:
        logs.append(MessageLog(tmp_path / "spool", **settings))
        return logs[-1]

    yield open_log
    for log in logs:
        log.close()


def message(number: int) -> LoggedMessage:
    return LoggedMessage(f"fleet/{number}", b"\x00\xff" * number, 1_700_000_000_000_000 + number)


def messages(log: MessageLog, first: int, last: int) -> list[LoggedMessage]:
    return [found for chunk in log.read(first, last) for found in unpacked(chunk)]


def unpacked(chunk: bytes) -> list[LoggedMessage]:
    table = unpack(chunk)
    received = table["received"].cast(pa.int64()).to_pylist()
    return list(map(LoggedMessage, table["topic"].to_pylist(), table["payload"].to_pylist(), received))


def test_messages_come_back_as_they_were(opened):
    log = opened()
    log.append([message(0), message(1)])
    log.append([message(2)])
    assert (log.first, log.next) == (0, 3)
    assert messages(log, 1, 3) == [message(1), message(2)]
    assert messages(log, 1, 1) == []


def test_a_reopened_log_goes_on(opened):
    log = opened()
    log.append([message(0), message(1)])
    log.close()
    again = opened()
    again.append([message(2)])
    assert messages(again, 0, 3) == [message(0), message(1), message(2)]


@pytest.mark.slow
def test_what_was_appended_outlives_a_killed_process(tmp_path, opened):
    process = subprocess.Popen(
        [sys.executable, "-c", APPENDING, tmp_path / "spool"], stdout=subprocess.PIPE, text=True
    )
    told = [int(process.stdout.readline()) for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    told += map(int, process.communicate()[0].split())
    log = opened()
    assert log.next >= told[-1] + 1
    found = messages(log, 0, log.next)
    assert [each.received for each in found] == list(range(log.next))


@pytest.mark.parametrize("left", [0, 1, 40, 500])
def test_an_append_that_was_cut_short_never_was(opened, left, tmp_path):
    log = opened()
    log.append([message(0)])
    journal = tmp_path / "spool" / "messages.sqlite-wal"
    whole = journal.stat().st_size
    log.append([message(15)])
    copied = {path.name: path.read_bytes() for path in (tmp_path / "spool").iterdir()}
    log.close()
    for name, content in copied.items():  # as a power cut would have left it
        (tmp_path / "spool" / name).write_bytes(content)
    journal.write_bytes(copied[journal.name][: whole + left])
    again = opened()
    assert again.next == 1
    again.append([message(2)])
    assert messages(again, 0, 2) == [message(0), message(2)]


def test_a_damaged_file_is_told(opened, tmp_path):
    log = opened()
    log.append([message(number) for number in range(100)])
    log.close()
    path = tmp_path / "spool" / "messages.sqlite"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match=r"messages.sqlite: this spool is damaged; restore the file"):
        opened()


def test_missing_messages_are_told(opened, tmp_path):
    log = opened()
    log.append([message(number) for number in range(3)])
    log.close()
    with sqlite3.connect(tmp_path / "spool" / "messages.sqlite") as database:
        database.execute("DELETE FROM message WHERE number = 1")
    database.close()
    with pytest.raises(DataError, match=r"damaged; .*: messages between 0 and 3 are missing"):
        opened().read(0, 3)


def test_messages_are_removed_when_they_are_processed(opened, tmp_path):
    log = opened()
    for _ in range(50):
        log.append([message(1000)] * 10)
    log.release(490)
    assert (log.first, log.next) == (490, 500)
    assert messages(log, 490, 500) == [message(1000)] * 10
    log.release(500)
    log.close()
    assert (tmp_path / "spool" / "messages.sqlite").stat().st_size < 100_000
    again = opened(least=100)
    assert (again.first, again.next) == (500, 500)
    with pytest.raises(DataError, match="asks for messages 0 to 10, but this spool holds 500 to 500"):
        again.read(0, 10)


def test_chunks_have_a_bounded_size(opened, monkeypatch):
    monkeypatch.setattr(_message_log, "CHUNK_BYTES", 200)
    log = opened()
    log.append([message(number) for number in range(40)] + [message(500)])
    chunks = [unpacked(chunk) for chunk in log.read(0, 41)]
    assert len(chunks) > 5
    sizes = [sum(len(each.payload) + len(each.topic) for each in chunk) for chunk in chunks]
    assert all(size <= 200 for size in sizes[:-1])
    assert [each for chunk in chunks for each in chunk] == [*map(message, range(40)), message(500)]


def test_an_empty_log_goes_on_where_the_checkpoint_is(opened):
    log = opened(least=500)
    log.append([message(1)])
    assert (log.first, log.next) == (500, 501)


def test_two_queries_cannot_share_a_log(opened):
    opened()
    with pytest.raises(DataError, match="another query reads into this spool"):
        opened(wait=0.2)


def test_the_spool_of_an_earlier_version_is_not_passed_over(opened, tmp_path):
    (tmp_path / "spool").mkdir()
    Path(tmp_path / "spool" / f"{0:020d}.spool").touch()
    with pytest.raises(DataError, match="an earlier version of Whimbrel wrote this spool"):
        opened()
