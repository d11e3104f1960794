"""Why an attribute did not change: every pair of events that is no detection says what it lacks."""

from __future__ import annotations

import whimbrel as wb

QUERY = "define D detect P as p changes v to 'y' within 1 min group by k"


def explained(query: str, *events: tuple[int, str, str | None], **asked: object) -> wb.Explanation:
    rows = [
        {"type": "P", "time": time, "id": f"e{number}", "k": k, "v": v}
        for number, (time, k, v) in enumerate(events)
    ]
    return wb.why(wb.compile(query), rows, **asked)


def reasons(explanation: wb.Explanation) -> list[list[str]]:
    return [[str(reason) for reason in miss.reasons] for miss in explanation.misses]


def test_the_nearest_misses_come_first():
    found = explained(QUERY, (0, "a", "x"), (10, "a", "x"), (20, "b", "x"), (30, "a", "z"), (95, "b", "y"))
    assert reasons(found) == [
        ["p: p.end - previous.end was 1 min 15 s, needed <= 1 min"],
        ["p: p.v was 'z', needed = 'y'"],
        ["p: previous.v was 'x', needed != 'x' (p.v)", "p: p.v was 'x', needed = 'y'"],
    ]


def test_only_the_key_that_was_asked_for():
    events = ((0, "a", "x"), (1, "b", "x"), (2, "a", "x"), (3, "b", "z"))
    assert reasons(explained(QUERY, *events, key="b")) == [["p: p.v was 'z', needed = 'y'"]]


def test_changes_that_were_found_are_shown():
    (finding,) = explained(QUERY, (0, "a", "x"), (1, "a", "y")).findings
    assert (finding.detections, finding.misses) == (1, ())


def test_without_events_it_says_so():
    (miss,) = explained(QUERY, (0, "a", None)).misses
    assert miss.reasons[0].kind == "nothing"
