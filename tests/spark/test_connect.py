"""Everything works over Spark Connect, where there is no Java process to reach into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.test_live import BRAKES, driving

import whimbrel as wb

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROOT = Path(__file__).parents[2]


def test_batch_stream_and_live_queries_over_a_local_connect_server(java, tmp_path):
    process = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "connect_program.py"), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    found = wb.detect(wb.compile(BRAKES), driving(0, 200)).to_pylist()
    assert result["module"].startswith("pyspark.sql.connect")
    assert sorted(result["batch"]) == sorted(row["id"] for row in found)
    assert sorted(result["files"]) == sorted(row["id"] for row in found)
    assert result["error"] == "row 3 is bad; mend it"
    closed = sorted(row["id"] for row in found if row["end"].timestamp() < 199)
    assert sorted(result["stream"]) == closed
    assert sorted(result["live"]) == closed
    assert result["progress"] > 0
