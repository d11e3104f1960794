"""Parameters: constants to be changed when the query is compiled."""

from __future__ import annotations

from datetime import timedelta

import pytest

import whimbrel as wb

DATA = "A@1s:v=1,k=x A@2s:v=2,k=y A@3s:v=3,k=x"


def test_a_parameter_has_the_value_it_is_declared_with(backend):
    assert backend.detect("param limit = 2 define D detect A(v >= limit)", DATA).events == ["a2", "a3"]


def test_a_parameter_can_be_given_another_value(backend):
    text = "param limit = 2 define D detect A(v >= limit)"
    assert backend.detect(text, DATA, params={"limit": 3}).events == ["a3"]


def test_a_parameter_may_be_a_text(backend):
    text = "param kind = 'x' define D detect A(k = kind)"
    assert backend.detect(text, DATA, params={"kind": "y"}).events == ["a2"]


@pytest.mark.parametrize("patience", ["2 s", timedelta(seconds=2)])
def test_a_parameter_may_be_a_duration(backend, patience):
    text = "param patience = 1 s define D detect A as a then A as b within patience"
    assert backend.detect(text, DATA).events == ["a1 a2", "a2 a3"]
    assert len(backend.detect(text, DATA, params={"patience": patience})) == 3


def test_a_parameter_may_be_the_length_of_a_window(backend):
    text = "param x = 1 define D over x secs detect A assign n = count(A)"
    assert backend.detect(text, DATA, params={"x": 2}).values("n") == [1, 2, 3]


def test_a_parameter_that_is_not_used_is_told():
    query = wb.compile("param limit = 2 define D detect A(v >= limit)", params={"bound": 3})
    assert "bound" in "".join(query.warnings)
