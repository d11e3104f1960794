"""Test files of queries: what their lines mean, and what is said about lines that mean nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError, ScenarioError
from whimbrel.graph.policies import Context
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import HOUR, MINUTE, SECOND, instant
from whimbrel.testing import parse_tests, read_tests
from whimbrel.testing.scenario import (
    Advance,
    Check,
    Description,
    End,
    Expect,
    ExpectNothing,
    Forbid,
    InputEvent,
    InputFile,
)


def one(text: str):
    """The only test of a text."""
    (scenario,) = parse_tests(text)
    return scenario


def events(text: str) -> list[InputEvent]:
    scenario = one(f"test t\n{text}\nexpect nothing")
    return [step for step in scenario.steps if isinstance(step, InputEvent)]


def description(line: str) -> Description:
    check = one(f"test t\n{line}").steps[-1]
    assert isinstance(check, Check)
    return check.expectations[0].what


def kinds(text: str) -> list[str]:
    """The steps of a test by the names of their classes."""
    return [type(step).__name__ for step in one(text).steps]


# -- events --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("+0s", 0),
        ("+5s", 5 * SECOND),
        ("+5", 5 * SECOND),
        ("+2.5s", 2_500_000),
        ("+1h30min", 90 * MINUTE),
        ("-10min", -10 * MINUTE),
        ("2024-05-01T08:00:00Z", instant("2024-05-01T08:00:00Z")),
    ],
)
def test_a_time_is_a_distance_or_a_date(written, time):
    (event,) = events(f"{written} A")
    assert (event.start, event.end) == (time, time)


def test_distances_begin_at_the_start():
    scenario = one("start 2024-05-01T08:00:00Z\ntest t\n+1h A\nexpect A at +2h")
    assert scenario.steps[0].start == instant("2024-05-01T09:00:00Z")
    assert scenario.steps[-1].expectations[0].what.end == instant("2024-05-01T10:00:00Z")


def test_an_event_that_lasts_has_two_times():
    (event,) = events("+1s..+3s Stay")
    assert (event.start, event.end) == (SECOND, 3 * SECOND)


def test_an_event_has_attributes_a_place_a_source_and_a_name():
    (event,) = events("+1s Position speed=50 at (10, -2.5) source bus-4 as e1 lane = 2")
    values = {name: value.value for name, value in event.attributes.items()}
    assert (event.type, values) == ("Position", {"speed": 50, "lane": 2})
    assert (event.location, event.source, event.id) == ((10.0, -2.5), "bus-4", "e1")


def test_an_event_without_a_name_is_called_after_its_line():
    assert [event.id for event in events("+1s A\n+2s A\n\n\n\n\n\n\n+9s A")] == ["L02", "L03", "L10"]


def test_values_are_typed_by_how_they_look():
    (event,) = events(
        "+0s A i=-3 f=2.5 g=1e3 t=true u=false n=null k=north q='7' w=\"it's\" c=12:30 when=+5s "
        "day=2024-05-01T08:00:00Z"
    )
    values = {name: value.value for name, value in event.attributes.items()}
    assert values == {
        "i": -3, "f": 2.5, "g": 1000.0, "t": True, "u": False, "n": None, "k": "north", "q": "7",
        "w": "it's", "c": "12:30", "when": 5 * SECOND, "day": instant("2024-05-01T08:00:00Z"),
    }  # fmt: skip
    assert [type(values[name]) for name in "ifg"] == [int, float, float]


def test_words_of_the_format_may_name_attributes_types_and_events():
    (event,) = events("+0s at at=1 from=2 as = 3 as events")
    assert {name: value.value for name, value in event.attributes.items()} == {"at": 1, "from": 2, "as": 3}
    assert (event.type, event.id) == ("at", "events")
    assert description("expect nothing#1") == Description("nothing#1")
    what = description("expect nothing to=1 at +1s events at +1s")
    assert (what.type, what.tests[0].name, what.end, what.events) == ("nothing", "to", SECOND, {"at", "+1s"})


def test_a_quote_may_stand_inside_quotes():
    (event,) = events(r"+0s A k='it\'s' l='a\\b\tc'")
    assert [value.value for value in event.attributes.values()] == ["it's", "a\\b\tc"]


def test_a_place_may_be_a_polygon():
    (event,) = events("+0s A at 'POLYGON ((0 0, 1 0, 1 1, 0 0))'")
    assert isinstance(event.location, bytes)


def test_comments_begin_at_a_word():
    (event,) = events("# a line of its own\n+0s A k=a#1 # and behind an event\n   # and indented")
    assert event.attributes["k"].value == "a#1"


def test_event_files_are_found_from_the_test_file():
    (scenario,) = parse_tests("test t\nevents data/trips.csv\nexpect nothing", Path("queries/late.wbt"))
    (step,) = (step for step in scenario.steps if isinstance(step, InputFile))
    assert step.path == Path("queries/data/trips.csv")


# -- settings ------------------------------------------------------------------------------------------------

HEAD = """
query queries/late.wbl
param limit = 30
param gap = 5 min
param zone = north
param share = 0.5
param strict = true
lateness 10 s
horizon 1 h 30 min
coordinates lonlat
context recent
emit Late, Early
"""


def test_settings_before_the_first_test_hold_for_all():
    first, second = parse_tests(f"{HEAD}\ntest a\nexpect nothing\ntest b\nexpect nothing")
    assert first.settings == second.settings
    settings = first.settings
    assert settings.query == Path("queries/late.wbl")
    assert {name: param.value for name, param in settings.params.items()} == {
        "limit": 30, "gap": timedelta(minutes=5), "zone": "north", "share": 0.5, "strict": True,
    }  # fmt: skip
    assert (settings.lateness, settings.horizon) == (10 * SECOND, 90 * MINUTE)
    assert (settings.coordinates, settings.context) == (Coordinates.LONLAT, Context.RECENT)
    assert settings.emit == ("Late", "Early")


def test_settings_inside_a_test_hold_for_that_test():
    first, second = parse_tests(
        "param limit = 30\ntest a\nparam limit = 40\nemit all\nexpect nothing\ntest b\nexpect nothing"
    )
    assert [scenario.settings.params["limit"].value for scenario in (first, second)] == [40, 30]
    assert [scenario.settings.emit for scenario in (first, second)] == ["all", None]


# -- expectations --------------------------------------------------------------------------------------------


def test_an_expectation_names_what_matters():
    what = description("expect Late truck=T1 load>=2.5 from +0s to +1h at (3, 4) events e1 e2")
    assert (what.type, what.start, what.end, what.location) == ("Late", 0, HOUR, (3.0, 4.0))
    assert [(test.name, test.operator, test.value.value) for test in what.tests] == [
        ("truck", "=", "T1"),
        ("load", ">=", 2.5),
    ]
    assert what.events == {"e1", "e2"}


def test_what_is_not_said_may_be_anything():
    assert description("expect Late") == Description("Late")
    assert description("expect Late at +1h").end == HOUR


def test_so_many_of_them():
    (check,) = (step for step in one("test t\nexpect 3 Late truck=T1").steps if isinstance(step, Check))
    assert check.expectations[0].count == 3


def test_events_that_are_set_aside_are_counted():
    scenario = one("test t\nexpect 1 late event\nexpect 2 duplicate events\nexpect 0 rejected events")
    assert [(line.what, line.count) for line in scenario.side_outputs] == [
        ("late", 1),
        ("duplicate", 2),
        ("rejected", 0),
    ]


def test_a_type_may_be_called_late():
    assert description("expect 2 late truck=T1").type == "late"


def test_expectations_that_stand_together_are_one_check():
    scenario = one("test t\nexpect A\nnot B\nexpect nothing")
    assert [type(line) for line in scenario.steps[-1].expectations] == [Expect, Forbid, ExpectNothing]


def test_the_input_ends_before_the_last_expectations():
    assert kinds("test t\n+1s A\nexpect A\n+2s A\nexpect A") == [
        "InputEvent", "Check", "InputEvent", "End", "Check",
    ]  # fmt: skip


def test_behind_an_advance_the_input_ends_after_the_expectations():
    text = "test t\n+1s A\nadvance to +5s\nexpect A"
    assert kinds(text) == ["InputEvent", "Advance", "Check", "End", "Check"]
    assert one(text).steps[1] == Advance(one(text).steps[1].at, 5 * SECOND)


def test_the_input_may_be_ended_by_hand():
    text = "test t\n+1s A\nadvance +5s\nexpect nothing\nend\nexpect A"
    assert kinds(text) == ["InputEvent", "Advance", "Check", "End", "Check"]
    assert one(text).steps[3] == End()


def test_expect_lines_are_the_whole_truth_and_not_lines_are_not():
    assert not one("test t\nexpect A\nnot B").allows_others
    assert one("test t\nnot B").allows_others
    assert one("test t\nexpect A\nallow others").allows_others


def test_what_is_allowed_at_the_top_is_allowed_everywhere():
    first, second = parse_tests("allow B k=1\ntest a\nallow C\nexpect A\ntest b\nexpect A")
    assert [[what.type for what in scenario.allowed] for scenario in (first, second)] == [["B", "C"], ["B"]]


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("tset a", "line 1, col 1", "no line begins with 'tset'", "did you mean 'test'?"),
        ("foo", "line 1, col 1", "no line begins with 'foo'", "lines begin with one of: query, param"),
        ("+5s A", "line 1, col 1", "this belongs into a test", "begin one above it: test NAME"),
        ("test", "line 1, col 5", "a test needs a name", "write for example"),
        ("test a\nexpect nothing\ntest a", "line 3, col 6", "there is a test 'a' already", "another name"),
        ("test a", "line 1, col 1", "the test 'a' expects nothing at all", "`expect nothing`"),
        ("test a\n+5m A", "line 2, col 1", "'+5m' is not a time", "write +5min for minutes"),
        ("test a\n5s A", "line 2, col 1", "'5s' is not a time", "times behind the origin have a sign: +5s"),
        ("test a\n+soon A", "line 2, col 1", "'+soon' is not a time", "write for example +5s"),
        ("test a\n+9e999 A", "line 2, col 1", "'+9e999' lies outside the years 1 to 9999", "write for"),
        ("test a\n+5s A v=" + "9" * 19, "line 2, col 9", "9" * 19 + " does not fit in 64 bits", "as a float"),
        ("test a\n+5s..+1s A", "line 2, col 1", "+5s..+1s ends before it starts", "earlier time first"),
        ("test a\n+1 h A", "line 2, col 4", "'h' stands apart from its number", "without blanks: +1h30min"),
        ("test a\n+5s", "line 2, col 4", "the type of the event is missing here", "+5s Position vehicle=A"),
        ("test a\n+5s (", "line 2, col 5", "'(' does not fit here", "+5s Position vehicle=A"),
        ("test a\nexpect ,", "line 2, col 8", "',' does not fit here", "expect Brake vehicle=A"),
        ("test a\nexpect A events e1, e2", "line 2, col 19", "',' does not fit here", "named with `as`"),
        ("test a # why", "line 1, col 1", "the test 'a' expects nothing at all", "`expect nothing`"),
        ("test # why", "line 1, col 5", "a test needs a name", "write for example"),
        ("test a\n+5s A v", "line 2, col 7", "'v' does not fit here", "write name=value, or one of: at,"),
        ("test a\n+5s A v=", "line 2, col 9", "a value is missing here", "null stands for no value"),
        ("test a\n+5s A v=(", "line 2, col 9", "'(' is no value", "in quotes"),
        ("test a\n+5s A v>3", "line 2, col 8", "an event has values: name=value", "write '='"),
        ("test a\n+5s A v=1 v=2", "line 2, col 11", "'v' is given twice", "leave one of them out"),
        ("test a\n+5s A x=1", "line 2, col 7", "'x' is no attribute", "write both together: at (10, 20)"),
        ("test a\n+5s A id=e1", "line 2, col 7", "'id' is no attribute", "name an event with `as`"),
        ("test a\n+5s A time=1", "line 2, col 7", "'time' is no attribute", "times are written +5s"),
        ("test a\n+5s A 'k'=1", "line 2, col 7", "'k' is no name of an attribute", "write name=value"),
        ("test a\n+5s A at (3)", "line 2, col 12", "')' does not fit here", "write for example (2.5, -1)"),
        ("test a\n+5s A at (3, b)", "line 2, col 14", "'b' is no number", "write for example (2.5, -1)"),
        ("test a\n+5s A at (3, 4", "line 2, col 15", "')' is missing here", "write for example (2.5, -1)"),
        ("test a\n+5s A at depot", "line 2, col 10", "'depot' is not a place", "write for example (2.5, -1)"),
        ("test a\n+5s A at 'POLYGON'", "line 2, col 10", "this is no WKT", "POLYGON ((0 0"),
        ("test a\n+5s A k='x", "line 2, col 9", "this text has no closing quote", "end it with '"),
        ("test a\n+5s A k='it's' # x", "line 2, col 14", "this text has no closing quote", "end it with '"),
        ("test a\n+5s A k ok # it's", "line 2, col 7", "'k' does not fit here", "write name=value"),
        ("test( a", "line 1, col 1", "no line begins with 'test('", "did you mean 'test'?"),
        ("test a\n+5s A k!x", "line 2, col 8", "'!' does not fit here", "in quotes"),
        ("test a\nexpect", "line 2, col 7", "the type of the detection is missing here", "expect Brake"),
        ("test a\nexpect 0 A", "line 2, col 1", "none of them is expected", "write `not TYPE ...`"),
        ("test a\nexpect A att +5s", "line 2, col 10", "'att' does not fit here", "did you mean 'at'?"),
        ("test a\nexpect A events", "line 2, col 16", "the name of an event is missing here", "`as`"),
        ("test a\nadvance tto +1h", "line 2, col 9", "'tto' is not a time", "write for example +5s"),
        ("test a\nexpect A at noon k=1", "line 2, col 13", "'noon' is not a time", "write for example +5s"),
        ("test a\nexpect A from", "line 2, col 14", "a time is missing here", "write for example +5s"),
        ("test a\nexpect 1 late event too", "line 2, col 21", "'too' does not fit here", "could end here"),
        (
            "test a\nexpect 1 late event\nexpect 2 late events",
            "line 3, col 1",
            "late events are counted twice",
            "say it once",
        ),
        (
            "test a\n+1s A\nadvance to +5s\n+5s A",
            "line 4, col 1",
            "this event is too late: line 3 says that everything up to +5s has been seen",
            "put it above that line",
        ),
        (
            "test a\nadvance to +5s\nadvance to +4s",
            "line 3, col 1",
            "time does not go back: line 2 has advanced it already",
            "name a later time",
        ),
        ("test a\nend\n+5s A", "line 3, col 1", "nothing can happen behind `end`", "put `end` below it"),
        ("test a\n+5s A\nstart 2024-05-01", "line 3, col 1", "`start` comes too late", "above the events"),
        ("start monday", "line 1, col 7", "'monday' is no date and time", "2024-05-01T08:00:00Z"),
        ("lateness soon", "line 1, col 10", "'soon' is no length of time", "10 s, 5 min"),
        ("param limit", "line 1, col 7", "'limit' is no parameter", "param limit = 30"),
        ("query", "line 1, col 6", "something is missing here", "query late.wbl"),
        ("coordinates plain", "line 1, col 13", "'plain' does not fit here", "did you mean 'plane'?"),
        ("context last", "line 1, col 9", "'last' does not fit here", "known names: chronicle"),
    ],
)  # fmt: skip
def test_a_bad_line_is_shown_with_a_caret_and_a_hint(text, place, message, hint):
    with pytest.raises(ScenarioError) as caught:
        parse_tests(text, Path("late.wbt"))
    said = str(caught.value).splitlines()
    assert said[0] == f"late.wbt: {place}: {message}"
    number, column = (int(part) for part in place.removeprefix("line ").split(", col "))
    assert said[1] == f"  {text.splitlines()[number - 1]}"
    assert said[2].startswith("  " + " " * (column - 1) + "^")
    assert said[3].startswith("hint: ")
    assert hint in said[3]


WORDS = [
    "test", "expect", "not", "allow", "advance", "to", "end", "param", "events", "start", "lateness", "emit",
    "all", "query", "nothing", "late", "event", "at", "as", "from", "source", "null", "A", "é", "k", "k=1",
    "=", "<=", "!=", "!", "'x'", "'", "(1, 2)", "(", ")", ",", "#", "\\", "3", "+5s", "-1h..+1h", "+", "..",
    "+9e999", "99999999999999999999", "2024-05-01T08:00:00Z", "9999-12-31T23:59:59Z",
]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=6).map("\n".join))
def test_any_text_is_read_or_refused_with_a_place_and_a_hint(text):
    refused: ScenarioError | None = None
    try:
        parse_tests(f"test t\n{text}")
    except ScenarioError as error:
        refused = error
    assert refused is None or (refused.at is not None and refused.hint)


def test_a_mark_at_the_beginning_of_a_file_is_no_word(tmp_path):
    file = tmp_path / "late.wbt"
    file.write_text("test t\nexpect nothing\n", encoding="utf-8-sig")
    assert [scenario.name for scenario in read_tests(file)] == ["t"]


def test_a_file_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "late.wbt"
    file.write_bytes(b"test \xff")
    with pytest.raises(DataError, match=r"late\.wbt is not UTF-8 text"):
        read_tests(file)
    with pytest.raises(DataError, match=r"none\.wbt cannot be read: No such file"):
        read_tests(tmp_path / "none.wbt")
