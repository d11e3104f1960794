"""Subscriptions are matched as if each were tried against each event, whatever is added and removed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb


def found(subs, events):
    """The pairs that are found, as a set; every pair must come once, in order of the rows."""
    table = subs.match(events)
    rows = table["event_row"].to_pylist()
    assert rows == sorted(rows)
    pairs = list(zip(rows, table["subscription"].to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


# What a subscription asks, for the naive reference: a list of functions of one event (a dict).


def equal(name, value):
    def holds(event):
        given = event.get(name)
        same_kind = isinstance(given, bool) == isinstance(value, bool)
        return given is not None and same_kind and given == value

    return f"{name} = {_literal(value)}", holds


def different(name, value):
    def holds(event):
        given = event.get(name)
        return given is not None and not equal(name, value)[1](event)

    return f"{name} != {_literal(value)}", holds


def one_of(name, values):
    listed = ", ".join(_literal(value) for value in values)
    return f"{name} in ({listed})", lambda event: any(equal(name, value)[1](event) for value in values)


def ordered(name, operator, bound):
    compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}[operator]

    def holds(event):
        given = event.get(name)
        return isinstance(given, int | float) and not isinstance(given, bool) and compare(float(given), bound)

    return f"{name} {operator} {bound!r}", holds


def texts(name, how, text):
    ask = {"startswith": str.startswith, "endswith": str.endswith, "contains": str.__contains__}[how]
    return (
        f"{how}({name}, {_literal(text)})",
        lambda event: isinstance(event.get(name), str) and ask(event[name], text),
    )


def _literal(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if not isinstance(value, str) else f"'{value}'"


words = st.text("abé", max_size=6)
names_of_texts = st.sampled_from(["name", "state"])
numbers = st.one_of(st.integers(-3, 3), st.integers(-12, 12).map(lambda n: n / 4))
clauses = st.one_of(
    st.builds(equal, names_of_texts, words),
    st.builds(equal, st.just("speed"), numbers),
    st.builds(equal, st.just("moving"), st.booleans()),
    st.builds(different, names_of_texts, words),
    st.builds(different, st.just("speed"), numbers),
    st.builds(one_of, names_of_texts, st.lists(words, min_size=1, max_size=3)),
    st.builds(one_of, st.just("speed"), st.lists(st.integers(-3, 3), min_size=1, max_size=3)),
    st.builds(ordered, st.just("speed"), st.sampled_from(["<", "<=", ">", ">="]), numbers.map(float)),
    st.builds(texts, names_of_texts, st.sampled_from(["startswith", "endswith", "contains"]), words),
)
coordinates = st.integers(-16, 16).map(lambda n: n / 4)
places = st.one_of(
    st.none(),
    st.tuples(st.just("circle"), coordinates, coordinates, st.integers(0, 20).map(lambda n: n / 4)),
    st.tuples(st.just("box"), coordinates, coordinates, coordinates, coordinates),
    st.tuples(st.just("wkt"), coordinates, coordinates, st.integers(1, 20).map(lambda n: n / 4)),
)
kinds = st.sampled_from(["Taxi", "Bus"])
asks = st.tuples(st.one_of(st.none(), kinds), st.lists(clauses, max_size=3), places)
events = st.lists(
    st.fixed_dictionaries(
        {
            "type": kinds,
            "name": st.one_of(st.none(), words),
            "state": st.one_of(st.none(), words),
            "speed": st.one_of(st.none(), numbers.map(float)),
            "moving": st.one_of(st.none(), st.booleans()),
            "x": coordinates,
            "y": coordinates,
        }
    ),
    max_size=6,
)


def as_place(place):
    if place is None:
        return None
    kind, x, y, *rest = place
    if kind == "circle":
        return wb.circle(x, y, rest[0])
    if kind == "box":
        return wb.box(x, y, *rest)
    return f"POLYGON (({x} {y}, {x + rest[0]} {y}, {x} {y + rest[0]}, {x} {y}))"


def lies_in(event, place):
    if place is None:
        return True
    kind, x, y, *rest = place
    dx, dy = event["x"] - x, event["y"] - y
    if kind == "circle":
        return dx**2 + dy**2 <= rest[0] ** 2
    if kind == "box":
        return min(x, rest[0]) <= event["x"] <= max(x, rest[0]) and min(y, rest[1]) <= event["y"] <= max(
            y, rest[1]
        )
    return dx >= 0 and dy >= 0 and dx + dy <= rest[0]


def meets(event, ask):
    kind, conditions, place = ask
    of_type = kind is None or event["type"] == kind
    return of_type and lies_in(event, place) and all(holds(event) for _, holds in conditions)


def add(subs, name, ask):
    kind, conditions, place = ask
    where = " and ".join(text for text, _ in conditions) or None
    subs.add(name, where=where, type=kind, place=as_place(place))


@given(data=st.data())
def test_matches_are_those_of_trying_each_against_each(data):
    subs, there = wb.Subscriptions(), {}
    for turn in range(data.draw(st.integers(1, 3))):
        for place, ask in enumerate(data.draw(st.lists(asks, max_size=8))):
            name = f"é{turn}.{place}"
            add(subs, name, ask)
            there[name] = ask
        gone = data.draw(st.sets(st.sampled_from(sorted(there)))) if there else set()
        subs.remove(sorted(gone))
        there = {name: ask for name, ask in there.items() if name not in gone}
        assert len(subs) == len(there)
        batch = data.draw(events)
        expected = {
            (row, name) for row, e in enumerate(batch) for name, ask in there.items() if meets(e, ask)
        }
        assert found(subs, batch) == expected


@given(seed=st.integers(0, 2**32), count=st.integers(1, 300))
def test_tables_of_subscriptions_are_matched_as_their_rows_one_by_one(seed, count):
    random = np.random.default_rng(seed)
    x, y = random.integers(-40, 41, (2, count)) / 4
    radius = random.integers(0, 30, count) / 4
    states = random.choice(["a", "b", "c"], count).tolist()
    lines = [int(n) if n else None for n in random.integers(0, 5, count)]
    table = pa.table(
        {"id": np.arange(count), "x": x, "y": y, "radius_m": radius, "state": states, "line": lines}
    )
    subs = wb.Subscriptions()
    subs.add_many(table, type="Bus")
    gone = set(random.choice(count, count // 3, replace=False).tolist())
    subs.remove(sorted(gone))
    ex, ey = random.integers(-60, 61, (2, 40)) / 4
    batch = [
        {
            "type": random.choice(["Bus", "Taxi"]),
            "state": random.choice(["a", "b"]),
            "line": int(random.integers(1, 5)),
            "x": float(ex[n]),
            "y": float(ey[n]),
        }
        for n in range(40)
    ]
    expected = {
        (row, n)
        for row, e in enumerate(batch)
        for n in range(count)
        if n not in gone
        and e["type"] == "Bus"
        and e["state"] == states[n]
        and lines[n] in (None, e["line"])
        and (e["x"] - x[n]) ** 2 + (e["y"] - y[n]) ** 2 <= radius[n] ** 2
    }
    assert found(subs, batch) == expected


# Small ones.

TAXI = {"type": "Taxi", "state": "free", "speed": 40, "name": "zzabcde", "x": 100.0, "y": 0.0}


def matching(events=(TAXI,), coordinates="plane", **subscription):
    """Whether the first event meets a single subscription."""
    subs = wb.Subscriptions(coordinates=coordinates)
    subs.add("s", **subscription)
    return (0, "s") in found(subs, list(events))


def test_a_subscription_without_any_condition_gets_every_event():
    subs = wb.Subscriptions()
    subs.add(7)
    assert subs.match([TAXI, {"type": "Bus"}]).to_pydict() == {"event_row": [0, 1], "subscription": [7, 7]}


def test_one_event_of_the_language_is_a_subscription():
    assert matching(pattern="Taxi(state = 'free', this in box(0, -1, 200, 1))")
    assert not matching(pattern="Bus(state = 'free', this in box(0, -1, 200, 1))")
    assert not matching(pattern="Taxi(state = 'free', this in box(0, 1, 200, 2))")
    assert matching(pattern="Taxi", where={"speed": 40.0}, place=wb.circle(0, 0, 100))


def test_whole_numbers_equal_floats_but_not_truths():
    assert matching(where={"speed": 40.0})
    assert matching([{"type": "T", "v": 1.0}], where={"v": 1})
    assert not matching([{"type": "T", "v": 1.0}], where={"v": True})
    large = 2**60 + 1
    assert matching([{"type": "T", "v": large}], where={"v": large})
    assert not matching([{"type": "T", "v": large}], where={"v": large - 1})


def test_times_and_coordinates_can_be_compared():
    from datetime import UTC, datetime

    seen = [{"type": "T", "seen": datetime(2024, 5, 1, 12, tzinfo=UTC), "x": 5.0, "y": 1.0}]
    assert matching(seen, where="seen >= timestamp '2024-05-01T12:00:00Z' and x > 4 and y = 1")
    assert not matching(seen, where="seen > timestamp '2024-05-01T12:00:00Z'")


def test_values_of_another_type_and_missing_columns_do_not_match():
    assert not matching(where="speed = 'fast'")
    assert not matching(where="state > 3")
    assert not matching(where="nothing != 3")


def test_a_value_that_few_ask_for_is_a_better_way_than_a_place_that_all_share():
    subs = wb.Subscriptions()
    count = 200
    table = pa.table({"id": np.arange(count), "car": [f"car {n}" for n in range(count)]})
    subs.add_many(table.append_column("x", pa.array([0.0] * count)).append_column(
        "y", pa.array([0.0] * count)).append_column("radius_m", pa.array([9.0] * count)))  # fmt: skip
    assert len(subs._index._grid) == 0, "all of them should be found by their car"
    cars = [{"type": "P", "car": "car 17", "x": x, "y": 0.0} for x in (0.0, 9.0, 9.25)]
    assert found(subs, cars) == {(0, 17), (1, 17)}
    subs.remove(17)
    assert found(subs, cars) == set()


def test_polygons_of_events_count_by_their_centre_and_others_lie_nowhere():
    shapes = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POINT (1.5 1)", None, "no shape"]
    rows = [{"type": "T", "geometry": shape} for shape in shapes]
    subs = wb.Subscriptions()
    subs.add("s", place=wb.circle(1, 1, 0.25))
    assert found(subs, rows) == {(0, "s")}
    assert found(subs, pa.table({"type": ["T"], "geometry": [shapely.to_wkb(shapely.Point(1, 1.25))]})) == {
        (0, "s")
    }


def test_events_that_are_out_of_range_lie_nowhere():
    subs = wb.Subscriptions(coordinates="lonlat")
    subs.add("pole", place=wb.circle(0, 90, 500_000))
    subs.add("all")
    rows = [{"lon": lon, "lat": lat} for lon, lat in ((77.0, 89.0), (0.0, 91.0), (200.0, 89.0), (None, None))]
    assert found(subs, rows) == {(0, "pole"), *((n, "all") for n in range(4))}


def test_a_circle_reaches_across_the_date_line():
    subs = wb.Subscriptions(coordinates="lonlat")
    subs.add("fiji", type="Ship", place=wb.circle(179.9, -17, 50_000))
    ships = pa.table({"type": ["Ship"] * 4, "lon": [-179.9, 179.9, 180.0, -179.0], "lat": [-17.0] * 4})
    assert found(subs, ships) == {(0, "fiji"), (1, "fiji"), (2, "fiji")}


def test_rows_are_counted_through_all_batches(monkeypatch):
    monkeypatch.setattr("whimbrel.subscriptions.index._ROWS", 3)
    subs = wb.Subscriptions()
    subs.add(1, place=wb.box(0, 0, 5, 5))
    rows = pa.table({"x": np.arange(10.0), "y": np.zeros(10)})
    assert subs.match(rows)["event_row"].to_pylist() == [0, 1, 2, 3, 4, 5]


def test_nothing_to_match_gives_an_empty_table():
    subs = wb.Subscriptions()
    assert subs.match([]).num_rows == 0
    assert subs.match(pa.table({"x": [1.0], "y": [1.0]})).to_pydict() == {"event_row": [], "subscription": []}
    subs.add_many([])
    assert len(subs) == 0
    assert subs.match([]).schema.names == ["event_row", "subscription"]


def test_polygons_and_boxes_are_added_in_bulk():
    subs = wb.Subscriptions()
    square = shapely.box(0, 0, 4, 4)
    subs.add_polygons(["p", "reversed", "wkt"], [square, square.reverse(), square.wkt], where="v > 3")
    subs.add_boxes(["b"], [[0, 0, 4, 4]])
    rows = [{"x": 4.0, "y": 4.0, "v": 4}, {"x": 4.0, "y": 4.0, "v": 3}]
    assert found(subs, rows) == {(0, "p"), (0, "reversed"), (0, "wkt"), (0, "b"), (1, "b")}


def test_it_tells_what_it_holds():
    subs = wb.Subscriptions()
    subs.add_circles(["a", "b"], [0, 1], [0, 1], 5)
    assert repr(subs) == "<2 subscriptions, coordinates plane>"
    assert "a" in subs
    assert "c" not in subs
    assert 1 not in subs
    assert None not in subs
    assert subs.nbytes > 0


def test_shared_conditions_and_numbers_are_used_again():
    subs = wb.Subscriptions()
    for _ in range(3):
        subs.add_circles(
            range(500), np.zeros(500), np.zeros(500), 1.0, type="Taxi", where="contains(name, 'abc')"
        )
        words = subs._index._lists.counters[0]
        subs.remove(range(500))
        assert len(subs) == 0
        assert subs._index._packed._shared == {}
        subs.add(1, where="contains(name, 'abcd')")
        subs.remove(1)
    assert subs._index._lists.counters[0] == words, "blocks were not used again"
    assert subs._index._numbers.next == 500


# What is wrong is refused, and changes nothing.

BOWTIE = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"
BAD_PLACES = [
    (
        wb.circle(0, float("nan"), 3),
        "subscription 'new': its place has the coordinates 0.0, nan; give finite",
    ),
    (wb.circle(0, 0, -1), "the radius of its circle is -1.0; give metres, 0 or more"),
    (wb.circle(0, 0, float("inf")), "the radius of its circle is inf"),
    (wb.circle(1e300, 0, 1), "stay within"),
    (wb.box(0, 0, 1, float("inf")), "give finite numbers"),
    (BOWTIE, "its polygon is not simple .*give the corners in the order of its border"),
    ("POLYGON EMPTY", "its polygon is empty; give its corners"),
    ("LINESTRING (0 0, 1 1)", "its place is a LineString; give a polygon, circle or box"),
    ("POLYGON ((0 0, 1", "is not a geometry; write WKT"),
    (b"\x00", "is not a geometry"),
    ((1, 2, 3), "a tuple is no place; give wb.circle"),
]


@pytest.mark.parametrize(("place", "message"), BAD_PLACES)
def test_bad_places_are_refused(place, message):
    subs = wb.Subscriptions()
    with pytest.raises(wb.DataError, match=message):
        subs.add("new", place=place)
    assert len(subs) == 0


BAD_TEXTS = [
    ({"pattern": "Taxi(a > b)"}, "'a > b' cannot be part of a subscription\nhint: a subscription is made of"),
    ({"where": "a = 1 or b = 2"}, "cannot be part of a subscription"),
    ({"where": "this not in box(0, 0, 1, 1)"}, "cannot be part of a subscription"),
    ({"where": "a = null"}, "cannot be part of a subscription"),
    ({"where": "a < 'text'"}, "cannot be part of a subscription"),
    ({"where": "a in (1, 'b')"}, "cannot be part of a subscription"),
    ({"pattern": "A then B within 3 s"}, "'A then B within 3 s' is not about a single event"),
    ({"pattern": "A or B"}, "is not about a single event"),
    ({"where": "start > timestamp '2024-05-01T12:00:00Z'"}, "a subscription does not read 'start'"),
    ({"where": "speed >"}, "line 1, col 8.*\n  speed >\n         \\^"),
    ({"pattern": "Taxi(speed > )"}, "line 1, col 14"),
]


@pytest.mark.parametrize(("asked", "message"), BAD_TEXTS)
def test_texts_that_ask_too_much_are_refused(asked, message):
    subs = wb.Subscriptions()
    with pytest.raises(wb.QueryError, match=message):
        subs.add("new", **asked)
    assert len(subs) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda subs: subs.add("a"), "subscription 'a' is already there; remove it first"),
        (lambda subs: subs.add(3), "the ids so far are texts, these are whole numbers; use one kind"),
        (lambda subs: subs.add(None), "a subscription has no id; give a text or a whole number"),
        (lambda subs: subs.add(1.5), "ids are texts or whole numbers, not double"),
        (lambda subs: subs.add("x" * 5_000), "an id has 5,000 bytes; the limit is 1,000"),
        (lambda subs: subs.add_circles(["b", "c", "b"], 0, 0, 1), "subscription 'b' is given twice"),
        (lambda subs: subs.add_circles(["b", "c"], [1, 2, 3], 0, 1), "'x' must be 2 numbers"),
        (lambda subs: subs.add_circles(["b"], ["x"], 0, 1), "'x' must be 1 numbers"),
        (lambda subs: subs.add_boxes(["b"], [[0, 0, 1]]), "1 ids do not go with boxes of the shape"),
        (lambda subs: subs.add_boxes(["b"], [[1, 0, 0, 1]]), "its box ends before it begins"),
        (lambda subs: subs.add_polygons(["b"], []), "1 ids do not go with 0 polygons"),
        (lambda subs: subs.add_polygons(["b", "c"], [shapely.box(0, 0, 1, 1), BOWTIE]), "subscription 'c'"),
        (lambda subs: subs.remove("z"), "there is no subscription 'z'; nothing was removed"),
        (lambda subs: subs.remove(["a", "z"]), "there is no subscription 'z'"),
        (lambda subs: subs.remove(["a", "a"]), "a subscription is named twice"),
        (lambda subs: subs.remove(1), "there is no subscription 1"),
        (lambda subs: subs.add("b", where={"v": None}), "attribute 'v' cannot equal a NoneType"),
        (lambda subs: subs.add("b", where={"v": float("nan")}), "attribute 'v' cannot equal nan"),
        (
            lambda subs: subs.add("b", "A(this in box(0, 0, 1, 1))", place=wb.circle(0, 0, 1)),
            "a subscription has one place",
        ),
        (
            lambda subs: subs.add("b", where="this in box(0, 0, 1, 1), this in box(0, 0, 2, 2)"),
            "a subscription has one place; join the two",
        ),
        (
            lambda subs: subs.add_circles(["b"], 0, 0, 1, where="this in box(0, 0, 1, 1)"),
            "leave the region out of 'where'",
        ),
        (lambda subs: subs.add_many([{"name": "b"}]), "no column 'id'"),
        (lambda subs: subs.add_many([{"id": "b", "x": 1.0}]), "the columns x make no place"),
        (lambda subs: subs.add_many([{"id": "b", "lon": 1.0, "lat": 1.0, "radius_m": 1.0}]), "make no place"),
        (lambda subs: subs.add_many([{"id": "b", "start": 1.0}]), "cannot ask for 'start' in a column"),
        (lambda subs: subs.add_many([{"id": None, "v": 1}]), "a subscription has no id"),
        (lambda subs: subs.add_many([{"id": "b", "geometry": None}]), "is no place"),
        (
            lambda subs: subs.match([{"lon": 3.0, "lat": 3.0}]),
            "the events have lonlat coordinates, the subscr",
        ),
        (lambda subs: subs.match(3), "is no table"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(change, message):
    subs = wb.Subscriptions()
    subs.add("a", place=wb.circle(0, 0, 1))
    with pytest.raises(wb.DataError, match=message):
        change(subs)
    assert found(subs, [{"x": 0.0, "y": 0.0}]) == {(0, "a")}
    assert len(subs) == 1


def test_coordinates_are_checked():
    with pytest.raises(wb.DataError, match="'mars' are no coordinates; use 'plane' or 'lonlat'"):
        wb.Subscriptions(coordinates="mars")
    subs = wb.Subscriptions(coordinates="lonlat")
    with pytest.raises(wb.DataError, match=r"500.0, 4.0 is no longitude and latitude; metres need"):
        subs.add(1, place=wb.circle(500, 4, 1))
    with pytest.raises(wb.DataError, match="the events have plane coordinates"):
        subs.match([{"x": 3.0, "y": 3.0}])


def test_a_value_that_many_ask_for_leads_to_nobody_who_has_a_place():
    subs = wb.Subscriptions()
    for number in range(10):
        subs.add(number, type="Taxi", where={"state": "free"}, place=wb.circle(number, 0, 0.5))
    assert len(subs._index._grid) == 10
    assert subs._index._listed == 0
    subs.add(10, type="Taxi", where={"state": "free"})
    assert found(subs, [TAXI | {"x": 3.0}, TAXI]) == {(0, 3), (0, 10), (1, 10)}
    subs.remove([3, 10])
    assert found(subs, [TAXI | {"x": 3.0}, TAXI]) == set()
    subs.remove([0, 1, 2, *range(4, 10)])
    assert len(subs._index._grid) == len(subs) == 0
