"""Which column is what, when the input names its columns in its own way."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.model.batch import normalise
from whimbrel.model.reading import USUAL, Reading, plain_name, resolve
from whimbrel.model.schema import EventSchema, Type


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        (
            ["MMSI", "BaseDateTime", "LAT", "LON", "SOG"],
            {"time": "BaseDateTime", "lon": "LON", "lat": "LAT", "source": "MMSI"},
        ),
        (
            ["# Timestamp", "Type of mobile", "MMSI", "Latitude", "Longitude"],
            {"time": "# Timestamp", "lon": "Longitude", "lat": "Latitude", "source": "MMSI"},
        ),
        (["object_id", "t", "lon", "lat"], {"time": "t", "source": "object_id"}),
        (["icao24", "ts", "lat", "lng"], {"time": "ts", "lon": "lng", "source": "icao24"}),
        (["vehicle_id", "datetime", "x", "y"], {"time": "datetime", "source": "vehicle_id"}),
        (["event_id", "event_type", "time"], {"id": "event_id", "type": "event_type"}),
        (["start_time", "end_time", "wkt"], {"start": "start_time", "end": "end_time", "geometry": "wkt"}),
        (["time", "X", "Y"], {"x": "X", "y": "Y"}),
    ],
)
def test_usual_names_are_taken_without_being_told(columns: list[str], taken: dict[str, str]) -> None:
    assert dict(resolve(columns).taken) == taken


@pytest.mark.parametrize(
    "columns",
    [
        ["time", "timestamp", "lon", "lat", "longitude"],  # the names that events have come first
        ["time", "trip_id", "route_id", "ID", "Type"],  # trips, routes and what may name anything
        ["time", "latitude"],  # a latitude alone is no place
        ["start", "end", "ts"],
    ],
)
def test_other_columns_stay_attributes(columns: list[str]) -> None:
    assert resolve(columns).is_as_it_was


def test_what_is_given_comes_before_all_names() -> None:
    found = resolve(["time", "timestamp", "x", "y"], given={"time": "timestamp"})
    assert found.taken == {"time": "timestamp"}
    assert found.dropped == {"time"}
    assert found.notes == ("column 'time' is left out: time is 'timestamp'",)


def test_one_of_a_pair_is_enough() -> None:
    found = resolve(["time", "Latitude", "gx", "x", "y"], given={"lon": "gx"})
    assert found.taken == {"lon": "gx", "lat": "Latitude"}
    assert found.dropped == {"x", "y"}


def test_longitudes_and_latitudes_can_be_swapped() -> None:
    batch = pa.record_batch({"type": ["a"], "time": [0], "lon": [30.0], "lat": [120.0]})
    reading = Reading.of(columns={"lon": "lat", "lat": "lon"})
    found = normalise(batch, reading=reading).events
    assert (found["x"].to_pylist(), found["y"].to_pylist()) == ([120.0], [30.0])


def test_a_column_with_the_name_of_a_role_can_be_freed() -> None:
    batch = pa.record_batch({"time": [0], "type": ["Cargo"], "id": ["219"]})
    reading = Reading.of(columns={"ship_type": "type", "source": "id"}, default_type="Ship")
    found = normalise(batch, reading=reading).events
    assert found.schema.names == ["type", "source", "start", "end", "ship_type"]
    assert found.to_pylist() == [
        {"type": "Ship", "source": "219", "start": 0, "end": 0, "ship_type": "Cargo"}
    ]


def test_who_moves_stays_an_attribute() -> None:
    batch = pa.record_batch({"type": ["a"], "t": [0], "MMSI": [219000001], "taxi": ["A"]})
    found = normalise(batch).events.to_pylist()[0]
    assert (found["source"], found["MMSI"]) == ("219000001", 219000001)
    given = normalise(batch, reading=Reading.of(columns={"source": "taxi"})).events.to_pylist()[0]
    assert (given["source"], given["taxi"]) == ("A", "A")


def test_of_several_movers_the_surest_is_taken_and_the_others_are_told() -> None:
    found = resolve(["time", "device_id", "mmsi"])
    assert found.taken == {"source": "mmsi"}
    (note,) = found.notes
    assert note.startswith(
        "source is 'mmsi', and could be 'device_id': --column source=device_id (in Python, "
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ["timestamp", "datetime"],
            "time could be column 'timestamp' or 'datetime'; say which: --column t",
        ),
        (
            ["time", "LAT", "Latitude", "lng"],
            "lat could be column 'LAT' or 'Latitude'; say which: --column",
        ),
    ],
)
def test_what_cannot_be_settled_is_asked_for(columns: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        resolve(columns)


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DataError, match="no column is named 'BaseDatetime', to be used as 'time'; did"):
        resolve(["BaseDateTime"], given={"time": "BaseDatetime"})
    with pytest.raises(DataError, match=r"no column is named 'q'.*columns found: a, b"):
        resolve(["a", "b"], given={"time": "q"})


def test_an_error_shows_the_option_with_the_likely_column() -> None:
    batch = pa.record_batch({"type": ["a"], "ais pos timestamp": [0]})
    with pytest.raises(DataError, match=r"no column says when.*--column time='ais pos timestamp'"):
        normalise(batch)
    with pytest.raises(DataError, match=r"columns={'time': 'ais pos timestamp'}"):
        normalise(batch)


def test_an_attribute_that_a_query_reads_is_found_whatever_its_case() -> None:
    found = resolve(["time", "MMSI", "Speed over ground"], read=["mmsi", "speed_over_ground", "depth"])
    assert found.taken == {"source": "MMSI", "mmsi": "MMSI", "speed_over_ground": "Speed over ground"}
    assert resolve(["time", "sog", "SOG"], read=["sog"]).is_as_it_was
    assert resolve(["time", "SOG", "Sog"], read=["sog"]).is_as_it_was  # which of the two?


def test_the_clause_of_a_query_counts_where_its_columns_are() -> None:
    ship = EventSchema("Ship", {"sog": Type.FLOAT}, {"time": "seen", "sog": "speed over ground"})
    reading = Reading.of(default_type="Ship")
    raw = pa.record_batch({"seen": [1], "time": [2], "speed over ground": [3.5]})
    found = normalise(raw, schemas={"Ship": ship}, reading=reading)
    assert found.events.to_pylist() == [{"type": "Ship", "start": 1_000_000, "end": 1_000_000, "sog": 3.5}]
    assert found.notes == ("column 'time' is left out: time is 'seen'",)
    ready = pa.record_batch({"time": [2], "sog": [3.5]})
    assert normalise(ready, schemas={"Ship": ship}, reading=reading).notes == ()


def test_what_is_given_comes_before_the_clause() -> None:
    ship = EventSchema("Ship", {}, {"time": "seen"})
    reading = Reading.of(default_type="Ship", columns={"time": "heard"})
    raw = pa.record_batch({"seen": [1], "heard": [2]})
    found = normalise(raw, schemas={"Ship": ship}, reading=reading)
    assert found.events["start"].to_pylist() == [2_000_000]


def test_a_clause_whose_column_is_missing_is_noted() -> None:
    ship = EventSchema("Ship", {"sog": Type.FLOAT}, {"sog": "speed"})
    found = normalise(
        pa.record_batch({"time": [1]}), schemas={"Ship": ship}, reading=Reading.of(default_type="Ship")
    )
    assert found.notes == ("the query takes 'sog' from 'speed', and there is no such column",)


def test_what_was_conformed_keeps_its_names() -> None:
    schemas = {"a": EventSchema("a", {}, {"lon": "lat", "lat": "lon"})}
    raw = pa.record_batch({"type": ["a"], "time": [0], "lon": [1.0], "lat": [2.0], "timestamp": [5]})
    once = normalise(raw, schemas=schemas).events
    again = normalise(once, schemas=schemas).events
    assert again.equals(once)
    assert once["x"].to_pylist() == [2.0]


def test_the_only_type_that_is_read_is_taken() -> None:
    raw = pa.record_batch({"time": [0]})
    found = normalise(raw, reading=Reading(types=frozenset({"Ship"})))
    assert found.events["type"].to_pylist() == ["Ship"]
    assert found.notes == ("type is 'Ship' for all events, the only one that the query reads",)
    with pytest.raises(DataError, match=r"say it: --type Buoy \(the query reads Buoy, Ship\)"):
        normalise(raw, reading=Reading(types=frozenset({"Ship", "Buoy"})))


names = st.sampled_from(
    [name for usual in USUAL.values() for name in usual] + ["speed", "SOG", "trip_id", "Mmsi", "LAT", "Type"]
)


@given(st.lists(names, unique=True, max_size=8), st.randoms())
def test_the_order_of_the_columns_does_not_matter(columns: list[str], random: object) -> None:
    def settled(given_columns: list[str]) -> object:
        try:
            return dict(resolve(given_columns).taken)
        except DataError as error:
            return str(error)[:12]

    shuffled = list(columns)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert settled(shuffled) == settled(columns)


@given(st.lists(names, unique=True, max_size=8))
def test_settled_names_stay_settled(columns: list[str]) -> None:
    try:
        found = resolve(columns)
    except DataError:
        return
    after = [name for name, _ in found.names(columns)]
    assert len(set(after)) == len(after)
    assert resolve(after).is_as_it_was


@pytest.mark.parametrize(
    ("column", "plain"),
    [("# Timestamp", "timestamp"), ("location-long", "locationlong"), ("t (UTC)", "tutc")],
)
def test_names_are_compared_without_case_and_punctuation(column: str, plain: str) -> None:
    assert plain_name(column) == plain


# -- a time in several columns -----------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["date+clock", "date + clock", ("date", "clock")])
def test_a_time_may_stand_in_several_columns(given: str | tuple[str, ...]) -> None:
    found = resolve(["date", "clock", "v"], given={"time": given})
    assert found.joined == {"time": ("date", "clock")}
    assert found.columns == {"time": "date+clock"}
    assert found.used == {"date", "clock"}
    assert found.names(["date", "clock", "v"]) == [("v", "v")]
    assert str(found) == "time from 'date' and 'clock'"
    assert not found.is_as_it_was


def test_a_column_may_have_a_plus_in_its_name() -> None:
    found = resolve(["a+b", "a", "b"], given={"time": "a+b"})
    assert (found.joined, found.taken) == ({}, {"time": "a+b"})
    found = resolve(["a+b", "c"], given={"time": ("a+b", "c")})
    assert found.joined == {"time": ("a+b", "c")}


def test_the_columns_of_a_time_may_be_called_as_other_things_are() -> None:
    found = resolve(["date", "time", "timestamp", "lon", "lat"], given={"time": ("date", "time")})
    assert found.joined == {"time": ("date", "time")}
    assert [name for name, _ in found.names(["date", "time", "timestamp", "lon", "lat"])] == [
        "timestamp",
        "lon",
        "lat",
    ]
    found = resolve(["day", "begin", "end"], given={"start": "day+begin", "end": "day+end"})
    assert found.joined == {"start": ("day", "begin"), "end": ("day", "end")}
    found = resolve(["day", "begin", "end", "v"], given={"start": "day+begin"})
    assert found.columns == {"start": "day+begin", "end": "end"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"time": "date+clok"}, "no column is named 'clok', which with 'date' would be 'time'; did you"),
        ({"time": ("day", "clock")}, r"no column is named 'day', which with 'clock' would be 'time'"),
        ({"time": ("date", "date")}, "'time' is made of 'date' and 'date': the same column twice"),
        ({"lon": "date+clock"}, "'lon' cannot be made of 'date' and 'clock': only time, start, end may"),
        ({"v": "date+clock"}, "'v' cannot be made of"),
        ({"time": "date+"}, r"no column is named 'date\+', to be used as 'time'"),
    ],
)  # fmt: skip
def test_columns_that_make_no_time_are_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        resolve(["date", "clock"], given=given)


def test_what_the_query_says_of_two_columns_gives_way_to_what_is_there() -> None:
    said = {"time": ("date", "clock")}
    assert resolve(["date", "clock"], said=said).joined == said
    assert resolve(["date", "clock"], said=said, given={"time": "clock"}).joined == {}
    for columns in (["time", "v"], ["time", "date"], ["timestamp", "date"]):
        assert resolve(columns, said=said).joined == {}
    assert resolve(["v", "timestamp"], said=said).notes == (
        "the query takes 'time' from 'date' and 'clock', and there are no such columns",
    )
    with pytest.raises(DataError, match="no column is named 'clock', which with 'date' would be 'time'"):
        resolve(["date", "v"], said=said)


@pytest.mark.parametrize(
    ("parts", "how", "moment"),
    [
        ({"date": ["2024-05-01"], "clock": ["08:00:30"]}, {}, "2024-05-01T08:00:30"),
        ({"date": [" 2024-05-01 "], "clock": ["08:00:30.250 "]}, {}, "2024-05-01T08:00:30.250"),
        ({"date": ["2024-05-01"], "clock": ["08:00:30+02:00"]}, {}, "2024-05-01T06:00:30"),
        ({"date": ["2024-05-01"], "clock": ["08:00"]}, {"time_zone": "Europe/Berlin"}, "2024-05-01T06:00:00"),
        ({"date": ["01/05/2024"], "clock": ["8:00"]}, {"day_first": True}, "2024-05-01T08:00:00"),
        ({"date": [date(2024, 5, 1)], "clock": [time(8, 0, 30, 5)]}, {}, "2024-05-01T08:00:30.000005"),
        ({"date": [datetime(2024, 5, 1, tzinfo=UTC)], "clock": ["08:00:30"]}, {}, "2024-05-01T08:00:30"),
        ({"date": [20240501], "clock": [90500]}, {"time_format": "%Y%m%d %H%M%S"}, "2024-05-01T09:05:00"),
        ({"date": [10524], "clock": [3015]}, {"time_format": "%d%m%y %H%M%S"}, "2024-05-01T00:30:15"),
        ({"date": [10524.0], "clock": [815.0]}, {"time_format": "%d%m%y %H%M"}, "2024-05-01T08:15:00"),
        ({"y": [2024], "m": [5], "d": [1], "h": [8]}, {"time_format": "%Y %m %d %H"}, "2024-05-01T08:00:00"),
    ],
)
def test_times_in_several_columns_are_read(parts: dict[str, list], how: dict, moment: str) -> None:
    batch = pa.RecordBatch.from_pydict({"type": ["A"], **parts, "v": [1]})
    reading = Reading.of(columns={"time": list(parts)}, **how)
    made = normalise(batch, reading=reading)
    assert made.rejected.num_rows == 0
    expected = pa.scalar(moment).cast(pa.timestamp("us")).cast(pa.int64())
    assert made.events.column("end")[0] == expected
    assert made.events.schema.names == ["type", "start", "end", "v"]


def test_rows_without_one_of_the_columns_are_rejected() -> None:
    clocks = pa.array(["08:00", None, "", "  ", "25:00"])
    batch = pa.RecordBatch.from_pydict({"date": pa.array(["2024-05-01"] * 5), "clock": clocks})
    reading = Reading.of(columns={"time": "date+clock"}, default_type="A")
    made = normalise(batch, reading=reading)
    assert made.rejected.column("row").to_pylist() == [1, 2, 3, 4]
    assert made.rejected.column("reason").to_pylist() == [
        *["time is missing"] * 3,
        "time is not a readable time: '2024-05-01 25:00'",
    ]
    assert made.rejected.column("event")[3].as_py() == '{"date": "2024-05-01", "clock": "25:00"}'


def test_whole_numbers_need_a_format() -> None:
    batch = pa.RecordBatch.from_pydict({"type": ["A"], "date": ["2024-05-01"], "clock": [90500]})
    for how in ({}, {"time_format": "%Y-%m-%d"}):
        with pytest.raises(
            DataError, match="'clock' holds whole numbers, which say 90500 for 090500; say how"
        ):
            normalise(batch, reading=Reading.of(columns={"time": "date+clock"}, **how))
    lists = pa.RecordBatch.from_pydict({"type": ["A"], "date": ["2024-05-01"], "clock": [[1]]})
    with pytest.raises(DataError, match="column 'clock' has the type list"):
        normalise(lists, reading=Reading.of(columns={"time": "date+clock"}))


def test_a_list_of_columns_has_names() -> None:
    with pytest.raises(DataError, match=r"the column of 'time' is \['date', 3\]; write its name, or several"):
        Reading.of(columns={"time": ["date", 3]})
    assert Reading.of(columns={"time": ["date"]}).columns == {"time": "date"}
