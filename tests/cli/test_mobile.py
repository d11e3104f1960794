"""`whimbrel mobile report`, and `--monitor` of `detect`: what mobile queries did."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Folder

RESCUE = """\
define Slow detect Car(speed < 3) as c
define Jam over 2 min every 1 min detect Car as c assign n = count(c)

around Ambulance as rescue
  within 500 m
  report Slow, Jam
  lifetime 5 min
"""
EVENTS = """\
type,time,source,x,y,speed
Ambulance,2024-05-01T08:00:00Z,a1,0,0,
Ambulance,2024-05-01T08:00:00Z,a2,0,900,
Car,2024-05-01T08:00:30Z,c1,100,0,2
Car,2024-05-01T08:01:00Z,c2,600,0,1
Ambulance,2024-05-01T08:02:00Z,a1,300,0,
Car,2024-05-01T08:03:00Z,c1,120,0,12
"""


@pytest.fixture
def rescue(folder: Folder) -> Folder:
    folder.write("rescue.wbl", RESCUE)
    folder.write("day.csv", EVENTS)
    return folder


def report(folder: Folder, *args: str):
    return folder.run("mobile", "report", "rescue.wbl", "--events", "day.csv", *args)


def test_a_report_as_a_table(rescue):
    done = report(rescue)
    assert done.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (lines["query"], lines["objects"], lines["switches"]) == ("rescue", "2", "3")
    assert (lines["streamed_historical"], lines["streamed_live"]) == ("2", "2")
    assert lines["precision"] == "-"  # it is not asked for
    assert done.stderr.startswith("6 events read, ")


def test_a_report_as_json_for_each_object(rescue):
    done = report(rescue, "--by", "focal", "--format", "json", "--quality")
    one, other = json.loads(done.stdout)
    assert (one["focal"], one["switches"], one["precision"]) == ("a1", 2, 1.0)
    assert (other["focal"], other["switches"], other["interest_events_live"]) == ("a2", 1, 0)


def test_the_ending_tells_the_form(rescue):
    assert not report(rescue, "--out", "rescue.prom", "--quiet").output
    text = rescue.read("rescue.prom")
    assert "# TYPE whimbrel_mobile_switches_total counter\n" in text
    assert 'whimbrel_mobile_switches_total{query="rescue"} 3\n' in text


def test_detect_writes_it_besides(rescue):
    done = rescue.run(
        "detect", "rescue.wbl", "--events", "day.csv", "--out", "found.jsonl", "--monitor", "did.json"
    )
    assert done.exit_code == 0
    (row,) = json.loads(rescue.read("did.json"))
    told = row["deliveries_live"] + row["deliveries_historical"]
    assert told == len(rescue.read("found.jsonl").splitlines())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("mobile", "report", "late.wbl", "--events", "day.csv"), "follows nothing"),
        (("mobile", "report", "rescue.wbl", "--events", "day.csv", "--out", "did.csv"), "must end in .txt"),
        (("mobile", "report", "rescue.wbl", "--events", "day.csv", "--out", "no/did.txt"), "no folder no"),
        (("detect", "late.wbl", "--events", "day.csv", "--monitor", "did.json"), "follows nothing"),
        (("detect", "rescue.wbl", "--events", "day.csv", "--monitor", "did.csv"), "must end in .txt"),
        (
            ("detect", "rescue.wbl", "--events", "day.csv", "--monitor", "did.json", "--engine", "spark"),
            "Spark",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_reported_is_told_beforehand(rescue, args, said):
    before = rescue.names()
    done = rescue.run(*args)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert rescue.names() == before
