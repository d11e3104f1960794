"""Why somebody was told of a detection, or was not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.cli.main import main
from whimbrel.errors import QueryError
from whimbrel.store import Store
from whimbrel.whynot import DELIVERY_KINDS, Explanation

QUERY = """
event Car(name: string, kind: string)
event Crash(level: int, name: string)
define Bad
  detect Crash(level > 1) as c
define Busy over 10 s every 5 s
  detect Crash assign n = count(Crash) having n > 1
around Car(kind = 'medic') as rescue
  group by name
  {interest}
  report {report}
  {clauses}
"""


def event(what: str, ident: str, time: float, x: float, **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": what, "time": time, "x": x, "y": 0.0, **more}


EVENTS = [
    event("Car", "u1", 0, 0, name="m1", kind="medic"),
    event("Crash", "c1", 1, 100, level=2),
    event("Crash", "c2", 2, 1012, level=2),
    event("Car", "u2", 5, 300, name="m1", kind="medic"),
    event("Crash", "c3", 6, 350, level=2, name="m1"),
    event("Car", "u3", 90, 1000, name="m1", kind="medic"),
    event("Car", "u4", 90, 0, name="x1", kind="car"),
]


def query(report: str = "Bad", clauses: str = "", interest: str = "within 400 m") -> wb.Query:
    return wb.compile(QUERY.format(report=report, clauses=clauses, interest=interest))


def texts(answer: Explanation) -> dict[str, tuple[str, str]]:
    """Give the kind and text of each answer, by the last event of the detection."""
    return {each.detection.events[-1]: (each.kind, each.text) for each in answer.deliveries}


def test_what_was_told_live_and_again():
    kind, text = texts(wb.why(query(clauses="lifetime 1 min"), EVENTS, focal="m1"))["c1"]
    assert kind == "told"
    assert text == "told in interest 1, live, at 1970-01-01T00:00:01Z; 1 later interest had it, too"


def test_what_was_told_as_history():
    kind, text = texts(wb.why(query(clauses="lifetime 2 min"), EVENTS, focal="m1"))["c2"]
    assert (kind, text) == (
        "told",
        "told in interest 3, as history at 1970-01-01T00:01:30Z; it was known at 1970-01-01T00:00:02Z",
    )


def test_it_lay_outside_the_interest():
    answer = wb.why(query(), [*EVENTS[:5]], focal="m1")
    assert texts(answer)["c2"] == (
        "away",
        "c2 lay 1012 m from it, the interest was 400 m (interest 1, from 1970-01-01T00:00:00Z)",
    )
    assert not wb.why(query(), EVENTS[:3:2], focal="m1").matched
    boxed = wb.why(query(interest="box 800 m, 800 m"), EVENTS[:5], focal="m1")
    assert texts(boxed)["c2"][1].startswith("c2 lay 612 m outside the interest (box 800 m, 800 m)")


def test_on_the_globe_metres_are_metres():
    rows = [{**row, "lon": row["x"] / 111_195.08, "lat": row["y"]} for row in EVENTS[:3]]
    rows = [{name: value for name, value in row.items() if name not in "xy"} for row in rows]
    for interest, expected in (("within 400 m", "1012 m from it"), ("box 800 m, 10 m", "612 m outside")):
        answer = wb.why(query(interest=interest), rows, focal="m1", coordinates="lonlat")
        assert expected in texts(answer)["c2"][1]


def test_it_was_older_than_the_lifetime():
    kind, text = texts(wb.why(query(clauses="lifetime 10 s"), EVENTS, focal="m1"))["c2"]
    assert (kind, text) == (
        "old",
        (
            "it was known at 1970-01-01T00:00:02Z, 1 min 28 s before interest 3 began at "
            "1970-01-01T00:01:30Z; the lifetime is 10 s"
        ),
    )
    assert texts(wb.why(query(), EVENTS, focal="m1"))["c2"][1].endswith("there is no lifetime")


def test_the_interest_had_ended():
    silent = query(clauses="until silent for 3 s")
    late = [*EVENTS[:2], event("Crash", "c9", 30, 100, level=2)]
    assert texts(wb.why(silent, late, focal="m1"))["c9"] == (
        "ended",
        (
            "it was known at 1970-01-01T00:00:30Z; interest 1, which it lies in, ended at "
            "1970-01-01T00:00:03.000001Z"
        ),
    )


def test_its_own_event_does_not_count():
    answer = texts(wb.why(query(clauses="excluding itself"), EVENTS, focal="m1"))
    assert answer["c3"] == ("own", "c3 came from it, and the query is excluding itself")
    assert answer["c1"][0] == "told"


@pytest.mark.parametrize(
    ("focal", "expected"),
    [
        ("x1", "it is not followed: 1 Car of it came, but none with a place that meets kind = 'medic'"),
        ("nobody", "no Car with name = nobody came; there are m1"),
    ],
)
def test_who_is_not_followed(focal, expected):
    assert set(texts(wb.why(query(), EVENTS, focal=focal)).values()) == {("unfollowed", expected)}


def test_who_is_not_on_the_list():
    plain = wb.compile(QUERY.format(report="Bad", clauses="", interest="within 1 m"), emit="Bad")
    listed = wb.MobileQuery(plain, wb.focal("Car", key="name", listed=[{"key": "m7"}]), "400 m")
    only = wb.follow(plain, "m7", type="Car", key="name", within="400 m")
    assert (
        "not in the list (3 Cars of it came)" in texts(wb.why(listed.compile(), EVENTS, focal="m1"))["c1"][1]
    )
    assert "the query follows m7" in texts(wb.why(only.compile(), EVENTS, focal="m1"))["c1"][1]


def test_what_an_interest_counts_is_what_lies_in_it():
    rows = [*EVENTS[:2], event("Crash", "c4", 2, 120, level=1), event("Crash", "c5", 3, 5000, level=1)]
    answer = wb.why(query(report="Busy"), rows, focal="m1")
    assert not answer.matched
    away = [each for each in answer.deliveries if "c5" in each.detection.events]
    assert away
    assert {each.kind for each in away} == {"away"}


def test_without_a_detection_the_usual_explanation_is_given():
    answer = wb.why(query(), [EVENTS[0], {**EVENTS[1], "level": 1}], focal="m1")
    assert answer.deliveries == ()
    assert "level was 1, needed > 1" in str(answer)
    assert str(answer).startswith("not told")


def test_all_objects_are_asked_about_if_none_is_named():
    rows = [*EVENTS, event("Car", "v1", 0, 1000, name="m2", kind="medic")]
    answer = wb.why(query(), rows)
    assert {each.focal for each in answer.deliveries} == {"m1", "m2"}
    found = json.loads(json.dumps(answer.to_dict()))["deliveries"]
    assert {each["kind"] for each in found} <= set(DELIVERY_KINDS)
    assert "m2" in answer._repr_html_()


def test_from_an_event_store_and_the_command_line(tmp_path):
    store = Store.create(tmp_path / "s", coordinates="plane")
    store.append(EVENTS)
    assert texts(wb.why(query(), store, focal="m1"))["c1"][0] == "told"
    (tmp_path / "q.wbl").write_text(QUERY.format(report="Bad", clauses="", interest="within 400 m"))
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in EVENTS))
    asked = ["why", str(tmp_path / "q.wbl"), "--events", str(tmp_path / "e.jsonl"), "--focal", "x1"]
    assert "it is not followed: 1 Car of it came" in CliRunner().invoke(main, asked).stdout


def test_what_cannot_be_asked():
    with pytest.raises(QueryError, match="follows nothing"):
        wb.why(wb.compile("define X detect Crash"), EVENTS, focal="m1")
    session = wb.Session(query())
    with pytest.raises(QueryError, match="does not remember where objects were"):
        session.why()


@given(
    crashes=st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 12)), min_size=1, max_size=8),
    moves=st.lists(
        st.tuples(st.sampled_from(("m1", "m2")), st.integers(0, 60), st.integers(0, 9)), max_size=8
    ),
    lifetime=st.sampled_from(("0 s", "10 s", "1 h")),
    clauses=st.sampled_from(("", "refresh when moved 150 m", "until silent for 9 s", "excluding itself")),
    interest=st.sampled_from(("within 250 m", "box 300 m, 20 m", "within 250 m of situations")),
)
def test_who_is_said_to_be_told_is_told(crashes, moves, lifetime, clauses, interest):
    asked = query(clauses=f"lifetime {lifetime} {clauses}", interest=interest)
    rows = [event("Crash", f"c{n}", *where, level=2) for n, where in enumerate(crashes)]
    rows = [{**row, "x": row["x"] * 100.0, "name": ("m1", None)[n % 2]} for n, row in enumerate(rows)]
    for n, (name, time, place) in enumerate(moves):
        rows.append(event("Car", f"u{n}", time, place * 100.0, name=name, kind="medic"))
    told = {(row["focal"], *row["events"]) for row in wb.detect(asked, rows).to_pylist()}
    for focal in ("m1", "m2"):
        answer = wb.why(asked, rows, focal=focal, limit=100)
        assert len(answer.deliveries) == len(crashes)
        for each in answer.deliveries:
            assert each.is_told == ((focal, *each.detection.events) in told)
            assert each.kind != "other"
