"""Expressions in the reference: nulls, numbers, texts, times, functions and relations."""

from __future__ import annotations

import math

import pytest
from tests.reference.arithmetic import cast
from tests.reference.building import attr, call, is_, not_, seconds, value
from tests.reference.data import Duration, Event, Item, Timestamp
from tests.reference.expressions import Env, World, evaluate

from whimbrel.graph.expressions import RELATIONS, Attribute, Binary, Call, Literal, PartRef, Unary
from whimbrel.model.schema import Type

NULL = value(None)
TRUE, FALSE = value(True), value(False)


def item(start=0, end=0, **attributes):
    event = Event("e", "A", start, end, "s", 1.0, 2.0, attributes=attributes)
    return Item(event.id, event.type, event.source, start, end, (event,), attributes)


def says(expr, **parts):
    return evaluate(expr, Env(World(), {None: item(), **parts}))


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("and", TRUE, NULL, None),
        ("and", FALSE, NULL, False),
        ("and", NULL, FALSE, False),
        ("and", TRUE, TRUE, True),
        ("or", TRUE, NULL, True),
        ("or", NULL, TRUE, True),
        ("or", FALSE, NULL, None),
        ("or", FALSE, FALSE, False),
        ("=", NULL, NULL, None),
        ("!=", value(1), NULL, None),
        ("<", NULL, value(1), None),
        ("+", NULL, value(1), None),
    ],
)
def test_nulls_behave_as_in_sql(operator, left, right, expected):
    assert says(Binary(operator, left, right)) is expected


def test_not_null_is_null():
    assert says(not_(NULL)) is None
    assert says(not_(FALSE)) is True


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (7, "/", 2, 3.5),
        (6, "/", 2, 3.0),
        (7, "/", 0, None),
        (7.0, "/", 0.0, None),
        (7, "%", 0, None),
        (7, "%", 3, 1),
        (-7, "%", 3, 2),
        (7, "%", -3, -2),
        (-7.5, "%", 2, 0.5),
        (2**63 - 1, "+", 1, -(2**63)),
        (-(2**63), "-", 1, 2**63 - 1),
        (2**62, "*", 2, -(2**63)),
        (1, "+", 0.5, 1.5),
        (math.inf, "-", math.inf, None),
        (1e308, "*", 10.0, math.inf),
    ],
)
def test_numbers(left, operator, right, expected):
    answer = says(Binary(operator, value(left), value(right)))
    assert answer == expected
    assert type(answer) is type(expected)


def test_the_negative_of_the_least_whole_number_is_itself():
    assert says(Unary("-", value(-(2**63)))) == -(2**63)


def test_texts_compare_by_code_point_and_not_with_numbers():
    assert says(is_(value("Z"), "<", "a")) is True
    assert says(is_(value("é"), ">", "z")) is True
    with pytest.raises(TypeError, match="cannot compare"):
        says(is_(value("1"), "=", 1))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (call("abs", value(-3)), 3),
        (call("abs", value(-3.5)), 3.5),
        (call("sqrt", value(9)), 3.0),
        (call("sqrt", value(-1)), None),
        (call("floor", value(-1.5)), -2.0),
        (call("floor", value(3)), 3),
        (call("ceil", value(-1.5)), -1.0),
        (call("round", value(2.5)), 2.0),
        (call("round", value(3.5)), 4.0),
        (call("round", value(7)), 7),
        (call("sign", value(-2.5)), -1.0),
        (call("sign", value(0)), 0),
        (call("pow", value(2), value(10)), 1024.0),
        (call("pow", value(-1.0), value(0.5)), None),
        (call("exp", value(0)), 1.0),
        (call("ln", value(1)), 0.0),
        (call("ln", value(0)), None),
        (call("least", NULL, value(3), value(2)), 2),
        (call("greatest", value("b"), NULL, value("a")), "b"),
        (call("least", NULL, NULL), None),
        (call("coalesce", NULL, value(4), value(5)), 4),
        (call("lower", value("AbC")), "abc"),
        (call("upper", value("AbC")), "ABC"),
        (call("length", value("añ😀")), 3),
        (call("contains", value("abc"), value("b")), True),
        (call("startswith", value("abc"), value("b")), False),
        (call("endswith", value("abc"), value("bc")), True),
        (call("abs", NULL), None),
        (call("contains", value("abc"), NULL), None),
        (call("in", value(1), value(2), value(1)), True),
        (call("in", value(1), value(2), NULL), None),
        (call("in", value(1), value(2)), False),
        (call("in", NULL, value(2)), None),
        (call("between", value(2), value(2), value(3)), True),
        (call("between", value(1), value(2), NULL), False),
        (call("between", value(2), value(2), NULL), None),
        (call("is_null", NULL), True),
        (call("is_null", value(0)), False),
    ],
    ids=str,
)
def test_functions(expr, expected):
    answer = says(expr)
    assert answer == expected
    assert type(answer) is type(expected)


