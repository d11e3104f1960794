"""What was rejected is kept, with its reason and its place."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from whimbrel.errors import DataError
from whimbrel.io import RejectedWriter
from whimbrel.model.batch import Normaliser

BATCH = pa.record_batch({"type": ["a", "a", None], "time": ["x", "y", "1"]})


def test_rejected_rows_are_appended_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rejected.jsonl"
    for _ in range(2):
        with RejectedWriter(path) as writer:
            writer.write(Normaliser().normalise(BATCH, 1).rejected, "events.csv")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 6
    assert lines[0] == {
        "file": "events.csv",
        "row": 1,
        "reason": "time is not a readable time: 'x'",
        "event": '{"type": "a", "time": "x"}',
    }


def test_reasons_are_counted_without_their_values() -> None:
    writer = RejectedWriter()
    writer.write(Normaliser().normalise(BATCH).rejected)
    assert writer.counts == {"time is not a readable time": 2, "type is missing": 1}
    assert writer.total == 3


def test_a_clean_run_leaves_no_file(tmp_path: Path) -> None:
    with RejectedWriter(tmp_path / "rejected.jsonl") as writer:
        writer.write(Normaliser().normalise(pa.record_batch({"type": ["a"], "time": [1]})).rejected)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="rejected events cannot be written"):
        RejectedWriter(tmp_path / "nowhere" / "x.jsonl").write(Normaliser().normalise(BATCH).rejected)
