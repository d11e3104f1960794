"""The builder says the same as the language."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.lang.describe import describe

from whimbrel.errors import DataError, QueryError, QueryTypeError, UnknownNameError
from whimbrel.lang import builder as wb
from whimbrel.lang.wbl import compile_text

a = wb.event("Position", as_="a").where(wb.col("speed") > 30)
b = wb.event("Position", as_="b")
x, y, z = wb.event("X"), wb.event("Y"), wb.event("Z", as_="z")
depot = wb.region("POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))")
limit = wb.param("limit", -3)

QUERIES = {
    "a motion": (
        wb.program(
            depot.named("Depot"),
            wb.define(
                "In",
                detect=a.moves(
                    "enters",
                    depot.named("Depot"),
                    margin="20 m",
                    settling=wb.Events(3),
                    accuracy="hdop",
                    gap="1 h",
                ).where(wb.motion("region") == "Depot"),
                group_by=["vehicle"],
            ),
        ),
        """
        region Depot = 'POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))'
        define In
          detect Position(speed > 30) as a enters Depot margin 20 m settling 3 events accuracy hdop gap 1 h
          where motion.region = 'Depot'
          group by vehicle
        """,
    ),
    "a way through a region that is written in place": (
        wb.define("Through", detect=b.moves("enters", depot, between_samples=True)),
        """
        define Through
          detect Position as b enters 'POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))' between samples
        """,
    ),
    "two movers": (
        wb.define("Met", detect=a.moves("meets", b, within="50 m", for_="1 min")),
        """
        define Met
          detect Position(speed > 30) as a meets Position as b within 50 m for 1 min
        """,
    ),
    "two movers that pass each other": (
        wb.define(
            "Passed", detect=a.moves("crosses", b, beyond="500 m", within="50 m", settling=wb.Events(2))
        ),
        """
        define Passed
          detect Position(speed > 30) as a crosses Position as b beyond 500 m within 50 m settling 2 events
        """,
    ),
    "two movers that keep apart": (
        wb.define("Apart", detect=a.moves("stays beyond", b, near="500 m", for_="10 min", accuracy="hdop")),
        """
        define Apart
          detect Position(speed > 30) as a stays beyond 500 m of Position as b for 10 min accuracy hdop
        """,
    ),
    "a sequence": (
        wb.define(
            "Brake",
            detect=a.then(b).within("5 s").where(b["speed"] < a["speed"] * 0.5),
            group_by=["vehicle"],
            assign={"drop": a["speed"] - b["speed"]},
        ),
        """
        define Brake
          detect Position(speed > 30) as a then Position as b within 5 s
          where b.speed < a.speed * 0.5
          assign drop = a.speed - b.speed
          group by vehicle
        """,
    ),
    "operators for connectives": (
        wb.define("A", detect=(x >> y >> z).within(timedelta(minutes=90))),
        "define A detect X then Y then Z as z within 1 h 30 min",
    ),
    "groups": (
        wb.define(
            "A", detect=x.then(y & z.within("1 min")).then(wb.event("W") | wb.event("V")).within("1 h")
        ),
        "define A detect X then (Y and (Z as z within 1 min)) then (W or V) within 1 h",
    ),
    "a joined pattern with its own span": (
        wb.define("A", detect=x.then((y & z).within("1 min")).within("1 h")),
        "define A detect X then (Y and Z as z within 1 min) within 1 h",
    ),
    "absence": (
        wb.define("A", detect=x.then(wb.absent(y.where(wb.col("k") == x["k"]), for_="1 h"))),
        "define A detect X then not Y(k = X.k) for 1 h",
    ),
    "absence between": (
        wb.define("A", detect=x.then(y.not_()).then(z).within("1 h")),
        "define A detect X then not Y then Z as z within 1 h",
    ),
    "repetition": (
        wb.define(
            "A",
            detect=x.repeat(2, 5, until=y).as_("r").then(z).within("1 h"),
            where=(wb.count(wb.event("X", as_="r")) > 2) & (wb.avg(wb.event("X", as_="r")["v"]) > 1.5),
        ),
        "define A detect X{2,5} until Y as r then Z as z within 1 h where count(r) > 2 and avg(r.v) > 1.5",
    ),
    "a repeated group": (
        wb.define("A", detect=(x >> y).grouped().repeat(2).then(z).within("1 h")),
        "define A detect (X then Y){2,} then Z as z within 1 h",
    ),
    "one name for alternatives": (
        wb.define("A", detect=(x | y).grouped().as_("e"), assign={"v": wb.col("v")}),
        "define A detect (X or Y) as e assign v = v",
    ),
    "selection, gaps and consumption": (
        wb.define("A", detect=x.last() & y.within_from("5 min", x), consuming=[y], context=None),
        "define A detect last X and Y within 5 min from X consuming Y",
    ),
    "conditions": (
        wb.define(
            "A",
            detect=x.where(
                wb.col("v").in_(1, "a", True) | ~wb.col("w").is_null(),
                wb.col("u").between(-1, 2.5),
                wb.this["t"] > datetime(2024, 5, 1, 12, tzinfo=UTC),
                wb.col("d") > timedelta(seconds=90),
                wb.this.inside(depot),
                1 - wb.col("x") % 2 != 4 / -wb.col("y"),
            ),
        ),
        """
        define A detect X(v in (1, 'a', true) or not w is null, u between -1 and 2.5,
          this.t > timestamp '2024-05-01T12:00:00.000000Z', d > 1 min 30 s,
          this in 'POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))', 1 - x % 2 != 4 / -y)
        """,
    ),
    "parts in space and time": (
        wb.define(
            "A",
            detect=(x & y).within("1 h"),
            where=x.relates("during", y)
            & (wb.distance(x, y) < 500)
            & (x.inside(wb.circle(0, -1, "1.5 km")) | y.inside(wb.box(0, 0, 1, 1))),
        ),
        """
        define A detect X and Y within 1 h
          where X during Y and distance(X, Y) < 500 and (X in circle(0, -1, 1.5 km) or Y in box(0, 0, 1, 1))
        """,
    ),
    "an aggregate": (
        wb.define(
            "A",
            detect=x.outer() & y.outer(),
            every="2 min",
            attributes={"n": "INT"},
            assign={"n": wb.count(x) - wb.count(y)},
            post={"n": wb.sum_(wb.col("n"))},
            having=wb.col("n") > 3,
            group_by=["k", wb.cell("500 m")],
        ),
        """
        define A(n: int) every 2 min detect outer X and outer Y assign n = count(X) - count(Y)
          <post> where n = sum(n) having n > 3 group by k, cell(500 m)
        """,
    ),
    "a window over events": (
        wb.define(
            "A",
            detect=x,
            over=wb.Events(10),
            every=wb.Events(2),
            within="1 h",
            assign={"m": wb.max_(x["v"]), "n": wb.last(x["v"])},
        ),
        "define A over 10 events every 2 events within 1 h detect X assign m = max(X.v), n = last(X.v)",
    ),
    "cases": (
        wb.define(
            "A", cases=[wb.case(x, assign={"v": 1}), wb.case(y, assign={"v": y["w"]}, context="recent")]
        ),
        "define A case 0: detect X assign v = 1 case 1: detect Y assign v = Y.w context recent",
    ),
    "a whole program": (
        wb.program(
            wb.coordinates("plane"),
            limit,
            wb.schema("X", v="float"),
            wb.define("A", detect=x.where(wb.col("v") > limit)),
            wb.subscription(
                "User1", "Gate", detect=wb.event("A"), sequence=2, name="Alarm", assign={"k": "x'y"}
            ),
        ),
        """
        coordinates plane
        param limit = -3
        event X(v: float)
        define A detect X(v > limit)
        Subscription Alarm seq 2 from User1 to Gate detect A assign k = 'x\\'y'
        """,
    ),
}


@pytest.mark.parametrize(("built", "text"), QUERIES.values(), ids=QUERIES.keys())
def test_builder_and_language_give_one_graph(built: wb.Program | wb.Statement, text: str):
    made, compiled = built.compile(), compile_text(text)
    assert describe(made) == describe(compiled)
    assert made.graph == compiled.graph
    assert made.text == compiled.text == f"{built}\n"


def test_an_error_shows_the_query_as_the_language_writes_it():
    query = wb.program(wb.schema("X", speed="float"), wb.define("A", detect=x.where(wb.col("sped") > 3)))
    with pytest.raises(UnknownNameError, match="did you mean 'speed'") as caught:
        query.compile()
    assert "detect X(sped > 3)" in str(caught.value)


def test_a_value_is_neither_true_nor_false():
    with pytest.raises(QueryTypeError, match="is not yet true or false"):
        bool(wb.col("x") > 3)
    with pytest.raises(QueryTypeError, match="cannot hold a list"):
        wb.col("x") == [1]  # noqa: B015
    with pytest.raises(QueryTypeError, match="no number"):
        wb.col("x") > float("inf")  # noqa: B015


def test_names_that_would_say_something_else_are_refused():
    with pytest.raises(QueryError, match="cannot be written"):
        wb.define("A", detect=wb.event("B within 5 s")).compile()
    with pytest.raises(QueryError):
        wb.define("A", detect=wb.event("B; define C detect D")).compile()


def test_wrong_use_says_what_to_do():
    with pytest.raises(DataError, match="'5 parsecs' is no duration"):
        x.then(y).within("5 parsecs")
    with pytest.raises(QueryError, match=r"detect=.* or cases="):
        wb.define("A")
    with pytest.raises(QueryError, match="no relation in time"):
        x.relates("near", y)
    with pytest.raises(QueryError, match="has no name"):
        (x >> y).grouped()["v"]
    with pytest.raises(QueryError, match="not a statement"):
        wb.program(wb.col("x"))


def test_horizon_params_and_outputs_are_handed_on():
    query = wb.define("A", detect=x.where(wb.col("v") > wb.col("low")).then(y))
    made = query.compile(horizon="1 h", params={"low": 3}, emit="all")
    assert "v > 3" in describe(made)
    assert "within 1 h" in describe(made)


def test_wrong_details_of_a_motion_are_refused():
    for arguments, details, message in (
        (("meets", b), {"within": "50 m"}, "`meets` needs `for`"),
        (("meets", b), {"within": "50 m", "for_": "1 min", "by": "5 m"}, "`by` does not go with `meets`"),
        (("meets", b), {"within": "50 m", "for_": "1 min", "gab": "5 m"}, "did you mean 'gap'"),
        (("crosses", b), {"beyond": "50 m", "between_samples": "5 m"}, "`between samples` cannot be '5 m'"),
        (("comes within", b), {}, "`comes within` needs a distance"),
        (("crosses", b), {"near": "5 m", "beyond": "50 m"}, "`near` does not go with `crosses`"),
        (("stops", b), {"for_": "1 min", "within": "5 m"}, "`stops` takes no place to move to"),
        (("enters",), {}, "`enters` needs a place to move to"),
        (("crosess", b), {"beyond": "50 m"}, "did you mean 'crosses'"),
    ):
        with pytest.raises(QueryError, match=message):
            wb.define("A", detect=a.moves(*arguments, **details)).compile()


def test_a_misspelt_clause_is_refused_with_the_name_that_was_meant():
    with pytest.raises(TypeError, match=r"define\(\) has no setting 'wher'; did you mean 'where'\?"):
        wb.define("D", detect=wb.event("A"), wher=None)
    with pytest.raises(TypeError, match=r"subscription\(\) has no setting 'having'"):
        wb.subscription("s", "a", detect=wb.event("A"), having=None)
