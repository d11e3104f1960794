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


@pytest.mark.slow
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


def chain(tmp_path, planner, query, network, events, *other):
    """Plan, carry the plan out, and give what is printed and what is written."""
    files = {"query": YARD / query, "network": YARD / network, "events": YARD / events}
    plan = tmp_path / "plan.json"
    asked = ["--network", files["network"], "--events", files["events"], "--planner", planner, "--out", plan]
    planned = run("plan", files["query"], *asked, *other)
    assert planned.exit_code == 0, planned.output
    found = run("simulate", *own(plan, **files), "--out", tmp_path / "results")
    assert found.exit_code == 0, found.output
    assert "detections are those of one process: True" in found.output
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    written = {each.name for each in (tmp_path / "results").iterdir()}
    assert written == {"results.json", "table.txt", "traffic.png", "delays.png"}
    figures = {(row["figure"], row["of"]): row for row in results["rows"]}
    return json.loads(plan.read_text()), figures, results


def test_a_plan_that_pushes_and_pulls_is_carried_out_and_judged(tmp_path):
    plan, figures, results = chain(tmp_path, "pushpull", "river.wbl", "valley.yaml", "river.csv")
    cost = figures["cost a minute", "all links"]
    assert cost["estimated"] == pytest.approx(60 * plan["costs"]["cost_s"])
    assert cost["measured"] == pytest.approx(cost["estimated"], rel=0.1)
    delay = figures["delay s", "Flood to base"]
    assert delay["estimated"] == pytest.approx(plan["deliveries"][0]["delay_s"])
    assert 0 < figures["delay s, 95 % within", "Flood to base"]["measured"] <= delay["measured"]
    assert delay["measured"] <= delay["estimated"]
    for link in plan["links"]:
        row = figures["traffic B/s", " - ".join(link["between"])]
        assert row["estimated"] == pytest.approx(link["traffic_b_s"])
        assert row["measured"] > 0
    assert results["notes"]["detections that were missed"] == 0
    assert results["parameters"]["planner"] == "pushpull"


def test_a_plan_that_pushes_and_pulls_has_sizes_of_its_own(tmp_path):
    files = {"query": YARD / "river.wbl", "network": YARD / "valley.yaml", "events": YARD / "river.csv"}
    plan = tmp_path / "plan.json"
    asked = ["--network", files["network"], "--planner", "pushpull", "--out", plan]
    assert run("plan", files["query"], *asked).exit_code == 0
    found = run("simulate", *own(plan, **files), "--weigh")
    assert (found.exit_code, "--weigh does not go with a plan that" in found.output) == (2, True)
    other = run("simulate", *own(plan, **files | {"network": YARD / "site.yaml"}))
    told = other.output + str(other.exception)
    assert (other.exit_code, "plan.json: no definition of the query is named 'Danger'" in told) == (1, True)
    other = run("simulate", *own(plan, **files | {"query": YARD / "yard.wbl", "network": YARD / "site.yaml"}))
    told = other.output + str(other.exception)
    assert (other.exit_code, "another query or network: Danger cannot be" in told) == (1, True)


@pytest.mark.slow
def test_tasks_move_as_planned_along_with_the_ferry(tmp_path):
    plan, figures, results = chain(
        tmp_path, "migrate", "ferry.wbl", "strait.yaml", "crossing.csv", "--rate", "Reading=1"
    )
    for figure in ("flow B/s", "bdp B"):
        row = figures[figure, "all links"]
        assert row["measured"] == pytest.approx(row["estimated"], rel=0.1)
    delay = figures["delay s", "Strain to office"]
    assert 0 < delay["measured"] <= delay["estimated"]
    for each in plan["links"]:
        row = figures["traffic B/s, estimated at most", " - ".join(each["between"])]
        assert 0 < row["measured"] <= row["estimated"]
    moves = sum(len(hosts) - 1 for hosts in plan["hosts"].values() if not isinstance(hosts, str))
    assert results["notes"]["moves"] == moves > 0


# -- failures ------------------------------------------------------------------------------------------------


def printed(text, name):
    """Read a note that is printed below the table."""
    return next(line.partition(": ")[2] for line in text.splitlines() if line.startswith(name))


def test_failures_delay_detections_and_lose_none(plan):
    calm = run("simulate", *own(plan), "--quiet")
    found = run(
        "simulate", *own(plan), "--quiet",
        "--fail", "quay=1min..2min", "--fail", "cloud - office=30s..40s",
        "--checkpoint", "5s", "--notice", "2s",
    )  # fmt: skip
    assert (calm.exit_code, found.exit_code) == (0, 0), found.output
    assert printed(calm.output, "deliveries later than they may be") == "none"
    assert "stable storage" not in calm.output
    assert printed(found.output, "detections are those of one process") == "True"
    assert "after more than 3 s" in printed(found.output, "deliveries later than they may be")
    assert "events that were worked on again" in printed(found.output, "stable storage")


def test_without_recovery_what_is_lost_is_told(plan, tmp_path):
    found = run(
        "simulate", *own(plan), "--quiet", "--fail", "quay=1min..", "--no-recovery", "--out", tmp_path
    )
    assert found.exit_code == 0, found.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert not results["notes"]["detections are those of one process"]
    assert results["notes"]["messages that were dropped"]["broker failed"] > 0
    assert results["parameters"]["fail"] == [["quay", 60.0, float("inf")]]
    assert results["parameters"]["no_recovery"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--fail", "quai=1min..2min"], 1, "named 'quai' (it is to fail); did you mean 'quay'?"),
        (["--fail", "quay - cloud=1s..2s"], 1, "no broker or link is named 'quay - cloud'"),
        (["--fail", "quay=2min..1min"], 2, "ends before it begins"),
        (["--fail", "quay"], 2, "is not NAME=FROM..TO; write for example gate=10s..25s"),
        (["--fail", "quay=soon..later"], 2, "soon"),
        (["--no-recovery"], 2, "--no-recovery says what happens when something fails; give --fail, too"),
        (["--checkpoint", "5s"], 2, "--checkpoint says what happens"),
    ],
)  # fmt: skip
def test_failures_that_cannot_be_are_refused(plan, arguments, status, message):
    found = run("simulate", *own(plan), *arguments)
    assert found.exit_code == status
    assert message in found.output + str(found.exception)


def test_scenarios_have_failures_of_their_own():
    found = run("simulate", "hierarchy", "--fail", "cloud=1s..2s")
    assert (found.exit_code, "--fail is for a plan of your own" in found.output) == (2, True)


def test_plans_that_push_and_pull_meet_failures_but_have_no_tasks(tmp_path):
    files = {"query": YARD / "river.wbl", "network": YARD / "valley.yaml", "events": YARD / "river.csv"}
    plan = tmp_path / "plan.json"
    asked = ["--network", files["network"], "--planner", "pushpull", "--out", plan]
    assert run("plan", files["query"], *asked).exit_code == 0
    found = run("simulate", *own(plan, **files), "--quiet", "--fail", "ridge=10min..6h")
    assert printed(found.output, "detections are those of one process") == "True"
    assert "208 of 208 after more than" in printed(found.output, "deliveries later than they may be")
    found = run("simulate", *own(plan, **files), "--fail", "ridge=10min..6h", "--checkpoint", "1min")
    assert (found.exit_code, "--checkpoint is for tasks" in found.output) == (2, True)
