"""Operators written in Python: windows, shifts, dependencies, predicates, consumption, partitions, state."""

# ruff: noqa: ARG002 - an operator need not look at what is new

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.errors import QueryError
from whimbrel.graph.custom import (
    CustomOperator,
    Output,
    kappa,
    process_when,
    registered,
    restriction,
    window,
)
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.operators import Derive, DeriveCase, Graph, JoinPattern, PatternPart, TimeOrder
from whimbrel.graph.policies import Assign, Consumption, ProcessWhen, SelectionPolicy, SelectionWindow, Shift
from whimbrel.graph.query import Query
from whimbrel.lang.custom import custom_query
from whimbrel.model.time import SECOND, instant
from whimbrel.testing import table


class Seen(CustomOperator):
    """Reports every call: the events that are new, and all of the selection."""

    def open(self) -> None:
        self.calls = 0

    def process(self, events):
        self.calls += 1
        new = " ".join(event.id for event in events)
        everything = {name: [event.id for event in found] for name, found in self.selected.items()}
        shown = " ".join(f"{name}={'+'.join(ids)}" for name, ids in everything.items())
        yield {"new": new, "selected": shown, "call": self.calls}


UTC = pa.timestamp("us", "UTC")
ONE = restriction("100 s", shift="100 s")
"""One restriction window for the whole of a test."""


def policy(
    *windows: SelectionWindow,
    within: Any = None,
    after: Iterable[str] = (),
    when: Iterable[str] = (),
    **settings: Any,
) -> SelectionPolicy:
    return SelectionPolicy(
        windows,
        within or ONE,
        tuple(kappa(text) for text in after),
        tuple(process_when(text) for text in when),
        **settings,
    )


def query(
    chosen: SelectionPolicy, operator: type[CustomOperator] = Seen, inputs: Any = None, **more: Any
) -> Query:
    return custom_query(
        "X", operator, inputs or list(dict.fromkeys(w.input for w in chosen.windows)), chosen, **more
    )


def seen(asked: Query, text: str, column: str = "selected") -> list[str]:
    """What the operator saw at each call, in order of the calls."""
    return in_order(wb.detect(asked, table(text)).to_pylist(), column)


def in_order(rows: Sequence[dict[str, Any]], column: str) -> list[str]:
    return [row[column] for row in rows]


def times(asked: Query, text: str) -> list[tuple[float, float]]:
    """Start and end of the detections in seconds."""
    rows = wb.detect(asked, table(text)).to_pylist()
    return [(instant(row["start"]) / SECOND, instant(row["end"]) / SECOND) for row in rows]


# -- figures of the thesis ---------------------------------------------------------------------------------


def test_a_happens_before_b_as_in_figure_3_2():
    # A may shift by two events, but must stay before the event of B: it is held back at a2.
    asked = query(
        policy(
            window("A", shift=2),
            window("B"),
            within=ONE,
            after=["end(A) < start(B)"],
            when=["|A| >= 1", "|B| >= 1"],
        )
    )
    text = "A@1s#a1 A@2s#a2 B@3s#b1 B@3.5s#b2 A@4s#a3 A@5s#a4 B@6s#b3"
    assert seen(asked, text) == ["A=a1 B=b1", "A=a2 B=b2", "A=a4 B=b3"]


class Trend(CustomOperator):
    """Compares the mean of the last three speeds with that of the three before the last one."""

    def process(self, events):
        speeds = [event["v"] for event in self.selected["recent"]]
        if len(speeds) == 4:
            before, now = sum(speeds[:3]) / 3, sum(speeds[1:]) / 3
            yield {"mean": now, "trend": "inc" if now > before else "dec"}


def test_the_mean_speed_rises_and_falls_as_in_figure_3_3():
    # The restriction window ends with each event in turn; speeds above 50 are filtered out first.
    asked = query(
        policy(
            window("Speed", 4, name="recent", bound="end", initial="newest", shift="newest"),
            within=restriction("10 s", bound="end"),
        ),
        Trend,
        [("Speed", "v <= 50")],
        attributes={"mean": "float", "trend": "string"},
    )
    text = (
        "Speed@1s:v=30 Speed@2s:v=30 Speed@3s:v=99 Speed@5s:v=30 Speed@8s:v=45 Speed@10s:v=15 Speed@30s:v=50"
    )
    rows = wb.detect(asked, table(text)).to_pylist()
    assert [(row["mean"], row["trend"]) for row in rows] == [(35.0, "inc"), (30.0, "dec")]
    assert [row["end"].second for row in rows] == [8, 10]


