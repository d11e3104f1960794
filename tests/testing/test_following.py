"""Tests of queries that follow something: who has to be told what, and what the tests reach."""

from __future__ import annotations

QUERY = """event Car(name: string, kind: string)
event Crash(level: int)
define Bad
  detect Crash(level > 1) as c
  assign level = c.level
around Car(kind = 'medic') as rescue
  group by name
  within 400 m
  report Bad
  lifetime 1 min
  deliver changes
"""
FIRST = """
+0s Car name=m1 kind=medic at (0, 0)
+1s Crash level=2 at (100, 0)
+2s Crash level=3 at (900, 0)
+5s Car name=m1 kind=medic at (300, 0)
"""
TOLD = """
expect Bad level=2 focal=m1 live=true change=added told=+1s interest=1 query=rescue at +1s
expect Bad level=2 focal=m1 live=false change=kept told=+5s interest=2
"""


def test_deliveries_are_expected_by_whom_they_are_told_to(queries):
    never = "not Bad level=3\nnot Bad focal=m2\nnot Bad change=removed"
    assert queries.one(FIRST + TOLD + never, QUERY).status == "passed"


def test_what_is_told_otherwise_is_shown_beside_it(queries):
    report = queries.one(FIRST + TOLD.replace("live=false", "live=true"), QUERY).report
    assert "different   line" in report
    assert "> live" in report.replace("  ", " ")
    report = queries.one(FIRST + TOLD.replace("focal=m1 live=true", "focal=m2 live=true"), QUERY).report
    assert "focal=m1 interest=1 interest_start=+0s told=+1s live=true change=added" in report


def test_what_must_not_be_told_is_found(queries):
    report = queries.one(FIRST + "not Bad focal=m1 change=kept", QUERY).report
    assert "forbidden" in report
    assert "change=kept" in report


def test_an_attribute_that_a_delivery_does_not_have(queries):
    report = queries.one(FIRST + "expect 2 Bad followed=m1", QUERY).report
    assert "no such attribute; there are: level, query, focal, interest" in report


def test_event_files_are_read_with_what_location_updates_say(queries):
    rows = "type,time,name,kind,x,y,level\nCar,0,m1,medic,0,0,\nCrash,1,,,9,0,2\n"
    (queries.folder / "e.csv").write_text(rows)
    assert queries.one("events e.csv\nexpect Bad focal=m1", QUERY).status == "passed"


def test_coverage_asks_who_was_followed_and_what_was_told(queries):
    around = "6: around rescue: "
    missed = queries.missed(QUERY, "")
    assert {each for each in missed if each.startswith(around)} == {
        f"{around}a location update came",
        f"{around}a location update was refused by the condition kind = 'medic'",
        f"{around}Bad was told live",
        f"{around}Bad was told of history",
        f"{around}Bad was told to nobody",
        f"{around}something was told in a later interest",
        f"{around}something was kept",
        f"{around}something was removed",
    }
    assert {each for each in queries.missed(QUERY, FIRST) if each.startswith(around)} == {
        f"{around}a location update was refused by the condition kind = 'medic'",
        f"{around}Bad was told of history",
        f"{around}something was removed",
    }
    rest = "+3s Crash level=1 at (0, 0)\n+3s Crash level=2 at (5000, 0)\n+6s Car name=c1 kind=car at (0, 0)\n"
    rest += "+9s Car name=m1 kind=medic at (800, 0)"
    assert queries.missed(QUERY, FIRST + rest) == []
