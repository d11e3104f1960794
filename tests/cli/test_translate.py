"""`whimbrel translate`, and files in CPSL wherever a query is asked for."""

from __future__ import annotations

import json

import pytest

import whimbrel as wb
from whimbrel.errors import DataError, QueryError

LATE_CPSL = '# a comment\nlate: !(Leave;2700)(STRING:type = "Arrive")\n'
LATE_WBL = "define late\n  detect Leave as a then not Arrive as b for 2700 s\n"


@pytest.fixture
def cpsl(folder):
    folder.write("late.cpsl", LATE_CPSL)
    return folder


def test_cpsl_becomes_the_whimbrel_language(cpsl):
    done = cpsl.run("translate", "late.cpsl", "--to", "wbl")
    assert (done.exit_code, done.stdout) == (0, LATE_WBL)


def test_a_query_becomes_cpsl(cpsl):
    cpsl.write("simple.wbl", LATE_WBL)
    done = cpsl.run("translate", "simple.wbl", "--to", "cpsl")
    assert (done.exit_code, done.stdout) == (
        0,
        'late: !(STRING:type = "Leave";2700)(STRING:type = "Arrive")\n',
    )


def test_standard_input_can_be_translated(cpsl):
    assert (
        cpsl.run("translate", "-", "--to", "wbl", stdin="n: A || B").stdout
        == "define n\n  detect (A or B) as a\n"
    )


def test_what_has_no_form_is_named(cpsl):
    done = cpsl.run("translate", "late.wbl", "--to", "cpsl")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: late.wbl: line 3, col 12: `group by` has no CPSL form\n")


def test_a_file_of_the_same_language_is_refused(cpsl):
    done = cpsl.run("translate", "late.wbl", "--to", "wbl")
    assert (done.exit_code, done.stderr) == (
        1,
        "error: late.wbl: only .cpsl files can be translated to wbl\n",
    )


def test_a_bad_subscription_is_shown_with_its_place(cpsl):
    cpsl.write("bad.cpsl", "a: A\nb: =|($x;;5)A\n")
    done = cpsl.run("check", "bad.cpsl")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "error: bad.cpsl: line 2, col 7: the variable $x; is bound to nothing\n  b: "
    )


def test_check_explain_and_detect_take_cpsl(cpsl):
    assert cpsl.run("check", "late.cpsl").stdout.startswith(
        "late.cpsl: fine: detects late (from Leave, Arrive)"
    )
    assert "source Arrive" in cpsl.run("explain", "late.cpsl").stdout
    done = cpsl.run("detect", "late.cpsl", "--events", "trips.csv", "--quiet")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["type"], row["events"]) for row in rows] == [("late", ["e1"])]


def test_events_may_stand_before_the_query(cpsl):
    done = cpsl.run("detect", "--events", "trips.csv", "late.cpsl", "--quiet")
    assert done.exit_code == 0


def test_a_horizon_bounds_what_has_no_bound(cpsl):
    cpsl.write("both.cpsl", "both: Leave && Arrive\n")
    assert "would have to remember events for ever" in cpsl.run("check", "both.cpsl").stderr
    assert cpsl.run("check", "both.cpsl", "--horizon", "1h").exit_code == 0


def test_parameters_do_not_go_with_cpsl(cpsl):
    done = cpsl.run("check", "late.cpsl", "--param", "x=5")
    assert (done.exit_code, done.stderr) == (1, "error: late.cpsl: 'params' does not go with CPSL\n")


def test_fmt_leaves_cpsl_alone(cpsl):
    done = cpsl.run("fmt", "late.cpsl")
    assert done.exit_code == 1
    assert "only the Whimbrel language has a standard form" in done.stderr
    assert cpsl.read("late.cpsl") == LATE_CPSL


def test_read_takes_cpsl_files(cpsl):
    assert wb.read("late.cpsl").text == LATE_WBL
    with pytest.raises(QueryError, match="'functions' does not go with CPSL"):
        wb.read("late.cpsl", functions=[wb.function(lambda value: value, name="twice")])
    cpsl.write("late.txt", LATE_CPSL)
    with pytest.raises(DataError, match=r"ends in .wbl \(the Whimbrel language\), .cpsl \(CPSL\)"):
        wb.read("late.txt")
