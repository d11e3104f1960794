"""Choose the brokers that a time graph looks at: those near, and those above them (MigCEP, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.plan import NOWHERE
from whimbrel.plan.network import Network


def brokers_within(network: Network, present: Iterable[int], range_m: float) -> Ints:
    """Return brokers whose areas are closer than a range to those of the present ones, and all above them.

    With a range of 0 these are the brokers, on all levels, that serve a part of the same area. Brokers
    without an area are chosen only if they are present, or above one that is chosen.

    Parameters
    ----------
    present
        Numbers of the brokers that host the operator and its neighbours now.
    range_m
        How far away an area may be: the paper tries 0, 2500 and 5000 m.
    """
    here = np.unique([n for n in present if n != NOWHERE])
    with_area = np.array([n for n, b in enumerate(network.brokers) if b.area is not None], np.int64)
    areas = _areas_of(network, with_area)
    # An operator in the cloud is near to everything: only the areas of the lowest present brokers count.
    above = {ancestor for number in here for ancestor in network.ancestors(int(number))}
    lowest = np.array([number for number in here if number not in above], np.int64)
    chosen = set(here.tolist())
    for x0, y0, x1, y1 in _areas_of(network, np.intersect1d(lowest, with_area)):
        close = (areas[:, 0] < x1 + range_m) & (areas[:, 2] > x0 - range_m)
        close &= (areas[:, 1] < y1 + range_m) & (areas[:, 3] > y0 - range_m)
        chosen.update(with_area[close].tolist())
    for number in tuple(chosen):
        chosen.update(network.ancestors(number))
    return np.array(sorted(chosen), np.int64)


def _areas_of(network: Network, numbers: Ints) -> Floats:
    """Return the areas of brokers as rows of smallest x and y, largest x and y."""
    return np.array([network.brokers[n].area for n in numbers], float).reshape(len(numbers), 4)
