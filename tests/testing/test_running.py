"""Tests of queries: when they pass, when they fail, and what they say then."""

from __future__ import annotations

from pathlib import Path

import pytest

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.testing import run_tests, running

LEAVES = "+0s Leave truck=T1 load=12 as e1\n+10min Leave truck=T2\n+50min Arrive truck=T2\n"


def report(result) -> list[str]:
    return [line.strip() for line in result.report.splitlines()]


# -- what passes ---------------------------------------------------------------------------------------------


def test_what_is_expected_is_found(queries):
    result = queries.one(f"{LEAVES} expect Late truck=T1 load=12 from +0s to +1h events e1")
    assert (result.status, result.report) == ("passed", "")


def test_lines_may_come_in_any_order(queries):
    events = "+50min Arrive truck=T2\n+0s Leave truck=T1\n+10min Leave truck=T2\n"
    assert queries.one(f"{events} expect Late truck=T1").status == "passed"


def test_only_what_is_named_is_compared(queries):
    assert queries.one(f"{LEAVES} expect Late").status == "passed"


def test_attributes_are_compared_with_less_and_more(queries):
    assert queries.one(f"{LEAVES} expect Late load>11 load<=12 load!=11.5 truck!=T2").status == "passed"
    assert queries.one(f"{LEAVES} expect Late load>12").status == "failed"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1 + 0.2", "v=0.3"),
        ("2", "v=2.0"),
        ("'7'", "v=7"),
        ("'two words'", "v='two words'"),
        ("true", "v=true"),
        ("1 / 0", "v=null"),
        ("A.end", "v=+5s"),
        ("A.end", "v<+6s"),
        ("5 min", "v=5min"),
        ("'7'", "v!=8"),
        ("1", "v!=null"),
    ],
)
def test_values_of_every_type_are_compared(queries, value, expected):
    query = f"define D(v) detect A assign v = {value}"
    assert queries.one(f"+5s A\nexpect D {expected}", query).report == ""


@pytest.mark.parametrize(
    ("value", "expected", "found"),
    [
        ("2", "v=3", "2"),
        ("2", "v=true", "2"),
        ("2", "v=null", "2"),
        ("true", "v=1", "true"),
        ("1 / 0", "v=1", "null"),
        ("1 / 0", "v<1", "null"),
        ("1 / 0", "v!=null", "null"),
        ("'7'", "v='8'", "'7'"),
        ("A.end", "v=5", "+5s"),
        ("5 min", "v=soon", "5min"),
        ("2", "w=2", "no such attribute; there are: v"),
    ],
)
def test_values_that_differ_are_shown_side_by_side(queries, value, expected, found):
    result = queries.one(f"+5s A\nexpect D {expected}", f"define D(v) detect A assign v = {value}")
    (line,) = (line for line in report(result) if line.startswith(">"))
    assert line.endswith(found)


def test_a_place_is_the_centre(queries):
    query = "define D detect A as a then B as b within 1 h"
    events = "+0s A at (0, 0)\n+1s B at (4, 2)\n"
    assert queries.one(f"{events} expect D at (2, 1)", query).status == "passed"
    assert "> at     (2, 3)     (2, 1)" in report(queries.one(f"{events} expect D at (2, 3)", query))
    assert queries.one("+0s A\n+1s B\nexpect D at (2, 1)", query).report.endswith("nowhere")


def test_parameters_reach_the_query(queries):
    query = "param limit = 30\ndefine Fast detect P(speed > limit)"
    assert queries.one("+0s P speed=40\nexpect Fast", query).status == "passed"
    assert queries.one("param limit = 50\n+0s P speed=40\nexpect nothing", query).status == "passed"


def test_context_horizon_and_emit_reach_the_query(queries):
    query = "define Pair detect A as a then B as b"
    events = "+0s A\n+1s A\n+2s B\n"
    assert queries.one(f"horizon 1 h\n{events} expect 2 Pair", query).status == "passed"
    assert (
        queries.one(f"horizon 1 h\ncontext recent\n{events} expect Pair from +1s", query).status == "passed"
    )
    chain = "define A1 detect A(v > 1)\ndefine A2 detect A1(v > 2)"
    assert queries.one("emit all\n+0s A v=3\nexpect A1\nexpect A2", chain).status == "passed"


