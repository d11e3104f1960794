"""Times as people write them: numbers of any unit, texts of many forms, local times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.model.batch import Normalised, normalise
from whimbrel.model.reading import Reading
from whimbrel.model.schema import EventSchema, Type
from whimbrel.model.times import TimeReading

MIDNIGHT = int(datetime(2022, 1, 3, tzinfo=UTC).timestamp()) * 1_000_000


def read(times: Any, **how: Any) -> Normalised:
    column = times if isinstance(times, pa.Array) else pa.array(times)
    return normalise(pa.record_batch({"time": column}), reading=Reading.of(default_type="a", **how))


def instants(times: Any, **how: Any) -> list[int]:
    found = read(times, **how)
    assert found.rejected.num_rows == 0, found.rejected.to_pylist()
    return [int(each) for each in found.events["start"].to_pylist()]


@pytest.mark.parametrize(
    "text",
    [
        "2022-01-03",
        "2022-01-03 00:00",
        "2022-01-03 00:00:00",
        "2022-01-03T00:00:00.000",
        "2022-01-03T00:00:00Z",
        "2022-01-03 00:00:00 UTC",
        "2022-01-03 01:00:00+01:00",
        "2022-01-03 01:00:00 +0100",
        "2022/01/03 00:00",
        "2022/1/3 0:00",
        "2022.01.03 00:00:00",
        "2022-01-03 00:00:00.123456789"[:-9] + "000000000",
        " 2022-01-03 00:00:00 ",
    ],
)
def test_usual_texts_are_read_without_being_told(text: str) -> None:
    assert instants([text]) == [MIDNIGHT]
    assert instants([text] * 100) == [MIDNIGHT] * 100
    assert instants([text, "2022-01-03T00:00:00Z", "1641168000"]) == [MIDNIGHT] * 3


@pytest.mark.parametrize(
    ("number", "unit"),
    [(1_641_168_000, "s"), (1_641_168_000_000, "ms"), (MIDNIGHT, "us"), (MIDNIGHT * 1_000, "ns")],
)
def test_the_size_of_a_number_tells_its_unit(number: int, unit: str) -> None:
    assert instants([number]) == instants([float(number)]) == instants([str(number)]) == [MIDNIGHT]
    assert instants([number, 0, None, number][:2]) == [MIDNIGHT, 0]
    assert instants([number], time_unit=unit) == [MIDNIGHT]
    words = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
    notes = (f"time in {words[unit]}, by the size of its numbers",) if unit in words else ()
    assert read([number]).notes == notes
    assert read([number], time_unit=unit).notes == ()


def test_numbers_of_several_sizes_are_asked_about() -> None:
    with pytest.raises(DataError, match=r"look like seconds and milliseconds at once.*--time-unit ms"):
        read([1_641_168_000, 1_641_168_000_000])
    assert instants([1_000, 1_641_168_000_000], time_unit="ms") == [1_000_000, MIDNIGHT]


def test_nanoseconds_are_cut_downwards() -> None:
    assert instants([-1, 1_999], time_unit="ns") == [-1, 1]


@given(st.lists(st.integers(10**11, 10**14 - 1), min_size=1), st.integers(0, 50))
def test_cuts_do_not_change_what_numbers_mean(numbers: list[int], cut: int) -> None:
    parts = [part for part in (numbers[:cut], numbers[cut:]) if part]
    assert instants(numbers) == [each for part in parts for each in instants(part)]


@pytest.mark.parametrize("text", ["03/01/2022 00:00", "3.1.2022", "03-01-2022 0:00:00"])
def test_whether_day_or_month_come_first_is_asked(text: str) -> None:
    with pytest.raises(DataError, match=r"may begin with the day or the month.*--day-first"):
        read([text, text])
    assert instants([text], day_first=True) == [MIDNIGHT]
    march = int(datetime(2022, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert instants([text], day_first=False) == [march]


def test_a_single_row_that_begins_with_the_day_is_rejected_with_the_option() -> None:
    found = read(["03/01/2022", "2022-01-03"])
    assert found.rejected["reason"].to_pylist() == [
        "time may begin with the day or the month (say --day-first or --month-first): '03/01/2022'"
    ]


def test_months_that_there_are_not_are_rejected() -> None:
    found = read(["31/12/2022", "12/31/2022", "31/02/2022"], day_first=True)
    assert found.rejected["row"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%d.%m.%Y %H:%M:%S", "03.01.2022 00:00:00"),
        ("%m/%d/%Y %I:%M:%S %p", "01/03/2022 12:00:00 AM"),
        ("%Y%m%d%H%M", "202201030000"),
        ("%d-%b-%Y %H:%M", "03-Jan-2022 00:00"),
        ("%Y-%m-%d %H:%M:%S.%f", "2022-01-03 00:00:00.000"),
        ("%Y-%m-%d %H:%M:%S%z", "2022-01-03 02:00:00+0200"),
        ("%d.%m.%y", "03.01.22"),
    ],
)
def test_times_are_read_by_a_format(form: str, text: str) -> None:
    assert instants([text, text], time_format=form) == [MIDNIGHT] * 2


def test_whole_numbers_can_be_dates() -> None:
    assert instants([20220103], time_format="%Y%m%d") == [MIDNIGHT]


def test_what_does_not_fit_the_format_is_rejected() -> None:
    found = read(["03.01.2022", "2022-01-03", "31.02.2022", "", None], time_format="%d.%m.%Y")
    assert found.rejected["reason"].to_pylist() == [
        "time is not written as '%d.%m.%Y': '2022-01-03'",
        "time is not written as '%d.%m.%Y': '31.02.2022'",
        "time is missing",
        "time is missing",
    ]


def test_a_declared_time_may_have_the_format_or_another() -> None:
    raw = pa.record_batch({"time": ["03.01.2022", "03.01.2022"], "eta": ["04.01.2022", "2022-01-04"]})
    reading = Reading.of(default_type="a", time_format="%d.%m.%Y")
    found = normalise(raw, schemas={"a": EventSchema("a", {"eta": Type.TIMESTAMP})}, reading=reading)
    assert found.rejected.num_rows == 0
    assert len(set(found.events["eta"].to_pylist())) == 1


def test_local_times_have_a_zone() -> None:
    berlin = {"time_zone": "Europe/Berlin"}
    assert instants(["2022-01-03 01:00:00"], **berlin) == [MIDNIGHT]
    assert instants(["2022-01-03T00:00:00Z"], **berlin) == [MIDNIGHT]
    assert instants(["2022-01-03 01:00:00", "2022-01-03T00:00:00Z"], **berlin) == [MIDNIGHT] * 2
    assert instants(["03.01.2022 01:00"], time_format="%d.%m.%Y %H:%M", **berlin) == [MIDNIGHT]
    assert instants(["03.01.2022 01:00"], day_first=True, **berlin) == [MIDNIGHT]
    naive = pa.array([datetime(2022, 1, 3, 1)], pa.timestamp("ns"))  # noqa: DTZ001 - local on purpose
    assert instants(naive, **berlin) == [MIDNIGHT]
    aware = pa.array([datetime(2022, 1, 3, tzinfo=UTC)])
    assert instants(aware, **berlin) == [MIDNIGHT]
    assert instants([1_641_168_000], **berlin) == [MIDNIGHT]


def test_the_hour_that_comes_twice_is_its_first_and_the_one_that_is_skipped_none() -> None:
    twice, skipped = "2022-10-30 02:30:00", "2022-03-27 02:30:00"
    first = int(datetime(2022, 10, 30, 0, 30, tzinfo=UTC).timestamp()) * 1_000_000
    assert instants([twice], time_zone="Europe/Berlin") == [first]
    reason = "time is skipped by the clocks in Europe/Berlin: "
    found = read([skipped, twice], time_zone="Europe/Berlin")
    assert found.rejected["reason"].to_pylist() == [f"{reason}'{skipped}'"]
    stamps = pa.array(np.array([skipped, twice], "datetime64[us]"))
    found = read(stamps, time_zone="Europe/Berlin")
    assert found.rejected["reason"].to_pylist() == [f"{reason}{skipped}"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unit": "min"}, "time unit 'min' is not known; use one of: s, ms, us, ns"),
        ({"format": "%H:%M"}, "does not say year, month and day"),
        ({"format": "%Q"}, "'%Q' is no time format"),
        ({"zone": "Europe/Berln"}, "'Europe/Berln' is no time zone that is known here"),
    ],
)
def test_wrong_settings_are_errors(settings: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TimeReading(**settings)  # type: ignore[arg-type]


texts = st.sampled_from(
    ["2022-01-03", "2022/1/3 4:05", "03.01.2022", "1641168000000", "x", "2022-03-27 02:30", "1e300", "-5"]
)


@given(st.lists(texts, min_size=1, max_size=80), st.sampled_from([None, "Europe/Berlin"]))
def test_what_a_text_means_does_not_hang_on_its_neighbours(column: list[str], zone: str | None) -> None:
    how = {"time_zone": zone, "day_first": True}
    whole = read(column, **how)
    alone = [read([text], **how) for text in column]
    assert whole.events["start"].to_pylist() == [each["start"].as_py() for one in alone for each in rows(one)]
    assert whole.rejected["reason"].to_pylist() == [
        reason for one in alone for reason in one.rejected["reason"].to_pylist()
    ]


def rows(found: Normalised) -> list[dict[str, pa.Scalar]]:
    return [{"start": each} for each in found.events["start"]]
