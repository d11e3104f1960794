"""The benchmark of planning: tables of all scripts become one, and curves tables and pictures."""

from __future__ import annotations

import pytest
from tests.bench.loading import load


@pytest.fixture
def bench(monkeypatch):
    """The modules of the benchmark, which are scripts next to each other."""
    return load(monkeypatch, "planning", "greedy_gap", "speed", "real", "run")


def test_tables_of_scripts_become_rows_of_one(bench):
    text = (
        "| above the optimum, 200 problems | median | 90 % within | worst | optimal | possible |\n"
        "|---|---|---|---|---|---|\n| tabu search | 0.0% | 0.1% | 33.4% | 98% | 95% |\n"
    )
    assert bench.run.rows_of("flow", text) == [
        "| flow: tabu search | 200 | 0.0% | 0.1% | 33.4% | 98% | 95% |"
    ]


def test_broken_restrictions_are_told_as_the_share_of_valid_plans(bench):
    text = (
        "240 problems: some\n\n| way | median gap | mean | worst | at the optimum | breaks more | CPU ms |\n"
        "|---|---|---|---|---|---|---|\n| stay | 5.0% | 6.0% | 9.0% | 10% | 60 | 1 |\n"
    )
    assert bench.run.rows_of("migration", text) == ["| migration: stay | 240 | 5.0% | - | 9.0% | 10% | 75% |"]


def test_figures_go_between_their_marks(bench, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    marks = [
        f"<!-- figures: {part}, made by `make bench-planning ARGS=--write` -->" for part in bench.run.PARTS
    ]
    page.write_text("\n".join(f"{mark}\nold\n{bench.run.END}\nafter" for mark in marks), encoding="utf-8")
    monkeypatch.setattr(bench.run, "PAGE", page)
    bench.run.write("speed", "| new |")
    text = page.read_text(encoding="utf-8")
    assert text.count("old") == 2
    assert text.count("after") == 3
    assert text.index(marks[1]) < text.index("| new |") < text.index(marks[2])


def test_the_page_has_a_place_for_every_part(bench):
    text = bench.run.PAGE.read_text(encoding="utf-8")
    for part in bench.run.PARTS:
        assert text.count(f"<!-- figures: {part}, made by") == 1


def test_curves_become_tables_and_pictures(bench, tmp_path):
    speed = bench.speed
    curves = [
        speed.Curve(figure, name, "things", ((10, 0.5), *(((100, 2.0),) if name == "one" else ())))
        for figure in speed.TITLES
        for name in ("one", "other")
    ]
    assert "| 10 | 500 ms | 500 ms |\n| 100 | 2 s | - |" in speed.tables(curves)
    made = speed.draw(curves, tmp_path)
    assert len(made) == len(speed.TITLES)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in made)


def test_a_heuristic_below_the_optimum_is_an_error(bench):
    gap = bench.greedy_gap
    workload, network = gap.problem(1)
    with pytest.raises(AssertionError, match="below the optimum"):
        gap.note(gap.Gaps(), gap.plan_greedy, workload, network, gap.Objective.FLOW, 1e9)
