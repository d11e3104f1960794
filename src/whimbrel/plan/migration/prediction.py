"""Uncertain plans of movers from where they were, or from the route they are on (MigCEP, section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from whimbrel.plan.areas import Areas
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.plan import NOWHERE
from whimbrel.plan.migration.uncertain import UncertainPlan, only_forward, stay_if_possible
from whimbrel.space.local_plane import mean_velocity


def _erf(x: Floats) -> Floats:
    """Return the error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    powers = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1.0 - powers * np.exp(-x * x))


def dead_reckoning(
    name: str,
    horizon: Horizon,
    recent: Sequence[tuple[float, float, float]],
    leaves: Areas,
    error_m: float = 10.0,
    error_m_s: float = 3.0,
    bytes_s: float = 0.0,
    at: int = NOWHERE,
) -> UncertainPlan:
    """Go on as before: the speed and direction of the last reports, a normal error that grows with time.

    The probability of a leaf broker is that of its area under the error; what lies in no area is shared out.

    Parameters
    ----------
    recent
        The last reports: (time in seconds, x, y); one report means that it stands still.
    error_m
        The standard deviation of a report.
    error_m_s
        How much it grows each second.
    at
        The leaf broker that it is attached to, if that is known: its report may lie next to a border, or even
        beyond it, but it is within that area.
    """
    reports = np.array(recent, float)
    last = reports[-1]
    speed = np.concatenate(mean_velocity(*reports.T[:, None]))
    ahead = np.maximum(horizon.times_s - last[0], 0.0)
    here = leaves.number == at
    probabilities = np.ones((horizon.steps, len(here)))
    for axis in (0, 1):
        low, high = leaves.boxes[:, axis], leaves.boxes[:, axis + 2]
        mean, error = float(last[1 + axis]), error_m
        if here.any():
            mean, error = _within(mean, error_m, float(low[here][0]), float(high[here][0]))
        probabilities *= _inside(mean + speed[axis] * ahead, error + error_m_s * ahead, low, high)
    probabilities[probabilities < 1e-3] = 0.0
    if here.any():
        probabilities[ahead == 0] = here
    return chain_of(name, horizon, leaves.number, probabilities, bytes_s)


def chain_of(
    name: str, horizon: Horizon, brokers: Ints, probabilities: Floats, bytes_s: float
) -> UncertainPlan:
    """Make a chain of chances of brokers (columns) in each step (rows) that stays as often as it can."""
    nowhere = probabilities.sum(axis=1) <= 0
    brokers = np.append(brokers, NOWHERE)
    probabilities = np.column_stack([probabilities, nowhere.astype(float)])
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    used = np.flatnonzero(probabilities.any(axis=0))
    brokers, probabilities = brokers[used], probabilities[:, used]
    turns = stay_if_possible(probabilities)
    return UncertainPlan(name, horizon, (brokers,) * horizon.steps, probabilities[0], turns, bytes_s)


def navigation(
    name: str,
    horizon: Horizon,
    route: Sequence[int],
    enters_s: Sequence[float],
    spread: float | Sequence[float] = 0.1,
    bytes_s: float = 0.0,
) -> UncertainPlan:
    """Follow a known route at uncertain times: a temporally skewed plan.

    Parameters
    ----------
    route
        The numbers of the brokers on the route, the present one first.
    enters_s
        When each is expected to be entered; the time of the first does not matter.
    spread
        The standard deviation of a time, as a share of how far it lies ahead; or, for each broker of the
        route, in seconds.
    """
    times, enters = horizon.times_s, np.asarray(enters_s, float)[1:]
    if isinstance(spread, float | int):
        error = spread * np.maximum(enters - horizon.start_s, 0.0) + 1e-9
    else:
        error = np.asarray(spread, float)[1:] + 1e-9
    entered = 0.5 * (1.0 + _erf((times[:, None] - enters) / (error * math.sqrt(2.0))))
    entered = np.column_stack([np.ones(len(times)), entered, np.zeros(len(times))])
    # Later brokers are never more probable to have been entered, and what was entered stays so.
    entered = np.maximum.accumulate(np.minimum.accumulate(entered, axis=1), axis=0)
    probabilities = -np.diff(entered, axis=1)
    probabilities[probabilities < 1e-6] = 0.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    brokers = np.asarray(route, np.int64)
    turns = only_forward(probabilities)
    return UncertainPlan(name, horizon, (brokers,) * horizon.steps, probabilities[0], turns, bytes_s)


def route_of(hosts: Ints, horizon: Horizon) -> tuple[list[int], list[float]]:
    """Return the brokers on a way, one after the other, and when each is entered."""
    changes = np.concatenate([[0], np.flatnonzero(np.diff(hosts)) + 1])
    return [int(hosts[step]) for step in changes], [horizon.time_s(int(step)) for step in changes]


def _within(mean: float, error: float, low: float, high: float) -> tuple[float, float]:
    """Return mean and error of a normal distribution, given that it lies between two borders."""
    a, b = (low - mean) / error, (high - mean) / error
    whole = 0.5 * (math.erf(b / math.sqrt(2.0)) - math.erf(a / math.sqrt(2.0)))
    if whole < 1e-6:
        return min(max(mean, low), high), error
    at_a, at_b = (math.exp(-value * value / 2) / math.sqrt(2 * math.pi) for value in (a, b))
    shift = (at_a - at_b) / whole
    variance = 1.0 + (a * at_a - b * at_b) / whole - shift**2
    return mean + error * shift, error * math.sqrt(max(variance, 1e-6))


def _inside(mean: Floats, error: Floats, low: Floats, high: Floats) -> Floats:
    """Return the probability of a normal distribution (rows) to lie between two borders (columns)."""
    scale = (error * math.sqrt(2.0))[:, None]
    return 0.5 * (_erf((high - mean[:, None]) / scale) - _erf((low - mean[:, None]) / scale))
