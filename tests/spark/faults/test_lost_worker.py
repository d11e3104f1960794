"""A cluster that loses a worker half-way gives what a whole one gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.faults.trips import QUERY, expected

import whimbrel as wb

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "cluster_program.py"


@pytest.mark.skipif(not os.environ.get("WHIMBREL_KILLS"), reason="starts a cluster of its own: make faults")
def test_a_worker_is_killed_half_way_through_a_batch_and_a_stream(java, tmp_path):
    process = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    whole = wb.detect(wb.compile(QUERY), tmp_path / "history.parquet")
    assert result["batch"]["ids"] == sorted(whole.column("id").to_pylist())
    assert 0 < result["batch"]["killed_after"] < 20
    assert result["stream"]["ids"] == expected(tmp_path / "live.parquet")
    assert result["stream"]["killed_after"] < result["stream"]["batches"]
