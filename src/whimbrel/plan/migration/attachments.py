"""Which leaf broker a mover is attached to: plans that only tell (MigCEP, section 4.1; the thesis, 4.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import shapely

from whimbrel.plan.areas import Areas
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.plan import NOWHERE, Ints, MigrationPlan, Move, changes_of
from whimbrel.plan.network import Mover, Network

Floats = npt.NDArray[np.float64]

_MOST_CELLS = 4_000_000


def leaves_of(network: Network) -> Ints:
    """Return the numbers of the brokers with an area and with none below them that has one."""
    above = {broker.parent for broker in network.brokers if broker.area is not None}
    return np.array(
        [n for n, b in enumerate(network.brokers) if b.area is not None and b.name not in above], np.int64
    )


def areas_of(network: Network, numbers: Ints) -> Floats:
    """Return the areas of brokers as rows of smallest x and y, largest x and y."""
    return np.array([network.brokers[n].area for n in numbers], float).reshape(len(numbers), 4)


class LeafFinder:
    """Find the leaf broker whose area a point lies in."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.leaves = leaves_of(network)
        self.areas = areas_of(network, self.leaves)
        self._xs, self._ys = np.unique(self.areas[:, ::2]), np.unique(self.areas[:, 1::2])

    def find(self, x: Floats, y: Floats) -> Ints:
        """Return leaf of each point: the nearest one outside of all areas, `NOWHERE` if it is not known."""
        found = self._inside(x, y)
        outside = np.flatnonzero((found == NOWHERE) & np.isfinite(x) & np.isfinite(y))
        if len(outside) and len(self.leaves):
            found[outside] = self._served.serving(x[outside], y[outside])
        return found

    def _inside(self, x: Floats, y: Floats) -> Ints:
        found = np.full(len(x), NOWHERE, np.int64)
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if len(self._xs) * len(self._ys) <= _MOST_CELLS:
            # A border belongs to the area whose smallest x or y it is: so do the cells of this table.
            column = np.searchsorted(self._xs, x[known], "right")
            row = np.searchsorted(self._ys, y[known], "right")
            found[known] = self._cells[column, row]
            return found
        points, boxes = self._tree.query(shapely.points(x[known], y[known]))
        points, areas = known[points], self.areas[boxes]
        inside = (x[points] < areas[:, 2]) & (y[points] < areas[:, 3])
        found[points[inside]] = self.leaves[boxes[inside]]
        return found

    @cached_property
    def _cells(self) -> Ints:
        """The leaf of each cell between borders of areas; the first column and row lie before all borders."""
        cells = np.full((len(self._xs) + 1, len(self._ys) + 1), NOWHERE, np.int64)
        x0, y0, x1, y1 = self.areas.T
        columns = np.searchsorted(self._xs, x0) + 1, np.searchsorted(self._xs, x1) + 1
        rows = np.searchsorted(self._ys, y0) + 1, np.searchsorted(self._ys, y1) + 1
        for leaf, a, b, c, d in zip(self.leaves, *columns, *rows, strict=True):
            cells[a:b, c:d] = leaf
        return cells

    @cached_property
    def _served(self) -> Areas:
        return Areas(self.network)

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(shapely.box(*self.areas.T))


def positions(mover: Mover, times_s: Floats) -> tuple[Floats, Floats]:
    """Return where a mover is, on straight lines between reports; NaN before the first and after the last."""
    at, x, y = np.array(mover.track, float).reshape(-1, 3).T
    if not len(at):
        return np.full(len(times_s), np.nan), np.full(len(times_s), np.nan)
    nan = np.nan
    return (
        np.interp(times_s, at, x, left=nan, right=nan),
        np.interp(times_s, at, y, left=nan, right=nan),
    )


def attach(
    network: Network,
    horizon: Horizon,
    bytes_s: Mapping[str, float] | None = None,
    handover_s: float = 0.0,
    movers: Iterable[str] | None = None,
) -> dict[str, MigrationPlan]:
    """Plan the attachments of movers whose tracks are known.

    Parameters
    ----------
    network
        Brokers with areas, and movers.
    horizon
        The time steps.
    bytes_s
        What each mover sends a second, where it is known.
    handover_s
        How long it takes to change from one leaf broker to another: t_h in the thesis.
    movers
        Whose attachments are wanted; all by default.
    """
    names = list(network.mover if movers is None else movers)
    if not names:
        return {}
    where = [positions(network.mover[name], horizon.times_s) for name in names]
    x, y = (np.concatenate([place[axis] for place in where]) for axis in (0, 1))
    hosts = LeafFinder(network).find(x, y).reshape(len(names), horizon.steps)
    return {
        name: attached(name, horizon, row, (bytes_s or {}).get(name, 0.0), handover_s)
        for name, row in zip(names, hosts, strict=True)
    }


def attached(
    name: str, horizon: Horizon, hosts: Ints, bytes_s: float = 0.0, handover_s: float = 0.0
) -> MigrationPlan:
    """Make the plan of a mover, or of what stays at one broker, from where it is in each step."""
    moves = tuple(
        Move(
            int(step),
            int(hosts[step - 1]),
            int(hosts[step]),
            ready_s=horizon.time_s(step),
            fixed_send_s=horizon.time_s(step) - handover_s,
            window_send_s=horizon.time_s(step),
        )
        for step in changes_of(hosts)
    )
    return MigrationPlan(name, horizon, hosts, bytes_s, moves)
