"""`whimbrel store`."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner, Result

from whimbrel.cli.main import main
from whimbrel.cli.store import store

TRIPS = """\
id,type,time,source,x,y
e1,Leave,2024-05-01T08:00:00Z,truck-1,3,4
e2,Leave,2024-05-02T08:10:00Z,truck-2,3,4
e3,Arrive,2024-05-02T08:50:00Z,truck-2,900,4
e4,Leave,never,truck-2,900,4
"""
LATE = """
region Depot = box(0, 0, 10, 10)
define Late detect Leave(this in Depot) then not Arrive for 1 h group by source
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run `whimbrel` in a folder with a query and events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.csv").write_text(TRIPS)
    (tmp_path / "late.wbl").write_text(LATE)

    def run(*args: str) -> Result:
        return CliRunner().invoke(main, ["store", *args], prog_name="whimbrel", catch_exceptions=False)

    return run


@pytest.fixture
def filled(run):
    assert run("create", "events", "--coordinates", "plane", "--cell", "100").exit_code == 0
    done = run("add", "events", "trips.csv", "--batch", "may")
    assert done.exit_code == 0
    assert done.stderr == "3 events added in 3 files, 1 rejected (trips.rejected.jsonl)\n"
    return run


def test_detections_in_a_store_come_as_json_lines(filled):
    done = filled("detect", "events", "late.wbl")
    assert done.exit_code == 0
    (found,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert found["events"] == ["e1"]
    assert done.stderr == (
        "3 events read, 1 detection, 0 late, 0 duplicate, 0 rejected\n"
        "reads 3 of 3 files, 3 of 3 events, 0.0 of 0.0 MB\n"
    )
    assert filled("detect", "events", "late.wbl", "--since", "2024-05-02").stdout == ""


def test_explain_tells_how_much_is_read(filled):
    done = filled("explain", "events", "late.wbl", "--until", "2024-05-02")
    assert done.stdout.startswith("reads 1 of 3 files, 1 of 3 events")
    assert "Leave, end to 2024-05-01T23:59:59.999999Z, x 0 to 10, y 0 to 10" in done.stdout


def test_the_summary_has_a_line_for_each_day(filled):
    lines = filled("summary", "events").stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["2024-05-01", "1", "1", "1"],
        ["2024-05-02", "2", "2", "2"],
        ["all", "3", "2", "3"],
    ]


def test_adding_a_batch_again_replaces_it(filled):
    assert filled("add", "events", "trips.csv", "--batch", "may").exit_code == 0
    assert filled("summary", "events").stdout.splitlines()[-1].split()[1] == "3"


def test_small_files_are_joined(filled):
    filled("add", "events", "trips.csv", "--batch", "again")
    done = filled("compact", "events", "--drop-duplicates", "--before", "2024-05-02")
    assert done.stderr == "2 files joined into 1, 1 duplicate events left out\n"


def test_old_days_are_deleted_after_a_dry_run(filled):
    for flags in (["--dry-run"], []):
        done = filled("retain", "events", "--before", "2024-05-02", *flags)
        assert done.stdout == "2024-05-01\n"
    assert "1 days deleted: 1 events" in done.stderr
    assert filled("retain", "events", "--days", "1").stdout == "2024-05-02\n"


def test_faults_are_told_and_end_with_status_1(run, tmp_path):
    done = run("add", "nowhere", "trips.csv")
    assert (done.exit_code, done.stderr.split(";")[0]) == (1, "error: nowhere: there is no event store here")
    assert run("create", str(tmp_path)).exit_code == 1


def test_wrong_usage_ends_with_status_2(filled):
    assert filled("retain", "events").exit_code == 2


@pytest.mark.parametrize("name", sorted(store.commands))
def test_every_command_shows_an_example(run, name):
    assert isinstance(store.commands[name], click.Command)
    assert f"    whimbrel store {name} events" in run(name, "--help").stdout
