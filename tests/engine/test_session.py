"""A session over time: what it gives when, queries that come and go, and state that goes back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from tests.shared.backends import Found, expect, named

import whimbrel as wb
from whimbrel.engine.operators.buffered import BufferedOperator
from whimbrel.errors import QueryError
from whimbrel.testing import table

SECOND = 1_000_000


def push(session: wb.Session, data: str) -> Found:
    return Found(session.push(table(named(data))).to_pylist())


def pass_time(session: wb.Session, second: float) -> Found:
    return Found(session.advance(round(second * SECOND)).to_pylist())


def close(session: wb.Session) -> Found:
    return Found(session.close().to_pylist())


def all_of(session: wb.Session, data: str) -> list:
    """What the last events complete, and what is complete at the end."""
    return [*push(session, data), *close(session)]


PAIR = wb.compile("define Pair detect A then B within 10 s")


# What is given when.


def test_a_push_gives_what_it_completes():
    session = wb.Session(PAIR)
    assert push(session, "A@1s#a") == []
    assert push(session, "B@2s#b") == []
    assert push(session, "C@3s") == expect("Pair@1..2s: a b")
    assert push(session, "C@4s") == []


def test_time_that_passes_gives_what_it_completes():
    session = wb.Session(PAIR)
    push(session, "A@1s#a B@2s#b")
    assert pass_time(session, 1.9) == []
    assert pass_time(session, 2) == expect("Pair@1..2s: a b")


def test_a_window_is_given_when_it_is_over():
    session = wb.Session(wb.compile("define N every 10 s detect A assign n = count(A)"))
    assert push(session, "A@1s#a A@9s#b") == []
    assert pass_time(session, 9.9) == []
    assert pass_time(session, 9.999999) == expect("N@1..9s:n=2: a b")


def test_without_a_lateness_only_time_gives_anything():
    session = wb.Session(PAIR, lateness=None)
    assert push(session, "A@1s#a B@2s#b C@99s") == []
    assert pass_time(session, 5) == expect("Pair@1..2s: a b")


def test_each_detection_is_given_once():
    session = wb.Session(PAIR, lateness="5 s")
    given = []
    for second in range(1, 30):
        given += push(session, f"{'AB'[second % 2]}@{second}s#e{second}")
    given += close(session)
    assert (
        len(given)
        == len({row["events"] for row in given})
        == len(wb.detect(PAIR, table(" ".join(f"{'AB'[s % 2]}@{s}s#e{s}" for s in range(1, 30)))))
    )


def test_detections_of_one_push_stand_in_order():
    session = wb.Session(wb.compile("define B detect A(v > 0) define A2 detect A"))
    found = session.push(table("A@2s:v=1 A@1s:v=1 A@3s:v=1 A@9s"))
    ends = found.column("end").cast(pa.int64()).to_pylist()
    assert ends == sorted(ends)
    assert found.column("type").to_pylist()[:2] == ["A2", "B"]


def test_no_detections_still_make_a_table():
    found = wb.Session(PAIR).push(table("A@1s"))
    assert found.column_names == ["id", "type", "start", "end", "geometry", "events"]
    assert found.num_rows == 0


# Queries that come and go.


def test_queries_run_side_by_side():
    session = wb.Session(PAIR)
    session.add(wb.compile("define Single detect A"))
    assert session.queries == ("Pair", "Single")
    assert all_of(session, "A@1s#a B@2s#b") == expect("Single@1s: a ; Pair@1..2s: a b")


def test_an_added_query_sees_only_later_events():
    session = wb.Session(PAIR)
    push(session, "A@1s#a1")
    pass_time(session, 1)
    session.add(wb.compile("define Late detect A then B within 10 s"))
    push(session, "A@2s#a2 B@3s#b")
    assert close(session) == expect("Late@2..3s: a2 b ; Pair@1..3s: a1 b ; Pair@2..3s: a2 b")


def test_an_added_query_does_not_see_half_of_a_waiting_event():
    session = wb.Session(wb.compile("define Seen detect A assign v = A.v"), lateness="10 s")
    session.push([{"type": "A", "time": 1, "v": 1, "w": 1}])
    session.add(wb.compile("define Without detect A(w is null) assign v = 1"))
    assert close(session).values("type") == ["Seen"]


def test_an_added_query_sees_waiting_events_of_a_type_that_no_other_reads():
    session = wb.Session(wb.compile("define Seen detect A"), lateness="10 s")
    session.push([{"type": "B", "time": 1}])
    session.add(wb.compile("define Other detect B"))
    assert close(session).values("type") == ["Other"]


def test_a_query_may_start_while_another_waits():
    session = wb.Session(wb.compile("define Lost detect A then not B for 5 s"))
    push(session, "A@1s#a")
    pass_time(session, 2)
    session.add(PAIR)
    assert pass_time(session, 6) == expect("Lost@1..6s: a")


def test_a_removed_query_tells_nothing_more():
    session = wb.Session(wb.compile("define Lost detect A then not B for 5 s"))
    session.add(PAIR)
    push(session, "A@1s#a")
    pass_time(session, 2)
    session.remove("Lost")
    push(session, "B@3s#b")
    assert close(session) == expect("Pair@1..3s: a b")


def test_removing_a_query_leaves_shared_tests_to_the_others():
    session = wb.Session(wb.compile("define One detect A(v > 1)"))
    session.add(wb.compile("define Two detect A(v > 1)"))
    session.remove("One")
    assert all_of(session, "A@1s#a:v=2 A@2s#b:v=1") == expect("Two@1s:v=2: a")


def test_a_query_may_be_removed_and_added_again():
    session = wb.Session(PAIR)
    push(session, "A@1s#a1")
    pass_time(session, 1)
    session.remove("Pair")
    session.add(PAIR)
    push(session, "B@2s#b1 A@3s#a2 B@4s#b2")
    assert close(session) == expect("Pair@3..4s: a2 b2")


def test_one_query_may_run_twice_under_two_names():
    session = wb.Session(PAIR, name="one")
    assert session.add(PAIR, name="two") == "two"
    push(session, "A@1s#a B@2s#b")
    assert len(close(session)) == 2


def test_a_name_cannot_be_taken_twice():
    with pytest.raises(QueryError, match="'Pair' is running already"):
        wb.Session(PAIR).add(PAIR)


def test_what_is_not_running_cannot_be_removed():
    with pytest.raises(QueryError, match="no query named 'Pear' is running; running: Pair"):
        wb.Session(PAIR).remove("Pear")


def test_queries_of_different_coordinates_cannot_share_a_session():
    session = wb.Session(wb.compile("coordinates plane define D detect A"))
    with pytest.raises(QueryError, match="lonlat"):
        session.add(wb.compile("coordinates lonlat define E detect A"))
    assert session.queries == ("D",)


def test_a_refused_query_leaves_the_others_running():
    session = wb.Session(PAIR)
    with pytest.raises(QueryError):
        session.add(PAIR)
    push(session, "A@1s#a B@2s#b")
    assert close(session) == expect("Pair@1..2s: a b")


def test_queries_may_mean_different_functions_by_one_name():
    def query(name: str, limit: int) -> wb.Query:
        fits = wb.function(lambda value: value > limit, name="fits", returns="bool")
        return wb.compile(f"define {name} detect A(fits(v))", functions=[fits])

    session = wb.Session(query("Low", 0))
    session.add(query("High", 5))
    assert all_of(session, "A@1s#a:v=3 A@2s#b:v=9") == expect(
        "Low@1s:v=3: a ; High@2s:v=9: b ; Low@2s:v=9: b"
    )


def test_a_session_without_queries_counts_events():
    session = wb.Session()
    push(session, "A@1s A@2s")
    session.close()
    assert session.counts.processed == 2


def test_an_error_in_one_query_is_told():
    broken = wb.function(lambda value: 1 / value, name="broken")
    session = wb.Session(wb.compile("define D detect A assign v = broken(A.v)", functions=[broken]))
    with pytest.raises(QueryError, match="'broken' failed"):
        session.push(table("A@1s:v=0 A@2s:v=1"))


def test_an_error_in_one_query_takes_no_events_from_the_others():
    broken = wb.function(lambda value: 1 / value, name="broken")
    session = wb.Session(wb.compile("define D detect A assign v = broken(A.v)", functions=[broken]))
    session.add(PAIR)
    with pytest.raises(QueryError):
        push(session, "A@1s#a:v=0 C@2s")
    assert all_of(session, "B@3s#b") == expect("Pair@1..3s: a b")


# State goes back.

HISTORY = 200_000
BATCH = 5_000


def long_history(types: str = "AB") -> Iterator[pa.Table]:
    """Events a second apart for more than two days; every key and every text occurs for a minute only."""
    kinds = np.array(list(types))
    for first in range(0, HISTORY, BATCH):
        number = np.arange(first, first + BATCH)
        yield pa.table(
            {
                "id": [f"e{n}" for n in number],
                "type": kinds[number % len(kinds)],
                "source": [f"source {n // 60}" for n in number],
                "time": number,
                "k": number // 60,
                "text": [f"text {n // 60}" for n in number],
                "v": number % 7,
                "x": (number % 100).astype(float),
                "y": (number % 10).astype(float),
            }
        )


def sizes(session: wb.Session) -> dict[str, int]:
    """How much the session remembers, by where it is kept."""
    found = {"events": len(session.running.events.stream.store), "ids": session.ingest.recent.size}
    for query, pipeline in session.running.pipelines.items():
        for name, runtime in pipeline.runtimes.items():
            at = f"{query}: {name}"
            found[f"{at} stream"] = len(runtime.stream.store) if runtime.stream.number else 0
            if hasattr(runtime, "pool"):
                pool = runtime.pool
                found |= {
                    f"{at} pool": pool.entries,
                    f"{at} waiting": pool.waiting,
                    f"{at} keys": len(pool.keys),
                }
                found[f"{at} texts"] = len(runtime.values.texts)
            if isinstance(runtime, BufferedOperator):
                found |= {f"{at} buffer": len(runtime.group), f"{at} groups": len(runtime.keys)}
    return found


BOUNDED = {
    "sequence": "detect A as a then B as b within 1 min where a.v < b.v group by k",
    "texts": "detect A as a then B as b within 1 min where a.text = b.text and a.v > b.v",
    "ordered texts": "detect A as a then B as b within 1 min where a.text < b.text and b.v = 3",
    "conjunction": "detect A as a and B as b within 10 s group by source",
    "chronicle": "detect A then B within 1 min group by k context chronicle",
    "never complete": "detect A as a then C as c within 1 min group by k",
    "absence": "detect A as a then not B(v = a.v) for 1 min group by source",
    "absence first": "detect not A as x then B as b within 1 min group by k",
    "repetition": "detect A{3} as a within 1 min where sum(a.v) > 12 group by k",
    "last": "detect last A as a then B as b within 1 min group by k",
    "definitions": "detect Low as a then Low as b within 10 s group by k",
}
WINDOWS = {
    "fixed window": "every 5 min detect A assign n = count(A) group by k",
    "sliding window": "over 5 min every 1 min detect A assign n = distinct(A.text) group by source",
    "window at each event": "over 10 s detect A assign n = sum(A.v) group by k",
    "window of events": "over 5 events within 1 min detect A assign n = max(A.text) group by k",
}
QUERIES = {name: f"define D {text}" for name, text in (BOUNDED | WINDOWS).items()}
QUERIES["definitions"] = "define Low detect A(v < 2) " + QUERIES["definitions"]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_what_is_over_is_forgotten(name):
    session = wb.Session(wb.compile(QUERIES[name]), lateness="10 s")
    seen = []
    for batch in long_history():
        session.push(batch)
        seen.append(sizes(session))
    assert session.counts.processed > HISTORY - 20
    # Stores forget in chunks, key tables once they are mostly unused: sizes go up and down, but do not grow.
    quarter = len(seen) // 4
    for where in seen[0]:
        first, last = (max(state[where] for state in part) for part in (seen[:quarter], seen[-quarter:]))
        assert last <= 1.5 * first + 2 * BATCH, where


@pytest.mark.slow
def test_a_short_query_does_not_keep_what_a_long_one_did():
    session = wb.Session(wb.compile("define Long detect A then C within 2 d"), lateness=0)
    session.add(PAIR)
    batches = long_history()
    for _ in range(10):
        session.push(next(batches))
    assert sizes(session)["events"] >= 10 * BATCH - 1
    session.remove("Long")
    for _ in range(10):
        session.push(next(batches))
    assert sizes(session)["events"] <= 4 * BATCH


@pytest.mark.slow
def test_events_that_no_query_wants_are_not_kept():
    session = wb.Session(wb.compile("define D detect Z then Z as z within 1 h"), lateness=0)
    for batch in long_history():
        session.push(batch)
    assert sizes(session)["events"] <= 4 * BATCH


def test_little_more_is_kept_than_can_still_matter():
    session = wb.Session(wb.compile("define D detect A then B within 10 s group by source"), lateness=0)
    for first in range(0, 20_000, 50):
        times = range(first, first + 50)
        session.push(
            pa.table({"type": ["A" if t % 2 else "B" for t in times], "source": ["s"] * 50, "time": times})
        )
    assert sizes(session)["events"] <= 200


def test_detections_are_not_kept_once_they_are_given():
    session = wb.Session(
        wb.compile("define Pair detect A then B within 1 h define Again detect Pair assign n = 1", emit="all")
    )
    found = push(session, "A@0s " + " ".join(f"B@{n}s" for n in range(1, 101)))
    assert len(found) + len(pass_time(session, 200)) == 200
    made = {where: size for where, size in sizes(session).items() if where.endswith("stream")}
    assert made
    assert set(made.values()) == {0}


def test_only_so_many_rejected_events_are_kept_but_all_are_counted():
    session = wb.Session(PAIR)
    rows = pa.table({"type": pa.nulls(60_000, pa.string()), "time": pa.array(range(60_000))})
    for _ in range(3):
        session.push(rows)
    assert session.counts.rejected == 180_000
    assert session.take_rejected().num_rows <= 120_000


def test_every_second_event_of_a_group_counts_though_thousands_of_groups_came_and_went():
    query = wb.compile(
        "define D over 2 events every 2 events within 1 s detect A assign k = group.k group by k"
    )
    session = wb.Session(query, lateness=0)
    groups = 3_000
    for visit in range(2):
        first = 10_000 * visit
        rows = [{"type": "A", "time": first + n, "id": f"e{visit}-{n}", "k": n} for n in range(groups)]
        found = pa.concat_tables(
            [session.push(rows), session.advance((first + groups) * SECOND)], promote_options="default"
        )
    # Time for the first visits to be forgotten lies between; each group's second event is due all the same.
    assert sorted(found.column("k").to_pylist()) == list(range(groups))
