"""What is in a spool stays there through crashes, until it is released."""

from __future__ import annotations

import pytest

from whimbrel.errors import DataError
from whimbrel.spark.sources import _spool
from whimbrel.spark.sources._spool import Message, Spool, unpack


@pytest.fixture
def opened(tmp_path):
    """Open the spool of this test; what is open at the end is closed."""
    spools = []

    def open_spool(**settings) -> Spool:
        spools.append(Spool(tmp_path / "spool", **settings))
        return spools[-1]

    yield open_spool
    for spool in spools:
        if not spool._file.closed:
            spool.close()


def message(number: int) -> Message:
    return Message(f"fleet/{number}", b"\x00\xff" * number, 1_700_000_000_000_000 + number)


def messages(spool: Spool, first: int, last: int) -> list[Message]:
    return [found for chunk in spool.read(first, last) for found in unpack(chunk)]


def test_messages_come_back_as_they_were(opened):
    spool = opened()
    spool.append([message(0), message(1)])
    spool.append([message(2)])
    assert (spool.first, spool.next) == (0, 3)
    assert messages(spool, 1, 3) == [message(1), message(2)]
    assert messages(spool, 1, 1) == []


def test_a_reopened_spool_goes_on(opened):
    spool = opened()
    spool.append([message(0), message(1)])
    spool.close()
    again = opened()
    again.append([message(2)])
    assert messages(again, 0, 3) == [message(0), message(1), message(2)]


@pytest.mark.parametrize("left", range(1, 40))
def test_a_record_that_was_cut_short_is_dropped(opened, left, tmp_path):
    spool = opened()
    spool.append([message(0)])
    whole = spool._segments[-1].size
    spool.append([message(15)])
    spool.close()
    (path,) = (tmp_path / "spool").glob("*.spool")
    path.write_bytes(path.read_bytes()[: whole + left])
    again = opened()
    again.append([message(2)])
    assert messages(again, 0, 2) == [message(0), message(2)]


def test_a_damaged_record_is_not_given_out(opened, tmp_path):
    spool = opened()
    spool.append([message(0), message(5)])
    spool.close()
    (path,) = (tmp_path / "spool").glob("*.spool")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert opened().next == 1


def test_segments_are_removed_when_they_are_processed(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(_spool, "SEGMENT_BYTES", 100)
    spool = opened()
    for number in range(10):
        spool.append([message(number)])
    files = len(list((tmp_path / "spool").glob("*.spool")))
    assert files > 2
    assert messages(spool, 0, 10) == [message(number) for number in range(10)]
    spool.release(10)
    assert len(list((tmp_path / "spool").glob("*.spool"))) == 1
    spool.close()
    again = opened()
    assert again.next == 10
    with pytest.raises(DataError, match="asks for messages 0 to 10, but this spool holds"):
        again.read(0, 10)


def test_chunks_have_a_bounded_size(opened, monkeypatch):
    monkeypatch.setattr(_spool, "CHUNK_BYTES", 200)
    spool = opened()
    spool.append([message(number) for number in range(40)] + [message(500)])
    chunks = spool.read(0, 41)
    assert len(chunks) > 5
    assert all(len(chunk) <= 200 for chunk in chunks[:-1])
    assert [found for chunk in chunks for found in unpack(chunk)][-1] == message(500)


def test_an_empty_spool_goes_on_where_the_checkpoint_is(opened):
    spool = opened(least=500)
    spool.append([message(1)])
    assert (spool.first, spool.next) == (500, 501)


def test_a_missing_segment_is_told(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(_spool, "SEGMENT_BYTES", 1)
    spool = opened()
    for number in range(3):
        spool.append([message(number)])
    spool.close()
    (tmp_path / "spool" / f"{1:020d}.spool").unlink()
    with pytest.raises(DataError, match="this spool is damaged: it ends before message 2, at 1"):
        opened()


def test_two_queries_cannot_share_a_spool(opened):
    opened()
    with pytest.raises(DataError, match="another query reads into this spool"):
        opened(wait=0.2)
