"""The pictures of the guide to queries that follow something show what the guide says of them."""

from __future__ import annotations

import importlib.util
import sys

import pytest

import whimbrel as wb


@pytest.fixture(scope="module")
def pictures(root):
    spec = importlib.util.spec_from_file_location("mobile_pictures", root / "tools" / "mobile_pictures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_of_twelve_cars_in_a_jam_the_interest_sees_five(pictures):
    events = [*pictures.cars_that_stand(), {"type": "Me", "time": 90, "source": "me", "x": 0, "y": 0}]
    cars = {
        of: sorted(
            wb.detect(wb.compile(pictures.JAMS.format(near=300, of=of)), events).table["cars"].to_pylist()
        )
        for of in ("", " of situations")
    }
    assert cars == {"": [5, 6], " of situations": [6, 9, 12]}


def test_the_car_that_is_held_up_stays_in_its_second_interest(pictures):
    starts = pictures.switches(
        wb.compile(pictures.ROAD.replace("deliver new", "").replace("Skid as s", "* as s")),
        pictures.on_the_road(),
    )
    assert len(starts) == 4
    assert starts[1] < 130
    assert starts[2] > 160


@pytest.mark.slow
def test_they_are_drawn(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mobile_pictures.py", "--out", str(tmp_path), "timeline", "situations"])
    pictures.main()
    drawn = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert drawn.keys() == {"mobile-timeline.png", "mobile-situations.png"}
    assert min(drawn.values()) > 10_000
