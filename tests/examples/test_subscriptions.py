"""The three scenarios of CPSL: what is found is what plain arithmetic finds."""

from __future__ import annotations

import importlib.util
import math
import random
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def program(root):
    spec = importlib.util.spec_from_file_location("run", root / "examples" / "subscriptions" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(root, tmp_path):
    def go(scenario: str) -> str:
        program = root / "examples" / "subscriptions" / "run.py"
        command = [sys.executable, str(program), scenario, "--out", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "<canvas" in (tmp_path / f"{scenario}.html").read_text(encoding="utf-8")
        return done.stdout

    return go


def test_the_taxis_nearby(program, run):
    rows = list(program.taxi(random.Random(7)))
    near = [r for r in rows if r["state"] == "free" and math.hypot(r["x"] - 2000, r["y"] - 1500) < 800]
    assert f"near_me: {len(near)}," in run("taxi")


def test_the_people_who_walk_past(program, run):
    rows = list(program.shopping(random.Random(7)))
    past = [r for r in rows if r["age"] == 25 and 900 <= r["x"] <= 1100 and 400 <= r["y"] <= 600]
    assert f"passer_by: {len(past)}," in run("shopping")


def test_the_trucks_on_their_way(program, run):
    printed = run("logistics")
    rows = list(program.logistics(random.Random(7)))
    # A truck has left when it is first seen more than 500 m from the warehouse, a rectangle of 400 by 300 m.
    away = min(
        r["time"] for r in rows if math.hypot(max(0, r["x"] - 400), max(0, r["y"] - 300)) > 500
    )  # fmt: skip
    assert f"left: 34, the first at 00:{away // 60:02}:{away % 60:02}" in printed
    apart = min(
        one["time"]
        for one in rows
        for two in rows
        if one["time"] == two["time"] and one["truck"] == "t1" and two["truck"] == "t2"
        if math.hypot(one["x"] - two["x"], one["y"] - two["y"]) > 300
    )
    assert f"strayed: 60, the first at 00:{apart // 60:02}:{apart % 60:02}" in printed
