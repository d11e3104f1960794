"""Motion: what enters, leaves, crosses, reaches, comes near, stays, approaches, stops, falls silent."""

from __future__ import annotations

import json

import pytest
from tests.shared.backends import expect

DEPOT = "region Depot = box(0, 0, 10, 10) "
LONLAT = "coordinates lonlat region Bay = 'POLYGON ((179 -1, 181 -1, 181 1, 179 1, 179 -1))' "


def way(
    *places: tuple[float, float] | float | None, source: str = "v", **values: list[float | None]
) -> list[dict]:
    """A sample a second, at (x, 5) where only x is given; None: no sample."""
    rows = []
    for second, place in enumerate(places):
        if place is not None:
            x, y = place if isinstance(place, tuple) else (place, 5)
            time = second * 1_000_000
            row = {"type": "T", "start": time, "end": time, "id": f"{source}{second}", "source": source}
            row |= {"x": float(x), "y": float(y)}
            rows.append(row | {name: given[second] for name, given in values.items()})
    return rows


def on_earth(*places: tuple[float, float]) -> list[dict]:
    """The same in longitude and latitude."""
    return [{{"x": "lon", "y": "lat"}.get(k, k): v for k, v in row.items()} for row in way(*places)]


def found(backend, phrase: str, rows: list[dict], before: str = DEPOT) -> list[str]:
    return backend.detect(f"{before} define D detect {phrase} assign n = 1", rows).events


