"""Compiling ahead: what a query needs, in several processes, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import whimbrel as wb
from whimbrel import warming
from whimbrel.space.kernels.jit import ALLOWED, Kernel, TrialRun

HOT = "define Hot(v) detect Temp(v > 30) as t assign v = t.v"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("detect A", {"common"}),
        ("detect A then B within 1 s", {"common", "match"}),
        ("detect A then not B for 1 s", {"common", "absence"}),
        ("detect last A then B within 1 s", {"common", "choice"}),
        ("detect A as a then B within 1 s consuming a", {"common", "choice"}),
        ("detect A and B within 1 s context recent", {"common", "choice"}),
        ("detect A as a then B as b within 1 s where distance(a, b) < 5 m", {"common", "match", "shapes"}),
        ("detect A{2,3} as a within 1 s", {"common", "repeat"}),
        ("over 5 s detect A assign n = count(A)", {"common", "aggregate"}),
        ("detect A next B within 1 s", {"common", "steps"}),
        ("detect A next B within 1 s skip to next", {"common", "skipping"}),
        ("detect A enters box(0, 0, 1, 1)", {"common", "motion"}),
        ("detect A as a meets A as b within 5 m for 1 s", {"common", "meeting"}),
    ],
)
def test_what_a_query_needs_follows_from_its_operators(text, kinds):
    name = "define X(n) " if "assign n" in text else "define X "
    assert warming.exercises_of(wb.compile(name + text)) == kinds


def test_a_query_that_follows_something_needs_its_kernels_too():
    query = wb.compile("define X detect A around A within 5 m report X")
    assert warming.exercises_of(query) == {"common", "following"}


def test_many_queries_need_the_index_of_conditions():
    queries = [wb.compile(HOT)] * 16
    assert warming.exercises_together(queries) == ["common", "conditions"]
    assert warming.exercises_together(queries[:2]) == ["common"]


@pytest.mark.parametrize("name", warming.EXERCISES)
def test_an_exercise_reaches_the_kernels_of_its_kind(name):
    expected = {
        "common": "hull.hulls", "match": "match.match_step", "absence": "match.match_step",
        "choice": "match.match_step", "repeat": "segments.list_iterations",
        "aggregate": "segments.trailing_windows", "steps": "all_matches.advance_runs",
        "skipping": "skip_matches.advance_runs", "motion": "border_crossings.process_samples",
        "meeting": "encounters.process_samples", "shapes": "relation_address.address_of_related",
        "conditions": "condition_lookups.find_placed",
        "following": "place_index.rows_in_areas",
    }  # fmt: skip
    met: list[str] = []
    with TrialRun(lambda _: False, lambda kernel, _: met.append(kernel.name)):
        warming.exercise(name)
    assert f"whimbrel.engine.kernels.{expected[name]}" in met


def test_a_trial_runs_plainly_what_it_does_not_compile_and_tells_of_it():
    met: list[tuple[str, int]] = []
    one, two = Kernel(_one_more), Kernel(_one_more)
    with TrialRun(lambda _: False, lambda kernel, args: met.append((kernel.name, args[0]))):
        assert (one.at(5)(1), two(2)) == (2, 3)
    assert met == [("tests.test_warming._one_more", 1), ("tests.test_warming._one_more", 2)]
    assert not one.is_loaded


def _one_more(n):
    return n + 1


@pytest.mark.parametrize("size", [warming.LITTLE_ROWS, warming.LITTLE_ROWS + 1])
def test_many_rows_are_worth_compiling(size):
    assert warming.is_much([{"type": "A", "time": 0}] * size) == (size > warming.LITTLE_ROWS)


def test_large_files_are_worth_compiling(tmp_path):
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text("type,time\n")
    large.write_text("type,time\n" + "A,0\n" * 20_000)
    assert [warming.is_much(str(small)), warming.is_much([small, large])] == [False, True]


def test_nothing_is_compiled_where_kernels_are_to_run_plainly():
    with ALLOWED.set_to(float("inf")):
        assert warming.warm(wb.compile(HOT)).compiled == 0


@pytest.mark.slow
def test_what_was_warmed_is_all_that_a_run_needs(tmp_path):
    """Run the command on an empty folder, again, and then a query over many events."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "WHIMBREL_KERNELS": ""}
    (tmp_path / "hot.wbl").write_text(HOT)
    command = [sys.executable, "-c", "from whimbrel.cli.main import main; main()", "warm"]

    def run(*arguments: str) -> str:
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stderr + done.stdout

    first, again = (run(*command, "hot.wbl", "--processes", "2") for _ in range(2))
    assert first.startswith("compiling kernels for these queries, once: 11\n")
    assert "compiled 11 kernels, 0 were there" in first
    assert str(tmp_path / "kept") in first
    assert again.startswith("compiled 0 kernels, 11 were there")
    program = f"""
import json, sys
import pyarrow as pa
import whimbrel as wb
from whimbrel.engine.kernels import hull, ordering
from whimbrel.space.kernels.jit import Kernel

rows = [{{"type": "Temp", "time": n // 2, "v": float(n % 50), "x": 1.0, "y": 2.0}} for n in range(20_000)]
found = wb.detect(wb.compile({HOT!r}), pa.Table.from_pylist(rows))
loaded = [k for m in (hull, ordering) for k in vars(m).values() if isinstance(k, Kernel) and k.is_loaded]
misses = sum(sum(k.machine.stats.cache_misses.values()) for k in loaded)
print(json.dumps([found.num_rows, misses, len(loaded)]))
"""
    rows, misses, loaded = json.loads(run(sys.executable, "-c", program))
    assert (rows, misses) == (7600, 0)
    assert loaded >= 3
