"""Which leaf broker a mover is attached to: plans that only tell (MigCEP, section 4.1; the thesis, 4.3.2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.plan.areas import Areas
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.plan import MigrationPlan, Move, changes_of
from whimbrel.plan.network import Mover, Network


def positions(mover: Mover, times_s: Floats) -> tuple[Floats, Floats]:
    """Return where a mover is, on straight lines between reports; NaN before the first and after the last."""
    if not mover.track:
        return np.full(len(times_s), np.nan), np.full(len(times_s), np.nan)
    at, x, y = np.array(mover.track, float).T
    nan = np.nan
    return (
        np.interp(times_s, at, x, left=nan, right=nan),
        np.interp(times_s, at, y, left=nan, right=nan),
    )


def attach(
    network: Network, horizon: Horizon, movers: Iterable[str] | None = None
) -> dict[str, MigrationPlan]:
    """Plan the attachments of movers whose tracks are known; of all, unless some are named."""
    names = list(network.mover if movers is None else movers)
    if not names:
        return {}
    where = [positions(network.mover[name], horizon.times_s) for name in names]
    x, y = (np.concatenate([axes[axis] for axes in where]) for axis in (0, 1))
    hosts = Areas(network).serving(x, y).reshape(len(names), horizon.steps)
    return {name: attached(name, horizon, row) for name, row in zip(names, hosts, strict=True)}


def attached(name: str, horizon: Horizon, hosts: Ints, bytes_s: float = 0.0) -> MigrationPlan:
    """Make the plan of a mover, or of what stays at one broker, from where it is in each step."""
    moves = []
    for step in changes_of(hosts).tolist():
        time_s = horizon.time_s(step)
        moves.append(Move(step, int(hosts[step - 1]), int(hosts[step]), time_s, time_s, time_s))
    return MigrationPlan(name, horizon, hosts, bytes_s, tuple(moves))