def spans(backend, phrase: str, rows: list[dict]) -> list[tuple[str, int]]:
    """The events of each detection, and the second in which it ends."""
    detected = backend.detect(f"{DEPOT} define D detect {phrase} assign n = 1", rows)
    return [(" ".join(each["events"]), each["end"] // 1_000_000) for each in detected]


# Regions.


def test_entering_is_found_with_the_first_sample_inside(backend):
    assert found(backend, "T enters Depot", way(-5, -2, 3, 4, 20)) == ["v1 v2"]


def test_leaving_is_found_with_the_first_sample_outside(backend):
    assert found(backend, "T leaves Depot", way(-5, 3, 4, 20, 30)) == ["v2 v3"]


def test_the_border_is_inside(backend):
    assert found(backend, "T enters Depot", way(-5, 0, 10, 11)) == ["v0 v1"]


def test_a_mover_that_is_first_seen_inside_has_not_entered(backend):
    assert found(backend, "T enters Depot", way(5, 6, 7)) == []
    assert found(backend, "T leaves Depot", way(5, 20)) == ["v0 v1"]


def test_movers_are_told_apart_by_their_source(backend):
    rows = way(-5, 5, 5) + way(5, -5, 5, source="w")
    assert found(backend, "T enters Depot", rows) == ["v0 v1", "w1 w2"]


def test_group_by_tells_movers_apart(backend):
    rows = [row | {"plate": "p" if row["id"] in ("v0", "v2") else "q"} for row in way(-5, 20, 5, 5)]
    found = backend.detect(DEPOT + "define D detect T as t enters Depot group by plate", rows)
    assert found.events == ["v0 v2", "v1 v3"]
    assert found.values("plate") == ["p", "q"]


def test_time_and_place_of_a_crossing_are_interpolated(backend):
    where = "assign region = motion.region, at = motion.at, across = motion.x, up = motion.y"
    detected = backend.detect(DEPOT + f"define D detect T enters Depot {where}", way(-5, 15, -5, 5))
    assert detected == expect("D@2s..3s:region=Depot,at=2500000,across=0.0,up=5.0: v2 v3")
    detected = backend.detect(
        DEPOT + f"define D detect T leaves Depot {where}, since = motion.since", way(5, 15)
    )
    assert detected == expect("D@0s..1s:region=Depot,at=500000,across=10.0,up=5.0,since=0: v0 v1")


def test_without_assignments_a_detection_says_who_where_and_when(backend):
    (detected,) = backend.detect(DEPOT + "define D detect T leaves Depot", way(5, 15))
    assert detected == {
        "type": "D", "start": 0, "end": 1_000_000, "source": "v", "region": "Depot", "at": 500_000,
        "since": 0, "events": ("v0", "v1"),
    }  # fmt: skip


def test_crossing_is_going_in_and_out_again(backend):
    assert found(backend, "T crosses Depot", way(-5, 5, 6, 20)) == ["v2 v3"]
    assert found(backend, "T crosses Depot", way(5, 6, 20)) == []


def test_crossing_is_seen_between_two_samples(backend):
    text = DEPOT + "define D detect T crosses Depot assign at = motion.at, since = motion.since"
    assert backend.detect(text, way(-5, 15)) == expect("D@0s..1s:at=750000: v0 v1")


def test_entering_between_two_samples_counts_if_asked_for(backend):
    rows = way(-5, 15, 16)
    assert found(backend, "T enters Depot", rows) == []
    assert found(backend, "T enters Depot between samples", rows) == ["v0 v1"]
    assert found(backend, "T leaves Depot between samples", rows) == ["v0 v1"]


def test_reaching_asks_for_where_the_mover_comes_from(backend):
    rows = way(-60, -20, 5, -20, 5, -60, 5)
    assert found(backend, "T reaches Depot from 50 m", rows) == ["v1 v2", "v5 v6"]


def test_coming_near_is_measured_from_the_border(backend):
    assert found(backend, "T comes within 3 m of Depot", way(-9, -4, -3, 5, 20, 12)) == ["v1 v2", "v4 v5"]


def test_several_regions_are_judged_each_by_itself(backend, tmp_path):
    shops = [("a", 0, 4), ("b", 3, 9), ("c", 20, 30)]
    features = [
        {"type": "Feature", "properties": {"shop": name},
         "geometry": {"type": "Polygon", "coordinates": [[[x0, 0], [x1, 0], [x1, 9], [x0, 9], [x0, 0]]]}}
        for name, x0, x1 in shops
    ]  # fmt: skip
    file = tmp_path / "shops.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    before = f"region Shops = layer('{file.as_posix()}', name = 'shop') "
    detected = backend.detect(before + "define D detect T enters Shops", way(-5, 2, 3.5, 8, 25))
    assert [(row["events"], row["region"]) for row in detected] == [
        (("v0", "v1"), "a"), (("v1", "v2"), "b"), (("v3", "v4"), "c"),
    ]  # fmt: skip
    assert len(set(detected.ids)) == 3
    detected = backend.detect(before + "define D detect T(this in Shops)", way(-5, 2, 12, 25))
    assert detected.events == ["v1", "v3"]


def test_conditions_choose_samples_and_motions(backend):
    rows = way(-5, 2, -5, 2, -5, 2, speed=[1, 1, 1, 9, 9, 9])
    text = (
        DEPOT
        + "define D detect T(speed < 9) as t enters Depot where motion.region = 'Depot' assign s = t.speed"
    )
    assert backend.detect(text, rows).events == ["v0 v1"]
    text = (
        DEPOT
        + "define D detect T as t enters Depot where t.speed > 5 and motion.at > t.start - 1 s assign n = 1"
    )
    assert backend.detect(text, rows).events == ["v2 v3", "v4 v5"]


def test_other_definitions_use_what_was_found(backend):
    text = (
        DEPOT
        + """
        define In detect T enters Depot
        define Out detect T leaves Depot
        define Visit detect In as i then Out as o within 1 min assign region = o.region group by source
    """
    )
    assert backend.detect(text, way(-5, 5, 5, -5)).values("region") == ["Depot"]


# Against jitter.


def test_a_margin_lets_a_mover_leave_only_beyond_it(backend):
    rows = way(-9, 5, 12, 5, 12, 20, 12, 5)
    assert found(backend, "T leaves Depot", rows) == ["v1 v2", "v3 v4"]
    assert found(backend, "T leaves Depot margin 5 m", rows) == ["v4 v5"]
    assert found(backend, "T enters Depot margin 5 m", rows) == ["v0 v1", "v6 v7"]


def test_a_change_settles_after_so_many_events(backend):
    rows = way(-5, 5, -5, 5, 6, 7, -5)
    assert found(backend, "T enters Depot settling 3 events", rows) == ["v2 v3 v5"]
    assert found(backend, "T enters Depot settling 2 s", rows) == ["v2 v3 v5"]
    assert found(backend, "T leaves Depot settling 2 events", rows) == []


def test_a_location_that_may_be_wrong_decides_nothing(backend):
    rows = way(-9, 2, 2, -2, -9, acc=[1, 5, 1, 5, 1])
    assert found(backend, "T enters Depot accuracy acc", rows) == ["v1 v2"]
    assert found(backend, "T leaves Depot accuracy acc", rows) == ["v3 v4"]


def test_nothing_is_said_across_a_gap(backend):
    rows = way(-5, None, None, None, 5, -5, 5)
    assert found(backend, "T enters Depot gap 2 s", rows) == ["v5 v6"]
    assert found(backend, "T enters Depot gap 4 s", rows) == ["v0 v4", "v5 v6"]


def test_an_event_without_a_place_is_no_sample(backend):
    rows = way(-5, 5, 5)
    rows[1] |= {"x": None, "y": None}
    assert found(backend, "T enters Depot", rows) == ["v0 v2"]


# What waits.


def test_a_stay_is_told_when_its_time_has_passed(backend):
    detected = backend.detect(
        DEPOT + "define D detect T stays in Depot for 3 s assign since = motion.since",
        way(-5, 5, 6, 6, 6, 6, -5),
    )
    assert detected == expect("D@1s..4s:since=1000000: v1 v2")


def test_a_stay_that_ends_in_time_is_none(backend):
    assert found(backend, "T stays in Depot for 3 s", way(5, 6, 6, -5, -5)) == []
    assert found(backend, "T stays in Depot for 2 s", way(5, 6, 6, -5, -5)) == ["v0 v1"]


def test_a_stay_ends_with_a_gap(backend):
    assert found(backend, "T stays in Depot for 9 s", way(5, 6)) == ["v0 v1"]
    assert found(backend, "T stays in Depot for 9 s gap 5 s", way(5, 6)) == []
    assert found(backend, "T stays in Depot for 9 s gap 5 s", way(5, None, None, None, None, 5)) == ["v0 v5"]


WAITING = pytest.mark.parametrize(
    "phrase",
    [
        "T stops for 3 s within 2 m",
        "T stays in Depot for 3 s",
        "T stays outside box(50, 50, 60, 60) for 3 s",
        "T stays beyond 4 m of box(50, 50, 60, 60) for 3 s",
    ],
)


@WAITING
def test_one_report_and_then_silence_is_neither_a_stop_nor_a_stay(backend, phrase):
    assert found(backend, phrase, way(5)) == []


@WAITING
def test_two_reports_are_enough_if_the_second_is_in_time(backend, phrase):
    assert spans(backend, phrase, way(5, None, 5)) == [("v0 v2", 3)]


@WAITING
def test_a_second_report_that_comes_later_completes_a_stop_or_stay(backend, phrase):
    assert spans(backend, phrase, way(5, None, None, None, None, 5)) == [("v0 v5", 5)]


@WAITING
def test_a_second_report_from_somewhere_else_completes_nothing(backend, phrase):
    assert found(backend, phrase, way(5, None, None, None, None, (55, 55))) == []


@WAITING
def test_a_second_report_beyond_the_gap_begins_anew(backend, phrase):
    rows = way(5, None, None, None, None, 5, 5)
    assert spans(backend, f"{phrase} gap 4 s", rows) == [("v5 v6", 8)]


@WAITING
def test_reports_of_one_time_are_one_report(backend, phrase):
    again = [row | {"id": "again"} for row in way(5)]
    assert found(backend, phrase, way(5) + again) == []


@WAITING
def test_a_mover_that_stands_when_the_data_end_has_stopped_unless_the_gap_is_shorter(backend, phrase):
    assert spans(backend, phrase, way(5, 5)) == [("v0 v1", 3)]
    assert found(backend, f"{phrase} gap 1 s", way(5, 5)) == []


def test_the_name_of_a_mover_that_stays_reads_its_second_sample(backend):
    query = DEPOT + "define D detect T as t stays in Depot for 2 s assign w = t.w"
    assert backend.detect(query, way(5, 6, 7, w=[1.0, 2.0, 3.0])).values("w") == [2.0]


def test_staying_outside_is_the_opposite(backend):
    assert found(backend, "T stays outside Depot for 2 s", way(5, -5, -5, -5, 5)) == ["v1 v2"]
    assert found(backend, "T stays outside Depot for 2 s", way(5, -5, -5, 5)) == []


def test_staying_far_away_is_measured_from_the_border(backend):
    assert found(backend, "T stays beyond 4 m of Depot for 2 s", way(-4, -5, -6, -5, 5)) == ["v1 v2"]
    assert found(backend, "T stays beyond 4 m of Depot for 3 s", way(-4, -5, -6, -5, -4)) == []


def test_a_stop_is_a_stay_around_its_first_sample(backend):
    rows = way(0, 10, 11, 10, 9, 30, 31)
    assert found(backend, "T stops for 3 s within 2 m", rows) == ["v1 v2", "v5 v6"]


def test_silence_is_told_when_its_time_has_passed(backend):
    detected = backend.detect(
        "define D detect T is silent for 3 s assign since = motion.since",
        way(0, 1, 2, None, None, None, 3, 4),
    )
    assert detected == expect("D@2s..5s:since=2000000: v2\nD@7s..10s:since=7000000: v7")


def test_an_approach_comes_nearer_sample_by_sample(backend):
    rows = way(-50, -40, -30, -35, -20, -10, -5)
    detected = backend.detect(
        DEPOT + "define D detect T approaches Depot by 20 m assign d = motion.distance", rows
    )
    assert detected == expect("D@1s..2s:d=30.0: v1 v2\nD@4s..5s:d=10.0: v4 v5")
    assert found(backend, "T approaches Depot by 30 m margin 10 m", rows) == ["v3 v4"]


# Longitude and latitude.


@pytest.mark.parametrize("lon", [179.5, -179.5])
def test_a_region_across_the_date_line_is_entered_from_both_sides(backend, lon):
    rows = on_earth((170 if lon > 0 else -170, 0), (lon, 0))
    assert found(backend, "T enters Bay", rows, LONLAT) == ["v0 v1"]


def test_a_way_across_the_date_line_is_the_short_one(backend):
    before = "coordinates lonlat region Strait = 'POLYGON ((179.9 -1, 180 -1, 180 1, 179.9 1, 179.9 -1))' "
    rows = on_earth((179.8, 0), (-179.8, 0))
    assert found(backend, "T crosses Strait", rows, before) == ["v0 v1"]
    assert found(backend, "T crosses Strait", on_earth((179.8, 0), (160, 0)), before) == []


def test_distances_are_metres_on_the_earth(backend):
    before = "coordinates lonlat region Berth = 'POLYGON ((10 60, 10.1 60, 10.1 60.1, 10 60.1, 10 60))' "
    # At 60 degrees north, a thousandth of a degree of longitude is 55.6 m.
    rows = on_earth((9.9, 60.05), (9.998, 60.05), (9.9991, 60.05))
    assert found(backend, "T comes within 60 m of Berth", rows, before) == ["v1 v2"]
    assert found(backend, "T comes within 45 m of Berth", rows, before) == []


# Two movers.


def two(one: list[float | None], other: list[float | None]) -> list[dict]:
    """Movers v and w along one line, a sample a second."""
    return way(*one, source="v") + way(*other, source="w")


def test_coming_near_another_mover(backend):
    rows = two([0, 10, 20, 21, 40], [30, 30, 30, 30, 30])
    assert found(backend, "T as a comes within 10 m of T as b", rows, "") == ["w1 v2"]


def test_movers_that_are_first_seen_together_have_not_come_together(backend):
    assert found(backend, "T as a comes within 10 m of T as b", two([0, 1], [2, 3]), "") == []


def test_a_mover_that_was_not_seen_for_long_is_not_compared(backend):
    rows = two([0, 10, 20, 25], [30, None, None, None])
    assert found(backend, "T as a comes within 10 m of T as b", rows, "") == ["w0 v2"]
    assert found(backend, "T as a comes within 10 m of T as b fresh 1 s", rows, "") == []


def test_leaving_another_mover(backend):
    rows = two([0, 10, 11, 12, 50], [10, 10, 10, 10, 10])
    text = "define D detect T as a leaves T as b beyond 30 m"
    (detected,) = backend.detect(text, rows)
    assert detected["events"] == ("w3", "v4")
    assert (detected["a"], detected["b"], detected["distance"], detected["since"]) == ("v", "w", 40.0, 0)


def test_meeting_takes_some_time(backend):
    rows = two([0, 18, 19, 20, 21, 50], [20, 20, 20, 20, 20, 20])
    detected = backend.detect(
        "define D detect T as a meets T as b within 5 m for 2 s assign d = motion.distance", rows
    )
    assert detected == expect("D@0s..3s:d=2.0: w0 v1")
    assert found(backend, "T as a meets T as b within 5 m for 5 s", rows, "") == []


def test_travelling_together_is_more_than_standing_together(backend):
    moving = two([0, 10, 20, 30, 40], [1, 11, 21, 31, 41])
    standing = two([0, 0, 0, 0, 0], [1, 1, 1, 1, 1])
    for rows, expected in ((moving, ["v0 w0"]), (standing, [])):
        assert found(backend, "T as a travels with T as b within 20 m for 3 s", rows, "") == expected
    assert found(backend, "T as a meets T as b within 20 m for 3 s", standing, "") == ["v0 w0"]


def test_reaching_another_mover_from_afar(backend):
    rows = two([0, 29.5, 40, 29.5, 0, 30], [30, 30, 30, 30, 30, 30])
    assert found(backend, "T as a reaches T as b from 20 m", rows, "") == ["w0 v1", "w4 v5"]


def test_movers_of_different_types(backend):
    rows = way(0, 10, 20) + [row | {"type": "U"} for row in way(30, 30, 21, source="w")]
    assert found(backend, "T as a comes within 5 m of U as b", rows, "") == ["v2 w2"]
    assert found(backend, "U as a comes within 5 m of T as b", rows, "") == ["v2 w2"]


def test_conditions_on_two_movers(backend):
    rows = two([0, 10, 20, 21, 40], [30, 30, 30, 30, 30])
    phrase = "T as a comes within 10 m of T as b where {} assign d = motion.distance"
    for condition, expected in (("a.x < b.x and motion.distance = 10", [10.0]), ("a.x > b.x", [])):
        assert backend.detect(f"define D detect {phrase.format(condition)}", rows).values("d") == expected


def test_movers_meet_across_the_date_line(backend):
    rows = on_earth((179.9, 0), (179.9999, 0))
    rows += [row | {"source": "w", "id": f"w{row['id']}"} for row in on_earth((-179.9999, 0), (-179.9999, 0))]
    assert found(backend, "T as a comes within 50 m of T as b", rows, "coordinates lonlat ") == ["wv0 v1"]


def test_crossing_another_mover_is_coming_together_and_going_apart(backend):
    rows = two([0, 29.5, 30, 60, 30.5, 31], [30] * 6)
    assert found(backend, "T as a crosses T as b beyond 20 m", rows, "") == ["w2 v3"]
    assert found(backend, "T as a crosses T as b beyond 40 m", rows, "") == []


def test_two_that_pass_each_other_between_samples_have_crossed(backend):
    # They meet in the middle of the first second, and only there: a goes along y = 5, b along x = 0.
    rows = way(-50, 50) + way((0, -45), (0, 55), source="w")
    assert found(backend, "T as a crosses T as b beyond 20 m", rows, "") == ["v1 w1"]
    missed = way(-50, 50) + way((0, -65), (0, 35), source="w")
    assert found(backend, "T as a crosses T as b beyond 20 m", missed, "") == []
    assert found(backend, "T as a crosses T as b beyond 20 m within 15 m", missed, "") == ["v1 w1"]


def test_coming_near_between_samples_counts_if_asked_for(backend):
    rows = two([0, 100], [50, 50])
    assert found(backend, "T as a comes within 10 m of T as b", rows, "") == []
    assert found(backend, "T as a comes within 10 m of T as b between samples", rows, "") == ["w0 v1"]


def test_two_movers_approach_each_other(backend):
    rows = two([0, 10, 20, 15, 30], [50, 50, 45, 45, 45])
    detected = backend.detect(
        "define D detect T as a approaches T as b by 20 m assign d = motion.distance, since = motion.since",
        rows,
    )
    # 50 40 40 30 25 | 30 30 | 15 15: it begins anew where they are farther apart, or as far as when it began.
    assert detected == expect("D@1s..2s:d=30.0,since=0: w1 v2")
    assert found(backend, "T as a approaches T as b by 35 m margin 5 m", rows, "") == ["w3 v4"]


def test_staying_far_from_another_mover(backend):
    rows = two([0, 10, 20, 30, 40], [60] * 5)
    assert found(backend, "T as a stays beyond 30 m of T as b for 2 s", rows, "") == ["v0 w0"]
    assert found(backend, "T as a stays beyond 30 m of T as b for 3 s", rows, "") == []


def storm(*lefts: float, **more) -> list[dict]:
    """A square of 10 m that moves, a sample a second."""
    shape = "POLYGON (({0} 0, {1} 0, {1} 10, {0} 10, {0} 0))"
    return [
        {"type": "Storm", "start": n * 1_000_000, "end": n * 1_000_000, "id": f"s{n}", "source": "s"}
        | {"geometry": shape.format(left, left + 10)}
        | more
        for n, left in enumerate(lefts)
    ]


def points(rows: list[dict]) -> list[dict]:
    """The same samples with their places written as geometry."""
    return [
        {k: v for k, v in row.items() if k not in ("x", "y")} | {"geometry": f"POINT ({row['x']} {row['y']})"}
        for row in rows
    ]


def test_staying_in_a_polygon_that_moves(backend):
    rows = points(way(-5, 6, 16, 26, 36)) + storm(0, 0, 10, 20, 20)
    # The storm is seen first, and has then left its place behind: with a margin, that does not end the stay.
    assert found(backend, "T as a stays in Storm as b for 2 s", rows, "") == []
    assert found(backend, "T as a stays in Storm as b for 2 s margin 8 m", rows, "") == ["s1 v1"]
    assert found(backend, "T as a stays outside Storm as b for 1 s", rows, "") == ["s4 v4"]


def test_staying_in_a_polygon_of_ones_own_kind_has_a_direction(backend):
    rows = points(way(6, 6, 6)) + storm(0, 0, 0, type="T")
    detected = backend.detect("define D detect T as a stays in T as b for 1 s", rows)
    assert [(row["a"], row["b"]) for row in detected] == [("v", "s")]


def test_staying_in_a_polygon_across_the_date_line(backend):
    shape = "POLYGON ((179.9 -0.1, -179.9 -0.1, -179.9 0.1, 179.9 0.1, 179.9 -0.1))"
    for lon, expected in ((-179.95, ["s1 v1"]), (179.95, ["s1 v1"]), (-179.85, [])):
        rows = points(way((170, 0), (lon, 0), (lon, 0))) + storm(0, 0, 0, geometry=shape)
        assert found(backend, "T as a stays in Storm as b for 1 s", rows, "coordinates lonlat ") == expected
        # 0.05 degrees are 5.6 km: the border is nearer than that.
        phrase = "T as a stays in Storm as b for 1 s accuracy w"
        for wrong, counts in ((5000.0, True), (6000.0, False)):
            said = [row | ({"w": wrong} if row["type"] == "T" else {}) for row in rows]
            assert found(backend, phrase, said, "coordinates lonlat ") == (expected if counts else [])


def test_a_change_of_two_movers_settles(backend):
    rows = two([0, 25, 0, 25, 26, 0], [30] * 6)
    # At second 1 they are near with a, and with b; at second 2 not any more.
    assert found(backend, "T as a comes within 10 m of T as b settling 3 events", rows, "") == ["w3 v4"]
    assert found(backend, "T as a comes within 10 m of T as b settling 1 s", rows, "") == ["w3 v4"]
    assert found(backend, "T as a leaves T as b beyond 10 m settling 2 events", rows, "") == [
        "v2 w2",
        "v5 w5",
    ]


def test_the_accuracies_of_two_movers_add_up(backend):
    rows = way(0, 22, 25, source="v", acc=[1, 3, 1]) + way(30, 30, 30, source="w", acc=[0, 0, 3])
    # 8 m with an error of 3 m says nothing of 10 m; 5 m with an error of 1 m does.
    assert found(backend, "T as a comes within 10 m of T as b accuracy acc", rows, "") == ["w1 v2"]
    assert found(backend, "T as a comes within 10 m of T as b", rows, "") == ["w0 v1"]
