"""The map of deliveries: whose interests were where, and what each object sees at any time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.io.test_map import embedded

import whimbrel as wb
from whimbrel.io.frames import positions
from whimbrel.io.map import map_html
from whimbrel.io.map_deliveries import MAX_INTERESTS
from whimbrel.model.deliveries import without_areas
from whimbrel.model.schema import Coordinates

QUERY = """
event Car(kind: string)
define Bad detect Crash as c
around Car(kind = 'medic') as rescue
  within 150 m report Bad lifetime 1 min
  {clauses}
"""


def event(what: str, time: int, x: float, source: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": f"{what}{time}", "type": what, "time": time, "x": x, "y": 0.0, "source": source, **more}


EVENTS = [
    event("Car", 0, 0, "m1", kind="medic"),
    event("Crash", 1, 100),
    event("Car", 10, 200, "m1", kind="medic"),
    event("Crash", 12, 300),
    event("Car", 20, 400, "m1", kind="medic"),
    event("Car", 30, 900, "m1", kind="medic"),
    event("Car", 50, 900, "m2", kind="medic"),
]


def page(clauses: str, *, events: bool = True, areas: bool = True) -> dict[str, Any]:
    found = wb.detect(wb.compile(QUERY.format(clauses=clauses)), EVENTS).table
    given = positions(EVENTS, Coordinates.PLANE) if events else None
    html = map_html(detections=found if areas else without_areas(found), events=given)
    data: dict[str, Any] = embedded(html)
    return data


def spans(data: dict[str, Any]) -> list[tuple[str, float, float]]:
    return [(each["attributes"]["change"], each["from"], each["until"]) for each in data["detections"]]


def test_what_is_told_is_seen_until_it_is_told_otherwise():
    assert spans(page("deliver changes")) == [
        ("added, live", 1_000, 10_000),
        ("kept, history", 10_000, 20_000),
        ("added, live", 12_000, 20_000),
        ("removed, history", 20_000, 20_000),
        ("kept, history", 20_000, 30_000),
        ("removed, history", 30_000, 30_000),
    ]


def test_what_all_interests_tell_is_seen_while_they_last():
    seen = spans(page(""))
    assert seen[:2] == [("added, live", 1_000, 10_000), ("added, history", 10_000, 20_000)]
    assert all(begin <= end for _, begin, end in seen)


def test_interests_are_drawn_as_they_move():
    data = page("deliver changes")
    assert data["focals"] == [{"name": "m1", "query": "rescue", "object": 0}]
    first, second = data["interests"][:2]
    assert (first["from"], first["until"]) == (0, 10_000)
    assert (second["from"], second["until"]) == (10_000, 20_000)
    assert (first["centre"], second["centre"]) == ([0, 0], [200, 0])
    assert first["box"] == [-150, -150, 150, 150]
    assert data["box"][0] == -150
    assert data["facts"].startswith(f"{len(data['detections'])} deliveries in 5 positions")
    assert "Interests in which nothing was told" in data["notes"][-1]


def test_without_areas_and_events_what_is_told_is_shown():
    data = page("deliver changes", events=False, areas=False)
    assert data["interests"] == []
    assert data["focals"] == [{"name": "m1", "query": "rescue", "object": None}]
    assert data["detections"][0]["attributes"]["told to"] == "m1 (rescue)"


def test_plain_detections_are_shown_as_ever():
    html = wb.detect(wb.compile("define Bad detect Crash"), EVENTS).map()._repr_html_()
    assert "&quot;focals&quot;:[],&quot;interests&quot;:[]" in html


def test_too_many_interests_are_said_to_be(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("whimbrel.io.map_deliveries.MAX_INTERESTS", 1)
    data = page("deliver changes")
    assert len(data["interests"]) == 1
    assert re.search(r"The first 1 of \d interests are shown", data["notes"][-1])
    assert MAX_INTERESTS > 1
