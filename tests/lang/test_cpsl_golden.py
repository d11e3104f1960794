"""What CPSL becomes in the Whimbrel language and the other way round, and how wrong texts are explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lang.golden_files import GoldenCase, read_cases

from whimbrel.errors import QueryError
from whimbrel.lang.cpsl import compile_text, from_wbl, parse, print_file, to_wbl
from whimbrel.lang.cpsl.lower import lower
from whimbrel.lang.wbl import parse as parse_wbl


def cases(file: str) -> list:
    return [pytest.param(case, id=case.title) for case in read_cases(file)]


@pytest.mark.parametrize("case", cases("cpsl.txt"))
def test_translation(case: GoldenCase, update_golden: bool):
    tree = parse(case.given)
    assert parse(print_file(tree)) == tree
    actual = to_wbl(case.given)
    assert parse_wbl(actual) == lower(tree).tree
    case.check(actual, update=update_golden)


@pytest.mark.parametrize("case", cases("cpsl_errors.txt"))
def test_errors(case: GoldenCase, update_golden: bool):
    with pytest.raises(QueryError) as caught:
        compile_text(case.given)
    assert caught.value.at is not None, "an error without a place"
    assert caught.value.hint
    case.check(str(caught.value), update=update_golden)


@pytest.mark.parametrize("case", cases("cpsl_back.txt"))
def test_translation_back(case: GoldenCase, update_golden: bool):
    actual = translated_back(case.given)
    if actual.startswith("N: "):
        again = to_wbl(actual)
        assert to_wbl(from_wbl(again)) == again
    else:
        assert actual.startswith(("line 1, col ", "Hot: ")), "an error without a place"
    case.check(actual, update=update_golden)


def translated_back(text: str) -> str:
    try:
        return from_wbl(text)
    except QueryError as error:
        return str(error)


@pytest.mark.parametrize("file", ["cpsl.txt", "cpsl_errors.txt", "cpsl_back.txt"])
def test_golden_files_have_no_case_left_empty(file: str):
    assert all(case.expected for case in read_cases(file))


VALUES = {"T": "0", "t": "5", "l": "9", "R": "((0,0)(1,0)(1,1))", "n": "2", "k": "2", "x": "1", "y": "2"}
PAGE = (Path(__file__).parents[2] / "docs" / "cpsl.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[list[str]]]:
    """Give the code in every cell of the tables below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.replace("\\|", "\0") for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.replace("\0", "|") for cell in line.strip("|").split("|")] for line in lines]
    return [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in cells]


@pytest.mark.parametrize("row", rows("Events"), ids=lambda row: row[0][0])
def test_the_page_says_what_predicates_become(row: list[list[str]]):
    for ours, theirs in zip(*row, strict=True):
        laid_out = to_wbl(f"n: {ours}")
        assert theirs in laid_out or theirs in laid_out.replace(", ", " and ")


@pytest.mark.parametrize("row", rows("Time") + rows("Space"), ids=lambda row: row[0][0])
def test_every_form_on_the_page_is_understood(row: list[list[str]]):
    for form in row[0]:
        text = re.sub(r"\b[TtlRnkxy]\b", lambda found: VALUES[found[0]], form)
        assert to_wbl(f"line: {text}").startswith("define line")
