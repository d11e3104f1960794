"""What a changed query adds, drops and changes."""

from __future__ import annotations

import json

import pytest
from tests.backtesting.truck_trips import trips

import whimbrel as wb
from whimbrel.backtesting.compare import compare

EVENTS = [{"id": f"{kind}{n}", "type": kind.upper(), "time": n, "v": n} for n in range(12) for kind in "ab"]


def found(text: str, events=None):
    return wb.detect(wb.compile(text), EVENTS if events is None else events)


def changes(old: str, new: str, events=None) -> dict[str, list[list[str]]]:
    told: dict[str, list[list[str]]] = {}
    for row in compare(found(old, events), found(new, events)).to_pylist():
        told.setdefault(row["change"], []).append(row["events"])
    return told


@pytest.mark.parametrize(
    "text",
    [
        "define D detect A as a then B as b within 3 s where b.v > a.v + 1",
        "# the same, in other words\ndefine D detect A as x then B as y within 3 s where y.v - x.v > 1",
        "param far = 1 define Other detect B define D detect A then B within 3 s where B.v > A.v + far",
        "define D(gap) detect A as a then B as b within 3 s where b.v > a.v + 1 assign gap = b.v - a.v",
    ],
)
def test_a_definition_that_keeps_its_name_keeps_its_ids_whatever_its_text(text):
    old = found("define D detect A as a then B as b within 3 s where b.v > a.v + 1")
    new = wb.detect(wb.compile(text, emit=["D"]), EVENTS)
    assert old.num_rows == 19
    assert new.column("id").to_pylist() == old.column("id").to_pylist()


def test_another_limit_adds_or_drops():
    low, high = "define D detect A(v > 8)", "define D detect A(v > 9)"
    assert changes(low, high) == {"dropped": [["a9"]], "same": [["a10"], ["a11"]]}
    assert changes(high, low) == {"added": [["a9"]], "same": [["a10"], ["a11"]]}


def test_what_rests_on_the_same_events_with_other_attributes_is_changed():
    table = compare(
        found("define D(n) detect A(v > 10) as a assign n = a.v"),
        found("define D(n) detect A(v > 10) as a assign n = a.v * 2"),
    )
    (row,) = table.to_pylist()
    assert (row["change"], row["n"], json.loads(row["before"])) == ("changed", 22, {"n": 11})


def test_an_absence_with_another_deadline_is_changed():
    rows = trips(1, 1)[:1]
    table = compare(
        found("define L detect Leave then not Arrive for 1 h", rows),
        found("define L detect Leave then not Arrive for 2 h", rows),
    )
    assert table.column("change").to_pylist() == ["changed"]
    assert list(json.loads(table.column("before")[0].as_py())) == ["end"]


def test_an_attribute_that_only_one_has_counts_where_it_has_a_value():
    old, new = "define D(n) detect A(v > 10) as a assign n = 1", "define D detect A(v > 10) as a assign m = 1"
    (row,) = compare(found(old), found(new)).to_pylist()
    assert (row["change"], row["n"], row["m"], json.loads(row["before"])) == (
        "changed", None, 1, {"m": None, "n": 1},
    )  # fmt: skip


def test_whole_numbers_and_others_that_are_equal_are_the_same():
    old = "define D(n) detect A(v > 10) as a assign n = a.v"
    assert changes(old, old.replace("= a.v", "= a.v * 1.0")) == {"same": [["a11"]]}


def test_values_of_different_types_are_compared_as_text():
    old = "define D(n) detect A(v > 10) as a assign n = a.v"
    (row,) = compare(found(old), found(old.replace("= a.v", "= 'eleven'"))).to_pylist()
    assert (row["change"], row["n"], json.loads(row["before"])) == ("changed", "eleven", {"n": "11"})


def test_lists_are_compared_as_a_whole():
    plain = found("define D detect A(v > 9) as a")
    places = [name for name in plain.column_names if name != "events"]
    old, new = (
        plain.select(places).append_column("rows", [lists]).append_column("events", plain.column("events"))
        for lists in ([["x"], ["y"]], [["x"], ["y", "z"]])
    )
    table = compare(old, new)
    assert table.column("change").to_pylist() == ["same", "changed"]
    assert json.loads(table.column("before")[1].as_py()) == {"rows": ["y"]}


def test_what_has_another_id_is_matched_by_its_events():
    plain = "define D detect A(v > 9) as a and B(v > 9) as b within 9 s"
    turned = "define D detect B(v > 9) as b and A(v > 9) as a within 9 s"
    nested = "define X detect A(v > 9) define D detect X as a and B(v > 9) as b within 9 s"
    ids = [set(found(text).column("id").to_pylist()) for text in (plain, turned, nested)]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert {kind: len(rows) for kind, rows in changes(plain, turned).items()} == {"same": 4}
    assert {kind: len(rows) for kind, rows in changes(plain, nested).items()} == {"same": 4}


def test_several_detections_of_the_same_events_go_together_by_id_first():
    both = "define D detect A(v > 9) as a and A(v > 9) as b within 9 s"
    one = "define D detect A(v > 9) as a then A(v > 9) as b within 9 s"
    assert found(both).num_rows == 2
    table = compare(found(both), found(one))
    assert sorted(table.column("change").to_pylist()) == ["dropped", "same"]
    same = table.filter([row == "same" for row in table.column("change").to_pylist()])
    assert same.column("id").to_pylist() == found(one).column("id").to_pylist()


def test_windows_over_the_same_events_are_told_apart():
    old = "define D(n) over 10 s every 2 s detect A(v = 5) assign n = count(A)"
    new = "define D(n) over 8 s every 2 s detect A(v = 5) assign n = count(A)"
    told = changes(old, new)
    assert {kind: len(rows) for kind, rows in told.items()} == {"same": 4, "dropped": 1}


def test_another_type_is_another_finding():
    assert changes("define D detect A(v > 10)", "define E detect A(v > 10)") == {
        "added": [["a11"]],
        "dropped": [["a11"]],
    }


def test_attributes_named_like_the_columns_of_a_comparison_get_an_underscore():
    text = "define D(change, before) detect A(v > 10) as a assign change = 'x', before = 2"
    (row,) = compare(found(text), found(text)).to_pylist()
    assert (row["change"], row["before"], row["change_"], row["before_"]) == ("same", None, "x", 2)


def test_nothing_compared_with_nothing_is_nothing():
    table = compare(found("define D detect A", []), found("define D detect A", []))
    assert table.num_rows == 0
    assert table.column_names == [
        "id", "type", "start", "end", "geometry", "change", "before", "events",
    ]  # fmt: skip
