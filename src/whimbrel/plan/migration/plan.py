"""What a migration plan says: where something will be in each time step, and when its state must be sent.

MigCEP (Ottenwälder et al., DEBS 2013), section 4.1: H, B, t_im, T_Q and R_L of each step. Movers have plans,
too: those cannot be carried out, they only tell to which leaf broker a mover will be attached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from whimbrel.plan.arrays import Ints
from whimbrel.plan.migration.horizon import Horizon

NOWHERE = -1
"""The host of a mover that is in no broker's area."""


@dataclass(frozen=True, slots=True)
class Move:
    """One migration of a plan."""

    step: int
    """The first step at the target."""
    source: int
    target: int
    ready_s: float
    """When it begins there."""
    fixed_send_s: float
    """When the transfer of the fixed state begins: t_im."""
    window_send_s: float
    """When the transfer of the window begins, after that of the fixed state."""
    window_since_s: Mapping[str, float] = field(default_factory=dict)
    """For each input, the time of the first event that the target needs: T_Q."""


@dataclass(frozen=True, slots=True, eq=False)
class MigrationPlan:
    """Where an operator, or a mover, is expected to be in each time step."""

    name: str
    horizon: Horizon
    hosts: Ints
    """The number of the broker in each step."""
    bandwidth_b_s: float
    moves: tuple[Move, ...] = ()
    latency_s: Mapping[str, float] = field(default_factory=dict)
    """What each stream may take of the latency restriction, by the name of the other end."""


def changes_of(hosts: Ints) -> Ints:
    """Return the steps at which the host is another than before."""
    return np.flatnonzero(np.diff(hosts)) + 1
