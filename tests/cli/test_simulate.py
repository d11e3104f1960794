"""`whimbrel simulate` with a plan of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from whimbrel.cli.main import main

YARD = Path(__file__).parents[2] / "examples" / "planning"


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Plan the example."""
    file = tmp_path_factory.mktemp("plan") / "plan.json"
    asked = ["--network", YARD / "site.yaml", "--events", YARD / "recording.csv", "--out", file]
    assert run("plan", YARD / "yard.wbl", *asked).exit_code == 0
    return file


def own(plan, **other):
    given = {
        "query": YARD / "yard.wbl",
        "network": YARD / "site.yaml",
        "plan": plan,
        "events": YARD / "recording.csv",
    }
    return [part for name, value in (given | other).items() if value for part in (f"--{name}", value)]


def test_a_plan_is_carried_out_and_judged(plan, tmp_path):
    found = run("simulate", *own(plan), "--out", tmp_path)
    assert found.exit_code == 0, found.output
    assert "detections are those of one process: True" in found.output
    results = json.loads((tmp_path / "results.json").read_text())
    figures = {(row["figure"], row["of"]): row for row in results["rows"]}
    planned = json.loads(plan.read_text())
    assert figures["flow B/s", "all links"]["estimated"] == pytest.approx(planned["costs"]["flow_b_s"])
    assert figures["traffic B/s", "quay - office"]["measured"] > 0
    for delivery in planned["deliveries"]:
        row = figures["delay s", f"{delivery['stream']} to {delivery['at']}"]
        assert 0 < row["measured"] <= row["estimated"]
    assert {"results.json", "table.txt", "traffic.png", "delays.png"} == {
        each.name for each in tmp_path.iterdir()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "x.wbl"], "give --network and --plan and --events, too"),
        (["hierarchy", "--plan", "x"], "the scenario 'hierarchy' does not go with a plan of your own"),
        (["--plan", "x", "--set", "cars=1"], "--set does not go with a plan"),
        ([], "say which scenario"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, message):
    found = run("simulate", *arguments)
    assert found.exit_code == 2
    assert message in found.output


def test_a_plan_for_something_else_is_refused(plan, tmp_path):
    other = tmp_path / "other.wbl"
    other.write_text("define Slow detect Position(speed < 1) as p")
    found = run("simulate", *own(plan, query=other))
    assert found.exit_code == 1
    assert "the plan is for another query" in found.output + str(found.exception)
