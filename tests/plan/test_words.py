"""What plans say about themselves, held in golden files; `make golden` rewrites them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import whimbrel as wb
from experiments.networks import nursing_home
from whimbrel.backtesting.measure import measure
from whimbrel.errors import NetworkError
from whimbrel.plan.cost import Objective
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import read_network
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.picture import spread
from whimbrel.plan.planners import plan_centralised, plan_exact, plan_greedy
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

GOLDEN = Path(__file__).parent / "golden"
EXAMPLE = Path(__file__).parents[2] / "examples" / "planning"


@pytest.fixture(scope="module")
def yard():
    query, network = wb.read(EXAMPLE / "yard.wbl"), read_network(EXAMPLE / "site.yaml")
    return workload_of(query, network, measure(query, EXAMPLE / "recording.csv")), network


def line() -> tuple[Workload, Network]:
    """A task that would best run at the edge, where there is no room for it."""
    brokers = (Broker("edge", capacity=1), Broker("hub"), Broker("cloud", capacity=2))
    links = (Link("edge", "hub", 2e6, 0.01), Link("hub", "cloud", 1e6, 0.02))
    feed = Feed("camera", 10, 1000, "edge")
    tasks = (Task("Face", ("camera",), 1, 100, work=3), Task("Known", ("Face",), 0.1, 50, work=1))
    return Workload((feed,), tasks, (Delivery("Known", "cloud", 1),)), Network(brokers, links, name="line")


@pytest.mark.parametrize("name", ["yard-greedy", "yard-centralised", "line-exact", "home-flow"])
def test_words_and_tables(name, yard, update_golden):
    plans = {
        "yard-greedy": lambda: plan_greedy(*yard),
        "yard-centralised": lambda: plan_centralised(*yard, Objective.COST),
        "line-exact": lambda: plan_exact(*line()),
        "home-flow": lambda: plan_greedy(nursing_home().workload, nursing_home().network, Objective.FLOW),
    }
    plan = plans[name]()
    said = f"{plan.words()}\n{plan.table()}"
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


def test_a_plan_is_plain_data(yard):
    plan = plan_greedy(*yard)
    data = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert data["hosts"] == plan.hosts
    assert {task["name"]: task["host"] for task in data["tasks"]} == plan.hosts
    # A plate of 60 kB takes 1.875 s from one gate, 0.24 s to the other, where strangers are told.
    assert data["deliveries"][0] == {
        "stream": "Danger",
        "at": "office",
        "delay_s": pytest.approx(1.875 + 0.24 + 0.038, abs=2e-3),
        "bound_s": pytest.approx(2.16, abs=2e-2),
        "latency_s": 3.0,
    }
    assert data["deliveries"][1]["latency_s"] is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_plan_gives_the_same_picture(tmp_path, kind, yard):
    plan = plan_greedy(*yard)
    for name in ("one", "other"):
        plan.draw(str(tmp_path / f"{name}.{kind}"))
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()
    if kind == "svg":
        text = (tmp_path / "one.svg").read_text(encoding="utf-8")
        assert all(word in text for word in ("container yard", "gate-north", "Danger", "→ Stranger", "× 3"))


def test_a_picture_is_png_or_svg(yard):
    with pytest.raises(NetworkError, match=r"ends with \.png or \.svg"):
        plan_greedy(*yard).draw("plan.jpeg")


def test_brokers_without_a_place_are_laid_out_by_levels():
    tree = Network(
        (Broker("root"), *(Broker(n, parent="root") for n in "ab"), Broker("c", parent="b"), Broker("alone")),
        (Link("root", "a"), Link("root", "b"), Link("b", "c")),
    )
    spots = spread(tree)
    assert spots == {"root": (0.5, 0), "a": (0, -1), "b": (1, -1), "c": (1, -2), "alone": (2, 0)}
    own = replace(tree, brokers=tuple(replace(b, x=float(n), y=0.0) for n, b in enumerate(tree.brokers)))
    assert spread(own)["c"] == (3, 0)
    assert all(math.isfinite(x) for x, _ in spots.values())


def test_the_guide_shows_what_the_example_says(yard):
    page = (EXAMPLE.parents[1] / "docs" / "planning.md").read_text(encoding="utf-8")
    assert plan_greedy(*yard).words() in page
