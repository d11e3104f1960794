"""The examples are the queries of the tutorial, and find what it says."""

from __future__ import annotations

import re

import pytest

import whimbrel as wb

FOUND = {
    "overdue.wbl": [("Overdue", "T1"), ("Overdue", "T3")],
    "trips.wbl": [("Trip", "T2"), ("Trip", "T1")],
    "hourly.wbl": [("Hourly", None)],
    "at_last.wbl": [("AtLast", "T1")],
}


@pytest.mark.parametrize("name", FOUND)
def test_an_example_finds_what_the_tutorial_says(root, name):
    found = wb.detect(wb.read(root / "examples" / name), root / "examples" / "trips.csv")
    assert [(row["type"], row.get("truck")) for row in found.to_pylist()] == FOUND[name]


def test_every_example_is_tested(root):
    assert {path.name for path in (root / "examples").glob("*.wbl")} == FOUND.keys()


@pytest.mark.parametrize("name", [*FOUND, "trips.csv"])
def test_the_tutorial_shows_the_examples_as_they_are(root, name):
    page = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown = re.findall(r'"""\\?\n(.*?)"""', page, re.DOTALL)
    assert (root / "examples" / name).read_text(encoding="utf-8") in shown