# -- windows and their shifts ------------------------------------------------------------------------------

A5 = "A@1s#1 A@2s#2 A@3s#3 A@4s#4 A@5s#5"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (window("A", 2), ["1", "1+2", "2", "2+3", "3", "3+4", "4", "4+5", "5"]),
        (window("A", 2, shift=2), ["1", "1+2", "3", "3+4", "5"]),
        (window("A", 1, shift=3), ["1", "4"]),
        (window("A", 1, shift="2 s"), ["1", "3", "5"]),
        (window("A", 1, shift="none"), ["1"]),
        (window("A", 2, shift="oldest"), ["1", "1+2"]),
    ],
)
def test_counting_windows_shift(chosen, expected):
    assert seen(query(policy(chosen)), A5) == [f"A={each}" for each in expected]


def test_a_window_shifts_into_history_and_time_does_not_go_back():
    chosen = window("A", 1, shift=-1, initial="newest")
    asked = query(policy(chosen, within=restriction("2 s", bound="end")))
    found = wb.detect(asked, table("A@1s#1 A@2s#2 A@4s#3")).to_pylist()
    assert sorted((row["end"].second, row["selected"]) for row in found) == [
        (1, "A=1"), (2, "A=1"), (2, "A=2"), (4, "A=2"), (4, "A=3"),
    ]  # fmt: skip


def test_a_window_that_counts_back_from_its_end():
    chosen = window("A", 3, bound="end", initial="newest")
    asked = query(policy(chosen, within=restriction("10 s", bound="end")))
    assert seen(asked, A5) == ["A=1", "A=1+2", "A=1+2+3", "A=2+3+4", "A=3+4+5"]


def test_temporal_windows_include_both_ends_unless_they_shift_by_time():
    by_event = policy(window("A", "2 s", shift=1), when=["|A| = all"])
    expected = ["A=1+2", "A=1+2+3", "A=2+3+4", "A=3+4+5", "A=4+5", "A=5"]
    assert sorted(seen(query(by_event), A5)) == sorted(expected)
    cells = policy(
        window("A", "2 s", shift="2 s"),
        within=restriction("4 s", shift="4 s"),
        when=["|A| >= 1", "|A| = all"],
    )
    assert seen(query(cells), A5) == ["A=1", "A=2+3", "A=4+5"]


def test_a_window_without_end_lasts_until_the_operator_is_finished():
    class UntilLarge(CustomOperator):
        def process(self, events):
            if any(event["v"] > 5 for event in events):
                self.finished = True
                yield {"n": len(self.selected["A"])}

        def close(self):
            return list(self.selected["A"])

    asked = query(policy(window("A", None, shift="oldest")), UntilLarge, consumption=Consumption("named"))
    assert seen(asked, "A@1s:v=1 A@2s:v=9 A@3s:v=1 A@4s:v=2 A@5s:v=7 A@6s:v=1", "n") == [2, 3]


def test_an_operator_may_give_its_restriction_window_up():
    class FirstOnly(CustomOperator):
        def process(self, events):
            self.exhausted = True
            return [{"id_": events[0].id}]

    asked = query(policy(window("A"), within=restriction("10 s", shift=2)), FirstOnly)
    assert seen(asked, A5, "id_") == ["1", "3", "5"]


# -- the restriction window --------------------------------------------------------------------------------


def test_the_restriction_window_shifts_by_events_of_one_input():
    windows = (window("A", shift="none"), window("B"))
    chosen = policy(*windows, within=restriction("3 s", input="A"), when=["|B| >= 1"])
    assert seen(query(chosen), "B@0s#b0 A@1s#a1 B@2s#b1 A@3s#a2 B@6s#b2 B@9s#b3") == [
        "A=a1 B=b1", "A=a2 B=b2",
    ]  # fmt: skip


