"""Which broker serves a place, and when movers change brokers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whimbrel.errors import NetworkError
from whimbrel.plan.areas import Areas, Attachment, attachments, leaves
from whimbrel.plan.network import Broker, Mover, Network

TWO = Network(
    (
        Broker("root", area=(0, 0, 20, 10)),
        Broker("west", parent="root", area=(0, 0, 10, 10)),
        Broker("east", parent="root", area=(10, 0, 20, 10)),
        Broker("cloud"),
    )
)


def grid(side: int) -> Network:
    return Network(
        tuple(Broker(f"{x}/{y}", area=(x, y, x + 1, y + 1)) for x in range(side) for y in range(side))
    )


def names(network: Network, x, y) -> list[str | None]:
    return [None if n < 0 else network.brokers[n].name for n in Areas(network).find(x, y)]


def test_only_leaves_serve():
    assert [broker.name for broker in leaves(TWO)] == ["west", "east"]


def test_a_border_belongs_to_the_area_whose_smallest_it_is():
    x, y = [0, 10, 20, 5, 9.999], [0, 5, 5, 10, 9.999]
    assert names(TWO, x, y) == ["west", "east", None, None, "west"]


def test_outside_the_nearest_serves():
    assert [TWO.brokers[n].name for n in Areas(TWO).serving([25, -5, 10], [5, 5, 10])] == [
        "east",
        "west",
        "west",
    ]


def test_a_mover_changes_at_the_border():
    mover = Mover("m", ((0, 5, 5), (10, 15, 5), (20, 15, 8), (30, 5, 8)))
    assert attachments(mover, TWO) == (Attachment(0, "west"), Attachment(5, "east"), Attachment(25, "west"))


def test_a_short_visit_between_two_positions_counts():
    across = Mover("m", ((0, -5, 5), (1, 25, 5)))
    three = Network(tuple(Broker(n, area=(x, 0, x + 10, 10)) for n, x in (("a", -10), ("b", 0), ("c", 10))))
    assert [each.broker for each in attachments(across, three)] == ["a", "b", "c"]


def test_one_position_is_one_attachment():
    assert attachments(Mover("m", ((7, 1, 1),)), TWO) == (Attachment(7, "west"),)


def test_ten_thousand_brokers():
    network = grid(100)
    areas = Areas(network)
    points = np.random.default_rng(1).uniform(0, 100, (2, 100_000))
    expected = np.floor(points[0]).astype(int) * 100 + np.floor(points[1]).astype(int)
    assert (areas.find(*points) == expected).all()
    diagonal = attachments(Mover("m", ((0, 0.25, 0.5), (100, 99.9, 99.5))), areas)
    assert len(diagonal) == 199


@given(
    st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16)), min_size=2, max_size=6),
    st.integers(2, 4),
)
@example([(0, 0), (0, 0), (0, 4), (0, 0)], 2)
def test_attachments_agree_with_looking_often(points, side):
    """Positions are quarters, so that many lie on borders."""
    network = grid(side)
    track = tuple((float(n), x / 4, y / 4) for n, (x, y) in enumerate(points))
    changes = attachments(Mover("m", track), network)
    areas = Areas(network)
    # None of them is when the mover turns: it may turn on a border, and touch an area for no time at all.
    times = (np.arange(996) + 0.5) / 996 * (len(points) - 1)
    x, y = (np.interp(times, [t for t, *_ in track], [p[axis] for p in track]) for axis in (1, 2))
    looked = [network.brokers[n].name for n in areas.serving(x, y)]
    for time, broker in zip(times, looked, strict=True):
        near = [each.time_s for each in changes if abs(each.time_s - time) < 1e-9]
        if not near:
            assert [each.broker for each in changes if each.time_s <= time][-1] == broker


def test_areas_are_checked():
    with pytest.raises(NetworkError, match="the areas of 'a' and 'b' overlap"):
        Areas(Network((Broker("a", area=(0, 0, 2, 2)), Broker("b", area=(1, 1, 3, 3)))))
    with pytest.raises(NetworkError, match="no broker has an area"):
        Areas(Network((Broker("a"),)))
    with pytest.raises(NetworkError, match="'m' has no position"):
        attachments(Mover("m", ()), TWO)
