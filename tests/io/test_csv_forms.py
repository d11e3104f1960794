"""CSV files are read however they are written: separators, commas, comments, encodings, packings."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from whimbrel.errors import DataError
from whimbrel.io import read_events
from whimbrel.io.paths import EventPath
from whimbrel.model.batch import normalise
from whimbrel.model.schema import EventSchema, Type

TEXT = "type,time,label\nbus,1,Zürich\nbus,2,x\n"
EXPECTED = [{"type": "bus", "time": 1, "label": "Zürich"}, {"type": "bus", "time": 2, "label": "x"}]


def rows(path: Any, **options: Any) -> list[dict[str, Any]]:
    how = path if isinstance(path, EventPath) else EventPath(str(path), **options)
    return [row for batch in read_events(how) for row in batch.to_pylist()]


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_tells_what_parts_the_fields(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TEXT.replace(",", delimiter), encoding="utf-8")
    assert rows(path) == EXPECTED


def test_separators_inside_quoted_names_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"type","time","a;b;c;d"\nbus,1,x\n')
    assert rows(path) == [{"type": "bus", "time": 1, "a;b;c;d": "x"}]


@pytest.mark.parametrize(("given", "text"), [(":", TEXT.replace(",", ":")), ("tab", TEXT.replace(",", "\t"))])
def test_the_delimiter_can_be_given(tmp_path: Path, given: str, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    assert rows(path, delimiter=given) == EXPECTED
    assert rows(EventPath(str(path), delimiter=given)) == EXPECTED


def test_a_delimiter_of_two_characters_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(
        DataError, match="';;' cannot stand between fields; give one character, or one of: comma"
    ):
        read_events(EventPath(str(tmp_path / "a.csv"), delimiter=";;"))


def test_between_semicolons_numbers_may_have_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type;time;lon;lat;speed;note\nbus;1;8,5;47,25;3,5;1,2,3\nbus;2;8,75;47;-0,5;4,5\n")
    assert rows(path) == [
        {"type": "bus", "time": 1, "lon": 8.5, "lat": 47.25, "speed": 3.5, "note": "1,2,3"},
        {"type": "bus", "time": 2, "lon": 8.75, "lat": 47.0, "speed": -0.5, "note": "4,5"},
    ]


def test_declared_numbers_may_have_commas_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type;time;speed;label\nbus;1;3,5;007\n")
    schemas = {"bus": EventSchema("bus", {"speed": Type.FLOAT, "label": Type.STRING})}
    (batch,) = read_events(path, schemas=schemas)
    assert normalise(batch, schemas=schemas).events.to_pylist()[0]["speed"] == 3.5
    assert normalise(batch, schemas=schemas).events.to_pylist()[0]["label"] == "007"


@pytest.mark.parametrize(
    "before", ["# made by a logger\n# for you, and me\n", "\n\n# note\n", "sep=,\n", "SEP=,\r\n"]
)
def test_lines_before_the_header_are_passed_over(tmp_path: Path, before: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(before + TEXT, encoding="utf-8")
    assert rows(path) == EXPECTED


def test_a_header_may_stand_behind_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# exported, yesterday\n# time,type,label\n1,bus,x\n")
    assert rows(path) == [{"time": 1, "type": "bus", "label": "x"}]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TEXT, encoding=encoding)
    assert rows(path) == EXPECTED


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le"])
def test_an_encoding_can_be_given(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TEXT, encoding=encoding)
    assert rows(path, encoding=encoding) == EXPECTED


def test_characters_on_the_edge_of_a_block_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type,time,label\n" + "bus,1,äöü€𐍈\n" * 30_000, encoding="utf-16")
    assert {row["label"] for row in rows(path)} == {"äöü€𐍈"}


def test_an_unknown_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(DataError, match="encoding 'klingon' is not known; usual ones are utf-8, latin-1"):
        read_events(EventPath(str(tmp_path / "a.csv"), encoding="klingon"))


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".zst": zstd, ".bz2": bz2.compress, ".xz": lzma.compress,
}  # fmt: skip


@pytest.mark.parametrize("name", ["a.csv{}", "a.csv"])
@pytest.mark.parametrize("ending", PACKINGS)
def test_packed_files_are_known_by_their_content(tmp_path: Path, ending: str, name: str) -> None:
    path = tmp_path / name.format(ending)
    path.write_bytes(PACKINGS[ending](TEXT.encode()))
    assert rows(path) == EXPECTED


@pytest.mark.parametrize("ending", PACKINGS)
def test_a_damaged_archive_is_a_clear_error(tmp_path: Path, ending: str) -> None:
    packed = PACKINGS[ending](TEXT.encode() + b"".join(b"bus,%d,x\n" % n for n in range(50_000)))
    for content in (packed[: len(packed) // 2], b"not packed at all"):
        path = tmp_path / f"a.csv{ending}"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.csv.*: the compressed file is cut off or damaged"):
            rows(path)


def test_two_packed_files_in_one_are_read_one_after_the_other(tmp_path: Path) -> None:
    first, second = TEXT.encode()[:20], TEXT.encode()[20:]
    for ending, pack in PACKINGS.items():
        path = tmp_path / f"a.csv{ending}"
        path.write_bytes(pack(first) + pack(second))
        assert rows(path) == EXPECTED, ending


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TEXT, EXPECTED),
        (TEXT.replace(",", ";"), EXPECTED),
        ('{"type": "bus", "time": 1}\n{"type": "bus", "time": 1}\n', [{"type": "bus", "time": 1}] * 2),
        ('[{"type": "bus", "time": 1}]', [{"type": "bus", "time": 1}]),
    ],
)  # fmt: skip
def test_a_file_without_a_known_ending_is_known_by_its_content(
    tmp_path: Path, content: str, expected: list[Any]
) -> None:
    path = tmp_path / "export.txt"
    path.write_text(content, encoding="utf-8")
    assert rows(path) == expected


@pytest.mark.parametrize(
    "content", ["", "just words\nand more, words\n", "1,2,3\n4,5,6\n", "\0\1\2\3\4" * 100]
)
def test_a_file_that_could_be_anything_is_not_guessed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "export.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=r"the ending does not tell a format.*--events-format"):
        read_events(path)
    if content.startswith("1,"):
        assert rows(path, format="csv") == [{"1": 4, "2": 5, "3": 6}]


def test_parquet_in_a_packed_file_is_refused_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a.parquet.gz", "a.gz", "data"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"PAR1 and so on"))
        with pytest.raises(DataError, match="Parquet is packed inside and is not read out of a packed file"):
            read_events(path)
