"""Which branches of a query tests reach, for each kind of operator."""

from __future__ import annotations

import whimbrel as wb
from whimbrel.graph.custom import restriction, window
from whimbrel.graph.policies import SelectionPolicy
from whimbrel.testing import run_tests
from whimbrel.testing.coverage import Coverage


def test_a_condition_must_pass_one_event_and_refuse_another(queries):
    query = "define Fast\n  detect P(speed > 50)"
    came, passed = "2: an event of type P came", "2: an event passed the condition speed > 50"
    refused, detected = "2: an event was refused by the condition speed > 50", "1: Fast was detected"
    assert sorted(queries.missed(query, "")) == sorted([came, passed, refused, detected])
    assert queries.missed(query, "+0s P speed=60") == [refused]
    assert sorted(queries.missed(query, "+0s P speed=40")) == sorted([detected, passed])
    assert queries.missed(query, "+0s P speed=60\n+1s P speed=40") == []


def test_what_one_test_misses_another_may_reach(queries):
    query = "define Fast detect P(speed > 50)"
    assert queries.missed(query, "+0s P speed=60", "+0s P speed=40") == []


def test_each_of_several_conditions_must_refuse_by_itself(queries):
    query = "define D detect P(speed > 50, lane = 1)"
    both = "+0s P speed=60 lane=1\n+1s P speed=40 lane=2\n"
    assert queries.missed(query, both) == [
        "1: an event was refused by the condition speed > 50",
        "1: an event was refused by the condition lane = 1",
    ]
    assert queries.missed(query, f"{both}+2s P speed=40 lane=1\n+3s P speed=60 lane=2") == []


def test_parameters_do_not_make_new_branches(queries):
    query = "param limit = 50\ndefine Fast detect P(speed > limit)"
    assert queries.missed(query, "+0s P speed=60", "param limit = 70\n+0s P speed=60") == []


def test_a_sequence_tells_how_far_it_came(queries):
    query = "define D\n  detect A as a\n    then B as b\n    then C as c within 1 h"
    assert queries.missed(query, "+0s A\n+1s C\n+2s B") == [
        "1: D was detected",
        "4: D: the part c was filled",
    ]
    assert "3: D: the part b was filled" in queries.missed(query, "+0s B\n+1s A\n+2s C")
    assert queries.missed(query, "+0s A\n+1s B\n+2s C") == []


def test_a_step_is_not_taken_against_a_condition(queries):
    query = "define D detect A as a then B as b then C as c within 1 h where b.v > a.v"
    events = "+0s A v=2\n+1s B v=1\n+2s C v=0"
    assert "1: D: the part b was filled" in queries.missed(query, events)
    assert "1: D: the condition b.v > a.v held" in queries.missed(query, events)
    assert "1: D: the condition b.v > a.v refused something" not in queries.missed(query, events)
    assert queries.missed(query, f"{events}\n+3s B v=3\n+4s C v=0") == []


def test_a_conjunction_asks_for_each_of_its_parts(queries):
    query = "define D detect A as a and B as b within 1 h"
    assert queries.missed(query, "+0s B") == [
        "1: an event of type A came",
        "1: D: the part a was filled",
        "1: D was detected",
    ]


def test_an_absence_must_prevent_one_and_let_another_pass(queries):
    query = "define Late\n  detect Leave\n  then not Arrive for 1 h\n  group by truck"
    late, arrives = "+0s Leave truck=1", "+0s Leave truck=1\n+1s Arrive truck=1"
    assert queries.missed(query, late) == [
        "3: an event of type Arrive came",
        "3: Late: `not Arrive` prevented something",
    ]
    assert queries.missed(query, arrives) == [
        "1: Late was detected",
        "3: Late: `not Arrive` let something pass",
    ]
    assert queries.missed(query, late, arrives) == []


def test_each_of_two_absences_counts_for_itself(queries):
    query = "define D detect A as a then not N as n then B as b then not M as m for 1 h within 1 h"
    events = "+0s A\n+1s B\n", "+0s A\n+1s N\n+2s B\n"
    missed = queries.missed(query, *events, "+5s M\n")
    assert missed == ["1: D: `not m` prevented something"]
    assert queries.missed(query, *events, "+0s A\n+1s B\n+2s M") == []


