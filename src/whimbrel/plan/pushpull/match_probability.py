"""How likely events that come by chance (Poisson) lie within one window of each other.

An event at time 0 and one of each other part lie within a window of length w if there is an x between 0 and w
such that each of the others has an event at most x before it or at most w - x after it. With `a` the time
back to its last event and `b` the time on to its next one, a part rules the x between w - b and a out. What
is left of all x is pieces, and the event counts if there is one. A piece begins at 0, or where what one part
rules out ends. How often pieces begin, and how often two do so at a distance, has a closed form; how often
the *first* one begins follows as in a renewal process: exact for one and two other parts, and within one in a
hundred or so for more.

In a sequence the nearest events before and after it are the best ones, each at an exponential time from the
next, so it is the distribution of a sum of such times: exact, from its Laplace transform.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 16
"""Into how many pieces a window is cut for the integral."""
TALBOT = 20
"""Points at which a Laplace transform is taken (fixed Talbot method)."""
ENOUGH = 100
"""Fewer cases than these are not taken as a share."""
RARELY = 1e-15
"""Events that a window is taken to have at least: a part that never occurs would divide by nothing."""


def shares_together(expected: Floats) -> Floats:
    """Give, for each part, the share of its events that have one of every other within a common window.

    `expected` is how many events of each part a window has in the mean.
    """
    count = len(expected)
    if count == 1:
        return np.ones(1)
    if count == 2:
        return -np.expm1(-2 * expected[::-1])
    rate = np.maximum(expected, RARELY)[:, None]
    at = np.linspace(0.0, 1.0, STEPS + 1)
    none = np.exp(-rate)
    ends = rate * none
    """How often what a part rules out ends."""
    begun = -np.expm1(-rate * at)
    both = 1.0 - none * (1.0 + begun)
    """How likely a part leaves two points at this distance."""
    one = np.log(both[:, :1])
    two = np.log(both)
    whole, whole_two = one.sum(0) - one, two.sum(0) - two
    again, once = ends * begun / both, ends / both
    sum_again, sum_once, sum_both = again.sum(0), once.sum(0), (again * once).sum(0)
    here = np.exp(whole)[:, 0]
    starts = here * ((ends / both[:, :1]).sum() - (ends / both[:, :1])[:, 0])
    left = np.exp(whole_two)
    after_first = left * (sum_again - again)
    after_later = left * ((sum_again - again) * (sum_once - once) - (sum_both - again * once))
    return _first(here, starts, after_first, after_later)


def _first(here: Floats, starts: Floats, after_first: Floats, after_later: Floats) -> Floats:
    """Solve for how often the first piece begins: at 0, or anywhere up to the end of the window."""
    step = 1.0 / STEPS
    kernel = np.divide(
        after_later, starts[:, None], out=np.zeros_like(after_later), where=starts[:, None] > 0
    )
    first = np.empty_like(after_first)
    for place in range(STEPS + 1):
        weights = np.ones(place + 1)
        weights[0] = weights[-1] = 0.5
        before = (first[:, :place] * kernel[:, place:0:-1] * weights[:place]).sum(1) * step if place else 0.0
        first[:, place] = (starts - after_first[:, place] - before) / (1.0 + 0.5 * step * kernel[:, 0])
    within = (first.sum(1) - (first[:, 0] + first[:, -1]) / 2) * step
    return np.clip(here + within, 0.0, 1.0)


def shares_in_order(expected: Floats) -> Floats:
    """Give, for each part of a sequence, the share of its events with the others in order around them."""
    if len(expected) == 1:
        return np.ones(1)
    rate = np.maximum(expected, RARELY)[:, None]
    nodes, weights = _talbot()
    factors = rate / (rate + nodes)
    rest = np.exp(np.log(factors).sum(0) - np.log(factors))
    found: Floats = (rest / nodes * weights).sum(1).real
    return np.clip(found, 0.0, 1.0)


def _talbot() -> tuple[NDArray[Any], NDArray[Any]]:
    """Say where to take a Laplace transform, and with which weights, to have the function at 1."""
    angle = np.arange(1, TALBOT) * np.pi / TALBOT
    turned = angle * (1 / np.tan(angle) + 1j)
    nodes = np.concatenate([np.ones(1, np.complex128), turned]) * 2 * TALBOT / 5
    slope = 1 + 1j * angle * (1 + (1 / np.tan(angle)) ** 2) - 1j / np.tan(angle)
    weights = np.exp(nodes) * np.concatenate([np.full(1, 0.5, np.complex128), slope]) * 0.4
    return nodes, weights


def share_between(expected: Floats) -> float:
    """Work out the share of time between two given neighbours of a sequence that is within the window.

    Seen from any time, the others of the sequence are at exponential times from each other, as from an event.
    """
    return float(shares_in_order(np.append(expected, RARELY))[-1])


def share_amid(expected: Floats, draws: int = 20_000) -> float:
    """Estimate the share of time that lies between the first and the last of events within a window.

    Drawn, from a fixed seed; where that would be too rare, the first term of its series.
    """
    count = len(expected)
    if count < 2:
        return 0.0
    rate = np.maximum(expected, RARELY)[:, None]
    random = np.random.default_rng(0)
    back, on = random.exponential(1 / rate, (count, draws)), random.exponential(1 / rate, (count, draws))
    found = np.zeros(draws, bool)
    for number in range(count):
        reach = back[number]
        after = on <= 1 - reach
        some_after = np.delete(after, number, 0).any(0)
        found |= (reach <= 1) & some_after & ((back <= reach) | after).all(0)
    if found.sum() < ENOUGH:
        return float((count - 1) * np.exp(np.log(rate).sum()))
    return float(found.mean())