def test_times_and_durations():
    at, later = Literal(10, Type.TIMESTAMP), Literal(25, Type.TIMESTAMP)
    second, five = seconds(1), Literal(5, Type.DURATION)
    cases = [
        (Binary("-", later, at), Duration(15)),
        (Binary("+", at, five), Timestamp(15)),
        (Binary("+", five, at), Timestamp(15)),
        (Binary("-", at, five), Timestamp(5)),
        (Binary("/", second, five), 200_000.0),
        (Binary("*", five, value(0.5)), Duration(2)),
        (Binary("*", value(1.5), five), Duration(8)),
        (Binary("*", five, value(3)), Duration(15)),
        (Binary("/", five, value(2)), Duration(2)),
        (Binary("+", five, five), Duration(10)),
        (Unary("-", five), Duration(-5)),
        (Binary("<", five, second), True),
        (Binary("/", five, Binary("-", five, five)), None),
    ]
    for expr, expected in cases:
        assert says(expr) == expected
        assert type(says(expr)) is type(expected)


def test_sums_of_two_instants_have_no_meaning():
    at = Literal(10, Type.TIMESTAMP)
    with pytest.raises(TypeError, match="no meaning"):
        says(Binary("+", at, at))


def test_every_event_has_times_a_source_and_a_centre():
    a = item(3, 8, v=1)
    names = ("start", "end", "timestamp", "duration", "type", "source", "srcid", "id", "x", "y", "lon", "lat")
    expected = [3, 8, 8, 5, "A", "s", "s", "e", 1.0, 2.0, 1.0, 2.0]
    assert [says(Attribute("a", name), a=a) for name in names] == expected
    assert says(attr("a.unknown"), a=a) is None
    assert says(attr("a.v"), a=None) is None


def test_an_attribute_of_the_data_comes_first():
    assert says(attr("a.duration"), a=item(3, 8, duration=7)) == 7


def test_a_repeated_part_has_no_single_value():
    with pytest.raises(TypeError, match="read through an aggregate"):
        says(attr("a.v"), a=(item(v=1), item(v=2)))


def test_an_aggregate_takes_an_expression_and_a_single_part():
    assert says(call("sum", is_("a.v", "*", 10)), a=(item(v=1), item(v=2))) == 30
    assert says(call("count", "a"), a=item()) == 1
    assert says(call("count", "a"), a=None) == 0
    assert says(call("sum", is_("a.v", "*", attr("b.v"))), a=(item(v=1), item(v=2)), b=item(v=5)) == 15


# For each relation a pair that has it, from Allen's picture, as (a.start, a.end), (b.start, b.end).
PAIRS = {
    "before": ((0, 1), (2, 3)),
    "after": ((2, 3), (0, 1)),
    "meets": ((0, 1), (1, 2)),
    "met_by": ((1, 2), (0, 1)),
    "overlaps": ((0, 2), (1, 3)),
    "overlapped_by": ((1, 3), (0, 2)),
    "starts": ((0, 1), (0, 2)),
    "started_by": ((0, 2), (0, 1)),
    "during": ((1, 2), (0, 3)),
    "contains": ((0, 3), (1, 2)),
    "finishes": ((1, 2), (0, 2)),
    "finished_by": ((0, 2), (1, 2)),
    "equals": ((0, 2), (0, 2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_of_allens_relations_exactly_one_holds_between_intervals(name):
    a, b = (item(*times) for times in PAIRS[name])
    holding = [other for other in PAIRS if says(Call(other, (PartRef("a"), PartRef("b"))), a=a, b=b)]
    assert holding == [name]


def test_concurrent_events_share_an_instant():
    assert set(PAIRS) | {"concurrent"} == set(RELATIONS)
    shared = Call("concurrent", (PartRef("a"), PartRef("b")))
    assert says(shared, a=item(0, 1), b=item(1, 2)) is True
    assert says(shared, a=item(0, 1), b=item(2, 3)) is False
    assert says(shared, a=item(0, 1), b=None) is None


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("12", "int", 12),
        ("twelve", "int", None),
        (2.9, "integer", 2),
        (1e300, "int", None),
        (3, "double", 3.0),
        ("2.5", "FLOAT", 2.5),
        (True, "string", "true"),
        (Timestamp(0), "text", "1970-01-01T00:00:00.000000Z"),
        ("1970-01-01T00:00:01Z", "time", Timestamp(1_000_000)),
        ("soon", "timestamp", None),
        (0, "bool", False),
        ("TRUE", "boolean", True),
        ("yes", "bool", None),
        (Duration(5), "int", 5),
        (Duration(5), None, 5),
        (None, "int", None),
    ],
)
def test_casts(given, kind, expected):
    answer = cast(given, kind)
    assert answer == expected
    assert type(answer) is type(expected)
