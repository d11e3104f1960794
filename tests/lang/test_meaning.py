"""Where conditions are put changes the work, never the answer; checked with the reference implementation."""

from __future__ import annotations

import random

import pytest
from tests.lang.golden_files import GoldenCase, read_cases
from tests.lang.test_golden import facedetect, spread
from tests.reference import Event, detect

from whimbrel.graph.operators import Source
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text, conditions

FUNCTIONS = [facedetect, spread]
ATTRIBUTES = ("speed", "lane", "k", "v", "w", "u", "t", "x1", "val", "direction", "left", "right", "z")


def random_events(query: Query, seed: int, count: int = 14) -> list[Event]:
    """Few values and short times, so that many of them fit together."""
    rng = random.Random(seed)
    types = sorted({op.event_type for op in query.graph.operators if isinstance(op, Source)})
    events = []
    for number in range(count):
        start = rng.randrange(0, 12) * 500_000
        values = {name: rng.choice([0, 1, 2, 3, 4, 31, 40, None]) for name in ATTRIBUTES}
        values |= {"vehicle": rng.choice(["x", "y"]), "location": rng.choice(["hall", "lab"]), "name": "xy"}
        end = start + rng.choice([0, 0, 500_000])
        place = float(rng.randrange(0, 12))
        events.append(Event(f"e{number:02}", rng.choice(types), start, end, "s", place, place, None, values))
    return events


def answers(query: Query, events: list[Event]) -> list[str]:
    found = detect(query.graph, events, query.functions)
    return sorted(repr(detection) for detection in found)


WITH_CONDITIONS = [case for case in read_cases("graphs.txt") if "where" in case.given or "(" in case.given]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in WITH_CONDITIONS])
def test_moving_conditions_down_changes_no_answer(case: GoldenCase, monkeypatch: pytest.MonkeyPatch):
    moved = compile_text(case.given, functions=FUNCTIONS, emit="all")
    monkeypatch.setattr(conditions, "_pushable", lambda *_: False)
    left = compile_text(case.given, functions=FUNCTIONS, emit="all")
    for seed in range(12):
        events = random_events(moved, seed)
        assert answers(moved, events) == answers(left, events)


def test_the_random_events_do_fit_something():
    fitting = 0
    for case in WITH_CONDITIONS:
        query = compile_text(case.given, functions=FUNCTIONS, emit="all")
        fitting += any(answers(query, random_events(query, seed)) for seed in range(12))
    assert fitting > 0.7 * len(WITH_CONDITIONS)
