"""`whimbrel why`. What the explanations say is tested with `whimbrel.whynot`."""

from __future__ import annotations

import json


def test_the_nearest_miss_is_told(folder):
    done = folder.run("why", "late.wbl", "--events", "trips.csv", "--key", "truck-2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "not matched for source = truck-2",
        "3 events processed: Leave (2), Arrive (1)",
        "",
        "Late: no detection",
        "  nearest misses (1):",
        "  1. 1 of 1 parts (source = truck-2)",
        "     Leave: Leave e2 at 2024-05-01T08:10:00Z",
        "     -> Arrive: Arrive e3 at 2024-05-01T08:50:00Z came within 1 h after Leave",
    ]


def test_a_match_is_told(folder):
    done = folder.run("why", "late.wbl", "--events", "trips.csv", "--key", "source=truck-1")
    assert done.stdout.startswith("matched for source = truck-1\n")


def test_json_is_for_programs(folder):
    done = folder.run(
        "why", "late.wbl", "--events", "trips.csv", "--format", "json", "--at", "2024-05-01T08:30:00Z"
    )
    found = json.loads(done.stdout)
    assert (found["matched"], found["at"]) == (True, "2024-05-01T08:30:00.000000Z")
    assert found["findings"][0]["misses"][0]["reasons"][0]["kind"] == "present"


def test_a_time_may_be_a_number(folder):
    done = folder.run("why", "late.wbl", "--events", "trips.csv", "--at", "1714546800", "--around", "1 s")
    assert "around 2024-05-01T07:00:00Z" in done.stdout
    assert done.stdout.startswith("not matched")


def test_wrong_usage_is_told(folder):
    for args, message in (
        (("--at", "soon"), "'soon' is not an ISO 8601 time"),
        (("--key", "a=1", "--key", "2"), "each is NAME=VALUE"),
        (("--limit", "0"), "not in the range"),
    ):
        done = folder.run("why", "late.wbl", "--events", "trips.csv", *args)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_a_bad_key_ends_with_status_1(folder):
    done = folder.run("why", "late.wbl", "--events", "trips.csv", "--key", "sourze=x")
    assert (done.exit_code, "did you mean 'source'?" in done.stderr) == (1, True)


def test_what_came_late_is_told(folder):
    folder.write("trips.csv", folder.read("trips.csv") + "e4,Leave,2024-05-01T07:00:00Z,truck-1,3,4,\n")
    folder.write("more.csv", "id,type,time,source\ne5,Leave,2024-05-01T06:00:00Z,truck-1\n")
    done = folder.run("why", "late.wbl", "--events", "trips.csv", "more.csv", "--lateness", "10 min")
    assert (
        "late: 1 event\n  Leave e5 truck-1 at 2024-05-01T06:00:00Z came more than 10 min late" in done.stdout
    )