def test_mixed_values_of_an_attribute_are_texts(queries):
    events = "+0s Leave truck=1\n+1s Leave truck=T2\n"
    assert queries.one(f"{events} expect Late truck=1\nexpect Late truck=T2").status == "passed"


def test_a_source_and_an_interval_are_those_of_the_event(queries):
    query = "define D(who) detect A as a assign who = a.source where a.end - a.start >= 2 s"
    assert (
        queries.one("+0s..+2s A source bus-4\n+5s A\nexpect D who='bus-4' from +0s to +2s", query).report
        == ""
    )


# -- lines that take each other's detections -----------------------------------------------------------------


def test_every_line_takes_a_detection_of_its_own(queries):
    events = "+0s Leave truck=T1\n+1s Leave truck=T2\n"
    assert queries.one(f"{events} expect Late\nexpect Late truck=T1").status == "passed"
    assert queries.one(f"{events} expect Late truck=T1\nexpect Late truck=T1").status == "failed"


def test_many_alike_are_counted(queries):
    events = "".join(f"+{number}s Leave truck=T{number}\n" for number in range(1, 30))
    assert queries.one(f"{events} expect 29 Late").status == "passed"
    result = queries.one(f"{events} expect 31 Late")
    assert report(result) == [f"missing     line {2 + 29}: expect 31 Late; 2 of them missing"]
    assert "999999970 of them missing" in queries.one(f"{events} expect 999999999 Late").report


# -- what fails ----------------------------------------------------------------------------------------------


def test_what_is_missing_is_named_with_its_line(queries):
    result = queries.one(f"{LEAVES} expect Late truck=T1\n expect Early truck=T9")
    assert result.status == "failed"
    assert report(result) == ["missing     line 6: expect Early truck=T9"]
    assert result.summary == "1 missing"


def test_what_no_line_expects_is_shown(queries):
    result = queries.one(f"{LEAVES} expect nothing")
    assert report(result) == ["unexpected  Late truck=T1 load=12 from +0s to +1h events e1"]


def test_a_near_one_is_shown_beside_what_was_expected(queries):
    result = queries.one(f"{LEAVES} expect Late truck=T1 load=13 at +1h")
    assert result.report.splitlines() == [
        "different   line 5: expect Late truck=T1 load=13 at +1h",
        "   nearest  Late truck=T1 load=12 from +0s to +1h events e1",
        "                    expected   found",
        "            type    Late       Late",
        "            truck   T1         T1",
        "          > load    13         12",
        "            to      +1h        +1h",
    ]
    assert result.summary == "1 different"


def test_what_must_not_be_is_shown_with_its_line(queries):
    result = queries.one(f"{LEAVES} not Late truck=T1\n not Late truck=T2")
    assert report(result) == [
        "forbidden   line 5: not Late truck=T1",
        "found  Late truck=T1 load=12 from +0s to +1h events e1",
    ]


def test_what_is_allowed_does_no_harm(queries):
    assert queries.one(f"{LEAVES} expect nothing\nallow Late truck=T1").status == "passed"
    assert queries.one(f"{LEAVES} expect nothing\nallow Late truck=T2").status == "failed"
    assert queries.one(f"{LEAVES} expect nothing\nallow others").status == "passed"


def test_a_report_has_an_end(queries):
    events = "".join(f"+{number}s Leave truck=T{number}\n" for number in range(1, 70))
    lines = queries.one(f"{events} expect nothing").report.splitlines()
    assert len(lines) == running.MOST_SHOWN + 1
    assert lines[-1] == "... and 19 more"


# -- when it is told -----------------------------------------------------------------------------------------


def test_expectations_behind_an_advance_hold_at_that_time(queries):
    told = queries.one(
        "+0s Leave truck=T1\nadvance to +59min59s\nexpect nothing\nadvance to +1h\nexpect Late\n"
        "+3h Leave truck=T2\nexpect Late"
    )
    assert told.report == ""
    early = queries.one("+0s Leave truck=T1\nadvance to +59min59s\nexpect Late truck=T1")
    assert report(early) == [
        "missing     line 4: expect Late truck=T1 (up to line 4)",
        "unexpected  Late truck=T1 from +0s to +1h events L2",
    ]


