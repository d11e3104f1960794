"""Test results as JUnit XML."""

from __future__ import annotations

from itertools import count
from xml.etree import ElementTree as ET

from whimbrel.testing import write_junit
from whimbrel.testing.junit import junit

TEXT = """\
test one <& "quoted"
  +0s Leave truck=T1
  expect Late
test two
  +0s Leave truck='a\x07b'
  expect nothing
test three
  events missing.csv
  expect nothing
"""


def test_a_suite_for_each_file_and_a_case_for_each_test(queries):
    ticks = count()
    results = queries.run(TEXT, clock=lambda: float(next(ticks)))
    written = queries.folder / "results.xml"
    write_junit(results, written)
    root = ET.fromstring(written.read_text(encoding="utf-8"))  # noqa: S314 - our own
    assert (root.tag, root.attrib["tests"], root.attrib["time"]) == ("testsuites", "3", "3.000")
    (suite,) = root
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "1", "skipped": "0",
    }  # fmt: skip
    cases = list(suite)
    assert [case.attrib["name"] for case in cases] == ['one <& "quoted"', "two", "three"]
    assert [case.attrib["line"] for case in cases] == ["1", "4", "7"]
    assert [case.attrib["time"] for case in cases] == ["1.000"] * 3
    assert cases[0].attrib["classname"].endswith("late")
    assert [child.tag for case in cases for child in case] == ["failure", "error"]


def test_a_failure_has_the_report_as_its_text(queries):
    root = ET.fromstring(junit(queries.run(TEXT)))  # noqa: S314 - our own
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "1 unexpected"
    # XML cannot hold the bell, so another character stands for it.
    assert failure.text == "unexpected  Late truck='a�b' from +0s to +1h events L5"
