"""The attributes of detections are known before any event is seen, and are what the engine then gives."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.errors import QueryError
from whimbrel.lang.outputs import merged, output_types
from whimbrel.model.columns import type_of
from whimbrel.model.schema import Type
from whimbrel.testing import table

EVENTS = {"v": Type.INT, "w": Type.FLOAT, "s": Type.STRING, "ok": Type.BOOL}
ROWS = "A@1s:v=3,w=1.5,s=x,ok=true A@2s:v=5,w=2.5,s=y,ok=false B@3s:v=7,w=0.5,s=x,ok=true"


@pytest.mark.parametrize(
    "text",
    [
        "define D detect A",
        "define D(p, q) detect A as a assign p = a.v + 1, q = a.v / 2",
        "define D(p) detect A as a assign p = a.v * a.w",
        "define D(p: float) detect A as a assign p = a.v",
        "define D(t, d) detect A as a then B as b within 9 s assign t = b.timestamp, d = b.end - a.start",
        "define D(s) detect A as a then B as b within 9 s assign s = group.s group by s",
        "define D detect A as a then B as b within 9 s group by s",
        "define D(n, m, f) every 9 s detect A assign n = count(A), m = avg(A.v), f = first(A.s)",
        "define D(n) detect A{2,3} as a within 9 s assign n = sum(a.v)",
        "define D(p) detect A as a or B as b assign p = coalesce(a.v, b.v)",
        "define E(p) detect A as a assign p = a.ok\ndefine D(q) detect E as e assign q = e.p",
        "define D(src, kind, x) detect A as a assign src = a.source, kind = a.type, x = lower(a.s)",
    ],
)
def test_the_types_are_those_that_the_engine_gives(text):
    found = wb.detect(wb.compile(text), table(ROWS))
    expected = merged(output_types(wb.compile(text), EVENTS))
    attributes = [
        n for n in found.column_names if n not in ("id", "type", "start", "end", "geometry", "events")
    ]
    assert found.num_rows
    assert attributes == [name for name in expected if name in attributes]
    for name in attributes:
        if found.column(name).null_count < found.num_rows:
            assert type_of(found.column(name).type) is expected[name], name


def test_what_a_query_declares_outweighs_the_columns():
    query = wb.compile("event A(v: float)\ndefine D(p) detect A as a assign p = a.v")
    assert output_types(query, {"v": Type.STRING}) == {"D": {"p": Type.FLOAT}}


def test_an_attribute_that_no_event_has_has_no_type():
    assert output_types(wb.compile("define D(p) detect A as a assign p = a.nope"), {}) == {"D": {"p": None}}


def test_columns_of_two_definitions_that_clash_are_refused():
    query = wb.compile("define D(p) detect A as a assign p = a.v\ndefine E(p) detect A as a assign p = a.s")
    with pytest.raises(QueryError, match="'p' is string in E and int in another"):
        merged(output_types(query, EVENTS))


def test_whole_and_other_numbers_share_a_column():
    query = wb.compile("define D(p) detect A as a assign p = a.v\ndefine E(p) detect A as a assign p = a.w")
    assert merged(output_types(query, EVENTS)) == {"p": Type.FLOAT}
