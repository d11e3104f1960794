"""`whimbrel detect`."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import TRIPS

from whimbrel.cli.event_files import FORMATS
from whimbrel.cli.options import spread_events
from whimbrel.engine import bounded as engine
from whimbrel.graph.policies import Context

FOUND = {
    "type": "Late",
    "start": "2024-05-01T08:00:00.000000Z",
    "end": "2024-05-01T09:00:00.000000Z",
    "geometry": "POINT (3 4)",
    "events": ["e1"],
}


def found_in(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_detections_go_to_standard_output_as_json_lines(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv")
    assert done.exit_code == 0
    (found,) = found_in(done.stdout)
    assert found | FOUND == found
    assert done.stderr == "3 events read, 1 detection, 0 late, 0 duplicate, 0 rejected\n"
    assert folder.names() == {"late.wbl", "trips.csv"}


def test_quiet_prints_nothing_but_detections(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--quiet")
    assert (len(found_in(done.stdout)), done.stderr) == (1, "")


def test_the_ending_of_out_chooses_the_format(folder):
    for name in ("out.jsonl", "out.csv", "out.parquet", "out.geojson"):
        done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--out", name)
        assert (done.exit_code, done.stdout) == (0, "")
    assert found_in(folder.read("out.jsonl"))[0]["events"] == ["e1"]
    assert next(csv.DictReader(folder.read("out.csv").splitlines()))["geometry"] == "POINT (3 4)"
    assert pq.read_table("out.parquet").to_pydict()["events"] == [["e1"]]
    (feature,) = json.loads(folder.read("out.geojson"))["features"]
    assert feature["geometry"] == {"type": "Point", "coordinates": [3.0, 4.0]}


@pytest.mark.parametrize(
    ("form", "beginning"),
    [("jsonl", b'{"type"'), ("csv", b'"id","type"'), ("parquet", b"PAR1"), ("geojson", b'{"type": "Feat')],
)
def test_format_chooses_what_standard_output_gets(folder, form, beginning):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--format", form, "--quiet")
    assert done.exit_code == 0
    assert done.stdout_bytes.startswith(beginning)


def test_an_ending_that_tells_nothing_is_bad(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--out", "late.txt")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: late.txt: the ending does not tell a format")


def test_a_query_comes_from_standard_input(folder):
    done = folder.run("detect", "-", "--events", "trips.csv", "--quiet", stdin=folder.read("late.wbl"))
    assert len(found_in(done.stdout)) == 1


# Event files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["late.wbl", "--events", "a.csv", "b.csv"],
        ["late.wbl", "--events", "a.csv", "--events", "b.csv"],
        ["late.wbl", "--events=a.csv", "b.csv"],
        ["--events", "a.csv", "b.csv", "late.wbl"],
        ["--events", "a.csv", "b.csv", "--", "late.wbl"],
        ["--events", "a.csv", "b.csv", "--quiet", "late.wbl"],
        ["late.wbl", "--events", "?.csv"],
        ["late.wbl", "--events", "."],
    ],
    ids=" ".join,
)
def test_several_event_files_are_one_input(folder, args):
    head, *rows = TRIPS.splitlines()
    folder.write("a.csv", "\n".join([head, rows[0], rows[1]]) + "\n")
    folder.write("b.csv", "\n".join([head, rows[2]]) + "\n")
    (folder.path / "trips.csv").unlink()
    done = folder.run("detect", *args, "--quiet") if "--" not in args else folder.run("detect", *args)
    assert done.exit_code == 0
    assert [found["events"] for found in found_in(done.stdout)] == [["e1"]]


def test_options_behind_event_files_stay_options():
    given = ["q.wbl", "--events", "a", "b", "--out", "c", "--events", "d", "--quiet"]
    spread = ["q.wbl", "--events", "a", "--events", "b", "--out", "c", "--events", "d", "--quiet"]
    assert spread_events(given) == spread


def test_the_value_of_another_option_is_no_event_file():
    given = ["--events", "a", "--format", "csv", "q.wbl"]
    assert spread_events(given) == given


def test_a_missing_event_file_is_named_with_the_likely_slip(folder):
    done = folder.run("detect", "late.wbl", "--events", "trip.csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: trip.csv: no such file; did you mean 'trips.csv'?\n"


def test_an_empty_event_file_has_no_detections_or_says_why(folder):
    folder.write("none.csv", TRIPS.splitlines()[0] + "\n")
    done = folder.run("detect", "late.wbl", "--events", "none.csv")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "0 events read, 0 detections, 0 late, 0 duplicate, 0 rejected\n"
    folder.write("nothing.csv", "")
    done = folder.run("detect", "late.wbl", "--events", "nothing.csv")
    assert done.exit_code == 1
    assert "nothing.csv" in done.stderr


def test_parquet_is_read(folder):
    rows = {"type": ["Leave"], "time": pa.array([0], pa.timestamp("us", "UTC")), "source": ["truck-1"]}
    pq.write_table(pa.table(rows), "trips.parquet")
    done = folder.run("detect", "late.wbl", "--events", "trips.parquet", "--quiet")
    assert found_in(done.stdout)[0]["end"] == "1970-01-01T01:00:00.000000Z"


def test_the_time_unit_is_that_of_plain_numbers(folder):
    folder.write("n.csv", "type,time,source\nLeave,5000,a\n")
    done = folder.run("detect", "late.wbl", "--events", "n.csv", "--time-unit", "ms", "--quiet")
    assert found_in(done.stdout)[0]["start"] == "1970-01-01T00:00:05.000000Z"


# What became of the events ----------------------------------------------------------------------------------


def test_rejected_rows_go_to_a_file_beside_the_output(folder):
    folder.write("late.wbl", "event Leave(load: float)\n" + folder.read("late.wbl"))
    folder.write(
        "bad.csv", TRIPS + "e4,Leave,2024-05-01T08:10:00Z,truck-4,3,4,heavy\ne5,Leave,soon,t,3,4,1\n"
    )
    (folder.path / "out").mkdir()
    done = folder.run("detect", "late.wbl", "--events", "bad.csv", "--out", "out/late.jsonl")
    assert done.exit_code == 0
    lines = found_in(folder.read("out/late.rejected.jsonl"))
    assert [(line["file"], line["row"]) for line in lines] == [("bad.csv", 4), ("bad.csv", 5)]
    assert "'heavy'" in lines[0]["reason"]
    summary, *reasons = done.stderr.splitlines()
    assert summary.endswith("0 duplicate, 2 rejected (out/late.rejected.jsonl)")
    assert "  1 x attribute 'load' is not a number" in reasons


def test_rejected_rows_are_numbered_within_their_files(folder):
    folder.write("one.csv", TRIPS + "e5,Leave,soon,t,3,4,1\n")
    folder.write("two.csv", TRIPS + "e6,Leave,then,t,3,4,1\n")
    row = '{"id": "e%d", "type": "Leave", "time": "%s", "source": "t"}\n'
    folder.write("three.jsonl", row % (7, "2024-05-01") + "broken\n" + row % (8, "never"))
    done = folder.run("detect", "late.wbl", "--events", "one.csv", "two.csv", "three.jsonl", "--out", "o.csv")
    assert done.exit_code == 0
    lines = found_in(folder.read("o.rejected.jsonl"))
    assert [(line["file"], line["row"]) for line in lines] == [
        ("one.csv", 4), ("two.csv", 4), ("three.jsonl", 2), ("three.jsonl", 3),
    ]  # fmt: skip


def test_rejected_rows_of_standard_output_go_to_the_current_folder(folder):
    folder.write("bad.csv", TRIPS + "e5,Leave,soon,t,3,4,1\n")
    for _ in range(2):
        done = folder.run("detect", "late.wbl", "--events", "bad.csv")
        assert "1 rejected (bad.rejected.jsonl)" in done.stderr
    assert len(found_in(folder.read("bad.rejected.jsonl"))) == 1, "a second run starts anew"


def test_the_file_of_rejected_rows_can_be_named(folder):
    folder.write("bad.csv", TRIPS + "e5,Leave,soon,t,3,4,1\n")
    folder.run("detect", "late.wbl", "--events", "bad.csv", "--rejected", "no.jsonl", "--quiet")
    assert "no.jsonl" in folder.names()


def test_the_three_most_frequent_reasons_are_told(folder):
    rows = ["e5,Leave,soon,t,3,4,1"] * 3 + ["e6,,2024-05-01,t,3,4,1"] * 2 + [",Leave,2024-05-01,t,3,4,1"]
    folder.write("bad.csv", TRIPS + "\n".join([*rows, "e7,Leave,2024-05-01,t,3,,1"]) + "\n")
    done = folder.run("detect", "late.wbl", "--events", "bad.csv")
    _, first, second, third, rest = done.stderr.splitlines()
    assert (first[:6], second[:6], third[:6]) == ("  3 x ", "  2 x ", "  1 x ")
    assert rest == "  and 1 other reason"


def test_late_and_repeated_events_are_counted(folder):
    rows = ["Leave,100,a,e1", "Leave,90,a,e2", "Leave,99,a,e3", "Leave,99,a,e3"]
    folder.write("n.csv", "\n".join(["type,time,source,id", *rows]) + "\n")
    sorted_first = folder.run("detect", "late.wbl", "--events", "n.csv")
    assert "4 events read, 3 detections, 0 late, 1 duplicate" in sorted_first.stderr
    as_a_stream = folder.run("detect", "late.wbl", "--events", "n.csv", "--lateness", "5s")
    assert as_a_stream.exit_code == 0
    assert "4 events read" in as_a_stream.stderr


# Queries ----------------------------------------------------------------------------------------------------


def test_a_broken_query_is_shown_with_a_caret(folder):
    folder.write("bad.wbl", "define Late\n  detect Leave then not Arrives for 1 hh\n")
    done = folder.run("detect", "bad.wbl", "--events", "trips.csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: bad.wbl: line 2, col ")
    assert "\n  " + "  detect Leave then not Arrives for 1 hh\n" in done.stderr
    assert "^" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unbounded_query_needs_a_horizon(folder):
    folder.write("pair.wbl", "define Pair detect Leave as a then Arrive as b group by source\n")
    refused = folder.run("detect", "pair.wbl", "--events", "trips.csv")
    assert refused.exit_code == 1
    assert "horizon" in refused.stderr
    done = folder.run("detect", "pair.wbl", "--events", "trips.csv", "--horizon", "1h", "--quiet")
    assert found_in(done.stdout)[0]["events"] == ["e2", "e3"]


def test_the_context_is_that_of_the_option(folder):
    folder.write("pair.wbl", "define Pair detect Leave as a and Arrive as b within 1 h\n")
    each = folder.run("detect", "pair.wbl", "--events", "trips.csv", "--quiet")
    recent = folder.run("detect", "pair.wbl", "--events", "trips.csv", "--quiet", "--context", "recent")
    assert (len(found_in(each.stdout)), len(found_in(recent.stdout))) == (2, 1)


@pytest.mark.parametrize("given", ["wait=2 h", "wait=120min"])
def test_parameters_are_given(folder, given):
    folder.write("late.wbl", "param wait = 1 h\ndefine Late detect Leave then not Arrive for wait\n")
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--param", given, "--quiet")
    assert found_in(done.stdout) == []


@pytest.mark.parametrize(
    ("type_", "given", "found"),
    [
        ("load > x", "x=2", 1),
        ("load > x", "x=1e3", 0),
        ("source = x", "x=truck-1", 1),
        ("(load > 2) = x", "x=true", 1),
    ],
)
def test_parameters_that_a_query_does_not_declare_are_what_they_look_like(folder, type_, given, found):
    folder.write("q.wbl", f"define Q detect Leave({type_})\n")
    done = folder.run("detect", "q.wbl", "--events", "trips.csv", "--param", given, "--quiet")
    assert done.exit_code == 0, done.stderr
    assert len(found_in(done.stdout)) == found


def test_emit_chooses_definitions(folder):
    folder.write("two.wbl", "define A detect Leave\ndefine B detect A(load > 2)\n")
    for emit, types in (("A", {"A"}), ("A,B", {"A", "B"}), ("all", {"A", "B"})):
        done = folder.run("detect", "two.wbl", "--events", "trips.csv", "--quiet", "--emit", emit)
        assert {found["type"] for found in found_in(done.stdout)} == types


def test_warnings_of_a_query_are_printed(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--param", "x=1")
    assert done.exit_code == 0
    assert "late.wbl: warning: the query has no parameter 'x'" in done.stderr


# The map ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["x,y", "lon,lat"])
def test_a_map_is_drawn(folder, columns):
    folder.write("trips.csv", TRIPS.replace("x,y", columns))
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--map", "late.html", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert "1 detection in 3 positions of 2 objects" in folder.read("late.html")


# Wrong usage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["late.wbl"], "Missing option '--events'"),
        (["--events", "trips.csv"], "Missing argument 'QUERY'"),
        (["late.wbl", "--events", "trips.csv", "--contxt", "each"], "No such option"),
        (["late.wbl", "--events", "trips.csv", "--context", "eech"], "'eech' is not one of"),
        (["late.wbl", "--events", "trips.csv", "--lateness", "soon"], "'soon' is not a duration"),
        (["late.wbl", "--events", "trips.csv", "--horizon", "5 furlongs"], "is not a duration"),
        (["late.wbl", "--events", "trips.csv", "--param", "x"], "'x' is not NAME=VALUE"),
        (["late.wbl", "--events", "trips.csv", "--engine", "spark", "--lateness", "1s"], "whimbrel stream"),
        (["late.wbl", "--events", "trips.csv", "--engine", "steam"], "'steam' is not one of"),
        (["late.wbl", "--events", "trips.csv", "--out", "trips.csv"], "would overwrite a file that is read"),
        (["late.wbl", "--events", "*.csv", "--out", "./trips.csv"], "would overwrite a file that is read"),
        (["late.wbl", "--events", "trips.csv", "--map", "./late.wbl"], "would overwrite the query"),
        (["late.wbl", "--events", "trips.csv", "--out", "a.csv", "--rejected", "a.csv"], "that of --out"),
        (["late.wbl", "other.wbl", "--events", "trips.csv"], "unexpected extra argument"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_status_2(folder, args, message):
    done = folder.run("detect", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert folder.read("trips.csv") == TRIPS


def test_ctrl_c_ends_with_status_130(folder, monkeypatch):
    def interrupted(*_args, **_settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "run", interrupted)
    done = folder.run("detect", "late.wbl", "--events", "trips.csv")
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr.endswith("stopped\n")


def test_a_folder_that_is_not_there_is_named(folder):
    done = folder.run("detect", "late.wbl", "--events", "trips.csv", "--out", "no/late.jsonl")
    assert done.exit_code == 1
    assert done.stderr == "error: no/late.jsonl: there is no folder no\n"


def test_the_endings_of_outputs_are_those_that_are_written():
    from whimbrel.io import detections

    assert set(detections.ENDINGS.values()) == set(detections.FORMATS)


def test_the_formats_of_the_option_are_those_that_are_read():
    from whimbrel.io import files

    assert FORMATS == files.FORMATS


def test_an_output_that_cannot_be_written_is_refused_before_the_events_are_read(folder):
    for out in ("no/late.jsonl", "late.txt"):
        done = folder.run("detect", "late.wbl", "--events", "missing.csv", "--out", out)
        assert (done.exit_code, "missing.csv" in done.stderr) == (1, False)


def test_a_disk_that_is_full_is_no_traceback(folder, monkeypatch):
    def full(*_args, **_settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("whimbrel.io.detections.write_detections", full)
    done = folder.run("detect", "late.wbl", "--events", "trips.csv")
    assert (done.exit_code, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize("context", [each.value for each in Context])
def test_every_context_can_be_asked_of_a_query_that_consumes(folder, context):
    folder.write("pair.wbl", "define Pair detect first Leave as a and Arrive as b within 1 h consuming a\n")
    done = folder.run("detect", "pair.wbl", "--events", "trips.csv", "--quiet", "--context", context)
    assert done.exit_code == 0
    assert found_in(done.stdout)


def test_a_file_without_types_gets_one(folder):
    folder.write("fast.wbl", "define Fast detect Position(speed > 10)")
    folder.write("track.csv", "time,x,y,speed\n0,0,0,5\n1,1,1,15\n")
    words = ("detect", "fast.wbl", "--events", "track.csv")
    assert folder.run(*words, "--type", "Other").stdout == ""
    assert [found["type"] for found in found_in(folder.run(*words).stdout)] == ["Fast"]
    done = folder.run(*words, "--type", "Position", "--map", "map.html")
    assert [found["type"] for found in found_in(done.stdout)] == ["Fast"]
    assert "map.html" in folder.names()
