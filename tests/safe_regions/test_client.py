"""The client reads what the server writes, stays silent only where it may, and stands alone."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.safe_regions.naive import point_at

from whimbrel.safe_regions import MessageError, SafeRegion, SafeRegionFilter, client

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
REGION = SafeRegion(3, "changes", "plane", (1.0, 2.0), (0.0, 0.0, 10.0, 10.0), 2.5, 1_700_000_000.5, 9)
AREA = SafeRegion(1, "changes", "plane", (5.0, 5.0), (0.0, 0.0, 10.0, 10.0))


@st.composite
def regions(draw) -> SafeRegion:
    at = draw(st.none() | st.tuples(NUMBERS, NUMBERS))
    return SafeRegion(
        draw(st.integers(0, 2**64 - 1)),
        draw(st.sampled_from(client.MODES)),
        draw(st.sampled_from(client.COORDINATES)),
        at,
        draw(st.none() | st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)),
        draw(st.none() | NUMBERS) if at else None,
        draw(st.none() | NUMBERS),
        draw(st.none() | st.integers(0, 2**53 - 1)),
    )


@given(regions())
def test_a_region_survives_its_way(region):
    assert client.read_message(region.to_json()) == region
    assert client.read_message(region.to_json().encode()) == region
    assert client.read_message(region.to_bytes()) == region


def test_json_says_what_it_is():
    assert json.loads(REGION.to_json()) == {
        "kind": "whimbrel-safe-region",
        "format": 1,
        "version": 3,
        "mode": "changes",
        "coordinates": "plane",
        "at": [1.0, 2.0],
        "rectangle": [0.0, 0.0, 10.0, 10.0],
        "radius_m": 2.5,
        "expires": 1_700_000_000.5,
        "report": 9,
    }


def test_bytes_are_few():
    assert len(REGION.to_bytes()) == 89
    assert len(SafeRegion(3, "changes", "plane").to_bytes()) == 17


@given(regions(), st.data())
def test_damaged_bytes_are_noticed(region, data):
    message = bytearray(region.to_bytes())
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MessageError):
        client.read_message(bytes(message))


@given(st.binary(max_size=90) | st.binary(max_size=90).map(lambda end: b"WSR\x01" + end) | st.text())
def test_no_message_breaks_the_client(message):
    with pytest.raises(MessageError):
        client.read_message(message)


@pytest.mark.parametrize("cut", [3, 4, 12, 16, 17, 88])
def test_bytes_that_end_early_are_noticed(cut):
    with pytest.raises(MessageError, match=r"ends after|damaged"):
        client.read_message(REGION.to_bytes()[:cut])


def changed(**fields) -> str:
    found = {**json.loads(REGION.to_json()), **fields}
    return json.dumps({name: value for name, value in found.items() if value != "gone"})


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("{", "neither JSON nor the bytes of a safe region"),
        (b"\xff\xfe\xfd", "neither JSON nor"),
        ("[1]", "no safe region: its 'kind' is not 'whimbrel-safe-region'"),
        (changed(kind="map"), "no safe region"),
        (changed(format=2), "has format 2 and this client reads format 1; put the client that belongs"),
        (changed(format="gone"), "has format None"),
        (REGION.to_bytes()[:3] + b"\x09" + REGION.to_bytes()[4:], "has format 9 and this client"),
        (changed(version="7"), "'version' must be a whole number, not '7'"),
        (changed(version=True), "'version' must be a whole number"),
        (changed(version=-1), "'version' must be a whole number"),
        (changed(mode="all"), "'mode' must be one of every match, changes, not 'all'"),
        (changed(mode=["changes"]), "'mode' must be one of"),
        (changed(coordinates="gone"), "'coordinates' must be one of plane, lonlat, not None"),
        (changed(at=[1]), "'at' must be 2 finite numbers"),
        (changed(at="12"), "'at' must be 2 finite numbers"),
        (changed(at="gone"), "'radius_m' needs 'at'"),
        (changed(rectangle=[0, 0, 1, True]), "'rectangle' must be 4 finite numbers"),
        (changed(rectangle=[0, 0, 1, 10**400]), "'rectangle' must be 4 finite numbers"),
        (changed(radius_m=math.inf), "'radius_m' must be 1 finite number, not inf"),
        (changed(report=1.5), "'report' must be a whole number, not 1.5"),
        (changed(report=-1), "'report' must be a whole number, not -1"),
        (changed(expires=[5]), "'expires' must be 1 finite number, not"),
    ],
)
def test_a_wrong_message_is_explained(message, complaint):
    with pytest.raises(MessageError, match=complaint):
        SafeRegionFilter(message)


def test_without_a_region_every_position_is_reported():
    device = SafeRegionFilter()
    assert device.must_report(0, 0)
    assert device.must_report(0, 0)
    assert device.check_again_after(10) == 0


def test_rectangle_or_disc_is_enough_to_be_silent():
    region = SafeRegion(1, "every match", "plane", (0.0, 0.0), (-1.0, -1.0, 9.0, 1.0), 5.0)
    device = SafeRegionFilter(region.to_json())
    assert not any(device.must_report(x, y) for x, y in [(9, 1), (0, 5), (-5, 0)])
    assert device.must_report(4, 4)


@pytest.mark.parametrize("place", [(math.nan, 5), (5, math.nan), (math.inf, 5), (5, -math.inf)])
@pytest.mark.parametrize("coordinates", ["plane", "lonlat"])
def test_what_is_no_position_is_reported(place, coordinates):
    region = SafeRegion(1, "changes", coordinates, (5.0, 5.0), (0.0, 0.0, 10.0, 10.0), 1e6)
    assert SafeRegionFilter(region.to_json()).must_report(*place)


def test_beyond_the_date_line_is_no_position():
    region = SafeRegion(1, "changes", "lonlat", (179.0, 0.0), None, 300_000.0)
    assert not SafeRegionFilter(region.to_json()).must_report(180, 0)
    assert SafeRegionFilter(region.to_json()).must_report(181, 0)


@pytest.mark.parametrize("mode", ["every match", "changes"])
def test_a_region_ends_with_the_report_it_asks_for(mode):
    device = SafeRegionFilter(SafeRegion(1, mode, "plane", (5.0, 5.0), (0.0, 0.0, 10.0, 10.0)).to_json())
    assert device.must_report(20, 5)
    assert device.must_report(5, 5), "the server believes it at (20, 5)"


def test_numbers_tell_an_answer_from_an_earlier_one_for_the_same_place():
    device = SafeRegionFilter()
    assert device.must_report(5, 5)
    early = SafeRegion(1, "changes", "plane", (5.0, 5.0), (0.0, 0.0, 10.0, 10.0), report=device.reports)
    assert device.must_report(20, 5)
    assert device.must_report(5, 5)
    assert not device.update(early.to_bytes())
    assert device.update(replace(early, report=device.reports).to_bytes())
    assert not device.must_report(6, 5)


def test_an_answer_to_an_earlier_report_is_left_aside():
    device = SafeRegionFilter(AREA.to_json())
    assert device.must_report(20, 5)
    assert device.must_report(30, 5)
    assert not device.update(SafeRegion(1, "changes", "plane", (20.0, 5.0), (15.0, 0.0, 25.0, 9.0)).to_json())
    assert device.must_report(21, 5)
    assert not device.update(SafeRegion(1, "changes", "plane", (30.0, 5.0), (15.0, 0.0, 35.0, 9.0)).to_json())
    assert device.update(SafeRegion(1, "changes", "plane", (21.0, 5.0), (15.0, 0.0, 25.0, 9.0)).to_json())
    assert not device.must_report(24, 5)


def test_a_message_about_older_subscriptions_is_left_aside():
    device = SafeRegionFilter(AREA.to_json())
    assert device.update(SafeRegion(2, "changes", "plane").to_bytes()), "a withdrawal"
    assert not device.update(AREA.to_json())
    assert device.must_report(5, 5)


def test_a_message_left_aside_still_tells_of_newer_subscriptions():
    device = SafeRegionFilter(AREA.to_json())
    assert device.must_report(20, 5)
    answers = [
        SafeRegion(n, "changes", "plane", (at, 5.0), (15.0, 0.0, 35.0, 9.0))
        for n, at in [(1, 30.0), (2, 20.0)]
    ]
    assert device.must_report(30, 5)
    assert not device.update(answers[1].to_json()), "it answers the earlier report"
    assert not device.update(answers[0].to_json()), "it knows fewer subscriptions"


def test_a_dropped_region_is_silent_no_longer():
    device = SafeRegionFilter(AREA.to_json())
    assert not device.must_report(5, 5)
    device.drop()
    assert device.check_again_after(1) == 0
    assert device.must_report(5, 5)


def test_a_region_expires():
    device = SafeRegionFilter(
        SafeRegion(1, "every match", "plane", (0.0, 0.0), (-9.0, -9.0, 9.0, 9.0), None, 100.0).to_json()
    )
    assert not device.must_report(0, 0, time=99.9)
    assert device.check_again_after(0.01) == pytest.approx(0.1)
    assert device.must_report(0, 0, time=100)


def test_a_region_that_expires_needs_the_time():
    region = SafeRegion(1, "changes", "plane", (0.0, 0.0), (-9.0, -9.0, 9.0, 9.0), None, 100.0)
    device = SafeRegionFilter(region.to_json())
    with pytest.raises(ValueError, match="this region expires: give must_report the time"):
        device.must_report(0, 0)
    assert device.must_report(0, 0, time=math.nan)


@pytest.mark.parametrize("speed", [0, -1, math.nan])
def test_a_speed_is_above_zero(speed):
    with pytest.raises(ValueError, match="the greatest speed must be above 0 metres a second"):
        SafeRegionFilter(AREA.to_json()).check_again_after(speed)


def test_time_to_exit_is_the_way_to_the_border_over_the_speed():
    device = SafeRegionFilter(AREA.to_json())
    assert device.check_again_after(2) == 0, "where the device is now, nobody has said yet"
    assert not device.must_report(3, 5)
    assert device.check_again_after(2) == pytest.approx(1.5)
    assert device.must_report(11, 5)
    assert device.check_again_after(2) == 0


@given(
    st.sampled_from(
        [("plane", 5.0, 5.0, 1.0), ("lonlat", 10.0, 50.0, 1e-5), ("lonlat", -170.0, -88.0, 1e-3)]
    ),
    st.integers(0, 10**9),
)
def test_nobody_leaves_before_the_time_to_exit(where, seed):
    coordinates, x, y, unit = where
    chance = random.Random(seed)
    sides = [chance.uniform(0, 100) * unit for _ in range(4)]
    rectangle = (x - sides[0], y - sides[1], x + sides[2], y + sides[3])
    metres = 1.0 if coordinates == "plane" else 111_195 * unit
    region = SafeRegion(1, "changes", coordinates, (x, y), rectangle, chance.uniform(0, 100) * metres)
    device = SafeRegionFilter(region.to_bytes())
    px, py = chance.uniform(*rectangle[::2]), chance.uniform(*rectangle[1::2])
    assert not device.must_report(px, py)
    far = device.check_again_after(speed=1.0)
    for _ in range(20):
        bearing = chance.uniform(0, 2 * math.pi)
        assert region.contains(
            *point_at(px, py, far * chance.choice([0.5, 0.999, 1.0]), bearing, coordinates)
        )


def test_the_client_is_one_file_for_the_standard_library(tmp_path: Path):
    shutil.copy(client.__file__, tmp_path / "client.py")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from client import SafeRegionFilter\n"
        f"device = SafeRegionFilter({AREA.to_json()!r})\n"
        "print(device.must_report(5, 5), device.check_again_after(1.0) > 4, device.must_report(50, 5))\n"
        "assert not {'numpy', 'whimbrel', 'shapely'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False True True\n", "")
