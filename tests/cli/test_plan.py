"""`whimbrel plan`. What plans say is tested with the planners."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

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
    assert "Stranger runs on gate-north, because 82.9 % of what it reads comes from there" in done.stdout
    assert json.loads(folder.read("plan.json"))["hosts"]["Danger"] == "office"
    assert folder.read("plan.svg").startswith("<?xml")


def test_rates_are_enough(site):
    done = site.run(
        "plan", "late.wbl", "--network", "site.yaml", "--rate", "Leave=0.5", "--planner", "exact", "--table"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2].split()[:3] == ["Late", "depot", "30/min"]


def test_the_plan_goes_to_standard_output_alone(site):
    done = site.run("plan", "late.wbl", "--network", "site.yaml", "--out", "-", "--objective", "flow")
    assert json.loads(done.stdout)["objective"] == "flow"


def test_operators_are_timed_on_the_recording(site):
    args = ["plan", "late.wbl", "--network", "site.yaml", "--timed"]
    assert site.run(*args, "--events", "trips.csv").exit_code == 0
    without = site.run(*args)
    assert (without.exit_code, "give one with --events" in without.stderr) == (2, True)


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["--planner", "gredy"], 2, "did you mean 'greedy'?"),
        (["--objective", "speed"], 2, "'speed' is not one of"),
        (["--rate", "Leave=often"], 2, "is no number of events a second"),
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
