"""Patterns of steps in the language, in Python and as JSON: the same in each, or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import whimbrel as wb
from whimbrel.errors import QueryError
from whimbrel.graph.operators.step_pattern import StepPattern, every
from whimbrel.lang.steps import Pattern, either


def taken(text: str, letters: str, **settings: Any) -> set[str]:
    """Run a pattern over events named by letter and number (A1, A2, B1); give the events of each match."""
    seen: dict[str, int] = {}
    events = []
    for time, letter in enumerate(letters.split()):
        seen[letter] = seen.get(letter, 0) + 1
        events.append({"type": letter, "time": time, "id": f"{letter}{seen[letter]}", "v": time})
    query = wb.compile(f"define M detect {text}", horizon="1 h", **settings)
    return {" ".join(found) for found in wb.detect(query, events).column("events").to_pylist()}


@pytest.mark.parametrize(
    ("text", "letters", "found"),
    [
        ("A as a next B as b among *", "A X B B", set()),
        ("A as a followed by B as b among *", "A X B B", {"A1 B1"}),
        ("A as a followed by any B as b among *", "A X B B", {"A1 B1", "A1 B2"}),
        ("A as a next B as b", "A X B B", {"A1 B1"}),
        (
            "A+ as a followed by C as c",
            "A A A C",
            {"A1 C1", "A1 A2 C1", "A1 A2 A3 C1", "A2 C1", "A2 A3 C1", "A3 C1"},
        ),
        ("A+ greedy as a followed by C as c", "A A A C", {"A1 A2 A3 C1", "A2 A3 C1", "A3 C1"}),
        (
            "A+ combinations as a followed by C as c",
            "A A A C",
            {"A1 C1", "A1 A2 C1", "A1 A2 A3 C1", "A1 A3 C1", "A2 C1", "A2 A3 C1", "A3 C1"},
        ),
        ("A+ consecutive as a followed by C as c among *", "A X A C", {"A1 C1", "A2 C1"}),
        ("A+ as a until B followed by C as c", "A B A C", {"A1 C1", "A2 C1"}),
        ("A as a followed by B? as b followed by C as c", "A B C", {"A1 B1 C1", "A1 C1"}),
        ("A as a not followed by B as b followed by C as c", "A B C", set()),
        ("A as a not next B as b followed by C as c among *", "A X C", {"A1 C1"}),
        ("(A as a followed by B as b){2} followed by C as c", "A B A B C", {"A1 B1 A2 B2 C1"}),
        ("A as a followed by (B as b or (C as c next D as d)) among *", "A C D B", {"A1 B1", "A1 C1 D1"}),
        ("A+ as a followed by C as c skip past last event", "A A C A C", {"A1 A2 C1", "A3 C2"}),
        ("A as a followed by B(v > first(a.v) + 2) as b", "A B X B", {"A1 B2"}),
        ("A as a followed by any B as b within 3 s", "A B B B", {"A1 B1", "A1 B2"}),
        ("A as a followed by any B+ as b within 2 s between events among *", "A B X B", {"A1 B1"}),
    ],
)
def test_the_examples_of_the_page_find_what_it_says(text: str, letters: str, found: set[str]):
    assert taken(text, letters) == found


def test_an_absence_at_the_end_is_found_when_time_has_passed():
    query = wb.compile("define M detect A as a not followed by B as b within 5 s")
    session = wb.Session(query)
    assert session.push([{"type": "A", "time": 0, "id": "A1"}]).num_rows == 0
    assert session.advance(4_999_999).num_rows == 0
    found = session.advance(5_000_000)
    assert found.column("events").to_pylist() == [["A1"]]
    assert found.column("end").to_pylist()[0].second == 5


def test_what_runs_out_of_time_is_a_detection_of_its_own():
    text = (
        "define M detect A as a followed by B as b within 5 s "
        "assign k = group.k group by k timing out as Late"
    )
    events = [
        {"type": t, "time": s, "id": i, "k": k} for t, s, i, k in [("A", 0, "A1", "x"), ("A", 1, "A2", "y")]
    ]
    events.append({"type": "B", "time": 2, "id": "B1", "k": "x"})
    found = wb.detect(wb.compile(text), events).to_pylist()
    assert [(each["type"], each["k"], each["end"].second) for each in found] == [
        ("M", "x", 2),
        ("Late", "y", 6),
    ]


def test_time_outs_can_be_used_by_other_definitions():
    text = (
        "define M detect A as a followed by B as b within 5 s timing out as Late "
        "define Twice detect Late as one then Late as two within 1 min"
    )
    events = [{"type": "A", "time": time, "id": f"A{time}"} for time in (0, 20)]
    query = wb.compile(text, emit=["Twice"])
    assert wb.detect(query, events).column("events").to_pylist() == [["A0", "A20"]]


def test_matches_can_be_counted_without_being_listed():
    text = (
        "define M detect A as a followed by any B+ combinations as b followed by any C as c within 1 h "
        "assign n = matches, bs = count(b), total = sum(b.v), most = max(b.v) counting matches"
    )
    events = [{"type": t, "time": n, "id": f"e{n}", "v": n} for n, t in enumerate("A" + "B" * 40 + "C")]
    (found,) = wb.detect(wb.compile(text), events).to_pylist()
    assert found["n"] == 2**40 - 1
    assert found["bs"] == 40 * 2**39
    assert found["most"] == 40
    assert len(found["events"]) == 42


def test_runs_beyond_the_limit_are_dropped_and_counted():
    text = "define M detect A as a followed by B as b within 1 h limit 2 runs dropping {}"
    events = [{"type": t, "time": n, "id": f"{t}{n}"} for n, t in enumerate("AAAAB")]
    for drop, kept in (("oldest", ["A2", "A3"]), ("newest", ["A0", "A1"])):
        session = wb.Session(wb.compile(text.format(drop)))
        found = [*session.push(events).to_pylist(), *session.close().to_pylist()]
        assert sorted(each["events"][0] for each in found) == kept
        assert session.dropped == {"M": 2}


def test_events_of_the_same_time_are_walked_in_order_of_arrival():
    query = wb.compile("define M detect A as a next B as b within 1 h")
    events = [{"type": "A", "time": 0, "id": "z"}, {"type": "B", "time": 0, "id": "a"}]
    assert wb.detect(query, events).column("events").to_pylist() == [["z", "a"]]
    assert wb.detect(query, events[::-1]).num_rows == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A as a then B as b next C as c", "mixed"),
        ("A as a next B as b where a.v > 1", "`where` does not go with a sequence of steps"),
        ("A+ as a next B(v > a.v) as b", "may take several events"),
        ("A as a next B greedy as b", "greedy says nothing"),
        ("A as a next (B as b next C as c)+ greedy", "a group cannot be greedy"),
        ("(A? as a)+ next B as b", "a group that may be empty cannot be repeated"),
        ("A as a not next B{2} as b", "cannot be repeated"),
        ("A? as a not followed by B as b next C as c", "may be missing itself"),
        ("A+ greedy as a next B? as b next C as c", "which is greedy"),
        ("A as a next B as b skip to first c", "no step is named 'c'"),
        ("A as a not followed by B as b next C(v > first(b.v)) as c", "has no events to read"),
        ("A as a next B as a", "two steps are named 'a'"),
        ("A as a next (B as b next C as c) as d", "cannot be named"),
        ("A as a next B until C as b", "`until` belongs to a repeated part"),
        ("A as a next B? until C as b", "`until` belongs to a repeated part"),
        ("A as a next B{1} as b until C", "`until` ends a loop, and b is taken once"),
        ("A as a next B{2} as b until C", "`until` ends a loop, and b is taken exactly 2 times"),
        ("A as a next B{2,5} until C", "`until` ends a loop, and B is taken at most 5 times"),
        ("A as a next B{0,3} as b until C", "`until` ends a loop, and b is taken at most 3 times"),
        ("A as a next (B as b next C as c){2} until D", "the group is taken exactly 2 times"),
        ("A as a within 2 s between events next B as b", "bounds the whole pattern"),
        ("A? as a within 2 s between events next B as b", "bounds the whole pattern"),
        ("(A as a next B as b){2} within 2 s between events next C as c", "no time between its own events"),
        ("A{2} within 2 h between events as a next B as b within 1 h", "further apart than the whole"),
        ("A* greedy within 2 s between events as a next B as b", "all at once"),
        ("A+ within 2 s between events as a then B as b", "does not go with a sequence of steps"),
        ("A+ within 1 s between events within 2 s between events as a next B as b", "bounds the whole"),
        ("A as a next B+ consecutive combinations as b", "either consecutive or in combinations"),
        ("A as a next B as b counting matches skip to next", "none can be skipped"),
        ("A as a next B as b counting matches assign x = first(a.v)", "only counted"),
        ("A as a next B as b among A", "not among the events that are walked along"),
        ("A as a next B as b limit 0 runs", "at least one run"),
        ("A as a next B as b limit 5 runs dropping some", "dropped"),
        ("A as a next not B as b", "does not go with a sequence of steps"),
        ("A as a next B as b within 5 s from a", "measured from the event taken before it"),
        ("A as a next B as b assign x = ids(q)", "takes the name of a step"),
        ("* next B as b", "a step for any event needs a name"),
    ],
)
def test_what_means_nothing_is_refused_with_a_reason(text: str, message: str):
    with pytest.raises(QueryError, match=message):
        wb.compile(f"define M detect {text}", horizon="1 h")


def test_until_is_pointed_at_where_there_is_no_loop():
    with pytest.raises(QueryError) as refused:
        wb.compile("define M detect A{3} until B followed by C within 1 h")
    assert "A{3} until B followed" in str(refused.value)
    assert "line 1, col 28" in str(refused.value)
    assert refused.value.hint == "write a loop without an upper bound, such as {3,}, or leave `until` out"


@pytest.mark.parametrize(
    ("text", "windows", "gap"),
    [
        ("A as a followed by B{2,5} within 3 s between events as b", [3_000_000], None),
        ("A as a followed by B{2,5} within 3 s between events", [3_000_000], None),
        ("A as a followed by B{2,5} greedy within 3 s between events", [3_000_000], None),
        ("A{2} as a within 3 s between events followed by B as b", [3_000_000], None),
        ("A as a followed by B{2,5} as b within 3 s between events", [], 3_000_000),
        ("A as a followed by B as b within 3 s between events", [], 3_000_000),
        ("A as a followed by B? within 3 s between events", [], 3_000_000),
        ("(A as a followed by B+) within 3 s between events", [], 3_000_000),
        ("A as a followed by B+ within 1 min within 3 s between events", [], 3_000_000),
        ("A+ within 1 s between events as a within 3 s between events", [1_000_000], 3_000_000),
        ("A+ within 1 s between events within 3 s between events", [1_000_000], 3_000_000),
        ("(A as a next B+ within 1 s between events){2} next C as c", [1_000_000], None),
    ],
)
def test_a_bound_between_events_is_about_a_loop_or_about_all(text: str, windows: list[int], gap: int | None):
    """Straight behind how often a step is taken it is about that step, behind the whole about every gap."""
    query = wb.compile(f"define M detect {text}", horizon="1 h")
    (made,) = (each for each in query.graph.operators if isinstance(each, StepPattern))
    bounds = [each.quantifier.window for each in every(made.steps)]
    assert ([bound for bound in bounds if bound is not None], made.gap) == (windows, gap)
    assert wb.compile(query.text, horizon="1 h").graph == query.graph


def test_a_loop_with_a_window_is_explained():
    query = wb.compile("define M detect A{2,5} within 3 s between events as a next B as b within 1 h")
    assert "a {2,5} each less than 3 s after the one before: A" in wb.explain(query)


def test_a_sequence_without_a_bound_is_refused_in_the_language():
    with pytest.raises(QueryError, match="remember events for ever"):
        wb.compile("define M detect A as a next B as b")


BRAKE = {
    "steps": [
        {"name": "a", "contiguity": None, "type": "Position", "condition": "speed > 30"},
        {
            "name": "b",
            "contiguity": "followedBy",
            "condition": "speed < first(a.speed) / 2",
            "quantifier": {"min": 1, "max": None, "greedy": True},
        },
    ],
    "key": ["vehicle"],
    "within": {"ms": 60000, "type": "first_to_last"},
}


def test_json_python_and_language_say_the_same():
    made = (
        Pattern.begin("a", "Position", where="speed > 30")
        .followed_by("b", where="speed < first(a.speed) / 2")
        .one_or_more()
        .greedy()
        .within("1 min")
        .by("vehicle")
    )
    read = Pattern.from_dict(BRAKE)
    assert made == read
    assert Pattern.from_dict(json.loads(json.dumps(read.to_dict()))) == read
    assert wb.compile(read.text("M")).graph == read.compile("M").graph


def test_a_window_is_the_same_in_json_python_and_the_language():
    pattern = Pattern.begin("a", "A").times(2, 5, window="3 s").followed_by("b", "B").within("1 h")
    quantifier = {"min": 2, "max": 5, "window_ms": 3000}
    assert pattern.to_dict()["steps"][0]["quantifier"] == quantifier
    assert Pattern.from_dict(pattern.to_dict()) == pattern
    assert "detect A{2,5} within 3 s between events as a followed by B as b" in " ".join(
        pattern.text("M").split()
    )
    assert wb.compile(pattern.text("M")).graph == pattern.compile("M").graph
    for loop in (
        Pattern.begin("a").one_or_more(window="3 s"),
        Pattern.begin("a").times_or_more(2, window="3 s"),
    ):
        assert loop.steps[0].quantifier.window_ms == 3000


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        (Pattern.begin("a"), "until ends a loop, and step 'a' is taken once"),
        (Pattern.begin("a").optional(), "until ends a loop, and step 'a' is taken once"),
        (Pattern.begin("a").times(3), "until ends a loop, and step 'a' is taken exactly 3 times"),
        (Pattern.begin("a").times(2, 5), "until ends a loop, and step 'a' is taken at most 5 times"),
        (Pattern.begin("x").next(Pattern.begin("a").next("b")), "the group is taken once"),
        (Pattern.begin("a").one_or_more().until("v > 1"), "two conditions that end its loop"),
    ],
)
def test_until_needs_a_loop_in_python_too(begun: Pattern, message: str):
    with pytest.raises(QueryError, match=message):
        begun.until("v > 2")


def test_a_json_file_is_a_query_file(tmp_path: Path):
    (tmp_path / "Brake.json").write_text(json.dumps(BRAKE), encoding="utf-8")
    query = wb.read(tmp_path / "Brake.json")
    assert query.types == ("Brake",)


def test_groups_and_alternatives_in_python():
    inner = either(Pattern.begin("b", "B"), Pattern.begin("c", "C").next("d", "D"))
    pattern = Pattern.begin("a", "A").followed_by(inner).times(1, 2).within("1 h")
    assert Pattern.from_dict(pattern.to_dict()) == pattern
    assert wb.compile(pattern.text("M")).graph == pattern.compile("M").graph


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": []}, "a list of at least one step"),
        ({"step": []}, "has no member 'step'"),
        ({"steps": [{"name": "a", "conditon": "x"}]}, r"steps\[0\]: a step has no member 'conditon'"),
        ({"steps": [{"name": "a", "condition": "speed >"}]}, "the condition of step 'a' cannot be read"),
        ({"steps": [{"name": "a", "contiguity": "after"}]}, "'after' is none of next"),
        ({"steps": [{"condition": "speed > 1"}]}, "a step needs a name"),
        ({"steps": [{"name": "1a"}]}, "'1a' is no name"),
        ({"steps": [{"name": "a", "quantifier": {"min": -1}}]}, "a whole number is wanted"),
        (
            {"steps": [{"name": "a", "quantifier": {"min": 3, "until": "v > 1"}}]},
            r"steps\[0\].quantifier.until: until ends a loop, and this is taken exactly 3 times",
        ),
        (
            {"steps": [{"name": "a", "quantifier": {"min": 2, "max": 5, "until": "v > 1"}}]},
            "and this is taken at most 5 times",
        ),
        ({"steps": [{"name": "a", "quantifier": {"until": "v > 1"}}]}, "and this is taken once"),
        (
            {"steps": [{"name": "a", "quantifier": {"min": 2, "window_ms": "3 s"}}]},
            "a number of milliseconds",
        ),
        ({"steps": [{"name": "a", "quantifier": {"min": 2, "window_ms": 0}}]}, "a number of milliseconds"),
        ({"steps": [{"name": "a", "quantifier": {"window_ms": 9}}]}, "nothing lies between its events"),
        ({"steps": [{"name": "a", "quantifier": {"min": 2, "window_ms": 60001}}]}, "further apart than"),
        (
            {"steps": [{"group": [{"name": "a"}], "quantifier": {"min": 2, "window_ms": 9}}]},
            "a group has no time between its own events",
        ),
        ({"within": {"ms": "5"}}, "a number of milliseconds is wanted"),
        ({"within": {"ms": 5, "type": "last"}}, "'last' is none of first_to_last"),
        ({"key": "vehicle"}, "a list of attributes is wanted"),
        ({"after_match_skip": {"strategy": "skip_to_first"}}, "names the step None"),
    ],
)
def test_bad_json_is_refused_with_its_place(change: dict[str, Any], message: str):
    with pytest.raises(QueryError, match=message):
        Pattern.from_dict(BRAKE | change).compile("M")


def test_a_pattern_without_a_bound_warns():
    pattern = Pattern.from_dict({key: value for key, value in BRAKE.items() if key != "within"})
    assert any("for ever" in warning for warning in pattern.compile("M").warnings)


def test_a_pattern_is_taken_wherever_a_query_is():
    pattern = Pattern.begin("a", "A").next("b", "B").within("1 h")
    events = [{"type": "A", "time": 0, "id": "A1"}, {"type": "B", "time": 1, "id": "B1"}]
    assert wb.detect(pattern, events).column("events").to_pylist() == [["A1", "B1"]]
    assert wb.Session(pattern).queries == ("Match",)


def test_the_first_step_of_a_group_follows_as_the_group_does():
    group = [{"name": "b", "contiguity": "next"}, {"name": "c", "contiguity": "next"}]
    pattern = Pattern.from_dict({"steps": [{"name": "a"}, {"contiguity": "followedBy", "group": group}]})
    assert pattern.steps[1].branches[0][0].contiguity is None


def test_errors_in_a_json_file_name_it(tmp_path: Path):
    file = tmp_path / "Bad.json"
    for text, message in (
        ("{", "is no JSON"),
        ('{"steps": [{"name": "a", "condition": "v >"}]}', "cannot be read"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(QueryError, match=message) as caught:
            wb.read(file)
        assert str(file) in str(caught.value)


def test_an_error_in_a_condition_does_not_point_into_a_text_that_nobody_wrote():
    pattern = Pattern.from_dict({"steps": [{"name": "a", "condition": "v > 'x'"}], "within": {"ms": 5}})
    with pytest.raises(QueryError, match="compares") as caught:
        wb.detect(pattern, [{"type": "A", "time": 0, "v": 1}])
    assert "line" not in str(caught.value)
