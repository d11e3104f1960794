"""Load the scripts of a benchmark, which stand next to each other and are no package."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def load(monkeypatch: pytest.MonkeyPatch, folder: str, *names: str) -> SimpleNamespace:
    """Give modules of a folder of the benchmarks, and leave no trace of them."""
    monkeypatch.setattr(sys, "path", [str(BENCH / folder), *sys.path, str(BENCH)])
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    loaded = {name: __import__(name) for name in names}
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    return SimpleNamespace(**loaded)
