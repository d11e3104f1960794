"""The port: who is told of what is known from how the ships were made."""

from __future__ import annotations

import importlib.util
import runpy
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import whimbrel as wb


@pytest.fixture(scope="module")
def folder(root):
    return root / "examples" / "port"


@pytest.fixture(scope="module")
def program(folder):
    spec = importlib.util.spec_from_file_location("port_run", folder / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def told(folder, program):
    return program.tell(wb.read(folder / "port.wbl"), pq.read_table(folder / "port.parquet"))


def said(told: pa.Table, query: str, kind: str, change: str = "added") -> list[dict]:
    wanted = (pc.field("query") == query) & (pc.field("type") == kind) & (pc.field("change") == change)
    return told.filter(wanted).to_pylist()


def test_the_tanker_is_told_of_the_trawlers_it_comes_to(told):
    (meeting,) = said(told, "tanker", "Meeting")
    assert (meeting["one"], meeting["other"], meeting["live"]) == ("trawler-4", "trawler-5", False)
    assert [row["one"] for row in said(told, "tanker", "Meeting", "removed")] == ["trawler-4"]


def test_the_coaster_falls_silent_beside_the_tanker(told):
    (dark,) = said(told, "tanker", "Dark")
    assert (dark["ship"], dark["live"], f"{dark['told']:%H:%M}") == ("coaster-6", True, "06:49")


def test_who_drifts_near_the_way_is_told_and_who_drifts_far_off_is_not(told):
    drifting = {(row["query"], row["ship"]) for row in said(told, "tanker", "Drifting")}
    assert drifting == {("tanker", "freighter-3")}
    assert "yacht-9" not in told["ship"].to_pylist()


def test_the_pilot_is_told_of_what_is_ahead_once_it_has_moved(told):
    of_pilot = told.filter(pc.equal(told["query"], "pilot"))
    assert set(of_pilot["change"].to_pylist()) == {"added"}
    after = [row["ship"] for row in said(told, "pilot", "Drifting") if f"{row['told']:%H:%M}" > "06:21"]
    assert after == ["freighter-3"]


def test_the_program_says_so(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py"])
    runpy.run_path(str(folder / "run.py"), run_name="__main__")
    printed = capsys.readouterr().out
    shown = (folder / "README.md").read_text(encoding="utf-8").split("```text\n")[1].partition("```")[0]
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_the_script_makes_the_file_as_it_is(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_port.py", "--out", str(tmp_path / "port.parquet")])
    runpy.run_path(str(folder / "make_port.py"), run_name="__main__")
    assert pq.read_table(tmp_path / "port.parquet").equals(pq.read_table(folder / "port.parquet"))


@pytest.mark.needs_data
@pytest.mark.slow
def test_a_recording_takes_the_place_of_the_sample(folder, program, data_dir):
    events = pq.read_table(data_dir / "ais_northsea_2022" / "positions.parquet")
    told = program.tell(wb.read(folder / "port.wbl"), events)
    tankers = set(events.filter(pc.field("ship_type") == "Tanker")["object_id"].to_pylist())
    pilots = set(events.filter(pc.field("ship_type") == "Pilot")["object_id"].to_pylist())
    focal = told.group_by(["query", "focal"]).aggregate([]).to_pylist()
    assert {row["focal"] for row in focal if row["query"] == "tanker"} <= tankers
    assert {row["focal"] for row in focal if row["query"] == "pilot"} <= pilots
    assert told.num_rows > 50
    own = told.filter(pc.equal(told["ship"], told["focal"]))
    assert own.num_rows == 0
