"""Changes: an attribute that has another value than in the event before."""

from __future__ import annotations

from typing import Any


def seen(*values: Any, source: str = "s", step: int = 10) -> list[dict]:
    """An event every so many seconds with a value of `v`."""
    return [
        {
            "type": "P",
            "start": number * step * 1_000_000,
            "end": number * step * 1_000_000,
            "id": f"{source}{number}",
            "source": source,
            "v": value,
        }
        for number, value in enumerate(values)
    ]


def found(backend, phrase: str, rows: list[dict], clauses: str = "") -> list[str]:
    return backend.detect(f"define D detect {phrase} {clauses} assign n = 1", rows).events


def test_a_change_is_found_with_the_event_before(backend):
    assert found(backend, "P changes v within 1 min", seen("x", "x", "y", "y", "x")) == ["s1 s2", "s3 s4"]


def test_the_first_event_is_no_change(backend):
    assert found(backend, "P changes v within 1 min", seen("x")) == []


def test_events_without_a_value_are_passed_over(backend):
    assert found(backend, "P changes v within 1 min", seen("x", None, "y", None, "y")) == ["s0 s2"]


def test_a_value_that_is_too_old_is_not_compared_with(backend):
    assert found(backend, "P changes v within 10 s", seen("x", "y")) == ["s0 s1"]
    assert found(backend, "P changes v within 9 s", seen("x", "y")) == []


def test_each_source_changes_by_itself(backend):
    rows = seen("x", "x", "y", source="a") + seen("y", "y", "y", source="b")
    assert found(backend, "P changes v within 1 min", rows) == ["a1 a2"]


def test_each_group_changes_by_itself(backend):
    rows = [row | {"k": "even" if number % 2 else "odd"} for number, row in enumerate(seen(1, 2, 1, 3))]
    assert found(backend, "P changes v within 1 min", rows, "group by k") == ["s1 s3"]


def test_what_it_was_and_what_it_became_can_be_asked_for(backend):
    rows = seen("x", "y", "z", "y", "x")
    assert found(backend, "P changes v from 'y' within 1 min", rows) == ["s1 s2", "s3 s4"]
    assert found(backend, "P changes v to 'y' within 1 min", rows) == ["s0 s1", "s2 s3"]
    assert found(backend, "P changes v from 'y' to 'x' within 1 min", rows) == ["s3 s4"]


def test_a_number_has_to_change_by_more_than_it_says(backend):
    assert found(backend, "P changes v by more than 2 within 1 min", seen(1, 3, 6, 4, 1)) == [
        "s1 s2",
        "s3 s4",
    ]


def test_where_and_assign_read_both_events(backend):
    query = """
        define D detect P as p changes v within 1 min where p.v < previous.v
        assign was = previous.v, now = p.v, took = p.timestamp - previous.timestamp > 5 s
    """
    (row,) = backend.detect(query, seen(1, 3, 2))
    assert (row["was"], row["now"], row["took"]) == (3, 2, True)


def test_without_assign_the_key_and_both_values_are_told(backend):
    (row,) = backend.detect("define D detect P changes v within 1 min", seen(1, 2))
    assert (row["source"], row["before"], row["after"]) == ("s", 1, 2)


def test_only_events_that_fit_are_compared(backend):
    assert found(backend, "P(v > 0) changes v within 1 min", seen(1, -5, 1, 2)) == ["s2 s3"]


def test_a_change_is_a_part_of_other_definitions(backend):
    query = """
        define Turned detect P as p changes v within 1 min assign to = p.v
        define Twice(n) detect Turned as a then Turned as b within 1 min assign n = b.to group by source
    """
    assert backend.detect(query, seen(1, 2, 2, 3), emit="Twice").values("n") == [3]