def test_expectations_between_events_hold_before_the_next_one(queries):
    assert queries.one(
        "+0s Leave truck=T1\nexpect nothing\n+30min Leave truck=T2\nexpect nothing\n"
        "+2h Leave truck=T3\nexpect nothing\nend\nexpect Late truck=T3"
    ).summary == "2 unexpected"  # fmt: skip
    assert queries.one(
        "+0s Leave truck=T1\n+30min Leave truck=T2\nexpect 2 Late\n+2h Leave truck=T3\nexpect Late truck=T3"
    ).status == "passed"  # fmt: skip


def test_not_speaks_of_everything_told_so_far(queries):
    result = queries.one(
        "+0s Leave truck=T1\n+2h Leave truck=T2\nexpect Late\nexpect Late\nnot Late truck=T1"
    )
    assert result.summary == "1 forbidden"


def test_after_the_last_expectations_nothing_more_comes(queries):
    result = queries.one("+0s Leave truck=T1\n+1min Leave truck=T2\nadvance to +1h\nexpect Late truck=T1")
    assert report(result) == ["unexpected  Late truck=T2 from +1min to +1h1min events L3"]


# -- events that are set aside -------------------------------------------------------------------------------


def test_late_events_fail_a_test_that_does_not_expect_them(queries):
    events = "lateness 5 min\n+30min Leave truck=T1\n+0s Leave truck=T2\n"
    result = queries.one(f"{events} expect Late truck=T1")
    assert report(result) == ["late        1 found, 0 expected; if that is meant, write: expect 1 late event"]
    assert queries.one(f"{events} expect Late truck=T1\nexpect 1 late event").status == "passed"
    wrong = queries.one(f"{events} expect Late truck=T1\nexpect 2 late events")
    assert report(wrong) == ["late        1 found, 2 expected"]


def test_within_the_lateness_nothing_is_late(queries):
    assert (
        queries.one("lateness 1 h\n+30min Leave truck=T1\n+0s Leave truck=T2\nexpect 2 Late").status
        == "passed"
    )


def test_duplicates_are_counted(queries):
    events = "+0s Leave truck=T1 as e1\n+0s Leave truck=T1 as e1\n"
    assert queries.one(f"{events} expect Late\nexpect 1 duplicate event").status == "passed"
    assert queries.one(f"{events} expect Late").summary == "1 miscounted"


def test_rejected_events_are_told_with_their_reason(queries):
    query = "event Leave(truck: string, load: int)\ndefine D detect Leave(load > 1)"
    result = queries.one("+0s Leave load=heavy\nexpect nothing", query)
    assert report(result) == [
        "rejected    1 found, 0 expected; if that is meant, write: expect 1 rejected event",
        "attribute 'load' is not a whole number: 'heavy'",
    ]
    assert (
        queries.one("+0s Leave load=heavy\nexpect nothing\nexpect 1 rejected event", query).status == "passed"
    )


# -- event files ---------------------------------------------------------------------------------------------

TRIPS = (
    "type,time,truck,load,x,y\nLeave,1970-01-01T00:00:00Z,T1,12,0,0\nLeave,1970-01-01T00:10:00Z,T2,7,3,4\n"
)


def test_events_come_from_files(queries):
    queries.write("trips.csv", TRIPS)
    text = "events trips.csv\nexpect Late truck=T1 load=12 events trips.csv:1\nexpect Late at (3, 4)"
    assert queries.one(text).report == ""


def test_files_and_lines_are_one_input(queries):
    queries.write("trips.csv", TRIPS)
    events = "events trips.csv\n+50min Arrive truck=T2 at (1, 1)\n+0s Leave truck=T3\n"
    assert queries.one(f"{events} expect Late truck=T1\nexpect Late truck=T3").report == ""


@pytest.mark.parametrize("name", ["trips.parquet", "trips.jsonl"])
def test_files_of_other_formats_do_as_well(queries, name):
    import pyarrow.parquet as pq

    from whimbrel.testing import table

    if name.endswith("parquet"):
        pq.write_table(table("Leave@0s#a:truck=T1"), queries.folder / name)
    else:
        queries.write(name, '{"id": "a", "type": "Leave", "time": 0, "truck": "T1"}\n')
    assert queries.one(f"events {name}\nexpect Late truck=T1 events a").report == ""


