"""The notebooks run from top to bottom, and show what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def shown(name: str, root: Path) -> list[dict[str, str]]:
    """Run a notebook in a process of its own, where every warning is an error; give what its cells show."""
    command = [
        sys.executable,
        "-W",
        "error",
        str(root / "tools" / "notebooks.py"),
        "--json",
        str(FOLDER / name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def maps(cells: list[dict[str, str]]) -> int:
    return sum("<iframe" in cell.get("text/html", "") for cell in cells)


def headlines(cells: list[dict[str, str]]) -> list[str]:
    """Give the first lines of the results that show themselves."""
    return [
        cell["text/plain"].splitlines()[0] for cell in cells if "whimbrel-result" in cell.get("text/html", "")
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_without_what_they_show(name):
    """Maps would make them large, and every run would change the files."""
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_there_are_three():
    assert NOTEBOOKS == ["first-hour.ipynb", "on-spark.ipynb", "patterns.ipynb"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_hour(root, compiled_kernels):
    cells = shown("first-hour.ipynb", root)
    assert headlines(cells) == ["2 detections in 182 events: 180 processed, 0 late, 0 duplicate, 2 rejected"]
    assert maps(cells) == 2
    assert "found.html" in cells[-1]["stdout"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_patterns(root, compiled_kernels):
    cells = shown("patterns.ipynb", root)
    assert [line.partition(" in ")[0] for line in headlines(cells)] == [
        *("2 detections", "2 detections", "1 detection", "1 detection", "2 detections", "1 detection")
    ]
    assert maps(cells) == 6
    assert "did you mean 'leave'?" in cells[-1]["stdout"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_on_spark(root, java):
    cells = shown("on-spark.ipynb", root)
    assert headlines(cells) == ["2 detections in 6 events: 5 processed, 0 late, 0 duplicate, 1 rejected"]
    assert cells[4]["stdout"].startswith("True")
    assert cells[5]["stdout"].count("Overdue") == 1
