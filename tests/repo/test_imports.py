"""What importing Whimbrel loads, and who may import whom."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("numba", "pandas", "polars", "pyarrow", "pyspark", "shapely")

whimbrel = importlib.import_module("whimbrel")
public_names = pytest.mark.skipif(
    not hasattr(whimbrel, "__all__"), reason="whimbrel.__all__ is not written yet"
)


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_whimbrel_loads_nothing_heavy():
    loaded = run_python(f"import sys, whimbrel; print(*sorted(set(sys.modules) & set({HEAVY!r})))")
    assert loaded == ""


def test_imports_point_down():
    """The contracts are in pyproject.toml, under tool.importlinter."""
    code = "from importlinter.cli import lint_imports_command as run; run(['--no-logo', '--no-cache'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@public_names
def test_every_public_name_is_there_and_has_a_docstring():
    bare = [
        name
        for name in whimbrel.__all__
        if callable(thing := getattr(whimbrel, name)) and not inspect.getdoc(thing)
    ]
    assert bare == []


@public_names
def test_dir_lists_the_public_names():
    assert set(whimbrel.__all__) <= set(dir(whimbrel))
