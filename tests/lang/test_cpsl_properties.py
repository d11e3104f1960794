"""What holds for every tree and every text of CPSL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lang import cpsl_trees as trees
from tests.lang.golden_files import GoldenCase, read_cases

from whimbrel.errors import QueryError
from whimbrel.lang.cpsl import compile_text, from_wbl, parse, print_file, to_wbl
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.lower import lower
from whimbrel.lang.cpsl.parse import _plans
from whimbrel.lang.wbl import format_tree
from whimbrel.lang.wbl import parse as parse_wbl

TEXTS = [case.given for file in ("cpsl.txt", "cpsl_errors.txt") for case in read_cases(file)]
WORDS = sorted(set(re.findall(r"\w+|[^\w\s]|\s+", "\n".join(TEXTS))))


def refusal(call: Callable[[], object]) -> QueryError | None:
    """Give the error that a call raises on purpose; nothing else may come out."""
    try:
        call()
    except QueryError as error:
        return error
    return None


@given(trees.files)
def test_a_printed_tree_parses_to_itself_and_becomes_a_query_or_an_error_with_a_hint(tree: c.CpslFile):
    text = print_file(tree)
    parsed = parse(text)
    assert parsed == tree
    assert print_file(parsed) == text
    error = refusal(lambda: lower(parsed))
    if error is None:
        lowered = lower(parsed).tree
        assert parse_wbl(format_tree(lowered)) == lowered
    else:
        assert error.at is not None
        assert error.hint


@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join))
def test_any_text_is_compiled_or_refused(text: str):
    for given_text in (text, f"n: {text}"):
        error = refusal(lambda: compile_text(given_text, horizon="1 h"))  # noqa: B023 (called at once)
        assert error is None or str(error)


@given(st.sampled_from(TEXTS), st.integers(0, 200), st.sampled_from(WORDS))
def test_a_small_slip_is_compiled_or_refused(text: str, place: int, word: str):
    at = min(place, len(text))
    for changed in (text[:at] + word + text[at:], text[:at] + text[at + 1 :]):
        error = refusal(lambda: compile_text(changed, horizon="1 h"))  # noqa: B023 (called at once)
        assert error is None or str(error)


@pytest.mark.parametrize("case", read_cases("cpsl.txt"), ids=lambda case: case.title)
def test_what_can_be_translated_back_says_the_same(case: GoldenCase):
    query = to_wbl(case.given)
    error = refusal(lambda: from_wbl(query))
    if error is None:
        once = to_wbl(from_wbl(query))
        assert to_wbl(from_wbl(once)) == once
    else:
        assert "has no CPSL form" in error.message


def places(value: object) -> Iterator[object]:
    """Give the nodes of a tree, each with the place where it stands."""
    if is_dataclass(value):
        yield type(value).__name__, getattr(value, "at", None)
        for item in fields(value):
            yield from places(getattr(value, item.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from places(each)


def outcome(text: str) -> object:
    """Give the tree of a text and all its places, or what is said against it."""
    try:
        return parse(text), list(places(parse(text)))
    except QueryError as error:
        return str(error)


@given(st.sampled_from(TEXTS), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_text_is_parsed_alike_whether_its_tokens_were_met_before_or_not(text, length, rng):
    other = re.sub(r"[0-9]+", lambda _: str(rng.randrange(1, 10**length)), text)
    _plans().clear()
    first = outcome(text)
    planned = outcome(other)  # where the tokens are of the same types, by the plan of the first
    _plans().clear()
    assert outcome(other) == planned
    assert outcome(text) == first
