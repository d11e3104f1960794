"""What is shipped, what it needs, and the commands that the repository offers."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(*lists: list[str]) -> set[str]:
    names = {normal(re.match(r"[\w.-]+", line).group()) for line in chain(*lists)}
    return names - {"whimbrel"}


DEV = required(
    PROJECT["dependencies"],
    *(packages for extra, packages in PROJECT["optional-dependencies"].items() if extra != "sumo"),
)
ALL = required(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())


def test_every_dependency_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pin) == 2 for pin in pins)
    assert DEV - {normal(name) for name, _ in pins} == set()


def test_every_dependency_is_explained():
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    explained = {normal(name) for name in re.findall(r"^\| `([\w.-]+)`", page, flags=re.MULTILINE)}
    assert explained == ALL


def test_files_beside_the_code_are_shipped():
    """The build leaves out what git ignores, and nothing else."""
    package = ROOT / "src" / "whimbrel"
    beside = [str(path) for path in package.rglob("*") if path.suffix in {".lark", ".html", ".typed"}]
    assert str(package / "py.typed") in beside
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    ignored = subprocess.run(
        ["git", "check-ignore", *beside], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout == ""


@pytest.mark.skipif(
    not (ROOT / "src/whimbrel/cli/main.py").exists(), reason="the command line is not written yet"
)
def test_the_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="whimbrel")
    assert callable(command.load())


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_bare_make_lists_the_targets():
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^  make ([a-z]+) +\S", listed, flags=re.MULTILINE))
    assert targets >= {
        "demo",
        "check",
        "test",
        "bench",
        "soak",
        "fuzz",
        "docs",
        "wheel",
        "format",
        "constraints",
        "clean",
    }


def test_what_the_images_copy_is_there_and_is_sent_to_the_builder():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from=" not in line]
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    names = set(chain(*copied))
    assert names == {line.removeprefix("!") for line in sent if line.startswith("!")}
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_changelog_has_a_place_for_what_comes_next():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
