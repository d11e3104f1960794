"""Files as they are: columns with other names, times of other forms, and what is said about them."""

from __future__ import annotations

import gzip
import json

import pytest
from tests.cli.conftest import Folder

SHIPS = """\
MMSI,BaseDateTime,LAT,LON,SOG,VesselName
219000001,2022-01-03T00:00:00,29.9,32.5,7.5,ONE
219000002,2022-01-03T00:01:00,30.2,32.5,1.5,TWO
219000001,2022-01-03T00:02:00,30.3,32.5,8.5,ONE
"""
IN_CANAL = """\
coordinates lonlat
region Canal = box(32, 30, 33, 31)
define In
  detect Ship enters Canal
  group by mmsi
"""


@pytest.fixture
def ships(folder: Folder) -> Folder:
    folder.write("ships.csv", SHIPS)
    folder.write("in.wbl", IN_CANAL)
    folder.write("fast.wbl", "define Fast detect Ship(sog > 5)\n")
    return folder


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_usual_names_are_known_and_told(ships: Folder) -> None:
    result = ships.run("detect", "in.wbl", "--events", "ships.csv")
    assert result.exit_code == 0
    (found,) = lines(result.stdout)
    assert found["attributes"]["mmsi"] == 219000001  # type: ignore[index]
    assert result.stderr.splitlines() == [
        "3 events read, 1 detection, 0 late, 0 duplicate, 0 rejected",
        (
            "columns: time from 'BaseDateTime', lon from 'LON', lat from 'LAT', source from 'MMSI', "
            "mmsi from 'MMSI'"
        ),
        "type is 'Ship' for all events, the only one that the query reads",
    ]


def test_quiet_says_nothing(ships: Folder) -> None:
    assert ships.run("detect", "in.wbl", "--events", "ships.csv", "--quiet").stderr == ""


def test_other_names_give_the_same_detections(ships: Folder) -> None:
    usual = ships.run("detect", "in.wbl", "--events", "ships.csv").stdout
    odd = SHIPS.replace("MMSI,BaseDateTime,LAT,LON", "ship,seen at,north,east")
    ships.write("odd.csv", odd)
    names = {"mmsi": "ship", "source": "ship", "time": "seen at", "lon": "east", "lat": "north"}
    options = [text for name, column in names.items() for text in ("--column", f"{name}={column}")]
    assert ships.run("detect", "in.wbl", "--events", "odd.csv", *options).stdout == usual
    clause = "\n  from columns mmsi = ship, source = ship, time = 'seen at', lon = east, lat = north\n"
    ships.write("own.wbl", "event Ship(mmsi: int)" + clause + IN_CANAL)
    assert ships.run("detect", "own.wbl", "--events", "odd.csv").stdout == usual
    assert ships.run("detect", "own.wbl", "--events", "ships.csv").stdout == usual


def test_a_map_is_drawn_of_the_same_columns(ships: Folder) -> None:
    ships.write("odd.csv", SHIPS.replace("BaseDateTime", "seen at"))
    clause = "event Ship(mmsi: int)\n  from columns time = 'seen at'\n"
    ships.write("own.wbl", clause + IN_CANAL)
    assert ships.run("detect", "own.wbl", "--events", "odd.csv", "--map", "map.html").exit_code == 0
    ships.run("detect", "in.wbl", "--events", "ships.csv", "--map", "usual.html")
    assert ships.read("map.html") == ships.read("usual.html")


def test_every_command_that_reads_events_takes_columns(ships: Folder) -> None:
    ships.write("odd.csv", SHIPS.replace("BaseDateTime", "seen at"))
    column = ("--column", "time=seen at")
    for command in ("detect", "backtest", "why"):
        refused = ships.run(command, "fast.wbl", "--events", "odd.csv")
        assert refused.exit_code == 1
        assert "no column says when" in refused.stderr
        assert ships.run(command, "fast.wbl", "--events", "odd.csv", *column).exit_code == 0
    ships.run("store", "create", "kept")
    added = ships.run("store", "add", "kept", "odd.csv", *column, "--type", "Ship")
    assert "columns: time from 'seen at', lon from 'LON'" in added.stderr
    ships.write("few.wbl", "define Fast(knots) detect Ship as s where s.sog > 5 assign knots = s.sog\n")
    for query in ("fast.wbl", "few.wbl"):
        assert len(lines(ships.run("store", "detect", "kept", query).stdout)) == 2


