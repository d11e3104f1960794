"""Compile the kernels before hypothesis watches, which would make compiling very slow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import whimbrel as wb
from whimbrel.store import Store

_QUERIES = """
define Pairs detect A as a then B as b within 10 s where b.v > a.v
define Lone detect A as a then not B as b for 3 s
define Means(m) over 5 s detect A assign m = avg(A.v)
define Runs(n) detect A{2,3} as a within 10 s assign n = sum(a.v)
"""


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """Run one query of each kind."""
    rows = [{"id": str(n), "type": "AB"[n % 2], "time": n, "v": n, "x": 1.0 * n, "y": 0.0} for n in range(9)]
    wb.detect(wb.compile(_QUERIES, emit="all"), rows)


@pytest.fixture
def new_store(tmp_path: Path) -> Callable[..., Store]:
    """Make stores, each in a folder of its own."""

    def make(**settings: object) -> Store:
        return Store.create(tmp_path / f"store-{len(list(tmp_path.iterdir()))}", **settings)

    return make
