"""The demo, as `make demo` runs it: every staged accident is found, once, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(root / "examples" / "traffic" / "run.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, out


def test_the_demo_finds_the_four_staged_accidents_and_nothing_else(demo):
    printed, out = demo
    found = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [detection["type"] for detection in found] == ["Accident"] * 4
    assert [detection["attributes"]["road"] for detection in found] == ["D1-E1", "G3-F3", "C3-C4", "G2-G1"]
    assert "277,475" in printed


def test_history_and_live_stream_find_the_same(demo):
    printed, _ = demo
    assert "history and live stream gave the same 4 detections" in printed or "no Java was found" in printed


def test_the_map_of_the_demo_needs_no_network(demo):
    _, out = demo
    (page,) = out.glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "<canvas" in text
    assert not [word for word in ('src="http', 'href="http') if word in text]