def test_restriction_windows_that_shift_by_time_end_at_multiples_of_it():
    asked = query(
        policy(
            window("A", None, shift="none"),
            within=restriction("4 s", shift="2 s"),
            when=["|A| >= 1", "|A| = all"],
        )
    )
    same = wb.compile("define X over 4 s every 2 s detect A assign n = count(A)")
    text = "A@1s#1 A@2s#2 A@3s#3 A@9s#4"
    assert seen(asked, text) == ["A=1", "A=1+2+3", "A=2+3", "A=4", "A=4"]
    rows = wb.detect(same, table(text)).to_pylist()
    assert [row["events"] for row in rows] == [["1"], ["1", "2", "3"], ["2", "3"], ["4"], ["4"]]


def test_a_counted_restriction_window_ends_with_every_nth_event():
    asked = query(
        policy(window("A", 2, bound="end", initial="newest"), within=restriction("1 h", shift=2, bound="end"))
    )
    same = wb.compile("define X over 2 events every 2 events within 1 h detect A assign n = count(A)")
    assert seen(asked, A5) == ["A=1+2", "A=3+4"]
    assert [row["events"] for row in wb.detect(same, table(A5)).to_pylist()] == [["1", "2"], ["3", "4"]]


# -- predicates --------------------------------------------------------------------------------------------


def test_events_are_handed_over_as_they_come_while_the_predicate_holds():
    asked = query(
        policy(window("A", 3, shift="none"), within=restriction("10 s", shift=9), when=["|A| >= 2"])
    )
    assert seen(asked, A5, "new") == ["1 2", "3"]


def test_one_of_several_predicates_may_be_enough():
    windows = (window("A", shift="none"), window("B", shift="none"))
    both = policy(*windows, when=["|A| >= 1", "|B| >= 1"])
    either = policy(*windows, when=["|A| >= 1", "|B| >= 1"], process_all=False)
    assert seen(query(both), "A@1s#a B@2s#b", "new") == ["a b"]
    assert "a" in seen(query(either), "A@1s#a B@2s#b", "new")


def test_silence_is_detected_when_time_has_passed():
    class Silent(CustomOperator):
        def process(self, events):
            yield {"who": self.partition["source"]}

    chosen = policy(
        window("A", "10 s", shift="none"), within=restriction("10 s", shift="10 s"), when=["|A| = 0"]
    )
    session = wb.Session(query(chosen, Silent, partitioning=["source"]))
    assert session.push(table("A@1s!bus A@2s!tram")).num_rows == 0
    assert session.push(table("A@15s!bus")).num_rows == 0
    found = session.advance(20 * SECOND).to_pylist()
    assert [(row["who"], row["start"].second, row["events"]) for row in found] == [("tram", 10, [])]
    assert session.advance(29 * SECOND).num_rows == 0
    assert sorted(session.advance(30 * SECOND)["who"].to_pylist()) == ["bus", "tram"]
    # The input is over: the silence behind its end would last for ever.
    assert session.close().num_rows == 0


def test_a_pattern_may_stand_on_silence():
    chosen = policy(
        window("A", None, shift="none"), within=restriction("10 s", shift="10 s"), when=["|A| = 0"]
    )
    below = query(chosen, giving({"quiet": True})).graph
    parts = (PatternPart("X", "x"), PatternPart("A", "a"))
    match = JoinPattern("M", parts, within=60 * SECOND, orders=(TimeOrder(0, 1),))
    derive = Derive("Y", "Y", (DeriveCase("M", None, (Assign("quiet", Attribute("x", "quiet")),)),))
    graph = Graph((*below.operators, match, derive), ("Y",))
    asked = Query(graph, operators=registered(giving({"quiet": True})))
    found = wb.detect(asked, table("A@1s#1!bus(1,1) A@25s#2!bus(2,2) A@41s#3!bus(3,3)")).to_pylist()
    assert [(row["quiet"], row["events"]) for row in found] == [(True, ["2"]), (True, ["3"]), (True, ["3"])]


def test_an_absence_is_known_at_its_deadline():
    asked = query(
        policy(
            window("A", shift="none"),
            window("B", "3 s", shift="none"),
            within=restriction("3 s", input="A"),
            after=["start(B) > end(A)"],
            when=["|A| = 1", "|B| = 0", "|B| = all"],
        )
    )
    session = wb.Session(asked)
    assert session.push(table("A@1s#a1 B@2s#b A@3s#a2")).num_rows == 0
    assert session.advance(6 * SECOND - 1).num_rows == 0
    found = session.advance(6 * SECOND).to_pylist()
    assert [(row["selected"], row["end"].second) for row in found] == [("A=a2 B=", 6)]
    assert times(asked, "A@1s") == [(1, 4)]


