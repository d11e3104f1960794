"""The fleet: who is told of which fire, against plain arithmetic."""

from __future__ import annotations

import math
import runpy
import sys
from datetime import datetime

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

DISTANCES = {"ADR-1": (1_000, 600), "ADR-2": (3_000, 1_800), "ADR-3": (500, 600), "ADR-4": (2_000, 600)}
"""Radius and lifetime, as `trucks.csv` and the query say."""


@pytest.fixture(scope="module")
def folder(root):
    return root / "examples" / "fleet"


def circles(rows: list[dict], moved: float):
    """Where each circle of a truck lies, from when and until when."""
    switches: list[tuple[float, float, datetime]] = []
    for row in rows:
        if not switches or math.hypot(row["x"] - switches[-1][0], row["y"] - switches[-1][1]) > moved:
            switches.append((row["x"], row["y"], row["time"]))
    ends = [time for *_, time in switches[1:]] + [datetime.max.replace(tzinfo=rows[0]["time"].tzinfo)]
    return [(*switch, end) for switch, end in zip(switches, ends, strict=True)]


def test_each_truck_is_told_of_the_fires_in_its_own_circle(folder):
    events = pq.read_table(folder / "fleet.parquet")
    fires = events.filter(pc.field("kind") == "fire").to_pylist()
    expected = set()
    for plate, (radius, lifetime) in DISTANCES.items():
        for x, y, start, end in circles(events.filter(pc.field("plate") == plate).to_pylist(), 200):
            for fire in fires:
                near = math.hypot(fire["x"] - x, fire["y"] - y) <= radius
                if near and -lifetime <= (fire["time"] - start).total_seconds() and fire["time"] < end:
                    expected.add((plate, fire["place"]))
    told = wb.detect(wb.read(folder / "fleet.wbl"), folder / "fleet.parquet").table
    found = told.filter(pc.field("type") == "Fire").select(["focal", "place"]).to_pylist()
    assert sorted((row["focal"], row["place"]) for row in found) == sorted(expected)  # new: each of them once
    assert len(expected) > 2


def test_the_program_says_what_the_page_says(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py"])
    runpy.run_path(str(folder / "run.py"), run_name="__main__")
    printed = capsys.readouterr().out
    page = (folder / "README.md").read_text(encoding="utf-8")
    listed, shown = (part.partition("```")[0] for part in page.split("```text\n")[1:])
    assert [line for line in shown.splitlines() if line not in printed] == []
    assert listed == (folder / "trucks.csv").read_text(encoding="utf-8")
    assert "MILK-6" not in printed


def test_the_script_makes_the_file_as_it_is(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_fleet.py", "--out", str(tmp_path / "fleet.parquet")])
    runpy.run_path(str(folder / "make_fleet.py"), run_name="__main__")
    assert pq.read_table(tmp_path / "fleet.parquet").equals(pq.read_table(folder / "fleet.parquet"))
