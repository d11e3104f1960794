"""Scenarios run by name, say the same twice, and leave results that can be read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from experiments.published import Published, PublishedPlot, write_figures
from experiments.scenarios import SCENARIOS, simulate
from experiments.workloads import against_costs, compared
from whimbrel.cli.main import main
from whimbrel.errors import SimulationError
from whimbrel.sim.report import table, write_report
from whimbrel.sim.results import Plot, Results

MIGCEP = {"graphs": 1, "seconds": 60.0, "vehicles": 60}
MOBILE = {"traffic": "streets", "vehicles": 800, "seconds": 120, "followed": 4, "runs": 2}
REUSE = {"mobility": "streets", "vehicles": 80, "repeats": 1, "window": 10}
REUSE_SPEED = {"operators": (4.0,), "selections": 200, "tries": 1, "sample": 100}
SMALL = {
    "hierarchy": {"cars": 6, "seconds": 40.0, "depth": 1},
    "deployment": {"minutes": 4.0},
    "nursing-home": {"floors": 1, "rooms": 1, "seconds": 5.0},
    "nursing-home-clips": {"floors": 1, "rooms": 1, "left": (0.1, 0.5)},
    "nursing-home-loss": {"floors": 1, "rooms": 2, "mbit_s": (54.0,), "seconds": 0.5, "packet_b": 13_500.0},
    "radius": {"every": (100.0,), "radii": (1.0, 4.0)},
    "migcep-state-size": {**MIGCEP, "states_b": (0.0, 20_000.0), "events_b": (250.0,)},
    "migcep-event-size": {**MIGCEP, "events_b": (50.0, 250.0)},
    "migcep-time-steps": {**MIGCEP, "steps_s": (1.0, 10.0)},
    "migcep-horizon": {**MIGCEP, "sizes": (10.0, 50.0), "ranges_m": (0.0, 5_000.0)},
    "migcep-uncertainty": {**MIGCEP, "states_b": (5_000.0,), "ahead_s": 60.0},
    "migcep-k-shortest": {**MIGCEP, "ks": (1.0, 4.0), "changes_s": (5.0,), "ahead": 20},
    "migcep-queries-state": {**MIGCEP, "states_kb": (0.0, 1_000.0), "ahead_s": 60.0},
    "migcep-queries-events": {**MIGCEP, "events_b": (10.0, 100.0), "ahead_s": 60.0},
    "mobile-predeployed": {**MOBILE, "edges": (100.0, 500.0)},
    "mobile-conditions": {**MOBILE, "edges": (100.0, 500.0)},
    "mobile-initialization": {**MOBILE, "counts": (5.0, 50.0)},
    "mobile-prediction-edge": {**MOBILE, "edges": (100.0, 500.0)},
    "mobile-prediction-lead": {**MOBILE, "leads_s": (1.0, 10.0)},
    "mobile-candidates": {**MOBILE, "numbers": (1.0, 5.0)},
    "mobile-predictors": {**MOBILE, "leads_s": (1.0, 10.0)},
    "reuse-batches": {**REUSE, "seconds": 20, "cars": 4, "sides_m": (5_000.0,), "thresholds": (0.3, 0.6)},
    "reuse-single": {**REUSE, "seconds": 2, "cars": 4, "sides_m": (5_000.0,), "thresholds": (0.5,)},
    "reuse-cars": {**REUSE, "seconds": 20, "cars": (2.0, 4.0), "thresholds": (0.5,)},
    "reuse-estimates": {**REUSE, "seconds": 4, "cars": 4, "cells_m": (500.0,), "slide": 10},
    "reuse-neighbours": {**REUSE, "seconds": 4, "cars": 4, "neighbours": (1.0, 3.0)},
    "reuse-prediction": {**REUSE, "seconds": 30, "cars": 3, "before_s": 10, "thresholds": (0.3, 0.6)},
    "reuse-complexity": {**REUSE_SPEED, "complexities": (1.0, 10.0), "batches": 2},
    "reuse-decisions": {**REUSE_SPEED, "complexity": 10, "batches": (1.0, 4.0)},
    "reuse-heuristics": {"operators": (4.0,), "selections": 200, "tries": 1},
    "comet-depth": {"minutes": 60.0, "depths": (1.0, 2.0)},
    "comet-window": {"minutes": 60.0, "tolerances_min": (60.0,), "windows_s": (10.0, 60.0)},
}
COMET = {"minutes": 60.0, "tolerances_min": (60.0,)}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_scenario_runs_and_drops_nothing(name):
    results = simulate(name, SMALL.get(name, COMET))
    assert results.rows
    for row in results.rows:
        assert row.get("dropped", 0) == 0
        assert row.get("missed", 0) == 0
    assert all(plot.x in results.rows[0] and plot.y in results.rows[0] for plot in results.plots)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures():
    first, second = (simulate("hierarchy", SMALL["hierarchy"]) for _ in range(2))
    assert first.rows == second.rows
    assert first.notes["detections are the same everywhere"]
    assert simulate("hierarchy", {**SMALL["hierarchy"], "seed": 1}).rows != first.rows


@pytest.mark.slow
def test_planning_by_flow_sends_less_than_the_centre_and_as_much_as_estimated():
    results = simulate("nursing-home", {"floors": 1, "rooms": 2, "seconds": 20.0})
    measured = {row["planner"]: row["measured B/s"] for row in results.rows}
    assert measured["flow-based"] * 5 < measured["centralised"]
    assert all(abs(row["off by"]) < 0.06 for row in results.rows)


@pytest.mark.slow
def test_by_flow_at_most_half_as_much_is_lost_on_narrow_links_as_by_the_centre():
    rows = simulate("nursing-home-loss", SMALL["nursing-home-loss"]).rows
    lost = {row["planner"]: row["lost"] for row in rows}
    assert len({row["due"] for row in rows}) == 1
    assert 0 < lost["flow-based"] <= lost["centralised"] / 2
    assert lost["flow-based"] <= lost["hop-based"]


@pytest.mark.slow
def test_brokers_of_the_laboratory_find_what_one_process_finds_and_send_less():
    results = simulate("deployment", {"minutes": 12.0})
    assert results.notes["detections are those of one process"]
    assert min(results.notes["detections"].get(name, 0) for name in ("User1-1", "User1-2", "User1-3")) > 0
    assert results.notes["times less in all"] > 100
    change = {row["broker"]: row["change"] for row in results.rows if row["way"] == "by flow"}
    assert all(change[broker] < -0.6 for broker in "346")


@pytest.mark.slow
def test_what_is_left_of_videos_decides_how_many_times_less_flows():
    rows = simulate("nursing-home-clips", {"left": (0.05, 0.15, 0.2)}).rows
    times = {row["left"]: row["times less"] for row in rows if row["planner"] == "flow-based"}
    assert times[0.05] > 3 * 6 > times[0.15] > 6.6 > times[0.2]


@pytest.mark.slow
def test_the_command_writes_figures_a_table_and_plots(tmp_path):
    given = [f"--set={key}={value}" for key, value in SMALL["nursing-home"].items()]
    done = CliRunner().invoke(main, ["simulate", "nursing-home", *given, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["parameters"]["seconds"] == 5.0
    assert [row["planner"] for row in results["rows"]] == [
        "centralised",
        "hop-based",
        "volume-based",
        "flow-based",
    ]
    assert (tmp_path / "table.txt").read_text().splitlines()[0].startswith("planner")
    assert (tmp_path / "flow.png").stat().st_size > 1000


def test_the_list_names_scenarios_and_parameters():
    done = CliRunner().invoke(main, ["simulate", "--list"])
    assert "nursing-home: a smart nursing home" in done.output
    assert "    cars=40  how many cars" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hierarch"], "no scenario is named 'hierarch'; did you mean 'hierarchy'?"),
        (["hierarchy", "--set", "car=3"], "has no parameter 'car'; did you mean 'cars'?"),
        (["hierarchy", "--set", "cars=many"], "cars='many' is not of type int"),
    ],
)
def test_what_cannot_be_run_is_told(arguments, message):
    done = CliRunner().invoke(main, ["simulate", *arguments])
    assert done.exit_code == 1
    assert message in done.stderr


def test_no_scenario_is_wrong_usage():
    done = CliRunner().invoke(main, ["simulate"])
    assert done.exit_code == 2
    assert "--list" in done.stderr


def test_values_are_read_as_the_defaults_are():
    settings = SCENARIOS["radius"].settings({"radii": "2, 3", "seed": "7"})
    assert (settings["radii"], settings["seed"]) == ((2.0, 3.0), 7)
    with pytest.raises(SimulationError, match="numbers with commas"):
        SCENARIOS["radius"].settings({"radii": "2;3"})


def test_an_empty_table_says_so():
    assert table([]) == "no results"


def test_estimates_stand_beside_what_was_measured():
    from tests.sim.test_query_run import line

    from experiments.workloads import run_workload
    from whimbrel.plan.workload import Delivery, Feed, Task, Workload

    workload = Workload(
        (Feed("sensor", 1.0, 1000.0, "edge"),),
        (Task("all", ("sensor",), 1.0, 1000.0),),
        (Delivery("all", "cloud"),),
    )
    found = run_workload(workload, line(latency_s=0.2, cost=3.0), {"all": "edge"}, until_s=50.0)
    figures = against_costs(found, 50.0, bdp_b=200.0, flow_b_s=1000.0, cost_s=3000.0, delays_s=[0.2])
    assert [each.what for each in figures] == ["bdp B", "flow B/s", "cost /s", "delay s: all to cloud (0)"]
    assert [each.off_by for each in figures] == pytest.approx([0.04, 0.04, 0.04, 0.0])  # headers
    (nothing,) = compared({"delay": 1.0}, {})
    assert nothing.off_by is None


@pytest.mark.slow
def test_what_a_paper_prints_is_drawn_and_written_beside_ours(tmp_path):
    rows = [{"way": "a", "share": 0.2}, {"way": "b", "share": 0.4}]
    bars = PublishedPlot("bars", "Shares", "way", "share", kind="bar", published=(
        Published("paper", (("a", 0.3), ("b", 0.5)), "Table 1"), Published("goal", 0.25, "Section 2"),
    ))  # fmt: skip
    plain = replace(bars, name="plain", published=())
    write_figures("test", {}, Results(rows, (bars, plain)), tmp_path)
    published = json.loads((tmp_path / "results.json").read_text())["published"]
    assert [each["what"] for each in published] == ["paper", "goal"]
    assert published[0]["values"] == [["a", 0.3], ["b", 0.5]]
    assert (tmp_path / "bars.png").read_bytes() != (tmp_path / "plain.png").read_bytes()


def test_a_logarithmic_plot_shows_what_is_drawn(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "close", lambda figure: shown.append(figure.axes[0].get_ylim()))
    rows = [{"x": 1.0, "y": 3.0}, {"x": 2.0, "y": 80_000.0}]
    plot = Plot("log", "Over five decades", "x", "y", logarithmic=True, x_logarithmic=True)
    write_report("test", {}, Results(rows, (plot,)), tmp_path)
    ((low, high),) = shown
    assert 0.1 < low < 3.0
    assert 80_000 < high < 1e6


def test_a_logarithmic_plot_shows_all_there_is(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    seen = []
    save = figure.Figure.savefig
    monkeypatch.setattr(
        figure.Figure,
        "savefig",
        lambda self, *a, **b: (seen.append((self.axes[0].get_ylim(), self.axes[0])), save(self, *a, **b)),
    )
    rows = [{"x": x, "y": y, "by": by} for x, y, by in ((1, 0.4, "a"), (2, 0.008, "a"), (1, None, "b"))]
    write_report("x", {}, Results(rows, (Plot("p", "t", "x", "y", "by", logarithmic=True),)), tmp_path)
    ((low, high), axes), *_ = seen
    assert 0.001 < low < 0.008
    assert high > 0.4
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a"]
