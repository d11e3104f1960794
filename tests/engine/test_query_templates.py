"""Queries that differ only in what they ask of single events run as one; each finds what it finds alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine import query_template, query_templates
from whimbrel.engine.report import ATTRIBUTES_KEY
from whimbrel.errors import StateError

CONDITIONS = st.one_of(
    st.builds(lambda v: f"v = {v}", st.integers(0, 2)),
    st.builds(lambda v: f"v > {v}", st.integers(-1, 2)),
    st.builds(lambda s: f"s = '{s}'", st.sampled_from("xyz")),
    st.builds(lambda v, s: f"v <= {v}, s != '{s}'", st.integers(0, 2), st.sampled_from("xyz")),
    st.builds(lambda v, x: f"v = {v}, this in box({x}, 0, {x + 2}, 2)", st.integers(0, 2), st.integers(0, 2)),
    st.builds(
        lambda s, x, d: f"s = '{s}', distance(this, 'POLYGON (({x} 0, {x + 1} 0, {x} 1, {x} 0))') > {d}",
        st.sampled_from("xy"),
        st.integers(0, 2),
        st.sampled_from([0, 1, 1.5]),
    ),
    st.builds(lambda v, x: f"v = {v}, this in circle({x}, 0, 1.5 m)", st.integers(0, 2), st.integers(0, 2)),
    st.builds(
        lambda s, x: f"s = '{s}', distance(this, circle({x}, 0, 1 m)) > 1",
        st.sampled_from("xy"),
        st.integers(0, 2),
    ),
    st.builds(lambda a, b: f"v between {a} and {b}", st.integers(0, 2), st.integers(0, 2)),
)
TEMPLATES = (
    "define {n} detect A({0}) as a then B({1}) as b within 4 s",
    "define {n} detect A({0}) as a then B({1}) as b within 4 s where a.v <= b.v group by source",
    "define {n} detect A({0}) as a then not B({1}) for 2 s",
    "define {n} detect last A({0}) as a then B({1}) as b within 3 s assign first = a.v, place = b.s",
    "define {n} detect A({0}) as a and B({1}) as b within 3 s where distance(a, b) < 2 context chronicle",
    (
        "define {n}_low detect A({0}) as a then B({1}) as b within 2 s group by source "
        "define {n} detect {n}_low as p then {n}_low as q within 6 s"
    ),
    (
        "define {n}_low detect A({0}) as a then B({1}) as b within 2 s assign sum = a.v + b.v "
        "define {n} detect {n}_low(sum > 1) as p then B({1}) as q within 6 s assign kind = p.type"
    ),
    "define {n} detect A({0})",
)


@st.composite
def _texts(draw):
    template = draw(st.sampled_from(TEMPLATES))
    first, second = draw(CONDITIONS), draw(CONDITIONS)
    return lambda name: template.replace("{n}", name).replace("{0}", first).replace("{1}", second)


@st.composite
def _events(draw):
    rows, time = [], draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 5))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2]))
        row = {"type": draw(st.sampled_from("AB")), "time": time, "source": draw(st.sampled_from("pq"))}
        row["v"] = draw(st.sampled_from([0, 1, 2, None]))
        row["s"] = draw(st.sampled_from(["x", "y", "z", None]))
        row["x"], row["y"] = draw(st.sampled_from([(0.0, 0.0), (1.0, 1.0), (3.0, 0.5)]))
        rows.append(row)
    return rows


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(_texts(), min_size=1, max_size=6)),
        st.tuples(st.just("remove"), st.integers(0, 20)),
        st.tuples(st.just("push"), _events()),
        st.tuples(st.just("restart"), st.none()),
    ),
    min_size=3,
    max_size=9,
)


@dataclass
class Side:
    """A session with many queries, or many sessions with one query each."""

    together: bool
    sessions: dict[str, wb.Session] = field(default_factory=dict)
    queries: dict[str, wb.Query] = field(default_factory=dict)
    found: list[tuple] = field(default_factory=list)
    time: int = 0

    def session(self, name):
        if self.together and self.sessions:
            return next(iter(self.sessions.values()))
        session = wb.Session(coordinates="plane")
        session.name_queries()
        session.advance(self.time)
        self.sessions["" if self.together else name] = session
        return session

    def add(self, name, text):
        self.queries[name] = wb.compile(text)
        self.session(name).add(self.queries[name], name=name)

    def remove(self, name):
        del self.queries[name]
        if self.together:
            self.session(name).remove(name)
        else:
            del self.sessions[name]

    def push(self, rows):
        self.time = 1_000_000 * max(row["time"] for row in rows)
        for session in self.sessions.values():
            self.take(session.push(rows))
            self.take(session.advance(self.time))

    def restart(self):
        for name, old in list(self.sessions.items()):
            new = wb.Session(coordinates="plane")
            new.name_queries()
            for query in old.queries:
                new.add(self.queries[query], name=query)
            new.restore(old.snapshot())
            self.sessions[name] = new

    def close(self):
        for session in self.sessions.values():
            self.take(session.close())
        return sorted(self.found, key=repr)

    def take(self, table):
        owned = json.loads(table.schema.metadata[ATTRIBUTES_KEY])
        for row in table.to_pylist():
            kept = {name: value for name, value in row.items() if value is not None}
            assert {*kept} - {"id", "type", "start", "end", "geometry", "events", "@query"} <= {
                *owned[row["type"]]
            }
            self.found.append(tuple(sorted((name, repr(value)) for name, value in kept.items())))


def _shifted(rows, by):
    return [row | {"time": row["time"] + by, "id": f"{by}.{n}"} for n, row in enumerate(rows)]


@pytest.mark.slow
@pytest.mark.property
@settings(max_examples=60)
@given(STEPS, st.sampled_from([1, 2]), st.sampled_from([3, 1 << 20]))
def test_queries_that_come_and_go_find_what_each_finds_alone(steps, few, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_templates, "FEW", few)
        patch.setattr(query_template, "ROWS", rows)
        sides = [Side(together=True), Side(together=False)]
        names: list[str] = []
        made = by = 0
        for what, given_ in steps:
            if what == "add":
                for text in given_:
                    made += 1
                    names.append(f"Q{made}")
                    for side in sides:
                        side.add(names[-1], text(names[-1]))
            elif what == "remove" and names:
                gone = names.pop(given_ % len(names))
                for side in sides:
                    side.remove(gone)
            elif what == "push":
                for side in sides:
                    side.push(_shifted(given_, by))
                by += 1 + max(row["time"] for row in given_)
            elif what == "restart":
                for side in sides:
                    side.restart()
        assert sides[0].close() == sides[1].close()


# -- what is a template ------------------------------------------------------------------------------------

LATE = "define Late{0} detect Leave(truck = {0}) as a then not Arrive(truck = {0}) for 1 h"


def _many(number, text=LATE, start=0):
    session = wb.Session()
    for n in range(start, start + number):
        session.add(wb.compile(text.format(n)), name=f"q{n}")
    return session


def _leave(session, *trucks):
    session.push([{"type": "Leave", "truck": n, "time": 0, "id": f"l{n}"} for n in trucks])
    assert not session.advance(0).num_rows


def test_enough_queries_of_one_kind_are_instances_of_one_template():
    session = _many(query_templates.FEW)
    _leave(session, 3)
    (only,) = session.running.sharing.templates.running.values()
    assert only.size == query_templates.FEW
    assert session.close().column("type").to_pylist() == ["Late3"]


def test_few_queries_run_by_themselves():
    session = _many(query_templates.FEW - 1)
    _leave(session, 3)
    assert not session.running.sharing.templates.running


def test_queries_that_are_added_one_by_one_become_instances_too():
    session = wb.Session()
    for n in range(2 * query_templates.FEW):
        session.add(wb.compile(LATE.format(n)), name=f"q{n}")
        session.push([{"type": "Leave", "truck": n, "time": n, "id": f"l{n}"}])
        session.advance(n * 1_000_000)
    (only,) = session.running.sharing.templates.running.values()
    assert only.size == query_templates.FEW + 1
    assert session.close().num_rows == 2 * query_templates.FEW


def test_what_two_queries_have_in_common_is_found_once_and_not_by_a_template():
    text = "define Late{0} detect Leave as a then not Arrive for 1 h"
    session = _many(query_templates.FEW, text)
    _leave(session, 3)
    assert not session.running.sharing.templates.running
    assert len(session.running.sharing.commons) == 1


def test_a_query_that_is_gone_finds_nothing_and_begins_anew_when_it_comes_back():
    session = _many(query_templates.FEW)
    _leave(session, 3, 4)
    session.remove("q3")
    session.add(wb.compile(LATE.format(3)), name="q3")
    assert session.close().column("type").to_pylist() == ["Late4"]


def test_a_template_without_instances_is_no_more():
    session = _many(query_templates.FEW)
    _leave(session, 3)
    for name in session.queries:
        session.remove(name)
    assert not session.running.sharing.templates.running
    assert not session.running.events.types
    assert session.close().num_rows == 0


def test_a_full_template_is_followed_by_another(monkeypatch):
    monkeypatch.setattr(query_template, "MOST_SHARERS", query_templates.FEW)
    session = _many(2 * query_templates.FEW)
    _leave(session, 3, query_templates.FEW + 3)
    assert [each.size for each in session.running.sharing.templates.running.values()] == [
        query_templates.FEW
    ] * 2
    assert session.close().column("type").to_pylist() == [f"Late{query_templates.FEW + 3}", "Late3"]


def test_a_snapshot_knows_the_instances_and_those_that_are_gone():
    before = _many(query_templates.FEW + 1)
    _leave(before, 3, 4, 5)
    before.remove("q4")
    after = wb.Session()
    for n in range(query_templates.FEW + 1):
        if n != 4:
            after.add(wb.compile(LATE.format(n)), name=f"q{n}")
    after.restore(before.snapshot())
    after.add(wb.compile(LATE.format(4)), name="q4")
    assert after.close().column("type").to_pylist() == ["Late3", "Late5"]


def test_a_snapshot_is_not_taken_for_that_of_a_changed_query():
    before = _many(query_templates.FEW)
    _leave(before, 3)
    other = _many(query_templates.FEW - 1)
    other.add(wb.compile(LATE.format(99)), name=f"q{query_templates.FEW - 1}")
    with pytest.raises(StateError, match=f"another version of the query 'q{query_templates.FEW - 1}'"):
        other.restore(before.snapshot())


def test_a_template_names_the_query_of_each_detection():
    session = _many(query_templates.FEW)
    session.name_queries()
    _leave(session, 3)
    assert session.close().column("@query").to_pylist() == ["q3"]
