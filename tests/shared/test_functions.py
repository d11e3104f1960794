"""Functions of your own."""

from __future__ import annotations

import numpy as np
from tests.shared.backends import expect

import whimbrel as wb


@wb.function
def double(value):
    return None if value is None else value * 2


@wb.function(returns="bool", vectorised=True)
def even(values):
    return np.asarray(values) % 2 == 0


@wb.function(returns="string")
def describe(event):
    return " ".join(f"{name}={value}" for name, value in sorted(event.items()) if value is not None)


@wb.function(returns="string")
def join(one, other):
    return f"{one}-{other}"


def test_a_function_may_compute_an_attribute(backend):
    found = backend.detect("define D detect A assign v = double(A.v)", "A@1s:v=2 A@2s", functions=[double])
    assert found == expect("D@1s:v=4.0: a1 ; D@2s: a2")


def test_a_function_may_test_one_event(backend):
    assert backend.pattern("A(double(v) > 3)", "A@1s:v=1 A@2s:v=2", functions=[double]) == ["a2"]
    assert backend.pattern("A(even(v))", "A@1s:v=1 A@2s:v=2", functions=[even]) == ["a2"]


def test_a_function_may_test_several_events(backend):
    pattern = "A as a then B as b within 9 s where double(a.v) = b.v"
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=2 B@3s:v=4", functions=[double]) == ["a2 b1"]


def test_a_function_may_read_several_parts(backend):
    text = "define D detect A as a then B as b within 9 s assign k = join(a.k, b.k)"
    assert backend.detect(text, "A@1s:k=x B@2s:k=y", functions=[join]).values("k") == ["x-y"]


def test_a_function_may_read_a_whole_event(backend):
    found = backend.detect("define D detect A assign k = describe(A)", "A@1s:k=x,v=1", functions=[describe])
    assert found.values("k") == ["k=x v=1"]


def test_a_function_may_read_a_whole_part(backend):
    text = "define D detect A as a then B as b within 9 s assign k = describe(b)"
    assert backend.detect(text, "A@1s:k=x B@2s:k=y,v=1", functions=[describe]).values("k") == ["k=y v=1"]


def test_a_function_may_read_a_whole_detection(backend):
    text = "define P detect A assign w = A.v + 1 define D detect P assign k = describe(P)"
    assert backend.detect(text, "A@1s:v=1", functions=[describe]).values("k") == ["w=2"]


def test_a_function_may_read_one_of_several_alternatives(backend):
    text = "define D detect A then (B or C) as next within 9 s assign k = describe(next)"
    assert backend.detect(text, "A@1s B@2s:v=1 C@3s:k=x", functions=[describe]).values("k") == ["v=1", "k=x"]
