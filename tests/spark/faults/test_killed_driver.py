"""A driver that is killed again and again loses nothing and reports nothing twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.spark.faults.trips import expected, write_events, written
from tests.spark.processes import cut_off

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("WHIMBREL_KILLS", "1"))
"""How often the driver is killed at least; `make faults` asks for 20."""
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "stream_program.py"


def launch(events, folder, rows):
    command = [
        sys.executable,
        str(PROGRAM),
        str(events),
        str(folder / "checkpoint"),
        str(folder / "found"),
        rows,
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def committed(folder: Path) -> int:
    """How many micro-batches have been finished."""
    commits = folder / "checkpoint" / "commits"
    return sum(name.name.isdigit() for name in commits.iterdir()) if commits.exists() else 0


def test_a_driver_that_is_killed_again_and_again_ends_with_the_batch_result(spark, tmp_path):
    events = tmp_path / "events.parquet"
    write_events(events, 400 * (4 + 3 * KILLS))
    rng, kills = random.Random(5), 0
    while True:
        process, before = launch(events, tmp_path, "400"), committed(tmp_path)
        if kills < KILLS:
            # Any moment may be hit; most often one after some progress, or the run would never end.
            patience = time.monotonic() + 180
            wanted = before + rng.choice([0, 1, 1, 2, 3])
            while committed(tmp_path) < wanted and process.poll() is None and time.monotonic() < patience:
                time.sleep(0.05)
            time.sleep(rng.uniform(0, 2.5))
            if process.poll() is None:
                cut_off(process)
                process.stderr.close()
                kills += 1
                continue
        _, errors = process.communicate(timeout=1200)
        assert process.returncode == 0, errors.decode()[-4000:]
        break
    found = written(tmp_path / "found")
    assert kills >= KILLS
    assert len(found) == len(set(found)), "something was reported twice"
    assert found == expected(events)
    assert len(found) > 100
