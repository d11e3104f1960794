"""Why nothing entered, stayed or met: what there was to go by."""

from __future__ import annotations

import whimbrel as wb

DEPOT = "region Depot = box(0, 0, 10, 10) "


def samples(*places: float, source: str = "v") -> list[dict]:
    return [
        {"type": "T", "time": n, "id": f"{source}{n}", "source": source, "x": x, "y": 5.0, "speed": 10.0 * n}
        for n, x in enumerate(places)
    ]


def notes(text: str, rows: list[dict], **asked: object) -> tuple[str, ...]:
    (finding,) = wb.why(wb.compile(text), rows, **asked).findings
    return finding.notes


def test_how_near_the_samples_came():
    assert notes(DEPOT + "define D detect T as t enters Depot", samples(-30, -12, -40)) == (
        "looked for: t enters Depot gap 1 h",
        "T: 3 samples of 1 mover",
        "0 of them in a region; the nearest of the others is 12 m away",
    )


def test_only_the_mover_that_was_asked_for():
    rows = samples(-30, -12) + samples(2, 3, source="w")
    assert notes(DEPOT + "define D detect T as t enters Depot", rows, key="w")[1:] == (
        "T: 2 samples of 1 mover",
        "2 of them in a region",
    )


def test_samples_without_a_place():
    rows = [row | {"x": None, "y": None} for row in samples(1, 2)]
    assert notes(DEPOT + "define D detect T as t enters Depot", rows)[-1] == "none of them has a location"


def test_two_movers():
    rows = samples(0, 1) + samples(20, 30, source="w")
    assert notes("define D detect T as a meets T as b within 5 m for 1 s", rows) == (
        "looked for: a meets b within 5 m for 1 s fresh 1 min",
        "T: 4 samples of 2 movers",
    )


def test_a_motion_that_a_condition_refused():
    text = DEPOT + "define D detect T as t enters Depot where t.speed > 50"
    found = wb.why(wb.compile(text), samples(-5, 5))
    assert "t.speed was 10, needed > 50" in str(found)
    assert "D, D.motion: 1 detection" in str(found)


def test_a_pattern_made_of_motions_points_to_them():
    text = (
        DEPOT
        + """
        define In detect T enters Depot
        define Out detect T leaves Depot
        define Visit detect In as i then Out as o within 1 min group by source
    """
    )
    assert "nothing was detected as Out, see there" in str(wb.why(wb.compile(text), samples(-5, 5)))