# -- dependencies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("end(A) < start(B)", "A=a1 B=b1"),
        ("start(A) < start(B)", "A=a2 B=b1"),
        ("end(A) <= end(B)", "A=a2 B=b1"),
        ("start(A) >= start(B)", "A=a3 B=b1"),
        ("end(A) > end(B)", "A=a3 B=b1"),
    ],
)
def test_the_first_window_of_a_dependency_gives_way(relation, expected):
    # A is put at its newest event in the restriction window, as far as the dependency lets it.
    asked = query(
        policy(
            window("A", shift="none", initial="newest"),
            window("B", shift="none"),
            within=restriction("20 s", bound="end", shift=4),
            after=[relation],
        )
    )
    assert seen(asked, "A@1s#a1 A@2..6s#a2 B@5..7s#b1 A@8..9s#a3") == [expected]


def test_a_window_without_end_may_be_bounded_on_both_sides():
    asked = query(
        policy(
            window("A", shift="none"),
            window("C", None, shift="none"),
            window("B", shift=1),
            within=restriction("1 h", input="A"),
            after=["start(C) > end(A)", "end(C) < start(B)"],
            when=["|A| = 1", "|B| = 1"],
        )
    )
    assert seen(asked, "A@1s#a C@2s#c1 C@3s#c2 B@4s#b1 C@5s#c3 B@6s#b2", "new") == [
        "a c1 c2 b1",
        "a c1 c2 c3 b2",
    ]


# -- consumption and partitions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("consumption", "expected"),
    [
        (Consumption("none"), ["A=1+2", "A=2+3", "A=3+4", "A=4+5"]),
        (Consumption("selected"), ["A=1+2", "A=3+4"]),
        (Consumption("first", 1), ["A=1+2", "A=2+3", "A=3+4", "A=4+5"]),
        (Consumption("last", 1), ["A=1+2", "A=3+4"]),
    ],
)
def test_consumed_events_are_not_selected_again(consumption, expected):
    asked = query(policy(window("A", 2), when=["|A| = 2"]), consumption=consumption)
    assert seen(asked, A5) == expected


def test_everything_before_a_time_is_consumed():
    class Before(Seen):
        def close(self):
            found = self.selected["A"]
            return found[-1].end if found else None

    chosen = policy(window("A", 3, shift="oldest"), when=["|A| = 3"])
    assert seen(query(chosen, Before, consumption=Consumption("before")), A5) == ["A=1+2+3", "A=3+4+5"]


def test_every_partition_has_windows_of_its_own():
    class Pair(CustomOperator):
        def process(self, events):
            yield {**self.partition, "ids": "+".join(event.id for event in self.selected["A"])}

    text = "A@1s#1!x(5,5):k=1 A@2s#2!y(5,6):k=1 A@3s#3!x(50,5):k=2 A@4s#4!y(51,5):k=2"
    chosen = policy(window("A", 2, shift=2), when=["|A| = 2"])
    for keys, expected in (
        (["source"], ["1+3", "2+4"]),
        (["k"], ["1+2", "3+4"]),
        (["cell(20 m)"], ["1+2", "3+4"]),
    ):
        assert seen(query(chosen, Pair, partitioning=keys), text, "ids") == expected


# -- detections --------------------------------------------------------------------------------------------


def test_a_detection_is_made_of_the_events_that_the_operator_names():
    class Extremes(CustomOperator):
        def process(self, events):
            found = self.selected["A"]
            if len(found) == 3:
                yield Output({"n": 1}, [found[0], found[2]])
                yield Output({"n": 2}, [found[1]])
                yield {"n": 3}

    asked = query(policy(window("A", 3, shift="none"), within=restriction("9 s", shift=9)), Extremes)
    found = wb.detect(asked, table("A@1..2s#1 A@3s#2 A@4s#3")).to_pylist()
    assert {row["n"]: row["events"] for row in found} == {1: ["1", "3"], 2: ["2"], 3: ["1", "2", "3"]}
    assert {row["n"]: (row["start"].second, row["end"].second) for row in found} == {
        1: (1, 4),
        2: (3, 3),
        3: (1, 4),
    }


