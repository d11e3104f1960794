"""The engine finds the motions that the reference finds: on random motions, samples, batches and orders."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, in_batches, plain, whole, with_snapshots
from tests.reference import Detection, Event
from tests.reference.random_motions import crowds, encounter_graphs, motion_graphs, sample_lists
from tests.reference.strategies import arrivals, cuts, expected
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.engine.operators import encounter, motion
from whimbrel.engine.region_distances import WatchedRegions
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import distance_m

SECOND = 1_000_000
FEWER = settings(max_examples=max(10, settings.default.max_examples // 2))

WARM = """
region R = box(0, 0, 4, 4)
define A detect T enters R margin 1 m between samples
define B detect T stays in R for 1 s
define C detect T stops for 1 s within 1 m
define D detect T approaches R by 1 m
define E detect T as a comes within 3 m of T as b
"""


@pytest.fixture(scope="module", autouse=True)
def motion_kernels() -> None:
    rows = [{"id": str(n), "type": "T", "time": n, "x": 9.0 - 3 * n, "y": 1.0} for n in range(5)]
    wb.detect(wb.compile(WARM), rows)


@given(motion_graphs(), sample_lists())
def test_the_engine_finds_the_motions_that_the_reference_finds(graph, events):
    assert plain(whole(graph, events)) == plain(expected(graph, events))


@FEWER
@given(st.data(), motion_graphs(), sample_lists(), st.sampled_from([0, SECOND, 3 * SECOND]))
def test_batches_arrival_order_and_snapshots_do_not_change_motions(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    run = data.draw(st.sampled_from([in_batches, with_snapshots]))
    assert plain(run(graph, batches, lateness)) == plain(expected(graph, events))


@given(encounter_graphs(), crowds())
def test_the_engine_finds_the_encounters_that_the_reference_finds(graph, events):
    assert plain(whole(graph, events)) == plain(expected(graph, events))


@FEWER
@given(st.data(), encounter_graphs(), crowds(), st.sampled_from([0, 2 * SECOND]))
def test_batches_arrival_order_and_snapshots_do_not_change_encounters(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    run = data.draw(st.sampled_from([in_batches, with_snapshots]))
    assert plain(run(graph, batches, lateness)) == plain(expected(graph, events))


PHRASES = """
    T enters R
    T enters R margin 1 m between samples
    T enters R settling 2 events
    T leaves R accuracy w
    T leaves R settling 2 s
    T crosses R
    T crosses R margin 1 m
    T reaches R from 2 m
    T comes within 2 m of R
    T comes within 1 m of R margin 1 m settling 2 events
    T stays in R for 3 s
    T stays outside R for 4 s margin 1 m
    T stays beyond 1 m of R for 3 s
    T approaches R by 2 m
    T approaches R by 2 m margin 1 m
    T stops for 2 s within 1 m
    T is silent for 2 s
    T as a comes within 2 m of T as b
    T as a leaves T as b beyond 3 m margin 1 m
    T as a meets T as b within 2 m for 2 s
    T as a travels with T as b within 2 m for 3 s
    T as a reaches T as b from 3 m within 2 m fresh 1 s
    T as a reaches T as b from 4 m within 2 m between samples
    T as a comes within 2 m of T as b settling 2 events
    T as a comes within 3 m of T as b accuracy w margin 1 m
    T as a leaves T as b beyond 3 m settling 2 s accuracy w
    T as a crosses T as b beyond 3 m within 1 m
    T as a crosses T as b beyond 2 m within 1 m fresh 2 s
    T as a crosses T as b beyond 2 m within 2 m settling 2 events
    T as a approaches T as b by 2 m
    T as a approaches T as b by 3 m margin 1 m fresh 3 s
    T as a stays beyond 3 m of T as b for 3 s margin 1 m
    T as a stays beyond 2 m of T as b for 2 s accuracy w fresh 2 s
    T as a meets T as b within 3 m for 2 s accuracy w
