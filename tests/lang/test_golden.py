"""What queries become, how they are laid out, and how wrong ones are explained."""

from __future__ import annotations

import pytest
from tests.lang.describe import describe
from tests.lang.golden_files import GoldenCase, read_cases

from whimbrel.errors import QueryError
from whimbrel.graph.functions import function
from whimbrel.lang.wbl import compile_text, format_text, parse


@function(returns="string")
def facedetect(video):
    return str(video)


@function(returns="string")
def reachable(updates):
    return f"POINT ({updates[-1]['x']} {updates[-1]['y']})"


@function(returns="float", aggregate=True)
def spread(values):
    return max(values) - min(values)


FUNCTIONS = [facedetect, reachable, spread]
FILES = [f"{prefix}{kind}.txt" for kind in ("errors", "format", "graphs") for prefix in ("", "mobile_")]


def cases(file: str) -> list:
    return [pytest.param(case, id=case.title) for case in read_cases(file)]


@pytest.mark.parametrize("case", [*cases("format.txt"), *cases("mobile_format.txt")])
def test_layout(case: GoldenCase, update_golden: bool):
    actual = format_text(case.given + "\n")
    assert format_text(actual) == actual
    assert parse(actual) == parse(case.given)
    case.check(actual, update=update_golden)


@pytest.mark.parametrize("case", [*cases("graphs.txt"), *cases("mobile_graphs.txt")])
def test_lowering(case: GoldenCase, update_golden: bool):
    query = compile_text(case.given, functions=FUNCTIONS)
    case.check(describe(query), update=update_golden)


@pytest.mark.parametrize("case", [*cases("errors.txt"), *cases("mobile_errors.txt")])
def test_errors(case: GoldenCase, update_golden: bool):
    with pytest.raises(QueryError) as caught:
        compile_text(case.given)
    assert caught.value.at is not None, "an error without a place"
    assert caught.value.hint or "twice" in caught.value.message or "already" in caught.value.message
    case.check(str(caught.value), update=update_golden)


@pytest.mark.parametrize("file", FILES)
def test_golden_files_have_no_case_left_empty(file: str):
    assert all(case.expected for case in read_cases(file))