def test_a_plan_and_a_simulation_read_the_same_columns(ships: Folder) -> None:
    ships.write("odd.csv", "id," + SHIPS.replace("BaseDateTime", "seen at").replace("\n219", "\nx,219"))
    rows = ships.read("odd.csv").splitlines()
    ships.write("odd.csv", "\n".join([rows[0], *(f"e{n}{row[1:]}" for n, row in enumerate(rows[1:]))]))
    ships.write(
        "site.yaml",
        "brokers: [{name: gate}, {name: cloud}]\n"
        "links: [{between: [gate, cloud], bandwidth: 10 Mbit/s, latency: 20 ms}]\n"
        "sources: [{name: radar, type: Ship, at: gate}]\n"
        "consumers: [{name: guard, at: cloud, wants: [Fast]}]\n",
    )
    common = ("--network", "site.yaml", "--events", "odd.csv", "--column", "time=seen at")
    planned = ships.run("plan", "fast.wbl", *common, "--out", "plan.json")
    assert planned.exit_code == 0, planned.stderr
    simulated = ships.run("simulate", "--query", "fast.wbl", "--plan", "plan.json", *common)
    assert simulated.exit_code == 0, simulated.stderr


def test_a_column_that_is_not_there_is_named(ships: Folder) -> None:
    result = ships.run("detect", "fast.wbl", "--events", "ships.csv", "--column", "time=BaseDatetime")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: ships.csv: no column is named 'BaseDatetime', to be used as 'time'; "
        "did you mean 'BaseDateTime'?\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "time"), "'time' is not NAME=COLUMN; write for example time=timestamp"),
        (("--time-format", "%H:%M"), "does not say year, month and day"),
        (("--time-zone", "Mars/Base"), "'Mars/Base' is no time zone that is known here"),
        (("--time-unit", "min"), "'min' is not one of"),
    ],
)
def test_wrong_usage_has_status_2(ships: Folder, options: tuple[str, ...], message: str) -> None:
    result = ships.run("detect", "fast.wbl", "--events", "ships.csv", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_type_that_the_query_does_not_read_is_told(ships: Folder) -> None:
    ships.write("cargo.csv", SHIPS.replace("VesselName", "type"))
    result = ships.run("detect", "fast.wbl", "--events", "cargo.csv")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == (
        "warning: the query reads events of type Ship, and column 'type' has none of them (it has ONE, TWO); "
        "if it says something else, give it another name and all events one type: "
        "--column ship_type=type --type Ship"
    )
    result = ships.run(
        "detect", "fast.wbl", "--events", "cargo.csv", "--column", "ship_type=type", "--type", "Ship"
    )
    assert len(lines(result.stdout)) == 2


def test_which_type_is_asked_where_a_query_reads_several(ships: Folder) -> None:
    result = ships.run("detect", "late.wbl", "--events", "ships.csv")
    assert result.exit_code == 1
    assert "say it: --type Arrive (the query reads Arrive, Leave)" in result.stderr


def test_ids_that_name_the_movers_are_told(ships: Folder) -> None:
    rows = "".join(f"{n % 2},{n},9\n" for n in range(10))
    ships.write("ids.csv", "id,time,sog\n" + rows)
    result = ships.run("detect", "fast.wbl", "--events", "ids.csv")
    assert "10 events read, 2 detections, 0 late, 8 duplicate" in result.stderr
    assert "does column 'id' name who moves, and not the event? Then say --column source=id" in result.stderr
    result = ships.run("detect", "fast.wbl", "--events", "ids.csv", "--column", "source=id")
    assert len(lines(result.stdout)) == 10


def test_swapped_coordinates_that_are_out_of_range_are_told(ships: Folder) -> None:
    ships.write("swapped.csv", "time,lat,lon,sog\n0,121.5,31.2,9\n1,121.6,31.3,9\n2,31.2,121.5,9\n")
    result = ships.run("detect", "fast.wbl", "--events", "swapped.csv")
    assert result.exit_code == 0
    assert "3 events read, 1 detection, 0 late, 0 duplicate, 2 rejected" in result.stderr
    assert "2 x lat is out of range, and would fit as lon" in result.stderr
    assert (
        "warning: 2 rows were rejected whose longitude and latitude look swapped: --column" in result.stderr
    )


def test_swapped_coordinates_that_miss_all_regions_are_told(ships: Folder) -> None:
    swapped = SHIPS.replace("LAT,LON", "lng,lat")
    ships.write("swapped.csv", swapped)
    result = ships.run("detect", "in.wbl", "--events", "swapped.csv")
    assert result.stderr.splitlines()[-1] == (
        "warning: all regions of the query lie outside the data, and would lie inside if longitudes and "
        "latitudes were swapped: --column lon=lat --column lat=lng swaps them"
    )
    swap = ("--column", "lon=lat", "--column", "lat=lng")
    result = ships.run("detect", "in.wbl", "--events", "swapped.csv", *swap)
    assert len(lines(result.stdout)) == 1
    assert "warning" not in result.stderr


def test_times_in_a_wrong_unit_are_told(ships: Folder) -> None:
    ships.write("times.csv", "time,sog\n1641168000,9\n1641168060,9\n")
    result = ships.run("detect", "fast.wbl", "--events", "times.csv", "--time-unit", "us")
    assert "warning: all times lie in 1970: are the numbers no microseconds?" in result.stderr
    ships.write("times.csv", "time,sog\n1641168000000,9\n1641168060000,9\n")
    result = ships.run("detect", "fast.wbl", "--events", "times.csv", "--time-unit", "s")
    assert "2 x time is out of range" in result.stderr
    assert "leave --time-unit out to have the unit told by their size" in result.stderr
    result = ships.run("detect", "fast.wbl", "--events", "times.csv")
    assert "time in milliseconds, by the size of its numbers" in result.stderr
    assert next(row["start"] for row in lines(result.stdout)) == "2022-01-03T00:00:00.000000Z"


def test_local_times_with_the_day_first(ships: Folder) -> None:
    ships.write("local.csv", "time,sog\n03/01/2022 01:00,9\n")
    refused = ships.run("detect", "fast.wbl", "--events", "local.csv")
    assert refused.exit_code == 1
    assert "time may begin with the day or the month: '03/01/2022 01:00'; say --day-first" in refused.stderr
    options = ("--day-first", "--time-zone", "Europe/Berlin")
    (found,) = lines(ships.run("detect", "fast.wbl", "--events", "local.csv", *options).stdout)
    assert found["start"] == "2022-01-03T00:00:00.000000Z"


def test_names_are_the_same_in_every_format(ships: Folder) -> None:
    rows = [
        dict(zip(SHIPS.split("\n", maxsplit=1)[0].split(","), row.split(","), strict=True))
        for row in SHIPS.split()[1:]
    ]
    for row in rows:
        row.update({name: float(row[name]) for name in ("LAT", "LON", "SOG")})  # type: ignore[dict-item]
        row["MMSI"] = int(row["MMSI"])  # type: ignore[assignment]
    ships.write("ships.jsonl", "\n".join(json.dumps(row) for row in rows))
    (ships.path / "ships.csv.gz").write_bytes(gzip.compress(SHIPS.encode()))
    expected = ships.run("detect", "in.wbl", "--events", "ships.csv").stdout
    for name in ("ships.jsonl", "ships.csv.gz"):
        assert ships.run("detect", "in.wbl", "--events", name).stdout == expected


def test_files_may_name_their_columns_differently(ships: Folder) -> None:
    ships.write("more.csv", "vessel_id,timestamp,latitude,longitude,sog\nx,1641168180,30.5,32.5,9\n")
    result = ships.run("detect", "fast.wbl", "--events", "ships.csv", "more.csv")
    assert result.exit_code == 0, result.stderr
    assert len(lines(result.stdout)) == 3


# -- date and time in two columns --------------------------------------------------------------------------

TWO = SHIPS.replace("BaseDateTime", "date,clock").replace("T00:", ",00:")


def test_date_and_time_may_stand_in_two_columns(ships: Folder) -> None:
    expected = ships.run("detect", "in.wbl", "--events", "ships.csv").stdout
    ships.write("two.csv", TWO)
    result = ships.run("detect", "in.wbl", "--events", "two.csv", "--column", "time=date+clock")
    assert result.stdout == expected
    assert "columns: time from 'date' and 'clock', lon from 'LON', lat from 'LAT'" in result.stderr
    ships.write("own.wbl", "event Ship(mmsi: int)\n  from columns time = date + clock\n" + IN_CANAL)
    assert ships.run("detect", "own.wbl", "--events", "two.csv").stdout == expected
    assert ships.run("detect", "own.wbl", "--events", "ships.csv").stdout == expected
    rows = [dict(zip(TWO.split()[0].split(","), line.split(","), strict=True)) for line in TWO.split()[1:]]
    for row in rows:
        row.update({name: float(row[name]) for name in ("LAT", "LON", "SOG")})  # type: ignore[dict-item]
        row["MMSI"] = int(row["MMSI"])  # type: ignore[assignment]
    ships.write("two.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert ships.run("detect", "own.wbl", "--events", "two.jsonl").stdout == expected


def test_numbers_keep_the_zeros_that_they_were_written_with(ships: Folder) -> None:
    rows = "20220103,000000,9\n20220103,001530,9\n20220103,120000,9\n"
    ships.write("digits.csv", "day,clock,sog\n" + rows)
    how = ("--column", "time=day+clock", "--time-format", "%Y%m%d %H%M%S")
    result = ships.run("detect", "fast.wbl", "--events", "digits.csv", *how)
    assert [row["start"] for row in lines(result.stdout)] == [
        "2022-01-03T00:00:00.000000Z", "2022-01-03T00:15:30.000000Z", "2022-01-03T12:00:00.000000Z",
    ]  # fmt: skip
    result = ships.run("detect", "fast.wbl", "--events", "digits.csv", *how[:2])
    assert result.exit_code == 1
    assert "digits.csv: time is made of 'day' and 'clock', and 'day' holds whole numbers" in result.stderr
    assert "say how they were written, with a blank between the columns: --time-format" in result.stderr


def test_a_missing_one_of_two_columns_is_named(ships: Folder) -> None:
    ships.write("two.csv", TWO)
    result = ships.run("detect", "fast.wbl", "--events", "two.csv", "--column", "time=date+clok")
    assert result.exit_code == 1
    missing = "no column is named 'clok', which with 'date' would be 'time'; did you mean 'clock'?"
    assert result.stderr == f"error: two.csv: {missing}\n"
    ships.write(
        "own.wbl", "event Ship(sog: float)\n  from columns time = date + hour\ndefine F detect Ship\n"
    )
    result = ships.run("detect", "own.wbl", "--events", "two.csv")
    assert result.exit_code == 1
    assert "no column is named 'hour', which with 'date' would be 'time'" in result.stderr


def test_rows_without_one_of_two_columns_are_rejected(ships: Folder) -> None:
    ships.write("two.csv", "date,clock,sog\n2022-01-03,,9\n,10:00,9\n2022-01-03,ten,9\n2022-01-03,10:00,9\n")
    result = ships.run("detect", "fast.wbl", "--events", "two.csv", "--column", "time=date+clock")
    assert len(lines(result.stdout)) == 1
    assert "2 x time is missing" in result.stderr
    assert "1 x time is not a readable time" in result.stderr
    rejected = lines(ships.read("two.rejected.jsonl"))
    assert rejected[2]["event"] == '{"date": "2022-01-03", "clock": "ten", "sog": 9}'
