"""Queries cut into tasks, with what was counted in a recording and without."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

import whimbrel as wb
from whimbrel.backtesting.measure import measure
from whimbrel.errors import DataError, NetworkError
from whimbrel.plan.demand import definition_b, graph_to_plan, workload_of
from whimbrel.plan.network import Broker, Consumer, EventSource, Link, Mover, Network

TEXT = """
define Stopped(vehicle)
  detect Position(speed > 10) as a then Position(speed < 1) as b within 5 s
  assign vehicle = group.source
  group by source
define Jam(n) over 5 min every 1 min
  detect Stopped(vehicle != "tram")
  assign n = count(Stopped.vehicle)
define Calm detect Stopped then not Siren for 1 min
"""
ROOT = Path(__file__).parents[2]
QUERY = wb.compile(TEXT)
NETWORK = Network(
    (Broker("gate"), Broker("hall"), Broker("cloud")),
    (Link("gate", "cloud"), Link("hall", "cloud")),
    (
        EventSource("east", "Position", "gate"),
        EventSource("west", "Position", "hall"),
        EventSource("horn", "Siren", "hall", rate_hz=0.5, size_b=30),
    ),
    (Consumer("desk", "cloud"),),
)
FAST, SLOW = "Position[speed > 10]", "Position[speed < 1]"


def positions() -> list[dict]:
    """Two cars that stop every ten seconds, for 100 s: east sends every second, west every other one."""
    rows = []
    for time in range(101):
        speed = 0.0 if time % 10 == 0 else 20.0 if time % 10 == 9 else 5.0
        rows.append({"type": "Position", "time": time, "source": "east", "speed": speed})
        if time % 2 == 0:
            rows.append({"type": "Position", "time": time, "source": "west", "speed": 5.0})
    return rows


def test_a_query_is_cut_at_what_can_travel():
    work = workload_of(QUERY, NETWORK)
    assert {task.name: task.inputs for task in work.tasks} == {
        f"{FAST} at east": ("east",),
        f"{FAST} at west": ("west",),
        f"{SLOW} at east": ("east",),
        f"{SLOW} at west": ("west",),
        "Stopped": tuple(f"{name} at {at}" for name in (FAST, SLOW) for at in ("east", "west")),
        "Stopped[vehicle != 'tram']": ("Stopped",),
        "Jam": ("Stopped[vehicle != 'tram']",),
        "Calm": ("Stopped", "horn"),
    }
    assert work.task["Stopped"].operators == ("Stopped.match", "Stopped")
    assert [(each.stream, each.at) for each in work.deliveries] == [("Jam", "cloud"), ("Calm", "cloud")]


def test_what_nobody_wants_is_left_out():
    network = replace(
        NETWORK, consumers=(Consumer("desk", "cloud", ("Stopped",), 2), Consumer("tv", "cloud"))
    )
    first = replace(network, consumers=network.consumers[:1])
    work = workload_of(QUERY, first)
    assert [task.name for task in work.tasks][-1] == "Stopped"
    assert [feed.name for feed in work.feeds] == ["east", "west"]
    assert work.deliveries[0].latency_s == 2
    assert len(workload_of(QUERY, network).deliveries) == 3


def test_what_two_definitions_need_and_cannot_travel_runs_in_both():
    text = "define A detect (X as x then Y as y within 5 s) assign k = x.k\n"
    text += "define B detect (X as x then Y as y within 5 s) assign k = y.k\n"
    network = replace(NETWORK, sources=(EventSource("x", "X", "gate"), EventSource("y", "Y", "hall")))
    work = workload_of(wb.compile(text), network)
    (shared,) = {*work.task["A"].operators} & {*work.task["B"].operators}
    assert shared in ("A.match", "B.match")
    assert work.task["A"].inputs == work.task["B"].inputs == ("x", "y")


def test_a_recording_gives_rates_sizes_and_selectivities():
    statistics = measure(QUERY, positions())
    # 101 + 51 positions in 100 s; east is fast ten times and stands eleven times; ten stops.
    assert statistics.rates["Position"] == pytest.approx(1.52)
    rates = {origin: part.rate_hz for origin, part in statistics.parts["Position"].items()}
    assert rates == pytest.approx({("Position", "east"): 1.01, ("Position", "west"): 0.51})
    assert (statistics.rates[FAST], statistics.rates[SLOW]) == pytest.approx((0.10, 0.11))
    assert (statistics.rates["Stopped"], statistics.rates["Stopped.match"]) == pytest.approx((0.1, 0.1))
    # type 8 + 4, source 4 + 4, two times, speed, and what tells events without ids apart
    assert statistics.sizes["Position"] == pytest.approx(12 + 8 + 16 + 8 + 8)
    work = workload_of(QUERY, NETWORK, statistics)
    assert work.feed["east"].rate_hz == pytest.approx(1.01)
    assert work.feed["horn"].rate_hz == 0.5
    # The car in the west is never fast.
    assert work.task[f"{FAST} at east"].rate_hz == pytest.approx(0.1)
    assert work.task[f"{FAST} at west"].rate_hz == 0
    assert work.task[f"{FAST} at west"].size_b == work.feed["west"].size_b == pytest.approx(52)
    assert work.task["Stopped"].rate_hz == pytest.approx(0.1)
    # Five seconds of fast and slow events are remembered.
    assert work.task["Stopped"].window_b == pytest.approx(5 * 0.21 * 52)
    assert work.task["Stopped"].work > work.task["Jam"].work > 0


def test_given_rates_scale_what_was_counted():
    statistics = measure(QUERY, positions())
    work = workload_of(QUERY, NETWORK, statistics, {"Position": 15.2})
    assert work.feed["east"].rate_hz == pytest.approx(10.1)
    assert work.task["Stopped"].rate_hz == pytest.approx(1.0)
    told = replace(NETWORK, sources=(replace(NETWORK.sources[0], rate_hz=9.0), *NETWORK.sources[1:]))
    assert [feed.rate_hz for feed in workload_of(QUERY, told, statistics).feeds] == pytest.approx(
        [9, 0.51, 0.5]
    )


def test_without_a_recording_everything_is_estimated():
    work = workload_of(QUERY, NETWORK, rates={"Position": 10})
    assert [feed.rate_hz for feed in work.feeds] == [5, 5, 0.5]
    assert work.task[f"{FAST} at east"].rate_hz == pytest.approx(0.3 * 5)
    assert all(task.size_b > 0 and task.fixed_b > 0 for task in work.tasks)


def test_operators_can_be_timed():
    ticks = count()
    statistics = measure(QUERY, positions(), clock=lambda: float(next(ticks)))
    assert statistics.work["Stopped.match"] > 0
    quicker = replace(statistics, work={name: took / 2 for name, took in statistics.work.items()})
    one, other = (workload_of(QUERY, NETWORK, each).task["Stopped"] for each in (statistics, quicker))
    assert one.work == pytest.approx(2 * other.work)


def test_files_and_tables_count_alike(tmp_path):
    (tmp_path / "recording.csv").write_text(
        "type,time,source,speed\n"
        + "".join(f"Position,{r['time']},{r['source']},{r['speed']}\n" for r in positions()),
        encoding="utf-8",
    )
    from_file = measure(QUERY, tmp_path / "recording.csv")
    assert from_file == measure(QUERY, [str(tmp_path / "recording.csv")])
    assert from_file.rates == measure(QUERY, positions()).rates


def test_any_type_is_fed_by_all_sources():
    work = workload_of(wb.compile("define Any detect * as a then * as b within 1 s"), NETWORK)
    assert work.task["Any"].inputs == ("east", "west", "horn")


def test_movers_send_from_where_they_are():
    moving = replace(
        NETWORK,
        brokers=(Broker("gate", area=(0, 0, 1, 1)), *NETWORK.brokers[1:]),
        movers=(Mover("car", ((0, 0.5, 0.5),)),),
        sources=(EventSource("east", "Position", "car"), *NETWORK.sources[2:]),
    )
    assert workload_of(QUERY, moving).feed["east"].at == "car"


def test_every_operator_that_is_needed_is_in_a_task():
    query = wb.read(ROOT / "examples" / "traffic" / "accident.wbl")
    work = workload_of(query, NETWORK)
    run = {name for task in work.tasks for name in task.operators}
    assert run == {operator.name for operator in graph_to_plan(query).operators} - {"Position"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"consumers": ()}, "nobody in the network wants detections"),
        ({"consumers": (Consumer("desk", "cloud", ("Jamm",)),)}, "'desk' wants it.*did you mean 'Jam'"),
        ({"sources": NETWORK.sources[:2]}, "no source of the network sends 'Siren' events"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    with pytest.raises(NetworkError, match=words):
        workload_of(QUERY, replace(NETWORK, **change))


def test_rates_are_of_types_that_the_query_reads():
    with pytest.raises(NetworkError, match="'Positions'; did you mean 'Position'"):
        workload_of(QUERY, NETWORK, rates={"Positions": 1})


def test_a_recording_has_to_last():
    with pytest.raises(DataError, match="says nothing about rates"):
        measure(QUERY, positions()[:1])


def test_what_passes_goes_with_the_source_that_it_came_from():
    rows = [
        {"type": "Position", "time": n, "source": name, "speed": 20.0 if name in fast else 5.0}
        for n in range(101)
        for name, fast in (("east", ("east",)), ("hall", ()), ("stray", ("stray",)))
    ]
    statistics = measure(QUERY, rows)
    # "hall" is where west is; who is not in the network is shared by all, as each has events of its own.
    work = workload_of(QUERY, NETWORK, statistics)
    assert [feed.rate_hz for feed in work.feeds[:2]] == pytest.approx([1.515, 1.515])
    assert work.task[f"{FAST} at east"].rate_hz == pytest.approx(1.515)
    assert work.task[f"{FAST} at west"].rate_hz == pytest.approx(0.505)
    # Twice the rate: twice as much passes, and as many come at once.
    doubled = workload_of(QUERY, NETWORK, statistics, {"Position": 6.06})
    assert doubled.task[f"{FAST} at west"].rate_hz == pytest.approx(1.01)
    assert doubled.feed["west"].burst_b == work.feed["west"].burst_b > 0
    # A rate that the network gives goes before the recorded one; as large a share of it passes.
    lone = replace(NETWORK, sources=(replace(NETWORK.sources[0], rate_hz=4.0), *NETWORK.sources[1:]))
    assert workload_of(QUERY, lone, statistics).task[f"{FAST} at east"].rate_hz == pytest.approx(4.0)


def test_senders_at_one_place_share_what_names_it():
    rows = [{"type": "Position", "time": n, "source": "gate", "speed": 20.0} for n in range(101)]
    pair = (EventSource("a", "Position", "gate"), EventSource("b", "Position", "gate"), NETWORK.sources[2])
    work = workload_of(QUERY, replace(NETWORK, sources=pair), measure(QUERY, rows))
    assert [feed.rate_hz for feed in work.feeds[:2]] == pytest.approx([0.505, 0.505])
    assert work.task[f"{FAST} at a"].rate_hz == pytest.approx(0.505)


def test_the_size_of_a_definition_does_not_depend_on_names_in_the_code():
    sizes = [definition_b(operator) for operator in QUERY.graph.operators]
    assert sizes == [59, 175, 173, 445, 277, 193, 384, 143, 53, 377, 142]