"""


SEEDS = (0, 2)
"""Of walks in which each phrase is found."""


@pytest.mark.parametrize("phrase", [line.strip() for line in PHRASES.strip().splitlines()])
def test_long_walks_of_several_movers(phrase):
    """Samples that follow each other closely, so that much happens."""
    regions = "region R = 'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))' "
    graph = compile_text(regions + f"define D detect {phrase}").graph
    found = 0
    for seed in SEEDS:
        events = walks(seed)
        wanted = plain(expected(graph, events))
        assert plain(whole(graph, events)) == wanted
        batches = [events[begin : begin + 7] for begin in range(0, len(events), 7)]
        assert plain(with_snapshots(graph, batches)) == wanted
        found += len(wanted)
    assert found


def walks(seed: int) -> list[Event]:
    """Three movers that take a step every second, and sometimes are not seen; in the end a wind blows."""
    random = Random(seed)
    places = {name: [random.randint(-2, 6), random.randint(-2, 6)] for name in "abc"}
    found = []
    for second in range(20):
        for name, place in places.items():
            place[random.randint(0, 1)] += random.choice((-1, 1))
            place[0] += second >= 14
            if random.random() < 0.7:
                x, y = map(float, place)
                time = second * SECOND
                values = {"v": 3, "w": random.choice((0.0, 0.0, 1.0)), "k": name}
                found.append(Event(f"{name}{second:02}", "T", time, time, name, x, y, attributes=values))
    return found


# On the earth.

METRE = 1 / 111_195.08
"""About a metre in degrees, at the equator."""


@pytest.mark.parametrize("phrase", [line.strip() for line in PHRASES.strip().splitlines()])
def test_the_date_line_is_a_line_like_any_other(phrase):
    """What is found at one longitude is found at any other one."""
    for seed in SEEDS:
        plane = plain_events(f"region R = box(-0.4, -0.4, 4.3, 4.3) define D detect {phrase}", walks(seed))
        for middle in (20.0, 180.0):
            corners = [
                (middle + x * METRE, y * METRE)
                for x, y in ((-0.4, -0.4), (4.3, -0.4), (4.3, 4.3), (-0.4, 4.3))
            ]
            ring = ", ".join(f"{lon!r} {lat!r}" for lon, lat in [*corners, corners[0]])
            text = f"coordinates lonlat region R = 'POLYGON (({ring}))' define D detect {phrase}"
            assert plain_events(text, walks(seed), middle) == plane


def plain_events(text: str, events: list[Event], middle: float | None = None) -> list[list[str]]:
    """The events of what is found; with a longitude, in degrees around it."""
    rows = []
    for event in events:
        row = {
            "type": event.type,
            "start": event.start,
            "end": event.end,
            "id": event.id,
            "source": event.source,
        }
        x, y = event.x + 0.01, event.y + 0.01  # beside all borders and distances
        if middle is None:
            row |= {"x": x, "y": y}
        else:
            row |= {"lon": (middle + x * METRE + 180.0) % 360.0 - 180.0, "lat": y * METRE}
        rows.append(row | dict(event.attributes))
    query = wb.compile(re.sub(r"(\d) m\b", r"\1.1 m", text))
    return sorted(wb.detect(query, rows, time_unit="us").column("events").to_pylist())


@FEWER
@given(encounter_graphs(), crowds())
def test_the_engine_finds_the_encounters_on_the_earth_that_the_reference_finds(graph, events):
    """At 60 degrees north, beside all borders; movers are points, so that the reference can measure."""
    graph = replace(graph, coordinates=Coordinates.LONLAT)
    assume(not any(isinstance(op, Encounter) and op.verb.reads_shapes for op in graph.operators))
    placed = [on_the_earth(event) for event in events]
    table = event_table(placed).rename_columns({"x": "lon", "y": "lat"})
    found = as_detections(wb.detect(Query(graph), table))
    assert without_metres(found) == without_metres(expected(graph, placed))


def on_the_earth(event: Event) -> Event:
    points = event.points[:1]
    if not points:
        return replace(event, polygon=None)
    ((x, y),) = points
    # No two distances are the same by chance, but those of the same places are.
    x, y = x * 1.0137 + y * 0.0219, y * 1.0071 + x * 0.0113
    return replace(event, polygon=None, x=20.0 + 2 * x * METRE, y=60.0 + y * METRE)


def without_metres(found: list[Detection]) -> list[tuple]:
    """All but distances and hulls, which are the same but for the last digits."""
    return [
        (d.type, d.start, d.end, d.events, {n: v for n, v in d.attributes.items() if n != "d"})
        for d in sorted(found)
    ]


def test_distances_to_regions_are_those_of_the_great_circle():
    corners = [(10.0, 60.0), (10.02, 60.0), (10.02, 60.01), (10.005, 60.004), (10.0, 60.01)]
    ring = ", ".join(f"{lon} {lat}" for lon, lat in [*corners, corners[0]])
    places = WatchedRegions((f"POLYGON (({ring}))",), Coordinates.LONLAT)
    random = Random(7)
    lon = np.array([random.uniform(9.97, 10.05) for _ in range(200)])
    lat = np.array([random.uniform(59.98, 60.03) for _ in range(200)])
    shares = np.linspace(0, 1, 2001)[:, None]
    sides = [np.add(a, shares * np.subtract(b, a)) for a, b in pairwise([*corners, corners[0]])]
    border = np.concatenate(sides)
    found = places.distance(lon, lat)
    for place in range(len(lon)):
        if found[place] > 0:
            nearest = distance_m(lon[place], lat[place], border[:, 0], border[:, 1], Coordinates.LONLAT).min()
            assert found[place] == pytest.approx(nearest, rel=1e-3, abs=0.01)


# Queries that run together.


def test_queries_that_look_for_the_same_motions_find_what_each_finds_alone():
    base = "region R = box(0, 0, 4, 4) define In detect T enters R define Out detect T leaves R "
    meets = "define M detect T as a meets T as b within 3 m for 1 s "
    queries = [
        base + "define V detect In as i then Out as o within 9 s group by source",
        base + "define W detect In as i then Out as o within 4 s group by source",
        meets + "define N detect M{2} as m within 9 s",
        meets + "define P detect M as m then T as t within 3 s",
    ]
    session, table = wb.Session(), event_table(walks(3))
    alone = []
    for number, text in enumerate(queries):
        session.add(wb.compile(text), name=str(number))
        alone += wb.detect(wb.compile(text), table).column("id").to_pylist()
    found = session.push(table).column("id").to_pylist() + session.close().column("id").to_pylist()
    assert sorted(found) == sorted(alone)
    assert found


# What is kept, and what is let go of.


def runtime(session: wb.Session) -> motion.MotionOperator | encounter.EncounterOperator:
    kinds = (motion.MotionOperator, encounter.EncounterOperator)
    pipelines = session.running.pipelines.values()
    (found,) = (each for p in pipelines for each in p.runtimes.values() if isinstance(each, kinds))
    return found


@pytest.mark.parametrize(
    "phrase", ["T enters R gap 5 s", "T stays in R for 2 s gap 5 s", "T stops for 2 s within 1 m gap 3 s"]
)
def test_movers_that_are_gone_are_forgotten(monkeypatch, phrase):
    monkeypatch.setattr(motion, "FORGET_FROM", 16)
    text = f"region R = box(0, 0, 4, 4) define D detect {phrase}"
    rows = [trip(n // 3, n, [-2.0, 2.0, 2.0][n % 3]) for n in range(240)]
    found, largest = run_one_by_one(text, rows)
    assert largest < 64
    assert sorted(found) == sorted(wb.detect(wb.compile(text), rows).column("events").to_pylist())
    assert found


def test_encounters_that_are_over_are_forgotten(monkeypatch):
    monkeypatch.setattr(encounter, "TIDY_FROM", 16)
    text = "define D detect T as a comes within 3 m of T as b fresh 5 s"
    rows = [trip(2 * (n // 4) + n % 2, n, [0.0, 9.0, 0.0, 1.0][n % 4]) for n in range(160)]
    found, largest = run_one_by_one(text, rows)
    assert largest < 64
    assert sorted(found) == sorted(wb.detect(wb.compile(text), rows).column("events").to_pylist())
    assert found


def trip(number: int, second: int, x: float) -> dict:
    return {"type": "T", "time": second, "id": f"e{second}", "source": f"trip {number}", "x": x, "y": 1.0}


def run_one_by_one(text: str, rows: list[dict]) -> tuple[list, int]:
    """Push events one by one; give what was found, and the largest number of movers that were remembered."""
    session = wb.Session(wb.compile(text))
    found, largest = [], 0
    for row in rows:
        found += session.push([row]).column("events").to_pylist()
        running = runtime(session)
        largest = max(largest, len(running.keys))
    return found + session.close().column("events").to_pylist(), largest