def test_an_absence_at_the_beginning_counts_too(queries):
    query = "define D detect not N as n then A as a within 1 h"
    assert queries.missed(query, "+0s A", "+0s N\n+1s A") == []
    assert queries.missed(query, "+0s A\n+1s N") == ["1: D: `not n` prevented something"]


def test_selection_and_consumption_do_not_hide_what_was_reached(queries):
    query = "define D detect first A as a then B as b within 1 h where b.v > a.v consuming all"
    assert queries.missed(query, "+0s A v=1\n+1s B v=2\n+2s B v=0") == []


def test_each_alternative_must_be_taken(queries):
    query = "define D\n  detect A as a then\n    (B as b\n    or C as c) within 1 h"
    assert queries.missed(query, "+0s C\n+1s A\n+2s B") == ["4: D: the alternative c was taken"]
    assert queries.missed(query, "+0s A\n+1s C\n+2s B") == []


def test_alternatives_of_a_whole_definition_must_come(queries):
    query = "define D detect A(v > 1) as a or B as b"
    assert "1: D: the alternative b was taken" in queries.missed(query, "+0s A v=2\n+1s A v=0")
    assert queries.missed(query, "+0s A v=2\n+1s A v=0\n+2s B") == []


def test_alternatives_may_be_patterns_and_repetitions(queries):
    query = "define D detect A as a then ((B as b then C as c within 5 s) or E as e or F{2} as f) within 1 h"
    assert queries.missed(query, "+0s A\n+1s B\n+2s C\n+3s E\n+4s F\n+5s F") == []
    missed = queries.missed(query, "+0s A\n+1s E\n+2s B")
    assert "1: D: the alternative b was taken" in missed
    assert "1: D: the alternative f was taken" in missed
    assert "1: D: the alternative e was taken" not in missed


def test_a_repetition_must_be_long_enough_and_be_cut_short(queries):
    query = "define D detect A as a then S(v < 5){2,} until Stop as s within 1 h"
    missed = queries.missed(query, "+0s A v=9\n+1s S v=1\n+2s S v=9\n+2s Stop")
    assert "1: D: s was repeated as often as asked" in missed
    assert "1: D: `until` cut s short" in missed
    assert queries.missed(query, "+0s A v=9\n+1s S v=1\n+2s S v=1\n+3s Stop\n+4s S v=1\n+5s S v=9") == []


def test_a_window_must_give_a_result_that_is_kept_and_one_that_is_not(queries):
    query = "define Busy(n) every 1 min\n  detect A\n  assign n = count(A)\n  having n > 1"
    assert queries.missed(query, "+0s A\n+1s A") == ["4: Busy: `having n > 1` refused a window"]
    assert queries.missed(query, "+0s A") == [
        "1: Busy was detected",
        "4: Busy: `having n > 1` held",
    ]
    assert queries.missed(query, "+0s A\n+1s A\n+2min A") == []
    plain = "define Busy(n) every 1 min detect A assign n = count(A)"
    assert "1: Busy: a window gave a result" in queries.missed(plain, "")


def test_each_case_must_be_detected(queries):
    first, second = (f"  case {n}: detect A(k = {n}) as a assign v = a.x\n" for n in (0, 1))
    query = f"define D(v)\n{first}{second}"
    missed = queries.missed(query, "+0s A k=0\n+1s A k=5")
    assert missed == ["3: an event passed the condition k = 1", "3: D: case 1 was detected"]
    assert queries.missed(query, "+0s A k=0\n+1s A k=1") == []


def test_definitions_that_others_use_are_covered_as_well(queries):
    query = "define Fast detect P(v > 50)\ndefine Chase detect Fast as a then Fast as b within 1 min"
    missed = queries.missed(query, "+0s P v=60\n+1s P v=0")
    assert missed == ["2: Chase: the part b was filled", "2: Chase was detected"]


def test_a_motion_must_be_found(queries):
    query = "define D\n  detect T as t is silent for 5 s where t.v > 3"
    assert "2: D: t is silent was found" in queries.missed(query, "")
    assert queries.missed(query, "+0s T v=2\n+9s T v=4\n+20s T v=4") == []


