"""`whimbrel test`."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

GOOD = """\
test a truck that does not arrive is late
  +0s     Leave   source truck-1
  +10min  Leave   source truck-2
  +50min  Arrive  source truck-2
  expect Late at +1h
"""
BAD = """\
test nobody is late
  +0s  Leave source truck-1 as e1
  expect nothing
"""


@pytest.fixture
def tested(folder):
    folder.write("late.wbt", GOOD)
    return folder


def test_a_test_that_passes_is_a_dot(tested):
    done = tested.run("test", "late.wbt")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "late.wbt .\n\n1 passed\n"


def test_a_test_that_fails_is_told_in_full_and_makes_status_1(tested):
    tested.write("late.wbt", GOOD + BAD)
    done = tested.run("test", "late.wbt")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "late.wbt .F",
        "",
        "____________________ late.wbt: line 6: nobody is late ____________________".center(79, "_"),
        "unexpected  Late from +0s to +1h events e1",
        "",
        "FAILED late.wbt: nobody is late - 1 unexpected",
        "1 failed, 1 passed",
    ]


def test_quiet_says_only_what_matters(tested):
    done = tested.run("test", "late.wbt", "--quiet")
    assert done.stdout == "\n1 passed\n"


def test_folders_are_searched_and_tests_chosen(tested):
    (tested.path / "deep").mkdir()
    tested.write("deep/other.wbt", f"query ../late.wbl\n{BAD}")
    done = tested.run("test", ".")
    assert [line for line in done.stdout.splitlines() if line.endswith((" F", " ."))] == [
        "deep/other.wbt F",
        "late.wbt .",
    ]
    assert tested.run("test", ".", "-k", "arrive").stdout == "late.wbt .\n\n1 passed\n"


def test_a_bad_file_is_an_error_with_line_and_caret(tested):
    tested.write("bad.wbt", "test x\n  +5m Leave\n")
    done = tested.run("test", ".")
    assert done.exit_code == 1
    assert (
        "bad.wbt: line 2, col 3: '+5m' is not a time\n    +5m Leave\n    ^^^\nhint: 'm' stands" in done.stdout
    )
    assert done.stdout.splitlines()[-1] == "1 passed, 1 error"


def test_results_are_written_for_ci(tested):
    tested.write("late.wbt", GOOD + BAD)
    assert tested.run("test", "late.wbt", "--junit", "results.xml").exit_code == 1
    root = ET.fromstring(tested.read("results.xml"))  # noqa: S314 - our own
    assert (root.attrib["tests"], root.attrib["failures"]) == ("2", "1")


def test_coverage_is_told_and_can_be_asked_for(tested):
    done = tested.run("test", "late.wbt", "--coverage")
    assert "coverage: 6 of 6 branches, 100 %" in done.stdout
    assert tested.run("test", "late.wbt", "--fail-under", "100").exit_code == 0
    tested.write("late.wbt", BAD.replace("expect nothing", "expect Late"))
    done = tested.run("test", "late.wbt", "--fail-under", "80")
    assert done.exit_code == 1
    assert "  line 2    Late: `not Arrive` prevented something" in done.stdout
    assert done.stderr == "coverage is 66.7 %, less than the 80 % asked for\n"
    assert tested.run("test", "late.wbt", "--fail-under", "60").exit_code == 0


def test_warnings_of_queries_go_to_standard_error(tested):
    tested.write("late.wbl", "event Leave(load: int)\ndefine Late detect Leeve\n")
    tested.write("late.wbt", "test t\nexpect nothing\n")
    done = tested.run("test", "late.wbt")
    assert done.exit_code == 0
    assert done.stderr.startswith("late.wbt: t: warning: line 2, col 20: no event is named 'Leeve'")
    assert tested.run("test", "late.wbt", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "Missing argument 'PATH...'"),
        (("lata.wbt",), "there is no test file lata.wbt; did you mean 'late.wbt'?"),
        (("late.wbl",), "late.wbl: a test file ends in .wbt"),
        (("late.wbt", "-k", "ship"), "no test is named like 'ship'"),
        (("late.wbt", "--fail-under", "120"), "120.0 is not in the range"),
        (("late.wbt", "--junit", "none/results.xml"), "there is no folder none"),
        (("late.wbt", "--engine", "flink"), "'flink' is not one of"),
    ],
)
def test_wrong_usage_makes_status_2(tested, args, message):
    done = tested.run("test", *args)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.slow
def test_tests_run_on_spark(tested, spark, monkeypatch):
    from contextlib import nullcontext

    monkeypatch.setattr(
        "whimbrel.cli.test.spark_session", lambda log: nullcontext(spark)
    )  # that of all tests
    done = tested.run("test", "late.wbt", "--engine", "spark")
    assert (done.exit_code, done.stdout) == (0, "late.wbt .\n\n1 passed\n")