def test_detections_of_the_same_events_have_ids_of_their_own():
    class Twice(CustomOperator):
        def process(self, events):
            return [{}, {}]

    asked = query(policy(window("A", shift="oldest"), within=restriction("9 s", bound="end")), Twice)
    ids = wb.detect(asked, table(A5))["id"].to_pylist()
    assert len(set(ids)) == len(ids) == 10
    assert ids == wb.detect(asked, table(A5))["id"].to_pylist()


def test_an_operator_reads_events_with_all_they_have():
    class Copy(CustomOperator):
        def process(self, events):
            for event in events:
                yield {"what": (event.type, event.id, event.source, event.window).__repr__(), "at": event.x,
                       "v": event["v"], "missing": event["w"], "lasts": event.end - event.start}  # fmt: skip

    found = wb.detect(
        query(policy(window("A", name="w")), Copy), table("A@1..3s#e1!bus(2,5):v=7")
    ).to_pylist()
    assert found[0]["what"] == "('A', 'e1', 'bus', 'w')"
    assert (found[0]["at"], found[0]["v"], found[0]["missing"], found[0]["lasts"]) == (
        2.0,
        7,
        None,
        2 * SECOND,
    )


def test_operators_stand_on_definitions_of_the_language():
    asked = query(
        policy(window("pair", 2, shift=2), when=["|pair| = 2"]),
        inputs={"pair": "Pair"},
        definitions="define Pair(v) detect A as a then B as b within 5 s assign v = a.v",
    )
    found = wb.detect(asked, table("A@1s#1:v=1 B@2s#2 A@3s#3:v=2 B@4s#4")).to_pylist()
    assert [row["events"] for row in found] == [["1", "2", "4"]]


# -- mistakes ----------------------------------------------------------------------------------------------


class Faulty(CustomOperator):
    where = "process"

    def open(self):
        self._fail("open")

    def process(self, events):
        self._fail("process")

    def close(self):
        self._fail("close")

    def _fail(self, where):
        if where == self.where:
            raise KeyError("lost")


@pytest.mark.parametrize("where", ["open", "process", "close"])
def test_an_error_in_an_operator_names_it(where):
    asked = query(policy(window("A")), Faulty, parameters={"where": where})
    with pytest.raises(QueryError, match=rf"operator 'Faulty': {where}\(\) failed: KeyError: 'lost'"):
        seen(asked, "A@1s")


def test_an_error_in_a_constructor_names_the_operator():
    class Strict(Seen):
        def __init__(self, size):
            self.size = size

    with pytest.raises(QueryError, match=r"operator 'Strict': __init__\(\) failed"):
        seen(query(policy(window("A")), Strict), "A@1s")


def giving(*found: Any) -> type[CustomOperator]:
    class Giving(CustomOperator):
        def process(self, events):
            return found

    return Giving


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (giving(7), "gave 7, not the attributes"),
        (giving({"end": 1}), "'end' is something every detection has"),
        (giving({"two words": 1}), "'two words' is not a name"),
        (giving({"v": 1}, {"v": "x"}), "the attribute 'v'"),
    ],
)
def test_what_is_no_detection_is_refused(operator, message):
    with pytest.raises(QueryError, match=message):
        seen(query(policy(window("A")), operator), "A@1s")


def test_attributes_are_those_declared():
    with pytest.raises(QueryError, match="'v' is not declared; declared: w"):
        seen(query(policy(window("A")), giving({"v": 1}), attributes=["w"]), "A@1s")
    found = wb.detect(
        query(policy(window("A")), giving({"v": 1}), attributes={"v": "float", "w": "int"}), table("A@1s")
    )
    assert found.select(["v", "w"]).to_pylist() == [{"v": 1.0, "w": None}]


