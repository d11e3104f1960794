"""Files of every format go in, with options where nothing tells how they are read, and maps come out."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pyarrow as pa
import pytest
from tests.cli.conftest import TRIPS
from tests.cli.test_bad_input import TEXTS, TIMES

LEAVE = "define Left\n  detect Leave\n"
WAY = """\
id,type,time,source,lon,lat
a1,Leave,2024-05-01T08:00:00Z,a,8.5,47.0
b1,Near,2024-05-01T08:00:10Z,b,8.6,47.0
a2,Arrive,2024-05-01T08:00:20Z,a,8.7,47.5
"""


@pytest.mark.parametrize("reader", sorted(TEXTS))
def test_a_map_is_drawn_from_every_format(folder, reader):
    name, event, maker = TEXTS[reader]
    head, events, tail = maker(TIMES)
    folder.write(name, head + "".join(events) + tail)
    folder.write("found.wbl", f"define Found\n  detect {event}\n")
    options = ("--type", "Plane") if event == "Plane" else ()
    done = folder.run(
        "detect", "found.wbl", "--events", name, "--out", "out.jsonl", "--map", "map.html", *options
    )
    assert done.exit_code == 0, done.stderr
    assert len(folder.read("out.jsonl").splitlines()) == 3
    assert "<html" in folder.read("map.html")


def test_a_file_whose_name_says_nothing_is_known_by_its_content(folder):
    folder.write("trips", TRIPS)
    done = folder.run("detect", "late.wbl", "--events", "trips")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)


def test_the_format_can_be_told(folder):
    folder.write("trips.dat", TRIPS.replace(",", "~"))
    unknown = folder.run("detect", "late.wbl", "--events", "trips.dat")
    assert unknown.exit_code == 1
    assert "trips.dat: the ending does not tell a format" in unknown.stderr
    assert "or say --events-format" in unknown.stderr
    done = folder.run(
        "detect", "late.wbl", "--events", "trips.dat", "--events-format", "csv", "--delimiter", "~"
    )
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)


def test_the_encoding_can_be_told(folder):
    (folder.path / "trips.csv").write_bytes(TRIPS.replace("truck-1", "Zürich").encode("latin-1"))
    refused = folder.run("detect", "late.wbl", "--events", "trips.csv")
    assert refused.exit_code == 1
    assert "trips.csv: the file is not UTF-8 text" in refused.stderr
    assert "--encoding latin-1" in refused.stderr
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--encoding", "latin-1")
    assert done.exit_code == 0
    assert done.stdout.count("e1") == 1


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--events-format", "xml", "is not one of"),
        ("--delimiter", "::", "cannot stand between fields"),
        ("--encoding", "klingon", "encoding 'klingon' is not known"),
    ],
)
def test_a_wrong_value_is_wrong_usage(folder, option, value, words):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", option, value)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "command",
    [
        ("why", "late.wbl", "--events"),
        ("backtest", "late.wbl", "--events"),
        ("store", "add", "kept"),
    ],
)
def test_every_command_that_reads_files_takes_the_options(folder, command):
    folder.write("trips.dat", TRIPS.replace(",", "~"))
    if command[0] == "store":
        assert folder.run("store", "create", "kept").exit_code == 0
    done = folder.run(*command, "trips.dat", "--events-format", "csv", "--delimiter", "~")
    assert done.exit_code == 0, done.stderr


def test_which_list_was_taken_is_noted_unless_it_shall_be_quiet(folder):
    rows = [{"id": "e1", "type": "Leave", "time": 0, "source": "a"}]
    folder.write("feed.json", json.dumps({"version": 3, "rows": rows}))
    done = folder.run("detect", "late.wbl", "--events", "feed.json")
    assert done.stderr.splitlines()[0] == (
        "note: feed.json: the events are the list 'rows'; beside it stand version, which become columns"
    )
    assert "note" not in folder.run("detect", "late.wbl", "--events", "feed.json", "--quiet").stderr


@pytest.mark.parametrize("name", ["out.mfjson", "out.mf.json.gz"])
def test_detections_are_written_as_moving_features(folder, name):
    folder.write("way.csv", WAY)
    folder.write("trip.wbl", "define Trip\n  detect Leave as a then Near then Arrive within 1 h\n")
    done = folder.run("detect", "trip.wbl", "--events", "way.csv", "--out", name)
    assert done.exit_code == 0, done.stderr
    content = (folder.path / name).read_bytes()
    (feature,) = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)["features"]
    assert feature["time"] == ["2024-05-01T08:00:00.000000Z", "2024-05-01T08:00:20.000000Z"]
    assert feature["properties"]["events"] == ["a1", "b1", "a2"]
    assert feature["temporalGeometry"] == {
        "type": "MovingGeometryCollection",
        "prisms": [
            {
                "type": "MovingPoint",
                "datetimes": ["2024-05-01T08:00:00.000000Z", "2024-05-01T08:00:20.000000Z"],
                "coordinates": [[8.5, 47.0], [8.7, 47.5]],
                "interpolation": "Linear",
            },
            {
                "type": "MovingPoint",
                "datetimes": ["2024-05-01T08:00:10.000000Z"],
                "coordinates": [[8.6, 47.0]],
                "interpolation": "Linear",
            },
        ],
    }


@pytest.mark.parametrize("form", ["jsonl", "csv", "geojson", "mfjson"])
@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz"])
def test_outputs_are_packed_by_their_ending(folder, form, ending):
    for name in (f"out.{form}", f"out.{form}{ending}"):
        assert folder.run("detect", "late.wbl", "--events", "trips.csv", "--out", name).exit_code == 0
    packed = (folder.path / f"out.{form}{ending}").read_bytes()
    unpack = {
        ".gz": gzip.decompress,
        ".bz2": bz2.decompress,
        ".xz": lzma.decompress,
        ".zst": lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
    }[ending]
    assert unpack(packed) == (folder.path / f"out.{form}").read_bytes()


def test_parquet_is_not_packed_again(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--out", "out.parquet.gz")
    assert done.exit_code == 1
    assert (
        done.stderr
        == "error: out.parquet.gz: Parquet is packed inside, and not with gzip; name it out.parquet\n"
    )
