"""What is counted of mobile queries is what the definitions say: random queries, movements and batches."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import compiled, is_taken, taking, told
from tests.reference.data import Event
from tests.reference.expressions import Env, World, holds
from tests.reference.matches import TooLarge
from tests.reference.mobile import Circle, Every, Focal, MobileQuery, deliveries, timelines
from tests.reference.mobile.deliveries import atoms_of
from tests.reference.mobile.measures import measured
from tests.reference.mobile.quality import read_by
from tests.reference.mobile.strategies import PLAIN, mobile_queries, moved_to, worlds_of_events
from tests.reference.strategies import arrivals, cuts
from tests.reference.streams import source
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.engine.mobile import cohorts
from whimbrel.engine.mobile.measures import MEASURES, as_json, as_prometheus, as_text
from whimbrel.engine.mobile.memory import nbytes_of
from whimbrel.engine.mobile.optimisations import Optimisations
from whimbrel.engine.session import Session
from whimbrel.errors import QueryError, StateError
from whimbrel.graph.operators import ANY, Source
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND, TIME_POINT

HOTSPOT = """
define Hot detect Temp(val > 20) as t
define Many over 4 s every 2 s detect Temp as t assign n = count(t)
around Position as car
  group by vehicle
  within 5 m
  report Hot, Many
  lifetime 10 s
