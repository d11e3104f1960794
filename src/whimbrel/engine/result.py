"""What a query found in a bounded input: an Arrow table, and what became of the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as default
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import pyarrow as pa

from whimbrel.engine.ingest import Counts
from whimbrel.io import frames
from whimbrel.io.detections import write_detections
from whimbrel.io.notebook import result_html, result_text
from whimbrel.io.rejected import REJECTED_ROWS
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import INSTANT
from whimbrel.model.deliveries import counted
from whimbrel.model.faults import kinds_of_reasons
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.schema import Coordinates
from whimbrel.model.words import many

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    import polars as pl

MOST_REASONS = 3
"""Reasons for rejecting rows that a result names when it shows itself."""
_NO_EVENTS = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("source", pa.string()),
        ("start", INSTANT),
        ("end", INSTANT),
    ]
)


class _OfTable:
    """An attribute that the result has because its table has it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.__doc__ = None  # what it means is told by Arrow; our reference lists our own names

    def __get__(self, result: Detections | None, owner: type | None = None) -> Any:
        return self if result is None else getattr(result.table, self.name)


@dataclass(frozen=True, eq=False, repr=False)
class Detections:
    """What a query found: usable as the Arrow table that it holds, and with what became of the events.

    In a notebook it shows itself, as a table and a map. It has all methods of a `pyarrow.Table`, which give
    plain tables, and whatever takes Arrow data takes it: `pa.table(result)`, `pl.DataFrame(result)`.
    Functions that ask for a `pyarrow.Table` and nothing else want `result.table`: `pa.concat_tables`,
    `pyarrow.parquet.write_table`, `pl.from_arrow`, Spark's `createDataFrame`.

    Of late, duplicate and rejected events up to 100,000 each are kept; `counts` counts all.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Warm detect Temp(val > 25)")
    >>> events = [{"id": "a", "type": "Temp", "time": 0, "val": 30.5}, {"id": "b", "type": "Temp", "val": 31}]
    >>> result = wb.detect(query, events)
    >>> result
    1 detection in 2 events: 1 processed, 0 late, 0 duplicate, 1 rejected
      1 × time is missing
    type  start (UTC)          end (UTC)            val   events  id
    Warm  1970-01-01 00:00:00  1970-01-01 00:00:00  30.5  1 id    7a8e096f…
    >>> result["val"].to_pylist(), result.counts.rejected, result.rejected["reason"].to_pylist()
    ([30.5], 1, ['time is missing'])
    """

    table: pa.Table
    """The detections: `id`, `type`, `start`, `end`, `geometry` (WKB), the attributes, `events`."""
    counts: Counts
    """What became of the events: received = processed + late + duplicate + rejected."""
    notes: tuple[str, ...] = ()
    """What was taken on trust, in words: usual names of columns, units told by their size."""
    warnings: tuple[str, ...] = ()
    """What looks like a mistake in the input or the query, and the option that would mend it."""
    columns_taken: Mapping[str, str] = default(default_factory=dict)
    """The column of the input that was taken for each of `time`, `source` and so on."""
    read_as: Mapping[str, object] = default(default_factory=dict)
    """How the events were read: settings with which `map` reads them in the same way."""
    late: pa.Table = default(default_factory=_NO_EVENTS.empty_table)
    """Events that came later than the lateness allows, with the columns that the query reads."""
    duplicates: pa.Table = default(default_factory=_NO_EVENTS.empty_table)
    """Events that were there already, with the columns that the query reads."""
    rejected: pa.Table = default(default_factory=REJECTED_ROWS.empty_table)
    """Rows that are no events: `file`, `row` (from 1 in a file), `reason`, and `event`, the row as JSON."""

    @property
    def detections(self) -> pa.Table:
        """The detections as a plain Arrow table; the same as `table`."""
        return self.table

    # -- in other forms ----------------------------------------------------------------------------------

    def to_pandas(self, *args: Any, **options: Any) -> pd.DataFrame:
        """Convert the detections to a pandas data frame, as `whimbrel.to_pandas`.

        With options of `pyarrow.Table.to_pandas`, it is that method that is called.
        """
        return self.table.to_pandas(*args, **options) if args or options else frames.to_pandas(self.table)

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """Convert the detections to a GeoDataFrame, as `whimbrel.to_geopandas`."""
        return frames.to_geopandas(self.table)

    def to_polars(self) -> pl.DataFrame:
        """Convert the detections to a polars data frame, as `whimbrel.to_polars`."""
        return frames.to_polars(self.table)

    def map(
        self, events: EventTable | EventPaths | None = None, **settings: Unpack[frames.MapSettings]
    ) -> frames.Map:
        """Draw the detections on a map with a time slider; see `whimbrel.show` for the settings.

        Events are read as they were for these detections: the same columns, the same times.

        Parameters
        ----------
        events
            What they were found in, to show how the objects moved: paths, Arrow, pandas, polars, dicts.
        """
        whole = cast("frames.MapSettings", {**self.read_as, **settings})
        return frames.show(self.table, events, **whole)

    def save(
        self,
        path: str | PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        interest_areas: bool = False,
    ) -> Path:
        """Write the detections to a file; its ending says how (.jsonl, .csv, .parquet, .geojson, .html).

        An .html file is the map. `format` says it where the ending does not, `interest_areas` whether to tell
        the areas of the interests of a mobile query; see `write_detections`.
        """
        target = Path(path)
        if format == "html" or (format is None and target.suffix.lower() in (".html", ".htm")):
            return self.map().save(target)
        write_detections(self.table, target, format, interest_areas=interest_areas)
        return target

    def __repr__(self) -> str:
        return result_text(self.table, account(self.table, self.counts), self._remarks())

    def _repr_html_(self) -> str:
        return result_html(self.table, account(self.table, self.counts), self._remarks())

    def _remarks(self) -> list[str]:
        warned = (f"warning: {warning}" for warning in self.warnings)
        return [*reasons(self.counts.reasons), *self.notes, *warned]

    # -- as an Arrow table -------------------------------------------------------------------------------

    def equals(self, other: object, check_metadata: bool = False) -> bool:
        """Tell whether the detections are the same as those of another result, or table."""
        return bool(self.table.equals(plain_table(other), check_metadata=check_metadata))

    def join(self, right_table: Detections | pa.Table, *args: Any, **options: Any) -> pa.Table:
        """As `pyarrow.Table.join`."""
        return self.table.join(plain_table(right_table), *args, **options)

    def join_asof(self, right_table: Detections | pa.Table, *args: Any, **options: Any) -> pa.Table:
        """As `pyarrow.Table.join_asof`."""
        return self.table.join_asof(plain_table(right_table), *args, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detections | pa.Table):
            return NotImplemented
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # as a table has none

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.table.__array__(*args, **options)

    def __dataframe__(self, *args: Any, **options: Any) -> Any:
        return self.table.__dataframe__(*args, **options)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.table.schema.__arrow_c_schema__()

    # Every other public name of a table, one by one, so that editors and type checkers know them too.
    add_column = _OfTable()
    append_column = _OfTable()
    cast = _OfTable()
    column = _OfTable()
    column_names = _OfTable()
    columns = _OfTable()
    combine_chunks = _OfTable()
    drop = _OfTable()
    drop_columns = _OfTable()
    drop_null = _OfTable()
    field = _OfTable()
    filter = _OfTable()
    flatten = _OfTable()
    from_arrays = _OfTable()
    from_batches = _OfTable()
    from_pandas = _OfTable()
    from_pydict = _OfTable()
    from_pylist = _OfTable()
    from_struct_array = _OfTable()
    get_total_buffer_size = _OfTable()
    group_by = _OfTable()
    is_cpu = _OfTable()
    itercolumns = _OfTable()
    nbytes = _OfTable()
    num_columns = _OfTable()
    num_rows = _OfTable()
    remove_column = _OfTable()
    rename_columns = _OfTable()
    replace_schema_metadata = _OfTable()
    schema = _OfTable()
    select = _OfTable()
    set_column = _OfTable()
    shape = _OfTable()
    slice = _OfTable()
    sort_by = _OfTable()
    take = _OfTable()
    to_batches = _OfTable()
    to_pydict = _OfTable()
    to_pylist = _OfTable()
    to_reader = _OfTable()
    to_string = _OfTable()
    to_struct_array = _OfTable()
    to_tensor = _OfTable()
    unify_dictionaries = _OfTable()
    validate = _OfTable()


