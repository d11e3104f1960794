"""`whimbrel backtest`."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from tests.backtesting.truck_trips import trips

QUERY = """\
param patience = 1 h
define Late
  detect Leave then not Arrive for patience
  group by truck
"""
LATER = QUERY.replace("1 h", "65 min")


@pytest.fixture
def tried(folder):
    """A folder with two queries and a week of trips."""
    folder.write("old.wbl", QUERY)
    folder.write("new.wbl", LATER)
    names = ("id", "type", "time", "truck", "x", "y")
    lines = [",".join(str(row[name]) for name in names) for row in trips()]
    folder.write("week.csv", "\n".join([",".join(names), *lines]) + "\n")
    return folder


def test_what_would_have_been_found_is_told(tried):
    done = tried.run("backtest", "old.wbl", "--events", "week.csv")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "19 detections in 6 days, 3.2 a day"
    assert lines[1] == "  first        2024-05-01 11:46:58 UTC"
    assert "by day" in lines
    assert "by hour of day" in lines
    assert any(line.startswith("  truck=T") for line in lines)
    assert done.stderr == "96 events read, 19 detections, 0 late, 0 duplicate, 0 rejected\n"
    assert not tried.names() & {"week.rejected.jsonl"}


@pytest.mark.parametrize(
    "name", ["found.jsonl", "found.csv", "found.parquet", "found.geojson", "found.csv.gz"]
)
@pytest.mark.parametrize(
    "more", [(), ("--lateness", "1h"), ("--param", "patience=50 min"), ("--emit", "all")]
)
def test_the_list_is_that_of_detect_to_the_byte(tried, name, more):
    given = ("old.wbl", "--events", "week.csv", "--quiet", *more)
    tried.run("detect", *given, "--out", f"detect-{name}")
    done = tried.run("backtest", *given, "--out", f"backtest-{name}")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    detected = (tried.path / f"detect-{name}").read_bytes()
    assert (tried.path / f"backtest-{name}").read_bytes() == detected
    assert len(detected) > 500


def test_with_the_list_on_standard_output_the_summary_goes_to_standard_error(tried):
    done = tried.run("backtest", "old.wbl", "--events", "week.csv", "--out", "-")
    plain = tried.run("detect", "old.wbl", "--events", "week.csv", "--quiet")
    assert done.stdout_bytes == plain.stdout_bytes
    assert done.stderr.startswith("19 detections in 6 days")


def test_a_changed_query_is_held_against_the_old_one(tried):
    done = tried.run("backtest", "old.wbl", "--against", "new.wbl", "--events", "week.csv")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:3] == [
        "old (old.wbl): 19 detections",
        "new (new.wbl): 12 detections",
        "new against old: 0 same, 0 added, 7 dropped, 12 changed",
    ]


def test_the_list_says_what_each_row_is(tried):
    given = ("backtest", "old.wbl", "--against", "new.wbl", "--events", "week.csv", "--quiet")
    tried.run(*given, "--out", "all.jsonl")
    rows = [json.loads(line) for line in tried.read("all.jsonl").splitlines()]
    kinds = [row["attributes"]["change"] for row in rows]
    assert (kinds.count("dropped"), kinds.count("changed"), len(kinds)) == (7, 12, 19)
    assert tried.run(*given, "--out", "-", "--format", "csv").stdout.startswith('"id","type"')


def test_another_value_of_a_parameter_is_a_new_query(tried):
    given = ("backtest", "old.wbl", "--events", "week.csv", "--against-param", "patience=65 min")
    lines = tried.run(*given).stdout.splitlines()
    assert lines[1] == "new (old.wbl, patience=65 min): 12 detections"
    lines = tried.run(*given, "--param", "patience=65min").stdout.splitlines()
    assert lines[2] == "new against old: 12 same, 0 added, 0 dropped, 0 changed"


def test_differences_fail_only_if_that_is_asked_for(tried):
    given = ("backtest", "old.wbl", "--events", "week.csv", "--quiet", "--against")
    assert tried.run(*given, "new.wbl").exit_code == 0
    assert tried.run(*given, "new.wbl", "--fail-on-change").exit_code == 1
    assert tried.run(*given, "old.wbl", "--fail-on-change").exit_code == 0


def test_reports_and_pictures_are_written(tried):
    given = ("backtest", "old.wbl", "--against", "new.wbl", "--events", "week.csv", "--quiet")
    done = tried.run(*given, "--report", "r.html", "--report", "r.json", "--plot", "r.svg")
    assert done.exit_code == 0
    assert "old (old.wbl) against new (new.wbl)" in tried.read("r.html")
    assert json.loads(tried.read("r.json"))["changes"]["dropped"] == 7
    assert ET.fromstring(tried.read("r.svg")).tag.endswith("svg")  # noqa: S314, our own


def test_counts_go_by_what_is_asked_for_and_where(tried):
    given = ("backtest", "old.wbl", "--events", "week.csv")
    done = tried.run(*given, "--by", "type,truck", "--timezone", "Asia/Tokyo")
    assert "type=Late, truck=T" in done.stdout
    assert "2024-05-01 20:46:58 Asia/Tokyo" in done.stdout
    done = tried.run(*given, "--by", "truk")
    assert done.exit_code == 1
    assert done.stderr == ("error: no detection has an attribute 'truk' to count by; did you mean 'truck'?\n")
    assert "'Mars' is no time zone" in tried.run(*given, "--timezone", "Mars").stderr


def test_rows_that_are_no_events_are_kept(tried):
    tried.write("week.csv", tried.read("week.csv") + "e,Leave,soon,T1,0,0\n")
    done = tried.run("backtest", "old.wbl", "--events", "week.csv")
    assert "1 rejected (week.rejected.jsonl)" in done.stderr
    assert "soon" in tried.read("week.rejected.jsonl")


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--plot", "p.png"], 2, "--plot p.png: the name must end in .svg"),
        (["--report", "r.txt"], 2, "--report r.txt: the name must end in .html or .json"),
        (["--report", "no/r.html"], 1, "error: no/r.html: there is no folder no"),
        (["--format", "csv"], 2, "say where it goes with --out"),
        (["--fail-on-change"], 2, "--fail-on-change needs a query to compare with"),
        (["--out", "week.csv"], 2, "--out week.csv would overwrite a file that is read"),
        (["--against", "new.wbl", "--out", "new.wbl", "--format", "csv"], 2, "would overwrite the query"),
        (["--out", "a.html", "--format", "csv", "--report", "a.html"], 2, "would overwrite that of --out"),
        (["--against", "missing.wbl"], 1, "missing.wbl"),
        (["--against-param", "patience"], 2, "'patience' is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tried, more, status, said):
    before = tried.names()
    done = tried.run("backtest", "old.wbl", "--events", "week.csv", *more)
    assert (done.exit_code, said in done.stderr) == (status, True), done.stderr
    assert tried.names() == before


def test_both_queries_cannot_come_from_standard_input(tried):
    done = tried.run("backtest", "-", "--against", "-", "--events", "week.csv", stdin=QUERY)
    assert done.exit_code == 2
    assert "only one query can come from standard input" in done.stderr
    done = tried.run("backtest", "-", "--against", "new.wbl", "--events", "week.csv", stdin=QUERY)
    assert done.stdout.startswith("old (standard input): 19 detections")
