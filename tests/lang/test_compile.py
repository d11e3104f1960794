"""What `compile_text` takes and gives."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from tests.lang.describe import describe

from whimbrel.errors import QueryError, QuerySyntaxError, QueryTypeError, UnboundedError, UnknownNameError
from whimbrel.graph.expressions import Call, PartRef
from whimbrel.graph.functions import function
from whimbrel.graph.operators import JoinPattern
from whimbrel.lang.wbl import compile_text, parse

TEMPERATURE = "define M(avgTemp : FLOAT) from Temp() range x secs where avgTemp = avg(Temp.val)"


def test_the_text_of_a_query_is_formatted():
    query = compile_text("define  A detect B( x>3 ) # why")
    assert query.text == str(query) == "define A\n  detect B(x > 3)  # why\n"


def test_params_supply_and_override():
    assert "over 1 min" in describe(compile_text(TEMPERATURE, params={"x": 60}))
    assert "over 5 s" in describe(compile_text("param x = 60\n" + TEMPERATURE, params={"x": 5}))
    assert "over 5 s" in describe(compile_text("param x = 60\n" + TEMPERATURE, params={"x": "5"}))
    gap = "param gap = 1 min\ndefine A detect B then C within gap"
    for value in ("5 s", timedelta(seconds=5)):
        assert "within 5 s" in describe(compile_text(gap, params={"gap": value}))


def test_params_keep_their_type():
    with pytest.raises(QueryTypeError, match="'x' is a duration; 'soon' does not fit"):
        compile_text("param x = 5 s\ndefine A detect B then C within x", params={"x": "soon"})
    with pytest.raises(QueryTypeError, match="'x' is a string; 5 does not fit"):
        compile_text("param x = 'bus'\ndefine A detect B(k = x)", params={"x": 5})
    with pytest.raises(QueryTypeError, match="write a unit behind it"):
        compile_text("define A detect B then C within x", params={"x": 5})


def test_a_param_that_nothing_asks_for_is_a_warning():
    assert compile_text("define A detect B", params={"y": 5}).warnings == (
        "the query has no parameter 'y', so its value is not used",
    )


def test_a_horizon_bounds_what_the_query_leaves_open():
    text = "define A detect B then C"
    with pytest.raises(UnboundedError, match="add 'within"):
        compile_text(text)
    for horizon in ("1h", timedelta(hours=1), 3_600_000_000):
        assert "within 1 h" in describe(compile_text(text, horizon=horizon))
    assert "within 5 s" in describe(compile_text(text + " within 5 s", horizon="1h"))
    with pytest.raises(QueryError, match="horizon"):
        compile_text(text, horizon="soon")


def test_outputs_are_what_nothing_else_uses_or_what_is_asked_for():
    text = "define A detect B define C detect A define D detect A"
    assert compile_text(text).graph.outputs == ("C", "D")
    assert compile_text(text, emit="all").graph.outputs == ("A", "C", "D")
    assert compile_text(text, emit=["A"]).graph.outputs == ("A",)
    assert compile_text(text, emit="C").types == ("C",)
    with pytest.raises(UnknownNameError, match="no definition is named 'E'"):
        compile_text(text, emit=["E"])


def test_only_subscriptions_are_reported_where_there_are_any():
    query = compile_text("define A detect B Subscription seq 4 from Ann to Gate detect A")
    assert query.graph.outputs == ("Ann-4",)
    assert [(s.type, s.sequence, s.subscriber, s.actor) for s in query.subscriptions] == [
        ("Ann-4", 4, "Ann", "Gate")
    ]


def test_one_letter_is_forgiven_in_subscriptions_only():
    body = "detect People as People and Temp within 5 s assign t = Prople.timestamp"
    query = compile_text(f"Subscription seq 1 from U to A {body}")
    assert query.warnings == ("line 1, col 87: no part is named 'Prople'; read as 'People'",)
    with pytest.raises(UnknownNameError, match="did you mean 'People'"):
        compile_text(f"define A {body}")


def test_a_function_of_ones_own_may_take_a_whole_part():
    @function(returns="string")
    def face_detect(video):
        return str(video)

    query = compile_text("define A detect Video assign face = Face_Detect(Video)", functions=[face_detect])
    assert query.graph["A"].cases[0].assign[0].value == Call("face_detect", (PartRef("Video"),))
    assert query.functions == {"face_detect": face_detect}


def test_errors_know_their_file_and_place():
    with pytest.raises(QuerySyntaxError) as caught:
        compile_text("define A\n  detct B", file="fleet.wbl")
    error = caught.value
    assert str(error).startswith("fleet.wbl: line 2, col 3: ")
    assert (error.at.line, error.at.column, error.at.end_column) == (2, 3, 8)


def test_schemas_are_kept():
    query = compile_text("event P(v: float, on: BOOLEAN)\ndefine A detect P")
    assert {name: kind.value for name, kind in query.schemas["P"].attributes.items()} == {
        "v": "float",
        "on": "bool",
    }


def test_expressions_know_where_they_stand():
    query = compile_text("define A detect B as b then C as c within 5 s\nwhere b.x > c.x")
    match = next(operator for operator in query.graph.operators if isinstance(operator, JoinPattern))
    assert str(match.conditions[0].at) == "line 2, col 7"


def test_a_declaration_may_follow_an_amount_that_is_a_name():
    query = compile_text("param a = 5 s\ndefine X detect A then B within a\n\nevent A(v: int)\n")
    assert query.schemas["A"].attributes


def test_an_empty_text_is_a_query_without_definitions():
    assert parse("").statements == ()
    assert compile_text("# nothing yet\n").graph.operators == ()


@pytest.mark.parametrize("head", ["", "coordinates plane\n", "coordinates lonlat\n"])
def test_a_circle_stays_one(head: str):
    query = compile_text(f"{head}region R = circle(10, 60, 1 km)\ndefine A detect B(this in R)")
    assert query.graph.operators[1].condition.arguments[1].value == "CIRCLE (10.0 60.0 1000.0)"


@pytest.mark.parametrize("module", ["whimbrel.lang", "whimbrel.lang.wbl", "whimbrel.lang.builder"])
def test_importing_a_language_loads_nothing_heavy(module: str):
    heavy = ("numba", "numpy", "pyarrow", "shapely")
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_languages_load_on_first_use():
    code = (
        "import sys, whimbrel.lang as lang; before = 'lark' in sys.modules; lang.compile_text; print(before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("amount", ["5\ns", "5 \n  seconds"])
def test_a_line_may_end_between_a_number_and_its_unit(amount):
    text = "define A detect B then C within {}"
    assert compile_text(text.format(amount)).graph == compile_text(text.format("5 s")).graph
