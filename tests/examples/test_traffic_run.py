"""The demo, as `make demo` runs it: every staged accident is found, once, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import shapely

import whimbrel as wb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(root / "examples" / "traffic" / "run.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, out


def test_the_demo_finds_the_four_staged_accidents_and_nothing_else(demo):
    printed, out = demo
    found = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [detection["type"] for detection in found] == ["Accident"] * 4
    assert [detection["attributes"]["road"] for detection in found] == ["D1-E1", "G3-F3", "C3-C4", "G2-G1"]
    assert "277,475" in printed


def test_history_and_live_stream_find_the_same(demo):
    printed, _ = demo
    assert "history and live stream gave the same 4 detections" in printed or "no Java was found" in printed


def test_the_maps_of_the_demo_need_no_network(demo):
    _, out = demo
    pages = [page.read_text(encoding="utf-8") for page in sorted(out.glob("*.html"))]
    assert len(pages) == 2
    assert all("<canvas" in text for text in pages)
    assert not [word for word in ('src="http', 'href="http') for text in pages if word in text]


def test_the_car_is_told_live_and_from_history(demo):
    printed, _ = demo
    assert "07:04:09  accident   D1-E1" in printed
    assert "live: it has just become one" in printed
    assert "history: it became one" in printed
    assert "gone: the car has left it behind" in printed


def definitions(text: str) -> str:
    """The definitions of a query file, without comments and without what follows them."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(lines).partition("\naround")[0].strip()


def test_both_queries_detect_the_same(root):
    folder = root / "examples" / "traffic"
    whole_town, car = ((folder / name).read_text(encoding="utf-8") for name in ("accident.wbl", "around.wbl"))
    assert definitions(car) == definitions(whole_town)


def test_the_car_is_told_what_meets_its_circle(root):
    """Against plain Python: where the circles are, what meets them, and what changes from one to the next."""
    folder = root / "examples" / "traffic"
    whole_town = wb.read(folder / "accident.wbl", emit=["Collision", "Accident"])
    found = wb.detect(whole_town, folder / "traffic.parquet").table
    shapes = shapely.from_wkb(found["geometry"].to_pylist())
    known = [end.timestamp() for end in found["end"].to_pylist()]
    expected, before = [], set()
    for place, start, end in circles(folder / "traffic.parquet"):
        now = {
            key
            for key, shape, at in zip(found["id"].to_pylist(), shapes, known, strict=True)
            if shape.distance(place) <= 400 and start - 300 <= at < end
        }
        said = {"removed": before - now, "kept": before & now, "added": now - before}
        expected += [(start, change, key) for change, keys in said.items() for key in keys]
        before = now
    told = wb.detect(wb.read(folder / "around.wbl"), folder / "traffic.parquet").table
    columns = [told[name].to_pylist() for name in ("interest_start", "change", "id")]
    assert sorted((at.timestamp(), *rest) for at, *rest in zip(*columns, strict=True)) == sorted(expected)


def circles(events):
    """Where each circle of the car lies, from when and until when."""
    way = pq.read_table(events, filters=[("source", "=", "veh-0372")]).sort_by("time").to_pylist()
    switches = []
    for row in way:
        place = shapely.Point(row["x"], row["y"])
        if not switches or place.distance(switches[-1][0]) > 50:
            switches.append((place, row["time"].timestamp()))
    ends = [start for _, start in switches[1:]] + [float("inf")]
    return [(place, start, end) for (place, start), end in zip(switches, ends, strict=True)]
