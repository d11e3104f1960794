"""Subscriptions come and go, over links that lose, delay and repeat messages."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.safe_regions.naive import contains, matches
from tests.safe_regions.random_shapes import MAPS, PLACES, given_form, is_valid, shape_sets

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.safe_regions import index

SETS = st.sampled_from(MAPS).flatmap(lambda where: st.tuples(st.just(where), shape_sets(where, most=8)))


STREET = {f"house{n}": ("box", 20.0 * n, -5.0, 20.0 * n + 10, 5.0) for n in range(5)}


@pytest.mark.parametrize("mode", ["every match", "changes"])
@given(st.integers(0, 10**9))
def test_a_bad_link_costs_reports_and_no_matches(mode, seed):
    """Silence is right for all subscriptions, but for those whose withdrawal is still on its way, or lost."""
    chance = random.Random(seed)
    later = dict(STREET)
    added = {name: 0 for name in list(later) if chance.random() < 0.5}
    safe = wb.SafeRegions({name: later.pop(name) for name in added}, mode=mode)
    device, on_the_way, reported, told = wb.SafeRegionFilter(), [], None, 0
    for _ in range(40):
        x, y = chance.choice([5.0, 15.0, 25.0, 35.0, 45.0]), 0.0
        if later and chance.random() < 0.1:
            name, shape = later.popitem()
            concerned = safe.add(name, shape)
            added[name] = safe.version if concerned else 0
            if concerned:
                on_the_way.append((safe.version, safe.withdrawal().to_bytes()))
        for message in chance.sample(on_the_way, len(on_the_way)):
            fate = chance.choice(["arrives", "arrives and comes again", "waits", "waits", "is lost"])
            if fate.startswith("arrives"):
                device.update(message[1])
                told = max(told, message[0])
            if fate in ("arrives", "is lost"):
                on_the_way.remove(message)
        if device.must_report(x, y):
            reported = (x, y)
            on_the_way.append(
                (safe.version, safe.region_for(x, y, device="d", report=device.reports).to_json())
            )
            continue
        known = {name: STREET[name] for name, version in added.items() if version <= told}
        wanted = matches(known, *reported, "plane") if mode == "changes" else set()
        assert matches(known, x, y, "plane") == wanted


@given(st.data())
def test_whom_a_new_shape_meets_is_told(data):
    where, shapes = data.draw(SETS)
    assume(all(map(is_valid, shapes.values())))
    half = len(shapes) // 2
    old, new = dict(list(shapes.items())[:half]), dict(list(shapes.items())[half:])
    safe = wb.SafeRegions(
        {n: given_form(s) for n, s in old.items()}, coordinates=where.coordinates, mode="changes"
    )
    places = [where.at(*place) for place in data.draw(st.lists(PLACES, max_size=8))]
    held = {f"d{n}": safe.region_for(*place, device=f"d{n}") for n, place in enumerate(places)}
    probes = [where.at(*place) for place in data.draw(st.lists(PLACES, max_size=30))]
    for name, shape in new.items():
        told = safe.add(name, given_form(shape))
        for device, region in held.items():
            meets = any(region.contains(*at) and contains(shape, *at, where.coordinates) for at in probes)
            assert device in told or not meets


def test_a_device_far_away_is_left_in_peace():
    fences = {f"fence{n}": ("box", x, -500, x + 1, 500) for n, x in enumerate(range(-500, 501, 100))}
    safe = wb.SafeRegions(fences)
    for n, x in enumerate((-450, -50, 50, 450)):
        safe.region_for(x, 0, device=f"d{n}")
    assert safe.add("new", ("circle", 50, 0, 20)) == ("d2",)
    safe.forget("d2")
    assert safe.add("newer", ("circle", 50, 0, 30)) == ()


def test_whoever_is_silent_within_a_shape_to_be_is_told():
    safe = wb.SafeRegions({"pin": ("circle", 0, 0, 1)}, mode="changes")
    safe.region_for(50, 50, device="bus")
    assert safe.add("city", ("box", -1e6, -1e6, 1e6, 1e6)) == ("bus",)


@given(st.data(), st.sampled_from([0, 3]))
def test_shapes_come_and_go(data, most_loose):
    where, shapes = data.draw(SETS)
    assume(all(map(is_valid, shapes.values())))
    chance = random.Random(data.draw(st.integers(0, 10**9)))
    safe, there = wb.SafeRegions(coordinates=where.coordinates), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "MOST_LOOSE", most_loose)
        for _ in range(10):
            name = chance.choice(list(shapes) or ["none"])
            if name in there:
                safe.remove(name)
                del there[name]
            elif name in shapes:
                other = chance.choice(list(shapes))  # a name may come back with another shape
                safe.add(name, given_form(shapes[other]))
                there[name] = shapes[other]
            x, y = where.at(chance.uniform(-500, 500), chance.uniform(-500, 500))
            assert set(safe.matching(x, y)) == matches(there, x, y, where.coordinates)
            assert len(safe) == len(there)
            region = safe.region_for(x, y)
            for _ in range(10):
                px, py = where.at(chance.uniform(-500, 500), chance.uniform(-500, 500))
                assert not region.contains(px, py) or not matches(there, px, py, where.coordinates)


def test_versions_count_the_changes():
    safe = wb.SafeRegions({"a": ("circle", 0, 0, 1)}, version=41)
    safe.add("b", ("circle", 9, 9, 1))
    safe.remove("a")
    assert safe.version == safe.region_for(5, 5).version == safe.withdrawal().version == 43


def test_a_withdrawal_makes_the_device_report():
    safe = wb.SafeRegions({"a": ("circle", 0, 0, 1)}, mode="changes")
    device = wb.SafeRegionFilter(safe.region_for(50, 50, device="bus").to_json())
    assert not device.must_report(51, 50)
    assert safe.add("b", ("circle", 51, 60, 5)) == ("bus",)
    assert device.update(safe.withdrawal().to_json())
    assert device.must_report(51, 50)
    device.update(safe.region_for(51, 50, device="bus").to_json())
    assert not device.must_report(51, 50)
    assert device.must_report(51, 58)


def test_a_name_is_used_once():
    safe = wb.SafeRegions({"depot": ("circle", 0, 0, 1)})
    with pytest.raises(DataError, match="a subscription 'depot' is there already; remove it first"):
        safe.add("depot", ("circle", 0, 0, 2))
    assert safe.version == 0


def test_what_is_not_there_cannot_be_removed():
    safe = wb.SafeRegions({"depot": ("circle", 0, 0, 1)})
    with pytest.raises(DataError, match="no subscription is named 'depott'; did you mean 'depot'"):
        safe.remove("depott")