def account(found: pa.Table, counts: Counts) -> str:
    """Say what was found, and what became of the events."""
    waiting = f"{counts.waiting:,} waiting, " if counts.waiting else ""
    return (
        f"{counted(found)} in {many(counts.received, 'event')}: {counts.processed:,} processed, "
        f"{waiting}{counts.late:,} late, {counts.duplicate:,} duplicate, {counts.rejected:,} rejected"
    )


def reasons(counted: Mapping[str, int]) -> list[str]:
    """List why rows were rejected, the most frequent reasons first."""
    kinds = kinds_of_reasons(counted)
    lines = [f"{count:,} × {reason}" for reason, count in kinds.most_common(MOST_REASONS)]
    more = len(kinds) - MOST_REASONS
    return [*lines, f"and {many(more, 'other reason')}"] if more > 0 else lines


def plain_table(table: Any) -> Any:
    """Unwrap the Arrow table of a result; anything else stays as it is."""
    return table.table if isinstance(table, Detections) else table


def set_aside(kept: Mapping[str, pa.Table | None], coordinates: Coordinates | None) -> dict[str, pa.Table]:
    """Prepare the late and the duplicate events for a result, where they can be read as events again."""
    tables = {"late": kept["late"], "duplicates": kept["duplicate"]}
    return {name: events_table(table, coordinates) for name, table in tables.items() if table is not None}


def events_table(table: pa.Table, coordinates: Coordinates | None) -> pa.Table:
    """Convert events from the common form to one that others read: with times, and lon and lat."""
    names = {"x": "lon", "y": "lat"} if coordinates is Coordinates.LONLAT else {}
    columns = {
        names.get(name, name): table[name].cast(INSTANT) if name in ("start", "end") else table[name]
        for name in table.column_names
        if not name.startswith("@")
    }
    system = "none" if coordinates is None else coordinates.value
    return pa.table(columns).replace_schema_metadata({COORDINATES_KEY: system.encode()})