def test_an_operator_needs_process():
    with pytest.raises(QueryError, match=r"'CustomOperator' has no process\(\)"):
        query(policy(window("A")), CustomOperator)
    with pytest.raises(QueryError, match="is not a subclass of CustomOperator"):
        registered(dict)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: window("A", 0), "more than nothing, not 0"),
        (lambda: window("A", "0 s"), "more than nothing, not 0"),
        (lambda: restriction("0 s"), "more than nothing"),
        (lambda: restriction("1 s", shift=-1), "must shift to the future"),
        (lambda: Shift("events", 0), "never moves"),
        (lambda: policy(window("A", "2 s"), within=restriction("1 s")), "longer than the restriction window"),
        (lambda: policy(window("A"), when=["|B| = 1"]), "names no window; windows: A"),
        (lambda: policy(window("A"), after=["end(A) < end(B)"]), "names no window 'B'"),
        (
            lambda: policy(window("A"), window("B"), after=["end(A) < end(B)", "end(B) < end(A)"]),
            "form a cycle",
        ),
        (lambda: policy(window("A", None), window("B"), after=["end(B) < end(A)"]), "has no length"),
        (lambda: policy(window("A"), window("A")), "different names"),
        (policy, "at least one selection window"),
        (lambda: query(policy(window("B")), inputs=["A"]), "no input is named 'B'"),
        (lambda: query(policy(window("A")), inputs=["A", "B"]), "'B' has no selection window"),
        (lambda: query(policy(window("A")), inputs=["A", "A"]), "give them names"),
        (lambda: query(policy(window("A")), inputs=[("A", "v >")]), "v >"),
        (lambda: ProcessWhen("A", "<", "all"), "means nothing"),
        (lambda: Consumption("first"), "say how many"),
        (lambda: kappa("A < B"), "is not a dependency"),
        (lambda: process_when("A > 1"), "is not a predicate"),
    ],
)
def test_mistakes_are_found_before_anything_runs(make, message):
    with pytest.raises(QueryError, match=message.replace("(", r"\(").replace("|", r"\|")):
        make()


def test_a_graph_names_operators_that_the_query_knows():
    asked = query(policy(window("A")))
    with pytest.raises(QueryError, match="no operator is named 'Seen'"):
        wb.Session(Query(asked.graph))


def test_an_answer_that_the_consumption_policy_does_not_ask_for_is_refused():
    class Odd(Seen):
        def close(self):
            return 5

    with pytest.raises(QueryError, match="gave 5, but its consumption policy is 'none'"):
        seen(query(policy(window("A")), Odd), "A@1s")
    with pytest.raises(QueryError, match=r"close\(\) failed: TypeError"):
        seen(query(policy(window("A")), Odd, consumption=Consumption("named")), "A@1s")


# -- determinism, state ------------------------------------------------------------------------------------

BOUNDS = st.sampled_from(["start", "end"])


@st.composite
def selection_windows(draw: st.DrawFn, name: str) -> SelectionWindow:
    counting = draw(st.booleans())
    length = draw(st.sampled_from([1, 2, 3, None] if counting else ["1 s", "3 s"]))
    shift = draw(st.sampled_from([1, 2, -1, "1 s", "2 s", "-1 s", "newest", "oldest", "none"]))
    initial = draw(st.sampled_from(["oldest", "newest"]))
    return window(name, length, shift=shift, bound=draw(BOUNDS), initial=initial)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    windows = [draw(selection_windows("A")), draw(selection_windows("B"))]
    shift = draw(st.sampled_from([1, 1, 2, 3, "2 s", "4 s", "5 s"]))
    counted = draw(st.sampled_from([None, "A", "B"]))
    relations = st.sampled_from(["<", "<=", ">", ">="])
    after = []
    if draw(st.booleans()):
        one, other = draw(st.permutations(["A", "B"]))
        after.append(f"{draw(BOUNDS)}({one}) {draw(relations)} {draw(BOUNDS)}({other})")
        assume(windows["AB".index(other)].length is not None)
    when = draw(
        st.sampled_from(
            [[], [], ["|A| >= 1"], ["|A| = 0"], ["|A| = 1", "|B| = all"], ["|A| = all"], ["|B| >= 0"]]
        )
    )
    chosen = policy(
        *windows,
        within=restriction("4 s", shift=shift, input=counted, bound=draw(BOUNDS)),
        after=after,
        when=when,
        process_all=draw(st.booleans()),
    )
    kinds = [Consumption("none"), Consumption("selected"), Consumption("first", 1), Consumption("last", 2)]
    keys = draw(st.sampled_from([[], ["source"]]))
    return query(chosen, consumption=draw(st.sampled_from(kinds)), partitioning=keys)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    made, at = [], 0
    for number in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from([0, 1, 1, 2, 3, 9])) * SECOND
        start = at - draw(st.sampled_from([0, 0, 0, 1, 3])) * SECOND
        kind, source = draw(st.sampled_from("AB")), draw(st.sampled_from("xy"))
        made.append({"type": kind, "id": f"{number:02}", "source": source, "start": start, "end": at})
    return made


