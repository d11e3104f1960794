"""What each rewrite makes of a query: the operators that are new or different, and those that are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lang.describe import describe_operator
from tests.lang.golden_files import GoldenCase, read_cases

from whimbrel.errors import UnknownNameError
from whimbrel.graph.expressions import Attribute, Binary, Literal
from whimbrel.graph.operators import Graph, JoinPattern
from whimbrel.graph.passes import PASSES, RewriteStep, rewrite, steps
from whimbrel.graph.passes.find_joins import find_joins
from whimbrel.graph.passes.push_down_filters import push_down_filters
from whimbrel.graph.passes.share_prefixes import share_prefixes
from whimbrel.graph.policies import Context
from whimbrel.lang.wbl import compile_text
from whimbrel.model.schema import Type

FOLDER = Path(__file__).parent / "golden"
BY_NAME = {apply.__name__: apply for apply in (*PASSES, share_prefixes)}
CASES = [
    pytest.param(name, case, id=f"{name}: {case.title}")
    for name in BY_NAME
    for case in read_cases(str(FOLDER / f"{name}.txt"))
]


def loose(text: str) -> Graph:
    """Compile a query. `context chronicle` leaves all conditions in the pattern; its context is then each."""
    return compile_text(text).in_context(Context.EACH).graph


def shown(step: RewriteStep) -> str:
    different = {*step.added, *step.changed}
    operators = tuple(each for each in step.after.operators if each.name in different)
    lines = [line for each in operators for line in describe_operator(each)]
    return "\n".join([*lines, *([f"gone: {', '.join(step.dropped)}"] if step.dropped else [])])


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_a_rewrite_changes(name: str, case: GoldenCase, update_golden: bool):
    graph = compile_text(case.given).graph if name == "share_prefixes" else loose(case.given)
    made = steps(rewrite(graph, [find_joins]) if name == "share_prefixes" else graph, [BY_NAME[name]])
    case.check("\n".join(map(shown, made)) or "(nothing)", update=update_golden)


def test_rewrites_can_be_left_out():
    graph = loose("define X detect A as a then B as b within 5 s where a.k = b.k")
    assert rewrite(graph, without=[apply.__name__ for apply in PASSES]) == graph
    assert [step.name for step in steps(graph, without=["order_conditions"])] == ["find_joins"]


def test_an_unknown_rewrite_cannot_be_left_out():
    with pytest.raises(UnknownNameError, match="did you mean 'find_joins'"):
        rewrite(loose("define X detect A"), without=["find_join"])


def test_a_condition_on_an_absent_part_alone_becomes_its_filter():
    graph = loose("define X detect A as a then not C as n then B as b within 5 s where n.k = a.k")
    match = graph["X.match"]
    assert isinstance(match, JoinPattern)
    own = Binary(">", Attribute("n", "v"), Literal(5, Type.INT))
    (absent,) = match.absent
    loosened = replace(match, absent=(replace(absent, conditions=(*absent.conditions, own)),))
    graph = replace(graph, operators=tuple(loosened if o is match else o for o in graph.operators))
    rewritten = rewrite(graph, [push_down_filters])["X.match"]
    assert isinstance(rewritten, JoinPattern)
    assert rewritten.absent == (replace(absent, input="C[v > 5]"),)