def test_degrees_in_a_file_are_degrees_in_the_test(queries):
    queries.write("ships.csv", "type,time,lon,lat\nShip,1970-01-01T00:00:00Z,10,50\n")
    near = "detect Ship as a and Buoy as b within 1 h where distance(a, b) < 200 km"
    query = f"coordinates lonlat\ndefine Near {near}"
    events = "events ships.csv\n+1s Buoy at (11, 51)\n+2s Buoy at (10, 60)\n"
    assert queries.one(f"{events} expect Near", query).report == ""


def test_rows_of_a_file_that_are_no_events_are_rejected(queries):
    queries.write("trips.csv", f"{TRIPS}Leave,soon,T3,1,0,0\n")
    result = queries.one("events trips.csv\nexpect 2 Late")
    assert "trips.csv: time is not a readable time: 'soon'" in result.report
    assert queries.one("events trips.csv\nexpect 2 Late\nexpect 1 rejected event").status == "passed"


@pytest.mark.slow
def test_a_long_file_is_pushed_in_pieces(queries):
    rows = "".join(f"Leave,{second},T{second}\n" for second in range(5_000))
    queries.write("trips.csv", f"type,time,truck\n{rows}")
    assert queries.one("events trips.csv\nexpect 5000 Late").report == ""


def test_a_file_that_is_not_there_is_an_error(queries):
    result = queries.one("events tripz.csv\nexpect nothing")
    assert result.status == "error"
    assert "no such file" in result.report


# -- what cannot be run --------------------------------------------------------------------------------------


def test_a_bad_query_is_an_error_with_its_place(queries):
    result = queries.one("expect nothing", "define Late detect Leave then")
    assert result.status == "error"
    assert "late.wbl: line 1, col 30" in result.report


def test_subscriptions_are_tested_like_any_query(tmp_path):
    (tmp_path / "late.cpsl").write_text("late: !(Leave;3600)Arrive\n")
    (tmp_path / "late.wbt").write_text("test t\n+0s Leave\n+61min Arrive\nexpect late from +0s to +1h\n")
    (result,) = run_tests(tmp_path).results
    assert (result.status, result.report) == ("passed", "")


def test_a_test_without_a_query_says_how_to_name_one(tmp_path):
    (tmp_path / "late.wbt").write_text("test t\nexpect nothing\n")
    (result,) = run_tests(tmp_path).results
    assert result.status == "error"
    assert "there is no late.wbl beside the test file; name the query at the top" in result.report


def test_a_parameter_that_the_query_does_not_have_is_an_error(queries):
    result = queries.one("param limit = 3\nexpect nothing")
    assert result.status == "error"
    assert "late.wbt: line 2, col 7: the query has no parameter 'limit'" in result.report


def test_a_query_may_come_from_python(queries):
    file = queries.write("fast.wbt", "test t\n+0s P speed=60\n+1s P speed=40\nexpect Fast speed=60")
    query = wb.compile("define Fast detect P(speed > 50)")
    assert run_tests(file, query=query).all_passed
    file = queries.write("fast.wbt", "test t\nparam limit = 3\nexpect nothing")
    (result,) = run_tests(file, query=query).results
    assert "this one is compiled already" in result.report


def test_a_file_that_cannot_be_read_does_not_stop_the_others(queries):
    queries.write("bad.wbt", "tset\n")
    queries.write("late.wbl", "define Late detect Leave")
    queries.write("late.wbt", "test t\n+0s Leave\nexpect Late\n")
    results = run_tests(queries.folder)
    assert [(result.name, result.status) for result in results.results] == [
        ("(reading)", "error"),
        ("t", "passed"),
    ]
    assert not results.all_passed


def test_a_function_that_fails_is_an_error_of_the_test(queries):
    @wb.function(returns="int")
    def broken(value: int) -> int:
        raise ZeroDivisionError(value)

    query = "define D detect A(broken(v) > 1)"
    results = queries.run(
        "test one\n+0s A v=1\nexpect D\ntest two\nexpect nothing", query, functions=[broken]
    )
    assert [result.status for result in results.results] == ["error", "passed"]
    assert "the function 'broken' failed on (1,)" in results.results[0].report


def test_an_error_of_ours_does_not_stop_the_other_tests(queries, monkeypatch):
    monkeypatch.setattr(running, "run_in_session", lambda *_given: 1 / 0)
    results = queries.run("test one\nexpect nothing\ntest two\nexpect nothing")
    assert [result.status for result in results.results] == ["error", "error"]
    assert results.results[0].summary == "ZeroDivisionError: division by zero"
    assert "Traceback" in results.results[0].report


