"""Mobile queries: in the language and in Python, with tables, refusals and what rewrites keep."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import shapely
from hypothesis import given
from tests.lang import trees

import whimbrel as wb
from whimbrel.errors import DataError, QueryError, WhimbrelError
from whimbrel.graph.fragments import cut
from whimbrel.graph.operators import JoinPattern
from whimbrel.lang.cpsl.compile import from_wbl
from whimbrel.lang.wbl import compile_text, format_text, format_tree, parse
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.syntax_errors import keywords
from whimbrel.model.time import MINUTE, SECOND
from whimbrel.plan.demand import graph_to_plan

PLAIN = "define A detect X as a then Y as b within 5 s assign v = a.v\n"
TYPED = "event Car(plate: int, kind: string)\n"


def around(clauses: str, **settings) -> wb.MobileQuery:
    """Compile a file with one mobile query."""
    (made,) = compile_text(f"{PLAIN}around Car {clauses} report A", **settings).mobile
    return made


# Writing and reading -------------------------------------------------------------------------------


@given(trees.mobile)
def test_a_printed_mobile_query_parses_to_itself(tree: t.MobileNode):
    text = format_tree(t.WblFile((tree,)))
    assert parse(text).statements == (tree,)
    assert format_text(text) == text


@given(trees.mobile)
def test_no_mobile_query_breaks_the_compiler(tree: t.MobileNode):
    with suppress(WhimbrelError):
        compile_text(PLAIN + format_tree(t.WblFile((tree,))))


READ_BEFORE_A_NAME = {"each", "first", "last", "outer", "not"}
OF_THE_LANGUAGE = {"group", "true", "false", "null"}
WORDS = {part for options in keywords().values() for word in options for part in word.split()}
WORDS = {word for word in WORDS if word.isidentifier()} - READ_BEFORE_A_NAME - OF_THE_LANGUAGE


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_is_still_a_name(word: str):
    text = f"""
        event {word}(speed: float, plate: string)
        define {word}s detect {word}(speed > 1) as {word} group by plate
        define other detect {word}s as {word} assign {word} = {word}.speed
        around {word}(plate = '1') as {word}1 group by plate within 5 m report {word}s, other deliver new
        around {word} as {word} group by plate along {word}.plate, 5 m report other
    """
    query = compile_text(text)
    assert [each.name for each in query.mobile] == [f"{word}1", word]
    assert query.mobile[0].focal.type == word
    assert parse(format_text(text)) == parse(text)


# What it becomes -----------------------------------------------------------------------------------


def test_what_is_left_out_has_the_defaults():
    made = around("within 5 m")
    assert made == wb.MobileQuery(made.detect, wb.FocalObjects("Car"), "5 m", name="Car")
    assert (made.lifetime, made.silent, made.policy) == (0, None, wb.MobilePolicy())


def test_a_file_reports_what_its_mobile_queries_report():
    text = """
        define A detect X assign v = 1
        define B detect Y assign w = 1
        define C detect Z
        around Car within 5 m report B
        around Car as other within 5 m report A, B
    """
    query = compile_text(text)
    assert query.types == query.graph.outputs == ("B", "A")
    assert query.attributes == {"B": ["w"], "A": ["v"]}
    assert [each.detect.types for each in query.mobile] == [("B",), ("A", "B")]
    assert [each.detect.attributes for each in query.mobile] == [{"B": ["w"]}, {"A": ["v"], "B": ["w"]}]


def test_emit_names_definitions_or_mobile_queries():
    text = f"{PLAIN}define B detect Y around Car within 5 m report A around Car as b within 5 m report B"
    assert compile_text(text, emit="all").graph.outputs == ("A", "B")
    assert compile_text(text, emit="all").mobile == ()
    chosen = compile_text(text, emit="b")
    assert ([each.name for each in chosen.mobile], chosen.graph.outputs) == (["b"], ("B",))
    with pytest.raises(QueryError, match="report one or the other"):
        compile_text(text, emit=["b", "A"])
    with pytest.raises(QueryError, match="no definition is named 'c'"):
        compile_text(text, emit="c")


def test_matches_that_ran_out_of_time_are_reported():
    text = (
        "define S detect A as a next B as b within 5 s timing out as Late around Car within 5 m report Late"
    )
    assert compile_text(text).mobile[0].detect.graph.outputs == ("Late",)


def test_subscriptions_are_reported():
    text = "Subscription seq 1 from Ann to Bell detect X around Car within 5 m report Bell"
    text = text.replace("Subscription", "Subscription Bell")
    assert compile_text(text).mobile[0].detect.types == ("Bell",)


def test_conditions_of_what_is_followed_call_functions_and_parameters():
    twice = wb.function(lambda value: value * 2, name="twice")
    text = f"param most = 3 {PLAIN} around Car(twice(v) > most, this.kind = 'bus') as me within 5 m report A"
    (made,) = compile_text(text, functions=[twice]).mobile
    assert made.detect.functions == {"twice": twice}
    assert made.focal.condition is not None


def test_a_function_makes_interests():
    @wb.function(returns="string")
    def reach(updates):
        return shapely.Point(updates[-1]["x"], updates[-1]["y"]).buffer(len(updates)).wkt

    made = around("shaped by Reach", functions=[reach])
    assert isinstance(made.interest, wb.FunctionInterest)
    assert made.interest.name == "reach"
    assert "POLYGON" in made.interest.function([{"x": 1.0, "y": 2.0}])


@pytest.mark.parametrize("kind", ["vectorised", "aggregate"])
def test_a_function_of_columns_makes_none(kind: str):
    with pytest.raises(QueryError, match="'reach' takes columns of values"):
        around("shaped by reach", functions=[wb.function(str, name="reach", **{kind: True})])


def test_the_text_of_a_query_gives_it_again():
    query = compile_text(f"{PLAIN}around Car(v > 1) as me within 1 nmi report A lifetime 5 min deliver new")
    assert compile_text(query.text) == query


def test_warnings_tell_where():
    text = "define P detect X as a then Y within 5 s consuming a\naround Car within 5 m report P"
    (warning,) = compile_text(text).warnings
    assert warning.startswith("line 2, col 8: 'P.match' uses events up")
    assert compile_text(text + " completeness strong on a grid of 5 m").warnings == ()


# Tables --------------------------------------------------------------------------------------------


def listed(folder: Path, table: str, declared: str = "", name: str = "cars.csv") -> tuple:
    (folder / name).write_text(table, encoding="utf-8")
    text = f"{declared}{PLAIN}around Car group by plate listed in '{name}' within 5 m report A"
    return compile_text(text, file=str(folder / "q.wbl")).mobile[0].focal.listed


def test_a_table_lists_objects_with_amounts_of_their_own(tmp_path: Path):
    rows = listed(tmp_path, "key,radius,lifetime,colour\n7,500,30 min,red\n8,1 nmi,,\n9,,1h 5s,blue\n")
    assert rows == (
        wb.ListedObject(7, 500.0, 30 * MINUTE),
        wb.ListedObject(8, "1852 m"),
        wb.ListedObject(9, None, 3605 * SECOND),
    )


def test_keys_are_of_the_type_that_is_declared(tmp_path: Path):
    table = "key\n007\n008\n"
    assert [each.key for each in listed(tmp_path, table)] == [7, 8]
    texts = listed(tmp_path, table, "event Car(plate: string) ")
    assert [each.key for each in texts] == ["007", "008"]
    floats = listed(tmp_path, table, "event Car(plate: float) ")
    assert [type(each.key) for each in floats] == [float, float]


def test_sources_are_texts(tmp_path: Path):
    (tmp_path / "cars.csv").write_text("key\n007\n", encoding="utf-8")
    text = f"{PLAIN}around Car listed in 'cars.csv' within 5 m report A"
    (made,) = compile_text(text, file=str(tmp_path / "q.wbl")).mobile
    assert made.focal.listed == (wb.ListedObject("007"),)


def test_a_parquet_table_is_read(tmp_path: Path):
    table = pa.table({"key": ["a", "b"], "radius": [50.0, None], "lifetime": [timedelta(minutes=1), None]})
    pa.parquet.write_table(table, tmp_path / "cars.parquet")
    text = f"{PLAIN}around Car listed in 'cars.parquet' within 5 m report A"
    (made,) = compile_text(text, file=str(tmp_path / "q.wbl")).mobile
    assert made.focal.listed == (wb.ListedObject("a", 50.0, MINUTE), wb.ListedObject("b"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("plate,radius\n7,5\n", "has no column 'key'; its columns are plate, radius"),
        ("key,raduis\n7,5\n", "has a column 'raduis'; did you mean 'radius'?"),
        ("key\n7\n8\n7\n", "row 3: the key 7 is there already"),
        ("key,radius\n7,far\n", "row 1: 'far' is no length; write for example '500 m'"),
        ("key,radius\n7,0\n", "row 1: the radius of 7 has to be more than 0 m"),
        ("key,lifetime\n7,30\n", "row 1: '30' is not a duration; write for example"),
        ("key,radius\n7,5\n,6\n", "row 2 has no key"),
        ("key\nx\n", "row 1: the key 'x' is no int, as the attribute is"),
        ("key,radius\n7,5,6\n", "is no CSV"),
    ],
)
def test_a_bad_table_is_refused_with_its_row(tmp_path: Path, table: str, message: str):
    with pytest.raises(QueryError) as caught:
        listed(tmp_path, table, TYPED)
    assert message in caught.value.message
    assert caught.value.at is not None
    assert caught.value.hint


def test_a_table_of_another_kind_is_refused(tmp_path: Path):
    with pytest.raises(QueryError, match=r"a table of focal objects ends in \.csv or \.parquet"):
        listed(tmp_path, "key\n7\n", name="cars.txt")


def test_a_radius_of_its_own_needs_a_circle(tmp_path: Path):
    (tmp_path / "cars.csv").write_text("key,radius\na,5\n", encoding="utf-8")
    text = f"{PLAIN}around Car listed in 'cars.csv' box 5 m, 6 m report A"
    with pytest.raises(QueryError, match="a radius of their own, but the interest is no circle") as caught:
        compile_text(text, file=str(tmp_path / "q.wbl"))
    assert caught.value.at is not None


# In Python -----------------------------------------------------------------------------------------


def test_a_mobile_query_in_python_is_that_of_the_text():
    plain = compile_text(TYPED + PLAIN)
    made = wb.MobileQuery(
        plain,
        wb.focal("Car", key="plate", where="kind = 'bus'"),
        wb.BoxInterest("400 m", 200),
        lifetime=timedelta(minutes=30),
        policy=wb.MobilePolicy(
            refresh=wb.RefreshWhenMoved("50 m"),
            quality=wb.Quality(0.9, 0.8),
            order="spatio-temporal",
            prediction=wb.Prediction(3, 10, "greedy"),
            reuse="off",
            deliver="changes",
        ),
        name="me",
        excluding_itself=True,
        silent="10 min",
    )
    (written,) = compile_text(
        f"""{TYPED}{PLAIN}
        around Car(kind = 'bus') as me
          group by plate
          box 400 m, 200 m
          report A
          lifetime 30 min
          refresh when moved 50 m
          quality precision 0.9, recall 0.8
          order spatio-temporal
          predict 3 steps, 10 candidates by greedy
          reuse off
          deliver changes
          excluding itself
          until silent for 10 min
        """
    ).mobile
    assert made.with_detect(written.detect) == written
    assert made.detect.graph == written.detect.graph


def test_a_mobile_query_goes_where_a_query_goes():
    query = wb.follow(compile_text(PLAIN), "car-7", type="Car", within="500 m").compile()
    assert query.types == ("A",)
    assert query.attributes == {"A": ["v"]}
    assert [each.focal.only for each in query.mobile] == [frozenset({"car-7"})]
    assert query.text == ""


def test_follow_takes_one_several_or_all():
    slow = compile_text("define Slow detect Car(speed < 3)")
    assert wb.follow(slow, within=5).focal == wb.FocalObjects("Car")
    assert wb.follow(slow, 7, key="plate", within=5).focal == wb.FocalObjects("Car", "plate", [7])
    assert wb.follow(slow, ["a", "b"], within=5).focal.only == {"a", "b"}
    assert wb.follow(slow, within=5).name == "Car"
    sector = wb.SectorInterest("2 km", 60)
    assert wb.follow(slow, interest=sector, name="me").interest == sector


def test_follow_takes_a_pattern_of_steps_and_conditions_of_the_builder():
    from whimbrel.lang.builder import col

    pattern = wb.Pattern.begin("a", "Car").next("b", "Car").within("5 s")
    made = wb.follow(pattern, within="5 m", where=col("kind") == "bus")
    assert made.focal.condition == wb.focal("Car", where="kind = 'bus'").condition


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda plain: wb.follow(plain, "a", within=5), "cannot be told from what the query reads: X, Y"),
        (lambda plain: wb.follow(plain, "a", type="X"), "give the interest, once"),
        (lambda plain: wb.follow(plain, type="X", within="5 s"), "'5 s' is no length"),
        (lambda plain: wb.follow(plain, type="X", within=-5), "has to be more than 0 m, not -5 m"),
        (lambda plain: wb.follow(plain, type="X", within=5, lifetime="5 m"), "'5 m' is not a duration"),
        (lambda plain: wb.follow(plain, type="X", within=5, lifetime=-5), "a lifetime cannot be negative"),
        (lambda plain: wb.follow(plain, type="X", within=5, where="v >"), "the condition 'v >'"),
        (lambda plain: wb.follow(plain, type="X", within=5, where="1 param q = 1"), "more than a condition"),
        (lambda plain: wb.focal("X", listed=[{"plate": 1}]), "has no column 'key'"),
        (lambda plain: wb.focal("X", listed=[{"key": 1}]), "the key 1 is no string"),
        (lambda plain: wb.focal("X", only=1), "following X: the key 1 is no string"),
        (
            lambda plain: wb.focal("X", only="a", listed=[{"key": "a"}]),
            "named or listed in a table, not both",
        ),
        (lambda plain: wb.MobilePolicy(deliver="some"), "there is no deliver 'some'; use one of: all, new"),
        (lambda plain: wb.MobilePolicy(quality=2), "precision lies between 0 and 1"),
        (lambda plain: wb.RefreshEvery("0 s"), "has to be more than nothing"),
        (lambda plain: wb.Prediction(by="chance"), "there is no choice of candidates 'chance'"),
        (
            lambda plain: wb.MobileQuery(wb.follow(plain, type="X", within=5), wb.FocalObjects("X"), 5),
            "another",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str):
    plain = compile_text(PLAIN)
    with pytest.raises((QueryError, DataError)) as caught:
        call(plain)
    assert message in str(caught.value)


def test_a_table_of_thousands_may_be_of_any_kind():
    rows = [
        {"key": f"car-{n}", "radius": float(n + 1), "lifetime": timedelta(seconds=n)} for n in range(3000)
    ]
    expected = tuple(wb.ListedObject(row["key"], row["radius"], row["lifetime"]) for row in rows)
    for table in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
        assert wb.focal("Car", listed=table).listed == expected


def test_gaps_in_a_pandas_table_are_no_amounts():
    frame = pd.DataFrame({"key": [7, 8], "radius": [5.0, None]})
    found = wb.focal("Car", key="plate", listed=frame).listed
    assert found == (wb.ListedObject(7, 5.0), wb.ListedObject(8))


def test_tables_for_python_may_be_files(tmp_path: Path):
    (tmp_path / "cars.csv").write_text("key,radius\na,1 km\n", encoding="utf-8")
    assert wb.focal("Car", listed=tmp_path / "cars.csv").listed == (wb.ListedObject("a", 1000.0),)
    with pytest.raises(DataError, match="there is no file"):
        wb.focal("Car", listed=str(tmp_path / "vans.csv"))


def test_warnings_come_with_the_compiled_query():
    plain = compile_text("define P detect X as a then Y within 5 s consuming a")
    query = wb.follow(plain, type="Car", within=5).compile()
    assert [warning.split(",")[0] for warning in query.warnings] == ["'P.match' uses events up"]


# What rewrites keep --------------------------------------------------------------------------------


def test_a_context_is_that_of_what_is_told_of_interests():
    query = compile_text(f"{PLAIN}around Car within 5 m report A").in_context("recent")
    (mobile,) = query.mobile
    assert mobile.detect.graph == query.graph
    contexts = {op.context.value for op in mobile.detect.graph.operators if isinstance(op, JoinPattern)}
    assert contexts == {"recent"}
    assert mobile.interest == wb.CircleInterest(5)


def test_cpsl_can_be_followed_and_has_no_form_for_it():
    query = wb.cpsl("late: !(leave;3600)arrive")
    assert wb.follow(query, "bus", type="leave", within=5).detect.types == ("late",)
    with pytest.raises(QueryError, match="`around` has no CPSL form"):
        from_wbl("define A detect X around Car within 5 m report A")


@pytest.mark.parametrize("use", [cut, graph_to_plan], ids=["cut", "plan"])
def test_what_takes_plain_queries_says_so(use):
    query = compile_text(f"{PLAIN}around Car as me within 5 m report A")
    with pytest.raises(QueryError, match="takes plain queries, and this one follows objects: me"):
        use(query)
