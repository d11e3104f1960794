"""What subscriptions detect: every operator on a few events, and all of them against a naive reading."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lang import cpsl_naive as naive

import whimbrel as wb
from whimbrel.errors import QueryError

HORIZON = "1 h"


def found(text: str, events: list[dict], horizon: str | None = HORIZON) -> list[str]:
    """Detect, and show each detection as the ids of its events, start and end."""
    table = wb.detect(wb.cpsl(text, horizon=horizon), events).to_pylist()
    return sorted(
        f"{'+'.join(sorted(row['events']))} {row['start'].timestamp():g}..{row['end'].timestamp():g}"
        for row in table
    )


def events(text: str) -> list[dict]:
    """Read `a1@0 b1@3..5 c1@7(v=2,x=10)`: ids that begin with the type, times in seconds, attributes."""
    rows = []
    for word in text.split():
        name, _, rest = word.partition("@")
        time, _, values = rest.removesuffix(")").partition("(")
        start, _, end = time.partition("..")
        row = {"id": name, "type": name[0].upper(), "start": int(start), "end": int(end or start)}
        for pair in values.split(",") if values else ():
            key, _, value = pair.partition("=")
            row[key] = float(value) if value.lstrip("-").isdigit() else value
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("subscription", "given_events", "expected"),
    [
        # b starts when a ends: not after it. b ends 5 s after a: still within.
        ("n: =|(A;5)B", "a1@0..2 b1@2..3 b2@3..7 b3@3..8", ["a1+b2 0..7"]),
        ("n: =|(10;5)B", "b1@10 b2@11..15 b3@14..16", ["b2 11..15"]),
        ("n: =|(A;B)C", "a1@0 c1@0 c2@1..3 b1@4 c3@2..4", ["a1+b1+c2 0..4"]),
        ("n: |=(A;5)B", "a1@0..1 b1@6 b2@7", ["a1+b2 0..7"]),
        ("n: |=(A;0)B", "a1@0..1 b1@1 b2@2", ["a1+b2 0..2"]),
        ("n: |=(10;5)B", "b1@15 b2@16", ["b2 16..16"]),
        ("n: |=(A;B)C", "a1@0 b1@2..3 c1@3 c2@4", ["a1+b1+c2 0..4"]),
        ("n: |(A)B", "a1@0..2 b1@2..3 b2@3", ["a1+b1 0..3"]),
        ("n: |(A)A", "a1@0 a2@0", ["a1+a2 0..0", "a1+a2 0..0"]),
        # b1 lies in (a.end, a.end + t] wholly; b3 only begins there.
        ("n: !(A;5)B", "a1@0 b1@5 a2@10 b2@10 b3@14..16 a3@20", ["a2 10..15", "a3 20..25"]),
        ("n: !(A;B)C", "a1@0 c1@1 b1@2 a2@3 c2@3..4 b2@5", ["a2+b2 3..5"]),
        ("n: A && B", "b1@0 a1@1", ["a1+b1 0..1"]),
        ("n: A || B", "b1@0 a1@1 c1@2", ["a1 1..1", "b1 0..0"]),
        # One event that fits both sides is one detection.
        ("n: ARITH:v>1 || ARITH:v<5", "a1@0(v=3)", ["a1 0..0"]),
        ("n: =|(A;5)B || C", "a1@0 b1@1 c1@2", ["a1+b1 0..1", "c1 2..2"]),
        ("n: Q(2)A", "a1@0 b1@1 a2@2 a3@4", ["a1+a2 0..2", "a2+a3 2..4"]),
        ("n: P(2)A", "a1@0 a2@2 a3@5", ["a1+a2 0..2"]),
        # Groups of two within 2 s: 1+2, 2+3, 4+5, 5+6; one after the other and nothing between: 2+3, 4+5.
        ("n: S(2;2;2)A", "a1@0 a2@1 a3@2 a4@8 a5@9 a6@10", ["a2+a3+a4+a5 1..9"]),
        ("n: @(((0,0)(10,0)(10,10)(0,10)))A", "a1@0(x=10,y=5) a2@1(x=11,y=5)", ["a1 0..0"]),
        ("n: DIST(A;<;5)B", "a1@0(x=0,y=0) b1@1(x=3,y=4) b2@2(x=3,y=3)", ["a1+b2 0..2"]),
        ("n: DIST(A;=;5)B", "a1@0(x=0,y=0) b1@1(x=6,y=0) b2@2(x=7,y=0) b3@3(x=3,y=0)", ["a1+b1 0..1"]),
        ("n: DIST(A;>;5)B", "a1@0(x=0,y=0) b1@1(x=5,y=0) b2@2(x=6,y=0)", ["a1+b2 0..2"]),
        ("n: DIST((0,0);<;5)A", "a1@0(x=3,y=4) a2@1(x=3,y=3)", ["a2 1..1"]),
        # The region ends at x = 10: a1 is 5 m away from it, a2 a little more.
        ("n: DIST(((0,0)(10,0)(10,10)(0,10));>;5)A", "a1@0(x=15,y=5) a2@1(x=16,y=5)", ["a2 1..1"]),
        ("n: OVLP(((0,0)(10,0)(10,10)(0,10)))A", "a1@0(x=10,y=10) a2@1(x=11,y=5)", ["a1 0..0"]),
        ("n: SPL(((0,0)(10,0)(10,10)(0,10)))A", "a1@0(x=5,y=6) a2@1(x=5,y=7)", ["a1 0..0"]),
        ("n: SPL(A)B", "a1@0(x=0,y=0) b1@1(x=1,y=0) b2@2(x=1,y=1)", ["a1+b1 0..1"]),
        ("n: OVLP(A)B", "a1@0(x=0,y=0) b1@1(x=0,y=0) b2@2(x=1,y=1)", ["a1+b1 0..1"]),
        # The place of a1 and a2 together is the line between them.
        ("n: IN(A && A)B", "a1@0(x=0,y=0) a2@1(x=8,y=8) b1@2(x=4,y=4) b2@3(x=4,y=5)", ["a1+a2+b1 0..2"] * 2),
    ],
)
def test_each_operator(subscription: str, given_events: str, expected: list[str]):
    assert found(subscription, events(given_events)) == expected


@pytest.mark.parametrize(
    ("predicate", "fitting"),
    [
        ("ARITH:v<2", "1"),
        ("ARITH:v!2", "13"),
        ("ARITH:v<[2;3]", "23"),
        ("ARITH:v<(1;3)", "2"),
        ("ARITH:v<+[2;3]", "1"),
        ("ARITH:v<+(1;3)", "13"),
        ("ARITH:v<+[1;3)", "3"),
        ("ARITH:v<+(1;2]", "13"),
        ("ARITH:v=1 | v>2 & w=0", "1"),
        ("ARITH:v=&x, ARITH:w>&x - 1", "123"),
        ('STRING:s>*"ab"', "12"),
        ('STRING:s*>"b"', "23"),
        ('STRING:s*="b"', "123"),
        ('STRING:s*<"abba"', "2"),
        ('STRING:s<*"cab"', "2"),
        ('STRING:s=*"xbbx"', "3"),
        ('STRING:s!"ab"', "13"),
        ('STRING:s<("ab","x")', "2"),
        ('STRING:s<+("ab","x")', "13"),
        ('STRING:type="A"', "123"),
        ('STRING:type!"A"', ""),
        # 5, 6 and 7 are 101, 110 and 111: bits 1 and 2 of three are 2, 3 and 3.
        ("RFID:PRODUCT =(1;2;3) 11b", "23"),
        ("RFID:PRODUCT <(2;3;3) 0x3", "12"),
    ],
)
def test_each_predicate(predicate: str, fitting: str):
    rows = [
        {"id": str(n), "type": "A", "time": n, "v": n, "w": n, "PRODUCT": 4 + n, "s": text}
        for n, text in enumerate(["abc", "ab", "bb"], start=1)
    ]
    shown = [row.split()[0] for row in found(f"n: {predicate}", rows)]
    assert "".join(shown) == fitting


def test_one_variable_is_one_event_on_every_level():
    text = "n: =|($e;;60)$f;, $e;=(|($a;)B), $f;=(|=($a;;5)C), $a;=A"
    given_events = events("a1@0..5 a2@0..5 b1@3..4 c1@20..21")
    # Both a's are concurrent with b1, and c1 comes after both; e ends at 5, so no f can start after it.
    assert found(text, given_events) == []
    apart = "n: $e; && $f;, $e;=(|($a;)B), $f;=(|=($a;;5)C), $a;=A"
    assert found(apart, given_events) == ["a1+b1+c1 0..21", "a2+b1+c1 0..21"]


def test_different_variables_of_one_subscription_are_different_parts():
    text = "n: $e; && $f;, $e;=(|($a;)B), $f;=(|=($c;;5)C), $a;=A, $c;=A"
    shown = found(text, events("a1@0..5 a2@0..5 b1@3..4 c1@20..21"))
    assert shown == ["a1+a2+b1+c1 0..21"] * 2 + ["a1+b1+c1 0..21", "a2+b1+c1 0..21"]


def test_a_composite_variable_is_one_event_too():
    text = "n: $p; && $q;, $p;=(|($x;)C), $q;=(|($x;)D), $x;=(=|(A;5)B)"
    shown = found(text, events("a1@0 b1@1 a2@10 b2@11 c1@1 d1@11 c2@11 d2@0"))
    assert shown == ["a1+b1+c1+d2 0..1", "a2+b2+c2+d1 10..11"]


def test_predicate_variables_join_events():
    text = 'n: =|(STRING:type="A", STRING:who=&w;60)(STRING:type="B", STRING:who=&w)'
    assert found(text, events("a1@0(who=ann) a2@1(who=bob) b1@5(who=bob)"), None) == ["a2+b1 1..5"]


def test_predicate_variables_join_composites():
    text = 'n: |=((=|(STRING:type="A", ARITH:v=&x;5)B);0)(=|(STRING:type="C", ARITH:v>&x + 1;5)D)'
    given_events = events("a1@0(v=1) a2@0(v=5) b1@1 c1@3(v=3) d1@4")
    assert found(text, given_events) == ["a1+b1+c1+d1 0..4"]


def test_an_absence_can_ask_for_the_same_value():
    text = 'n: !(STRING:type="A", STRING:who=&w;60)(STRING:type="B", STRING:who=&w)'
    given_events = events("a1@0(who=ann) a2@1(who=bob) b1@5(who=bob)")
    assert found(text, given_events, None) == ["a1 0..60"]


def test_only_events_since_the_time_stamp_count():
    given_events = events("a1@0 b1@3 a2@10 b2@12")
    assert found("n: =|(A;20)B, 10", given_events, None) == ["a2+b2 10..12"]
    assert found("n: !(A;5)B, 4", given_events, None) == []
    assert found("n: !(A;5)B, 11", events("a1@11 b1@10..12"), None) == ["a1 11..16"]


def test_subscriptions_of_a_file_can_use_each_other_and_only_the_last_ones_are_reported():
    text = 'hot: STRING:type="A", ARITH:v>30\ntwice: P(60)hot'
    query = wb.cpsl(text)
    assert query.types == ("twice",)
    assert wb.cpsl(text, emit="all").types == ("hot", "twice")
    assert found(text, events("a1@0(v=31) a2@1(v=20) a3@2(v=40)")) == ["a1+a3 0..2"]


def test_the_horizon_bounds_what_has_no_bound():
    given_events = events("a1@0 b1@5 b2@6")
    assert found("n: A && B", given_events, "5 s") == ["a1+b1 0..5"]
    assert found("n: |=(A;1)B", given_events, "5 s") == ["a1+b1 0..5"]


OBJECTS = "$A;=A, $B;=B, $C;=A, $D;=B"
NEAR, FAR = "DIST({};<;50){}", "DIST({};>;50){}"
SAME, IN = "SPL({}){}", "IN({}){}"


def moving(first: str, second: str) -> str:
    """Write that two objects stand in one relation, and within a minute in another."""
    one, two = first.format("$A;", "$B;"), second.format("$C;", "$D;")
    return f"n: =|($e1;;60)$e2;, $e1;=(|($A;)$B; && {one}), $e2;=(|($C;)$D; && {two}), {OBJECTS}"


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        ((NEAR, FAR), ["a1+a2+b1+b2 0..10", "a1+a4+b1+b4 0..30", "a3+a4+b3+b4 20..30"]),  # leave
        ((FAR, NEAR), ["a2+a3+b2+b3 10..20"]),  # hit
        ((FAR, SAME), ["a2+a3+b2+b3 10..20"]),  # reach
        ((FAR, FAR), ["a2+a4+b2+b4 10..30"]),  # external
        ((IN, IN), []),  # internal: they are in one place only once
    ],
    ids=["leave", "hit", "reach", "external", "internal"],
)
def test_motion_of_two_objects(relations: tuple[str, str], expected: list[str]):
    given_events = events(
        "a1@0(x=0,y=0) b1@0(x=10,y=0) a2@10(x=0,y=0) b2@10(x=90,y=0) "
        "a3@20(x=0,y=0) b3@20(x=0,y=0) a4@30(x=0,y=0) b4@30(x=90,y=0)"
    )
    assert found(moving(*relations), given_events) == expected


def test_one_object_passes_by_another():
    near = "|({0})({1}) && DIST({0};<;50)({1}) && DIST({0};>;5)({1})"
    text = (
        f"n: =|($e1;;$e3;)$e2;, $e1;=({near.format('$A', '$B')}), $e2;=(|($C;)$D; && SPL($C;)$D;), "
        f"$e3;=({near.format('$M', '$N')}), {OBJECTS}, $M;=A, $N;=B"
    )
    given_events = events(
        "a1@0(x=0,y=0) b1@0(x=20,y=0) a2@10(x=10,y=0) b2@10(x=10,y=0) a3@20(x=20,y=0) b3@20(x=0,y=0)"
    )
    assert found(text, given_events) == ["a1+a2+a3+b1+b2+b3 0..20"]


def test_a_warning_names_variables_that_nobody_uses():
    query = wb.cpsl("n: A, $b; = (B)")
    assert query.warnings == ("line 1, col 7: $b; is bound, but not used",)


HORIZONS = st.sampled_from([4, 9, 100])


@given(naive.subscriptions, naive.event_lists, HORIZONS)
def test_every_detection_is_what_the_table_says(sub: naive.Sub, rows: list[naive.Event], horizon: int):
    check(sub, wb.cpsl(naive.line(sub), horizon=f"{horizon} s"), rows, horizon)


@given(naive.with_variables, naive.event_lists, HORIZONS)
def test_a_variable_is_one_event_wherever_it_occurs(sub: naive.Sub, rows: list[naive.Event], horizon: int):
    try:
        query = wb.cpsl(naive.line(sub), horizon=f"{horizon} s")
    except QueryError:
        return  # some places cannot be compared, and are refused
    check(sub, query, rows, horizon)


def check(sub: naive.Sub, query: wb.Query, rows: list[naive.Event], horizon: int) -> None:
    found_rows = wb.detect(query, [row.as_dict() for row in rows]).to_pylist()
    actual = Counter(
        (tuple(sorted(row["events"])), row["start"].timestamp(), row["end"].timestamp()) for row in found_rows
    )
    items = naive.detect(sub, rows, horizon)
    assert actual == Counter((tuple(sorted(item.ids)), item.start, item.end) for item in items)
