"""The page on own data says what its commands say, and its files are made by their script."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import whimbrel as wb
from whimbrel.cli.main import main

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "own_data"
PAGE = (ROOT / "docs" / "your-own-data.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A copy of the example's folder, to work in, with the broken file that the page shows."""
    copy = tmp_path / "own_data"
    shutil.copytree(FILES, copy)
    monkeypatch.chdir(copy)
    broken = [text for text in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) if "soon" in text]
    (copy / "broken.csv").write_text(broken[0], encoding="utf-8")
    return copy


def commands() -> list[tuple[str, str]]:
    """List the commands of the page, each with what it prints there."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    said = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [tuple(part.split("\n", 1)) for part in said]  # type: ignore[misc]


def test_the_commands_of_the_page_print_what_it_shows(folder):
    for command, output in commands():
        if command.startswith("whimbrel"):
            done = CliRunner().invoke(main, command.split()[1:])
            assert without_progress(done.output) == output, command
        elif command.startswith(("cat", "head")):
            lines = (folder / command.split()[-1]).read_text(encoding="utf-8").splitlines(keepends=True)
            assert "".join(lines[:2]) == output, command


def without_progress(output: str) -> str:
    """Leave out what is printed while kernels are compiled, which depends on what was compiled before."""
    return "".join(
        line for line in output.splitlines(keepends=True) if not line.startswith("compiling kernels")
    )


def test_every_reason_that_the_broken_file_gives_is_explained(folder):
    rejected = wb.detect(wb.read("ships.wbl"), "broken.csv").rejected
    reasons = [reason.partition(":")[0] for reason in rejected["reason"].to_pylist()]
    assert len(reasons) == 6
    assert [reason for reason in reasons if f"`{reason}" not in PAGE] == []


def test_the_queries_of_the_page_are_those_of_the_example():
    shown = re.findall(r"```wbl\n(.*?)```", PAGE, re.DOTALL)
    kept = [
        re.sub(r"^# .*\n", "", (FILES / f"{name}.wbl").read_text(encoding="utf-8"))
        for name in ("ships", "buses", "aircraft")
    ]
    assert shown == kept


def test_the_first_lines_of_the_files_are_those_of_the_page():
    for name in ("ships.csv", "buses.csv"):
        first = (FILES / name).read_text(encoding="utf-8-sig").splitlines()[:3]
        assert "\n".join(first) in PAGE


def test_the_map_reads_the_events_as_the_query_did(folder):
    settings = {"day_first": True, "time_zone": "Europe/Berlin"}
    stuck = wb.detect(wb.read("buses.wbl"), "buses.csv", **settings)
    page = stuck.map(events="buses.csv").save("stuck.html").read_text(encoding="utf-8")
    assert page.count("104") > 0
    assert stuck["bus"].to_pylist() == [104]


def test_the_script_makes_the_files_as_they_are(folder, monkeypatch):
    kept = {name: (FILES / name).read_bytes() for name in ("ships.csv", "buses.csv", "aircraft.json.gz")}
    for name in kept:
        (folder / name).unlink()
    runpy.run_path(str(folder / "make_data.py"), run_name="__main__")
    assert {name: (folder / name).read_bytes() for name in kept} == kept


def test_the_readme_shows_what_its_first_lines_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    first = re.search(
        r"```python no-run\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    Path("first.py").write_text(first[1], encoding="utf-8")
    runpy.run_path("first.py")
    assert capsys.readouterr().out == "['219000102'] ['265000417']\n"
    assert "# ['219000102'] ['265000417']" in first[1]
    assert Path("met.html").is_file()
