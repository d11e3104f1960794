"""Positions of movers from files: CSV or Parquet with `object_id`, `t`, and `x`, `y` or `lon`, `lat`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from whimbrel.errors import NetworkError, did_you_mean

Track = tuple[tuple[float, float, float], ...]


def read_tracks(file: Path) -> dict[str, Track]:
    """Read the tracks of all objects in a file, in the order of their ids.

    `t` is seconds, or timestamps: those become seconds since the first of the file.

    Raises
    ------
    NetworkError
        If columns are missing, or positions are none.
    """
    table = table_of(file)
    id_name = column_named(table, "object_id")
    x_name, y_name = ("lon", "lat") if "lon" in table.column_names else ("x", "y")
    ids = np.array([str(object_id) for object_id in table.column(id_name).to_pylist()])
    when = table.column(column_named(table, "t"))
    t = seconds(when, "t")
    if is_stamped(when) and len(t):
        t = t - t.min()
    x, y = (floats(table.column(column_named(table, name)), name) for name in (x_name, y_name))
    order = np.lexsort((t, ids))
    ids, t, x, y = ids[order], t[order], x[order], y[order]
    twins = (ids[1:] == ids[:-1]) & (t[1:] == t[:-1])
    if twins.any():
        at = int(np.flatnonzero(twins)[0])
        raise NetworkError(
            f"{file.name}: {str(ids[at])!r} has two positions at t = {t[at]:g} s", "keep one of them"
        )
    names, starts = np.unique(ids, return_index=True)
    bounds = [*starts[1:].tolist(), len(ids)]
    points = list(zip(t.tolist(), x.tolist(), y.tolist(), strict=True))
    return {
        str(name): tuple(points[start:end])
        for name, start, end in zip(names, starts.tolist(), bounds, strict=True)
    }


def table_of(file: Path) -> Any:
    """Read a CSV or Parquet file."""
    import pyarrow as pa

    try:
        if file.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(file)
        import pyarrow.csv as pcsv

        return pcsv.read_csv(file)
    except pa.ArrowException as error:
        raise NetworkError(f"{file.name}: {error}") from error


def column_named(
    table: Any, name: str, what: str = "positions", needs: str = "object_id, t, and x, y or lon, lat"
) -> str:
    """Return the name of a column that a file of something needs, if it has it."""
    if name not in table.column_names:
        raise NetworkError(
            f"the file of {what} has no column {name!r}",
            did_you_mean(name, table.column_names) or f"it needs {needs}",
        )
    return name


def seconds(column: Any, name: str, what: str = "positions") -> Any:
    """Return a column of times as seconds: timestamps since 1970, numbers as they are."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        return floats(micros, name, what) / 1e6
    return floats(column, name, what)


def is_stamped(column: Any) -> bool:
    """Tell whether a column holds timestamps."""
    import pyarrow as pa

    return bool(pa.types.is_timestamp(column.type))


def floats(column: Any, name: str, what: str = "positions") -> Any:
    """Return a column as numbers."""
    import pyarrow as pa

    try:
        numbers = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise NetworkError(f"the column {name!r} of the file of {what} holds no numbers") from error
    if not np.isfinite(numbers).all():
        raise NetworkError(f"the column {name!r} of the file of {what} has gaps", "leave such rows out")
    return numbers
