"""Every example of the language reference compiles and stands there as the formatter would not mind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whimbrel.graph.expressions import AGGREGATES, RELATIONS
from whimbrel.graph.functions import BUILT_IN
from whimbrel.lang.wbl import compile_text, format_text, parse
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```wbl\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split("\n")[0])
def test_examples_compile(text: str):
    query = compile_text(text)
    assert query.graph.outputs
    assert query.warnings == ()
    assert parse(format_text(text)) == parse(text)


def test_the_page_has_its_examples():
    assert len(EXAMPLES) >= 8


def test_every_function_and_built_in_attribute_is_on_the_page():
    words = set(re.findall(r"\w+", PAGE))
    internal = {"within_region", "lies_in", "is_null"}
    assert (BUILT_IN | AGGREGATES | set(RELATIONS)) - internal - words == set()
    assert set(BUILT_IN_ATTRIBUTES) - words == set()


def test_every_keyword_is_on_the_page():
    from whimbrel.lang.wbl.syntax_errors import keywords

    words = set(re.findall(r"spatio-temporal|[\w<>]+", PAGE))
    missing = {word for options in keywords().values() for word in options if not set(word.split()) <= words}
    assert missing == set()
