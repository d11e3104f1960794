"""Explanations of mobile queries, in all formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whimbrel.graph.explain import FORMATS, STAGES, explain, summary
from whimbrel.lang.following import follow
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import MINUTE, SECOND

GOLDEN = Path(__file__).parent / "golden"
ENDINGS = {"text": "txt", "mermaid": "mmd", "json": "json"}
QUERY = """
event Position(vehicle: string, kind: string, speed: float)
define Accident
  detect Position(speed > 30) as a then Position(speed < 1) as b within 10 s
  group by vehicle
define Jam over 2 min every 30 s
  detect Position(speed < 10)
  assign cars = count(Position)
  having cars > 20
define Near
  detect Accident as a then Jam as j within 1 min
  consuming a

around Position(kind = 'ambulance') as rescue
  group by vehicle
  within 500 m
  report Accident, Near
  lifetime 30 min
  refresh when moved 50 m
  quality 0.9
  predict 3 steps
  deliver changes
  excluding itself
  until silent for 10 min
around Tanker
  ahead 2 km, 60 degrees of situations
  report Jam
"""


@pytest.mark.parametrize("form", FORMATS)
def test_explanations(form: str, update_golden: bool):
    file = GOLDEN / f"mobile-queries.{ENDINGS[form]}"
    actual = explain(compile_text(QUERY), form) + "\n"
    if update_golden:
        file.write_text(actual, encoding="utf-8")
    assert actual == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("stage", STAGES)
def test_all_stages_name_the_mobile_queries(form: str, stage: str):
    text = explain(compile_text(QUERY), form, stage=stage)
    assert "rescue" in text
    assert "Tanker" in text


def test_programs_learn_what_is_kept_and_why():
    rescue, tanker = json.loads(explain(compile_text(QUERY), "json"))["mobile"]
    assert (rescue["found_once"], rescue["found_each"], rescue["given"]) == (
        ["Accident"],
        ["Near"],
        ["Accident"],
    )
    assert rescue["anchors"] == {"Near.match": "uses events up"}
    # A minute from Near to what it joins, two of the window, and a window's wait.
    assert rescue["additional_time_us"] == {"Position": 5 * MINUTE}
    assert rescue["history_us"] == {"Position": 35 * MINUTE}
    assert (tanker["found_once"], tanker["found_each"], tanker["anchors"]) == (["Jam"], [], {})
    assert (tanker["of"], tanker["history_us"]) == ("situations", {})


def test_history_is_as_long_as_the_longest_lifetime_of_a_table_and_what_quality_is_counted_over():
    plain = compile_text("define Jam over 2 min every 30 s detect Car assign n = count(Car)")
    listed = follow(plain, within="5 m", lifetime="1 min", listed=[{"key": "a", "lifetime": "9 min"}])
    assert json.loads(explain(listed.compile(), "json"))["mobile"][0]["history_us"] == {"Car": 11 * MINUTE}
    counted = compile_text(
        "define S detect Car(v > 1) around Car within 5 m report S quality 0.9 "
        "refresh when quality falls over 7 s"
    )
    assert json.loads(explain(counted, "json"))["mobile"][0]["history_us"] == {"Car": 7 * SECOND}


def test_rates_show_how_much_history_there_is():
    text = explain(compile_text(QUERY), rates={"Position": 100})
    assert "Position for 35 min: about 210,000 events (35 min x 100 events/s)" in text


def test_a_summary_says_whom_each_follows():
    rescue, tanker = summary(compile_text(QUERY)).split("; ")
    assert rescue.startswith("around Position(kind = 'ambulance') as rescue within 500 m, lifetime 30 min: ")
    assert tanker.startswith("around Tanker ahead 2000 m, 60 degrees of situations: detects Jam")
