"""Selections of operators in Python that stand for others: equal ones change nothing but how often one is
processed, similar ones as much as the quality allows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detection, plain
from tests.engine.mobile.comparing import told
from tests.engine.test_custom_operators import queries
from tests.reference import mobile as reference
from tests.reference.expressions import World
from tests.reference.mobile.deliveries import atoms_of
from tests.reference.mobile.quality import quality_of
from tests.reference.mobile.reuse import may_cover, serves
from tests.reference.mobile.strategies import worlds_of_events
from tests.reference.mobile.timelines import timelines
from tests.reference.strategies import arrivals, cuts
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.engine.session import Session
from whimbrel.errors import QueryError
from whimbrel.graph import mobile
from whimbrel.graph.custom import CustomOperator, Output, process_when, restriction, window
from whimbrel.graph.explain import explain
from whimbrel.graph.mobile import FocalObjects, MobilePolicy, MobileQuery
from whimbrel.graph.policies import Consumption, SelectionPolicy
from whimbrel.graph.query import Query
from whimbrel.lang.custom import custom_query
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND


class Counting(CustomOperator):
    """Counts how often it is called, and knows nothing but its selection."""

    stateless: ClassVar = True
    calls: ClassVar[list[tuple[str, ...]]] = []

    def open(self) -> None:
        self.seen = 0

    def called(self, events: Any) -> None:
        self.seen += 1
        Counting.calls.append(tuple(event.id for event in events))


class Seen(Counting):
    """Says what it was told, call by call."""

    def process(self, events):
        self.called(events)
        everything = {name: "+".join(event.id for event in found) for name, found in self.selected.items()}
        new = " ".join(event.id for event in events)
        yield {
            "new": new,
            "selected": repr(everything),
            "call": self.seen,
            "keys": repr(dict(self.partition)),
        }


class Bounded(Seen):
    """The same, where all follows from the restriction window: runs may begin anywhere, and be merged."""

    bounded = True


class Picky(Counting):
    """Makes detections of some events, ends selections and restriction windows early, names what it takes."""

    def process(self, events):
        self.called(events)
        every = [event for found in self.selected.values() for event in found]
        self.finished = len(every) >= 2 and every[0].source == "x"
        self.exhausted = len(every) >= 3
        return [Output({"n": len(every)}, every[: 1 + number]) for number in range(min(2, len(every)))]

    def close(self):
        kind = self.asked
        first = next((event for found in self.selected.values() for event in found), None)
        if kind == "named":
            return () if first is None else (each for each in [first])
        return first.end + SECOND if kind == "before" and first is not None else None


INTERESTS = st.sampled_from(
    [
        (reference.Circle(1.5), mobile.CircleInterest(1.5)),
        (reference.Circle(9.0), mobile.CircleInterest(9.0)),
        (reference.Box(2.0, 2.0), mobile.BoxInterest(2.0, 2.0)),
    ]
)
REFRESHES = st.sampled_from(
    [
        (reference.Always(), mobile.RefreshAlways()),
        (reference.Every(2 * SECOND), mobile.RefreshEvery("2 s")),
        (reference.Moved(1.2), mobile.RefreshWhenMoved(1.2)),
    ]
)
LIFETIMES = st.sampled_from([0, 2 * SECOND, 100 * SECOND])
ALL = SelectionPolicy((window("A", 3, bound="end", initial="newest"),), restriction("3 s", bound="end"))


@st.composite
def asked(draw):
    """An operator in Python with any windows, and who follows what with it: for the reference, and for us."""
    query, kind = draw(queries()), draw(st.sampled_from([Seen, Seen, Picky]))
    operators = [each for each in query.graph.operators if hasattr(each, "function")]
    asks = draw(st.sampled_from(["none", "named", "before"])) if kind is Picky else ""
    changed = {"parameters": {"asked": asks}} if kind is Picky else {}
    if asks in ("named", "before"):
        changed["consumption"] = Consumption(asks)
    made = tuple(replace(each, **changed) if each in operators else each for each in query.graph.operators)
    query = replace(query, graph=replace(query.graph, operators=made), operators={"Seen": kind})
    shape, interest = draw(INTERESTS)
    when, refresh = draw(REFRESHES)
    lifetime, itself = draw(LIFETIMES), draw(st.booleans())
    naive = reference.MobileQuery(
        query.graph, reference.Focal("F"), shape, lifetime, refresh=when, excluding_itself=itself
    )

    def ours(**policy):
        chosen = MobilePolicy(refresh=refresh, **policy)
        return MobileQuery(
            query, FocalObjects("F"), interest, lifetime, chosen, name="q", excluding_itself=itself
        ).compile()

    return query, naive, ours


@st.composite
def company(draw, max_size=10):
    """Random worlds in which some move together, and so have interests that begin at once."""
    events = draw(worlds_of_events(max_size=max_size))
    if not draw(st.booleans()):
        return events
    aside = draw(st.sampled_from([0.0, 1.0]))
    led = [event for event in events if event.type == "F" and event.source == "f"]
    others = [replace(event, id=f"h{event.id}", source="h", x=event.x + aside) for event in led]
    return [event for event in events if event.source != "h"] + others


def run(query, batches, lateness=0, *, snapshots=False, by=None):
    """What is told, row by row, and how often the operator was called."""
    Counting.calls.clear()
    session, rows = Session(query, lateness=lateness), []
    for batch in batches:
        if batch:
            rows += session.push(event_table(batch)).to_pylist()
        if snapshots:
            saved, session = session.snapshot(), Session(query, lateness=lateness)
            session.restore(saved)
    rows += session.close().to_pylist()
    (row,) = session.monitor().to_pylist()
    return rows, list(Counting.calls), row


def in_one_order(rows):
    return sorted(rows, key=repr)


@given(st.data(), asked(), company(), st.sampled_from([0, 2 * SECOND]), st.booleans())
def test_equal_selections_change_nothing_but_how_often_one_is_processed(
    data, one, events, lateness, snapshots
):
    *_, ours = one
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    off, calls, counted = run(ours(reuse="off"), batches, lateness)
    assert counted["selections_reused"] == 0
    exact, fewer, _ = run(ours(), batches, lateness)
    assert exact == off
    assert len(fewer) <= len(calls)
    again, _, _ = run(ours(), batches, lateness, snapshots=snapshots)
    assert again == off


def said_by(query: Query, events, last: int) -> list[tuple[int, Any]]:
    """What a plain session says of events, with the time by which it does."""
    session = Session(query, lateness=0)
    found = []
    for second in range(last // SECOND + 1):
        found += [(second * SECOND - 1, each) for each in _said(session.advance(second * SECOND - 1))]
        now = [event for event in events if event.end == second * SECOND]
        if now:
            found += [(second * SECOND, each) for each in _said(session.push(event_table(now)))]
        found += [(second * SECOND, each) for each in _said(session.advance(second * SECOND))]
    return found + [(last + 1, each) for each in _said(session.close())]


def _said(table):
    return [plain([as_detection(row)])[0] for row in table.to_pylist()]


@given(asked(), company())
def test_each_interest_is_told_what_a_plain_session_says_of_its_events(one, events):
    query, naive, ours = one
    world, last = World({}, Coordinates.PLANE, limit=5_000), max(event.end for event in events)
    expected = []
    for each in (interest for line in timelines(naive, events, world) for interest in line):
        found = said_by(query, atoms_of(naive, each, each.start, events, world), last)
        expected += [
            (each.focal, each.number, "added", known >= each.start, *detection)
            for known, detection in found
            if known >= each.start - naive.lifetime and (each.end is None or known < each.end)
        ]
    session = Session(ours(), lateness=0)
    assert in_one_order([*told(session.push(event_table(events))), *told(session.close())]) == in_one_order(
        expected
    )


# -- similar selections ----------------------------------------------------------------------------------


@st.composite
def whole_selections(draw):
    """An operator that gets its selections as a whole."""
    length = draw(st.sampled_from([1, 3, None]))
    windows = (window("A", length, bound="end", initial="newest") if length else window("A", "2 s"),)
    within = restriction("2 s", shift=draw(st.sampled_from(["1 s", "2 s"])))
    if length:
        within = restriction("3 s", bound="end")
    policy = SelectionPolicy(
        windows, within, process_when=(process_when("|A| = all"), process_when("|A| >= 1"))
    )
    query = custom_query("X", draw(st.sampled_from([Seen, Bounded])), ["A"], policy)
    _, interest = draw(INTERESTS)
    _, refresh = draw(REFRESHES)
    lifetime = draw(LIFETIMES)
    threshold = draw(st.sampled_from([0.0, 0.4, 0.5, 0.7]))

    def ours(**policy):
        chosen = MobilePolicy(refresh=refresh, **policy)
        return MobileQuery(query, FocalObjects("F"), interest, lifetime, chosen, name="q").compile()

    return ours, mobile.Quality(threshold, draw(st.sampled_from([threshold, 1.0])))


@given(st.data(), whole_selections(), company(max_size=14), st.sampled_from([0, 2 * SECOND]))
def test_who_stands_for_whom_does_not_depend_on_how_events_came_in(data, one, events, lateness):
    ours, quality = one
    deliver = data.draw(st.sampled_from(["all", "all", "new", "changes"]))
    prediction = data.draw(st.sampled_from([None, None, mobile.Prediction(steps=2, candidates=2)]))
    query = ours(reuse="similar", quality=quality, deliver=deliver, prediction=prediction)
    whole, _, _ = run(query, [events])
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    found, _, _ = run(query, batches, lateness)
    assert in_one_order(found) == in_one_order(whole)
    found, _, _ = run(query, batches, lateness, snapshots=True)
    assert in_one_order(found) == in_one_order(whole)


@given(st.data(), asked(), company(max_size=14))
def test_nor_does_it_where_some_selections_are_handed_over_piece_by_piece(data, one, events):
    query = one[2](reuse="similar", quality=0.4)
    try:
        whole, _, _ = run(query, [events])
    except QueryError as error:
        assert "restriction window" in str(error)  # noqa: PT017 (most do not)
        return
    found, _, _ = run(query, data.draw(cuts(data.draw(arrivals(events, SECOND)))), SECOND, snapshots=True)
    assert in_one_order(found) == in_one_order(whole)


@given(whole_selections(), company(max_size=14))
def test_a_selection_stands_for_another_one_as_the_definitions_allow(one, events):
    ours, quality = one
    own, _, _ = run(ours(reuse="off"), [events])
    found, _, _ = run(ours(reuse="similar", quality=quality), [events])
    mine = {(row["focal"], row["interest"], row["told"], row["live"], row["id"]): row for row in own}
    threshold = reference.Quality(quality.precision, quality.recall)
    processed = defaultdict(set)
    for row in found:
        if row["by"] is None:
            assert (row["precision"], row["recall"], row["disparity"]) == (1.0, 1.0, 0.0)
            processed[row["focal"]].add(row["id"])
            same = mine[row["focal"], row["interest"], row["told"], row["live"], row["id"]]
            assert {name: row[name] for name in same} == same
    for row in found:
        if row["by"] is not None:
            assert row["id"] in processed[row["by"]]
            assert 0 <= row["disparity"] <= 0.5
            said = reference.Quality(row["precision"], row["recall"])
            assert any(
                may_cover(row["events"], each["events"], threshold)
                and quality_of(each["events"], row["events"]) == said
                for each in own
                if _when(each) == _when(row)
            )
    for each in own:  # nothing is lost: it is told itself, or what stands for it
        assert any(
            row["id"] == each["id"] or (row["by"] and may_cover(row["events"], each["events"], threshold))
            for row in found
            if _when(each) == _when(row)
        )


def _when(row):
    return row["focal"], row["interest"], row["told"], row["live"]


def cars(*places, kind="F"):
    return [
        {"type": kind, "id": f"{kind}{n}", "source": f"{n}", "time": 0, "x": x, "y": 0.0}
        for n, x in enumerate(places)
    ]


def seen_at(*places):
    return [
        {"type": "A", "id": f"a{n}", "source": "s", "time": (n + 1) * SECOND, "x": float(x), "y": 0.0}
        for n, x in enumerate(places)
    ]


def following(operator=Seen, policy=ALL, **chosen):
    query = custom_query("X", operator, ["A"], policy)
    return wb.follow(query, type="F", within="1 m", policy=MobilePolicy(**chosen))


def counted(query, rows):
    Counting.calls.clear()
    session = wb.Session(query, time_unit="us")
    found = [*session.push(rows).to_pylist(), *session.close().to_pylist()]
    (row,) = session.monitor().to_pylist()
    return found, len(Counting.calls), (row["selections"], row["selections_reused"])


def test_three_cars_in_one_place_need_one_camera():
    rows = [*cars(0.0, 0.0, 0.1), *seen_at(0, 0.5, 0.2)]
    found, calls, numbers = counted(following(), rows)
    assert (len(found), calls, numbers) == (9, 3, (9, 6))
    off, calls, numbers = counted(following(reuse="off"), rows)
    assert (calls, numbers) == (9, (9, 0))
    assert off == found


def test_an_operator_that_does_not_say_that_it_is_stateless_sees_everything():
    class Careless(Seen):
        stateless = False

    _, calls, numbers = counted(following(Careless), [*cars(0.0, 0.0), *seen_at(0)])
    assert (calls, numbers) == (2, (2, 0))


def test_where_selections_part_the_operator_is_told_what_it_missed():
    policy = SelectionPolicy((window("A", None, shift="none"),), restriction("10 s"))
    rows = [*cars(0.0, 0.4), *seen_at(0, 0.2, 1.2, 0.1)]  # the third is seen by the second car alone
    found, calls, _ = counted(following(policy=policy), rows)
    off, all_calls, _ = counted(following(policy=policy, reuse="off"), rows)
    assert found == off
    assert calls <= all_calls
    assert ["a0", "a1", "a2", "a3"] in [row["events"] for row in found]


def test_what_is_handed_over_piece_by_piece_is_reused_where_it_is_equal():
    policy = SelectionPolicy((window("A", None, shift="none"),), restriction("10 s"))
    rows = [*cars(0.0, 0.4), *seen_at(0, 0.2, 1.2, 0.1)]
    exact, calls, _ = counted(following(policy=policy), rows)
    similar, same, _ = counted(following(policy=policy, reuse="similar", quality=0.1), rows)
    assert same == calls
    assert [row["id"] for row in similar] == [row["id"] for row in exact]
    assert {row["by"] for row in similar} == {None}


def test_history_is_not_processed_again_at_each_switch():
    updates = [
        {"type": "F", "id": f"u{n}", "source": "0", "time": n * SECOND, "x": 0.0, "y": 0.0} for n in (5, 6, 7)
    ]
    rows = [*cars(0.0), *seen_at(0, 0.1, 0.2, 0.3), *updates]
    query = custom_query("X", Seen, ["A"], ALL)
    found, calls = {}, {}
    for reuse in ("off", "exact"):
        around = wb.follow(query, type="F", within="1 m", lifetime="20 s", policy=MobilePolicy(reuse=reuse))
        found[reuse], calls[reuse], _ = counted(around, rows)
    assert found["off"] == found["exact"]
    assert calls == {"off": 16, "exact": 4}


def test_similar_selections_are_told_of_whom_they_are():
    rows = [*cars(0.0, 0.5), *seen_at(0.0, -0.9, 0.1)]
    found, calls, numbers = counted(following(reuse="similar", quality=0.6), rows)
    last = {row["focal"]: row for row in found if row["told"].second == 3}
    assert (last["0"]["by"], last["0"]["events"]) == (None, ["a0", "a1", "a2"])
    other = last["1"]
    assert (other["by"], other["events"], other["recall"]) == ("0", ["a0", "a1", "a2"], 1.0)
    assert other["precision"] == pytest.approx(2 / 3)
    assert other["disparity"] == pytest.approx(1 / 6)  # a1 lies in one of the two interests
    assert calls < 5
    assert numbers[1] == 5 - calls


def test_with_quality_1_nothing_similar_is_used():
    rows = [*cars(0.0, 0.5), *seen_at(0.0, -0.9, 0.1)]
    exact, _, _ = counted(following(), rows)
    found, _, _ = counted(following(reuse="similar"), rows)
    assert [{**row, "precision": 1.0, "recall": 1.0, "disparity": 0.0, "by": None} for row in exact] == found


def test_what_ends_restriction_windows_cannot_be_stood_for():
    class Ends(Seen):
        def process(self, events):
            self.exhausted = True
            return super().process(events)

    rows = [*cars(0.0, 0.5), *seen_at(0.0, -0.9, 0.1)]
    with pytest.raises(QueryError, match="restriction window") as refused:
        counted(following(Ends, reuse="similar", quality=0.5), rows)
    assert refused.value.hint == "write 'reuse exact'"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (
            {},
            "X.custom: equal selections are processed once, no similar one stands for another: reuse",
        ),
        ({"reuse": "off"}, "X.custom: every selection is processed: reuse is off"),
        ({"reuse": "similar"}, "no similar one stands for another: the quality is 1"),
        (
            {"reuse": "similar", "quality": 0.9},
            "equal selections are processed once, and similar ones stand for",
        ),
    ],
)
def test_explain_says_what_is_reused(chosen, said):
    assert said in explain(following(**chosen))


def test_the_reference_knows_a_cover_that_breaks_the_rules():
    owners = {"one": reference.Quality(0.5, 0.5), "other": reference.Quality(0.9, 0.9)}
    atoms = {"one": {"a", "b", "c"}, "other": {"a", "b"}}
    assert serves({"one": "other", "other": "other"}, atoms, owners, exact=False)
    assert not serves({"one": "other", "other": "one"}, atoms, owners, exact=False)
