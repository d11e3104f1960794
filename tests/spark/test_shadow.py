"""A candidate runs beside the live query on a stream: the live one does not notice, differences are told."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.spark.frames import Folder, cut, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.graph.policies import Key
from whimbrel.graph.sharding import SOURCE, AnyPartition, ByKeys, ByMeetings, BySpace, SinglePartition
from whimbrel.io.detections import sorted_detections
from whimbrel.spark import Routed, SideOutputFiles, differences, outcomes, outcomes_shadow
from whimbrel.spark.shadow import suits_both
from whimbrel.spark.sinks import start

EVENTS = "id string, type string, time double, source string, speed double"
LANE = Key("attribute", "lane")
OLD = """
define Braked(v)
  detect P(speed > 20) as a then P(speed < 5) as b within 9 s assign v = a.speed group by source
define Gone detect P(speed > 27) as p then not P(speed > 25) as n for 20 s group by source
"""
NEW = """
event P(speed: float)
define Braked(v)
  detect P(speed > 24) as a then P(speed < 9) as b within 12 s assign v = a.speed group by source
define Gone detect P(speed > 27) as p then not P(speed > 25) as n for 12 s group by source
"""


def driving(first: int, last: int) -> list[dict[str, object]]:
    return [
        {"id": f"e{n}", "type": "P", "time": float(n), "source": f"t{n % 3}", "speed": float(n * 7 % 30)}
        for n in range(first, last)
    ]


class Beheld:
    """The detections and differences that a sink was given."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def write(self, frame, _batch_id: int) -> None:
        self.tables.append(frame.toArrow())


def embedded(rows, last: float):
    """What a shadow in this process tells once time has come to where the stream leaves it."""
    shadow = wb.Shadow(wb.compile(OLD), wb.compile(NEW))
    shadow.push(rows)
    assert shadow.live.watermark == last * 1e6 - 1
    return shadow


def facts(row):
    return (row["change"], row["type"], row["id"], tuple(row["events"]))


@pytest.mark.slow
def test_a_stream_with_a_shadow_gives_what_it_gave_before_and_the_differences(spark, tmp_path):
    old, new = wb.compile(OLD), wb.compile(NEW)
    folder, rows = Folder(spark, tmp_path / "events", EVENTS), driving(0, 150)
    sink = Beheld()
    routed = Routed([sink], set_aside=SideOutputFiles(str(tmp_path / "aside")))
    for piece in cut(rows, [40, 60]):
        folder.put(piece)
        # Started again for every piece: what the shadow had settled is not told twice.
        whole = outcomes_shadow(old, new, folder.stream(), shards=2)
        start(whole, routed, checkpoint=tmp_path / "with", available_now=True).awaitTermination()
    alone, _ = run_to_end(outcomes(old, folder.stream(), shards=2), tmp_path / "without")
    alone = alone.filter(pc.equal(alone.column("kind"), "detection"))
    found = pa.concat_tables(sink.tables)
    assert found.num_rows > 10
    assert sorted_detections(found).equals(sorted_detections(alone.select(found.column_names)))

    texts = [file.read_text() for file in sorted((tmp_path / "aside").iterdir())]
    told = [json.loads(line) for text in texts for line in text.splitlines()]
    assert {entry["kind"] for entry in told} == {"difference"}
    assert all(entry["reason"] == entry["event"]["change"] for entry in told)
    expected = embedded(rows, 149).take_differences().to_pylist()
    assert {row["change"] for row in expected} == {"added", "dropped", "changed"}
    assert sorted(facts(entry["event"]) for entry in told) == sorted(map(facts, expected))