"""


def session_of(query, *, quality=False, lateness=0):
    session = Session(query, lateness=lateness)
    if quality:
        session.measure_quality()
    return session


def monitored(query, batches, *, by="query", quality=False, lateness=0):
    session = session_of(query, quality=quality, lateness=lateness)
    found = [each for batch in batches if batch for each in told(session.push(event_table(batch)))]
    found += told(session.close())
    return session.monitor(by=by).to_pylist(), found


def world_of(query):
    return World({}, query.graph.coordinates or Coordinates.PLANE, limit=5_000)


def interests_of(query, events):
    return [each for line in timelines(query, events, world_of(query)) for each in line]


def runs_of_single_interests(query):
    """The selections that runs of single interests take."""
    session = Session(query)
    (run,) = session.running.following
    (following,) = run.following
    return [] if following._model is None else [selector for selector, _ in following._model.selectors]


def is_selected(selector, event, world):
    name, condition = selector
    if name.startswith(TIME_POINT) or name not in (event.type, ANY):
        return False
    (item,) = source(Source(event.type, event.type), [event])
    return condition is None or holds(condition, Env(world, {None: item}, {}))


# -- against the definitions ---------------------------------------------------------------------------------


@given(st.data(), mobile_queries(), worlds_of_events(), st.sampled_from([0, 2 * SECOND]))
def test_streamed_events(data, query, events, lateness):
    assume(is_taken(query))
    world, ready = world_of(query), compiled(query)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    selectors = runs_of_single_interests(ready)
    historical, live = Counter(), Counter()
    for each in interests_of(query, events):
        for event in atoms_of(query, each, each.start, events, world):
            times = sum(is_selected(selector, event, world) for selector in selectors)
            (historical if event.end < each.start else live)[each.focal] += times
    with taking(Optimisations(lemma_2=False)):
        (row,), _ = monitored(ready, batches, lateness=lateness)
        by_object, _ = monitored(ready, batches, by="focal", lateness=lateness)
    assert (row["streamed_historical"], row["streamed_live"]) == (historical.total(), live.total())
    assert {each["focal"]: each["streamed_historical"] for each in by_object} == _of_all(
        by_object, historical
    )
    assert {each["focal"]: each["streamed_live"] for each in by_object} == _of_all(by_object, live)
    (row,), _ = monitored(ready, batches, lateness=lateness)
    assert row["streamed_live"] == live.total()
    assert row["streamed_historical"] <= historical.total()
    assert row["runs_kept"] or row["streamed_historical"] == historical.total()


def _of_all(rows, counts):
    return {row["focal"]: counts[row["focal"]] for row in rows}


@given(st.data(), mobile_queries(), worlds_of_events(), st.sampled_from([0, 2 * SECOND]), st.booleans())
def test_quality_and_events_of_interests(data, query, events, lateness, is_restored):
    assume(is_taken(query))
    world, ready = world_of(query), compiled(query)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    interests = interests_of(query, events)
    expected = [each for one in interests for each in measured(query, one, events, world)]
    counts = read_by(query.graph, events)
    has = [atoms_of(query, each, each.start, counts, world) for each in interests]
    session = session_of(ready, quality=True, lateness=lateness)
    for batch in batches:
        if batch:
            session.push(event_table(batch))
        if is_restored:
            saved = session.snapshot()
            session = session_of(ready, quality=True, lateness=lateness)
            session.restore(saved)
    session.close()
    (row,) = session.monitor().to_pylist()
    assert row["measured_updates"] == len(expected)
    for name in ("precision", "recall"):
        values = [getattr(each, name) for each in expected]
        assert row[name] == (pytest.approx(np.mean(values)) if values else None)
        assert row[f"{name}_min"] == (min(values) if values else None)
    old = [sum(event.end < each.start for event in had) for each, had in zip(interests, has, strict=True)]
    assert row["interest_events_historical"] == sum(old)
    assert row["interest_events_live"] == sum(map(len, has)) - sum(old)


@given(mobile_queries(PLAIN), worlds_of_events())
def test_duplicates_of_what_is_found_once(query, events):
    """Nothing is streamed for it: all that an interest and the one before it have in common is avoided."""
    assume(is_taken(query))
    world, ready = world_of(query), compiled(query)
    assume(not runs_of_single_interests(ready))
    counts = read_by(query.graph, events)
    common = 0
    for line in timelines(query, events, world):
        for one, other in pairwise(line):
            if one.end == other.start:
                had = {each.id for each in atoms_of(query, one, one.start, counts, world)}
                now = atoms_of(query, other, other.start, counts, world)
                common += sum(each.id in had for each in now if each.end < other.start)
    (row,), _ = monitored(ready, [events], quality=True)
    assert row["duplicates_avoided"] == common


@given(mobile_queries(), worlds_of_events(), st.sampled_from(["all", "new", "changes"]))
def test_deliveries_are_counted(query, events, deliver):
    query = replace(query, deliver=deliver)
    assume(is_taken(query))
    try:
        expected = deliveries(query, events, limit=5_000)
    except TooLarge:
        reject()
    (row,), _ = monitored(compiled(query), [events])
    changes = Counter(each.change for each in expected)
    assert row["deliveries_live"] == sum(each.live for each in expected)
    assert row["deliveries_historical"] == sum(not each.live for each in expected)
    assert [row[f"deliveries_{each}"] for each in ("added", "kept", "removed")] == [
        changes[each] for each in ("added", "kept", "removed")
    ]
    assert row["switches"] == len(interests_of(query, events))
    assert row["completeness"] == 1.0


@given(mobile_queries(), worlds_of_events())
def test_measuring_changes_nothing_and_snapshots_keep_what_was_counted(query, events):
    assume(is_taken(query))
    ready = compiled(query)
    (once,), found = monitored(ready, [events])
    (_,), also = monitored(ready, [events], quality=True)
    assert found == also
    session = session_of(ready)
    session.push(event_table(events))
    session.close()
    other = session_of(ready)
    other.restore(session.snapshot())
    (again,) = other.monitor().to_pylist()
    same = [
        each.name for each in MEASURES if each.kind == "counter" and not each.name.startswith("processor")
    ]
    assert {name: again[name] for name in same} == {name: once[name] for name in same}


@given(st.data(), mobile_queries(), worlds_of_events())
def test_objects_add_up_to_the_query(data, query, events):
    assume(is_taken(query))
    ready, batches = compiled(query), data.draw(cuts(events))
    (whole,), _ = monitored(ready, batches, quality=True)
    rows, _ = monitored(ready, batches, by="focal", quality=True)
    for each in MEASURES:
        if each.of_focal and each.kind == "counter":
            assert sum(row[each.name] for row in rows) == whole[each.name], each.name


# -- by hand -------------------------------------------------------------------------------------------------


def hot_spots():
    at = [("Position", 0, 0), ("Temp", 1, 0), ("Temp", 2, 4), ("Position", 3, 4), ("Temp", 4, 6)]
    return [
        {"type": name, "time": time * SECOND, "x": float(x), "y": 0.0, "val": 30, "vehicle": "a"}
        for name, time, x in at
    ]


def test_a_run_worked_by_hand():
    session = wb.Session(wb.compile(HOTSPOT), lateness=None, time_unit="us")
    session.measure_quality()
    session.push(hot_spots())
    session.close()
    (row,) = session.monitor().to_pylist()
    assert (row["query"], row["objects"], row["switches"], row["updates"]) == ("car", 1, 2, 2)
    assert (row["interest_events_historical"], row["interest_events_live"]) == (2, 3)
    # The window has to see them, but has seen those that were there before.
    assert (row["streamed_historical"], row["streamed_live"], row["runs_kept"]) == (0, 3, 1)
    assert row["duplicates_avoided"] == 2
    assert row["looked_up"] == 2
    assert row["steps_once"] == 3
    assert row["precision"] == row["recall"] == 1.0
    assert row["latency_seconds"] == row["selections_reused"] == 0
    assert row["processor_seconds"] >= row["processor_switch_seconds"] > 0


def test_an_interest_that_stays_behind():
    """It has what is around 0; at 6 m, one of two events would be another one."""
    query = MobileQuery(wb.compile("define Hot detect Temp as t").graph, Focal("F"), Circle(4.5), 10 * SECOND)
    query = replace(query, refresh=Every(100 * SECOND))
    temps = [Event(f"t{x}", "Temp", x * SECOND, x * SECOND, "s", float(x), 0.0) for x in (1, 4, 8)]
    events = [*moved_to([(0, 0.0, 0.0), (5, 6.0, 0.0)]), *temps]
    (row,), _ = monitored(compiled(query), [events], quality=True)
    assert (row["measured_updates"], row["precision"], row["precision_min"]) == (2, 0.75, 0.5)
    assert (row["recall"], row["recall_min"]) == (0.75, 0.5)


def test_late_location_updates():
    session = wb.Session(wb.compile(HOTSPOT), lateness="1 s", time_unit="us")
    first, *others = hot_spots()
    session.push(others)
    session.push([first, {**first, "type": "Temp"}, {**first, "vehicle": None}])
    assert session.counts.late == 3
    session.close()
    (row,) = session.monitor().to_pylist()
    assert (row["late_updates"], row["updates"]) == (1, 1)
    assert session.monitor(by="focal").column("late_updates").to_pylist() == [1]


def test_what_is_open_and_what_it_holds():
    session = wb.Session(wb.compile(HOTSPOT), lateness=0, time_unit="us")
    session.push(hot_spots())
    (row,) = session.monitor().to_pylist()
    assert (row["interests_open"], row["members"], row["cohorts"]) == (1, 1, 1)
    assert min(row[name] for name in ("history_bytes", "state_bytes", "events_bytes")) > 0
    assert row["memory_peak_bytes"] is None


def test_memory_is_watched_where_that_is_asked_for():
    session = wb.Session(wb.compile(HOTSPOT), lateness=None, time_unit="us")
    session.watch_memory()
    session.push(hot_spots())
    session.close()
    (row,) = session.monitor().to_pylist()
    assert row["memory_peak_bytes"] > row["history_bytes"] + row["state_bytes"]


def test_shared_runs_are_nobodys():
    text = HOTSPOT.replace("over 4 s every 2 s detect", "over 2 events every 2 events within 1 h detect")
    session = wb.Session(wb.compile(f"{text}\n  completeness strong on a grid of 100 m"), time_unit="us")
    session.measure_quality()
    session.push(hot_spots())
    session.close()
    (row,) = session.monitor().to_pylist()
    assert (row["switches"], row["cohorts_begun"]) == (2, 1)
    assert (row["streamed_historical"], row["streamed_live"]) == (0, 2)  # on the grid both are at 0
    assert (row["interest_events_historical"], row["duplicates_avoided"]) == (2, 2)
    (focal,) = session.monitor(by="focal").to_pylist()
    assert focal["streamed_live"] is None


def test_modes_that_leave_out_and_reuse_say_so():
    session = wb.Session(wb.compile(HOTSPOT), time_unit="us")
    session.push(hot_spots())
    monitor = session.running.following[0].following_of("car").monitor
    (before,) = session.monitor().to_pylist()
    monitor.count_for("left_out", np.zeros(1, np.int64), 2)
    monitor.count("selections_reused", 3)
    monitor.note_latency(np.array([SECOND, 3 * SECOND]))
    (row,) = session.monitor().to_pylist()
    told = before["deliveries_live"] + before["deliveries_historical"]
    assert row["completeness"] == told / (told + 2) < before["completeness"] == 1.0
    assert (row["selections_reused"], row["latency_seconds"], row["latency_max_seconds"]) == (3, 2.0, 3.0)


def test_cohorts_that_are_put_together_stream_again(monkeypatch):
    monkeypatch.setattr(cohorts, "MANY", 0)
    rows = [{**row, "x": 0.0} for row in hot_spots()]
    session = wb.Session(wb.compile(f"{HOTSPOT}  refresh every 1 h"), time_unit="us")
    for row in rows:
        session.push([row])
    (found,) = session.monitor().to_pylist()
    assert (found["streamed_historical"], found["streamed_live"]) == (0, 2)
    assert found["streamed_again"] > 0


def test_predicted_areas():
    car = [{**hot_spots()[0], "time": time * SECOND, "x": 2.0 * time} for time in range(8)]
    temps = [{**hot_spots()[1], "time": time * SECOND, "x": 2.0 * time} for time in range(8)]
    text = f"{HOTSPOT}  predict 2 steps, 2 candidates by location\n  quality 0.5"
    session = wb.Session(wb.compile(text), time_unit="us")
    session.measure_quality()
    deliveries = []
    for rows in zip(temps, car, strict=True):
        deliveries += session.push(list(rows)).to_pylist()
    deliveries += session.close().to_pylist()
    (row,) = session.monitor().to_pylist()
    predicted = {each["interest"] for each in deliveries if each["predicted"]}
    assert 0 < len(predicted) <= row["predicted"] < row["switches"] == 8
    assert row["streamed_ahead"] > 0
    assert row["completeness"] is None


# -- refused -------------------------------------------------------------------------------------------------


def test_measuring_cannot_begin_in_the_middle():
    session = wb.Session(wb.compile(HOTSPOT), time_unit="us")
    session.push(hot_spots())
    with pytest.raises(QueryError, match="before the first event"):
        session.measure_quality()


def test_a_snapshot_measures_or_does_not():
    query = wb.compile(HOTSPOT)
    session = session_of(query)
    with pytest.raises(StateError, match="measure_quality"):
        session_of(query, quality=True).restore(session.snapshot())


def test_unknown_rows_are_refused():
    with pytest.raises(QueryError, match="no monitoring by 'cell'"):
        wb.Session(wb.compile(HOTSPOT)).monitor(by="cell")


def test_sessions_without_mobile_queries_have_an_empty_table():
    table = wb.Session(wb.compile("define Hot detect Temp")).monitor()
    assert table.num_rows == 0
    assert table.column_names == ["query", *(each.name for each in MEASURES)]


# -- other forms ---------------------------------------------------------------------------------------------

SAMPLE = re.compile(r'^(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parsed(text):
    """Read the text format of Prometheus: samples, and the kind of each metric, which comes first."""
    kinds, samples, helped = {}, {}, set()
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            assert name in helped
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert name in kinds
            known = tuple((key, _unescaped(label)) for key, label in LABEL.findall(labels))
            assert (name, known) not in samples
            samples[name, known] = float(value)
    return kinds, samples


def _unescaped(label):
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), label)


labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6) | st.sampled_from(
    ['a"b', "a\\", "a\nb", '\\"', "\\n"]
)
numbers = st.none() | st.floats(0, 1e12, allow_nan=False)


@given(st.lists(st.tuples(labels, labels, numbers, st.integers(0, 2**60)), unique_by=lambda row: row[:2]))
def test_prometheus_text_is_read_back(rows):
    names, objects, shares, counts = ([row[place] for row in rows] for place in range(4))
    table = pa.table(
        {
            "query": pa.array(names, pa.string()),
            "focal": pa.array(objects, pa.string()),
            "precision": pa.array(shares, pa.float64()),
            "switches": pa.array(counts, pa.int64()),
        }
    )
    if not rows:
        assert not as_prometheus(table)
        return
    kinds, samples = parsed(as_prometheus(table))
    assert kinds.get("whimbrel_mobile_switches_total") == "counter"
    assert kinds.get("whimbrel_mobile_precision", "gauge") == "gauge"
    expected = {}
    for name, focal, share, count in rows:
        mark = (("query", name), ("focal", focal))
        expected["whimbrel_mobile_switches_total", mark] = float(count)
        if share is not None:
            expected["whimbrel_mobile_precision", mark] = share
    assert samples == expected


def test_a_whole_table_in_every_form():
    session = wb.Session(wb.compile(HOTSPOT), time_unit="us")
    session.push(hot_spots())
    for by in ("query", "focal"):
        table = session.monitor(by=by)
        kinds, samples = parsed(as_prometheus(table))
        assert len(samples) == sum(table.column(name).null_count == 0 for name in table.column_names) - (
            2 if by == "focal" else 1
        )
        assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
        assert json.loads(as_json(table)) == table.to_pylist()
        assert [line.split()[0] for line in as_text(table).splitlines()] == table.column_names


def test_names_of_measures_are_unique_and_explained():
    assert len({each.name for each in MEASURES}) == len(MEASURES)
    assert all(
        each.help.endswith(".") and "\n" not in each.help and "\\" not in each.help for each in MEASURES
    )


# -- memory --------------------------------------------------------------------------------------------------


def test_memory_counts_each_thing_once():
    array, text = np.zeros(1000), pa.array(["abc"] * 100)
    seen: set[int] = set()
    once = nbytes_of([array, text], seen)
    assert once >= array.nbytes + text.get_total_buffer_size()
    assert nbytes_of([array[:10], text, array.reshape(10, 100)], seen) == 0
    assert nbytes_of([array[:10]], set()) == array.nbytes
    assert nbytes_of([{"a": array}, [array]], set()) < 2 * array.nbytes


def test_memory_of_an_index_is_what_it_says():
    from whimbrel.engine.mobile.place_index import PlaceIndex

    index, rows = PlaceIndex(Coordinates.PLANE), np.arange(10_000)
    index.append(rows, rows, rows.astype(float), rows.astype(float))
    index._seal()
    assert index.nbytes <= nbytes_of([index], set()) <= 1.1 * index.nbytes
