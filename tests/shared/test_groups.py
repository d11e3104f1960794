"""`group by`: what belongs together."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect


def test_events_of_one_value_belong_together(backend):
    found = backend.detect(
        "define D detect A then B within 10 s group by k", "A@1s:k=x A@2s:k=y B@3s:k=y B@4s:k=x"
    )
    assert found == expect("D@2..3s:k=y: a2 b1 ; D@1..4s:k=x: a1 b2")


@pytest.mark.parametrize(("one", "other"), [("1", "2"), ("0.5", "1.5"), ("true", "false"), ("x", "''")])
def test_keys_may_be_of_any_type(backend, one, other):
    data = f"A@1s:k={one} A@2s:k={other} B@3s:k={other}"
    assert backend.pattern("A then B within 10 s group by k", data) == ["a2 b1"]


def test_events_of_one_source_belong_together(backend):
    data = "A@1s!bus A@2s!tram B@3s!tram"
    for key in ("source", "srcid"):
        assert backend.pattern(f"A then B within 10 s group by {key}", data) == ["a2 b1"]


def test_the_source_can_be_reported(backend):
    found = backend.detect("define D detect A then B within 10 s assign who = group.source group by source",
                           "A@1s!bus B@2s!bus")  # fmt: skip
    assert found == expect("D@1..2s:who=bus: a1 b1")


def test_several_keys_must_agree_together(backend):
    data = "A@1s:k=x,v=1 B@2s:k=x,v=2 B@3s:k=y,v=1 B@4s:k=x,v=1"
    found = backend.detect("define D detect A then B within 10 s group by k, v", data)
    assert found == expect("D@1..4s:k=x,v=1: a1 b3")


def test_several_keys_are_not_run_together(backend):
    data = "A@1s:k=ab,l=c B@2s:k=a,l=bc"
    assert backend.pattern("A then B within 10 s group by k, l", data) == []


def test_events_without_the_key_belong_together(backend):
    found = backend.detect("define D detect A then B within 10 s group by k", "A@1s A@2s:k=x B@3s")
    assert found == expect("D@1..3s: a1 b1")


def test_one_missing_key_of_several_counts_as_a_value(backend):
    data = "A@1s:k=x A@2s:v=1 B@3s:k=x B@4s:k=x,v=1"
    assert backend.pattern("A then B within 10 s group by k, v", data) == ["a1 b1"]


def test_events_of_one_cell_belong_together(backend):
    data = "A@1s(1,1) B@2s(9,9) B@3s(11,1) A@4s(-1,-1) B@5s(-9,-2)"
    assert backend.pattern("A then B within 10 s group by cell(10 m)", data) == ["a1 b1", "a2 b3"]


def test_a_cell_includes_its_lower_border(backend):
    assert backend.pattern("A then B within 10 s group by cell(10 m)", "A@1s(0,0) B@2s(10,0) B@3s(0,5)") == [
        "a1 b2"
    ]


def test_cells_on_the_sphere_keep_their_size(backend):
    # At 60 degrees north a degree of longitude is half as long: 0.01 degrees are 556 m.
    rows = [
        {"type": kind, "start": time, "end": time, "id": name, "lon": lon, "lat": 60.0}
        for kind, time, name, lon in [("A", 0, "a1", 0.001), ("B", 1, "b1", 0.008), ("B", 2, "b2", 0.02)]
    ]
    assert backend.pattern("A then B within 10 s group by cell(1 km)", rows) == ["a1 b1"]


def test_the_key_can_be_read_in_an_assignment(backend):
    found = backend.detect("define D detect A as a assign room = group.k, v = a.v group by k", "A@1s:k=x,v=1")
    assert found == expect("D@1s:room=x,v=1: a1")


def test_the_key_can_be_read_in_a_condition(backend):
    data = "A@1s:k=x A@2s:k=y B@3s:k=x B@4s:k=y"
    assert backend.pattern("A then B within 10 s where group.k = 'y' group by k", data) == ["a2 b2"]


def test_a_declared_attribute_is_the_key_of_that_name(backend):
    found = backend.detect("define D(k) detect A then B within 10 s group by k", "A@1s:k=x B@2s:k=x")
    assert found == expect("D@1..2s:k=x: a1 b1")


def test_equality_between_parts_joins_as_a_key_does_but_for_nulls(backend):
    data = "A@1s:k=x A@2s B@3s:k=x B@4s"
    assert backend.pattern("A as a then B as b within 10 s where a.k = b.k", data) == ["a1 b1"]


def test_many_groups_keep_apart(backend):
    rows = [
        {"type": kind, "start": time, "end": time, "id": f"{kind}{group}", "k": group}
        for time, kind in enumerate("AB")
        for group in range(50)
    ]
    found = backend.detect("define D detect A then B within 10 s group by k", rows)
    assert sorted(found.values("k")) == list(range(50))
    assert all(row["events"] == (f"A{row['k']}", f"B{row['k']}") for row in found)
