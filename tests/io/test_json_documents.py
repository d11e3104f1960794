"""Large JSON documents are cut into their parts without being held, whatever is in them."""

from __future__ import annotations

import io
import json
import logging
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.io import _json_parts, read_events
from whimbrel.model.batch import normalise
from whimbrel.model.reading import Reading

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
layouts = st.sampled_from([None, 0, 2])


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in read_events(path, **options) for row in batch.to_pylist()]


def rejected(path: Path) -> list[dict[str, Any]]:
    pieces = read_events(path).pieces()
    return [row for piece in pieces if piece.rejected for row in piece.rejected.to_pylist()]


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@given(st.lists(values, max_size=6), layouts, st.booleans(), st.integers(1, 40))
def test_the_elements_of_a_list_become_lines(
    elements: list[Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    stream = io.BytesIO(text[1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json_parts.read_block, "__defaults__", (size,))
        lines = io.BufferedReader(_json_parts.ListLines(stream, is_whole=True)).read().split(b"\n")
    found = [json.loads(line.decode(errors="surrogatepass")) for line in lines if line.strip()]
    assert found == elements


@given(st.dictionaries(st.text(max_size=5), values, max_size=6), layouts, st.integers(1, 40))
def test_the_members_of_an_object_are_found_with_their_places(
    content: dict[str, Any], indent: int | None, size: int
) -> None:
    text = json.dumps(content, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json_parts.read_block, "__defaults__", (size,))
        members, rest = _json_parts.members_of(io.BytesIO(text))
    assert rest == b""
    assert [member.name for member in members] == list(content)
    for member in members:
        value = content[member.name]
        if isinstance(value, list | dict):
            assert json.JSONDecoder().raw_decode(text[member.start - 1 :].decode())[0] == value
            begins = value[0] if isinstance(value, list) and value else None
            expected = {list: "[", dict: "{"}.get(type(begins), "")
            assert member.holds == expected or isinstance(value, dict)
        else:
            assert member.value == value


def test_a_list_in_an_object_is_the_events_and_what_stands_beside_it_their_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "whimbrel.io")
    buses = [{"bus": "a", "lon": 1.5, "lat": 2.0}, {"bus": "b", "lon": 3.0, "lat": 4.0, "city": "Ulm"}]
    content = {
        "feed": "x",
        "city": "Bonn",
        "buses": buses,
        "time": 1700000000,
        "meta": {"a": [1]},
        "tags": [1],
    }
    path = written(tmp_path / "a.json", content)
    assert rows(path) == [
        {"bus": "a", "lon": 1.5, "lat": 2.0, "city": None, "feed": "x", "time": 1700000000},
        {"bus": "b", "lon": 3.0, "lat": 4.0, "city": "Ulm", "feed": "x", "time": 1700000000},
    ]
    assert "the events are the list 'buses'; beside it stand feed, city, time" in caplog.text


def test_two_lists_in_an_object_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", {"buses": [{"a": 1}], "trams": [{"a": 1}]})
    with pytest.raises(DataError, match=r"several lists of objects \('buses', 'trams'\).*jq \.buses a\.json"):
        read_events(path)


def test_an_object_with_an_empty_list_is_no_events(tmp_path: Path) -> None:
    assert rows(written(tmp_path / "a.json", {"stamp": 3, "buses": []})) == []


def test_an_object_without_a_list_of_objects_is_one_event(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", json.dumps({"type": "a", "time": 1, "tags": [1, 2]}, indent=1))
    assert rows(path) == [{"type": "a", "time": 1, "tags": "[1, 2]"}]


def test_aircraft_of_dump1090_have_the_time_of_their_position(tmp_path: Path) -> None:
    aircraft = [
        {"hex": "4b1803", "type": "adsb_icao", "lat": 47.1, "lon": 8.5, "alt_baro": 31000, "seen_pos": 1.5},
        {"hex": "4b1804", "alt_baro": "ground", "gs": 3.2, "seen": 4},
    ]  # fmt: skip
    path = written(tmp_path / "aircraft.json", {"now": 1700000000.0, "messages": 7, "aircraft": aircraft})
    first, second = rows(path)
    assert (first["source"], first["time"], first["lon"], first["lat"]) == ("4b1803", 1699999998.5, 8.5, 47.1)
    assert (first["alt_baro"], first["on_ground"], first["position_type"]) == (31000, False, "adsb_icao")
    assert (second["time"], second["alt_baro"], second["on_ground"]) == (1699999996.0, None, True)
    (batch,) = read_events(path)
    assert normalise(batch, reading=Reading.of(default_type="Plane")).events.num_rows == 2


def test_states_of_opensky_have_their_documented_columns(tmp_path: Path) -> None:
    state = [
        "4b1803",
        "SWR1  ",
        "Switzerland",
        1699999990,
        1699999999,
        8.5,
        47.1,
        9000.0,
        False,
        230.5,
        90.0,
        0.0,
    ]
    rest = [None, 9100.0, "1000", False, 0]
    late = ["4b1804", None, "France", None, 1699999991, None, None, None, True, 0.0, 10.0, None]
    path = written(
        tmp_path / "a.json", {"time": 1700000000, "states": [[*state, *rest], [*late, *rest], [1]]}
    )
    first, second = rows(path)
    assert (first["source"], first["callsign"], first["time"]) == ("4b1803", "SWR1", 1699999990)
    assert (first["lon"], first["lat"], first["velocity"], first["geo_altitude"]) == (
        8.5,
        47.1,
        230.5,
        9100.0,
    )
    assert (second["time"], second["lon"], second["on_ground"]) == (1699999991, None, True)
    assert [bad["reason"] for bad in rejected(path)] == [
        "the element is not an aircraft: it is not a list of 17 values"
    ]


def test_a_list_that_breaks_off_keeps_what_stands_before(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.json", '[{"type": "a", "time": 1},\n {"type": "a", "time": 2}, {"type": "a", "ti'
    )
    assert [row["time"] for row in rows(path)] == [1, 2]
    (bad,) = rejected(path)
    assert bad["row"] == 3
    assert bad["reason"].startswith("the element is not JSON")


def test_a_list_that_is_not_closed_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"type": "a", "time": 1}')
    assert [row["time"] for row in rows(path)] == [1]
    assert rejected(path)[0]["event"] == "(the file ends before the list does)"


def test_text_behind_a_list_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"type": "a", "time": 1}] oops')
    assert [row["time"] for row in rows(path)] == [1]
    assert rejected(path)[0]["event"] == "oops"


def test_an_element_that_is_no_object_is_rejected_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"type": "a", "time": 1}, 3, {"type": "a", "time": 2}]')
    assert [row["time"] for row in rows(path)] == [1, 2]
    assert [(bad["row"], bad["reason"]) for bad in rejected(path)] == [
        (2, "the element is not a JSON object")
    ]


@pytest.mark.slow
def test_memory_does_not_grow_with_a_list(tmp_path: Path) -> None:
    element = json.dumps({"type": "a", "time": 1, "note": "x" * 400})
    path = tmp_path / "a.json"
    path.write_text('{"now": 3, "rows": [' + ", ".join([element] * 100_000) + "]}")
    size = path.stat().st_size
    tracemalloc.start()
    count = sum(batch.num_rows for batch in read_events(path, columns=()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 100_000
    assert peak < 1.5 * size, f"{peak / 1e6:.0f} MB for a file of {size / 1e6:.0f} MB"
