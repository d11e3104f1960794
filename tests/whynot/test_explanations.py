"""What an explanation can be turned into, and where events may come from."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import whimbrel as wb
from whimbrel.graph.custom import restriction, window
from whimbrel.graph.policies import SelectionPolicy
from whimbrel.store import Store

QUERY = """
define Brake
  detect Position(speed > 30) as a then Position as b within 5 s
  where b.speed < a.speed / 2
  assign drop = a.speed - b.speed
  group by vehicle
"""
ROWS = [
    {"id": "p0", "type": "Position", "time": 0, "vehicle": "A", "speed": 40.0},
    {"id": "p1", "type": "Position", "time": 3, "vehicle": "A", "speed": 25.0},
    {"id": "p2", "type": "Position", "time": 9, "vehicle": "B", "speed": 40.0},
    {"id": "p3", "type": "Position", "time": 10, "vehicle": "B", "speed": 10.0},
]
TEXT = """\
not matched for vehicle = A
4 events processed: Position (4)

Brake: no detection
  nearest misses (1):
  1. 1 of 2 parts (vehicle = A)
     a: Position p0 at 1970-01-01T00:00:00Z
     b: Position p1 at 1970-01-01T00:00:03Z
     -> b: b.speed was 25, needed < 20 (a.speed / 2)"""


@pytest.fixture
def query() -> wb.Query:
    return wb.compile(QUERY)


def test_as_text(query):
    assert str(wb.why(query, ROWS, key="A")) == TEXT


def test_what_was_found_is_shown(query):
    assert str(wb.why(query, ROWS, key="B")).splitlines()[3:] == [
        "Brake: 1 detection",
        "  found: events p2, p3 from 1970-01-01T00:00:09Z to 1970-01-01T00:00:10Z",
    ]


def test_as_plain_data(query):
    found = json.loads(json.dumps(wb.why(query, ROWS, key="A", at=3_000_000).to_dict()))
    assert (found["matched"], found["key"], found["at"]) == (
        False,
        {"vehicle": "A"},
        "1970-01-01T00:00:03.000000Z",
    )
    (miss,) = found["findings"][0]["misses"]
    assert miss["parts"][1]["event"]["events"] == ["p1"]
    assert miss["reasons"] == [
        {
            "kind": "condition",
            "part": "b",
            "text": "b.speed was 25, needed < 20 (a.speed / 2)",
            "condition": "b.speed < a.speed / 2",
            "events": [],
        }
    ]


def test_as_html(query):
    page = wb.why(query, [{**row, "vehicle": "<b>"} for row in ROWS[:2]])._repr_html_()
    assert "<td>Brake</td><td>vehicle = &lt;b&gt;</td>" in page
    assert "b.speed was 25, needed &lt; 20 (a.speed / 2)" in page


@pytest.mark.parametrize("at", ["1970-01-01T00:00:03Z", datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC), 3_000_000])
def test_times_as_people_have_them(query, at):
    assert wb.why(query, ROWS, at=at, around="1 s").at == 3_000_000


def test_events_from_files_and_tables(query, tmp_path):
    table = pa.Table.from_pylist(ROWS)
    (tmp_path / "drive.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    for events in (table, table.to_pandas(), str(tmp_path / "drive.jsonl"), [tmp_path / "drive.jsonl"]):
        assert str(wb.why(query, events, key="A")) == TEXT


def test_events_from_a_store(query, tmp_path):
    store = Store.create(tmp_path / "events")
    store.append(ROWS)
    found = wb.why(query, store, key="A")
    assert [str(reason) for reason in found.misses[0].reasons] == [
        "b: b.speed was 25, needed < 20 (a.speed / 2)"
    ]


def test_a_bad_file_is_named(query, tmp_path):
    (tmp_path / "bad.csv").write_text("type,speed\nPosition,3\n", encoding="utf-8")
    with pytest.raises(wb.DataError, match=r"bad\.csv.*no column says when"):
        wb.why(query, tmp_path / "bad.csv")


def test_rows_of_files_that_are_no_events_are_told(query, tmp_path):
    (tmp_path / "drive.csv").write_text("type,time,speed\nPosition,soon,3\nPosition,1,3\n", encoding="utf-8")
    (rejected,) = wb.why(query, tmp_path / "drive.csv").unprocessed
    assert (rejected.kind, rejected.count) == ("rejected", 1)
    assert "soon" in rejected.shown[0]


class Each(wb.CustomOperator):
    """Give one detection for each event."""

    def process(self, events):
        return [{} for _ in events]


def test_an_operator_in_python_explains_itself():
    policy = SelectionPolicy((window("A", 1),), restriction("1 min"))
    query = wb.custom_query("Seen", Each, ["A"], policy)
    found = wb.why(query, [{"type": "A", "time": 0}])
    assert found.matched
    assert found.findings[0].notes == ("Each is written in Python and explains itself; it read 1 event of A",)


def test_the_cases_of_a_definition_are_told_apart():
    query = wb.compile("""
        define X
          case 0: detect A(v > 5)
          case 1: detect B(v > 7)
    """)
    found = wb.why(query, [{"type": "A", "time": 0, "v": 9}, {"type": "B", "time": 0, "v": 6}])
    assert [
        (f.case, f.detections, [str(r) for m in f.misses for r in m.reasons]) for f in found.findings
    ] == [
        ("0", 1, []),
        ("1", 0, ["B: v was 6, needed > 7"]),
    ]
    assert "X (case 1): no detection" in str(found)


def test_a_function_that_fails_on_events_that_were_filtered_out():
    @wb.function(returns="float")
    def inverse(value):
        return 1 / value

    query = wb.compile(
        "define X detect A(v > 0) as a and B as b within 5 s where inverse(a.v) > b.v", functions=[inverse]
    )
    found = wb.why(query, [{"type": "A", "time": 0, "v": 0}, {"type": "B", "time": 1, "v": 1}])
    texts = [str(reason) for miss in found.misses for reason in miss.reasons]
    assert "a: v was 0, needed > 0" in texts


@pytest.mark.parametrize(
    "pattern", ["B{1,1} as a within 1 s", "B{2,2} as a within 1 s", "B as a then C as c within 1 s"]
)
def test_events_that_nobody_reads_do_not_change_the_order_of_what_is_told(pattern):
    # The first source is known by an event that the query does not read.
    rows = [
        {"id": "e1", "type": "A", "time": 0, "source": "s"},
        {"id": "e2", "type": "B", "time": 0, "source": "t"},
        {"id": "e3", "type": "B", "time": 1, "source": "s"},
    ]
    query = wb.compile(f"define X detect {pattern} group by source")
    session = wb.Session(query, remember="1 h")
    session.push(rows)
    session.advance(datetime(1970, 1, 1, 1, tzinfo=UTC))
    told = [[str(finding) for finding in each.findings] for each in (session.why(), wb.why(query, rows))]
    assert told[0] == told[1]
