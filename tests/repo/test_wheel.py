"""The wheel: what is in it, and that it works where nothing else is."""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
QUERY = "define Fast detect Position(speed > 30)\n"
EVENTS = "id,type,time,source,speed,lon,lat\ne1,Position,0,a,50,10,50\ne2,Position,1,a,20,10,50\n"
PROGRAM = """
import json

import whimbrel as wb

found = wb.detect(wb.read("fast.wbl"), "events.csv")
found.save("found.html")
print(json.dumps([wb.__file__, found["events"].to_pylist(), found.counts.received, str(found)[:11]]))
"""


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a program that knows nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the wheel and the source archive, as `make wheel` does."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """Install the wheel, at the pinned versions, into an environment that is empty.

    The pip of the tests does it, and compiles nothing ahead: both would cost more than all else here.
    """
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", *options, wheel)
    return python


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    """A folder with a query and events, far from the checkout."""
    (tmp_path / "fast.wbl").write_text(QUERY, encoding="utf-8")
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    return tmp_path


def test_everything_in_the_package_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "whimbrel"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {str(path.relative_to(package.parent)) for path in files}
    assert {Path(name).suffix for name in packed} >= {".py", ".lark", ".html", ".typed"}


def test_the_source_archive_has_what_the_tests_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "constraints.txt", "Makefile", "LICENSE", "README.md", "Dockerfile"):
        assert name in names
    for start in ("src/whimbrel/", "tests/", "docs/", "examples/", "tools/", "bench/", "experiments/"):
        assert any(name.startswith(start) for name in names), start


def test_the_metadata_is_complete(metadata):
    assert metadata["Name"] == "whimbrel"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Summary"]
    assert metadata.get_payload().startswith("# Whimbrel")
    extras = set(metadata.get_all("Provides-Extra"))
    assert extras >= {"pandas", "polars", "geo", "spark", "mqtt", "plan", "sumo"}
    classifiers = metadata.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in classifiers


def test_a_query_runs_where_nothing_but_the_wheel_is_installed(python, elsewhere):
    program = elsewhere / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    home, events, received, told = json.loads(run(python, program, cwd=elsewhere))
    assert Path(home).is_relative_to(python.parents[1])
    assert (events, received, told) == ([["e1"]], 2, "1 detection")
    assert "<canvas" in (elsewhere / "found.html").read_text(encoding="utf-8")


def test_the_command_runs_there_too(python, elsewhere):
    command = python.parent / "whimbrel"
    found = run(command, "detect", "fast.wbl", "--events", "events.csv", "--map", "map.html", cwd=elsewhere)
    assert [json.loads(line)["events"] for line in found.splitlines()] == [["e1"]]
    assert (elsewhere / "map.html").is_file()
    assert "fine" in run(command, "check", "fast.wbl", cwd=elsewhere)


def test_scenarios_are_no_part_of_it(python, elsewhere):
    said = subprocess.run(
        [python.parent / "whimbrel", "simulate", "radius"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert "run this in a checkout of the source repository" in said.stderr


def test_type_checkers_see_the_types(python, elsewhere):
    program = elsewhere / "typed.py"
    program.write_text(
        "import whimbrel as wb\nreveal_type(wb.run)\nreveal_type(wb.Detections.save)\n", encoding="utf-8"
    )
    said = run(sys.executable, "-m", "mypy", "--python-executable", python, program, cwd=elsewhere)
    assert "-> whimbrel.engine.result.Detections" in said
    assert "-> pathlib.Path" in said
