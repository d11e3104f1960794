"""Where an event is kept: the day that it ended on, and the grid cell of the centre of its location.

Cells are squares of the coordinates themselves: `cell_m` metres in the plane, `cell_m / 111,195 m` degrees
of longitude and latitude. So a cell in degrees gets narrower towards the poles, and a rectangle of
coordinates is always a rectangle of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.model.columns import nulls_of
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import DAY, instant
from whimbrel.space import geometry

NOWHERE = "none"
"""The cell of events without a location."""
FARTHEST = 2**52
"""Cells are numbered up to this far from the origin; everything beyond shares the last one."""

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Square cells of `step` in the units of the coordinates."""

    step: float

    @staticmethod
    def of(cell_m: float, coordinates: Coordinates | None) -> CellGrid:
        """Make the grid whose cells are `cell_m` metres wide (for degrees: along a meridian)."""
        return CellGrid(geometry.in_units(cell_m, coordinates))

    def places(self, values: FloatArray) -> Int64Array:
        """Find the column or row of cells that each coordinate lies in."""
        numbers = np.clip(np.floor(values / self.step), -FARTHEST, FARTHEST)
        return np.where(np.isnan(numbers), 0, numbers).astype(np.int64)


def cell_name(column: int, row: int) -> str:
    """Name a cell; a name that no program takes for a number.

    >>> cell_name(12, -5)
    'x12y-5'
    """
    return f"x{column}y{row}"


def day_name(number: int) -> str:
    """Name the day that lies `number` days after 1970-01-01.

    >>> day_name(0)
    '1970-01-01'
    """
    return (_EPOCH + timedelta(days=number)).isoformat()


def first_whole_day(moment: date | datetime | str | int) -> int:
    """Find the first day that does not lie wholly before `moment`."""
    if isinstance(moment, date) and not isinstance(moment, datetime):
        return (moment - _EPOCH).days
    return instant(moment) // DAY


def today(now: datetime | None) -> int:
    """Find the current day (UTC), or of the day of `now`."""
    moment = datetime.now(UTC) if now is None else now
    if moment.tzinfo is None:
        raise DataError(f"{moment!r} has no time zone; use datetime(..., tzinfo=UTC)")
    return instant(moment) // DAY


def centres(
    events: pa.RecordBatch | pa.Table, coordinates: Coordinates | None
) -> tuple[FloatArray, FloatArray]:
    """Compute the centre of every location; NaN where there is none."""
    rows, names = events.num_rows, events.schema.names
    x, y = np.full(rows, np.nan), np.full(rows, np.nan)
    pair = ("lon", "lat") if "lon" in names else ("x", "y")
    if pair[0] in names:
        x, y = (_writable(events.column(name)) for name in pair)
    if "geometry" in names and events.column("geometry").null_count < rows:
        column = _joined(events.column("geometry"))
        given = ~nulls_of(column)
        x[given], y[given] = geometry.centres(column.to_numpy(zero_copy_only=False)[given], coordinates)
    return x, y


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _writable(column: pa.Array | pa.ChunkedArray) -> FloatArray:
    """Copy the numbers, with NaN for null."""
    values: FloatArray = _joined(column).to_numpy(zero_copy_only=False).copy()
    return values