def rows_of(tables: Iterable[Any]) -> list[tuple[Any, ...]]:
    names = ["id", "start", "end", "new", "selected", "call"]
    return sorted(tuple(row[name] for name in names) for found in tables for row in found.to_pylist())


@pytest.mark.property
@settings(deadline=None)
@given(queries(), histories(), st.data())
def test_results_do_not_depend_on_how_events_come_in(asked, history, data):
    whole = rows_of([wb.detect(asked, table(history))])
    session, found = wb.Session(asked, lateness=0), []
    rest = sorted(history, key=lambda row: (row["end"], row["start"], row["source"], row["id"]))
    last = rest[-1]["end"]
    while rest:
        size = data.draw(st.integers(1, 5))
        # Events of one instant come together: the next one would be late otherwise.
        while size < len(rest) and rest[size - 1]["end"] == rest[size]["end"]:
            size += 1
        found.append(session.push(table(rest[:size])))
        rest = rest[size:]
        if data.draw(st.booleans()):
            later = min(rest[0]["end"] - 1 if rest else last, last)
            found.append(session.advance(later))
        if data.draw(st.booleans()):
            again = wb.Session(asked, lateness=0)
            again.restore(session.snapshot())
            session = again
    found.append(session.close())
    assert rows_of(found) == whole


def test_time_that_passes_at_once_is_time_that_passes_in_steps():
    # A waits for B to be complete, which it is only when the restriction window is over.
    asked = query(
        policy(
            window("A", None, shift="none"),
            window("B", 2, shift="none"),
            within=restriction("4 s", shift="2 s"),
            after=["end(A) <= end(B)"],
        )
    )
    history = table("A@1s#1 B@1.5s#2 C@9s#3")
    session = wb.Session(asked, lateness=0)
    found = [session.push(history.slice(at, 1)) for at in range(3)]
    found += [session.advance(second * SECOND) for second in range(9)]
    assert rows_of([*found, session.close()]) == rows_of([wb.detect(asked, history)])
    assert seen(asked, "A@1s#1 B@1.5s#2 C@9s#3", "new") == ["1", "1", "2", "2"]


@pytest.mark.parametrize(
    ("within", "thousands"),
    [
        pytest.param(restriction("10 s"), 50, marks=pytest.mark.slow),
        (restriction("10 s", bound="end"), 10),
        (restriction("10 s", shift="10 s"), 10),
        (restriction("10 s", input="A", shift=3), 10),
    ],
)
def test_what_is_remembered_is_bounded_by_the_restriction_window(within, thousands):
    chosen = policy(
        window("A", shift="none"), window("B", shift="none"), within=within, when=["|A| = 1", "|B| = 1"]
    )
    session = wb.Session(query(chosen, partitioning=["source"]))
    environment = next(iter(session.running.pipelines.values())).runtimes["X.custom"]
    for batch in range(thousands):
        numbers = range(batch * 1000, (batch + 1) * 1000)
        times = [n * SECOND for n in numbers]
        kinds, sources = ["AB"[n % 2] for n in numbers], [f"s{n // 100}" for n in numbers]
        rows = {"type": kinds, "start": times, "end": times, "source": sources}
        session.push(
            pa.table(rows)
            .set_column(1, "start", pa.array(times, UTC))
            .set_column(2, "end", pa.array(times, UTC))
        )
        partitions = environment.partitions
        # How many events were passed is kept for every partition, where a shift passes several.
        assert len(partitions) < 15 or within.shift.amount == 3
        assert sum(len(partition.buffer) for partition in partitions.values()) < 40
        assert len(environment._dues) < 100
        assert len(environment.stream.store) < 20_000
