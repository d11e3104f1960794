"""`whimbrel plan`. What plans say is tested with the planners."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from whimbrel.cli import planner_options
from whimbrel.cli.main import main
from whimbrel.plan.migration.policies import POLICIES
from whimbrel.plan.planners import PLANNERS
from whimbrel.plan.settings import Movement

EXAMPLE = Path(__file__).parents[2] / "examples" / "planning"
NETWORK = """
brokers: [{name: depot, capacity: 1}, {name: cloud}]
links: [{between: [depot, cloud], bandwidth: 1 Mbit/s, latency: 20 ms}]
sources: [{name: gate, type: Leave, at: depot}, {name: ramp, type: Arrive, at: depot, rate: 2/min}]
consumers: [{name: desk, at: cloud, wants: [Late], latency: 1 s}]
"""


@pytest.fixture
def site(folder):
    folder.write("site.yaml", NETWORK)
    return folder


def test_the_example_is_planned_from_its_recording(folder):
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder.path)
    done = folder.run(
        "plan", "yard.wbl", "--network", "site.yaml", "--events", "recording.csv", "--out", "plan.json",
        "--picture", "plan.svg",
    )  # fmt: skip
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Stranger runs on gate-north, because 100 % of what it reads comes from there" in done.stdout
    assert json.loads(folder.read("plan.json"))["hosts"]["Danger"] == "office"
    assert folder.read("plan.svg").startswith("<?xml")


def test_rates_are_enough(site):
    done = site.run(
        "plan", "late.wbl", "--network", "site.yaml", "--rate", "Leave=0.5", "--planner", "exact", "--table"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2].split()[:3] == ["Late", "depot", "30/min"]


def test_brokers_agree_on_a_plan_with_what_they_know(site):
    args = ["plan", "late.wbl", "--network", "site.yaml", "--rate", "Leave=0.5", "--planner", "flow"]
    near, all_known = (site.run(*args, *more) for more in (["--radius", "1"], []))
    assert (near.exit_code, near.stderr) == (0, "")
    noted = [line for line in near.stdout.splitlines() if line.startswith("Note")]
    assert len(noted) == 2, noted  # the other one: this planner keeps the flow small, and nothing else
    assert "every broker knew those within 1 hop; they agreed in 1 step, by 2 packets about plans" in noted[1]
    # Two brokers that are neighbours see everything: they plan what one that does would.
    assert near.stdout.replace(noted[1] + "\n", "") == all_known.stdout


def test_the_plan_goes_to_standard_output_alone(site):
    done = site.run("plan", "late.wbl", "--network", "site.yaml", "--out", "-", "--objective", "flow")
    assert json.loads(done.stdout)["objective"] == "flow"


def test_operators_are_timed_on_the_recording(site):
    args = ["plan", "late.wbl", "--network", "site.yaml", "--timed"]
    assert site.run(*args, "--events", "trips.csv").exit_code == 0
    without = site.run(*args)
    assert (without.exit_code, "give one with --events" in without.stderr) == (2, True)


BAD_ROWS = "e4,Leave,soon,truck-4,3,4,1\ne5,Leave,later,truck-5,3,4,1\n"


def test_rows_of_a_recording_that_are_no_events_are_told(site):
    site.write("bad.csv", (site.path / "trips.csv").read_text() + BAD_ROWS)
    site.write("more.csv", "id,type,time,source\n,Leave,2024-05-01T09:00:00Z,t\ne9,,2024-05-01T09:00:00Z,t\n")
    args = ["plan", "late.wbl", "--network", "site.yaml", "--events", "bad.csv", "more.csv"]
    done = site.run(*args, "--rejected", "no.jsonl")
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    assert lines[:2] == ["4 rows rejected (no.jsonl)", "  2 x time is not a readable time"]
    event = '{"id": "e4", "type": "Leave", "time": "soon", "source": "truck-4", "x": 3, "y": 4, "load": 1.0}'
    assert lines[-4] == f"  bad.csv, row 4: time is not a readable time: 'soon': {event}"
    assert lines[-2].startswith("  more.csv, row 1: ")
    assert lines[-1] == "  and 1 other row"
    assert len(site.read("no.jsonl").splitlines()) == 4
    assert site.run(*args, "--quiet").stderr == ""


def test_a_recording_in_which_no_row_is_an_event_is_told_with_the_reasons(site):
    site.write("bad.csv", "id,type,time,source,x,y,load\n" + BAD_ROWS)
    done = site.run("plan", "late.wbl", "--network", "site.yaml", "--events", "bad.csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "  2 x time is not a readable time" in done.stderr
    assert "give a longer one; 2 of 2 rows were rejected" in done.stderr


def test_what_is_read_is_not_overwritten(site):
    done = site.run(
        "plan", "late.wbl", "--network", "site.yaml", "--events", "trips.csv", "--out", "trips.csv"
    )
    assert (done.exit_code, "--out trips.csv would overwrite a file that is read" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("option", "file", "what"),
    [
        ("--out", "site.yaml", "the network"),
        ("--picture", "site.yaml", "the network"),
        ("--rejected", "site.yaml", "the network"),
        ("--out", "late.wbl", "the query"),
        ("--picture", "late.wbl", "the query"),
        ("--picture", "trips.csv", "a file that is read"),
    ],
)
def test_no_file_that_is_read_is_overwritten(site, option, file, what):
    before = site.read(file)
    done = site.run(
        "plan",
        "late.wbl",
        "--network",
        "site.yaml",
        "--events",
        "trips.csv",
        option,
        f"../{site.path.name}/{file}",
    )
    assert (done.exit_code, f"would overwrite {what}" in done.stderr) == (2, True)
    assert site.read(file) == before


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["--planner", "gredy"], 2, "did you mean 'greedy'?"),
        (["--objective", "speed"], 2, "'speed' is not one of"),
        (["--radius", "2"], 2, "--radius is for --planner flow"),
        (["--planner", "flow", "--radius", "0"], 2, "0 is not in the range"),
        (["--rate", "Leave=often"], 2, "is no number of events a second"),
        (["--rate", "Leave"], 2, "'Leave' is not TYPE=NUMBER; write for example Position=40"),
        (["--rate", "Leaf=1"], 1, "the query reads no events of type 'Leaf'; did you mean 'Leave'?"),
        (["--picture", "plan.jpeg"], 1, "name a file that ends with .png or .svg"),
        (["--events", "none.csv"], 1, "none.csv"),
    ],
)
def test_bad_input_is_told(site, args, status, words):
    done = site.run("plan", "late.wbl", "--network", "site.yaml", *args)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1 Mbit/s", "1 Mbit", "error: site.yaml: links[0].bandwidth: '1 Mbit' is not a bandwidth"),
        ("Arrive", "Arrives", "sends 'Arrive' events, which the query reads; did you mean 'Arrives'?"),
        ("latency: 1 s", "latency: 1 ms", "Late would reach cloud after 20.5 ms, or 21 ms when"),
    ],
)
def test_a_network_that_does_not_do_is_told(site, old, new, words):
    site.write("site.yaml", NETWORK.replace(old, new))
    done = site.run("plan", "late.wbl", "--network", "site.yaml")
    assert (done.exit_code, done.stdout) == (1, "")
    assert words in done.stderr


def test_a_network_has_to_be_there(site):
    missing = site.run("plan", "late.wbl", "--network", "nowhere.yaml")
    assert (missing.exit_code, "nowhere.yaml: No such file" in missing.stderr) == (1, True)
    assert site.run("plan", "late.wbl").exit_code == 2


@pytest.fixture
def examples(folder):
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder.path)
    return folder


def test_tasks_move_with_movers(examples):
    args = ["plan", "ferry.wbl", "--network", "strait.yaml", "--events", "ferry.csv", "--planner", "migrate"]
    done = examples.run(
        *args, "--out", "plan.json", "--picture", "plan.png", "--step", "20s", "--ahead", "6min"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert "over 6 min, in steps of 20 s." in done.stdout
    assert "Strain starts on islet at 100 s: its fixed state (646 B) leaves west at" in done.stdout
    plan = json.loads(examples.read("plan.json"))
    assert plan["hosts"]["Strain"] == [[0.0, "west"], [100.0, "islet"], [200.0, "east"]]
    assert [each["do"] for each in plan["schedule"] if each["task"] == "Strain"][:2] == [
        "send_fixed",
        "send_window",
    ]
    assert (examples.path / "plan.png").read_bytes().startswith(b"\x89PNG")
    table = examples.run(*args, "--table")
    assert "send window" in table.stdout


def test_events_are_pushed_and_pulled(examples):
    args = ["plan", "river.wbl", "--network", "valley.yaml", "--planner", "pushpull"]
    done = examples.run(*args, "--out", "plan.json", "--picture", "plan.svg")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "ridge then asks for Rain[amount > 20] at gauge-1" in done.stdout
    assert len(json.loads(examples.read("plan.json"))["composites"]) == 2
    assert examples.read("plan.svg").startswith("<?xml")
    assert "pulled (1)" in examples.run(*args, "--table").stdout


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["ferry", "strait", "--step", "5s"], 2, "--step is for --planner migrate"),
        (["ferry", "strait", "--planner", "migrate", "--step", "soon"], 2, "soon"),
        (["ferry", "strait", "--planner", "migrate", "--step", "1ms"], 1, "take longer steps (--step)"),
        (["ferry", "strait", "--planner", "pushpull"], 1, "the mover ferry; use --planner migrate"),
        (
            ["yard", "site", "--planner", "pushpull"],
            1,
            "error: Danger cannot be detected by pushing and pulling",
        ),
    ],
)
def test_what_new_planners_cannot_do_is_told(examples, args, status, words):
    query, network, *others = args
    done = examples.run("plan", f"{query}.wbl", "--network", f"{network}.yaml", *others)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["yard", "site", "--planner", "flow", "--grouped"], "The plan (flow)"),
        (["yard", "site", "--planner", "exact", "--time-limit", "1min"], "The plan (exact)"),
        (["ferry", "strait", "--planner", "migrate", "--coordinated"], "Note: tasks agreed by "),
        (
            [
                "ferry",
                "strait",
                "--planner",
                "migrate",
                "--movement",
                "linear",
                "--policy",
                "weighted-sum",
                "--replan-every",
                "1min",
                "--window",
                "2min",
                "--range",
                "5000",
                "--step",
                "20s",
            ],
            "plans came one after the other, by the policy 'weighted sum'.",
        ),
        (
            [
                "ferry",
                "strait",
                "--planner",
                "migrate",
                "--movement",
                "navigation",
                "--spread",
                "0.3",
                "--step",
                "20s",
            ],
            "by the policy 'adaptive'.",
        ),
        (["river", "valley", "--planner", "pushpull", "--priority", "Flood=2"], "Flood is known at base"),
    ],
)
def test_each_planner_takes_settings_of_its_own(examples, args, words):
    query, network, *others = args
    done = examples.run("plan", f"{query}.wbl", "--network", f"{network}.yaml", *others)
    assert (done.exit_code, done.stderr) == (0, "")
    assert words in done.stdout


def test_options_name_all_there_is_to_choose():
    assert {name.replace("-", " ") for name in planner_options.POLICIES} == set(POLICIES)
    assert tuple(Movement) == planner_options.MOVEMENTS


def test_every_setting_of_every_planner_has_an_option():
    options = {(name, each.setting) for each in main.commands["plan"].params
               if isinstance(each, planner_options.PlannerOption) for name in each.planners}  # fmt: skip
    for name, planner in PLANNERS.items():
        assert {field.name for field in fields(planner.settings)} == {
            setting for planner_name, setting in options if planner_name == name
        }


@pytest.mark.parametrize(
    ("query", "network", "planner"), [("yard", "site", "greedy"), ("river", "valley", "pushpull")]
)
def test_a_previous_plan_stays_if_another_saves_little(examples, query, network, planner):
    args = ["plan", f"{query}.wbl", "--network", f"{network}.yaml", "--planner", planner]
    assert examples.run(*args, "--out", "first.json").exit_code == 0
    done = examples.run(*args, "--previous", "first.json", "--least-gain", "0.1")
    assert done.exit_code == 0
    assert re.search(r"Note: the previous (hosts|plan) stays?: .* would save 0 %", done.stdout)


def test_a_previous_plan_that_is_no_longer_possible_is_told(examples):
    args = ["plan", "river.wbl", "--network", "valley.yaml", "--planner", "pushpull"]
    assert examples.run(*args, "--out", "first.json").exit_code == 0
    site = examples.path / "valley.yaml"
    site.write_text(site.read_text().replace("ridge", "hill"))
    done = examples.run(*args, "--previous", "first.json")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: the previous plan cannot stay: ")


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["yard", "site", "--grouped"], 2, "--grouped is for --planner flow"),
        (["yard", "site", "--planner", "migrate", "--previous", "x"], 2,
         "--previous is for --planner centralised, greedy, exact, flow or pushpull"),
        (["yard", "site", "--priority", "Danger=1"], 2, "--priority is for --planner pushpull"),
        (["river", "valley", "--planner", "pushpull", "--priority", "Flood=much"], 2, "for example Flood=2"),
        (["river", "valley", "--planner", "pushpull", "--priority", "Flood"], 2, "for example Danger=2"),
        (["river", "valley", "--planner", "pushpull", "--priority", "Fire=2"], 1, "is named 'Fire'"),
        (["ferry", "strait", "--planner", "migrate", "--policy", "naive"], 2, "give --movement, too"),
        (["ferry", "strait", "--planner", "migrate", "--movement", "known", "--window", "9s"], 2,
         "--movement"),
        (["ferry", "strait", "--planner", "migrate", "--coordinated", "--movement", "linear"], 2,
         "leave out one of coordinated and movement"),
        (["ferry", "strait", "--planner", "migrate", "--movement", "learned"], 1, "no other movers to learn"),
        (["yard", "site", "--planner", "flow", "--radius", "1", "--grouped"], 2, "leave out the radius"),
        (["yard", "site", "--previous", "yard.wbl"], 1, "yard.wbl is not JSON"),
        (["yard", "site", "--previous", "gone.json"], 1, "the plan gone.json cannot be read"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(examples, args, status, words):
    query, network, *others = args
    done = examples.run("plan", f"{query}.wbl", "--network", f"{network}.yaml", *others)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_plans_of_another_kind_are_no_previous_ones(examples):
    for query, network, planner in (("yard", "site", "greedy"), ("river", "valley", "pushpull")):
        args = ["plan", f"{query}.wbl", "--network", f"{network}.yaml", "--planner", planner]
        assert examples.run(*args, "--out", f"{planner}.json").exit_code == 0
    args = ["plan", "river.wbl", "--network", "valley.yaml", "--planner", "pushpull"]
    done = examples.run(*args, "--previous", "greedy.json")
    assert (done.exit_code, "a plan that says where tasks run" in done.stderr) == (2, True)
    done = examples.run("plan", "yard.wbl", "--network", "site.yaml", "--previous", "pushpull.json")
    assert (done.exit_code, "a plan that pushes and pulls" in done.stderr) == (2, True)


def test_without_movers_nothing_moves(examples):
    done = examples.run(
        "plan", "yard.wbl", "--network", "site.yaml", "--events", "recording.csv", "--planner", "migrate"
    )
    assert "Note: nothing that sends or receives moves, so tasks stay where they are." in done.stdout