def test_operators_in_python_must_give_a_result(queries):
    class Double(wb.CustomOperator):
        def process(self, events):
            return [{"v": 2 * event["v"]} for event in events if event["v"] > 1]

    policy = SelectionPolicy((window("A"),), restriction("1 s"))
    query = wb.custom_query("Twice", Double, ["A"], policy)
    missed = "Twice.custom gave a result"
    file = queries.write("twice.wbt", "test t\n+0s A v=1\nexpect nothing")
    assert missed in str(run_tests(file, query=query, coverage=True))
    file = queries.write("twice.wbt", "test t\n+0s A v=2\nexpect Twice v=4")
    assert "the query: 3 of 3" in str(run_tests(file, query=query, coverage=True))


def test_late_events_reach_nothing(queries):
    query = "define Fast detect P(speed > 50)"
    events = "lateness 1 s\n+10s P speed=60\n+0s P speed=40\nexpect 1 late event"
    assert queries.missed(query, events) == ["1: an event was refused by the condition speed > 50"]


def test_a_region_does_not_flood_the_report(queries):
    corners = ", ".join(f"{n} {n * n}" for n in range(40))
    query = f"coordinates plane\ndefine D detect P(this in 'POLYGON (({corners}, 0 0))')"
    (missed,) = queries.missed(query, "+0s P at (0, 0)")
    assert len(missed) < 150
    assert missed.endswith("...")


def test_the_report_names_what_is_missed_with_its_line(queries):
    queries.write("late.wbl", "define Late\n  detect Leave\n  then not Arrive for 1 h\n")
    results = run_tests(queries.write("late.wbt", "test t\n+0s Leave\nexpect Late\n"), coverage=True)
    assert results.coverage is not None
    assert results.coverage.report() == [
        "coverage: 4 of 6 branches, 67 %",
        f"{queries.folder / 'late.wbl'}: 4 of 6; never:",
        "  line 3    an event of type Arrive came",
        "  line 3    Late: `not Arrive` prevented something",
    ]
    assert "coverage: 4 of 6 branches, 67 %" in str(results).splitlines()


def test_nothing_to_cover_is_covered():
    assert Coverage().percent == 100.0


def test_coverage_that_cannot_be_measured_is_a_warning(queries, monkeypatch):
    def refuse(*_given):
        raise wb.QueryError("too many columns")

    monkeypatch.setattr(Coverage, "add", refuse)
    warned = []
    results = queries.run("test t\nexpect nothing", coverage=True, warn=warned.append)
    assert results.all_passed
    assert [text.partition("warning: ")[2] for text in warned] == [
        "its coverage cannot be measured: too many columns"
    ]


def test_steps_tell_how_often_each_was_taken(queries):
    query = "define D\n  detect A as a\n    followed by B* as b\n    followed by C as c within 1 h"
    assert queries.missed(query, "+0s A\n+1s C") == [
        "3: an event of type B came",
        "3: D: the step b was taken",
        "3: D: the step b was taken more than 1 time",
    ]
    assert queries.missed(query, "+0s A\n+1s B\n+2s B\n+3s C") == []


def test_absent_steps_and_conditions_on_earlier_ones_must_matter(queries):
    query = (
        "define D\n  detect A as a\n    not followed by X as x\n    followed by B(v > a.v) as b within 1 h"
    )
    passed = "+0s A v=1\n+1s B v=2"
    assert queries.missed(query, passed) == [
        "3: an event of type X came",
        "3: D: `not` x prevented something",
        "4: D: the condition v > a.v refused something",
    ]
    assert queries.missed(query, passed, "+0s A v=1\n+1s X\n+2s B v=2", "+0s A v=2\n+1s B v=1") == []


def test_time_outs_count_as_a_branch(queries):
    query = "define D detect A as a followed by B as b within 1 h timing out as Late"
    missed = queries.missed(query, "+0s A\n+1s B")
    assert "1: D: a match ran out of time" in missed
    assert queries.missed(query, "+0s A\n+1s B\n+2s A") == []


def test_what_a_change_asks_for_must_refuse_something(queries):
    query = "define D detect P as p changes v to 'x' within 1 h"
    changed, refused = "+0s P v=a\n+1s P v=x", "D: the condition p.v = 'x' refused something"
    assert [text.partition(": ")[2] for text in queries.missed(query, changed)] == [refused]
    assert queries.missed(query, changed, "+0s P v=a\n+1s P v=b") == []
