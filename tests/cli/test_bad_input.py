"""What every reader says of bad files, what it keeps of them, and how `whimbrel detect` ends.

The same table stands in docs/sources-and-sinks.md, and is compared with what happens here.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyais import encode_dict

PAGE = Path(__file__).parents[2] / "docs" / "sources-and-sinks.md"
TIMES = ("2024-05-01T08:00:00Z", "2024-05-01T08:00:10Z", "2024-05-01T08:00:20Z")
FAR = "12024-05-01T08:00:10Z"
NOTES = ("one", "two", "three")

Parts = tuple[str, list[str], str]
"""What stands before the events, the three events, and what stands behind them."""
Maker = Callable[[Sequence[str]], Parts]


def _csv(times: Sequence[str]) -> Parts:
    rows = [f"Seen,{time},{note},8.5,47.0\n" for time, note in zip(times, NOTES, strict=True)]
    return "type,time,note,lon,lat\n", rows, ""


def _objects(times: Sequence[str]) -> list[str]:
    pairs = zip(times, NOTES, strict=True)
    return [
        json.dumps({"type": "Seen", "time": time, "note": note, "lon": 8.5, "lat": 47.0})
        for time, note in pairs
    ]


def _features(times: Sequence[str]) -> list[str]:
    point = {"type": "Point", "coordinates": [8.5, 47.0]}
    return [
        json.dumps(
            {"type": "Feature", "geometry": point, "properties": {"type": "Seen", "time": time, "note": note}}
        )
        for time, note in zip(times, NOTES, strict=True)
    ]


def _moving(times: Sequence[str]) -> list[str]:
    return [
        json.dumps(
            {
                "type": "Feature",
                "properties": {"type": "Seen", "note": note},
                "temporalGeometry": {
                    "type": "MovingPoint",
                    "datetimes": [time],
                    "coordinates": [[8.5, 47.0]],
                },
            }
        )
        for time, note in zip(times, NOTES, strict=True)
    ]


def _listed(events: list[str]) -> list[str]:
    return [event if place == 0 else f",\n{event}" for place, event in enumerate(events)]


def _lines(events: list[str]) -> list[str]:
    return [f"{event}\n" for event in events]


def _gpx(times: Sequence[str]) -> Parts:
    points = [
        f'<trkpt lat="47" lon="8.5"><time>{time}</time><name>{note}</name></trkpt>'
        for time, note in zip(times, NOTES, strict=True)
    ]
    return "<gpx><trk><trkseg>", points, "</trkseg></trk></gpx>"


def _nmea(times: Sequence[str]) -> Parts:
    message = encode_dict({"type": 1, "mmsi": 244123456, "lon": 8.5, "lat": 47.0}, sentence_type="VDM")[0]
    lines = [f"{time} {note} {message}\n" for time, note in zip(times, NOTES, strict=True)]
    return "", lines, ""


def _aircraft(times: Sequence[str]) -> Parts:
    ages = [1e30 if time == FAR else 1.5 for time in times]
    events = [
        json.dumps({"hex": "4b1803", "flight": note, "lon": 8.5, "lat": 47.0, "seen_pos": age})
        for age, note in zip(ages, NOTES, strict=True)
    ]
    return '{"now": 1700000000.5, "aircraft": [', _listed(events), "]}"


FEATURES = '{"type": "FeatureCollection", "features": ['
TEXTS: dict[str, tuple[str, str, Maker]] = {
    "CSV": ("a.csv", "Seen", _csv),
    "JSON lines": ("a.jsonl", "Seen", lambda times: ("", _lines(_objects(times)), "")),
    "JSON list": ("a.json", "Seen", lambda times: ("[", _listed(_objects(times)), "]")),
    "list in a JSON object": (
        "a.json",
        "Seen",
        lambda times: ('{"n": 3, "rows": [', _listed(_objects(times)), "]}"),
    ),
    "aircraft.json": ("aircraft.json", "Plane", _aircraft),
    "GeoJSON": ("a.geojson", "Seen", lambda times: (FEATURES, _listed(_features(times)), "]}")),
    "GeoJSON lines": ("a.geojsonl", "Seen", lambda times: ("", _lines(_features(times)), "")),
    "MF-JSON": ("a.mfjson", "Seen", lambda times: (FEATURES, _listed(_moving(times)), "]}")),
    "GPX": ("a.gpx", "TrackPoint", _gpx),
    "NMEA": ("a.nmea", "AisPosition", _nmea),
}


def text_file(maker: Maker, damage: str) -> bytes:
    head, events, tail = maker([TIMES[0], FAR, TIMES[2]] if damage == "times" else TIMES)
    if damage == "empty":
        return b""
    if damage == "broken":
        return (head + events[0] + events[1] + events[2][: len(events[2]) // 2]).encode()
    whole = (head + "".join(events) + tail).encode()
    return whole.replace(b"two", b"t\xffo") if damage == "encoding" else whole


def parquet_file(damage: str) -> bytes:
    notes = pa.array([b"one", b"t\xffo" if damage == "encoding" else b"two", b"three"])
    micros = [0, 400_000_000_000_000_000 if damage == "times" else 1, 2]
    table = pa.table(
        {
            "type": ["Seen"] * 3,
            "time": pa.array(micros, pa.timestamp("us", "UTC")),
            "note": pa.Array.from_buffers(pa.string(), 3, notes.buffers()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    content = sink.getvalue()
    return {"empty": b"", "broken": content[: len(content) // 2]}.get(damage, content)


CASES: dict[tuple[str, str], tuple[int | str, str]] = {
    **{(reader, "missing"): ("error", "no such file") for reader in (*TEXTS, "Parquet")},
    **{(reader, "empty"): ("error", "the file is empty") for reader in TEXTS},
    **{
        (reader, "times"): (2, "time is (out of range|not a readable time)") for reader in (*TEXTS, "Parquet")
    },
    ("NMEA", "times"): (2, "the line has no time"),
    ("CSV", "broken"): (2, "the line has a wrong number of fields"),
    ("JSON lines", "broken"): (2, "the line is not JSON"),
    ("JSON list", "broken"): (2, "the element is not JSON"),
    ("list in a JSON object", "broken"): (2, "the element is not JSON"),
    ("aircraft.json", "broken"): (2, "the element is not an aircraft"),
    ("GeoJSON", "broken"): (2, "the feature is not JSON"),
    ("GeoJSON lines", "broken"): (2, "the line is not JSON"),
    ("MF-JSON", "broken"): (2, "the feature is not JSON"),
    ("GPX", "broken"): (2, "the XML is broken here"),
    ("NMEA", "broken"): (2, "the line is no NMEA sentence"),
    ("CSV", "encoding"): ("error", r"not UTF-8 text .*; save it as UTF-8, or say .*--encoding latin-1"),
    ("JSON lines", "encoding"): (2, "the line is not UTF-8 text"),
    ("JSON list", "encoding"): (2, "the element is not UTF-8 text"),
    ("list in a JSON object", "encoding"): (2, "the element is not UTF-8 text"),
    ("aircraft.json", "encoding"): (2, "the element is not an aircraft"),
    ("GeoJSON", "encoding"): (2, "the feature is not UTF-8 text"),
    ("GeoJSON lines", "encoding"): (2, "the line is not UTF-8 text"),
    ("MF-JSON", "encoding"): (2, "the feature is not UTF-8 text"),
    ("GPX", "encoding"): (1, "the XML is broken here"),
    ("NMEA", "encoding"): (3, ""),
    ("Parquet", "empty"): ("error", "cannot be read"),
    ("Parquet", "broken"): ("error", "cannot be read"),
    ("Parquet", "encoding"): ("error", "cannot be read: .*UTF-?8"),
}
DAMAGES = ("missing", "empty", "broken", "encoding", "times")


@pytest.mark.parametrize(("reader", "damage"), sorted(CASES))
def test_what_is_said_and_what_is_kept(folder, reader, damage):
    name, event, maker = TEXTS.get(reader, ("a.parquet", "Seen", None))
    if damage != "missing":
        content = parquet_file(damage) if maker is None else text_file(maker, damage)
        (folder.path / name).write_bytes(content)
    folder.write("found.wbl", f"define Found\n  detect {event}\n")
    options = ("--type", "Plane") if event == "Plane" else ()
    done = folder.run("detect", "found.wbl", "--events", name, "--out", "out.jsonl", *options)
    kept, words = CASES[reader, damage]
    if kept == "error":
        assert done.exit_code == 1
        assert re.search(f"error: {re.escape(name)}: .*{words}", done.stderr), done.stderr
        assert "out.jsonl" not in folder.names()
        return
    assert done.exit_code == 0, done.stderr
    assert len(folder.read("out.jsonl").splitlines()) == kept
    lost = [json.loads(line) for line in folder.read("out.rejected.jsonl").splitlines()] if words else []
    assert len(lost) == (1 if words else 0)
    assert all(re.search(words, row["reason"]) for row in lost), lost
    assert f"{len(lost)} rejected" in done.stderr


def test_every_reader_is_in_the_table():
    assert set(CASES) == {(reader, damage) for reader in (*TEXTS, "Parquet") for damage in DAMAGES}


def test_the_page_tells_the_same():
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    told = {row[0]: row[1:] for row in rows if row[0] in {*TEXTS, "Parquet"} and len(row) == len(DAMAGES) + 1}
    for (reader, damage), (kept, _) in CASES.items():
        expected = "error" if kept == "error" else f"{kept} of 3 kept"
        assert told[reader][DAMAGES.index(damage)] == expected, (reader, damage)
