"""Nothing has entered because a query was started, a region was edited, or a session was restarted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import whimbrel as wb
from whimbrel.errors import StateError


def sample(second: int, x: float, source: str = "v") -> dict:
    return {"type": "T", "time": second, "id": f"{source}{second}", "source": source, "x": x, "y": 5.0}


def events(table) -> list[str]:
    return [" ".join(row) for row in table.column("events").to_pylist()]


def depot(width: int) -> wb.Query:
    return wb.compile(f"region Depot = box(0, 0, {width}, 10) define In detect T enters Depot")


def test_a_region_that_grows_over_a_mover_is_not_entered():
    session = wb.Session(depot(10))
    assert events(session.push([sample(0, 20), sample(1, 20)])) == []
    session.remove("In")
    session.add(depot(30))
    assert events(session.push([sample(2, 20), sample(3, 21)])) == []
    assert events(session.push([sample(4, 40), sample(5, 25)])) + events(session.close()) == ["v4 v5"]


def test_a_region_that_shrinks_away_from_a_mover_is_not_left():
    text = "region Depot = box(0, 0, {}, 10) define Out detect T leaves Depot"
    session = wb.Session(wb.compile(text.format(30)))
    session.push([sample(0, 20), sample(1, 20)])
    session.remove("Out")
    session.add(wb.compile(text.format(10)))
    assert events(session.push([sample(2, 20), sample(3, 21)])) + events(session.close()) == []


def write_layer(file: Path, **shops: tuple[int, int]) -> None:
    features = [
        {
            "type": "Feature",
            "properties": {"shop": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x0, 0], [x1, 0], [x1, 9], [x0, 9], [x0, 0]]],
            },
        }
        for name, (x0, x1) in shops.items()
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def test_a_layer_whose_regions_are_edited_invents_nothing(tmp_path):
    file = tmp_path / "shops.geojson"
    text = f"region Shops = layer('{file.as_posix()}', name = 'shop') define In detect T enters Shops"
    write_layer(file, a=(0, 10), b=(50, 60))
    session = wb.Session(wb.compile(text))
    session.push([sample(0, 20), sample(0, 55, "w"), sample(1, 20), sample(1, 55, "w")])
    write_layer(file, a=(0, 30), b=(50, 60), c=(54, 58))
    session.remove("In")
    session.add(wb.compile(text))
    rows = [
        sample(2, 20),
        sample(2, 55, "w"),
        sample(3, 40),
        sample(3, 40, "w"),
        sample(4, 55),
        sample(5, 56),
    ]
    found = [*session.push(rows).to_pylist(), *session.close().to_pylist()]
    assert [(row["events"], row["region"]) for row in found] == [(["v3", "v4"], "b"), (["v3", "v4"], "c")]


def test_a_restart_neither_invents_nor_forgets():
    session = wb.Session(depot(10))
    session.push([sample(0, 20), sample(1, 5, "w"), sample(2, 20)])
    again = wb.Session(depot(10))
    again.restore(session.snapshot())
    rows = [sample(3, 6, "w"), sample(4, 5), sample(5, 6)]
    assert events(again.push(rows)) + events(again.close()) == ["v2 v4"]


def test_a_restart_with_an_edited_region_begins_anew():
    session = wb.Session(depot(10))
    session.push([sample(0, 20), sample(1, 20)])
    edited = wb.Session(depot(30))
    with pytest.raises(StateError, match="another version of the query 'In'"):
        edited.restore(session.snapshot())
    edited = wb.Session(depot(30))
    assert events(edited.push([sample(2, 20), sample(3, 20)])) + events(edited.close()) == []


@pytest.mark.parametrize("phrase", ["comes within 5 m of T as b", "leaves T as b beyond 5 m margin 50 m"])
def test_two_movers_do_nothing_because_a_query_is_replaced(phrase):
    query = wb.compile(f"define D detect T as a {phrase}")
    session = wb.Session(query)
    session.push([sample(0, 0), sample(0, 40, "w"), sample(1, 36), sample(1, 40, "w"), sample(2, 36)])
    session.remove("D")
    session.add(query)
    rows = [sample(3, 36), sample(3, 40, "w"), sample(4, 37)]
    assert events(session.push(rows)) + events(session.close()) == []
