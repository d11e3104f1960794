"""What detections are about is read off the graph, and telling it changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.reference.strategies import event_lists, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.backtesting.keys import group_keys, keyed, with_keys, without_twins
from whimbrel.graph.query import Query

EVENTS = [
    {
        "id": f"e{n}",
        "type": "P",
        "time": 20 * n,
        "speed": n % 7,
        "lane": n % 2,
        "source": f"s{n % 3}",
        "x": 100.0 * n,
        "y": 0.0,
    }
    for n in range(60)
]

SPREAD = """
define Mean(m) aggr every 10 min
  <pre> detect P assign s = sum(P.speed), n = count(P)
  <post> where m = sum(s) / sum(n) group by lane
"""


@given(graphs(), event_lists())
def test_the_detections_stay_as_they_are(graph, events):
    query = Query(graph)
    plain = wb.detect(query, event_table(events))
    found, keys = without_twins(wb.detect(with_keys(query), event_table(events)))
    assert plain.equals(found, check_metadata=True)
    assert keys.num_rows == found.num_rows


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("define Fast detect P(speed > 5) group by source", "source=s0"),
        ("define Fast detect P(speed > 5) group by source, cell(500 m)", "source=s0, cell=1:0"),
        (
            "define Two(v) detect P(speed > 5) as a then P as b within 50 s assign v = 1 group by lane",
            "lane=0",
        ),
        ("define Ab detect P(speed > 4) then not P(speed < 2) as n for 100 s group by source", "source=s0"),
        ("define Runs detect P(speed > 4){2} as p within 200 s group by source", "source=s0"),
        ("define Either detect P(speed > 4) or P(speed < 0) as b group by source", "source=s2"),
        ("define Jam(n) every 10 min detect P assign n = count(P) group by lane", "lane=0"),
        (SPREAD, "lane=0"),
        ("define Fast detect P(speed > 5)", "all"),
        ("define Fast detect P(speed > 5) group by nothing", "nothing=null"),
    ],
)
def test_every_kind_of_definition_tells_what_it_groups_by(text, first):
    query = wb.compile(text)
    found, keys = without_twins(wb.detect(with_keys(query), EVENTS))
    assert keyed(found, keys, query, None).column("~key")[0].as_py() == first


def test_the_key_of_every_detection_is_that_of_its_events():
    query = wb.compile("define Two(v) detect P as a then P as b within 70 s assign v = 1 group by source")
    found, keys = without_twins(wb.detect(with_keys(query), EVENTS))
    table = keyed(found, keys, query, None)
    assert table.num_rows > 50
    for key, events in zip(table.column("~key").to_pylist(), table.column("events").to_pylist(), strict=True):
        assert {f"source=s{int(event[1:]) % 3}" for event in events} == {key}


def test_definitions_with_different_keys_each_have_their_own():
    query = wb.compile(
        "define A detect P(speed > 5) group by lane define B detect P(speed < 1) group by source"
    )
    assert group_keys(query) == {"A": ("lane",), "B": ("source",)}
    found, keys = without_twins(wb.detect(with_keys(query), EVENTS))
    table = keyed(found, keys, query, None)
    pairs = set(zip(table.column("type").to_pylist(), table.column("~key").to_pylist(), strict=True))
    assert pairs == {("A", "lane=0"), ("A", "lane=1"), *(("B", f"source=s{n}") for n in range(3))}
