"""What happens when objects disappear or jump, positions come twice, late or in disorder, and queries go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, in_batches, is_taken, sorted_told, told
from tests.reference.data import Event
from tests.reference.matches import TooLarge
from tests.reference.mobile import Always, Circle, Focal, MobileQuery, deliveries
from tests.reference.mobile.strategies import mobile_queries, moved_to, worlds_of_events
from tests.reference.strategies import arrivals, cuts
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.engine.session import Session
from whimbrel.graph.mobile import ListedObject
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import SECOND

SLOW = compile_text("define Slow detect A").graph


def query(**fixed):
    chosen = {"graph": SLOW, "focal": Focal("F"), "interest": Circle(1.5), "lifetime": 3 * SECOND}
    return MobileQuery(**(chosen | fixed))


def seen_at(*places):
    """Events of type A at (second, x, y)."""
    return [
        Event(f"a{n}", "A", int(t * SECOND), int(t * SECOND), "s", x, y)
        for n, (t, x, y) in enumerate(places, 1)
    ]


def short(table):
    rows = table.to_pylist()
    return [(row["focal"], row["interest"], row["change"], row["live"], row["events"][0]) for row in rows]


def test_an_object_that_disappears_keeps_its_interest_unless_silence_ends_it():
    events = [*moved_to([(0, 0, 0)]), *seen_at((1, 0, 0), (9, 0, 0))]
    assert [each[4] for each in _told_of(query(), events)] == ["a1", "a2"]
    assert [each[4] for each in _told_of(query(silent=3 * SECOND), events)] == ["a1"]


def test_who_was_silent_too_long_begins_anew_and_what_was_shown_goes_before():
    asked = query(silent=2 * SECOND, deliver="changes", lifetime=9 * SECOND)
    events = [*moved_to([(0, 0, 0), (8, 0, 0)]), *seen_at((1, 0, 0))]
    assert [(each[1], each[2]) for each in _told_of(asked, events)] == [
        (1, "added"),
        (1, "removed"),
        (2, "added"),
        (2, "removed"),
    ]


def test_an_object_that_jumps_is_told_of_the_place_where_it_comes_to():
    events = [
        *moved_to([(0, 0, 0), (2, 900, 900)]),
        *seen_at((1, 0, 0), (1, 900, 900), (3, 0, 0), (3, 900, 900)),
    ]
    assert [(each[1], each[3], each[4]) for each in _told_of(query(), events)] == [
        (1, True, "a1"),
        (2, False, "a2"),
        (2, True, "a4"),
    ]


def test_a_position_that_comes_twice_counts_once():
    events = [*moved_to([(0, 0, 0), (2, 0, 0)]), *seen_at((1, 0, 0))]
    session = Session(compiled(query(lifetime=0)), lateness=None)
    session.push(event_table([*events, events[1]]))
    assert [row[1] for row in short(session.close())] == [1]
    assert session.counts.duplicate == 1


def test_a_position_that_comes_too_late_is_set_aside_and_counted():
    session = Session(compiled(query()), lateness=0)
    session.push(event_table([*moved_to([(0, 0, 0)]), *seen_at((5, 0, 0))]))
    session.push(event_table(moved_to([(2, 700, 700)], key="f")))
    session.push(event_table(seen_at((7, 700, 700))))
    session.close()
    assert session.counts.late == 1
    assert session.monitor()["late_updates"].to_pylist() == [1]


def test_a_position_without_a_place_or_key_is_nobodys():
    nowhere = Event("f@1", "F", SECOND, SECOND, "f", None, None)
    nobody = Event("n@1", "F", SECOND, SECOND, None, 5, 5)
    events = [*moved_to([(0, 0, 0)]), nowhere, nobody, *seen_at((2, 0, 0), (2, 5, 5))]
    assert {(each[0], each[1], each[4]) for each in _told_of(query(), events)} == {("f", 1, "a1")}


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_query_that_is_removed_at_any_time_leaves_the_others_as_they_are(cut):
    events = [*moved_to([(0, 0, 0), (2, 2, 0), (4, 0, 0)]), *seen_at((1, 0, 0), (3, 1, 0), (5, 0, 0))]
    ordered = sorted(events, key=lambda each: each.end)
    whole = in_batches(compiled(query()), [ordered])
    session = Session(compiled(query()), name="kept")
    session.add(compiled(query(interest=Circle(9.0))), name="removed")
    session.name_queries()
    tables = [session.push(event_table(ordered[:cut]))]
    session.remove("removed")
    tables += [session.push(event_table(ordered[cut:]))] if ordered[cut:] else []
    tables.append(session.close())
    kept = [
        each.filter([name == "kept" for name in each["@query"].to_pylist()]) for each in tables if len(each)
    ]
    found = [row for each in kept for row in told(each.drop_columns(["@query"]))]
    assert sorted_told(found) == sorted_told(whole)


def test_an_object_that_is_followed_no_longer_has_its_things_removed():
    mobile = wb.MobileQuery(
        wb.compile("define Slow detect A"),
        wb.focal("F", listed=[{"key": "f"}, {"key": "g"}]),
        wb.CircleInterest(1.5),
        policy=wb.MobilePolicy(deliver="changes"),
    )
    session = Session(mobile)
    events = [*moved_to([(0, 0, 0)]), *moved_to([(0, 0, 0)], key="g"), *seen_at((1, 0, 0))]
    tables = [session.push(event_table(events)), session.push(event_table(seen_at((2, 5, 5))))]
    session.unfollow(["f"])
    later = [Event("b1", "A", 3 * SECOND, 3 * SECOND, "s", 0.0, 0.0)]
    tables += [session.push(event_table(later)), session.close()]
    found = [row for each in tables if len(each) for row in short(each)]
    assert [row for row in found if row[0] == "f"] == [
        ("f", 1, "added", True, "a1"),
        ("f", 1, "removed", True, "a1"),
    ]
    assert [row[4] for row in found if row[0] == "g"] == ["a1", "b1"]


def test_who_is_put_on_the_list_is_followed_from_the_next_update_on():
    mobile = wb.MobileQuery(
        wb.compile("define Slow detect A"),
        wb.focal("F", listed=[{"key": "x"}]),
        wb.CircleInterest(1.5),
        "9 s",
    )
    session = Session(mobile)
    session.push(event_table([*moved_to([(0, 0, 0)]), *seen_at((1, 0, 0), (1, 4, 0))]))
    session.follow([ListedObject("f", radius_m=5.0)])
    table = session.push(event_table([*moved_to([(2, 0, 0)]), *seen_at((3, 9, 9))]))
    found = [*short(table), *short(session.close())]
    assert [(row[0], row[1], row[3], row[4]) for row in found] == [
        ("f", 1, False, "a1"),
        ("f", 1, False, "a2"),
    ]


def test_a_query_without_a_list_has_nobody_to_put_on_it():
    session = Session(compiled(query()))
    with pytest.raises(wb.QueryError, match="has no list"):
        session.follow(["f"])
    with pytest.raises(wb.QueryError, match="follows nothing"):
        Session(wb.compile("define Slow detect A")).follow(["f"])


@pytest.mark.slow
@given(st.data(), mobile_queries(), worlds_of_events())
def test_positions_in_disorder_and_twice_change_nothing(data, asked, events):
    if not is_taken(asked):
        reject()
    try:
        answer = sorted_told([as_told(each) for each in deliveries(asked, events, limit=5_000)])
    except TooLarge:
        reject()
    twice = [*events, *data.draw(st.lists(st.sampled_from(events), max_size=4))] if events else events
    batches = data.draw(cuts(data.draw(arrivals(twice, 2 * SECOND))))
    assert sorted_told(in_batches(compiled(asked), batches, 2 * SECOND)) == answer


def _told_of(asked, events):
    session = Session(compiled(replace(asked, refresh=Always())), lateness=None)
    session.push(event_table(events))
    return short(session.close())