@pytest.mark.slow
def test_differences_are_a_stream_of_their_own(spark, tmp_path):
    folder = Folder(spark, tmp_path / "events", EVENTS)
    folder.put(driving(0, 80))
    frame = differences(wb.compile(OLD), wb.compile(NEW), folder.stream(), shards=2)
    assert frame.columns == [
        "change", "id", "type", "start", "end", "geometry", "attributes", "before", "events",
    ]  # fmt: skip
    table, _ = run_to_end(frame, tmp_path / "checkpoint")
    told = {facts(row): row for row in table.to_pylist()}
    expected = {facts(row): row for row in embedded(driving(0, 80), 79).take_differences().to_pylist()}
    assert told.keys() == expected.keys()
    for key, row in told.items():
        assert (row["start"], row["end"]) == (expected[key]["start"], expected[key]["end"])
        assert json.loads(row["attributes"]).get("v") == expected[key].get("v")
        if row["change"] == "changed":
            assert json.loads(row["before"]) == json.loads(expected[key]["before"])


@pytest.mark.slow
def test_a_candidate_that_fails_is_told_of_and_the_live_query_goes_on(spark, tmp_path):
    folder = Folder(spark, tmp_path / "events", EVENTS)
    folder.put(driving(0, 30))

    def lost(speed: float) -> bool:
        raise ValueError("no map")

    functions = [wb.function(lost, returns="bool")]
    bad = wb.compile("define Braked(v) detect P as a where lost(a.speed) assign v = 1", functions=functions)
    live = wb.compile("define Braked(v) detect P(speed > 20) as a assign v = 2 group by source")
    table, _ = run_to_end(outcomes_shadow(live, bad, folder.stream(), shards=1), tmp_path / "checkpoint")
    kinds = table.column("kind").to_pylist()
    assert kinds.count("detection") == wb.detect(live, driving(0, 29)).num_rows
    (reason,) = [row["reason"] for row in table.to_pylist() if row["kind"] == "refused"]
    assert "the function 'lost' failed" in reason


@pytest.mark.slow
def test_differences_are_settled_by_the_clock_if_asked_to(spark, tmp_path):
    folder = Folder(spark, tmp_path / "events", EVENTS)
    folder.put([{"id": "e", "type": "P", "time": time.time() - 3600, "source": "t", "speed": 28.0}])
    never = wb.compile("define Gone detect P(speed > 99) as p then not P as n for 20 s group by source")
    frame = differences(wb.compile(OLD, emit=["Gone"]), never, folder.stream(), shards=1, heartbeat="1 min")
    writer = frame.writeStream.format("memory").queryName("settling")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        until = time.monotonic() + 120
        while spark.table("settling").count() == 0 and time.monotonic() < until:
            time.sleep(0.5)
        assert [(row.change, row.events) for row in spark.table("settling").collect()] == [("dropped", ["e"])]
    finally:
        query.stop()


def test_a_static_frame_is_for_a_backtest(spark):
    with pytest.raises(DataError, match=r"whimbrel\.backtest"):
        differences(wb.compile(OLD), wb.compile(NEW), spark.createDataFrame([], EVENTS))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (AnyPartition(), BySpace(5.0), BySpace(5.0)),
        (ByKeys((SOURCE,)), AnyPartition(), ByKeys((SOURCE,))),
        (ByKeys((LANE, SOURCE)), ByKeys((SOURCE,)), ByKeys((SOURCE,))),
        (BySpace(5.0), BySpace(9.0), BySpace(9.0)),
    ],
)
def test_events_are_partitioned_to_suit_both(one, other, both):
    assert suits_both(one, other) == suits_both(other, one) == both


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (ByKeys((LANE,)), ByKeys((SOURCE,)), "group by different things"),
        (ByKeys((LANE,)), BySpace(5.0), "in different ways"),
        (ByMeetings(("Pair",), ("pair",), AnyPartition()), AnyPartition(), "one place on a stream"),
    ],
)
def test_events_go_to_one_place_where_nothing_else_suits_both(one, other, why):
    for chosen in (suits_both(one, other), suits_both(other, one)):
        assert isinstance(chosen, SinglePartition)
        assert why in chosen.why
