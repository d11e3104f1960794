"""How often detections were made: by day, hour of day, type and key, and what stands out.

A detection counts at its end, when it is made: an absence at its deadline. A delivery counts when it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import ADDED, CHANGE, CHANGED, DROPPED
from whimbrel.backtesting.keys import KEY
from whimbrel.errors import WhimbrelError
from whimbrel.model.deliveries import has_deliveries
from whimbrel.model.time import DAY, HOUR

Int64Array = npt.NDArray[np.int64]

EVERY_DAY = 3_660
"""Over a longer time than so many days, days without detections are left out of lists."""


def made_at(table: pa.Table) -> pa.ChunkedArray:
    """Tell when each detection counts."""
    return table.column("told" if has_deliveries(table.schema) else "end")


@dataclass(frozen=True)
class TimeZone:
    """The time zone in which days and hours are counted."""

    name: str = "UTC"

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise WhimbrelError(
                f"{self.name!r} is no time zone that is known here; write for example UTC or Europe/Berlin"
            ) from error

    def local(self, moments: pa.ChunkedArray) -> Int64Array:
        """Convert instants to microseconds of local time."""
        here = pc.local_timestamp(moments.cast(pa.timestamp("us", self.name)))
        numbers: Int64Array = here.cast(pa.int64()).to_numpy()
        return numbers

    def written(self, moment: int) -> str:
        """Write an instant in local time, to the second.

        >>> TimeZone("Europe/Berlin").written(0)
        '1970-01-01 01:00:00'
        """
        local = self.local(pa.chunked_array([pa.array([moment], pa.timestamp("us", "UTC"))]))
        return str(np.datetime64(int(local[0]) // 1_000_000, "s")).replace("T", " ")


@dataclass(frozen=True)
class DetectionCounts:
    """Detections to be counted, with what each is about, and how they differ from others if they do."""

    old: pa.Table
    new: pa.Table | None = None
    both: pa.Table | None = None
    """The comparison of the two."""
    zone: TimeZone = TimeZone()

    @property
    def columns(self) -> dict[str, pa.Table]:
        """What is counted, by the name of its column."""
        if self.new is None or self.both is None:
            return {"detections": self.old}
        changes = {
            kind: self.both.filter(pc.equal(self.both.column(CHANGE), kind))
            for kind in (ADDED, DROPPED, CHANGED)
        }
        return {"old": self.old, "new": self.new, **changes}

    def by_day(self) -> pa.Table:
        """Count by day."""
        counted = self._counted(lambda table: self.zone.local(made_at(table)) // DAY)
        days = sorted({day for counts in counted.values() for day in counts})
        if days and days[-1] - days[0] < EVERY_DAY:
            days = list(range(days[0], days[-1] + 1))
        numbers = pa.array(np.array(days, np.int32)).cast(pa.date32())
        return _table("day", numbers, days, counted)

    def by_hour(self) -> pa.Table:
        """Count by the hour of the day."""
        counted = self._counted(lambda table: self.zone.local(made_at(table)) % DAY // HOUR)
        return _table("hour", pa.array(range(24), pa.int64()), list(range(24)), counted)

    def by_type(self) -> pa.Table:
        """Count by type of detection."""
        counted = {name: _texts_counted(table, "type") for name, table in self.columns.items()}
        types = sorted({kind for counts in counted.values() for kind in counts})
        return _table("type", pa.array(types, pa.string()), types, counted)

    def by_key(self) -> pa.Table:
        """Count by type and key, the most frequent first, with the first and last time of each."""
        aggregates = [("end", "count"), ("end", "min"), ("end", "max")]
        tables = {
            name: table.select(["type", KEY])
            .append_column("end", made_at(table))
            .group_by(["type", KEY])
            .aggregate(aggregates)
            for name, table in self.columns.items()
        }
        rows: dict[tuple[str, str], dict[str, int]] = {}
        spans: dict[tuple[str, str], list[object]] = {}
        for name, table in tables.items():
            for row in table.to_pylist():
                key = (row["type"], row[KEY])
                rows.setdefault(key, {})[name] = row["end_count"]
                spans.setdefault(key, []).extend([row["end_min"], row["end_max"]])
        leading = next(iter(tables))
        order = sorted(rows, key=lambda key: (*_weight(rows[key], leading), key))
        columns = {
            "type": pa.array([kind for kind, _ in order], pa.string()),
            "key": pa.array([key for _, key in order], pa.string()),
        }
        columns |= {name: pa.array([rows[key].get(name, 0) for key in order], pa.int64()) for name in tables}
        for name, pick in {"first": min, "last": max}.items():
            columns[name] = pa.array([pick(spans[key]) for key in order], pa.timestamp("us", "UTC"))  # type: ignore[type-var]
        return pa.table(columns)

    def _counted(self, cells: Callable[[pa.Table], Int64Array]) -> dict[str, dict[int, int]]:
        counted = {}
        for name, table in self.columns.items():
            values, counts = np.unique(cells(table), return_counts=True)
            counted[name] = dict(zip(values.tolist(), counts.tolist(), strict=True))
        return counted


def _weight(counts: dict[str, int], leading: str) -> tuple[int, int]:
    """Say how early a key stands in a list: by its differences, then by its detections."""
    return -sum(counts.get(name, 0) for name in (ADDED, DROPPED, CHANGED)), -counts.get(leading, 0)


def _texts_counted(table: pa.Table, name: str) -> dict[str, int]:
    counts = table.column(name).value_counts()
    return {row["values"].as_py(): row["counts"].as_py() for row in counts}


def _table(name: str, labels: pa.Array, cells: list, counted: dict[str, dict]) -> pa.Table:  # type: ignore[type-arg]
    columns = {
        column: pa.array([counts.get(cell, 0) for cell in cells], pa.int64())
        for column, counts in counted.items()
    }
    return pa.table({name: labels, **columns})


@dataclass(frozen=True)
class DetectionSummary:
    """What stands out in a list of detections; None where there are too few of them."""

    count: int
    first: int | None = None
    last: int | None = None
    days: int = 0
    """From the day of the first to the day of the last."""
    gap: tuple[int, int] | None = None
    """The longest time without a detection, from one to the next."""
    busiest: tuple[str, int] | None = None
    """The day with the most detections (the first of them), and how many."""


def summary_of(table: pa.Table, zone: TimeZone) -> DetectionSummary:
    """Find what stands out."""
    if not table.num_rows:
        return DetectionSummary(0)
    ends = np.sort(made_at(table).cast(pa.int64()).to_numpy())
    days, counts = np.unique(zone.local(made_at(table)) // DAY, return_counts=True)
    gap = None
    if len(ends) > 1:
        longest = int(np.argmax(np.diff(ends)))
        gap = (int(ends[longest]), int(ends[longest + 1]))
    top = int(np.argmax(counts))
    busiest = (str(np.datetime64(int(days[top]), "D")), int(counts[top]))
    return DetectionSummary(len(ends), int(ends[0]), int(ends[-1]), int(days[-1] - days[0]) + 1, gap, busiest)


@dataclass(frozen=True)
class Bins:
    """Stretches of local time of one length, one after the other without gaps."""

    unit: str
    labels: tuple[str, ...]
    numbers: Callable[[pa.Table], Int64Array]
    """The number of the bin of every detection of a table."""

    def counts(self, table: pa.Table) -> Int64Array:
        """Count detections in every bin."""
        return np.bincount(self.numbers(table), minlength=len(self.labels)).astype(np.int64)


_UNITS = ("hour", "day", "week", "month", "year")
MOST_HOURS = 48
"""Over more hours than these, days say more."""


def bins_over(tables: list[pa.Table], zone: TimeZone, most: int) -> Bins | None:
    """Choose at most so many bins that hold all detections: hours, days, weeks, months or years."""
    ends = [zone.local(made_at(table)) for table in tables if table.num_rows]
    if not ends:
        return None
    bounds = np.array([min(times.min() for times in ends), max(times.max() for times in ends)])
    for unit in _UNITS:
        first, last = bin_numbers(bounds, unit).tolist()
        if last - first < (min(most, MOST_HOURS) if unit == "hour" else most):
            break

    def of(table: pa.Table) -> Int64Array:
        numbers: Int64Array = bin_numbers(zone.local(made_at(table)), unit) - first
        return numbers

    return Bins(unit, tuple(_label(cell, unit) for cell in range(first, last + 1)), of)


def bin_numbers(local: Int64Array, unit: str) -> Int64Array:
    """Tell in which hours, days, weeks (from Monday), months or years times lie, as numbers."""
    if unit == "hour":
        return local // HOUR
    days = local // DAY
    if unit == "day":
        return days
    if unit == "week":
        return (days + 3) // 7  # 1970 began on a Thursday
    return days.astype("datetime64[D]").astype(f"datetime64[{unit[0].upper()}]").astype(np.int64)


def _label(cell: int, unit: str) -> str:
    if unit == "hour":
        return str(np.datetime64(cell, "h").astype("datetime64[m]")).replace("T", " ")
    if unit == "week":
        return str(np.datetime64(7 * cell - 3, "D"))
    return str(np.array(cell).astype(f"datetime64[{unit[0].upper()}]"))
