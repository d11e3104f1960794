"""What holds for every tree and for every text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.lang import trees
from tests.lang.describe import graph_text
from tests.lang.golden_files import read_cases
from tests.lang.test_golden import FILES, FUNCTIONS

from whimbrel.errors import WhimbrelError
from whimbrel.graph.operators import Graph
from whimbrel.lang.wbl import compile_text, format_text, format_tree, parse
from whimbrel.lang.wbl import tree as t

QUERIES = [case.given for file in FILES for case in read_cases(file)]
# More than the default, because these are quick; the profile for soaking may ask for more still.
PLENTY = settings(max_examples=max(60, settings.default.max_examples))
WORDS = sorted(set(re.findall(r"\w+|[^\w\s]+|\s+", "\n".join(QUERIES))))


@PLENTY
@given(trees.files)
def test_a_printed_tree_parses_to_itself(tree: t.WblFile):
    text = format_tree(tree)
    assert parse(text) == tree
    assert format_text(text) == text


@given(trees.expressions)
def test_a_printed_expression_parses_to_itself(node: t.Expression):
    tree = t.WblFile((t.ParamNode("p", node),))
    assert parse(format_tree(tree)) == tree


@pytest.mark.slow
@PLENTY
@given(trees.files, st.data())
def test_comments_survive_formatting(tree: t.WblFile, data: st.DataObject):
    lines = format_tree(tree).split("\n")
    count = data.draw(st.integers(0, 4))
    for number in range(count):
        place = data.draw(st.integers(0, len(lines)))
        if place < len(lines) and data.draw(st.booleans()):
            lines[place] += f" # c{number}"
        else:
            lines.insert(place, f"  # c{number}")
    text = "\n".join(lines)
    laid_out = format_text(text)
    assert parse(laid_out) == tree
    assert format_text(laid_out) == laid_out
    assert all(f"# c{number}" in laid_out for number in range(count))


def compile_anything(text: str) -> Graph | None:
    """Compile a text; only errors made on purpose may come out, and they must be printable."""
    try:
        return compile_text(text).graph
    except WhimbrelError as error:
        return str(error) and None


@PLENTY
@given(st.text(max_size=60))
@example("\x00")
@example("define A detect B(x = '\\")
@example("define A detect B(x > 1e999)")
@example("define A detect B within 99999999999999999 weeks")
@example("define A detect B then C within 0 s")
@example("param x = -1\ndefine A over x events detect B assign n = count(B)")
@example("region R = circle(1e308, 1e308, 1e308 km)\ndefine A detect B(this in R)")
@example("region R = box(1, 1, 1, 1)\ndefine A detect B(this in R)")
@example("region R = 'POLYGON ((0 0, 1e400 0, 1 1, 0 0))'\ndefine A detect B(this in R)")
@example("region R = '\x00'\ndefine A detect B(this in R)")
@example("define A detect B(t > timestamp '9999-12-31T23:59:59-23:59')")
@example("define A detect B(t > timestamp '0001-01-01T00:00:00+23:59')")
def test_no_text_breaks_the_compiler(text: str):
    compile_anything(text)


@PLENTY
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_no_heap_of_words_breaks_the_compiler(text: str):
    compile_anything(text)


@PLENTY
@given(st.sampled_from(QUERIES), st.data())
def test_no_damaged_query_breaks_the_compiler(query: str, data: st.DataObject):
    tokens = re.findall(r"\w+|\s+|[^\w\s]", query)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(tokens)))
        match data.draw(st.sampled_from(["drop", "add", "swap", "double"])):
            case "drop":
                del tokens[place : place + 1]
            case "add":
                tokens.insert(place, data.draw(st.sampled_from(WORDS)))
            case "swap":
                tokens[place : place + 1] = [data.draw(st.sampled_from(WORDS))]
            case "double":
                tokens[place:place] = tokens[place : place + 2]
    compile_anything("".join(tokens))


@pytest.mark.slow
@PLENTY
@given(trees.files)
def test_no_tree_breaks_the_compiler(tree: t.WblFile):
    compile_anything(format_tree(tree))


@pytest.mark.slow
def test_deep_and_long_texts_are_refused_or_compiled():
    heads = {"(": ")", "not (": ")", "-": "", "not ": "", "abs(": ")"}
    for opening, closing in heads.items():
        for depth in (10, 60, 2_000):
            compile_anything(f"define A detect B({opening * depth}x{closing * depth} = 1)")
    for depth in (10, 40, 2_000):
        compile_anything(f"define A detect {'(' * depth}B then C{')' * depth} within 5 s")
        compile_anything("define A detect B(" + "(x = 1) = " * depth + "y)")
        compile_anything(f"define A detect B({' = '.join(['x'] * depth)})")
        compile_anything(f"define A detect {'(' * depth}B{' then C) or D' * depth} within 5 s")
    compile_anything("x" * 600_000)
    compile_anything("define A detect B where " + "x" * 400_000 + " y")


def test_long_conditions_do_not_nest():
    many = " or ".join(f"x = {n}" for n in range(2_000))
    assert compile_anything(f"define A detect B({many})") is not None
    assert (
        compile_anything(f"define A detect {' then '.join(f'B{n}' for n in range(500))} within 5 s")
        is not None
    )
    assert compile_anything(f"define A detect B({' + '.join(['x'] * 50)} > 1)") is not None


def test_formatting_does_not_change_what_a_query_means():
    for case in [*read_cases("graphs.txt"), *read_cases("mobile_graphs.txt")]:
        given = compile_text(case.given, functions=FUNCTIONS)
        again = compile_text(given.text, functions=FUNCTIONS)
        assert graph_text(given.graph) == graph_text(again.graph)
        assert given.graph == again.graph
        assert given.mobile == again.mobile


def test_the_grammar_is_shipped_with_the_package():
    import whimbrel.lang.wbl

    assert (Path(whimbrel.lang.wbl.__file__).parent / "grammar.lark").is_file()
