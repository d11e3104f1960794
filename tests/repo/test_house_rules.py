"""Rules that hold for every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE_FOLDERS = ("src", "bench", "examples", "tools", "docs")

# Put together here, so that this file keeps the rule it checks.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("maven", "org"),
        ("repo", "maven"),
        ("unpkg", "com"),
        ("jsdelivr", "net"),
        ("cdnjs", "cloudflare"),
        ("githubusercontent", "com"),
    )
)
DOWNLOADS = re.compile(r"https?://\S+(?:/releases/download/|\.whl\b|\.tar\.gz\b|\.zip\b)")
MACHINE_PATHS = re.compile(r"(?<![\w.\-])/(?:root|work|home|Users|farm)(?:/|\b(?![\w.\-]))")


def tracked_files() -> list[Path]:
    """Every text file that git knows."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


def source_files() -> list[Path]:
    return [path for folder in CODE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Say where a tracked file has the pattern, as file:line: text."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_registry():
    assert lines_with(re.compile("|".join(map(re.escape, REGISTRIES)))) == []


def test_no_file_holds_a_download_address():
    assert lines_with(DOWNLOADS) == []


def test_no_file_holds_a_path_of_one_machine():
    assert lines_with(MACHINE_PATHS) == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("cd ~root/whimbrel", True),
        ("data in ~work", True),
        ('open("~home/ann/events.csv")', True),
        ("src~work~home.py", False),
        ("docs~home~", False),
        ("~rooted", False),
    ],
)
def test_machine_paths_are_told_from_other_text(line, is_found):
    line = line.replace("~", "/")  # so that this file keeps the rule
    assert bool(MACHINE_PATHS.search(line)) is is_found


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_source_file_says_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path.relative_to(ROOT)} has no module docstring"


def test_no_text_file_has_ragged_whitespace():
    ragged = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.suffix in {".py", ".md", ".toml", ".lark", ".yaml"} and "golden" not in path.parts
        if re.search(r"[ \t\r]$|\n\n\Z|[^\n]\Z", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        and path.stat().st_size > 0
    ]
    assert ragged == [], "tools/whitespace.py mends these"


def test_no_two_public_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src" / "whimbrel").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
