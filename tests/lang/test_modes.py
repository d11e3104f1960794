"""The six modes of motion, of a region and of two movers: each phrase of the page, and the CPSL beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import whimbrel as wb

PAGE = (Path(__file__).parents[2] / "docs" / "motion.md").read_text()
DEPOT = "region Depot = box(0, 0, 10, 10) "

# A passes a square of 10 m, from 100 m before it to 110 m behind it. B is that square, and stays where it is.
#   second:                 0     1  2  3   4    5    6
WAY = dict(enumerate((-100, -30, 5, 6, 40, 100, 120)))
#   metres to the border: 100    30  in in 30   90  110
#   metres to the middle: 105    35  0  1  35   95  115
SQUARE = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
EVENTS = [
    event
    for second, x in WAY.items()
    for event in (
        {"type": "A", "time": second, "id": f"a{second}", "source": "A", "geometry": f"POINT ({x} 5)"},
        {"type": "B", "time": second, "id": f"b{second}", "source": "B", "geometry": SQUARE},
    )
]

REGION = {
    # mode: what the phrase finds, what the subscription finds
    "leave": (["a4 a5"], ["a3 a5"]),
    "hit": (["a0 a1"], ["a0 a1", "a0 a2"]),
    "reach": (["a1 a2"], ["a0 a2"]),
    "external": (["a5 a6"], ["a5 a6"]),
    "internal": (["a2 a3"], ["a2 a3"]),
    "cross": (["a3 a4"], ["a0 a2 a5", "a0 a2 a6", "a0 a3 a5", "a0 a3 a6"]),
}
MOVERS = {
    # A is seen first, and so compared with where B was a second ago. SPL holds up to 1 m.
    "leave": (["b4 a5"], ["a3 b3 a5 b5", "a4 b4 a5 b5", "a4 b4 a6 b6"]),
    "hit": (["b0 a1"], ["a0 b0 a1 b1", "a0 b0 a2 b2"]),
    "reach": (["b1 a2"], ["a0 b0 a2 b2"]),
    "external": (["b4 a5"], ["a5 b5 a6 b6"]),
    "internal": (["b1 a2"], ["a2 b2 a3 b3"]),
    "cross": (
        ["b4 a5"],
        ["a0 b0 a2 b2 a5 b5", "a0 b0 a2 b2 a6 b6", "a0 b0 a3 b3 a5 b5", "a0 b0 a3 b3 a6 b6"],
    ),
}


def modes() -> dict[str, list[str]]:
    """The rows of the table: phrase and CPSL of a region, phrase and CPSL of two movers."""
    table = PAGE.partition("## Six modes")[2].partition("\n\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| `(.+)` \| `(.+)` \| `(.+)` \| `(.+)` \|$", table, re.MULTILINE)
    return {mode: [cell.replace("\\|", "|") for cell in cells] for mode, *cells in rows}


def places() -> list[str]:
    """The subscriptions that say how two places lie to each other: of a region, and of two movers."""
    return re.findall(r"^```text\n(near:.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def found(query: wb.Query, kind: str) -> list[str]:
    rows = wb.detect(query, EVENTS).to_pylist()
    return sorted(" ".join(row["events"]) for row in rows if row["type"] == kind)


def test_the_page_names_all_six_modes():
    assert list(modes()) == list(REGION) == list(MOVERS)


@pytest.mark.parametrize("mode", REGION)
def test_a_mode_of_a_mover_and_a_region(mode):
    phrase, subscription, _, _ = modes()[mode]
    expected, combinations = REGION[mode]
    assert found(wb.compile(f"{DEPOT} define D detect {phrase}"), "D") == expected
    assert found(wb.cpsl(f"{places()[0]}D: {subscription}", horizon="1 min"), "D") == combinations


@pytest.mark.parametrize("mode", MOVERS)
def test_a_mode_of_two_movers(mode):
    _, _, phrase, subscription = modes()[mode]
    expected, combinations = MOVERS[mode]
    assert found(wb.compile(f"define D detect {phrase}"), "D") == expected
    assert found(wb.cpsl(f"{places()[1]}D: {subscription}", horizon="1 min"), "D") == combinations