def test_functions_in_python_are_called(queries):
    @wb.function(returns="int")
    def twice(value: int) -> int:
        return 2 * value

    query = "define D detect A(twice(v) > 3)"
    assert queries.one("+0s A v=1\n+1s A v=2\nexpect D v=2", query, functions=[twice]).report == ""


# -- two ways ------------------------------------------------------------------------------------------------


def test_a_test_fails_if_the_two_ways_disagree(queries, monkeypatch):
    whole = running.detect_whole
    monkeypatch.setattr(running, "detect_whole", lambda *given: whole(*given).slice(1))
    result = queries.one(f"{LEAVES} expect Late truck=T1")
    assert result.status == "failed"
    assert report(result) == [
        "disagree    the whole input and event by event find different detections; please report it",
        "only event by event: Late truck=T1 load=12 from +0s to +1h events e1",
    ]


def test_detections_with_the_same_id_are_compared_one_by_one(queries):
    events = "lateness 5 min\n+0s Leave truck=T1 as e1\n+40min Leave truck=T2 as e1\n"
    assert queries.one(f"{events} expect 2 Late").report == ""


@pytest.mark.slow
def test_tests_run_on_spark_as_well(queries, spark):
    text = (
        f"test one\n{LEAVES} expect Late truck=T1 events e1\n"
        "test two\nlateness 5 min\nexpect nothing\n"
        "test three\n+0s Leave truck=T1\nexpect nothing"
    )
    results = queries.run(text, spark=spark)
    assert [result.status for result in results.results] == ["passed", "skipped", "failed"]
    assert results.results[1].summary.startswith("a static frame has no order of arrival")


# -- choosing tests ------------------------------------------------------------------------------------------


def test_tests_are_chosen_by_name_and_by_file(queries):
    text = "test the depot\nexpect nothing\ntest the gate\nexpect nothing\n"
    assert [result.name for result in queries.run(text, select="GATE").results] == ["the gate"]
    assert len(queries.run(text, select="late.wbt").results) == 2
    with pytest.raises(DataError, match="no test is named like 'ship'"):
        queries.run(text, select="ship")


def test_folders_are_searched_through(queries):
    (queries.folder / "deep" / ".hidden").mkdir(parents=True)
    for name in ("b.wbt", "deep/a.wbt", "deep/.hidden/c.wbt", "late.wbl"):
        queries.write(name, "")
    found = running.find_tests([queries.folder, queries.folder / "b.wbt"])
    assert [str(file.relative_to(queries.folder)) for file in found] == ["b.wbt", "deep/a.wbt"]


def test_paths_that_hold_no_tests_are_refused(queries):
    queries.write("late.wbt", "")
    queries.write("late.wbl", "")
    with pytest.raises(DataError, match=r"there is no test file .*lata.wbt; did you mean 'late.wbt'\?"):
        run_tests(queries.folder / "lata.wbt")
    with pytest.raises(DataError, match=r"late.wbl: a test file ends in \.wbt"):
        run_tests(queries.folder / "late.wbl")
    with pytest.raises(DataError, match="there are no tests in these files"):
        run_tests(queries.folder / "late.wbt")
    (queries.folder / "empty").mkdir()
    with pytest.raises(DataError, match=r"there is no test file \(\*\.wbt\) in the folder"):
        run_tests(queries.folder / "empty")


def test_results_are_told_one_by_one_and_print_as_a_report(queries):
    seen = []
    text = f"test one\n{LEAVES} expect Late\ntest two\n{LEAVES} expect nothing\n"
    results = queries.run(text, on_result=seen.append)
    assert [result.name for result in seen] == ["one", "two"]
    lines = str(results).splitlines()
    assert lines[0] == f"{queries.folder / 'late.wbt'} .F"
    assert lines[-2:] == [
        f"FAILED {queries.folder / 'late.wbt'}: two - 1 unexpected",
        "1 failed, 1 passed",
    ]
    assert (results.count("passed"), results.count("failed"), results.all_passed) == (1, 1, False)


def test_the_examples_pass_their_tests_and_reach_every_branch(root: Path):
    results = run_tests(root / "examples", coverage=True)
    assert results.all_passed, results
    assert results.coverage is not None
    assert results.coverage.percent == 100.0, results
