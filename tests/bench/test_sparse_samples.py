"""The picture of sparse samples shows what the engine finds, and stops are counted by both rules."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests.bench.loading import load

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "sparse-samples.svg"


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load(monkeypatch, ".", "sparse_samples").sparse_samples


def test_the_picture_of_the_docs_is_what_is_drawn(sparse):
    assert PICTURE.read_text(encoding="utf-8") == sparse.picture()


def test_stops_on_one_sample_are_counted_apart(sparse):
    minutes = [("a", 0), ("b", 0), ("b", 25), ("c", 0), ("c", 50)]
    events = pa.table(
        {
            "source": [mover for mover, _ in minutes],
            "time": pa.array([60_000_000 * minute for _, minute in minutes], pa.timestamp("us", "UTC")),
            "lon": [0.0] * 5,
            "lat": [0.0] * 5,
        }
    )
    asked = sparse.Recording("three", (), minutes=30, metres=50)
    assert sparse._with_one_sample(events, asked) == (3, 2)
