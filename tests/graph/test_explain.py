"""Explanations of queries, in all formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from tests.reference.strategies import graphs

from whimbrel.errors import QueryError
from whimbrel.graph.explain import FORMATS, explain, summary
from whimbrel.graph.operators import Custom, Derive, Graph, JoinPattern, PatternPart, Source
from whimbrel.graph.policies import (
    Consumption,
    ProcessWhen,
    RestrictionWindow,
    SelectionPolicy,
    SelectionWindow,
    Shift,
)
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import END_OF_TIME, HOUR

GOLDEN = Path(__file__).parent / "golden"
QUERIES = dict(
    re.findall(
        r"^# title: (.*)\n((?:.|\n)*?)^---$", (GOLDEN / "explain.txt").read_text("utf-8"), re.MULTILINE
    )
)
PAIR = "define Pair detect A as a then B as b within 1 h"


def file_of(title: str, form: str) -> Path:
    ending = {"text": "txt", "mermaid": "mmd", "json": "json"}[form]
    return GOLDEN / f"{re.sub('[^a-z]+', '-', title)}.{ending}"


def described(text: str, **rates: float) -> dict:
    return json.loads(explain(compile_text(text), "json", rates=rates))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("title", QUERIES)
def test_explanations(title: str, form: str, update_golden: bool):
    file = file_of(title, form)
    actual = explain(compile_text(QUERIES[title]), form) + "\n"
    if update_golden:
        file.write_text(actual, encoding="utf-8")
    assert actual == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("title", QUERIES)
def test_mermaid_has_a_node_for_each_operator_and_quotes_what_it_would_read(title: str):
    graph = compile_text(QUERIES[title]).graph
    first, *lines = explain(graph, "mermaid").splitlines()
    assert first == "flowchart LR"
    node = re.compile(r'  n\d+(\(\[|\{\{|\[\[|\[)"[^"`\\]+"(\]\)|\}\}|\]\]|\])')
    edge = re.compile(r"  n\d+ (-->|-\. not \.->|-\. until \.->) n\d+")
    style = re.compile(r"  style n\d+ stroke-width:3px")
    assert [line for line in lines if not any(r.fullmatch(line) for r in (node, edge, style))] == []
    assert sum(bool(node.fullmatch(line)) for line in lines) == len(graph.operators)
    assert not any(
        re.search(r"<(?!br/>)|(?<!br/)(?<!--)(?<!\.-)>", line) for line in lines if node.match(line)
    )


def test_json_has_what_planners_need():
    found = described(PAIR + " group by vehicle")
    match = next(each for each in found["operators"] if each["kind"] == "match")
    assert (match["reach_us"], match["inputs"]) == (HOUR, ["A", "B"])
    assert [key["name"] for key in match["partitioning"]] == ["vehicle"]
    assert match["selection"]["restriction"]["length_us"] == HOUR
    assert match["selection"]["dependencies"][0]["relation"] == "<"
    assert {"from": "A", "to": "Pair.match", "role": "part"} in found["edges"]
    assert found["outputs"] == [
        {"stream": "Pair", "type": "Pair", "attributes": ["vehicle"], "reach_us": HOUR, "sources": ["A", "B"]}
    ]


def test_state_is_time_times_rate():
    found = described("define Late detect Leave then not Arrive for 1 h", Leave=0.5, Arrive=20)
    state = next(each["state"] for each in found["operators"] if each["kind"] == "match")
    assert state == {"events": 73_800.0, "formula": "1 h x 20.5 events/s"}
    assert found["state_events"] == 73_800.0


def test_the_rate_of_a_definition_can_be_given():
    text = "define Fast detect P(v > 50)\ndefine Two detect Fast as a then Fast as b within 1 h"
    assert described(text)["state_events"] == 3600
    assert described(text, Fast=0.01)["state_events"] == 36


def test_a_window_that_counts_remembers_as_many_for_each_group():
    text = explain(compile_text("define R over 100 events within 1 h detect T assign n = count(T)"))
    assert "about 100 events (the last 100 of each group)" in text


def test_rates_are_of_known_types_and_not_negative():
    with pytest.raises(QueryError, match="did you mean 'Leave'"):
        described("define L detect Leave", Leaf=1)
    with pytest.raises(QueryError, match="no rate of 'Leave'"):
        described("define L detect Leave", Leave=-1)


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(QueryError, match="text, mermaid, json"):
        explain(compile_text(PAIR), "dot")


def test_a_graph_that_remembers_for_ever_is_explained_too():
    parts = (PatternPart("A", "a"), PatternPart("A", "b"))
    graph = Graph((Source("A", "A"), JoinPattern("m", parts, END_OF_TIME)), ("m",))
    assert "reaches     back without bound" in explain(graph)
    assert json.loads(explain(graph, "json"))["reach_us"] is None
    assert summary(graph) == "detects m (from A), reaches back without bound"


def test_one_output_without_bound_does_not_taint_another():
    parts = (PatternPart("A", "a"), PatternPart("A", "b"))
    graph = Graph(
        (Source("A", "A"), JoinPattern("m", parts, END_OF_TIME), JoinPattern("n", parts, HOUR)), ("m", "n")
    )
    assert [each["reach_us"] for each in json.loads(explain(graph, "json"))["outputs"]] == [None, HOUR]


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("event A(v: int) define S detect A(v > 1)", ["v"]),
        ("define S detect A(v > 1)", None),
        ("event A(v: int) define S detect A then not B for 1 h group by source", ["v"]),
        ("define S detect A then B within 1 h group by room", ["room"]),
        ("define S detect A then B within 1 h", []),
        ("define S detect A then B within 1 h assign n = A.v, m = 1", ["n", "m"]),
        ("define S over 1 h detect A assign n = count(A)", ["n"]),
        ("define S detect A{2} as a within 1 h", []),
        ("event A(v: int) define S detect A define T detect S", ["v"]),
    ],
)  # fmt: skip
def test_the_attributes_of_an_output_are_known(text, attributes):
    assert described(text)["outputs"][0]["attributes"] == attributes


def test_several_outputs_are_summed_up_in_one_line():
    query = compile_text("define A detect P(v > 1)\ndefine B detect P then Q within 5 s")
    assert summary(query) == "detects A (from P), B (from P, Q), reaches back 5 s"


@given(graphs())
def test_every_graph_can_be_explained(graph):
    text, chart, document = (explain(graph, form) for form in FORMATS)
    assert all(
        each.name in text
        for each in graph.operators
        if isinstance(each, Derive) and each.name in graph.outputs
    )
    assert chart.startswith("flowchart LR\n")
    assert [each["name"] for each in json.loads(document)["operators"]] == [
        each.name for each in graph.operators
    ]


def test_a_long_chain_of_definitions_is_explained():
    text = "define D0 detect A\n" + "".join(f"define D{n} detect D{n - 1}(v > {n})\n" for n in range(1, 200))
    graph = compile_text(text).graph
    assert explain(graph).endswith("source A (any attributes)")
    assert len(json.loads(explain(graph, "json"))["operators"]) == len(graph.operators)


def test_a_custom_operator_shows_its_function_and_its_own_policy():
    window = SelectionWindow("recent", "A", "counting", 3, Shift("newest"))
    policy = SelectionPolicy((window,), RestrictionWindow(HOUR), (), (ProcessWhen("recent", "=", 3),))
    custom = Custom("c", ("A",), "Mean", policy, Consumption("first", 2), parameters={"weight": 2})
    graph = Graph((Source("A", "A"), custom), ("c",))
    assert explain(graph).splitlines()[3:-1] == [
        "custom c",
        "│ window      recent: 3 events of A (counting), shifts to the newest event",
        "│ processed   when |recent| = 3",
        "│ restricted  to 1 h, shifts by 1 event",
        "│ calls       Mean(weight=2)",
        "│ consumes    the first 2 of the selected events",
        "│ reaches     back 2 h",
        "│ remembers   about 3,600 events (1 h x 1 event/s)",
    ]
    _, found = json.loads(explain(graph, "json"))["operators"]
    assert (found["function"], found["consumption"]) == ("Mean", {"kind": "first", "count": 2, "parts": []})
    assert "consumes the first 2 of the selected events" in explain(graph, "mermaid")


def test_attributes_that_all_parts_share_are_told():
    parts = (PatternPart("A", "a"), PatternPart("A", "b"))
    graph = Graph((Source("A", "A"), JoinPattern("m", parts, HOUR, joins=("vehicle",))), ("m",))
    assert "│ joined on   vehicle" in explain(graph)
    assert json.loads(explain(graph, "json"))["operators"][1]["joins"] == ["vehicle"]


# -- before and after the rewrites ------------------------------------------------------------------------

LONG = """
define Far detect A(v > 3 * 60) as a then B as b then C as c within 5 s where a.k = b.k and b.k = c.k
define Near detect A(v > 3 * 60) as a then B as b then D as d within 5 s where a.k = b.k and b.k = d.k
"""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("stage", ["after", "both"])
def test_explanations_of_the_rewrites(stage: str, form: str, update_golden: bool):
    ending = {"text": "txt", "mermaid": "mmd", "json": "json"}[form]
    file = GOLDEN / f"rewrites-{stage}.{ending}"
    actual = explain(compile_text(LONG), form, stage=stage) + "\n"
    if update_golden:
        file.write_text(actual, encoding="utf-8")
    assert actual == file.read_text(encoding="utf-8")


def test_a_query_that_nothing_can_be_made_of_is_the_same_after_the_rewrites():
    query = compile_text(PAIR)
    assert explain(query, stage="after") == f"rewrites: none\n\n{explain(query)}"
    assert json.loads(explain(query, "json", stage="after")) == {
        **json.loads(explain(query, "json")),
        "rewrites": [],
    }


def test_what_is_worth_sharing_depends_on_the_rates():
    frequent = explain(compile_text(LONG), stage="after", rates={"A": 5000, "B": 5000})
    assert "share_prefixes" in explain(compile_text(LONG), stage="after")
    assert "share_prefixes" not in frequent


def test_rates_of_what_a_rewrite_drops_do_not_matter():
    text = "define X detect A(v > 5 and v < 3) as a then B as b within 5 s"
    assert "drops" in explain(compile_text(text), stage="after", rates={"B": 5})


def test_an_unknown_stage_is_refused_with_the_known_ones():
    with pytest.raises(QueryError, match="before, after, both"):
        explain(compile_text(PAIR), stage="later")


@given(graphs())
def test_every_graph_can_be_explained_after_the_rewrites(graph):
    for form in FORMATS:
        assert explain(graph, form, stage="both")
