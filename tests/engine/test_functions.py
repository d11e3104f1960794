"""Functions of one's own: what they get, what they may give, and how their errors are told."""

from __future__ import annotations

import numpy as np
import pytest

import whimbrel as wb
from whimbrel.errors import QueryError
from whimbrel.testing import table

DATA = "A@1s#a:v=4,k=x A@2s#b:v=9,k=y A@3s#c:k=z"


def values(call, data: str = DATA, expression: str = "f(A.v)", **settings) -> list:
    made = wb.function(call, name="f", **settings)
    query = wb.compile(f"define D detect A assign value = {expression}", functions=[made])
    return wb.detect(query, table(data)).column("value").to_pylist()


def aggregated(call, **settings) -> list:
    made = wb.function(call, name="f", aggregate=True, **settings)
    query = wb.compile("define D every 1 min detect A assign value = f(A.v)", functions=[made])
    return wb.detect(query, table(DATA)).column("value").to_pylist()


# What a function gets.


def test_a_plain_function_gets_one_value_after_the_other():
    got = []
    values(got.append)
    assert got == [4, 9, None]


def test_a_vectorised_function_gets_all_values_at_once():
    got = []

    def keep(array):
        got.append(array)
        return array

    assert values(keep, vectorised=True) == [4, 9, None]
    assert isinstance(got[0], np.ndarray)
    assert len(got) == 1


def test_a_vectorised_function_may_get_several_columns():
    made = wb.function(lambda a, b: a * 10 + b, name="f", vectorised=True)
    query = wb.compile("define D detect A assign value = f(A.v, A.w)", functions=[made])
    found = wb.detect(query, table("A@1s:v=1,w=2 A@2s:v=3,w=4"))
    assert found.column("value").to_pylist() == [12, 34]


def test_an_aggregate_gets_the_values_of_the_window_without_nulls():
    got = []
    aggregated(lambda window: got.append(list(window)))
    assert got == [[4, 9]]


def test_a_function_may_get_a_whole_event():
    got = []
    values(got.append, "A@1s!bus(1,2):v=4,k=x", expression="f(A)", returns="string")
    assert got == [{"v": 4, "k": "x"}]


def test_a_function_may_get_texts_times_and_truth():
    got = []
    values(lambda *given: got.append(given), "A@1s:k=x,on=true", expression="f(A.k, A.on, A.start, 'c', 1.5)")
    ((text, truth, start, constant, number),) = got
    assert (text, truth, constant, number) == ("x", True, "c", 1.5)
    assert start.timestamp() == 1


def test_a_function_is_called_whatever_the_case_of_its_name():
    assert values(lambda value: 1, expression="F(A.v)") == [1, 1, 1]


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_function_may_get_nothing(vectorised):
    assert values(lambda: [1, 2, 3] if vectorised else 7, expression="f()", vectorised=vectorised) == (
        [1, 2, 3] if vectorised else [7, 7, 7]
    )


def test_a_function_may_stand_inside_an_expression():
    assert values(lambda value: value or 0, expression="f(A.v) * 2 + f(1)") == [9, 19, 1]


# What a function may give.


@pytest.mark.parametrize(
    ("returns", "given", "value"),
    [("float", 1, 1.0), ("int", 7, 7), ("string", "x", "x"), ("bool", True, True), ("TEXT", "x", "x")],
)
def test_a_function_gives_the_type_it_declares(returns, given, value):
    assert values(lambda _: given, returns=returns) == [value] * 3


def test_a_function_may_give_nothing():
    assert values(lambda value: None) == [None] * 3


def test_not_a_number_is_nothing():
    assert values(lambda value: float("nan")) == [None] * 3
    assert values(lambda array: np.full(len(array), np.nan), vectorised=True) == [None] * 3


def test_an_aggregate_gives_one_value_a_window():
    assert aggregated(lambda window: max(window) - min(window)) == [5]


# How errors are told.


def test_a_function_that_fails_is_named_with_what_it_got():
    with pytest.raises(QueryError, match=r"the function 'f' failed on \(9,\): no nines") as told:
        values(fail_on_nine)
    assert isinstance(told.value.__cause__, ValueError)


def fail_on_nine(value):
    if value == 9:
        raise ValueError("no nines")
    return value


def test_a_vectorised_function_that_fails_is_named():
    with pytest.raises(QueryError, match="the function 'f' failed"):
        values(lambda array: array.nonsense, vectorised=True)


def test_an_aggregate_that_fails_is_named():
    with pytest.raises(QueryError, match="the function 'f' failed: no nines"):
        aggregated(lambda window: [fail_on_nine(value) for value in window])


@pytest.mark.parametrize("settings", [{}, {"vectorised": True}])
def test_a_value_of_another_type_is_refused(settings):
    def give_texts(value):
        return np.array(["many"] * len(value)) if settings else "many"

    with pytest.raises(QueryError, match="'f' should return float"):
        values(give_texts, **settings)


def test_an_aggregate_of_another_type_is_refused():
    with pytest.raises(QueryError, match="'f' should return float"):
        aggregated(lambda window: "many")


def test_a_vectorised_function_must_give_one_value_an_event():
    with pytest.raises(QueryError, match="'f' gave 1 values for 3 events"):
        values(lambda array: array[:1], vectorised=True)


def test_a_function_that_is_not_there_is_told_when_compiling():
    with pytest.raises(QueryError, match="knots") as told:
        wb.compile("define D detect A(knots(speed) > 3)")
    assert "^" in str(told.value)


def test_the_name_of_a_built_in_function_is_taken():
    for name in ("abs", "Count", "distance", "before"):
        with pytest.raises(QueryError, match="is a built-in function"):
            wb.function(lambda value: value, name=name)


def test_a_type_that_is_none_is_refused():
    with pytest.raises(QueryError, match="'number' is not a type"):
        wb.function(lambda value: value, name="f", returns="number")


def test_a_decorated_function_takes_its_name():
    @wb.function(returns="int")
    def Speed(value):  # noqa: N802
        return value

    assert (Speed.name, Speed.returns, Speed.vectorised, Speed.aggregate) == ("speed", "int", False, False)


def test_functions_may_be_used_in_conditions_of_one_and_of_several_events():
    double = wb.function(lambda value: None if value is None else 2 * value, name="double")
    text = "define D detect A(double(v) > 1) as a then B as b within 9 s where double(a.v) = b.v"
    query = wb.compile(text, functions=[double])
    found = wb.detect(query, table("A@1s#a:v=0 A@2s#b:v=2 B@3s#c:v=4 B@4s#d:v=0"))
    assert found.column("events").to_pylist() == [["b", "c"]]


STEERED = "A@1s#a:v=2 A@2s#b:v=3 B@3s#c:v=4"


def test_a_function_of_one_event_may_steer_the_choice():
    double = wb.function(lambda value: 2 * value, name="double")
    text = "define D detect last A as a then B as b within 9 s where double(a.v) = b.v"
    found = wb.detect(wb.compile(text, functions=[double]), table(STEERED))
    assert found.column("events").to_pylist() == [["a", "c"]]


def test_a_function_of_several_events_cannot_and_the_error_says_so():
    fits = wb.function(lambda one, other: 2 * one == other, name="fits", returns="bool")
    text = "define D detect last A as a then B as b within 9 s where fits(a.v, b.v)"
    with pytest.raises(QueryError, match="cannot be combined with first, last"):
        wb.detect(wb.compile(text, functions=[fits]), table(STEERED))
